//! A client: declares an array, writes, appends and reads its elements, and computes a mean on the server.
//!
//! ```text
//! cargo run -p zarrd-client --example elements [URL]
//! ```
//!
//! It uses the server at URL, below `/example`, and erases what it made there. Without URL it starts a server with a store
//! in memory in this process.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use serde_json::json;
use tokio::net::TcpListener;
use zarrd_client::{ArrayClient, BaseUrl, CreateOptions, NodePath, Precondition, Query, Zom, select};
use zarrd_server::{App, Settings, serve};
use zarrd_store::MemoryStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => start_server().await?,
    };
    let arrays = ArrayClient::new(BaseUrl::parse(&url)?)?;
    let nodes = arrays.nodes();
    let path = NodePath::parse("example/temperature")?;

    // A hierarchy is declared as one tree: here, one array of v3. Its group is created with it.
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "float32", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default"}, "dimension_names": ["time", "place"],
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 3}}],
    });
    nodes.create(&path, &Zom::parse(array.to_string())?, &CreateOptions::default()).await?;

    // Every write is one commit: readers see all of it or nothing.
    let days: &[f32] = &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0];
    arrays.write(&path, select![..], days, Precondition::none()).await?;
    let next: &[f32] = &[7.0, 8.0, 9.0];
    let report = arrays.append(&path, 0, next, Precondition::none()).await?;
    println!("after the append: {:?}", report.shape);

    let last = arrays.read_as::<f32>(&path, select![-1]).await?;
    println!("the last day: {:?}", last.content);
    let mean = arrays.query_as::<f32>(&path, &Query::new().reduce(["mean"], ["time"])).await?;
    println!("the mean of each place: {:?}", mean.content);

    nodes.erase(&NodePath::parse("example")?, Precondition::none()).await?;
    Ok(())
}

/// Starts a server that runs until the process ends, and returns its URL.
async fn start_server() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let app = App::new(Arc::new(MemoryStore::new()), Settings::default());
    tokio::spawn(serve(listener, app, std::future::pending()));
    Ok(url)
}
