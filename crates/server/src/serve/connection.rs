//! One connection.

use std::{convert::Infallible, future::poll_fn, net::IpAddr, pin::Pin, time::Duration};

use ::array::Caller;
use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderValue, header::CONNECTION};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time::timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use wire::headers::REQUEST_ID;

use super::lingering::Lingering;
use crate::{exchange, guard, refusal::Refusal, state::App};

/// How much of a request is read at a time. A head may be up to twice as long.
const BUFFER: usize = 64 << 10;
/// How long a connection that is turned away may take.
const TURN_AWAY: Duration = Duration::from_secs(5);

type Io = TokioIo<Pin<Box<TimeoutStream<Lingering>>>>;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Its requests are answered.
    Serve,
    /// Its first request is told that there are too many.
    TurnAway,
}

/// Runs a connection to its end, or, once `stopping` is cancelled, to the end of the request that runs.
pub(super) async fn connection(app: &App, stream: TcpStream, manner: Manner, stopping: CancellationToken) {
    let limits = &app.settings().limits;
    let caller = caller(&stream);
    let mut stream = TimeoutStream::new(Lingering::new(stream, stopping.clone()));
    stream.set_write_timeout(Some(limits.download_timeout));
    let io = TokioIo::new(Box::pin(stream));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(BUFFER);
    match manner {
        Manner::Serve => {
            let answer = service_fn(|request: hyper::Request<Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(caller);
                let answered = exchange::answer(app.clone(), request);
                async { Ok::<_, Infallible>(answered.await) }
            });
            run(http.serve_connection(io, answer), stopping).await;
        }
        Manner::TurnAway => {
            let answer = service_fn(|request: hyper::Request<Incoming>| {
                let response = turned_away(app, &request.map(Body::new));
                async { Ok::<_, Infallible>(response) }
            });
            // Too slow a client is let go without an answer.
            let _ = timeout(TURN_AWAY, run(http.serve_connection(io, answer), stopping)).await;
        }
    }
}

/// Who is at the other end: an address, and of IPv6 the network of 64 bits that one household or machine has.
fn caller(stream: &TcpStream) -> Caller {
    let address = stream.peer_addr().map(|address| address.ip().to_canonical());
    match address {
        Ok(IpAddr::V4(address)) => Caller::new(u128::from(address.to_bits())),
        // Beyond all those of IPv4.
        Ok(IpAddr::V6(address)) => Caller::new(address.to_bits() >> 64 << 64 | 1 << 32),
        Err(_) => Caller::default(),
    }
}

async fn run<S>(connection: http1::Connection<Io, S>, stopping: CancellationToken)
where
    S: hyper::service::HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut connection = std::pin::pin!(connection);
    let mut told = false;
    let mut stop = std::pin::pin!(stopping.cancelled());
    let ended = poll_fn(|context| {
        if !told && stop.as_mut().poll(context).is_ready() {
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
    }
}

fn turned_away(app: &App, request: &Request) -> Response {
    let id = app.request_ids().of(request.headers());
    let refusal = Refusal::busy(None);
    refusal.log(&id);
    let mut response = refusal.render(&id);
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id.header());
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    guard::mark(headers);
    response
}
