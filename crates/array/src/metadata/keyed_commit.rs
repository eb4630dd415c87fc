//! Changes of stores that are written key by key: the node's own documents are the point at which a change is made, and
//! consolidated metadata follow.

use std::{cmp::Reverse, sync::Arc};

use bytes::Bytes;
use futures::TryStreamExt;
use tokio::time::Instant;
use zarrd_store::{
    BackendErrorKind, Batch, Change, ChangeOutcome, Key, Precondition, PutResult, StoreError, Version, not_before,
};

use super::{
    change_set::ChangeSet,
    consolidated::{CopyState, bring_up_to_date},
    copy_update::ConsolidatedUpdate,
    error::NodeError,
};
use crate::{
    context::Context,
    growth::clock::{SETTLED, StoreClock},
};

/// The document of the attributes of a node of v2.
const ATTRIBUTES: &str = ".zattrs";

/// The number of attempts to bring consolidated metadata up to date.
const COPY_ATTEMPTS: usize = 3;

/// The error of a change that would be made in part if it failed in the middle.
const SEVERAL_DOCUMENTS: StoreError = StoreError::Unsupported {
    what: "a change of several documents at once: it is written key by key. `?piecewise` makes them one after the other",
};

/// The documents that a change may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Documents {
    /// One: so it is made as a whole, or not at all.
    One,
    /// Several, one after the other: attributes of v2 first, and then these in their order. One that fails in the middle is
    /// completed by repeating it.
    Pieces(Vec<Key>),
    /// The documents of a new tree, which is there once the last of them is.
    Tree,
}

/// Makes a batch of changes, and brings consolidated metadata up to date afterwards. The outcomes are of the
/// documents first, and then of the chunks that were changed.
pub(crate) async fn apply(
    context: &Context,
    batch: Batch,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let Batch { mut chunks, documents } = batch;
    if documents.iter().filter(|change| !change.is_check()).count() > 1 {
        return Err(SEVERAL_DOCUMENTS);
    }
    chunks.retain(|change| !erases_nothing(change));
    let outcomes = context.writes()?.apply(Batch { chunks, documents }).await?;
    follow(context, update).await;
    Ok(outcomes)
}

/// Makes the changes of documents of a change set: `None` if a condition did not hold, and nothing was changed. The
/// outcomes are in the order of the changes.
pub(crate) async fn apply_documents(
    context: &Context,
    change_set: ChangeSet,
    documents: Documents,
) -> Result<Option<Vec<ChangeOutcome>>, NodeError> {
    let update = change_set.consolidated();
    let mut changes = change_set.stage(&**context.writes()?).await?;
    let applied = match documents {
        Documents::One => apply(context, Batch::of_documents(changes), update.as_ref()).await,
        Documents::Pieces(order) => {
            changes.sort_by_key(|change| piece(&order, change));
            apply_pieces(context, Batch::of_documents(changes), update.as_ref()).await
        }
        Documents::Tree => apply_tree(context, Batch::of_documents(changes), update.as_ref()).await,
    };
    match applied {
        Ok(outcomes) => Ok(Some(outcomes)),
        Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails if a change set has the changes of several documents that are not made one after the other, before anything is
/// changed.
pub(crate) fn check_documents(change_set: &ChangeSet, documents: &Documents) -> Result<(), StoreError> {
    match (change_set.changed_keys(), documents) {
        (0 | 1, _) | (_, Documents::Pieces(_)) => Ok(()),
        _ => Err(SEVERAL_DOCUMENTS),
    }
}

/// Makes the changes of documents one after the other.
async fn apply_pieces(
    context: &Context,
    batch: Batch,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let outcomes = context.writes()?.apply(batch).await?;
    follow(context, update).await;
    Ok(outcomes)
}

/// The place of a document among those that are changed one after the other.
fn piece(order: &[Key], change: &Change) -> (bool, usize) {
    let Some(key) = change.key() else { return (true, order.len()) };
    (key.name() != ATTRIBUTES, order.iter().position(|other| other == key).unwrap_or(order.len()))
}

/// Makes a tree, and elements before it: its deepest nodes first, and of each node the attributes of v2 before the document
/// that makes it one.
pub(crate) async fn apply_tree(
    context: &Context,
    Batch { chunks, documents }: Batch,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let mut numbered: Vec<(usize, Change)> = documents.into_iter().enumerate().collect();
    numbered.sort_by_key(|(_, change)| {
        let key = change.key().map_or("", |key| key.as_str());
        (Reverse(key.matches('/').count()), !key.ends_with(ATTRIBUTES))
    });
    let (numbers, mut documents): (Vec<usize>, Vec<Change>) = numbered.into_iter().unzip();
    let store = context.writes()?;
    let outcomes = match store.apply(Batch { chunks: chunks.clone(), documents: documents.clone() }).await {
        Err(StoreError::PreconditionFailed { key, current }) => {
            let leftovers = adopt(context, &mut documents).await?;
            if leftovers.iter().all(|leftover| matches!(leftover, Leftover::None)) {
                return Err(StoreError::PreconditionFailed { key, current });
            }
            let mut outcomes = store.apply(Batch { chunks, documents }).await?;
            for (outcome, leftover) in outcomes.iter_mut().zip(leftovers) {
                if let Leftover::Same(version) = leftover {
                    *outcome = ChangeOutcome::Set(PutResult { version, replaced: false });
                }
            }
            outcomes
        }
        applied => applied?,
    };
    follow(context, update).await;
    let mut numbered: Vec<(usize, ChangeOutcome)> = numbers.into_iter().zip(outcomes).collect();
    numbered.sort_by_key(|(number, _)| *number);
    Ok(numbered.into_iter().map(|(_, outcome)| outcome).collect())
}

/// The state that a declaration finds at the key of a document that it sets.
enum Leftover {
    /// Nothing that it may use: no document, or another one.
    None,
    /// The document as it would be set.
    Same(Version),
    /// Attributes of v2 whose document was never made, so that the declaration replaces them.
    Replaced,
}

/// Turns the changes of documents that a declaration left that was cut: those that exist as they would be set become
/// checks, and attributes of v2 without their document are replaced once they are old by the clock of the store.
async fn adopt(context: &Context, documents: &mut [Change]) -> Result<Vec<Leftover>, StoreError> {
    let mut leftovers = Vec::with_capacity(documents.len());
    for change in documents {
        let leftover = match (change.key().cloned(), intended(context, change).await?) {
            (Some(key), Some(intended)) => adopt_document(context, change, &key, intended).await?,
            _ => Leftover::None,
        };
        leftovers.push(leftover);
    }
    Ok(leftovers)
}

async fn adopt_document(
    context: &Context,
    change: &mut Change,
    key: &Key,
    intended: Bytes,
) -> Result<Leftover, StoreError> {
    let now = Some(Instant::now());
    let Some(stored) = not_before(now, context.store.get(key, None)).await? else { return Ok(Leftover::None) };
    let (version, modified) = (stored.meta.version, stored.meta.modified);
    if stored.meta.size == intended.len() as u64 && stored.bytes().await? == intended {
        *change = Change::Check { key: key.clone(), precondition: Precondition::at(version) };
        return Ok(Leftover::Same(version));
    }
    if key.name() != ATTRIBUTES {
        return Ok(Leftover::None);
    }
    for name in [".zarray", ".zgroup"] {
        let document = key.parent().join(name);
        let document = document.map_err(|error| StoreError::backend(BackendErrorKind::Internal, error))?;
        if not_before(now, context.store.head(&document)).await?.is_some() {
            return Ok(Leftover::None);
        }
    }
    if StoreClock::of_document(context, key)?.age(modified).await? < SETTLED {
        return Ok(Leftover::None);
    }
    *change = Change::Put { key: key.clone(), value: intended, precondition: Precondition::at(version) };
    Ok(Leftover::Replaced)
}

/// The content that a document has after a change, if the change makes it.
async fn intended(context: &Context, change: &Change) -> Result<Option<Bytes>, StoreError> {
    if change.precondition().is_none_or(|condition| *condition != Precondition::absent()) {
        return Ok(None);
    }
    Ok(match change {
        Change::Put { value, .. } => Some(value.clone()),
        Change::Set { staged, .. } => {
            let pieces = context.writes()?.read_staged(staged, None).await?;
            let pieces: Vec<Bytes> = pieces.try_collect().await?;
            Some(pieces.concat().into())
        }
        // A node without attributes. They are not erased, since erases may have no conditions.
        Change::Check { key, .. } if key.name() == ATTRIBUTES => Some(Bytes::from_static(b"{}")),
        _ => None,
    })
}

/// Brings consolidated metadata up to date. Where that fails they are unchanged, and the answer says so.
pub(crate) async fn follow(context: &Context, update: Option<&Arc<ConsolidatedUpdate>>) {
    let Some(update) = update else { return };
    context.removed_copies.extend(&update.removed);
    for copy in &update.copies {
        let mut state = CopyState::Stale;
        for _ in 0..COPY_ATTEMPTS {
            match bring_up_to_date(context, copy, update).await {
                Ok(CopyState::Stale) => {}
                Ok(found) => {
                    state = found;
                    break;
                }
                Err(error) => tracing::debug!(key = %copy.key, %error, "consolidated metadata could not be written"),
            }
        }
        match state {
            CopyState::Current => {}
            CopyState::Removed => context.removed_copies.extend(std::slice::from_ref(&copy.key)),
            CopyState::Stale => context.removed_copies.add_stale(&copy.key),
        }
    }
}

/// True for the erase of a chunk that was not there when it was read. If it is by now, another write came after.
fn erases_nothing(change: &Change) -> bool {
    matches!(change, Change::Erase { precondition, .. } if *precondition == Precondition::absent())
}
