//! Frames of HTTP/2, written by hand.

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use crate::tls::tls_server::{TIMEOUT, TlsServer};

pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const CANCEL: [u8; 4] = [0, 0, 0, 8];
pub(crate) const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The header block of a `GET` of a path, in HPACK without compression.
pub(crate) fn get(path: &str) -> Vec<u8> {
    // `:method: GET`, `:scheme: https`, then `:path` and `:authority` with literal values.
    let mut block = vec![0x82, 0x87, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path.as_bytes());
    block.extend([0x01, 9]);
    block.extend(b"localhost");
    block
}

/// A connection after the preface and the client's settings.
pub(crate) async fn connect(server: &TlsServer) -> TlsStream<TcpStream> {
    let mut stream = server.connect(&["h2"]).await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    stream
}

/// Reads frames until one is of this type; returns its payload, or `None` if the server closes the connection before.
pub(crate) async fn read_until(stream: &mut (impl AsyncRead + Unpin), kind: u8) -> Option<Vec<u8>> {
    loop {
        let mut head = [0; 9];
        timeout(TIMEOUT, stream.read_exact(&mut head)).await.expect("a frame").ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == kind {
            return Some(payload);
        }
    }
}
