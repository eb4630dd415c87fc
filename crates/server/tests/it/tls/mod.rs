//! TLS and HTTP/2.
mod certificates;
mod frames;
mod handshakes;
mod http2;
mod http2_abuse;
mod reload;
mod tls_server;
