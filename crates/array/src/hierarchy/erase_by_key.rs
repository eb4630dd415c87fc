//! Erasing nodes of a store that is written key by key: the node's documents first, so that it is gone, then the documents
//! below it, and then everything else. An erase that was cut is completed by repeating it.

use futures::TryStreamExt;
use zarrd_meta::{Dialect, NodePath};
use zarrd_operations::{Depth, NodeRejection};
use zarrd_store::{
    Batch, Change, Key, KeyCount, Precondition, Prefix, StoreError, Version, count_keys, list_all, until_unchanged,
};

use super::{
    stray_keys::first_key,
    walk::{
        mode::{Top, WalkOptions},
        walker::{versions_at, walk},
    },
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        change_set::ChangeSet,
        consolidated::update_consolidated_metadata,
        copy_update::NodeChange,
        error::NodeError,
        keyed_commit,
        keys::{self, NAMES},
    },
};

/// The number of documents that are erased in one batch.
const BATCH: usize = 1024;

/// One attempt to erase a node with everything below it; `None` if it changed meanwhile, and nothing was erased.
pub(crate) async fn attempt(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
    condition: &Precondition,
) -> Result<Option<KeyCount>, NodeError> {
    let around = until_unchanged(|| versions_at(context, path)).await?;
    let options = WalkOptions { top: Top::Any, ..WalkOptions::new(Depth::Levels(0)) };
    let (version, prefixes) = match until_unchanged(|| walk(context, path, dialect, options)).await {
        Ok(walk) if walk.top.dialect == Dialect::Draft => {
            let what = "erasing a node of the draft, whose keys are below several prefixes: it is written key by key";
            return Err(StoreError::Unsupported { what }.into());
        }
        Ok(walk) => {
            let version = (!walk.top.is_implicit()).then(|| walk.top.own.version());
            (version, keys::subtree_keys(path, walk.top.dialect, None)?.prefixes)
        }
        // What an erase left that was cut.
        Err(NodeError::Array(error @ ArrayError::NoSuchNode { .. })) => {
            let prefixes = keys::subtree_keys(path, Dialect::V3, None)?.prefixes;
            if first_key(context, &prefixes).await?.is_none() {
                return Err(error.into());
            }
            (None, prefixes)
        }
        Err(error) => return Err(error),
    };
    if !condition.is_met_by(version) {
        return Err(NodeError::Rejected(NodeRejection::PreconditionFailed { path: path.clone(), current: version }));
    }
    let mut change_set = ChangeSet::default();
    prefixes.iter().for_each(|prefix| change_set.erase_prefix(prefix.clone()));
    let gone = |dialect| NodeChange { path: path.clone(), dialect, node: None };
    update_consolidated_metadata(context, &mut change_set, path, &[], &vec![gone(Dialect::V2), gone(Dialect::V3)])
        .await?;
    let Some(documents) = erase_documents(context, &around, path).await? else { return Ok(None) };
    let mut erased = KeyCount::exact(documents);
    for prefix in &prefixes {
        match erase_below(context, path, prefix).await {
            Ok(count) => erased = erased.combine(count),
            Err(source) => {
                let left = count_keys(&*context.store, prefix).await.ok().map(|left| left.count);
                return Err(NodeError::PartlyErased { path: path.clone(), left, source });
            }
        }
    }
    keyed_commit::follow(context, change_set.consolidated().as_ref()).await;
    Ok(Some(erased))
}

/// Erases the documents of the node itself: `.zattrs` last. Returns their number, or `None` if one has changed.
async fn erase_documents(
    context: &Context,
    around: &[(Key, Option<Version>)],
    path: &NodePath,
) -> Result<Option<u64>, NodeError> {
    let is_conditional = context.guarantees_at(path).conditional_erase;
    let erase = |(key, version): &(Key, Option<Version>)| {
        let precondition = Precondition::at((*version)?);
        let precondition = if is_conditional { precondition } else { Precondition::none() };
        Some(Change::Erase { key: key.clone(), precondition })
    };
    let documents: Vec<Change> = around.iter().filter_map(erase).collect();
    let count = documents.len() as u64;
    match context.writes()?.apply(Batch::of_documents(documents)).await {
        Ok(_) => Ok(Some(count)),
        Err(StoreError::PreconditionFailed { .. }) => Ok(None),
        Err(StoreError::PartlyApplied { source, .. }) => {
            Err(NodeError::PartlyErased { path: path.clone(), left: None, source: *source })
        }
        Err(error) => Err(error.into()),
    }
}

/// Erases all keys below a prefix, documents first.
async fn erase_below(context: &Context, path: &NodePath, prefix: &Prefix) -> Result<KeyCount, StoreError> {
    let store = context.writes()?;
    let mut erased = 0_u64;
    let mut documents = Vec::new();
    let mut entries = std::pin::pin!(list_all(&*context.store, prefix));
    loop {
        let entry = entries.try_next().await?;
        let is_end = entry.is_none();
        if let Some(entry) = entry.filter(|entry| NAMES.contains(&entry.key.name())) {
            documents.push(Change::Erase { key: entry.key, precondition: Precondition::none() });
        }
        if documents.len() >= BATCH || (is_end && !documents.is_empty()) {
            erased = erased.saturating_add(documents.len() as u64);
            let batch = Batch { chunks: std::mem::take(&mut documents), documents: Vec::new() };
            store.apply(batch).await.map_err(|error| match error {
                StoreError::PartlyApplied { source, .. } => *source,
                error => error,
            })?;
        }
        if is_end {
            break;
        }
    }
    tracing::debug!(%path, erased, "documents erased");
    let rest = store.erase_prefix(prefix).await?;
    Ok(rest.combine(KeyCount::exact(erased)))
}
