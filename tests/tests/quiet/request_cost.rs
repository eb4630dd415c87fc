//! The cost of requests: empty, repetitive, or small but expensive requests are answered at once or rejected.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::time::timeout;
use zarrd_tests::{
    server::{Launch, Server},
    skip::note,
};
use zarrd_wire::problem::{Problem, ProblemType};

const MIB: u64 = 1 << 20;

/// Longer than any response here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn little() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

fn document(shape: &[u64], chunk: &[u64], codecs: &Value) -> String {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}})
    .to_string()
}

async fn declare(server: &Server, name: &str, document: String) {
    let answer = server.put(&format!("/store/{name}/zarr.json"), document).await;
    assert!(answer.status().is_success(), "{name}");
}

/// The body of a response, and its latency.
async fn send_timed(
    server: &Server,
    method: Method,
    path: &str,
    (media_type, body): (&str, Vec<u8>),
) -> (u16, Vec<u8>, Duration) {
    let started = Instant::now();
    let request = server.request(method.clone(), path).header("content-type", media_type).body(body);
    let answer = timeout(PATIENCE, request.send()).await.unwrap_or_else(|_| panic!("{method} {path} hangs")).unwrap();
    let status = answer.status().as_u16();
    let bytes = timeout(PATIENCE, answer.bytes()).await.unwrap_or_else(|_| panic!("{method} {path} hangs")).unwrap();
    (status, bytes.to_vec(), started.elapsed())
}

async fn post(server: &Server, path: &str, body: &Value) -> (u16, Vec<u8>, Duration) {
    send_timed(server, Method::POST, path, ("application/json", body.to_string().into_bytes())).await
}

/// The processor time used by the process.
fn processor_time(server: &Server) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn npy(shape: &str) -> Vec<u8> {
    let head = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = format!("{head:<117}\n");
    [&b"\x93NUMPY\x01\x00"[..], &(padded.len() as u16).to_le_bytes(), padded.as_bytes()].concat()
}

/// The path of a node whose keys are almost as long as a key may be.
fn long_path() -> String {
    format!("{}/{}", "p".repeat(480), "q".repeat(480))
}

/// The metadata of many chunks at a long path takes no memory for their keys.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_with_long_keys_take_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let count = 1 << 18;
    let path = long_path();
    declare(&server, &path, document(&[count], &[1], &json!([little()]))).await;
    let before = server.peak_memory();
    for method in [Method::HEAD, Method::GET] {
        let target = format!("/array/{path}?format=raw");
        let (status, bytes, duration) = send_timed(&server, method.clone(), &target, ("", Vec::new())).await;
        assert_eq!(status, 200, "{method}: {}", String::from_utf8_lossy(&bytes));
        assert!(bytes.is_empty() || bytes.len() as u64 == count);
        let memory = server.peak_memory() - before;
        note(format!("{method} of {count} chunks with long keys: {} MiB more at the peak, {duration:?}", memory >> 20));
        assert!(memory < 64 * MIB, "{method}: {memory} bytes");
    }
    server.stop();
}

/// Selections, writes and appends without elements, and reads of single elements, cost next to nothing for any shape.
#[tokio::test(flavor = "multi_thread")]
async fn empty_requests_cost_nothing() {
    let server = Launch::of("memory:").start();
    let large = 1 << 62;
    let many = |first: u64, last: u64| -> Vec<u64> { [vec![first], vec![1; 62], vec![last]].concat() };
    let ones = |rank: usize| vec![1; rank];
    let shapes: Vec<(&str, Vec<u64>, Vec<u64>)> = vec![
        ("tall", vec![large, 4], ones(2)),
        ("wide", vec![4, large], ones(2)),
        ("huge", vec![large, large], ones(2)),
        ("empty-tall", vec![large, 0], ones(2)),
        ("empty-wide", vec![0, large], ones(2)),
        ("none", vec![0, 0], ones(2)),
        ("deep", many(large, 4), ones(64)),
        ("deep-empty", many(large, 0), ones(64)),
        ("scalar", vec![], vec![]),
    ];
    for (name, shape, chunk) in &shapes {
        declare(&server, name, document(shape, chunk, &json!([little()]))).await;
    }
    let (memory, time) = (server.peak_memory(), processor_time(&server));
    let mut requests = 0;
    for (name, shape, _) in &shapes {
        let selections = match shape.len() {
            0 => vec![""],
            _ => vec!["0:0", ":,0:0", "...,0:0", "0:0,...", "()", "...,()", "5:2", "::-1,0:0", "(),0:0"],
        };
        for selection in &selections {
            let path = format!("/array/{name}?select={selection}");
            let last = if selection.is_empty() { "()" } else { "(0,)" };
            let bodies = [
                ("application/octet-stream", Vec::new()),
                ("application/x-npy", npy(last)),
                ("application/json", b"[]".to_vec()),
                ("application/json", b"7".to_vec()),
                ("application/json", b"[[]]".to_vec()),
            ];
            for body in bodies {
                let (status, bytes, duration) = send_timed(&server, Method::PUT, &path, body).await;
                assert!(status == 200 || (400..500).contains(&status), "PUT {path}: {status}");
                assert!(duration < PATIENCE && bytes.len() < 64 << 10, "PUT {path}");
                requests += 1;
            }
            for format in ["json", "raw", "npy", "csv", "png"] {
                let (status, _, _) =
                    send_timed(&server, Method::GET, &format!("{path}&format={format}"), ("", Vec::new())).await;
                assert!(status == 200 || (400..500).contains(&status), "GET {path} as {format}: {status}");
                requests += 1;
            }
            for body in [json!({"select": selection}), json!({"stack": [selection, selection]}), json!({"points": []})]
            {
                let (status, _, _) = post(&server, &format!("/array/{name}?read&format=raw"), &body).await;
                assert!(status == 200 || (400..500).contains(&status), "POST {path}: {status}");
                requests += 1;
            }
        }
        for dimension in ["0", "-1"] {
            let path = format!("/array/{name}?append={dimension}");
            for body in [
                ("application/octet-stream", Vec::new()),
                ("application/x-npy", npy("(0, 4)")),
                ("application/json", b"[]".to_vec()),
                ("application/json", b"7".to_vec()),
            ] {
                let (status, _, _) = send_timed(&server, Method::POST, &path, body).await;
                assert!(status == 200 || (400..500).contains(&status), "POST {path}: {status}");
                requests += 1;
            }
        }
        let all = vec!["-1"; shape.len()].join(",");
        let (status, bytes, _) =
            send_timed(&server, Method::GET, &format!("/array/{name}?select={all}&format=raw"), ("", Vec::new())).await;
        assert!(status == 400 || (status == 200 && bytes.len() == 1), "{name}: {status}");
    }
    let (memory, time) = (server.peak_memory() - memory, processor_time(&server) - time);
    note(format!("{requests} requests for nothing: {} KiB more at the peak, {time:?}", memory >> 10));
    assert!(memory < 64 * MIB && time < Duration::from_secs(20), "{memory} bytes, {time:?}");
    server.stop();
}

/// Stacks of any number of entries are answered in every format, and a chunk shared by several entries is decoded once.
#[tokio::test(flavor = "multi_thread")]
async fn stacked_selections_are_as_fast_as_points() {
    let server = Launch::of("memory:").arg("--chunk-cache").arg("0").start();
    let gzip = json!([little(), {"name": "gzip", "configuration": {"level": 1}}]);
    declare(&server, "a", document(&[256, 1024], &[64, 1024], &gzip)).await;
    let elements: Vec<u8> = (0..256 << 10).map(|place: u32| (place % 251) as u8).collect();
    assert_eq!(
        send_timed(&server, Method::PUT, "/array/a", ("application/octet-stream", elements.clone())).await.0,
        200
    );
    for count in [1_usize, 65, 66, 1000, 65_536] {
        let at: Vec<[usize; 2]> = (0..count).map(|entry| [entry * 7 % 256, entry * 13 % 1024]).collect();
        let expected: Vec<u8> = at.iter().map(|[row, column]| elements[row * 1024 + column]).collect();
        let stack = json!({"stack": at.iter().map(|[row, column]| json!([row, column])).collect::<Vec<_>>()});
        let rows = |[row, column]: &[usize; 2]| json!([row, {"start": column, "stop": column + 1}]);
        let rows = json!({"stack": at.iter().map(rows).collect::<Vec<_>>()});
        let points = json!({"points": at});
        let (status, bytes, _) = post(&server, "/array/a?read&format=raw", &stack).await;
        assert!(status == 200 && bytes == expected, "{count}");
        let (status, bytes, _) = post(&server, "/array/a?read&format=npy", &stack).await;
        assert!(status == 200 && bytes.ends_with(&expected), "{count}");
        let (status, bytes, _) = post(&server, "/array/a?read&format=json", &stack).await;
        assert!(status == 200 && serde_json::from_slice::<Vec<u8>>(&bytes).unwrap() == expected, "{count}");
        let (status, bytes, _) = post(&server, "/array/a?read&format=csv", &stack).await;
        assert_eq!((status, bytes.split(|&byte| byte == b'\n').count()), (200, count + 1));
        let (status, bytes, _) = post(&server, "/array/a?read&format=png", &rows).await;
        assert!(status == 200 && bytes.starts_with(b"\x89PNG"), "{count}");
        let (status, bytes, _) = post(&server, "/array/a?read&format=raw", &rows).await;
        assert!(status == 200 && bytes == expected, "{count}");
        let mut best = [Duration::MAX; 3];
        for _ in 0..5 {
            for (best, request) in best.iter_mut().zip([&points, &stack, &rows]) {
                *best = post(&server, "/array/a?read&format=raw", request).await.2.min(*best);
            }
        }
        let [points, stack, rows] = best;
        note(format!("{count} entries: {stack:?} as single elements, {rows:?} as rows, {points:?} as points"));
        assert!(stack < points * 3 + Duration::from_millis(20), "a stack of {count}: {stack:?}, as points {points:?}");
    }
    server.stop();
}

/// Reverses the dimensions of a chunk of 2 by 2 by 2 …, so that no adjacent elements remain adjacent.
const REVERSED: [usize; 25] = {
    let mut order = [0; 25];
    let mut at = 0;
    while at < 25 {
        order[at] = 24 - at;
        at += 1;
    }
    order
};

fn transpose(order: &[usize]) -> Value {
    json!({"name": "transpose", "configuration": {"order": order}})
}

/// Writes one element and reads it; returns the statuses, the problems, and the processor time.
async fn one_element(server: &Server, name: &str) -> ([u16; 2], Vec<Problem>, Duration) {
    let (before, at) = (processor_time(server), ["1"; 25].join(","));
    let path = format!("/array/{name}?select={at}");
    let (read, bytes, _) = send_timed(server, Method::GET, &format!("{path}&format=raw"), ("", Vec::new())).await;
    let mut problems: Vec<Problem> = Problem::from_json(&bytes).into_iter().collect();
    let (written, bytes, _) = send_timed(server, Method::PUT, &path, ("application/json", b"7".to_vec())).await;
    problems.extend(Problem::from_json(&bytes));
    ([read, written], problems, processor_time(server) - before)
}

/// Consecutive transposes are executed as one.
#[tokio::test(flavor = "multi_thread")]
async fn consecutive_transposes_are_merged() {
    // A very high work limit, so that only merging makes the requests cheap.
    let server = Launch::of("memory:").arg("--max-work").arg("1PiB").start();
    let rotated: Vec<usize> = (1..25).chain([0]).collect();
    // Together they reverse the dimensions: an even number would cancel out.
    let mut codecs: Vec<Value> =
        (0..61).map(|turn| transpose(if turn % 2 == 0 { &REVERSED } else { &rotated })).collect();
    codecs.push(little());
    declare(&server, "turned", document(&[2; 25], &[2; 25], &json!(codecs))).await;
    let chunk = format!("/store/turned/c/{}", ["0"; 25].join("/"));
    assert_eq!(server.put(&chunk, vec![1; 32 << 20]).await.status(), 201);
    let (statuses, _, duration) = one_element(&server, "turned").await;
    note(format!("sixty-one transposes over 32 MiB, read and written: {duration:?} of processor time"));
    assert_eq!(statuses, [200, 200]);
    assert!(duration < Duration::from_secs(30), "{duration:?}");
    server.stop();
}

/// Transposes that cannot be merged, since another codec separates them, are rejected before decoding.
#[tokio::test(flavor = "multi_thread")]
async fn expensive_transposes_of_a_large_chunk_are_rejected() {
    let server = Launch::of("memory:").start();
    let delta = json!({"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}});
    let pairs = || -> Vec<Value> { (0..20).flat_map(|_| [transpose(&REVERSED), delta.clone()]).collect() };
    let shard = |inner: Vec<Value>| {
        let whole = vec![2; 25];
        vec![json!({"name": "sharding_indexed", "configuration": {"chunk_shape": whole, "codecs": inner,
                "index_codecs": [little()]}})]
    };
    // A chain has at most 64 codecs, so there are three, each in a shard of one inner chunk.
    let innermost = [pairs(), vec![little()]].concat();
    let codecs = [pairs(), shard([pairs(), shard(innermost)].concat())].concat();
    declare(&server, "turned", document(&[2; 25], &[2; 25], &json!(codecs))).await;
    // Any bytes are a valid innermost chunk; each shard appends an index of one entry.
    let mut chunk = vec![1; 32 << 20];
    for _ in 0..2 {
        let index = [0_u64.to_le_bytes(), (chunk.len() as u64).to_le_bytes()].concat();
        chunk.extend(index);
    }
    assert_eq!(server.put(&format!("/store/turned/c/{}", ["0"; 25].join("/")), chunk).await.status(), 201);
    let (statuses, problems, duration) = one_element(&server, "turned").await;
    note(format!("sixty transposes separated by other codecs: {statuses:?}, {duration:?} of processor time"));
    assert_eq!(statuses, [413, 413], "{duration:?}");
    assert!(duration < Duration::from_secs(1), "{duration:?}");
    for problem in problems {
        assert_eq!((problem.kind, problem.members.limit), (ProblemType::WorkTooLarge, Some(64 << 30)), "{problem:?}");
    }
    server.stop();
}

/// A chunk that exceeds the work limit is rejected with the name of the flag.
#[tokio::test(flavor = "multi_thread")]
async fn small_requests_cannot_cause_excessive_work() {
    let one = ("application/json", b"7".to_vec());
    let server = Launch::of("memory:").arg("--max-work").arg("64MiB").start();
    let bz2 = json!([little(), {"name": "numcodecs.bz2", "configuration": {"level": 9}}]);
    declare(&server, "dear", document(&[64 << 20], &[16 << 20], &bz2)).await;
    let (status, bytes, _) = send_timed(&server, Method::PUT, "/array/dear?select=5", one).await;
    let problem = Problem::from_json(&bytes).unwrap();
    assert_eq!((status, problem.kind, problem.members.limit), (413, ProblemType::WorkTooLarge, Some(64 * MIB)));
    assert!(problem.detail.contains("--max-work") && problem.members.size > problem.members.limit, "{problem:?}");
    server.stop();
}

/// Arrays that are accepted can be read back.
#[tokio::test(flavor = "multi_thread")]
async fn accepted_arrays_can_be_read_back() {
    let server = Launch::of("memory:").start();
    let zstd = json!([little(), {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
    for size in [255 * MIB, 256 * MIB] {
        declare(&server, "a", document(&[size], &[size], &zstd)).await;
        let one = ("application/json", b"7".to_vec());
        let (status, bytes, _) = send_timed(&server, Method::PUT, "/array/a?select=5", one).await;
        if status != 200 {
            assert_eq!(Problem::from_json(&bytes).unwrap().kind, ProblemType::ChunkTooLarge, "{size}: {status}");
            continue;
        }
        let (status, bytes, _) =
            send_timed(&server, Method::GET, "/array/a?select=5&format=raw", ("", Vec::new())).await;
        assert_eq!((status, bytes), (200, vec![7]), "{size}");
    }
    server.stop();
}

/// Brackets within strings do not count.
#[tokio::test(flavor = "multi_thread")]
async fn json_nesting_is_limited() {
    let server = Launch::of("memory:").start();
    let shape: Vec<u64> = [vec![60_000_000], vec![1; 63]].concat();
    let chunk: Vec<u64> = [vec![60_000_000], vec![1; 63]].concat();
    declare(&server, "deep", document(&shape, &chunk, &json!([little()]))).await;
    let (status, bytes, _) = send_timed(&server, Method::GET, "/array/deep?format=json", ("", Vec::new())).await;
    let problem = Problem::from_json(&bytes).unwrap();
    assert_eq!((status, problem.kind), (413, ProblemType::SelectionTooLarge));
    assert!(problem.detail.contains("--max-text-selection"), "{problem:?}");
    server.stop();
}

/// While one caller decodes all that it is allowed to, a single element for another caller is served soon.
#[tokio::test(flavor = "multi_thread")]
async fn new_client_is_served_while_others_decode() {
    let server = Arc::new(Launch::of("memory:").arg("--chunk-cache").arg("0").start());
    let zstd = json!([little(), {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
    declare(&server, "heavy", document(&[64 * MIB], &[64 * MIB], &zstd)).await;
    let elements: Vec<u8> = (0..64 * MIB).map(|place| (place.wrapping_mul(place >> 7) >> 3) as u8 & 31).collect();
    assert_eq!(send_timed(&server, Method::PUT, "/array/heavy", ("application/octet-stream", elements)).await.0, 200);
    declare(&server, "light", document(&[64 << 10], &[64 << 10], &zstd)).await;
    let elements = vec![7; 64 << 10];
    assert_eq!(send_timed(&server, Method::PUT, "/array/light", ("application/octet-stream", elements)).await.0, 200);
    let from = |last: u8| Client::builder().local_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).build().unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let heavy = from(2);
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (url, heavy) = (server.url("/array/heavy?select=5&format=raw"), heavy.clone());
            let (stop, done) = (stop.clone(), done.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let answer = heavy.get(&url).send().await.unwrap();
                    assert!(matches!(answer.status().as_u16(), 200 | 429 | 503), "{}", answer.status());
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stranger = from(1);
    let mut times = Vec::new();
    for _ in 0..100 {
        let started = Instant::now();
        let answer = stranger.get(server.url("/array/light?select=5&format=raw")).send().await.unwrap();
        assert_eq!(answer.bytes().await.unwrap(), &[7][..]);
        times.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    times.sort_unstable();
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let done = done.load(Ordering::Relaxed);
    note(format!(
        "an element for a new client during 64 readers of 64 MiB chunks ({done} responses): {median:?}, p99 {p99:?}"
    ));
    assert!(p99 < Duration::from_secs(2), "{p99:?}");
}
