//! URLs of directories, with the options of a store.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use async_trait::async_trait;
use zarrd_store::{
    BoxError, OpenOptions, Recheck, ServedStore, SnapshotStore, StoreKind, StoreUrl, UrlOptionError, UrlOptions,
    url_options,
};

use crate::{DirStore, OpenError, Options, Symlinks, WriteOptionError, WriteOptions};

/// The kind of store in this crate.
pub const KIND: StoreKind =
    StoreKind { schemes: &["dir:"], forms: "dir:DIR", parse: |text| Ok(Arc::new(text.parse::<DirUrl>()?)) };

/// A directory with options: `dir:DIR?symlinks=follow`. A path that has a `?` ends in one.
///
/// With `writes=yes` it is opened for writing, too: with `sync=no` changes are acknowledged before they are durable, and
/// new files have the `mode`, `owner` and `group` that are given.
///
/// Cached metadata are revalidated at each use by default, as that takes a few microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirUrl {
    directory: PathBuf,
    symlinks: Symlinks,
    writes: Option<WriteOptions>,
    options: UrlOptions,
}

/// The reason why a text is not the URL of a directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text does not begin with `dir:`.
    #[error("the URL of a directory begins with `dir:`")]
    Scheme,
    /// The directory is missing.
    #[error("the directory is missing; write dir:DIR")]
    NoDirectory,
    /// The part after the question mark is not an option.
    #[error(
        "`{0}` is not an option of dir:; write ?symlinks=within, ?symlinks=follow, ?writes=yes, ?recheck=5s or ?consolidated=trust (and a `?` at the end of a path that contains one)"
    )]
    UnknownOption(String),
    /// The value of an option is invalid.
    #[error(transparent)]
    Option(#[from] UrlOptionError),
    /// The value of an option of writing is invalid.
    #[error(transparent)]
    Writes(#[from] WriteOptionError),
}

const SCHEME: &str = "dir:";

impl FromStr for DirUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix(SCHEME).ok_or(UrlError::Scheme)?;
        let (path, query) = rest.rsplit_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err(UrlError::NoDirectory);
        }
        let options = UrlOptions::new(Recheck::Always);
        let mut url = Self { directory: path.into(), symlinks: Symlinks::Within, writes: None, options };
        let (mut writes, mut is_writing) = (WriteOptions::default(), false);
        for (name, value) in url_options(query) {
            match (name, value) {
                ("writes", "yes") => is_writing = true,
                ("writes", "no") => is_writing = false,
                _ if writes.set(name, value)? => {}
                ("symlinks", "within") => url.symlinks = Symlinks::Within,
                ("symlinks", "follow") => url.symlinks = Symlinks::Follow,
                _ if url.options.set(name, value)? => {}
                (name, "") => return Err(UrlError::UnknownOption(name.to_owned())),
                _ => return Err(UrlError::UnknownOption(format!("{name}={value}"))),
            }
        }
        url.writes = writes.given(is_writing)?;
        Ok(url)
    }
}

impl fmt::Display for DirUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display().to_string();
        let symlinks = (self.symlinks == Symlinks::Follow).then(|| "symlinks=follow".to_owned());
        let writes = self.writes.map(|writes| format!("writes=yes{writes}"));
        let options = self.options.render([symlinks, writes], Recheck::Always);
        let mark = if options.is_empty() && !directory.contains('?') { "" } else { "?" };
        write!(f, "{SCHEME}{directory}{mark}{options}")
    }
}

#[async_trait]
impl StoreUrl for DirUrl {
    /// Opens the directory for reading. Servers that have it at the same path agree on versions.
    async fn open(&self, options: &OpenOptions<'_>) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        let store = self.open_with(options.excluded, None).await?;
        let guarantees = store.guarantees();
        Ok(self.options.cached(store, guarantees, None))
    }

    async fn open_to_serve(&self, options: &OpenOptions<'_>) -> Result<ServedStore, BoxError> {
        if self.writes.is_none() {
            return self.open(options).await.map(ServedStore::read_only);
        }
        let store = self.open_with(options.excluded, self.writes).await?;
        let guarantees = store.guarantees();
        Ok(ServedStore::key_by_key(self.options.cached_writes(store, guarantees, None)))
    }

    fn is_written(&self) -> bool {
        self.writes.is_some()
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }
}

impl DirUrl {
    async fn open_with(&self, private: &[PathBuf], writes: Option<WriteOptions>) -> Result<DirStore, OpenError> {
        let absolute = std::path::absolute(&self.directory)
            .map_err(|source| OpenError::Directory { path: self.directory.clone(), source })?;
        let options = Options::new(format!("{SCHEME}{}", absolute.display()))
            .symlinks(self.symlinks)
            .private(private.iter().cloned());
        let options = writes.into_iter().fold(options, Options::writes);
        DirStore::open(&absolute, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zarrd_store::{Consolidated, RecheckError};

    use super::*;
    use crate::Durability;

    #[test]
    fn urls_are_shown_as_they_are_parsed() {
        use Consolidated::{Ignored, Trusted};
        use Recheck::{After, Always, Never};
        use Symlinks::{Follow, Within};

        let second = After(Duration::from_secs(1));
        for (text, directory, symlinks, recheck, consolidated) in [
            ("dir:/data", "/data", Within, Always, Ignored),
            ("dir:data?symlinks=within", "data", Within, Always, Ignored),
            ("dir:/data?symlinks=follow", "/data", Follow, Always, Ignored),
            ("dir:/odd?name?", "/odd?name", Within, Always, Ignored),
            ("dir:/odd?name?symlinks=follow", "/odd?name", Follow, Always, Ignored),
            ("dir:/data?recheck=5s", "/data", Within, Recheck::DISTANT, Ignored),
            ("dir:/data?recheck=never&symlinks=follow", "/data", Follow, Never, Ignored),
            ("dir:/data?consolidated=trust&recheck=1s&symlinks=follow", "/data", Follow, second, Trusted),
        ] {
            let options = UrlOptions { recheck, consolidated };
            let url = DirUrl { directory: directory.into(), symlinks, writes: None, options };
            assert_eq!(text.parse(), Ok(url.clone()), "{text}");
            assert_eq!(url.to_string().parse(), Ok(url), "{text}");
        }
    }

    #[test]
    fn options_of_writing_are_shown_as_they_are_parsed() {
        let (writes, mode) = (WriteOptions::default(), "664".parse().unwrap());
        for (text, expected) in [
            ("dir:/data?writes=no", None),
            ("dir:/data?writes=yes", Some(writes)),
            ("dir:/data?writes=yes&sync=yes", Some(writes)),
            ("dir:/data?sync=no&writes=yes", Some(writes.durability(Durability::Unsynced))),
            ("dir:/data?writes=yes&mode=0664&group=100", Some(writes.mode(mode).group(100))),
            ("dir:/data?writes=yes&owner=7&symlinks=follow&recheck=1s", Some(writes.owner(7))),
        ] {
            let url: DirUrl = text.parse().unwrap();
            assert_eq!(url.writes, expected, "{text}");
            assert_eq!(url.to_string().parse(), Ok(url), "{text}");
        }
        for (text, error) in [
            ("dir:/data?writes=maybe", UrlError::UnknownOption("writes=maybe".to_owned())),
            ("dir:/data?writes=yes&sync=later", UrlError::UnknownOption("sync=later".to_owned())),
            ("dir:/data?sync=no", WriteOptionError::NotWriting.into()),
            ("dir:/data?writes=no&mode=664", WriteOptionError::NotWriting.into()),
            ("dir:/data?writes=yes&mode=999", WriteOptionError::Mode.into()),
            ("dir:/data?writes=yes&owner=me", WriteOptionError::Number.into()),
            ("dir:/data?writes=yes&group=+1", WriteOptionError::Number.into()),
            ("dir:/data?writes=yes&group=4294967295", WriteOptionError::Number.into()),
        ] {
            assert_eq!(text.parse::<DirUrl>(), Err(error), "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let unknown = |option: &str| UrlError::UnknownOption(option.to_owned());
        for (text, error) in [
            ("/data", UrlError::Scheme),
            ("dir:", UrlError::NoDirectory),
            ("dir:?symlinks=follow", UrlError::NoDirectory),
            ("dir:/data?symlinks=all", unknown("symlinks=all")),
            ("dir:/odd?name", unknown("name")),
            ("dir:/data?consolidated=yes", UrlOptionError::Consolidated.into()),
            ("dir:/data?recheck=soon", UrlOptionError::from(RecheckError).into()),
        ] {
            assert_eq!(text.parse::<DirUrl>(), Err(error), "{text}");
        }
    }
}
