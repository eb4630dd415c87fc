//! Clients that abuse HTTP/2.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use tokio::{
    io::AsyncWriteExt,
    time::{sleep, timeout},
};
use zarrd_server::{Limits, Settings};

use crate::tls::{
    frames::{
        self, CANCEL, CONTINUATION, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, RST_STREAM, frame,
    },
    tls_server::{Http2, TIMEOUT, TlsServer, request},
};

async fn server_with(limits: Limits) -> TlsServer {
    TlsServer::start(Settings { limits, ..Settings::default() }).await
}

/// Sends frames until the server refuses them; returns the number of sent pieces, and the payload of `GOAWAY` unless the
/// connection ended before it. Pieces that only reached the buffers of the sockets, which take some megabytes, count as
/// sent, so bounds on the number are far above that of the frames that the server accepts.
async fn flood(server: &TlsServer, begin: &[u8], pieces: impl Iterator<Item = Vec<u8>>) -> (usize, Option<Vec<u8>>) {
    let (mut read, mut write) = tokio::io::split(frames::connect(server).await);
    let mut sent = 0;
    let sending = async {
        write.write_all(begin).await.unwrap();
        for piece in pieces {
            if !matches!(timeout(TIMEOUT, write.write_all(&piece)).await, Ok(Ok(()))) {
                break;
            }
            sent += 1;
        }
        // The connection ends without the frame, or the attack is not stopped.
        std::future::pending().await
    };
    let goaway = tokio::select! {
        () = sending => None,
        goaway = frames::read_until(&mut read, GOAWAY) => goaway,
    };
    (sent, goaway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_resets_leave_other_clients_served() {
    let server = TlsServer::start(Settings::default()).await;
    server.set("v", 100_000).await;
    let other = server.http2().await;
    // 90 MB, more than twice what the buffers of the sockets take.
    const PIECES: usize = 20_000;
    let pieces = (0..PIECES as u32).map(|piece| {
        let streams = (0..100).map(|stream| 1 + 2 * (piece * 100 + stream));
        let reset = |stream| {
            [
                frame(HEADERS, END_HEADERS | END_STREAM, stream, &frames::get("/store/v")),
                frame(RST_STREAM, 0, stream, &CANCEL),
            ]
        };
        streams.flat_map(reset).flatten().collect()
    });
    let attack = flood(&server, &[], pieces);
    let others = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..50 {
            let started = Instant::now();
            assert_eq!(other.get("/store/v").await.unwrap().body().len(), 100_000);
            slowest = slowest.max(started.elapsed());
        }
        slowest
    };
    let ((sent, goaway), slowest) = tokio::join!(attack, others);
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert!(sent < PIECES, "all pieces were accepted: the attack was not stopped");
    // The connection may be reset before the frame arrives.
    assert!(goaway.is_none_or(|goaway| goaway[4..8] == ENHANCE_YOUR_CALM));
    assert_eq!(other.get("/store/v").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn endless_headers_are_rejected() {
    let server = TlsServer::start(Settings::default()).await;
    // A header that is not added to the table of HPACK: `x: xxx…`.
    let mut header = vec![0x00, 1, b'x', 100];
    header.extend([b'x'; 100]);
    let begin = frame(HEADERS, END_STREAM, 1, &frames::get("/healthz"));
    let pieces = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &header.repeat(100)), 10_000);
    let (sent, _) = flood(&server, &begin, pieces).await;
    assert!(sent < 1000, "{sent} frames of 10 kB were accepted");
    let empty = std::iter::repeat_n(frame(CONTINUATION, 0, 1, &[]), 1_000_000);
    let (sent, _) = flood(&server, &begin, empty).await;
    assert!(sent < 100_000, "{sent} empty frames were accepted");
}

#[tokio::test]
async fn head_size_is_limited() {
    let server = TlsServer::start(Settings::default()).await;
    let http2 = server.http2().await;
    let with = |bytes: usize| {
        let mut request = request(Method::GET, "/healthz");
        request.headers_mut().insert("x", "x".repeat(bytes).parse().unwrap());
        http2.send(request)
    };
    assert_eq!(with(50_000).await.unwrap().status(), StatusCode::OK);
    let rejected = with(70_000).await;
    assert!(rejected.is_err() || rejected.unwrap().status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let other = server.http2().await;
    assert_eq!(other.get("/healthz").await.unwrap().status(), StatusCode::OK);
}

/// A client with windows of 1,000 bytes for each stream, and a request for a value of which it takes nothing.
async fn stalled(server: &TlsServer, path: &str) -> (Http2, h2::RecvStream) {
    let http2 = server.http2_with(h2::client::Builder::new().initial_window_size(1000)).await;
    let mut requests = http2.requests.clone().ready().await.unwrap();
    let (response, _) = requests.send_request(request(Method::GET, path), true).unwrap();
    let body = timeout(TIMEOUT, response).await.unwrap().unwrap().into_body();
    (http2, body)
}

/// Reads what was sent, without granting a window; returns the error at the end.
async fn read_until_error(body: &mut h2::RecvStream) -> h2::Error {
    loop {
        match timeout(TIMEOUT, body.data()).await.expect("the stream ends").expect("the stream fails") {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn stalled_stream_is_reset() {
    let server = server_with(Limits { download_timeout: Duration::from_millis(500), ..Limits::default() }).await;
    server.set("large", 8 << 20).await;
    server.set("small", 900).await;
    let (http2, mut body) = stalled(&server, "/store/large").await;
    let started = Instant::now();
    let reading = async {
        let error = read_until_error(&mut body).await;
        assert_eq!(error.reason(), Some(h2::Reason::CANCEL), "{error}");
    };
    let others = async {
        for _ in 0..10 {
            assert_eq!(http2.get("/store/small").await.unwrap().body().len(), 900);
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(reading, others);
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(400) && elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert_eq!(http2.get("/store/small").await.unwrap().status(), StatusCode::OK, "the connection is still usable");
}

#[tokio::test]
async fn stalled_end_of_a_response_closes_the_connection() {
    let server = server_with(Limits { download_timeout: Duration::from_millis(500), ..Limits::default() }).await;
    server.set("v", 5000).await;
    let (http2, mut body) = stalled(&server, "/store/v").await;
    let started = Instant::now();
    // Requests keep the connection from being idle.
    let others = async { while http2.get("/healthz").await.is_ok() {} };
    tokio::join!(read_until_error(&mut body), others);
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(400) && elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[tokio::test]
async fn trickled_window_is_too_slow() {
    let limits = Limits {
        download_timeout: Duration::from_millis(600),
        min_rate: std::num::NonZeroU64::new(10_000),
        ..Limits::default()
    };
    let server = server_with(limits).await;
    server.set("v", 8 << 20).await;
    let (_http2, mut body) = stalled(&server, "/store/v").await;
    let trickle = async {
        loop {
            match body.data().await.unwrap() {
                Ok(data) => {
                    sleep(Duration::from_millis(300)).await;
                    if body.flow_control().release_capacity(data.len()).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    };
    timeout(Duration::from_secs(10), trickle).await.expect("a third of the minimum rate is too slow");
}

#[tokio::test]
async fn client_that_never_sends_a_request_is_disconnected() {
    let server = server_with(Limits { header_timeout: Duration::from_millis(300), ..Limits::default() }).await;
    // Neither a preface, nor the end of a header block, nor an acknowledgement of anything.
    for begun in [Vec::new(), frame(HEADERS, END_STREAM, 1, &frames::get("/healthz"))] {
        let mut stream = match begun.is_empty() {
            true => server.connect(&["h2"]).await,
            false => frames::connect(&server).await,
        };
        stream.write_all(&begun).await.unwrap();
        let closed = async { while frames::read_until(&mut stream, 0xff).await.is_some() {} };
        timeout(Duration::from_secs(10), closed).await.expect("it is closed");
    }
}
