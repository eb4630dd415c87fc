//! The nodes of a store whose documents of v2 and v3 differ.

use std::collections::HashSet;

use futures::TryStreamExt;
use zarrd_array::{Arrays, Depth, Options};
use zarrd_client::NodePath;
use zarrd_meta::relation::DialectRelation;
use zarrd_store::{Key, Prefix, ServedStore, SnapshotStore, StoreError, list_all};

use crate::ui::Progress;

const V2: [&str; 2] = [".zarray", ".zgroup"];
const V3: &str = "zarr.json";

/// The nodes that have documents of both dialects, found among the keys of a listing.
#[derive(Default)]
pub(super) struct NodesOfBoth {
    v2: HashSet<String>,
    both: Vec<NodePath>,
}

impl NodesOfBoth {
    /// Takes the next key of a listing.
    pub(super) fn take(&mut self, key: &Key) {
        let key = key.as_str();
        let (above, name) = key.rsplit_once('/').unwrap_or(("", key));
        // In the order of keys, the documents of v2 precede that of v3.
        if V2.contains(&name) {
            self.v2.insert(above.to_owned());
        } else if name == V3 && self.v2.remove(above) {
            self.both.extend(NodePath::parse(&format!("/{above}")).ok());
        }
    }

    /// Those of a store that has not been listed yet.
    pub(super) async fn of(store: &dyn SnapshotStore) -> Result<Self, StoreError> {
        let mut nodes = Self::default();
        let mut keys = std::pin::pin!(list_all(store, &Prefix::root()));
        while let Some(entry) = keys.try_next().await? {
            nodes.take(&entry.key);
        }
        Ok(nodes)
    }
}

/// Reports every one of these nodes whose documents of v2 and v3 do not describe the same. That is no damage: other
/// programs change one of them, and the next write through `/array` or `/node` adopts or refuses it.
pub(super) async fn report(nodes: NodesOfBoth, store: ServedStore, progress: &Progress) {
    let hierarchies = Arrays::new(store, Options::default()).hierarchies();
    for path in nodes.both {
        // A node with broken documents only is found by whoever reads it.
        let Ok(node) = hierarchies.node(&path, None, Depth::Levels(0), None).await else { continue };
        if let Some(relation) = node.relation.filter(|relation| *relation != DialectRelation::Same) {
            progress.message(&format!("the documents of v2 and v3 differ: {path}: {relation}"));
        }
    }
}
