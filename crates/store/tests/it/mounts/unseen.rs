//! A store with a mount that the suite of all stores does not see.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use zarrd_store::{
    Change, ChangeOutcome, DirPage, Guarantees, KeyCount, KeyPage, ListableStore, MemoryStore, Mounts, PageRequest,
    Prefix, Scan, ScanPage, SnapshotStore, StoreError, StoreWrapper, TransactionalStore, WriteableStore,
};
use zarrd_store_testkit::Factory;

use super::{foreign, name, prefix, put};

/// A store with a mount before all keys of the suite, which does not see it.
#[derive(Clone)]
pub(super) struct WithUnseen {
    root: MemoryStore,
    all: Arc<Mounts>,
}

/// The name of the mount, and its prefix.
const UNSEEN: (&str, &str) = ("!unseen", "!unseen/");

#[async_trait]
impl StoreWrapper for WithUnseen {
    type Inner = Mounts;

    fn inner(&self) -> &Mounts {
        &self.all
    }

    fn guarantees(&self) -> Guarantees {
        self.all.guarantees_below(&prefix("any/"))
    }

    async fn list_prefix(&self, below: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let mut found = ListableStore::list_prefix(&*self.all, below, page).await?;
        let limit = found.keys.len();
        found.keys.retain(|entry| !entry.key.as_str().starts_with(UNSEEN.1));
        while found.keys.len() < limit
            && let Some(cursor) = found.cursor.take()
        {
            let rest = PageRequest::after(limit - found.keys.len(), cursor);
            let mut more = ListableStore::list_prefix(&*self.all, below, rest).await?;
            more.keys.retain(|entry| !entry.key.as_str().starts_with(UNSEEN.1));
            found.keys.extend(more.keys);
            found.cursor = more.cursor;
        }
        Ok(found)
    }

    async fn list_dir(&self, below: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let mut found = ListableStore::list_dir(&*self.all, below, page).await?;
        let before = found.prefixes.len();
        found.prefixes.retain(|prefix| prefix.as_str() != UNSEEN.1);
        if found.prefixes.len() < before
            && let Some(cursor) = found.cursor.take()
        {
            let more = ListableStore::list_dir(&*self.all, below, PageRequest::after(1, cursor)).await?;
            found.keys.extend(more.keys);
            found.prefixes.extend(more.prefixes);
            found.cursor = more.cursor;
        }
        Ok(found)
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        let (mut found, mut rest) = (ScanPage::default(), scan.clone());
        loop {
            let page = ListableStore::scan(&*self.all, &rest).await?;
            if let Some(last) = page.entries.last() {
                last.as_str().clone_into(&mut rest.after);
            }
            found.entries.extend(page.entries.into_iter().filter(|entry| !entry.as_str().starts_with(UNSEEN.1)));
            found.more = page.more || found.entries.len() > scan.limit();
            if !page.more || found.entries.len() >= scan.limit() {
                found.entries.truncate(scan.limit());
                return Ok(found);
            }
        }
    }

    /// An erase that covers the mount is done at the root alone.
    async fn erase_prefix(&self, below: &Prefix) -> Result<KeyCount, StoreError> {
        match below.is_root() {
            true => WriteableStore::erase_prefix(&self.root, below).await,
            false => WriteableStore::erase_prefix(&*self.all, below).await,
        }
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        let covers = |change: &Change| matches!(change, Change::ErasePrefix { prefix } | Change::CheckEmpty { prefix } if prefix.is_root());
        match changes.iter().any(covers) {
            true => TransactionalStore::commit(&self.root, changes).await,
            false => TransactionalStore::commit(&*self.all, changes).await,
        }
    }
}

pub(super) struct WithMount;

impl Factory for WithMount {
    type Store = WithUnseen;
    type Fixture = ();

    async fn create(&self) -> (WithUnseen, ()) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let identity = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
        let [root, mounted] = [(); 2].map(|()| MemoryStore::new());
        put(&mounted, &["k", "d/k", "zarr.json"]).await;
        let all = Mounts::new(
            &identity,
            Arc::new(root.clone()).into(),
            BTreeMap::from([(name(UNSEEN.0), foreign(&mounted))]),
        );
        (WithUnseen { root, all: Arc::new(all) }, ())
    }
}
