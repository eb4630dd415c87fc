//! State shared by all requests.

use std::{fmt, sync::Arc};

use tokio::sync::SemaphorePermit;
use zarrd_access::Principal;
use zarrd_array::{Arrays, MemoryBudget};
use zarrd_store::{BatchStore, Prefix, ServedStore, SnapshotStore, StoreError, TransactionalStore};

use crate::{
    authorization::AnonymousPrincipals, listing_permits::ListingPermits, metrics::Metrics, request_id::RequestIds,
    request_log::RequestLogs, settings::Settings, snapshots::Snapshots, store_totals::StoreTotals,
};

/// A store, its engine and the settings by which it is served. Clones share one state.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: ServedStore,
    arrays: Arrays,
    settings: Settings,
    anonymous: AnonymousPrincipals,
    logs: RequestLogs,
    metrics: Metrics,
    request_ids: RequestIds,
    listing_permits: Arc<ListingPermits>,
    store_totals: StoreTotals,
    snapshots: Arc<Snapshots>,
}

impl App {
    /// Serves `store` with `settings`, without an access log or an audit log.
    pub fn new(store: impl Into<ServedStore>, settings: Settings) -> Self {
        Self::with_logs(store, settings, RequestLogs::default())
    }

    /// Serves `store` with `settings`, and logs requests.
    pub fn with_logs(store: impl Into<ServedStore>, settings: Settings, logs: RequestLogs) -> Self {
        let store = store.into();
        let arrays = Arrays::new(store.clone(), settings.arrays);
        let listing_permits = Arc::new(ListingPermits::new(&**store.reads()));
        Self(Arc::new(Inner {
            metrics: Metrics::new(&logs, arrays.queues(), store.pieces().cloned()),
            arrays,
            anonymous: AnonymousPrincipals::new(&settings.access),
            logs,
            request_ids: RequestIds::new(),
            store_totals: StoreTotals::new(Arc::clone(store.reads()), Arc::clone(&listing_permits)),
            listing_permits,
            store,
            settings,
            snapshots: Arc::default(),
        }))
    }

    /// The store, for reading.
    pub fn store(&self) -> &Arc<dyn SnapshotStore> {
        self.0.store.reads()
    }

    /// The store, for writing. Fails with [`StoreError::Unsupported`] if it is served for reading only.
    pub fn writes(&self) -> Result<&Arc<dyn BatchStore>, StoreError> {
        self.0.store.writes()
    }

    /// The store, for writing in commits. Fails with [`StoreError::Unsupported`] if it has none, or is served for reading
    /// only.
    pub fn commits(&self) -> Result<&Arc<dyn TransactionalStore>, StoreError> {
        self.0.store.commits()
    }

    /// The engine for the arrays and hierarchies in the store.
    pub fn arrays(&self) -> &Arrays {
        &self.0.arrays
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The principal of a caller without a credential at this moment.
    pub(crate) fn anonymous_principal(&self) -> &Arc<Principal> {
        self.0.anonymous.current(&self.0.settings.access)
    }

    /// The access log and the audit log.
    pub(crate) fn logs(&self) -> &RequestLogs {
        &self.0.logs
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The memory budget of all requests together.
    pub(crate) fn memory(&self) -> &MemoryBudget {
        self.0.arrays.memory()
    }

    /// Waits for the right to read one batch of a listing of a prefix.
    pub(crate) async fn listing_permit(&self, prefix: &Prefix) -> Option<SemaphorePermit<'_>> {
        self.0.listing_permits.acquire(prefix).await
    }

    pub(crate) fn store_totals(&self) -> &StoreTotals {
        &self.0.store_totals
    }

    /// The snapshots that clients took.
    pub(crate) fn snapshots(&self) -> &Arc<Snapshots> {
        &self.0.snapshots
    }

    pub(crate) fn request_ids(&self) -> &RequestIds {
        &self.0.request_ids
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
