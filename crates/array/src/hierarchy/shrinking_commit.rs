//! Commits that make arrays smaller.

use std::sync::Arc;

use zarrd_store::{IntentError, StoreError};

use super::{create::excluded, intents::Unfinished, shrink::finish};
use crate::{
    context::Context,
    metadata::{
        change_set::ChangeSet,
        error::NodeError,
        intent_record::{ShrinkIntent, Unsettled},
    },
};

/// Commits changes of documents that make arrays smaller, with an intent for each of these, and erases the chunks
/// outside; `false` if a document changed meanwhile.
pub(crate) async fn commit_shrinks(
    context: &Arc<Context>,
    change_set: ChangeSet,
    shrinks: Vec<ShrinkIntent>,
) -> Result<bool, NodeError> {
    let mut begun = Vec::with_capacity(shrinks.len());
    let mut intents = Vec::with_capacity(shrinks.len());
    for shrink in shrinks {
        let (unfinished, intend) = Unfinished::begin(context, Unsettled::Shrink(shrink.clone()))?;
        intents.push(intend);
        begun.push((unfinished, shrink));
    }
    let exclusion = change_set.exclusions().first().cloned();
    let mut all = change_set.stage(&**context.writes()?).await?;
    all.extend(intents);
    match context.commits()?.commit(all).await {
        Ok(_) => {}
        Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => {
            begun.into_iter().for_each(|(unfinished, _)| unfinished.settled());
            return Ok(false);
        }
        Err(StoreError::Intent(IntentError::Excludes { id })) => {
            begun.into_iter().for_each(|(unfinished, _)| unfinished.settled());
            return excluded(context, exclusion, id).await.map(|()| false);
        }
        Err(error) => return Err(error.into()),
    }
    for (unfinished, shrink) in begun {
        finish(context, unfinished.id(), &shrink).await?;
        unfinished.settled();
    }
    Ok(true)
}
