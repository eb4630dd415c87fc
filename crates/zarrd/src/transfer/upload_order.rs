//! Order of uploads: chunks before metadata, so that readers never see an array with missing chunks.

use std::cmp::Reverse;

use zarrd_store::Key;

/// Phase of a transfer. All values of a phase are written before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UploadPhase {
    /// Chunks and other values that are not metadata documents.
    Data,
    /// Metadata documents, the deepest first: nodes before the groups that contain them.
    Metadata {
        /// Number of segments of the key.
        depth: Reverse<usize>,
        /// Kind of the document.
        document: DocumentKind,
    },
}

/// Kind of a metadata document, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentKind {
    /// Attributes in a document of their own.
    Attributes,
    /// The document of the node itself.
    Node,
    /// Consolidated metadata.
    Consolidated,
}

/// The phase of a key.
pub(super) fn upload_phase(name: &Key) -> UploadPhase {
    let document = match name.name() {
        ".zattrs" => DocumentKind::Attributes,
        "zarr.json" | ".zarray" | ".zgroup" => DocumentKind::Node,
        ".zmetadata" => DocumentKind::Consolidated,
        _ if is_draft_metadata(name) => DocumentKind::Node,
        _ => return UploadPhase::Data,
    };
    UploadPhase::Metadata { depth: Reverse(name.as_str().split('/').count()), document }
}

/// True for documents of the 2020 draft, which are stored below `meta/root`, with a suffix that the hierarchy chooses.
fn is_draft_metadata(name: &Key) -> bool {
    let mut segments = name.as_str().split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment == "meta" && segments.peek().is_some_and(|next| *next == "root" || next.starts_with("root.")) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<'a>(names: &[&'a str]) -> Vec<&'a str> {
        let mut names = names.to_vec();
        names.sort_by_key(|name| upload_phase(&Key::parse(name).unwrap()));
        names
    }

    #[test]
    fn chunks_precede_nodes_which_precede_their_groups() {
        for names in [
            ["g/a/c/0/0", "g/a/zarr.json", "g/zarr.json", "zarr.json"].as_slice(),
            &["a/0.0", "a/.zattrs", "a/.zarray", ".zattrs", ".zgroup", ".zmetadata"],
            &["data/root/a/c0", "meta/root/a.array.json", "meta/root.group.json", "zarr.json"],
            &["x/data/root/a/c0", "x/meta/root/a.array.other", "x/zarr.json"],
        ] {
            let mut reversed = names.to_vec();
            reversed.reverse();
            assert_eq!(sorted(&reversed), names);
        }
    }

    #[test]
    fn other_files_are_data() {
        for name in ["zarr.json/c/0", "meta/rooted", "meta", "README.md", "a/meta/0.0"] {
            assert_eq!(upload_phase(&Key::parse(name).unwrap()), UploadPhase::Data, "{name}");
        }
    }
}
