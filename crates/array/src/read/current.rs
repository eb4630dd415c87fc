//! Plans of what is current.

use std::{sync::Arc, time::Instant};

use futures::future::join;
use tracing::{Instrument, trace_span};
use zarrd_executor::{Cost, STEPS, Work, leave_crowd};
use zarrd_meta::{Dialect, NodePath, relation::DialectRelation, selection::ReadRequest};
use zarrd_store::{MAX_READ_TIME, ReadError, Snapshot};

use super::{array_read::ArrayRead, consumer::Consumer, context::ReadContext, plan::ReadPlan};
use crate::{
    context::Context,
    error::ArrayError,
    node::{array::Array, resolved::ResolvedArray},
    retry::MAX_ATTEMPTS,
};

/// Plans a read, until nothing changes while it is planned.
pub(crate) async fn plan_read(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Option<Dialect>),
    request: &ReadRequest,
    consumer: &dyn Consumer,
) -> Result<ArrayRead, ArrayError> {
    let begun = Instant::now();
    let step = trace_span!(target: STEPS, "resolve");
    let mut cached = step.in_scope(|| context.cached_array(path, dialect));
    let mut changed = None;
    for attempt in 0..MAX_ATTEMPTS {
        // Other programs may change documents for ever.
        if attempt > 0 && context.is_distant_at(path) && begun.elapsed() >= MAX_READ_TIME {
            break;
        }
        let resolved = match cached.take() {
            Some(resolved) => Ok(resolved),
            None => context.resolve_array(path, dialect).instrument(step.clone()).await,
        };
        let planned = match resolved {
            Ok(resolved) => {
                let step = trace_span!(target: STEPS, "plan");
                plan_on(context, (&resolved, dialect), request, consumer).instrument(step).await
            }
            Err(error) => Err(error),
        };
        match planned {
            Ok(Some(read)) => return Ok(read),
            Ok(None) => {}
            Err(error) if error.is_changed() => changed = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(changed.unwrap_or_else(|| ArrayError::TooManyConflicts { path: path.clone() }))
}

/// Plans a read of a resolved array; `None` if its documents are not current any more when the versions of the chunks
/// are looked up.
async fn plan_on(
    context: &Arc<Context>,
    (resolved, dialect): (&ResolvedArray, Option<Dialect>),
    request: &ReadRequest,
    consumer: &dyn Consumer,
) -> Result<Option<ArrayRead>, ArrayError> {
    let array = &resolved.array;
    // The cached array may be stale, so a selection that does not fit its shape may fit the current one.
    let prepared = ReadPlan::new(context, array, request, consumer).await;
    if let Ok(plan) = &prepared {
        leave_crowd(Cost::of(Work::RequestChunks, plan.listed_chunks())).await;
    }
    let documents = resolved.read_set.keys().cloned().collect();
    let snapshot = ReadPlan::snapshot(context, documents, prepared.as_ref().ok()).await?;
    prepared.as_ref().map_or(Ok(()), |plan| plan.load_cached(&*snapshot))?;
    let fetched = async {
        match &prepared {
            Ok(plan) => plan.fetch_few_versions(context, &*snapshot).await,
            Err(_) => Ok(()),
        }
    };
    let (is_current, fetched) = join(resolved.read_set.is_current(&*snapshot), fetched).await;
    if !is_current? {
        return Ok(None);
    }
    if dialect.is_none()
        && let Some(differ) = resolved.ambiguous_layout()
    {
        return Err(differ.into());
    }
    fetched?;
    read_of_snapshot(context, array, prepared?, snapshot, resolved.relation()).await.map(Some)
}

/// The planned read of an array whose chunks are in a snapshot.
pub(crate) async fn read_of_snapshot(
    context: &Arc<Context>,
    array: &Array,
    mut prepared: ReadPlan,
    snapshot: Box<dyn Snapshot>,
    relation: Option<DialectRelation>,
) -> Result<ArrayRead, ArrayError> {
    let (snapshot, found) = prepared.stored_chunks(context, snapshot).await?;
    let shape = prepared.resolved.shape();
    let work = prepared.work_budget(&context.options, array, &found)?;
    let (fingerprint, cost) = (found.fingerprint, found.cost());
    let source = ReadContext::new(array.clone(), snapshot, context.clone(), &prepared, (&found, work))?;
    Ok(ArrayRead { source: Arc::new(source), prepared, shape, fingerprint, cost, relation, parts: None })
}
