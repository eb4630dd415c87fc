//! Warnings in the log of the program, which strangers cannot flood.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions only, and these have helpers")]

mod common;

use std::time::{Duration, Instant};

use common::{RunningServer, traced::TRACED};
use tracing_subscriber::filter::LevelFilter;
use zarrd_server::{Limits, Settings};

/// The lines that were logged so far.
fn lines() -> Vec<String> {
    TRACED.text().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn rejected_requests_are_a_warning_a_second() {
    let level = LevelFilter::WARN;
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(|| &TRACED).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let mut busy = server.connect().await;
    busy.send("PUT /store/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n").await;
    busy.until("\r\n\r\n").await;
    let rejected = async || {
        let answer = server.exchange("GET /store/v HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    };
    let start = Instant::now();
    for _ in 0..200 {
        rejected().await;
    }
    let (logged, seconds) = (lines(), start.elapsed().as_secs());
    assert!(logged.iter().all(|line| line.contains("WARN") && line.contains("busy")), "{logged:?}");
    assert!((1..=seconds + 1).contains(&(logged.len() as u64)), "{logged:?} in {seconds} s");
    // Those that were left out are counted.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    rejected().await;
    let left_out = |line: &String| {
        line.split_once(" left_out=").map_or(0, |(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
    };
    let logged = lines();
    let counted = logged.len() as u64 + logged.iter().map(left_out).sum::<u64>();
    assert_eq!(counted, 201, "{logged:?}");
}
