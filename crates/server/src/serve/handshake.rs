//! TLS handshakes.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig, crypto::aws_lc_rs, server::ResolvesServerCert},
    server::TlsStream,
};

use crate::request_log::LoggedError;

/// The first byte of a TLS record with a handshake message.
const HANDSHAKE_RECORD: u8 = 0x16;
/// Protocol names of ALPN, in the order of preference.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";
/// The response to a request that is not encrypted.
const PLAIN_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 66\r\n\
    connection: close\r\n\
    \r\n\
    This port serves HTTPS only: use a URL that begins with https://.\n";

/// The version of HTTP that a client and the server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection after its handshake.
pub(super) struct Accepted<S> {
    pub(super) stream: TlsStream<S>,
    pub(super) protocol: Protocol,
}

/// Returns the configuration of TLS with these certificates.
pub(super) fn config(certificates: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    let mut config = builder.with_cert_resolver(certificates);
    config.alpn_protocols = [HTTP2, HTTP1].map(<[u8]>::to_vec).into();
    Ok(config)
}

/// Accepts a connection, which `wrap` extends before anything is read. `None` if the client does not speak TLS; one
/// that speaks HTTP gets a response that says so.
pub(super) async fn accept<S>(
    stream: TcpStream,
    wrap: impl FnOnce(TcpStream) -> S,
    config: Arc<ServerConfig>,
) -> Option<Accepted<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let accepted = match first_byte(&stream).await {
        // Methods of HTTP begin with a letter.
        Ok(Some(byte)) if byte != HANDSHAKE_RECORD && byte.is_ascii_alphabetic() => {
            return respond_in_plain(wrap(stream)).await;
        }
        Ok(Some(_)) => TlsAcceptor::from(config).accept(wrap(stream)).await,
        Ok(None) => return None,
        Err(error) => Err(error),
    };
    let stream =
        accepted.inspect_err(|error| tracing::debug!(error = %LoggedError(error), "TLS handshake failed")).ok()?;
    let protocol = if stream.get_ref().1.alpn_protocol() == Some(HTTP2) { Protocol::Http2 } else { Protocol::Http1 };
    Some(Accepted { stream, protocol })
}

async fn first_byte(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    Ok((stream.peek(&mut byte).await? > 0).then_some(byte[0]))
}

async fn respond_in_plain<S, T>(mut stream: S) -> Option<T>
where
    S: AsyncWrite + Unpin,
{
    tracing::debug!("client sent plain HTTP to the HTTPS port");
    let responded = async {
        stream.write_all(PLAIN_RESPONSE).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    // The client may have left.
    let _: io::Result<()> = responded.await;
    None
}
