//! Clients that do what no client should: they leave, read slowly, say nothing, or what is no HTTP.

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

use super::{DEADLINE, Field, legal::SHARED, pause};

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// It sends a request and is gone before the answer.
    Leaves,
    /// It sends half of a body and is gone.
    Breaks,
    /// It reads a little now and then, and is gone.
    Slow,
    /// It connects, and says nothing.
    Silent,
    /// It sends what cannot be understood, and wants an answer or an end.
    Malformed,
    /// It asks for what is refused, and wants to be told so.
    Refused,
}

const HABITS: [(Habit, usize); 6] = [
    (Habit::Leaves, 6),
    (Habit::Breaks, 6),
    (Habit::Slow, 6),
    (Habit::Silent, 20),
    (Habit::Malformed, 3),
    (Habit::Refused, 3),
];

pub(super) fn begin(field: &Arc<Field>, random: &mut StdRng, running: &mut JoinSet<()>) {
    for (habit, count) in HABITS {
        for _ in 0..count {
            running.spawn(misbehave(field.clone(), habit, StdRng::seed_from_u64(random.random())));
        }
    }
}

async fn misbehave(field: Arc<Field>, habit: Habit, mut random: StdRng) {
    while field.goes_on() {
        if let Ok(connection) = TcpStream::connect(field.server.address()).await {
            field.hostile.fetch_add(1, Ordering::Relaxed);
            once(&field, habit, connection, &mut random).await;
        }
        pause(&mut random, 100).await;
    }
}

async fn once(field: &Field, habit: Habit, mut connection: TcpStream, random: &mut StdRng) {
    let requests: Vec<Vec<u8>> = match habit {
        Habit::Leaves | Habit::Slow => readings(),
        Habit::Breaks => halves(),
        Habit::Silent => vec![Vec::new(), b"GET /store/".to_vec(), b"PUT /store/soak/x HTTP/1.1\r\nHost: loc".to_vec()],
        Habit::Malformed => malformed(),
        Habit::Refused => refused(),
    };
    let request = &requests[random.random_range(0..requests.len())];
    // The server may be gone before all is sent.
    let _ = timeout(Duration::from_secs(5), connection.write_all(request)).await;
    match habit {
        Habit::Leaves | Habit::Breaks => pause(random, 30).await,
        Habit::Silent => pause(random, 5000).await,
        Habit::Slow => {
            let mut some = [0; 512];
            for _ in 0..random.random_range(1..60) {
                let _ = timeout(Duration::from_millis(10), connection.read(&mut some)).await;
                pause(random, 200).await;
            }
        }
        Habit::Malformed | Habit::Refused => {
            let mut answer = Vec::new();
            let read = timeout(DEADLINE, connection.take(64).read_to_end(&mut answer)).await;
            if read.is_err() {
                field.complain(format!(
                    "no answer and no end: {}",
                    String::from_utf8_lossy(&request[..request.len().min(200)])
                ));
            } else if matches!(habit, Habit::Refused)
                && !answer.starts_with(b"HTTP/1.1 4")
                && !answer.starts_with(b"HTTP/1.1 503")
            {
                let [request, answer] = [&request[..request.len().min(200)], &answer]
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                field.complain(format!("not refused: {request}: {answer}"));
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

fn readings() -> Vec<Vec<u8>> {
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

fn halves() -> Vec<Vec<u8>> {
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

fn refused() -> Vec<Vec<u8>> {
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
