//! The kind of store in this crate, for programs that open stores by their URLs.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use zarrd_store::{BoxError, ServedStore, SnapshotStore, StoreKind, StoreUrl, Writes};

use crate::{
    error::OpenError,
    location::BucketUrl,
    options::{Options, WriteMode},
    store::BucketStore,
};

/// The kind of store in this crate.
pub const KIND: StoreKind = StoreKind {
    schemes: &["s3://", "gs://", "az://"],
    forms: "s3://BUCKET, gs://BUCKET or az://CONTAINER",
    parse: |text| Ok(Arc::new(text.parse::<BucketUrl>()?)),
};

#[async_trait]
impl StoreUrl for BucketUrl {
    /// Opens the bucket with the credentials of the environment. A server starts without a bucket that is unreachable.
    async fn open(&self, _: &[PathBuf]) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        let store = BucketStore::open_even_if_unreachable(self, Options::from_environment()).await?;
        let guarantees = store.guarantees();
        Ok(self.options.cached(store, guarantees))
    }

    /// Opens the bucket as [`open`](StoreUrl::open) does, for writing if the URL says so and the bucket can be written.
    async fn open_to_serve(&self, _: &[PathBuf]) -> Result<ServedStore, BoxError> {
        Ok(self.open_served(Options::from_environment()).await?)
    }

    fn is_written(&self) -> bool {
        self.writes != WriteMode::ReadOnly
    }
}

impl BucketUrl {
    /// Opens the bucket to be served, with other options than the environment has: for writing if the URL says so and the
    /// bucket can be written, and otherwise for reading.
    pub async fn open_served(&self, options: Options) -> Result<ServedStore, OpenError> {
        let options = Options { writes: self.writes, ..options };
        let store = BucketStore::open_even_if_unreachable(self, options).await?;
        let guarantees = store.guarantees();
        Ok(match guarantees.writes {
            Writes::None => ServedStore::read_only(self.options.cached(store, guarantees)),
            Writes::Key | Writes::Commit => ServedStore::key_by_key(self.options.cached_writes(store, guarantees)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_those_of_its_urls() {
        for url in ["s3://b/", "gs://b/", "az://$web/"] {
            assert!(KIND.has_scheme(url) && !KIND.has_scheme(&url.replacen("://", ":", 1)));
            assert_eq!((KIND.parse)(url).unwrap().to_string(), url);
        }
        assert!(!KIND.has_scheme("http://b/"));
    }
}
