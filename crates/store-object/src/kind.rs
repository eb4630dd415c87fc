//! The kind of store in this crate, for programs that open stores by their URLs.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use zarrd_store::{BoxError, SnapshotStore, StoreKind, StoreUrl};

use crate::{location::BucketUrl, options::Options, store::BucketStore};

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
