//! Locations of stores, and addresses to listen on.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
};

use super::foreign::{ForeignUrl, ForeignUrlError};

/// Location of a store: `sled:DIR`, `redb:DIR`, `memory:`, or the URL of a store with data that other programs write; a
/// bare path is a sled store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A directory with a sled index.
    Sled(PathBuf),
    /// A directory with a redb index.
    Redb(PathBuf),
    /// Memory, which is not persistent.
    Memory,
    /// Data that other programs write: a directory, a bucket or a web server.
    Foreign(ForeignUrl),
}

/// Errors of parsing a [`Location`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocationError {
    /// The directory is missing.
    #[error("the directory is missing; write sled:DIR or redb:DIR")]
    NoDirectory,
    /// The part before the colon is not a kind of store.
    #[error(
        "`{0}:` is not a kind of store; write sled:DIR, redb:DIR, memory:, {kinds} (and ./{0}:… for a path with a colon)",
        kinds = ForeignUrl::forms()
    )]
    UnknownKind(String),
    /// The colon after the kind is missing.
    #[error("`{0}` lacks its colon; write {0}: (and ./{0} for a directory of that name)")]
    NoColon(String),
    /// `memory:` is followed by a path.
    #[error("memory: keeps nothing, so it takes no directory")]
    MemoryHasNoDirectory,
    /// The URL of a store with data that other programs write is invalid.
    #[error(transparent)]
    Foreign(#[from] ForeignUrlError),
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
            Self::Memory | Self::Foreign(_) => None,
        }
    }

    /// True if it has data of other programs, and its URL says that it is served for writing too.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self, Self::Foreign(url) if url.is_written())
    }

    /// True if it has data of other programs.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign(_))
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
        if ForeignUrl::has_scheme(text) {
            return Ok(Self::Foreign(text.parse()?));
        }
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| is_scheme(kind)) else {
            return match text {
                "" => Err(LocationError::NoDirectory),
                "sled" | "redb" | "memory" => Err(LocationError::NoColon(text.to_owned())),
                text if ForeignUrl::lacks_colon(text) => Err(LocationError::NoColon(text.to_owned())),
                path => Ok(Self::Sled(path.into())),
            };
        };
        match (kind, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("memory", _) => Err(LocationError::MemoryHasNoDirectory),
            ("sled" | "redb", "") => Err(LocationError::NoDirectory),
            ("sled", path) => Ok(Self::Sled(path.into())),
            ("redb", path) => Ok(Self::Redb(path.into())),
            _ => Err(LocationError::UnknownKind(kind.to_owned())),
        }
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
            Self::Foreign(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_parsed() {
        for (text, location) in [
            ("sled:./zarrd-data", Location::Sled("./zarrd-data".into())),
            ("redb:/data", Location::Redb("/data".into())),
            ("/data", Location::Sled("/data".into())),
            ("data", Location::Sled("data".into())),
            ("s3", Location::Sled("s3".into())),
            ("./odd:name", Location::Sled("./odd:name".into())),
            ("memory:", Location::Memory),
        ] {
            assert_eq!(text.parse::<Location>().unwrap(), location, "{text}");
            assert_eq!(location.to_string().parse::<Location>().unwrap(), location, "{text}");
        }
        for (text, shown) in [
            ("dir:/data", "dir:/data"),
            ("dir:/odd?name?symlinks=follow", "dir:/odd?name?symlinks=follow"),
            ("s3://bucket/a?recheck=0", "s3://bucket/a/?recheck=0"),
            ("az://container", "az://container/"),
            ("https://h/a?absent=403", "https://h/a/?absent=403"),
        ] {
            let location: Location = text.parse().unwrap();
            assert!(location.is_foreign() && location.to_string() == shown, "{text}: {location}");
            assert_eq!(location.to_string().parse::<Location>().unwrap(), location, "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for (text, part) in [
            ("", "the directory is missing"),
            ("sled:", "write sled:DIR"),
            ("memory", "lacks its colon"),
            ("memory:/data", "takes no directory"),
            ("dir:", "write dir:DIR"),
            ("dir", "lacks its colon"),
            ("dir:/data?symlinks=all", "`symlinks=all` is not an option"),
            ("s3://key:secret@bucket", "no credentials"),
            ("http://ada:secret@h/", "no credentials"),
            ("http:h", "`http:` is not a kind of store; write sled:DIR, redb:DIR, memory:, dir:DIR, s3://BUCKET"),
            ("s3:bucket", "`s3:` is not a kind of store"),
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
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
