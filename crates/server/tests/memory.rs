//! The memory that requests share: who waits for it, who does not, and that all of it comes back.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod common;

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use common::{
    Answer, Site,
    arrays::{put, v3, v3_with},
    read, scarce,
};
use futures::{StreamExt, stream};
use http::{Method, Request, StatusCode, header::HOST};
use serde_json::{Value, json};
use server::Caller;
use tokio::time::{Instant, sleep, timeout};
use wire::problem::ProblemType;

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

fn request(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(HOST, "localhost:8000");
    request.header("content-type", "application/json").body(body.into()).unwrap()
}

fn of_caller(number: u128, mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(Caller::new(number));
    request
}

/// The lines of the metrics of what is shared, as names and numbers.
async fn shared(site: &Site) -> Vec<(String, u64)> {
    let text = site.get("/metrics", &[]).await;
    let lines = text.text().lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| line.starts_with("zarrd_memory") || line.starts_with("zarrd_decoding"));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, amount)| (name.into(), amount.parse().unwrap()))
        .collect()
}

/// Waits until nothing is taken any more, and nobody waits.
async fn nothing_is_taken(site: &Site) {
    let begun = std::time::Instant::now();
    loop {
        let shared = shared(site).await;
        assert_eq!(shared.len(), 6, "{shared:?}");
        let total = |(name, _): &&(String, u64)| ["zarrd_memory_bytes", "zarrd_decoding_threads"].contains(&&**name);
        assert!(shared.iter().filter(total).all(|(_, amount)| *amount > 0), "{shared:?}");
        if shared.iter().filter(|line| !total(line)).all(|(_, amount)| *amount == 0) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{shared:?}");
        std::thread::sleep(Duration::from_millis(20));
        tokio::task::yield_now().await;
    }
}

/// `[[0,0],[1,0],…]`: points that each are in a chunk of their own.
fn points(count: u64) -> String {
    json!({"points": (0..count).map(|row| [row, 0]).collect::<Vec<_>>()}).to_string()
}

fn gzip() -> Value {
    json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}])
}

#[tokio::test(start_paused = true)]
async fn a_request_that_holds_memory_does_not_wait() {
    let (site, served) = scarce(PATIENCE);
    v3(&site, "a", json!("uint8"), &[1 << 20, 4], &[1, 4], json!(0)).await;
    v3_with(&site, "b", json!("uint8"), &[1 << 20, 2 << 20], &[1, 2 << 20], json!(0), gzip()).await;
    let read = |count| site.send(request(Method::POST, "/array/b?read", points(count)));
    assert_eq!(read(2000).await.status(), StatusCode::OK);
    // The body finds its memory, and its plan does not.
    let others = served.arrays().memory().claim(Caller::new(7)).take(12 * MIB).await.unwrap();
    let begun = Instant::now();
    let answer = common::read(read(2000).await).await;
    let detail = answer.problem(ProblemType::Busy).detail;
    assert!(detail.contains("--max-memory"), "{detail}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // A request that has nothing waits.
    let more = served.arrays().memory().claim(Caller::new(8)).take(2 * MIB).await.unwrap();
    let waiting = site.get("/array/a?select=:3000&format=raw", &[]);
    let (answer, ()) = tokio::join!(waiting, async {
        sleep(PATIENCE / 2).await;
        assert_eq!(shared(&site).await.iter().find(|(name, _)| name == "zarrd_memory_waiting").unwrap().1, 1);
        drop(others);
    });
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 12_000));
    assert_eq!(begun.elapsed(), PATIENCE / 2);
    // What is sent as it is in memory holds it until it is sent.
    drop((answer, more));
    nothing_is_taken(&site).await;
}

#[tokio::test(start_paused = true)]
async fn memory_of_nodes_is_that_of_their_callers() {
    let (site, served) = scarce(PATIENCE);
    let text = "x".repeat(300 << 10);
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"text": text}});
    put(&site, "g/zarr.json", group.to_string().into_bytes()).await;
    let held = served.arrays().memory().claim(Caller::new(1)).take(15 * MIB).await.unwrap();
    let ask = async |caller| read(site.send(of_caller(caller, request(Method::GET, "/node/g", ""))).await).await;
    let (first, second) = tokio::join!(ask(1), ask(2));
    first.problem(ProblemType::TooManyRequests);
    second.problem(ProblemType::Busy);
    drop(held);
    for caller in [1, 2] {
        assert_eq!(ask(caller).await.status, StatusCode::OK);
    }
    nothing_is_taken(&site).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_half_of_it_is_told_so() {
    let (site, served) = scarce(PATIENCE);
    v3(&site, "a", json!("uint8"), &[1 << 20, 4], &[1, 4], json!(0)).await;
    let _own = served.arrays().memory().claim(Caller::new(1)).take(14 * MIB).await.unwrap();
    for (caller, kind) in [(1, ProblemType::TooManyRequests), (2, ProblemType::Busy)] {
        let begun = Instant::now();
        let asked = of_caller(caller, request(Method::GET, "/array/a?select=:3000&format=raw", ""));
        let answer = read(site.send(asked).await).await;
        let detail = answer.problem(kind).detail;
        assert!(detail.contains("--max-memory"), "{detail}");
        assert_eq!((answer.header("retry-after"), begun.elapsed()), ("1", PATIENCE));
    }
}

/// Everything that is answered with the default is answered with the least memory, or refused in a way that says what is missing.
#[tokio::test]
async fn the_least_memory_is_enough_for_most() {
    let (site, _) = scarce(PATIENCE);
    v3_with(&site, "s", json!("string"), &[3], &[3], json!("ab"), json!([{"name": "vlen-utf8"}])).await;
    v3(&site, "m", json!("uint8"), &[2048, 2048], &[512, 512], json!(1)).await;
    v3(&site, "large", json!("uint8"), &[4096, 2048], &[512, 512], json!(1)).await;
    for path in ["/array/s?format=npy", "/array/s", "/array/m?format=raw", "/array/m?format=json", "/node/?depth=all"] {
        let answer = site.get(path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:.300}", answer.text());
    }
    assert_eq!(site.get("/array/m?select=:1024&format=png", &[]).await.status, StatusCode::OK);
    let refused = |answer: Answer| {
        let problem = answer.problem(ProblemType::TooMuchMemory);
        assert!(problem.detail.contains("--max-memory"), "{}", problem.detail);
        assert_eq!(problem.members.limit, Some(15 * MIB));
        assert!(problem.members.size.unwrap() > 15 * MIB);
    };
    refused(site.get("/array/large?format=png", &[]).await);
    let many = points(200_000);
    refused(read(site.send(request(Method::POST, "/array/m?read", many.clone())).await).await);
    refused(site.ask(Method::PUT, "/node/n", &[("content-type", "application/json")], many).await);
    nothing_is_taken(&site).await;
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Finished,
    Refused,
    Left,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_that_was_taken_comes_back() {
    let (site, _) = scarce(Duration::from_secs(1));
    let site = Arc::new(site);
    v3_with(&site, "a", json!("uint8"), &[64, 1 << 18], &[1, 1 << 18], json!(0), gzip()).await;
    put(&site, "junk/zarr.json", b"{".to_vec()).await;
    let slow = |len: usize| {
        let pieces = stream::iter((0..len).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![1; 64 << 10]))));
        Body::from_stream(pieces.then(|piece| async {
            sleep(Duration::from_millis(5)).await;
            piece
        }))
    };
    let nested = format!("[{}0]", "0,".repeat((1 << 18) - 1));
    let asked = |number: usize| match number % 10 {
        0 => request(Method::GET, "/array/a?format=raw", ""),
        1 => request(Method::GET, "/array/a?select=:4&format=json", ""),
        2 => request(Method::GET, "/array/a?select=:4&format=png", ""),
        3 => request(Method::POST, "/array/a?read", points(3000)),
        4 => request(Method::PUT, &format!("/array/a?select={}", number % 64), nested.clone()),
        5 => request(Method::GET, "/store/?list=keys&limit=10000", ""),
        6 => request(Method::GET, "/node/?depth=all", ""),
        7 => request(Method::PUT, "/node/n", points(5000)),
        8 => request(Method::GET, "/array/junk", ""),
        _ => {
            let mut write = request(Method::PUT, "/array/a?select=8:12", slow(16));
            write.headers_mut().insert("content-type", "application/octet-stream".parse().unwrap());
            write
        }
    };
    let clients = (0..30).map(|number| {
        let (site, request) = (site.clone(), of_caller(number as u128 % 4, asked(number)));
        tokio::spawn(async move {
            // One goes away before the answer, one in the middle of it, and one takes it to its end.
            let patience = if number % 3 == 0 { Duration::from_millis(number as u64) } else { Duration::from_secs(60) };
            let Ok(answer) = timeout(patience, site.send(request)).await else { return Outcome::Left };
            let refused = !answer.status().is_success();
            let mut body = answer.into_body().into_data_stream();
            while body.next().await.is_some() {
                if number % 3 == 1 {
                    return Outcome::Left;
                }
            }
            if refused { Outcome::Refused } else { Outcome::Finished }
        })
    });
    let mut outcomes = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        outcomes.push(timeout(Duration::from_secs(60), client).await.unwrap().unwrap());
    }
    for outcome in [Outcome::Left, Outcome::Refused, Outcome::Finished] {
        assert!(outcomes.contains(&outcome), "{outcomes:?}");
    }
    // Each kind alone, where there is memory.
    for number in 0..10 {
        drop(read(site.send(asked(number)).await).await);
    }
    nothing_is_taken(&site).await;
    assert_eq!(site.get("/array/a?select=4,0", &[]).await.text(), "0");
}

/// Rows are written whole, each by one client, and rows are appended, with memory for about one write at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_with_little_memory_end_in_time() {
    let patience = Duration::from_millis(500);
    for round in 0..3_usize {
        let (site, served) = scarce(patience);
        let site = Arc::new(site);
        let row = 1 << 20;
        v3_with(&site, "a", json!("uint8"), &[16, row], &[3, row / 4], json!(0), gzip()).await;
        // Some of it is never there.
        let others = served.arrays().memory().claim(Caller::new(9)).take(round as u64 * 2 * MIB).await.unwrap();
        let write = |number: usize| {
            let body = vec![number as u8 + 1; row as usize];
            let (method, query) = match number % 4 {
                3 => (Method::POST, "append=0".to_owned()),
                _ => (Method::PUT, format!("select={number}")),
            };
            let mut write = request(method, &format!("/array/a?{query}"), body);
            write.headers_mut().insert("content-type", "application/octet-stream".parse().unwrap());
            of_caller(number as u128 % 3, write)
        };
        let writes = (0..16).map(|number| {
            let (site, write) = (site.clone(), write(number));
            tokio::spawn(async move {
                let answer = timeout(Duration::from_secs(60), async { read(site.send(write).await).await });
                (number, answer.await.unwrap_or_else(|_| panic!("the write {number} hangs")))
            })
        });
        let mut done = Vec::new();
        for write in writes.collect::<Vec<_>>() {
            let (number, answer) = write.await.unwrap();
            match answer.status {
                StatusCode::OK => done.push(number),
                StatusCode::TOO_MANY_REQUESTS => drop(answer.problem(ProblemType::TooManyRequests)),
                _ => drop(answer.problem(ProblemType::Busy)),
            }
        }
        assert!(!done.is_empty(), "round {round}: nobody had any memory");
        drop(others);
        nothing_is_taken(&site).await;
        for number in 0..16 {
            let expected = if number % 4 != 3 && done.contains(&number) { number as u8 + 1 } else { 0 };
            let found = site.get(&format!("/array/a?select={number}&format=raw"), &[]).await;
            assert!(found.body.len() as u64 == row && found.body.iter().all(|&byte| byte == expected), "{number}");
        }
        let appended = done.iter().filter(|&&number| number % 4 == 3).count();
        assert_eq!(site.head("/array/a", &[]).await.header("zarr-shape"), format!("{},{row}", 16 + appended));
    }
}
