//! Validators of objects, and the versions that are made of them.

use std::sync::Arc;

use object_store::ObjectMeta;
use zarrd_store::{CursorSigner, Key, ValueMeta, Version};
use zarrd_store_remote::{Pins, is_strong, seconds};

use crate::{failure::Failure, xml::ListedObject};

/// The condition of a request that pins it to one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The strong entity tag, as the service sent it.
    ETag(Arc<str>),
    /// The version id or generation.
    Version(Arc<str>),
}

/// Makes versions of validators, and caches the validators of versions for conditional requests.
#[derive(Debug)]
pub(crate) struct Validators(Pins<Pin>);

impl Validators {
    pub(crate) fn new(name: &str) -> Self {
        Self(Pins::new(name))
    }

    pub(crate) fn cursors(&self) -> CursorSigner {
        self.0.cursors()
    }

    /// The metadata of a value, and what pins it.
    ///
    /// The version is made of the entity tag, and only without one of the version id or generation: listings do not
    /// have these, and have to agree.
    pub(crate) fn meta(&self, key: &Key, object: &ObjectMeta) -> Result<(ValueMeta, Pin), Failure> {
        let etag = object.e_tag.as_deref().filter(|etag| is_strong(etag));
        let (version, pin) = match (etag, object.version.as_deref()) {
            (Some(etag), _) => (self.of_etag(key, etag, object.size), Pin::ETag(etag.into())),
            (None, Some(id)) if !matches!(id, "" | "null") => {
                (self.0.version(key, "version", id, object.size), Pin::Version(id.into()))
            }
            _ => return Err(Failure::NoValidator),
        };
        self.0.insert(version, pin.clone());
        Ok((
            ValueMeta {
                size: object.size,
                version,
                modified: seconds(object.last_modified.into()),
                attributes: zarrd_store::Attributes::NONE,
            },
            pin,
        ))
    }

    /// The metadata of a value in a listing.
    pub(crate) fn listed(&self, key: &Key, object: &ListedObject) -> Result<ValueMeta, Failure> {
        let etag = object.etag.as_deref().filter(|etag| is_strong(etag)).ok_or(Failure::NoValidator)?;
        let version = self.of_etag(key, etag, object.size);
        Ok(ValueMeta {
            size: object.size,
            version,
            modified: object.modified,
            attributes: zarrd_store::Attributes::NONE,
        })
    }

    /// The condition that pins a version, if its validator is cached.
    pub(crate) fn pin(&self, version: Version) -> Option<Pin> {
        self.0.pin(version)
    }

    fn of_etag(&self, key: &Key, etag: &str, size: u64) -> Version {
        // Some listings have no quotes around tags.
        self.0.version(key, "etag", etag.trim_matches('"'), size)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn object(etag: Option<&str>, version: Option<&str>, size: u64) -> ObjectMeta {
        ObjectMeta {
            location: "a".into(),
            last_modified: (UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)).into(),
            size,
            e_tag: etag.map(str::to_owned),
            version: version.map(str::to_owned),
        }
    }

    #[test]
    fn a_version_is_made_of_the_tag_and_the_size_or_else_of_the_version_id() {
        let (validators, key) = (Validators::new("s3://b/"), Key::parse("a").unwrap());
        let meta = |object| validators.meta(&key, &object).map(|(meta, _)| meta);
        let first = meta(object(Some("\"x\""), None, 3)).unwrap();
        assert_eq!(first.modified, UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        assert_eq!(meta(object(Some("\"x\""), Some("v1"), 3)).unwrap(), first, "listings have no version ids");
        assert_ne!(meta(object(Some("\"y\""), None, 3)).unwrap().version, first.version);
        assert_ne!(meta(object(Some("\"x\""), None, 4)).unwrap().version, first.version);
        let by_id = meta(object(None, Some("x"), 3)).unwrap().version;
        assert_ne!(by_id, first.version);
        assert_ne!(meta(object(None, Some("y"), 3)).unwrap().version, by_id);
        assert_eq!(validators.pin(by_id), Some(Pin::Version("x".into())));
        assert_eq!(validators.pin(first.version), Some(Pin::ETag("\"x\"".into())));
    }

    #[test]
    fn size_and_time_alone_are_no_version() {
        let (validators, key) = (Validators::new("s3://b/"), Key::parse("a").unwrap());
        for (etag, version) in
            [(None, None), (Some(""), None), (Some("\"\""), None), (Some("W/\"x\""), None), (None, Some("null"))]
        {
            let result = validators.meta(&key, &object(etag, version, 3));
            assert_eq!(result, Err(Failure::NoValidator), "{etag:?} {version:?}");
        }
    }

    #[test]
    fn listings_agree_with_reads_whether_tags_are_quoted_or_not() {
        let (validators, key) = (Validators::new("s3://b/"), Key::parse("a").unwrap());
        let (read, _) = validators.meta(&key, &object(Some("\"x\""), Some("v1"), 3)).unwrap();
        for etag in ["\"x\"", "x"] {
            let listed =
                ListedObject { name: "a".to_owned(), size: 3, etag: Some(etag.to_owned()), modified: read.modified };
            assert_eq!(validators.listed(&key, &listed), Ok(read.clone()), "{etag}");
        }
    }
}
