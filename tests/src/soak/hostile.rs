//! Hostile clients: they disconnect, read slowly, stay silent, or send invalid HTTP.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use super::{Context, RESPONSE_TIMEOUT, legal::SHARED, pause};

/// The behavior of a hostile client.
#[derive(Clone, Copy, Debug)]
enum Misbehavior {
    /// Sends a request and disconnects before the response.
    AbandonsResponse,
    /// Sends half of a body and disconnects.
    AbandonsUpload,
    /// Reads a little now and then, and disconnects.
    Slow,
    /// Connects and stays silent.
    Silent,
    /// Sends malformed data, and expects a response or a closed connection.
    Malformed,
    /// Sends an invalid request, and expects a rejection.
    Invalid,
}

const MISBEHAVIORS: [(Misbehavior, usize); 6] = [
    (Misbehavior::AbandonsResponse, 6),
    (Misbehavior::AbandonsUpload, 6),
    (Misbehavior::Slow, 6),
    (Misbehavior::Silent, 20),
    (Misbehavior::Malformed, 3),
    (Misbehavior::Invalid, 3),
];

pub(super) fn begin(context: &Arc<Context>, random: &mut StdRng, running: &mut JoinSet<()>) {
    for (misbehavior, count) in MISBEHAVIORS {
        for _ in 0..count {
            running.spawn(misbehave(context.clone(), misbehavior, StdRng::seed_from_u64(random.random())));
        }
    }
}

async fn misbehave(context: Arc<Context>, misbehavior: Misbehavior, mut random: StdRng) {
    while context.is_running() {
        if let Ok(connection) = TcpStream::connect(context.server.address()).await {
            context.hostile.fetch_add(1, Ordering::Relaxed);
            misbehave_once(&context, misbehavior, connection, &mut random).await;
        }
        pause(&mut random, 100).await;
    }
}

async fn misbehave_once(context: &Context, misbehavior: Misbehavior, mut connection: TcpStream, random: &mut StdRng) {
    let requests: Vec<Vec<u8>> = match misbehavior {
        Misbehavior::AbandonsResponse | Misbehavior::Slow => read_requests(),
        Misbehavior::AbandonsUpload => partial_uploads(),
        Misbehavior::Silent => {
            vec![Vec::new(), b"GET /store/".to_vec(), b"PUT /store/soak/x HTTP/1.1\r\nHost: loc".to_vec()]
        }
        Misbehavior::Malformed => malformed(),
        Misbehavior::Invalid => invalid_requests(),
    };
    let request = &requests[random.random_range(0..requests.len())];
    // The server may disconnect before everything is sent.
    let _ = timeout(Duration::from_secs(5), connection.write_all(request)).await;
    match misbehavior {
        Misbehavior::AbandonsResponse | Misbehavior::AbandonsUpload => pause(random, 30).await,
        Misbehavior::Silent => pause(random, 5000).await,
        Misbehavior::Slow => {
            let mut some = [0; 512];
            for _ in 0..random.random_range(1..60) {
                let _ = timeout(Duration::from_millis(10), connection.read(&mut some)).await;
                pause(random, 200).await;
            }
        }
        Misbehavior::Malformed | Misbehavior::Invalid => {
            let mut response = Vec::new();
            let read = timeout(RESPONSE_TIMEOUT, connection.take(64).read_to_end(&mut response)).await;
            if read.is_err() {
                context.report_error(format!(
                    "no response and no close: {}",
                    String::from_utf8_lossy(&request[..request.len().min(200)])
                ));
            } else if matches!(misbehavior, Misbehavior::Invalid)
                && !response.starts_with(b"HTTP/1.1 4")
                && !response.starts_with(b"HTTP/1.1 503")
            {
                let [request, response] = [&request[..request.len().min(200)], &response]
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                context.report_error(format!("not rejected: {request}: {response}"));
            }
        }
    }
}

fn with_body(head: &str, length: usize, body: impl Into<Vec<u8>>) -> Vec<u8> {
    let head = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.into_bytes(), body.into()].concat()
}

fn read_requests() -> Vec<Vec<u8>> {
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    let points = format!(r#"{{"points":[{}[0,0]]}}"#, "[5,5],[250,250],".repeat(2000));
    let mut all = vec![
        get(&format!("/store/{SHARED}/large")),
        get("/store/?list=keys&limit=10000"),
        get(&format!("/array/{SHARED}/array?format=json")),
        get(&format!("/array/{SHARED}/array?format=csv&select=::-1")),
        get(&format!("/node/{SHARED}?depth=all")),
        get("/metrics"),
    ];
    all.push(with_body(&format!("POST /array/{SHARED}/array?read"), points.len(), points));
    all
}

fn partial_uploads() -> Vec<Vec<u8>> {
    vec![
        with_body("PUT /store/soak/half", 4 << 20, vec![7; 1 << 20]),
        with_body(&format!("PUT /array/{SHARED}/target"), 256 << 10, vec![7; 100 << 10]),
        with_body(&format!("POST /array/{SHARED}/target?append=0"), 64 << 10, vec![b'['; 1000]),
        with_body("PUT /node/soak/half", 1 << 20, format!("[{}", r#"{"":0},"#.repeat(60_000))),
        with_body(
            &format!("POST /array/{SHARED}/array?read"),
            1 << 20,
            format!(r#"{{"points":[{}"#, "[0,0],".repeat(60_000)),
        ),
        with_body(&format!("POST /node/{SHARED}?validate"), 100_000, "{"),
    ]
}

fn malformed() -> Vec<Vec<u8>> {
    vec![
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(20),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /store/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_vec(),
        b"PUT /store/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        [b"GET /store/a HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec(), vec![b'x'; 200_000], b"\r\n\r\n".to_vec()]
            .concat(),
        vec![0; 100_000],
    ]
}

fn invalid_requests() -> Vec<Vec<u8>> {
    let deep = [b'['; 100_000];
    vec![
        with_body("PUT /node/soak/refused", deep.len(), deep),
        with_body("PUT /node/soak/refused", 7, r#"{"a":1}"#),
        with_body(&format!("POST /array/{SHARED}/array?read"), deep.len(), deep),
        with_body(&format!("GET /array/{SHARED}/array?select=(((("), 0, ""),
        with_body(&format!("PATCH /node/{SHARED}"), 13, r#"{"shape":[1]}"#),
        with_body("GET /store/a/../b", 0, ""),
        with_body("BREW /store/a", 0, ""),
        with_body("GET /node/soak/nowhere/at/all?depth=all", 0, ""),
        with_body("GET /array/%FF", 0, ""),
    ]
}
