//! What every request shares.

use std::{fmt, sync::Arc};

use ::store::TransactionalStore;
use array::{Arrays, Hierarchies};

use crate::{metrics::Metrics, request_id::RequestIds, room::Rooms, settings::Settings};

/// A store with the settings by which it is served. Clones are the same.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    store: Arc<dyn TransactionalStore>,
    arrays: Arrays,
    hierarchies: Hierarchies,
    settings: Settings,
    metrics: Metrics,
    request_ids: RequestIds,
    rooms: Rooms,
}

impl App {
    /// Serves `store` by `settings`.
    pub fn new(store: Arc<dyn TransactionalStore>, settings: Settings) -> Self {
        let arrays = Arrays::new(store.clone(), settings.arrays);
        Self(Arc::new(Shared {
            hierarchies: arrays.hierarchies(),
            arrays,
            metrics: Metrics::new(),
            request_ids: RequestIds::new(),
            rooms: Rooms::new(&settings),
            store,
            settings,
        }))
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn TransactionalStore> {
        &self.0.store
    }

    /// Its arrays.
    pub fn arrays(&self) -> &Arrays {
        &self.0.arrays
    }

    /// Its hierarchies.
    pub fn hierarchies(&self) -> &Hierarchies {
        &self.0.hierarchies
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn rooms(&self) -> &Rooms {
        &self.0.rooms
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
