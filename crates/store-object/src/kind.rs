//! The kind of store in this crate, for programs that open stores by their URLs.

use std::sync::Arc;

use async_trait::async_trait;
use zarrd_store::{BoxError, OpenOptions, Pieces, ServedStore, SnapshotStore, StoreKind, StoreUrl, Writes};

use crate::{
    error::OpenError,
    location::BucketUrl,
    options::{Options, WriteMode},
    provider::service_name,
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
    async fn open(&self, options: &OpenOptions<'_>) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        let environment = Options::from_environment();
        let pieces = options.pieces.map(|pieces| pieces.of_store(&service_name(&self.location, &environment)));
        let store = BucketStore::open_even_if_unreachable(self, environment).await?;
        let guarantees = store.guarantees();
        Ok(self.options.cached(store, guarantees, pieces))
    }

    /// Opens the bucket as [`open`](StoreUrl::open) does, for writing if the URL says so and the bucket can be written.
    async fn open_to_serve(&self, options: &OpenOptions<'_>) -> Result<ServedStore, BoxError> {
        Ok(self.open_served(Options::from_environment(), options.pieces).await?)
    }

    fn is_written(&self) -> bool {
        self.writes != WriteMode::ReadOnly
    }

    /// Versions of objects are strong, or they are not read.
    fn uncached_reason(&self) -> Option<&'static str> {
        None
    }
}

impl BucketUrl {
    /// Opens the bucket to be served, with other options than the environment has: for writing if the URL says so and the
    /// bucket can be written, and otherwise for reading. If there is a cache of pieces, values are read through it.
    pub async fn open_served(&self, options: Options, pieces: Option<&Pieces>) -> Result<ServedStore, OpenError> {
        let options = Options { writes: self.writes, ..options };
        let pieces = pieces.map(|pieces| pieces.of_store(&service_name(&self.location, &options)));
        let store = BucketStore::open_even_if_unreachable(self, options).await?;
        let guarantees = store.guarantees();
        Ok(match guarantees.writes {
            Writes::None => ServedStore::read_only(self.options.cached(store, guarantees, pieces)),
            Writes::Key | Writes::Commit => {
                ServedStore::key_by_key(self.options.cached_writes(store, guarantees, pieces))
            }
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
