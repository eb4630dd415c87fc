//! The kind of store in this crate, for programs that open stores by their URLs.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use zarrd_store::{BoxError, SnapshotStore, StoreKind, StoreUrl};

use crate::{
    options::Options,
    store::WebStore,
    url::{HttpUrl, SCHEMES},
};

/// The kind of store in this crate.
pub const KIND: StoreKind = StoreKind {
    schemes: SCHEMES,
    forms: "http://HOST or https://HOST",
    parse: |text| Ok(Arc::new(text.parse::<HttpUrl>()?)),
};

#[async_trait]
impl StoreUrl for HttpUrl {
    /// Opens the keys below the URL. A server starts without a web server that is unreachable.
    async fn open(&self, _: &[PathBuf]) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        let store = WebStore::open_even_if_unreachable(self, Options::default()).await?;
        let guarantees = store.guarantees();
        Ok(self.options.cached(store, guarantees))
    }
}
