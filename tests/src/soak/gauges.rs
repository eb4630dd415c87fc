//! Gauges of `/metrics` for resources in use.

use std::time::{Duration, Instant};

use http::Method;

use crate::server::Server;

/// The suffixes of gauges that are 0 on an idle server.
const SUFFIXES: [&str; 3] = ["_taken", "_taken_bytes", "_waiting"];
/// The gauge of the decoded-chunk cache, which grows until it is full.
const CACHED: &str = "zarrd_chunk_cache_used_bytes";
/// The gauge of running requests, which includes the request for it.
const RUNNING: &str = "zarrd_http_requests_running";

/// The lines of unreleased resources, once there are none or after the timeout.
pub async fn unreleased_after(server: &Server, limit: Duration) -> Vec<String> {
    let started = Instant::now();
    loop {
        let response = server.request(Method::GET, "/metrics").send().await.expect("the metrics are always there");
        let unreleased = unreleased(&response.text().await.expect("text"));
        if unreleased.is_empty() || started.elapsed() > limit {
            return unreleased;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The bytes of cached decoded chunks.
pub(super) async fn cached(server: &Server) -> u64 {
    let response = server.request(Method::GET, "/metrics").send().await.expect("the metrics are always there");
    value(&response.text().await.expect("text"), CACHED).expect("the gauge of the cache")
}

fn value(metrics: &str, name: &str) -> Option<u64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn unreleased(metrics: &str) -> Vec<String> {
    let is_unreleased = |line: &&str| {
        let Some((name, value)) = line.rsplit_once(' ') else { return false };
        let name = name.split('{').next().unwrap_or(name);
        let limit = if name == RUNNING { 1.0 } else { 0.0 };
        let counts = name == RUNNING || SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
        counts && !line.starts_with('#') && value.parse::<f64>().is_ok_and(|value| value > limit)
    };
    metrics.lines().filter(is_unreleased).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_gauge_is_checked() {
        let metrics = "# TYPE zarrd_memory_taken_bytes gauge\nzarrd_memory_taken_bytes 0\nzarrd_memory_bytes 5\n\
            zarrd_http_requests_running 1\nzarrd_threads_taken 2\nzarrd_threads_taken{of=\"decoding\"} 3\nzarrd_waiting 4\n";
        let expected = ["zarrd_threads_taken 2", "zarrd_threads_taken{of=\"decoding\"} 3", "zarrd_waiting 4"];
        assert_eq!(unreleased(metrics), expected);
        assert_eq!(unreleased("zarrd_http_requests_running 2").len(), 1, "another one");
        assert_eq!(value("# TYPE a gauge\na_b 1\na 22\n", "a"), Some(22));
        assert!(unreleased("zarrd_memory_taken_bytes 1").len() == 1 && unreleased("# EOF").is_empty());
    }
}
