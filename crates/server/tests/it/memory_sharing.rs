//! Sharing of memory among requests.

use std::{sync::Arc, time::Duration};

use crate::common::{
    TestResponse, TestServer,
    arrays::{put, v3, v3_with},
    low_memory_server, read,
};
use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, Request, StatusCode, header::HOST};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use zarrd_server::Caller;
use zarrd_wire::problem::ProblemType;

const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

fn request(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(HOST, "localhost:8000");
    request.header("content-type", "application/json").body(body.into()).unwrap()
}

fn request_of(number: u128, mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(Caller::new(number));
    request
}

/// The metrics of shared resources.
async fn shared_server(server: &TestServer) -> Vec<(String, u64)> {
    let text = server.get("/metrics", &[]).await;
    let lines = text.text().lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| line.starts_with("zarrd_memory") || line.starts_with("zarrd_decoding"));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, amount)| (name.into(), amount.parse().unwrap()))
        .collect()
}

/// Waits until nothing is taken and nothing waits.
async fn assert_all_released(server: &TestServer) {
    let begun = std::time::Instant::now();
    loop {
        let shared_server = shared_server(server).await;
        assert_eq!(shared_server.len(), 6, "{shared_server:?}");
        let total = |(name, _): &&(String, u64)| ["zarrd_memory_bytes", "zarrd_decoding_threads"].contains(&&**name);
        assert!(shared_server.iter().filter(total).all(|(_, amount)| *amount > 0), "{shared_server:?}");
        if shared_server.iter().filter(|line| !total(line)).all(|(_, amount)| *amount == 0) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{shared_server:?}");
        std::thread::sleep(Duration::from_millis(20));
        tokio::task::yield_now().await;
    }
}

/// `[[0,0],[1,0],…]`: points that each lie in another chunk.
fn points(count: u64) -> String {
    json!({"points": (0..count).map(|row| [row, 0]).collect::<Vec<_>>()}).to_string()
}

fn gzip() -> Value {
    json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}])
}

#[tokio::test(start_paused = true)]
async fn request_holding_memory_does_not_wait() {
    let (server, served) = low_memory_server(TIMEOUT);
    v3(&server, "a", json!("uint8"), &[1 << 20, 4], &[1, 4], json!(0)).await;
    v3_with(&server, "b", json!("uint8"), &[1 << 20, 2 << 20], &[1, 2 << 20], json!(0), gzip()).await;
    let read = |count| server.send(request(Method::POST, "/array/b?read", points(count)));
    assert_eq!(read(2000).await.status(), StatusCode::OK);
    // The body gets memory, but the plan does not.
    let others = served.arrays().memory().claim(Caller::new(7)).take(12 * MIB).await.unwrap();
    let begun = Instant::now();
    let answer = crate::common::read(read(2000).await).await;
    let detail = answer.problem(ProblemType::Busy).detail;
    assert!(detail.contains("--max-memory"), "{detail}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // A request that holds nothing waits.
    let more = served.arrays().memory().claim(Caller::new(8)).take(2 * MIB).await.unwrap();
    let waiting = server.get("/array/a?select=:3000&format=raw", &[]);
    let (answer, ()) = tokio::join!(waiting, async {
        sleep(TIMEOUT / 2).await;
        assert_eq!(shared_server(&server).await.iter().find(|(name, _)| name == "zarrd_memory_waiting").unwrap().1, 1);
        drop(others);
    });
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 12_000));
    assert_eq!(begun.elapsed(), TIMEOUT / 2);
    // A passthrough response holds its memory until it is sent.
    drop((answer, more));
    assert_all_released(&server).await;
}

#[tokio::test(start_paused = true)]
async fn node_memory_is_charged_to_the_caller() {
    let (server, served) = low_memory_server(TIMEOUT);
    let text = "x".repeat(300 << 10);
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"text": text}});
    put(&server, "g/zarr.json", group.to_string().into_bytes()).await;
    let held = served.arrays().memory().claim(Caller::new(1)).take(15 * MIB).await.unwrap();
    let ask = async |caller| read(server.send(request_of(caller, request(Method::GET, "/node/g", ""))).await).await;
    let (first, second) = tokio::join!(ask(1), ask(2));
    first.problem(ProblemType::TooManyRequests);
    second.problem(ProblemType::Busy);
    drop(held);
    for caller in [1, 2] {
        assert_eq!(ask(caller).await.status, StatusCode::OK);
    }
    assert_all_released(&server).await;
}

#[tokio::test(start_paused = true)]
async fn caller_with_half_of_memory_gets_429() {
    let (server, served) = low_memory_server(TIMEOUT);
    v3(&server, "a", json!("uint8"), &[1 << 20, 4], &[1, 4], json!(0)).await;
    let _own = served.arrays().memory().claim(Caller::new(1)).take(14 * MIB).await.unwrap();
    for (caller, kind) in [(1, ProblemType::TooManyRequests), (2, ProblemType::Busy)] {
        let begun = Instant::now();
        let asked = request_of(caller, request(Method::GET, "/array/a?select=:3000&format=raw", ""));
        let answer = read(server.send(asked).await).await;
        let detail = answer.problem(kind).detail;
        assert!(detail.contains("--max-memory"), "{detail}");
        assert_eq!((answer.header("retry-after"), begun.elapsed()), ("1", TIMEOUT));
    }
}

/// Requests that succeed by default also succeed with the minimum of memory, or the error names what is missing.
#[tokio::test]
async fn minimum_memory_serves_typical_requests() {
    let (server, _) = low_memory_server(TIMEOUT);
    v3_with(&server, "s", json!("string"), &[3], &[3], json!("ab"), json!([{"name": "vlen-utf8"}])).await;
    v3(&server, "m", json!("uint8"), &[2048, 2048], &[512, 512], json!(1)).await;
    v3(&server, "large", json!("uint8"), &[4096, 2048], &[512, 512], json!(1)).await;
    for path in ["/array/s?format=npy", "/array/s", "/array/m?format=raw", "/array/m?format=json", "/node/?depth=all"] {
        let answer = server.get(path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:.300}", answer.text());
    }
    assert_eq!(server.get("/array/m?select=:1024&format=png", &[]).await.status, StatusCode::OK);
    let refused = |answer: TestResponse| {
        let problem = answer.problem(ProblemType::TooMuchMemory);
        assert!(problem.detail.contains("--max-memory"), "{}", problem.detail);
        assert_eq!(problem.members.limit, Some(15 * MIB));
        assert!(problem.members.size.unwrap() > 15 * MIB);
    };
    refused(server.get("/array/large?format=png", &[]).await);
    let many = points(200_000);
    refused(read(server.send(request(Method::POST, "/array/m?read", many.clone())).await).await);
    refused(server.request(Method::PUT, "/node/n", &[("content-type", "application/json")], many).await);
    assert_all_released(&server).await;
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Finished,
    Refused,
    Left,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_memory_is_released() {
    let (server, _) = low_memory_server(Duration::from_secs(1));
    let server = Arc::new(server);
    v3_with(&server, "a", json!("uint8"), &[64, 1 << 18], &[1, 1 << 18], json!(0), gzip()).await;
    put(&server, "junk/zarr.json", b"{".to_vec()).await;
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
        let (server, request) = (server.clone(), request_of(number as u128 % 4, asked(number)));
        tokio::spawn(async move {
            // One client leaves before the response, one during it, and one reads all of it.
            let patience = if number % 3 == 0 { Duration::from_millis(number as u64) } else { Duration::from_secs(60) };
            let Ok(answer) = timeout(patience, server.send(request)).await else { return Outcome::Left };
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
    // Each kind alone, with sufficient memory.
    for number in 0..10 {
        drop(read(server.send(asked(number)).await).await);
    }
    assert_all_released(&server).await;
    assert_eq!(server.get("/array/a?select=4,0", &[]).await.text(), "0");
}

/// Clients write full rows and append rows, with memory for about one write at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_finish_with_little_memory() {
    let patience = Duration::from_millis(500);
    for round in 0..3_usize {
        let (server, served) = low_memory_server(patience);
        let server = Arc::new(server);
        let row = 1 << 20;
        v3_with(&server, "a", json!("uint8"), &[16, row], &[3, row / 4], json!(0), gzip()).await;
        // Part of the memory is never available.
        let others = served.arrays().memory().claim(Caller::new(9)).take(round as u64 * 2 * MIB).await.unwrap();
        let write = |number: usize| {
            let body = vec![number as u8 + 1; row as usize];
            let (method, query) = match number % 4 {
                3 => (Method::POST, "append=0".to_owned()),
                _ => (Method::PUT, format!("select={number}")),
            };
            let mut write = request(method, &format!("/array/a?{query}"), body);
            write.headers_mut().insert("content-type", "application/octet-stream".parse().unwrap());
            request_of(number as u128 % 3, write)
        };
        let writes = (0..16).map(|number| {
            let (server, write) = (server.clone(), write(number));
            tokio::spawn(async move {
                let answer = timeout(Duration::from_secs(60), async { read(server.send(write).await).await });
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
        assert_all_released(&server).await;
        for number in 0..16 {
            let expected = if number % 4 != 3 && done.contains(&number) { number as u8 + 1 } else { 0 };
            let found = server.get(&format!("/array/a?select={number}&format=raw"), &[]).await;
            assert!(found.body.len() as u64 == row && found.body.iter().all(|&byte| byte == expected), "{number}");
        }
        let appended = done.iter().filter(|&&number| number % 4 == 3).count();
        assert_eq!(server.head("/array/a", &[]).await.header("zarr-shape"), format!("{},{row}", 16 + appended));
    }
}
