//! What the operator decides.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU64,
    str::FromStr,
    time::Duration,
};

use http::{Uri, uri::Authority};

use crate::caller::Network;

/// How a store is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What somebody may do who does not say who they are.
    pub access: Access,
    /// The changes that the server makes at all, whoever asks.
    pub changes: Changes,
    /// The origins whose web pages may change the store; pages of any origin may read.
    pub origins: Vec<Origin>,
    /// The host names that requests may be for.
    pub hosts: Hosts,
    /// The networks of proxies, whose word is taken for who asks.
    pub proxies: Vec<Network>,
    /// How much of anything there may be.
    pub limits: Limits,
    /// How much memory all requests together may hold, how much the reading and writing of arrays may take, and how chunks are written.
    pub arrays: array::Options,
}

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reading.
    Read,
    /// Reading, setting and erasing.
    Write,
}

/// The changes that a server makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// As far as whoever asks may.
    Accepted,
    /// Never: the server is read-only.
    Rejected,
}

/// How much of anything there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes that a value has, and a body with elements.
    pub value: u64,
    /// The most bytes of elements that one answer has, where they are sent as they are in memory: `raw` and `npy`.
    pub selection: u64,
    /// The most bytes of elements, as they are in memory, that are written as text or shown as an image.
    pub text_selection: u64,
    /// The most bytes of a body that says what is to be read.
    pub read_request: u64,
    /// The most connections at a time. Beyond them, the one that has been idle for longest is closed for a new one; where none is idle, the new one is answered 503.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may be idle between two.
    pub header_timeout: Duration,
    /// How long the body of a request may make no progress.
    pub upload_timeout: Duration,
    /// How long a client may not take what it is sent.
    pub download_timeout: Duration,
    /// The bytes a second that a client sends of a body, and takes of an answer, at the least on average; pauses of the two times above apart. `None` for any.
    pub min_rate: Option<NonZeroU64>,
    /// How long running requests may go on after the server was told to stop.
    pub stop_timeout: Duration,
}

/// The host names that requests may be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// All of them: the server is reached through the network anyway.
    Any,
    /// Those of the loopback interface, and these. A web page whose own name was rebound to a loopback address
    /// names neither.
    Loopback(Vec<Host>),
}

/// A host name, with a port if only that one is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// The origin of a web page: a scheme, a host and perhaps a port, such as `https://viewer.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// A text is not an [`Origin`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an origin, such as https://viewer.example")]
pub struct OriginError {
    /// The text.
    pub text: String,
}

/// A text is not a [`Host`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host name, such as zarrd.example or zarrd.example:8000")]
pub struct HostError {
    /// The text.
    pub text: String,
}

impl Default for Settings {
    /// Open to everybody who can reach it under a loopback name, but to no other site's pages: what is right for a
    /// server on one's own machine.
    fn default() -> Self {
        Self {
            access: Access::Write,
            changes: Changes::Accepted,
            origins: Vec::new(),
            hosts: Hosts::Loopback(Vec::new()),
            proxies: Vec::new(),
            limits: Limits::default(),
            arrays: array::Options::default(),
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
    /// What is right for a server that listens on `address`, with the names `also` that the operator allows.
    pub fn for_address(address: SocketAddr, also: Vec<Host>) -> Self {
        if address.ip().to_canonical().is_loopback() { Self::Loopback(also) } else { Self::Any }
    }

    /// True if a request may be for `host`, the text of a `Host` header.
    pub(crate) fn allow(&self, host: &str) -> bool {
        let Self::Loopback(also) = self else { return true };
        let Some((name, port)) = split_port(host) else { return false };
        is_loopback(name) || also.iter().any(|known| known.matches(name, port))
    }
}

impl Host {
    fn matches(&self, name: &str, port: Option<u16>) -> bool {
        self.name.eq_ignore_ascii_case(name) && (self.port.is_none() || self.port == port)
    }
}

impl Origin {
    /// True if an `Origin` header names this one.
    pub(crate) fn matches(&self, header: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(header)
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
        // Nothing but the two, not even the `/` that an origin does not have.
        if text.len() != scheme.len() + "://".len() + authority.as_str().len() || text.contains('@') {
            return Err(error());
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address without a port are within its brackets.
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
    fn loopback_hosts() {
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
    fn hosts_follow_the_address() {
        let at = |address: &str| Hosts::for_address(address.parse().unwrap(), Vec::new());
        assert_eq!(at("127.0.0.1:1"), Hosts::Loopback(Vec::new()));
        assert_eq!(at("[::1]:1"), Hosts::Loopback(Vec::new()));
        assert_eq!(at("0.0.0.0:1"), Hosts::Any);
        assert_eq!(at("[::]:1"), Hosts::Any);
    }

    #[test]
    fn origins_and_hosts_as_the_operator_writes_them() {
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
