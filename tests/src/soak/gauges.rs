//! What `/metrics` says to be running, taken or waiting.

use std::time::{Duration, Instant};

use http::Method;

use crate::server::Server;

/// The gauges that are 0 when nothing is done.
const ENDINGS: [&str; 3] = ["_taken", "_taken_bytes", "_waiting"];
/// The gauge of the cache of decoded chunks, which grows until it is full.
const CACHED: &str = "zarrd_chunk_cache_used_bytes";
/// The gauge of requests, of which the one that asks is one.
const RUNNING: &str = "zarrd_http_requests_running";

/// The lines that say that something is not given back, once there are none or that time is over.
pub async fn taken_after(server: &Server, most: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let answer = server.request(Method::GET, "/metrics").send().await.expect("the metrics are always there");
        let taken = taken(&answer.text().await.expect("text"));
        if taken.is_empty() || begun.elapsed() > most {
            return taken;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The bytes of decoded chunks that the server has cached.
pub(super) async fn cached(server: &Server) -> u64 {
    let answer = server.request(Method::GET, "/metrics").send().await.expect("the metrics are always there");
    value(&answer.text().await.expect("text"), CACHED).expect("the gauge of the cache")
}

fn value(metrics: &str, name: &str) -> Option<u64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn taken(metrics: &str) -> Vec<String> {
    let is_taken = |line: &&str| {
        let Some((name, value)) = line.rsplit_once(' ') else { return false };
        let name = name.split('{').next().unwrap_or(name);
        let most = if name == RUNNING { 1.0 } else { 0.0 };
        let counts = name == RUNNING || ENDINGS.iter().any(|ending| name.ends_with(ending));
        counts && !line.starts_with('#') && value.parse::<f64>().is_ok_and(|value| value > most)
    };
    metrics.lines().filter(is_taken).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_gauge_is_checked() {
        let metrics = "# TYPE zarrd_memory_taken_bytes gauge\nzarrd_memory_taken_bytes 0\nzarrd_memory_bytes 5\n\
            zarrd_http_requests_running 1\nzarrd_threads_taken 2\nzarrd_threads_taken{of=\"decoding\"} 3\nzarrd_waiting 4\n";
        let expected = ["zarrd_threads_taken 2", "zarrd_threads_taken{of=\"decoding\"} 3", "zarrd_waiting 4"];
        assert_eq!(taken(metrics), expected);
        assert_eq!(taken("zarrd_http_requests_running 2").len(), 1, "another one");
        assert_eq!(value("# TYPE a gauge\na_b 1\na 22\n", "a"), Some(22));
        assert!(taken("zarrd_memory_taken_bytes 1").len() == 1 && taken("# EOF").is_empty());
    }
}
