//! The clock of a store, by which the ages of what it holds are compared.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use zarrd_meta::{ArrayModel, Dialect, NodePath};
use zarrd_store::{
    BackendErrorKind, Conditions, Key, Precondition, Prefix, RunId, StoreError, WriteableStore, not_before,
};

use crate::{context::Context, error::ArrayError, node::resolved::ResolvedArray};

/// The age from which a claim was left, and a chunk outside of an array is of an append that was cut.
pub(crate) const SETTLED: Duration = Duration::from_secs(15 * 60);

/// The name below an array of the key that is written to read the time.
const CLOCK: &str = ".zarrd/clock";

/// The attempts to read what was just written, which another server may have erased.
const ATTEMPTS: usize = 8;

/// The clock of the store that has a key. It is read once, and only if it is needed.
pub(crate) struct StoreClock<'c> {
    context: &'c Context,
    /// The key that is written to read the time.
    key: Key,
    /// The time that was read, and when.
    cached: Option<(SystemTime, Instant)>,
}

impl<'c> StoreClock<'c> {
    /// The clock of the store that has an array.
    pub(crate) fn of_array(context: &'c Context, resolved: &ResolvedArray) -> Result<Self, ArrayError> {
        Ok(Self { context, key: key_below(resolved, CLOCK)?, cached: None })
    }

    /// The clock of the store that has a document.
    pub(crate) fn of_document(context: &'c Context, document: &Key) -> Result<Self, StoreError> {
        let key = document.parent().join(CLOCK);
        let key = key.map_err(|error| StoreError::backend(BackendErrorKind::Internal, error))?;
        Ok(Self { context, key, cached: None })
    }

    /// The age of something that was modified at a time of this clock.
    pub(crate) async fn age(&mut self, modified: SystemTime) -> Result<Duration, StoreError> {
        let (then, at) = match self.cached {
            Some(cached) => cached,
            None => {
                let at = Instant::now();
                *self.cached.insert((self.request().await?, at))
            }
        };
        let now = then.checked_add(at.elapsed()).unwrap_or(then);
        Ok(now.duration_since(modified).unwrap_or_default())
    }

    /// The time that the store gives to what is written now.
    async fn request(&self) -> Result<SystemTime, StoreError> {
        // The files of a folder have times of this process, which alone writes it.
        if self.conditions() == Conditions::ThisProcess {
            return Ok(SystemTime::now());
        }
        let store = self.context.writes()?;
        for _ in 0..ATTEMPTS {
            let content = RunId::random().to_string().into_bytes();
            store.set(&self.key, content.into(), Precondition::none()).await?;
            let found = not_before(Some(Instant::now()), self.context.store.head(&self.key)).await?;
            if let Some(found) = found {
                if let Err(error) = store.erase(&self.key, Precondition::none()).await {
                    tracing::debug!(key = %self.key, %error, "what was written to read the time is left");
                }
                return Ok(found.modified);
            }
        }
        Err(StoreError::backend(BackendErrorKind::Internal, "what was written to read the time is not found"))
    }

    /// The conditions of the store.
    fn conditions(&self) -> Conditions {
        self.context.store.guarantees_below(&self.key.parent()).conditions
    }
}

/// A key of this server below an array.
pub(crate) fn key_below(resolved: &ResolvedArray, name: &str) -> Result<Key, ArrayError> {
    let (model, path) = (resolved.array.model(), resolved.array.path());
    let root = resolved.hierarchy.as_ref().map(|hierarchy| &hierarchy.prefix);
    key_of(model, path, root, name)
}

/// A key of this server below an array of this model, in a hierarchy of the draft with this prefix.
pub(super) fn key_of(
    model: &ArrayModel,
    path: &NodePath,
    root: Option<&Prefix>,
    name: &str,
) -> Result<Key, ArrayError> {
    let text = match (model.dialect, root) {
        (Dialect::Draft, Some(root)) => format!("{}{}{name}", root.as_str(), model.chunk_prefix),
        _ => format!("{}{name}", path.key_prefix()),
    };
    Key::parse(&text).map_err(|_| ArrayError::ChunkKey { path: path.clone() })
}
