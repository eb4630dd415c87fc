//! A server embedded in a program: it serves a store that the program uses as well, on a port of its own, and stops.
//!
//! ```text
//! cargo run -p zarrd-server --example embedded
//! ```
//!
//! Anybody who reaches the port may read here and nobody may write, except the program. The store is in memory; a store in a
//! directory is `zarrd_store_local::LocalStore`. `zarrd_server::router` is the service without sockets, for programs that
//! have a server of their own.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use zarrd_server::{AccessPolicy, App, Right, Settings, get, serve};
use zarrd_store::{Key, MemoryStore, Precondition, WriteableStore};

const DOCUMENT: &str = r#"{"zarr_format":3,"node_type":"array","shape":[2,3],"data_type":"uint8","fill_value":0,
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":{"name":"default"},
"codecs":[{"name":"bytes"}]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let settings = Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() };
    let app = App::new(Arc::new(store.clone()), settings);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, app.clone(), async { drop(stopped.await) }));

    // What the program sets is served at once.
    store.set(&Key::parse("counts/zarr.json")?, DOCUMENT.into(), Precondition::none()).await?;
    store.set(&Key::parse("counts/c/0/0")?, vec![1, 2, 3, 4, 5, 6].into(), Precondition::none()).await?;

    // Over the network, as any client would.
    let response = request(address, "GET /array/counts?select=1").await?;
    println!("the second row: {}", response.lines().last().unwrap_or_default());
    let response = request(address, "DELETE /node/counts").await?;
    println!("a visitor who erases the array: {}", response.lines().next().unwrap_or_default());

    // Without a socket, for the program itself.
    let answer = get(&app, "/node/counts").await?;
    println!("the description of the array: {}", answer.status);

    // Running requests finish, new ones are not accepted.
    let _ = stop.send(());
    serving.await??;
    println!("stopped");
    Ok(())
}

/// Sends a request, and returns the response as text.
async fn request(address: std::net::SocketAddr, line: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
