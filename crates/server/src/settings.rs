//! Settings of the server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU64,
    str::FromStr,
    time::Duration,
};

use http::{Uri, uri::Authority};
use zarrd_s3::{BucketNames, Domain};

use crate::{authorization::AccessPolicy, caller::Network};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rights of callers.
    pub access: AccessPolicy,
    /// The acceptance of changes by the server as a whole.
    pub changes: Changes,
    /// The origins whose web pages may change the store; pages of any origin may read.
    pub origins: Vec<Origin>,
    /// The host names that the server serves.
    pub hosts: Hosts,
    /// The networks of trusted proxies, whose forwarding headers name the client.
    pub proxies: Vec<Network>,
    /// The path at which a proxy serves this server.
    pub base_path: BasePath,
    /// The S3 surface.
    pub s3: S3Settings,
    /// Limits of sizes, connections and times.
    pub limits: Limits,
    /// Options of the array engine: the memory of all requests together, limits of reads and writes, and the writing of
    /// chunks.
    pub arrays: zarrd_array::Options,
}

/// The S3 surface: its URL, and names of buckets.
#[derive(Clone, Debug, Default)]
pub struct S3Settings {
    /// The URL that the page shows, such as `http://:8002` for a port of the host by which the page was reached; `None` if
    /// there is no such surface.
    pub url: Option<String>,
    /// The domain below which names of hosts begin with a bucket; `None` if paths always do.
    pub domain: Option<Domain>,
    /// The buckets of the store.
    pub buckets: BucketNames,
}

/// Acceptance of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Changes are accepted from clients with the right to make them.
    Accepted,
    /// All changes are rejected: the server is read-only.
    Rejected,
}

/// Limits of sizes, connections and times.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of a value, and of a body with elements, in bytes.
    pub value: u64,
    /// The maximum size of the selected elements in `raw` and `npy` responses, in bytes.
    pub selection: u64,
    /// The maximum size of the selected elements in text and image responses, in bytes of their memory layout.
    pub text_selection: u64,
    /// The maximum size of a body with a selection to read, in bytes.
    pub read_request: u64,
    /// The maximum number of connections. Beyond it, a new connection evicts the one that has been idle for longest, or
    /// is answered 503 if none is idle.
    pub connections: usize,
    /// The time limit for receiving a request head, and for an idle connection.
    pub header_timeout: Duration,
    /// The time limit for a request body without progress.
    pub upload_timeout: Duration,
    /// The time limit for a client that does not accept data.
    pub download_timeout: Duration,
    /// The minimum average rate of bodies and responses, in bytes per second, apart from pauses within the two timeouts
    /// above; `None` for any rate.
    pub min_rate: Option<NonZeroU64>,
    /// The time limit for requests in progress after shutdown begins.
    pub stop_timeout: Duration,
}

/// The host names that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Any host name: the server is reachable through the network anyway.
    Any,
    /// Loopback names, and the listed ones. This excludes the name of a web page that was rebound to a loopback
    /// address.
    Loopback(Vec<Host>),
}

/// A host name, optionally with a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// The origin of a web page: a scheme, a host and an optional port, such as `https://viewer.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// The path at which a proxy serves this server, such as `/lab`: empty, or with a leading and without a trailing slash.
///
/// It begins the URLs that the server writes. Requests may have it in their path or not, since some proxies remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// The text is not a [`BasePath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a base path, such as /lab: it has one or more segments of letters, digits, `-`, `_`, `.` and `~`, \
     and the first is none with which the server's own paths begin"
)]
pub struct BasePathError {
    /// The invalid text.
    pub text: String,
}

/// The text is not an [`Origin`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an origin, such as https://viewer.example")]
pub struct OriginError {
    /// The invalid text.
    pub text: String,
}

/// The text is not a [`Host`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host name, such as zarrd.example or zarrd.example:8000")]
pub struct HostError {
    /// The invalid text.
    pub text: String,
}

impl Default for Settings {
    /// Settings for a server on a user's own machine: full access under loopback names, except for pages of other
    /// sites.
    fn default() -> Self {
        Self {
            access: AccessPolicy::default(),
            changes: Changes::Accepted,
            origins: Vec::new(),
            hosts: Hosts::Loopback(Vec::new()),
            proxies: Vec::new(),
            base_path: BasePath::default(),
            s3: S3Settings::default(),
            limits: Limits::default(),
            arrays: zarrd_array::Options::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            value: 16 << 30,
            selection: 4 << 30,
            text_selection: 64 << 20,
            read_request: 16 << 20,
            connections: 1024,
            header_timeout: Duration::from_secs(60),
            upload_timeout: Duration::from_secs(60),
            download_timeout: Duration::from_secs(60),
            min_rate: NonZeroU64::new(1 << 10),
            stop_timeout: Duration::from_secs(30),
        }
    }
}

impl Hosts {
    /// The host names for a server that listens on `address`, with additional names `also`.
    pub fn for_address(address: SocketAddr, also: Vec<Host>) -> Self {
        if address.ip().to_canonical().is_loopback() { Self::Loopback(also) } else { Self::Any }
    }

    /// True if a request with this `Host` header is served.
    pub(crate) fn allow(&self, host: &str) -> bool {
        let Self::Loopback(also) = self else { return true };
        let Some((name, port)) = split_port(host) else { return false };
        is_loopback(name) || also.iter().any(|allowed| allowed.matches(name, port))
    }
}

impl Host {
    fn matches(&self, name: &str, port: Option<u16>) -> bool {
        self.name.eq_ignore_ascii_case(name) && (self.port.is_none() || self.port == port)
    }
}

impl Origin {
    /// True if an `Origin` header names this origin.
    pub(crate) fn matches(&self, header: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(header)
    }
}

impl BasePath {
    /// The text, with which URLs begin.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The rest of a path that begins with it, which is never empty; `None` for other paths.
    pub(crate) fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        match path.strip_prefix(&self.0)? {
            _ if self.0.is_empty() => None,
            "" => Some("/"),
            rest => Some(rest).filter(|rest| rest.starts_with('/')),
        }
    }
}

impl FromStr for BasePath {
    type Err = BasePathError;

    fn from_str(text: &str) -> Result<Self, BasePathError> {
        let error = || BasePathError { text: text.to_owned() };
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(Self::default());
        }
        let mut segments = path.strip_prefix('/').ok_or_else(error)?.split('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let is_segment = |segment: &str| !["", ".", ".."].contains(&segment) && segment.bytes().all(is_plain);
        let is_own = segments.clone().next().is_some_and(zarrd_wire::routes::is_first_segment);
        match segments.all(is_segment) && !is_own {
            true => Ok(Self(path.to_owned())),
            false => Err(error()),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let error = || HostError { text: text.to_owned() };
        if text.contains('@') || text.parse::<Authority>().is_err() {
            return Err(error());
        }
        let (name, port) = split_port(text).filter(|(name, _)| !name.is_empty()).ok_or_else(error)?;
        Ok(Self { name: name.to_ascii_lowercase(), port })
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let error = || OriginError { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| error())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(error()) };
        // No path, not even `/`.
        if text.len() != scheme.len() + "://".len() + authority.as_str().len() || text.contains('@') {
            return Err(error());
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address without a port are inside its brackets.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port.parse().ok()?)),
        _ => (host, None),
    };
    Some((name, port))
}

fn is_loopback(name: &str) -> bool {
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    if let Some(v6) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return v6.parse::<Ipv6Addr>().is_ok_and(|address| IpAddr::V6(address).to_canonical().is_loopback());
    }
    name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_listed_hosts_are_allowed() {
        let hosts = Hosts::Loopback(vec!["Data.Lab".parse().unwrap(), "other:81".parse().unwrap()]);
        for good in [
            "localhost",
            "LOCALHOST:8000",
            "127.0.0.1",
            "127.1.2.3:80",
            "[::1]",
            "[::1]:8000",
            "data.lab",
            "data.lab:1",
            "other:81",
        ] {
            assert!(hosts.allow(good), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "10.0.0.1",
            "[::2]",
            "::1",
            "other",
            "other:82",
            "localhost:x",
            "localhost:99999",
            "user@localhost",
            "0.0.0.0",
        ] {
            assert!(!hosts.allow(bad), "{bad}");
            assert!(Hosts::Any.allow(bad), "{bad}");
        }
    }

    #[test]
    fn base_path_is_stripped_at_slashes() {
        let base: BasePath = "/lab/zarr/".parse().unwrap();
        assert_eq!(base.as_str(), "/lab/zarr");
        for (path, rest) in [
            ("/lab/zarr", Some("/")),
            ("/lab/zarr/", Some("/")),
            ("/lab/zarr/node/a", Some("/node/a")),
            ("/lab/zarrs", None),
            ("/lab", None),
            ("/node/lab/zarr", None),
        ] {
            assert_eq!(base.strip(path), rest, "{path}");
        }
        assert_eq!(BasePath::default().strip("/node"), None);
        assert_eq!("/".parse(), Ok(BasePath::default()));
        for bad in ["lab", "//", "/a//b", "/a b", "/a%20b", "/../a", "/store", "/s/x", "/browse", "/a?b", "/\"><b>"] {
            assert!(bad.parse::<BasePath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn loopback_address_restricts_hosts() {
        let at = |address: &str| Hosts::for_address(address.parse().unwrap(), Vec::new());
        assert_eq!(at("127.0.0.1:1"), Hosts::Loopback(Vec::new()));
        assert_eq!(at("[::1]:1"), Hosts::Loopback(Vec::new()));
        assert_eq!(at("0.0.0.0:1"), Hosts::Any);
        assert_eq!(at("[::]:1"), Hosts::Any);
    }

    #[test]
    fn invalid_origins_and_hosts_are_rejected() {
        let origin: Origin = "https://Viewer.example:8443".parse().unwrap();
        assert!(origin.matches(b"https://viewer.example:8443"));
        assert!(!origin.matches(b"https://viewer.example"));
        for bad in ["", "*", "null", "viewer.example", "https://", "https://a/", "https://a/b", "https://u@a"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
        for bad in ["", ":80", "a/b", "http://a", "a:x", "u@a"] {
            assert!(bad.parse::<Host>().is_err(), "{bad}");
        }
    }
}
