//! The client that connects to a service.

use std::{net::ToSocketAddrs, str::FromStr, time::Duration};

use object_store::{ClientConfigKey, ClientOptions, Error};
use rand::seq::SliceRandom;
use reqwest::{
    Certificate, Client, NoProxy, Proxy,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};

/// Makes a client of these options, as the library would, that follows no redirect.
///
/// The library's own client follows them to any host, and takes along what only the service may see: the session token,
/// and in the `Referer` the signature of the URL. What the other host answers would be served as the value.
pub(crate) fn connect(options: &ClientOptions) -> object_store::Result<Client> {
    use ClientConfigKey as Key;
    let text = |key: Key| options.get_config_value(&key);
    let is_set = |key: Key| text(key).map_or(Ok(false), |value| boolean(&value));
    let time = |key: Key| text(key).map(|value| duration(&value)).transpose();
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(text(Key::UserAgent).unwrap_or_else(|| concat!("zarrd/", env!("CARGO_PKG_VERSION")).to_owned()))
        // Another crate may enable these, and decoded bytes are not those of the value.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .https_only(!is_set(Key::AllowHttp)?)
        .danger_accept_invalid_certs(is_set(Key::AllowInvalidCertificates)?)
        .http2_keep_alive_while_idle(is_set(Key::Http2KeepAliveWhileIdle)?);
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(url) = text(Key::ProxyUrl) {
        if let Some(certificate) = text(Key::ProxyCaCertificate) {
            builder = builder.tls_certs_merge([Certificate::from_pem(certificate.as_bytes()).map_err(failed)?]);
        }
        let excludes = text(Key::ProxyExcludes).and_then(|excludes| NoProxy::from_string(&excludes));
        builder = builder.proxy(Proxy::all(url).map_err(failed)?.no_proxy(excludes));
    }
    if is_set(Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only([]);
    }
    if let Some(time) = time(Key::Timeout)? {
        builder = builder.timeout(time);
    }
    if let Some(time) = time(Key::ConnectTimeout)? {
        builder = builder.connect_timeout(time);
    }
    if let Some(time) = time(Key::ReadTimeout)? {
        builder = builder.read_timeout(time);
    }
    if let Some(time) = time(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(time);
    }
    if let Some(count) = text(Key::PoolMaxIdlePerHost) {
        builder = builder.pool_max_idle_per_host(number(&count)?);
    }
    if let Some(time) = time(Key::Http2KeepAliveInterval)? {
        builder = builder.http2_keep_alive_interval(time);
    }
    if let Some(time) = time(Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(time);
    }
    if let Some(size) = text(Key::Http2MaxFrameSize) {
        builder = builder.http2_max_frame_size(Some(number(&size)?));
    }
    if is_set(Key::Http1Only)? {
        builder = builder.http1_only();
    }
    if is_set(Key::Http2Only)? {
        builder = builder.http2_prior_knowledge();
    }
    if is_set(Key::RandomizeAddresses)? {
        builder = builder.dns_resolver(Shuffled);
    }
    builder.build().map_err(failed)
}

/// Resolves names to addresses in a random order, so that requests are spread over the servers of a service.
#[derive(Debug)]
struct Shuffled;

impl Resolve for Shuffled {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let resolved = zarrd_executor::run_blocking(move || {
                // The port is replaced by that of the URL.
                let mut addresses: Vec<_> = (name.as_str(), 0).to_socket_addrs()?.collect();
                addresses.shuffle(&mut rand::rng());
                Ok::<Addrs, std::io::Error>(Box::new(addresses.into_iter()))
            });
            Ok(resolved.await??)
        })
    }
}

/// Parses a boolean as the library does.
pub(crate) fn boolean(text: &str) -> object_store::Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "y" => Ok(true),
        "0" | "false" | "off" | "no" | "n" => Ok(false),
        _ => Err(unreadable(text, "boolean")),
    }
}

fn duration(text: &str) -> object_store::Result<Duration> {
    humantime::parse_duration(text).map_err(|_| unreadable(text, "duration"))
}

fn number<N: FromStr>(text: &str) -> object_store::Result<N> {
    text.parse().map_err(|_| unreadable(text, "number"))
}

fn unreadable(text: &str, kind: &str) -> Error {
    Error::Generic { store: "Config", source: format!("failed to parse \"{text}\" as {kind}").into() }
}

fn failed(error: reqwest::Error) -> Error {
    Error::Generic { store: "HTTP client", source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_read() {
        use ClientConfigKey as Key;
        let with = |key, value: &str| connect(&ClientOptions::new().with_config(key, value));
        connect(&ClientOptions::new()).unwrap();
        for (key, valid, invalid) in [
            (Key::AllowHttp, "on", Some("maybe")),
            (Key::AllowInvalidCertificates, "1", Some("maybe")),
            (Key::NoSystemCertificates, "true", Some("maybe")),
            (Key::Http1Only, "no", Some("maybe")),
            (Key::Http2Only, "Y", Some("maybe")),
            (Key::Http2KeepAliveWhileIdle, "yes", Some("maybe")),
            (Key::RandomizeAddresses, "off", Some("maybe")),
            (Key::Timeout, "1h 5m", Some("soon")),
            (Key::ConnectTimeout, "300ms", Some("soon")),
            (Key::ReadTimeout, "2s", Some("soon")),
            (Key::PoolIdleTimeout, "2s", Some("soon")),
            (Key::Http2KeepAliveInterval, "2s", Some("soon")),
            (Key::Http2KeepAliveTimeout, "2s", Some("soon")),
            (Key::PoolMaxIdlePerHost, "3", Some("-1")),
            (Key::Http2MaxFrameSize, "20000", Some("-1")),
            (Key::ProxyUrl, "http://127.0.0.1:1", Some("::")),
            (Key::ProxyExcludes, "localhost", None),
            (Key::UserAgent, "lab", None),
        ] {
            assert!(with(key, valid).is_ok(), "{key:?}");
            if let Some(invalid) = invalid {
                assert!(with(key, invalid).is_err(), "{key:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_name_is_resolved_to_all_of_its_addresses() {
        let addresses = Shuffled.resolve("localhost".parse().unwrap()).await.map_err(|error| error.to_string());
        let addresses: Vec<_> = addresses.unwrap().collect();
        assert!(!addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback()), "{addresses:?}");
    }
}
