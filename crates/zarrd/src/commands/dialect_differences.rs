//! The nodes of a store whose documents of v2 and v3 differ.

use std::collections::HashSet;

use futures::TryStreamExt;
use zarrd_array::{Arrays, Depth, Options};
use zarrd_client::NodePath;
use zarrd_meta::relation::DialectRelation;
use zarrd_store::{Prefix, ServedStore, StoreError, list_all};

use crate::ui::Progress;

const V2: [&str; 2] = [".zarray", ".zgroup"];
const V3: &str = "zarr.json";

/// Reports every node whose documents of v2 and v3 do not describe the same. That is no damage: other programs change
/// one of them, and the next write through `/array` or `/node` adopts or refuses it.
pub(super) async fn report(store: ServedStore, progress: &Progress) -> Result<(), StoreError> {
    let nodes = with_both(&store).await?;
    let hierarchies = Arrays::new(store, Options::default()).hierarchies();
    for path in nodes {
        // A node with broken documents only is found by whoever reads it.
        let Ok(node) = hierarchies.node(&path, None, Depth::Levels(0), None).await else { continue };
        if let Some(relation) = node.relation.filter(|relation| *relation != DialectRelation::Same) {
            progress.message(&format!("the documents of v2 and v3 differ: {path}: {relation}"));
        }
    }
    Ok(())
}

/// The paths that have documents of both dialects.
async fn with_both(store: &ServedStore) -> Result<Vec<NodePath>, StoreError> {
    let (mut v2, mut both) = (HashSet::new(), Vec::new());
    let mut keys = std::pin::pin!(list_all(&**store.reads(), &Prefix::root()));
    while let Some(entry) = keys.try_next().await? {
        let key = entry.key.as_str();
        let (above, name) = key.rsplit_once('/').unwrap_or(("", key));
        // In the order of keys, the documents of v2 precede that of v3.
        if V2.contains(&name) {
            v2.insert(above.to_owned());
        } else if name == V3 && v2.remove(above) {
            both.extend(NodePath::parse(&format!("/{above}")).ok());
        }
    }
    Ok(both)
}
