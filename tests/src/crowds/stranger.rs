//! Somebody else, who behaves.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use http::Method;
use reqwest::{Client, RequestBuilder};

use crate::{large_commits::Latencies, server::Server};

/// How long somebody waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long requests of one kind took.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    /// All of them.
    pub took: Latencies,
    /// How often the answer was no success.
    pub refused: usize,
}

/// What somebody saw who behaves.
#[derive(Clone, Debug, Default)]
pub struct Stranger {
    /// GETs of a small value, each by a new connection.
    pub gets: Waited,
    /// GETs of a single element.
    pub elements: Waited,
    /// PUTs of a node.
    pub nodes: Waited,
}

impl Stranger {
    /// Asks for as long as that, from another address than the crowd's. Elements and nodes only where there are nodes.
    pub(super) async fn behave(server: &Server, stay: Duration, nodes: bool) -> Self {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        let client = || Client::builder().local_address(from).timeout(PATIENCE);
        let anew = client().pool_max_idle_per_host(0).build().expect("a client");
        let client = client().build().expect("a client");
        let end = Instant::now() + stay;
        let gets = ask(end, 5, |_| anew.get(server.url("/store/small")));
        if !nodes {
            return Self { gets: gets.await, ..Self::default() };
        }
        let elements = ask(end, 15, |_| client.get(server.url("/array/others/one?select=5&format=raw")));
        let group = |number| format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"number":{number}}}}}"#);
        let nodes = ask(end, 15, |number| {
            client.request(Method::PUT, server.url("/node/others/node?overwrite")).body(group(number))
        });
        let (gets, elements, nodes) = tokio::join!(gets, elements, nodes);
        Self { gets, elements, nodes }
    }

    /// How often there was no success.
    pub fn refused(&self) -> usize {
        self.gets.refused + self.elements.refused + self.nodes.refused
    }
}

async fn ask(end: Instant, pause: u64, request: impl Fn(u64) -> RequestBuilder) -> Waited {
    let mut waited = Waited::default();
    for number in 0.. {
        let begun = Instant::now();
        if begun > end {
            break;
        }
        let whole = match request(number).send().await {
            Ok(answer) if answer.status().is_success() => answer.bytes().await.is_ok(),
            _ => false,
        };
        waited.took.add(begun.elapsed());
        waited.refused += usize::from(!whole);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    waited
}
