//! Callers, the unit of fair sharing: client addresses, resolved behind trusted proxies.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use http::{HeaderMap, HeaderName, header::FORWARDED};
use zarrd_array::Caller;

use crate::forwarded::{Malformed, forwarded_for};

/// A network such as `10.0.0.0/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: u128,
    /// The length of the network prefix in the 128 bits of an IPv6 address; IPv4 addresses are mapped to IPv6.
    bits: u32,
}

/// The text is not a [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a network, such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NetworkError {
    /// The invalid text.
    pub text: String,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    is_proxy: bool,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The caller at an address. All addresses of an IPv6 /64 are one caller, since a client usually has all of them.
pub(crate) fn for_address(address: IpAddr) -> Caller {
    Caller::new(match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
    })
}

/// The address of the client whose request was received from `peer`. If `peer` is one of the `proxies`, this is the last
/// address before them that the headers name.
///
/// If `Forwarded` and `X-Forwarded-For` disagree, at most one of them was set by a proxy, so the client is `peer`, as with
/// a malformed `Forwarded`.
pub(crate) fn resolve(proxies: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    if !is_proxy(proxies, peer) {
        return peer;
    }
    let legacy =
        || headers.get_all(X_FORWARDED_FOR).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let legacy = headers.contains_key(X_FORWARDED_FOR).then(|| client_address(proxies, peer, legacy().map(address)));
    let standard = headers.contains_key(FORWARDED).then(|| match forwarded_for(headers) {
        Ok(nodes) => client_address(proxies, peer, nodes.iter().map(|node| address(node.as_deref()?))),
        Err(Malformed) => peer,
    });
    match (legacy, standard) {
        (Some(one), Some(other)) if one != other => peer,
        (one, other) => one.or(other).unwrap_or(peer),
    }
}

impl Peer {
    /// The peer at an address, with the trusted proxies.
    pub(crate) fn new(proxies: &[Network], address: IpAddr) -> Self {
        Self { address: address.to_canonical(), is_proxy: is_proxy(proxies, address) }
    }

    /// The address, unless it is that of a trusted proxy.
    pub(crate) fn untrusted(self) -> Option<IpAddr> {
        (!self.is_proxy).then_some(self.address)
    }
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        (bits_of(address) ^ self.address) & mask(self.bits) == 0
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError { text: text.to_owned() };
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse::<u32>().map_err(|_| error())?,
            Some(_) => return Err(error()),
            None => max_bits,
        };
        if bits > max_bits {
            return Err(error());
        }
        let bits = bits + 128 - max_bits;
        Ok(Self { address: bits_of(address) & mask(bits), bits })
    }
}

fn bits_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0)
}

fn is_proxy(proxies: &[Network], address: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(address))
}

/// The last address that is not a proxy, or the first if all are proxies. An invalid address ends the search.
fn client_address(proxies: &[Network], peer: IpAddr, addresses: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
    let addresses: Vec<_> = addresses.collect();
    let mut client = peer;
    for address in addresses.into_iter().rev() {
        let Some(address) = address else { break };
        client = address;
        if !is_proxy(proxies, address) {
            break;
        }
    }
    client
}

/// Parses an address with an optional port or in brackets.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let bracketed = || Some(IpAddr::V6(text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?));
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(bracketed).or_else(with_port)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn of(text: &str) -> Caller {
        super::for_address(ip(text))
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn addresses_that_are_one_caller() {
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("192.0.2.1"), Caller::UNKNOWN);
    }

    #[test]
    fn networks() {
        let contains = |network: &str, address: &str| network.parse::<Network>().unwrap().contains(ip(address));
        assert!(contains("10.0.0.0/8", "10.1.2.3") && contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1") && !contains("10.0.0.0/8", "2001:db8::1"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3/32", "10.1.2.4"));
        assert!(contains("0.0.0.0/0", "1.2.3.4") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:ffff::1") && contains("::/0", "1.2.3.4"));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "10.0.0.0/+8", "::/129", "10.0.0.0/8/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_address_before_the_proxies() {
        let proxies = ["10.0.0.0/8".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
        let behind =
            |peer, lines: &[(&'static str, &str)]| for_address(super::resolve(&proxies, ip(peer), &headers(lines)));
        const X: &str = "x-forwarded-for";
        const F: &str = "forwarded";
        // The headers of a client that is not a proxy are ignored.
        assert_eq!(behind("192.0.2.9", &[(X, "192.0.2.1")]), of("192.0.2.9"));
        assert_eq!(behind("10.0.0.1", &[]), of("10.0.0.1"));
        for (line, caller) in [
            ("192.0.2.1", "192.0.2.1"),
            ("198.51.100.7, 192.0.2.1", "192.0.2.1"),
            ("198.51.100.7, 192.0.2.1:80 , 10.0.0.2", "192.0.2.1"),
            ("[2001:db8:1::1]:80,10.9.9.9", "2001:db8:1::1"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
            ("nonsense", "10.0.0.1"),
        ] {
            assert_eq!(behind("10.0.0.1", &[(X, line)]), of(caller), "{line}");
        }
        assert_eq!(behind("10.0.0.1", &[(X, "198.51.100.7"), (X, "192.0.2.1")]), of("192.0.2.1"));
        for (line, caller) in [
            ("for=192.0.2.1", "192.0.2.1"),
            ("for=198.51.100.7;by=x, proto=http;For=\"192.0.2.1:47\";host=a", "192.0.2.1"),
            ("for=\"[2001:db8:1::1]:4711\", for=10.2.3.4", "2001:db8:1::1"),
            ("for=192.0.2.1;host=\"a,for=198.51.100.7\"", "192.0.2.1"),
            ("proto=https;host=\"a;for=198.51.100.7\";for=192.0.2.1", "192.0.2.1"),
            ("for=198.51.100.7;x=\", for=192.0.2.1", "10.0.0.1"),
            ("for=192.0.2.1;for=198.51.100.7", "10.0.0.1"),
            ("for=_hidden", "10.0.0.1"),
            ("by=192.0.2.1", "10.0.0.1"),
        ] {
            assert_eq!(behind("10.0.0.1", &[(F, line)]), of(caller), "{line}");
        }
        let both = |one, other| behind("10.0.0.1", &[(X, one), (F, other)]);
        assert_eq!(both("192.0.2.1", "for=192.0.2.1"), of("192.0.2.1"));
        assert_eq!(both("192.0.2.1", "for=198.51.100.7"), of("10.0.0.1"), "one of the two is made up");
    }
    proptest! {
        /// A client may send anything, to which its proxy appends the client's address.
        #[test]
        fn client_is_the_one_that_the_proxy_has_appended_or_none(
            forged in r#"(for=|For=|x=|=|6\.6\.6\.6|10\.0\.0\.9|"|;|,|\\| |\t|\[::1\]|:80|[!-~é]){0,14}"#,
            on_own_line: bool,
            appended in prop::sample::select(&["for=192.0.2.1", "For=\"192.0.2.1:47\"", "by=x;for=\"192.0.2.1\";host=a"]),
        ) {
            let proxies = ["10.0.0.0/8".parse().unwrap()];
            let client = |name: HeaderName, appended: &str| {
                let mut headers = HeaderMap::new();
                let line = if on_own_line { forged.clone() } else { format!("{forged}, {appended}") };
                headers.append(&name, HeaderValue::from_bytes(line.as_bytes()).unwrap());
                if on_own_line {
                    headers.append(&name, HeaderValue::from_str(appended).unwrap());
                }
                super::resolve(&proxies, ip("10.0.0.1"), &headers)
            };
            prop_assert_eq!(client(X_FORWARDED_FOR, "192.0.2.1"), ip("192.0.2.1"));
            let forwarded = client(FORWARDED, appended);
            prop_assert!([ip("192.0.2.1"), ip("10.0.0.1")].contains(&forwarded), "{}", forwarded);
        }
    }
}
