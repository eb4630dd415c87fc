//! A well-behaved client that measures its latencies during a crowd.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use http::Method;
use reqwest::{Client, RequestBuilder};

use crate::{large_commits::Latencies, server::Server};

/// The request timeout.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The latencies of requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct LatencyStats {
    /// The latencies of all requests.
    pub latencies: Latencies,
    /// The number of unsuccessful requests.
    pub failed: usize,
}

/// The observations of a well-behaved client.
#[derive(Clone, Debug, Default)]
pub struct BystanderLatencies {
    /// GETs of a small value, each over a new connection.
    pub gets: LatencyStats,
    /// GETs of a single element.
    pub elements: LatencyStats,
    /// PUTs of a node.
    pub nodes: LatencyStats,
}

impl BystanderLatencies {
    /// Sends requests for the duration `stay`, from another address than the crowd. Elements and nodes are requested
    /// only if they exist.
    pub(super) async fn measure(server: &Server, stay: Duration, nodes: bool) -> Self {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        let client = || Client::builder().local_address(from).timeout(TIMEOUT);
        let unpooled = client().pool_max_idle_per_host(0).build().expect("a client");
        let client = client().build().expect("a client");
        let end = Instant::now() + stay;
        let gets = send_repeatedly(end, 5, |_| unpooled.get(server.url("/store/small")));
        if !nodes {
            return Self { gets: gets.await, ..Self::default() };
        }
        let elements = send_repeatedly(end, 15, |_| client.get(server.url("/array/others/one?select=5&format=raw")));
        let group = |number| format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"number":{number}}}}}"#);
        let nodes = send_repeatedly(end, 15, |number| {
            client.request(Method::PUT, server.url("/node/others/node?overwrite")).body(group(number))
        });
        let (gets, elements, nodes) = tokio::join!(gets, elements, nodes);
        Self { gets, elements, nodes }
    }

    /// The number of unsuccessful requests.
    pub fn failed(&self) -> usize {
        self.gets.failed + self.elements.failed + self.nodes.failed
    }
}

async fn send_repeatedly(end: Instant, pause: u64, request: impl Fn(u64) -> RequestBuilder) -> LatencyStats {
    let mut waited = LatencyStats::default();
    for number in 0.. {
        let started = Instant::now();
        if started > end {
            break;
        }
        let response = match request(number).send().await {
            Ok(answer) if answer.status().is_success() => answer.bytes().await.is_ok(),
            _ => false,
        };
        waited.latencies.add(started.elapsed());
        waited.failed += usize::from(!response);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    waited
}
