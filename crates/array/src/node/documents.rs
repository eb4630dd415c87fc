//! The documents of a node, as they were read.

use std::iter::once;

use zarrd_meta::{Dialect, documents::write::StoredNode, json::Json};

use super::{broken::Broken, kind::NodeKind, read_set::NodeVersions};

/// The documents of v2 and v3 at a path, and the entry point of a draft hierarchy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Documents {
    pub(crate) v3: Option<PresentDocuments>,
    pub(crate) v2: Option<PresentDocuments>,
    /// The entry point of a draft hierarchy, whose other documents lie elsewhere.
    pub(crate) draft: Option<PresentDocuments>,
}

/// The documents of one node.
#[derive(Clone, Debug)]
pub(crate) struct PresentDocuments {
    pub(crate) kind: NodeKind,
    pub(crate) own: NodeVersions,
    pub(crate) stored: Result<StoredNode, Broken>,
}

impl Documents {
    /// The dialects that have documents here, the preferred one first.
    pub(crate) fn present(&self) -> impl Iterator<Item = (Dialect, &PresentDocuments)> {
        let all = [(Dialect::V3, &self.v3), (Dialect::V2, &self.v2), (Dialect::Draft, &self.draft)];
        all.into_iter().filter_map(|(dialect, present)| Some((dialect, present.as_ref()?)))
    }

    /// The size of all readable documents, in bytes.
    pub(crate) fn size(&self) -> usize {
        let stored = self.present().filter_map(|(_, present)| present.stored.as_ref().ok());
        let texts = stored.flat_map(|stored| once(&stored.document).chain(&stored.attributes));
        texts.map(Json::len).fold(0, usize::saturating_add)
    }
}
