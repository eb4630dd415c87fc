//! In what order values are written, so that who reads meanwhile does not see an array before its chunks.

use std::cmp::Reverse;

use store::Key;

/// When a value is written: all of one turn are there before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Chunks, and whatever else is not a metadata document.
    Data,
    /// The metadata documents, the deepest first: a node is there before its group says so.
    Metadata {
        /// How many segments the key has.
        depth: Reverse<usize>,
        /// Which of the documents of one node.
        document: Document,
    },
}

/// The documents of a node, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Document {
    /// Attributes that stand apart.
    Attributes,
    /// What makes it a node.
    Node,
    /// What repeats the documents of others.
    Consolidated,
}

/// The turn of a key.
pub(super) fn turn(name: &Key) -> Turn {
    let document = match name.name() {
        ".zattrs" => Document::Attributes,
        "zarr.json" | ".zarray" | ".zgroup" => Document::Node,
        ".zmetadata" => Document::Consolidated,
        _ if is_draft_metadata(name) => Document::Node,
        _ => return Turn::Data,
    };
    Turn::Metadata { depth: Reverse(name.as_str().split('/').count()), document }
}

/// The 2020 draft keeps the documents of all nodes under `meta/root`, with a suffix that a hierarchy may choose.
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
        names.sort_by_key(|name| turn(&Key::parse(name).unwrap()));
        names
    }

    #[test]
    fn chunks_then_nodes_then_their_groups() {
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
            assert_eq!(turn(&Key::parse(name).unwrap()), Turn::Data, "{name}");
        }
    }
}
