//! What every request shares.

use std::{fmt, sync::Arc};

use ::store::TransactionalStore;

use crate::{metrics::Metrics, request_id::RequestIds, settings::Settings};

/// A store with the settings by which it is served. Clones are the same.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    store: Arc<dyn TransactionalStore>,
    settings: Settings,
    metrics: Metrics,
    request_ids: RequestIds,
}

impl App {
    /// Serves `store` by `settings`.
    pub fn new(store: Arc<dyn TransactionalStore>, settings: Settings) -> Self {
        Self(Arc::new(Shared { store, settings, metrics: Metrics::new(), request_ids: RequestIds::new() }))
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn TransactionalStore> {
        &self.0.store
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
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
