//! Locations of stores, and addresses to listen on.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
};

use zarrd_store::{Consolidated, Recheck, RecheckError};
use zarrd_store_dir::Symlinks;
use zarrd_store_http::HttpUrl;
use zarrd_store_object::BucketUrl;

/// Location of a store: `sled:DIR`, `redb:DIR`, `memory:`, `dir:DIR`, or the URL of a bucket or of a web server; a bare
/// path is a sled store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A directory with a sled index.
    Sled(PathBuf),
    /// A directory with a redb index.
    Redb(PathBuf),
    /// Memory, which is not persistent.
    Memory,
    /// A directory of files that other programs write.
    Files(FilesLocation),
    /// A prefix of a bucket that other programs write.
    Bucket(Box<BucketUrl>),
    /// The files of a web server, which other programs write.
    Web(Box<HttpUrl>),
}

/// Location of files that other programs write: `dir:DIR`, with options after a `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilesLocation {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The symbolic links that are followed.
    pub(crate) symlinks: Symlinks,
    /// The time after which cached metadata are revalidated. At once by default, as that takes a few microseconds.
    pub(crate) recheck: Recheck,
    /// The use of consolidated metadata for trees.
    pub(crate) consolidated: Consolidated,
}

/// Errors of parsing a [`Location`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocationError {
    /// The directory is missing.
    #[error("the directory is missing; write sled:DIR, redb:DIR or dir:DIR")]
    NoDirectory,
    /// The part before the colon is not a kind of store.
    #[error(
        "`{0}:` is not a kind of store; write sled:DIR, redb:DIR, dir:DIR, memory:, s3://BUCKET, gs://BUCKET, az://CONTAINER, http://HOST or https://HOST (and ./{0}:… for a path with a colon)"
    )]
    UnknownKind(String),
    /// The colon after the kind is missing.
    #[error("`{0}` lacks its colon; write {0}: (and ./{0} for a directory of that name)")]
    NoColon(String),
    /// `memory:` is followed by a path.
    #[error("memory: keeps nothing, so it takes no directory")]
    MemoryHasNoDirectory,
    /// The part after the question mark is not an option of `dir:`.
    #[error(
        "`{0}` is not an option of dir:; write ?symlinks=within, ?symlinks=follow, ?recheck=5s or ?consolidated=trust (and a `?` at the end of a path that contains one)"
    )]
    UnknownOption(String),
    /// The time after which cached metadata are revalidated is invalid.
    #[error("the value of the option `recheck` of dir: is invalid")]
    Recheck(#[from] RecheckError),
    /// The URL of a bucket is invalid.
    #[error(transparent)]
    Bucket(#[from] zarrd_store_object::UrlError),
    /// The URL of a web server is invalid.
    #[error(transparent)]
    Web(#[from] zarrd_store_http::UrlError),
}

/// An address to listen on: `IP:PORT`, or `localhost:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

/// The error of parsing a [`Listen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an IP:PORT, such as 127.0.0.1:8000, [::1]:8000 or 0.0.0.0:8000")]
pub(crate) struct ListenError;

impl Location {
    /// The directory of the store, if it has one to itself.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Self::Sled(directory) | Self::Redb(directory) => Some(directory),
            Self::Memory | Self::Files(_) | Self::Bucket(_) | Self::Web(_) => None,
        }
    }

    /// True if a text names a store that other programs write, validly or not.
    pub(crate) fn names_foreign(text: &str) -> bool {
        text.starts_with("dir:") || BucketUrl::has_scheme(text) || HttpUrl::has_scheme(text)
    }

    /// True if other programs write the data, which can only be read.
    pub(crate) fn is_foreign(&self) -> bool {
        match self {
            Self::Files(_) | Self::Bucket(_) | Self::Web(_) => true,
            Self::Sled(_) | Self::Redb(_) | Self::Memory => false,
        }
    }
}

impl Listen {
    /// The address at which a program on the same machine reaches the server.
    pub(crate) fn reachable(self) -> SocketAddr {
        let mut address = self.0;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        address
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if BucketUrl::has_scheme(text) {
            return Ok(Self::Bucket(Box::new(text.parse()?)));
        }
        if HttpUrl::has_scheme(text) {
            return Ok(Self::Web(Box::new(text.parse()?)));
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| is_scheme(kind)) else {
            return match text {
                "" => Err(LocationError::NoDirectory),
                "sled" | "redb" | "memory" | "dir" => Err(LocationError::NoColon(text.to_owned())),
                path => Ok(Self::Sled(path.into())),
            };
        };
        match (kind, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("memory", _) => Err(LocationError::MemoryHasNoDirectory),
            ("sled" | "redb" | "dir", "") => Err(LocationError::NoDirectory),
            ("sled", path) => Ok(Self::Sled(path.into())),
            ("redb", path) => Ok(Self::Redb(path.into())),
            ("dir", rest) => rest.parse().map(Self::Files),
            _ => Err(LocationError::UnknownKind(kind.to_owned())),
        }
    }
}

impl FromStr for FilesLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let (path, options) = text.rsplit_once('?').unwrap_or((text, ""));
        if path.is_empty() {
            return Err(LocationError::NoDirectory);
        }
        let mut files = Self {
            directory: path.into(),
            symlinks: Symlinks::Within,
            recheck: Recheck::Always,
            consolidated: Consolidated::Ignored,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("symlinks", "within")) => files.symlinks = Symlinks::Within,
                Some(("symlinks", "follow")) => files.symlinks = Symlinks::Follow,
                Some(("recheck", time)) => files.recheck = time.parse()?,
                Some(("consolidated", "trust")) => files.consolidated = Consolidated::Trusted,
                _ => return Err(LocationError::UnknownOption(option.to_owned())),
            }
        }
        Ok(files)
    }
}

/// True if the text before a colon is probably meant as a kind of store rather than as part of a path.
fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'-')
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        numeric.parse().map(Self).map_err(|_| ListenError)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sled(directory) => write!(f, "sled:{}", directory.display()),
            Self::Redb(directory) => write!(f, "redb:{}", directory.display()),
            Self::Memory => f.write_str("memory:"),
            Self::Files(files) => files.fmt(f),
            Self::Bucket(url) => url.fmt(f),
            Self::Web(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for FilesLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display();
        write!(f, "dir:{directory}")?;
        let symlinks = (self.symlinks == Symlinks::Follow).then(|| "symlinks=follow".to_owned());
        let recheck = (self.recheck != Recheck::Always).then(|| format!("recheck={}", self.recheck));
        let consolidated = (self.consolidated == Consolidated::Trusted).then(|| "consolidated=trust".to_owned());
        let options: Vec<String> = [symlinks, recheck, consolidated].into_iter().flatten().collect();
        match options.is_empty() {
            true if directory.to_string().contains('?') => f.write_str("?"),
            true => Ok(()),
            false => write!(f, "?{}", options.join("&")),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_options(directory: &str, symlinks: Symlinks, recheck: Recheck, consolidated: Consolidated) -> Location {
        Location::Files(FilesLocation { directory: directory.into(), symlinks, recheck, consolidated })
    }

    fn files(directory: &str, symlinks: Symlinks) -> Location {
        with_options(directory, symlinks, Recheck::Always, Consolidated::Ignored)
    }

    fn rechecked(symlinks: Symlinks, recheck: Recheck) -> Location {
        with_options("/data", symlinks, recheck, Consolidated::Ignored)
    }

    #[test]
    fn locations_are_parsed() {
        for (text, location) in [
            ("sled:./zarrd-data", Location::Sled("./zarrd-data".into())),
            ("redb:/data", Location::Redb("/data".into())),
            ("/data", Location::Sled("/data".into())),
            ("data", Location::Sled("data".into())),
            ("./odd:name", Location::Sled("./odd:name".into())),
            ("memory:", Location::Memory),
            ("dir:/data", files("/data", Symlinks::Within)),
            ("dir:data?symlinks=within", files("data", Symlinks::Within)),
            ("dir:/data?symlinks=follow", files("/data", Symlinks::Follow)),
            ("dir:/odd?name?", files("/odd?name", Symlinks::Within)),
            ("dir:/odd?name?symlinks=follow", files("/odd?name", Symlinks::Follow)),
            ("dir:/data?recheck=5s", rechecked(Symlinks::Within, Recheck::DISTANT)),
            ("dir:/data?recheck=never&symlinks=follow", rechecked(Symlinks::Follow, Recheck::Never)),
            (
                "dir:/data?consolidated=trust&recheck=1s&symlinks=follow",
                with_options(
                    "/data",
                    Symlinks::Follow,
                    Recheck::After(std::time::Duration::from_secs(1)),
                    Consolidated::Trusted,
                ),
            ),
            ("s3://bucket/a/?recheck=0", Location::Bucket(Box::new("s3://bucket/a?recheck=0".parse().unwrap()))),
            ("s3://bucket/a/?absent=403", Location::Bucket(Box::new("s3://bucket/a?absent=403".parse().unwrap()))),
            ("https://h/a?absent=403", Location::Web(Box::new("https://h/a/?absent=403".parse().unwrap()))),
        ] {
            assert_eq!(text.parse(), Ok(location.clone()), "{text}");
            assert_eq!(location.to_string().parse(), Ok(location), "{text}");
        }
        for (text, error) in [
            ("", LocationError::NoDirectory),
            ("sled:", LocationError::NoDirectory),
            ("memory", LocationError::NoColon("memory".into())),
            ("memory:/data", LocationError::MemoryHasNoDirectory),
            ("dir:", LocationError::NoDirectory),
            ("dir:?symlinks=follow", LocationError::NoDirectory),
            ("dir", LocationError::NoColon("dir".into())),
            ("dir:/data?symlinks=all", LocationError::UnknownOption("symlinks=all".into())),
            ("dir:/odd?name", LocationError::UnknownOption("name".into())),
            ("dir:/data?consolidated=yes", LocationError::UnknownOption("consolidated=yes".into())),
            ("dir:/data?recheck=soon", LocationError::Recheck(RecheckError)),
            ("s3://key:secret@bucket", zarrd_store_object::UrlError::Credentials.into()),
            ("http://ada:secret@h/", zarrd_store_http::UrlError::Credentials.into()),
            ("http:h", LocationError::UnknownKind("http".into())),
            ("s3:bucket", LocationError::UnknownKind("s3".into())),
        ] {
            assert_eq!(text.parse::<Location>(), Err(error), "{text}");
        }
    }

    #[test]
    fn addresses_are_parsed() {
        for (text, reachable) in [
            ("127.0.0.1:8000", "127.0.0.1:8000"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0:8000", "127.0.0.1:8000"),
            ("[::]:8000", "[::1]:8000"),
            ("10.0.0.7:1", "10.0.0.7:1"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().reachable().to_string(), reachable);
        }
        for text in ["8000", "localhost", "example.org:80", "127.0.0.1:99999", ""] {
            assert_eq!(text.parse::<Listen>(), Err(ListenError), "{text}");
        }
    }
}
