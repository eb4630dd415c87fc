//! Chunks that are written in part: what is stored, with what came.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use store::{Key, Version};

use super::{
    WriteError,
    kept::{Kept, Waiting},
    layout::{Coverage, Part},
    purse::Purse,
    receive::Making,
    target::{Made, Target, Under, Work},
};

/// How many parts of one chunk are fetched at a time.
const FETCHED_ABREAST: usize = 4;

/// Chunks that were made of what is stored and of what came.
pub(super) struct Merged {
    pub(super) made: Vec<Made>,
    /// For what they take, where that is much.
    purse: Option<Purse>,
}

/// Makes all chunks of which parts were kept.
pub(super) async fn all(target: &Arc<Target>, kept: &Kept, purse: Option<Purse>) -> Result<Merged, WriteError> {
    some(target, kept, purse, |_| Ok(true)).await
}

/// Makes those chunks anew that others have written meanwhile; how many.
pub(super) async fn again(target: &Arc<Target>, kept: &Kept, merged: &mut Merged) -> Result<u64, WriteError> {
    let keys: Vec<Key> = merged.made.iter().flat_map(Made::keys).cloned().collect();
    if keys.is_empty() {
        return Ok(0);
    }
    let snapshot = target.shared.store.snapshot(&keys).await?;
    let mut stale = std::collections::HashSet::new();
    let mut current = Vec::with_capacity(merged.made.len());
    for chunk in std::mem::take(&mut merged.made) {
        let versions = chunk.keys().iter().map(|key| Ok(snapshot.head(key)?.map(|info| info.version)));
        let versions: Vec<Option<Version>> = versions.collect::<Result<_, store::StoreError>>()?;
        match chunk.is_of(&versions) {
            true => current.push(chunk),
            false => stale.extend(chunk.keys().first().cloned()),
        }
    }
    let renewed = some(target, kept, merged.purse.take(), |part| {
        let keys = target.keys(&part.position)?;
        Ok(keys.first().is_some_and(|key| stale.contains(key)))
    });
    let Merged { made, purse } = renewed.await?;
    current.extend(made);
    *merged = Merged { made: current, purse };
    Ok(stale.len() as u64)
}

async fn some(
    target: &Arc<Target>,
    kept: &Kept,
    purse: Option<Purse>,
    wanted: impl Fn(&Part) -> Result<bool, WriteError>,
) -> Result<Merged, WriteError> {
    // What is kept was small where it took no reservation, and then nothing is held yet.
    let account = purse.is_none().then(|| target.shared.account());
    let mut making = Making::new(target.clone(), account, purse);
    let mut finder = kept.finder();
    let window = if kept.is_empty() { None } else { Some(target.layout.whole()) };
    for part in window.iter().flat_map(|window| target.layout.parts(window)) {
        let waiting = finder.next(&part);
        if waiting.is_empty() || !wanted(&part)? {
            continue;
        }
        let share = making.reserve_chunk(&part.shape).await?;
        let target = target.clone();
        making.spawn(share, async move { one(&target, part, waiting).await }).await?;
    }
    let (made, purse) = making.finish().await?;
    Ok(Merged { made, purse })
}

async fn one(target: &Arc<Target>, part: Part, waiting: Vec<Waiting>) -> Result<Vec<Made>, WriteError> {
    let under = match part.coverage {
        Coverage::All => Under::Nothing,
        Coverage::Some => Under::Stored(target.read(&part).await?),
    };
    let patches = stream::iter(waiting).map(|waiting| waiting.fetch(target));
    let patches = patches.buffered(FETCHED_ABREAST).try_collect().await?;
    target.make(vec![Work { position: part.position, shape: part.shape, under, patches }]).await
}
