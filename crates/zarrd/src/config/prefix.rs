//! Prefixes in arguments, of this store and of other servers.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use zarrd_client::{BaseUrl, BaseUrlError};
use zarrd_store::{KeyError, Prefix};
use zarrd_wire::routes::{self, PathError, STORE, STORE_ROOT, StoreTarget};

use super::foreign::{ForeignUrl, ForeignUrlError};

/// A prefix, with or without its trailing `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrefixArg(pub(crate) Prefix);

/// URL of a prefix of another server, such as `http://lab:8000/store/exp1/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemotePrefix {
    /// URL of the server.
    pub(crate) base: BaseUrl,
    /// The prefix.
    pub(crate) prefix: Prefix,
}

/// Source of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportFrom {
    /// The files below a directory.
    Directory(PathBuf),
    /// The keys below a prefix of another server.
    Remote(RemotePrefix),
    /// The keys of a store that other programs write.
    Foreign(ForeignUrl),
}

/// Errors of parsing a [`RemotePrefix`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RemotePrefixError {
    /// The part before `/store/` is not the URL of a server.
    #[error(transparent)]
    Base(#[from] BaseUrlError),
    /// The part after `/store/` is not a prefix.
    #[error(transparent)]
    Prefix(#[from] PathError),
    /// The path is not below `/store/`.
    #[error("not the URL of a prefix, such as http://127.0.0.1:8000/store/lab/exp1/")]
    NotBelowStore,
}

/// Errors of parsing an [`ImportFrom`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportFromError {
    /// The URL is not that of a prefix of a server.
    #[error(transparent)]
    Remote(#[from] RemotePrefixError),
    /// The text is not the URL of a store.
    #[error(transparent)]
    ForeignUrl(#[from] ForeignUrlError),
}

impl ImportFrom {
    /// The prefix that the source is imported into by default: the name of the directory, of the last segment of the
    /// prefix, or of the bucket.
    pub(crate) fn default_prefix(&self) -> Option<Prefix> {
        let directory = |path: &Path| {
            path.canonicalize().ok().unwrap_or_else(|| path.to_owned()).file_name()?.to_str().map(str::to_owned)
        };
        let name = match self {
            Self::Directory(path) => directory(path),
            Self::Remote(remote) => last_segment(remote.prefix.as_str()),
            Self::Foreign(foreign) => match foreign.directory() {
                Some(path) => directory(path),
                None => last_segment(foreign.to_string().split('?').next()?.split_once("://")?.1),
            },
        }?;
        Prefix::parse(&format!("{name}/")).ok()
    }
}

/// The last segment of a path that may end in slashes.
fn last_segment(path: &str) -> Option<String> {
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

impl FromStr for PrefixArg {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let slash = if text.is_empty() || text.ends_with('/') { "" } else { "/" };
        Prefix::parse(&format!("{text}{slash}")).map(Self)
    }
}

impl FromStr for RemotePrefix {
    type Err = RemotePrefixError;

    fn from_str(text: &str) -> Result<Self, RemotePrefixError> {
        let (base, rest) = match text.split_once(STORE_ROOT) {
            Some(parts) => parts,
            None => (text.strip_suffix(STORE).unwrap_or(text), ""),
        };
        let base = BaseUrl::parse(base)?;
        if !text.contains(STORE) && base.as_str().split('/').count() > 3 {
            return Err(RemotePrefixError::NotBelowStore);
        }
        let slash = if rest.is_empty() || rest.ends_with('/') { "" } else { "/" };
        match routes::parse_store(&format!("{rest}{slash}"), routes::Slashes::Refuse)? {
            StoreTarget::Prefix(prefix) => Ok(Self { base, prefix }),
            StoreTarget::Key(_) => Err(RemotePrefixError::NotBelowStore),
        }
    }
}

impl FromStr for ImportFrom {
    type Err = ImportFromError;

    fn from_str(text: &str) -> Result<Self, ImportFromError> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Remote(text.parse()?));
        }
        if ForeignUrl::has_scheme(text) {
            return Ok(Self::Foreign(text.parse()?));
        }
        Ok(Self::Directory(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_slash_is_optional() {
        for (text, prefix) in [("", ""), ("lab", "lab/"), ("lab/exp1/", "lab/exp1/")] {
            assert_eq!(text.parse::<PrefixArg>().unwrap().0.as_str(), prefix);
        }
        for text in ["/", "/lab", "a//b", "../a"] {
            assert!(text.parse::<PrefixArg>().is_err(), "{text}");
        }
    }

    #[test]
    fn default_prefix_is_the_name_of_the_source() {
        for (text, expected) in [
            ("missing/data.zarr", Some("data.zarr/")),
            ("missing/data.zarr/", Some("data.zarr/")),
            ("/", None),
            ("http://lab/store/a%20b/exp1/", Some("exp1/")),
            ("http://lab/store/", None),
            ("s3://bucket/lab/exp1/?recheck=0", Some("exp1/")),
            ("s3://bucket", Some("bucket/")),
            ("dir:missing/x", Some("x/")),
        ] {
            let found = text.parse::<ImportFrom>().unwrap().default_prefix();
            assert_eq!(found.as_ref().map(Prefix::as_str), expected, "{text}");
        }
        let here = std::env::current_dir().unwrap();
        let name = here.file_name().unwrap().to_str().unwrap();
        assert_eq!(ImportFrom::Directory(".".into()).default_prefix().unwrap().as_str(), format!("{name}/"));
    }

    #[test]
    fn urls_of_prefixes_are_parsed() {
        for (text, base, prefix) in [
            ("http://lab:8000", "http://lab:8000", ""),
            ("http://lab:8000/", "http://lab:8000", ""),
            ("http://lab:8000/store", "http://lab:8000", ""),
            ("http://lab:8000/store/", "http://lab:8000", ""),
            ("http://lab:8000/store/a%20b/c", "http://lab:8000", "a b/c/"),
            ("https://lab/zarr/store/a/store/b/", "https://lab/zarr", "a/store/b/"),
        ] {
            let remote: RemotePrefix = text.parse().unwrap();
            assert_eq!((remote.base.as_str(), remote.prefix.as_str()), (base, prefix), "{text}");
        }
        for text in ["http://lab/exp1/", "http://lab/store/a//b/", "http://lab/store/%2e%2e/", "http://lab/store/%"] {
            assert!(text.parse::<RemotePrefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn sources_are_directories_or_urls() {
        assert_eq!("data.zarr".parse::<ImportFrom>().unwrap(), ImportFrom::Directory("data.zarr".into()));
        assert!(matches!("http://lab/store/a/".parse(), Ok(ImportFrom::Remote(_))));
        for text in ["dir:data", "s3://bucket/lab", "az://container"] {
            assert_eq!(text.parse::<ImportFrom>().unwrap(), ImportFrom::Foreign(text.parse().unwrap()), "{text}");
        }
        assert!("s3://key:secret@bucket".parse::<ImportFrom>().is_err());
    }
}
