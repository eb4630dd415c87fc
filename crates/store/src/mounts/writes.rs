//! Changes of several stores that are shown as one, each of which is of one of them.

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    Mounts,
    place::{Mount, Place},
};
use crate::{
    Batch, BatchStore, ByteRange, ByteStream, Change, ChangeOutcome, Intent, Key, KeyCount, Payload, Precondition,
    Prefix, PutResult, ReadableStore, RunId, Staged, StoreError, TransactionalStore, Version, WriteableStore,
    not_before, stage_copy_of_parts,
};

/// The error of a change that names a mount, or what a mount hides.
const READ_ONLY: StoreError = StoreError::Unsupported { what: "changes" };

/// The error of a change that covers the root and its mounts.
const ACROSS: StoreError = StoreError::Unsupported { what: "changes across mounted stores" };

impl Mounts {
    /// Fails if a change is not one of the store at the root alone.
    fn check_change(&self, change: &Change) -> Result<(), StoreError> {
        match self.place_of_change(change)? {
            None | Some(Place::Root) => Ok(()),
            Some(Place::Mounted(..) | Place::Hidden) => Err(READ_ONLY),
        }
    }

    /// The store that a change concerns; `None` if it names no key.
    fn place_of_change(&self, change: &Change) -> Result<Option<Place<'_, ()>>, StoreError> {
        Ok(match change {
            Change::ErasePrefix { prefix } | Change::CheckEmpty { prefix } => {
                Some(self.place_to_change(prefix)?.map(drop))
            }
            change => change.key().map(|key| self.place_of_key(key).map(drop)),
        })
    }

    /// The store that has a prefix. Fails if that is more than one.
    fn place_to_change(&self, prefix: &Prefix) -> Result<Place<'_, Prefix>, StoreError> {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() && !self.mounts.is_empty() => Err(ACROSS),
            place => Ok(place),
        }
    }

    /// The mounted store whose keys a batch changes; `None` if it changes none of a mount.
    fn changed_mount(&self, batch: &Batch) -> Result<Option<&Mount>, StoreError> {
        let (mut mounted, mut in_root) = (None::<&Mount>, false);
        for change in batch.documents.iter().chain(&batch.chunks) {
            let place = self.place_of_change(change)?;
            match place {
                Some(Place::Hidden) => return Err(READ_ONLY),
                Some(Place::Mounted(mount, ())) if mounted.is_some_and(|found| found.prefix != mount.prefix) => {
                    return Err(ACROSS);
                }
                Some(Place::Mounted(mount, ())) => mounted = Some(mount),
                Some(Place::Root) if !matches!(change, Change::Check { .. }) => in_root = true,
                None | Some(Place::Root) => {}
            }
        }
        match mounted {
            Some(_) if in_root => Err(ACROSS),
            mounted => Ok(mounted),
        }
    }

    /// Compares checks of the store at the root with what it has now.
    async fn check_root(&self, checks: &[Change]) -> Result<(), StoreError> {
        for check in checks {
            let (Some(key), Some(precondition)) = (check.key(), check.precondition()) else { continue };
            let found = not_before(Some(Instant::now()), self.root.reads().head(key)).await?;
            precondition.check(key, found.map(|meta| meta.version))?;
        }
        Ok(())
    }

    /// Makes a batch of a mount, with checks of the store at the root before it and after it.
    async fn apply_mounted(&self, mount: &Mount, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        let mut of_root = Vec::new();
        let mut places = Vec::new();
        let mut inner = Batch::default();
        for (changes, below) in [(batch.documents, &mut inner.documents), (batch.chunks, &mut inner.chunks)] {
            for change in changes {
                let is_below = !matches!(self.place_of_change(&change)?, Some(Place::Root));
                places.push(is_below);
                match is_below {
                    true => below.push(mount.inward(change)?),
                    false => of_root.push(change),
                }
            }
        }
        self.check_root(&of_root).await?;
        let count = inner.documents.iter().chain(&inner.chunks).count() as u64;
        let outcomes = mount.store.writes()?.apply(inner).await.map_err(|error| mount.error(error))?;
        let checked = self.check_root(&of_root).await;
        checked.map_err(|error| StoreError::PartlyApplied {
            applied: count,
            of: count,
            conflicts: Vec::new(),
            source: Box::new(error),
        })?;
        let mut outcomes = outcomes.into_iter();
        let outcome = |is_below: bool| if is_below { outcomes.next() } else { Some(ChangeOutcome::Checked) };
        Ok(places.into_iter().map_while(outcome).collect())
    }
}

#[async_trait]
impl WriteableStore for Mounts {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.writes()?.set(key, payload, precondition).await,
            Place::Hidden => Err(READ_ONLY),
            Place::Mounted(mount, below) => {
                let set = mount.store.writes()?.set(&below, payload, precondition).await;
                set.map_err(|error| mount.error(error))
            }
        }
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.writes()?.erase(key, precondition).await,
            Place::Hidden => Err(READ_ONLY),
            Place::Mounted(mount, below) => {
                mount.store.writes()?.erase(&below, precondition).await.map_err(|error| mount.error(error))
            }
        }
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        match self.place_to_change(prefix)? {
            Place::Root => self.root.writes()?.erase_prefix(prefix).await,
            Place::Hidden => Err(READ_ONLY),
            Place::Mounted(mount, below) => {
                mount.store.writes()?.erase_prefix(&below).await.map_err(|error| mount.error(error))
            }
        }
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        match self.root.writes() {
            Ok(root) => root.check_writable().await,
            Err(error) => {
                let mut writable = self.mounts.iter().filter_map(|mount| Some((mount, mount.store.writes().ok()?)));
                let Some((mount, first)) = writable.next() else { return Err(error) };
                first.check_writable().await.map_err(|error| mount.error(error))
            }
        }
    }
}

#[async_trait]
impl BatchStore for Mounts {
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.writes()?.stage(key, payload).await,
            Place::Hidden => Err(READ_ONLY),
            Place::Mounted(mount, below) => {
                let staged = mount.store.writes()?.stage(&below, payload).await.map_err(|error| mount.error(error))?;
                Ok(staged.with_key(key.clone()))
            }
        }
    }

    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        let is_in_root = |key: &Key| matches!(self.place_of_key(key), Place::Root);
        match is_in_root(key) && parts.iter().all(|(part, _)| is_in_root(part)) {
            true => self.root.writes()?.stage_joined(key, parts).await,
            false => stage_copy_of_parts(self, key, parts).await,
        }
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        match self.place_of_key(staged.key()) {
            Place::Root => self.root.writes()?.read_staged(staged, range).await,
            Place::Hidden => Err(READ_ONLY),
            Place::Mounted(mount, below) => {
                let staged = staged.clone().with_key(below);
                mount.store.writes()?.read_staged(&staged, range).await.map_err(|error| mount.error(error))
            }
        }
    }

    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        match self.changed_mount(&batch)? {
            Some(mount) => self.apply_mounted(mount, batch).await,
            None => self.root.writes()?.apply(batch).await,
        }
    }
}

#[async_trait]
impl TransactionalStore for Mounts {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        changes.iter().try_for_each(|change| self.check_change(change))?;
        self.root.commits()?.commit(changes).await
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.root.commits()?.intents().await
    }

    fn run(&self) -> Result<RunId, StoreError> {
        self.root.commits()?.run()
    }

    fn is_running(&self, run: RunId) -> bool {
        self.root.commits().is_ok_and(|root| root.is_running(run))
    }
}

impl Mount {
    /// A change of the mounted store, by its own keys.
    fn inward(&self, change: Change) -> Result<Change, StoreError> {
        let key = |key: &Key| {
            let below = self.prefix.strip(key).and_then(|below| Key::parse(below).ok());
            below.ok_or(READ_ONLY)
        };
        let prefix = |prefix: &Prefix| {
            let below = prefix.as_str().strip_prefix(self.prefix.as_str());
            below.and_then(|below| Prefix::parse(below).ok()).ok_or(READ_ONLY)
        };
        Ok(match change {
            Change::Set { staged, precondition } => {
                let below = key(staged.key())?;
                Change::Set { staged: staged.with_key(below), precondition }
            }
            Change::Put { key: at, value, precondition } => Change::Put { key: key(&at)?, value, precondition },
            Change::Erase { key: at, precondition } => Change::Erase { key: key(&at)?, precondition },
            Change::Check { key: at, precondition } => Change::Check { key: key(&at)?, precondition },
            Change::ErasePrefix { prefix: at } => Change::ErasePrefix { prefix: prefix(&at)? },
            Change::CheckEmpty { prefix: at } => Change::CheckEmpty { prefix: prefix(&at)? },
            change => change,
        })
    }
}
