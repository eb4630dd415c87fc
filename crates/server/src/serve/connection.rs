//! One connection.

use std::{
    convert::Infallible,
    future::{Future, pending, poll_fn},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderValue, header::CONNECTION};
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time::timeout};
use tokio_util::sync::CancellationToken;
use wire::headers::REQUEST_ID;

use super::{
    lingering::Lingering,
    slots::{Activity, Answering},
    write_timeout::Paced,
};
use crate::{app::App, caller, dispatch, error::Refusal, guard, progress_timeout::Pace, routes::Route};

/// How much of a request is read at a time. A head may be up to twice as long.
const BUFFER: usize = 64 << 10;
/// How long a connection that is turned away may take.
const TURN_AWAY: Duration = Duration::from_secs(5);

type Io = TokioIo<Paced<Lingering>>;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Its requests are answered.
    Serve,
    /// Its first request is told that there are too many, unless it is the operator who asks.
    TurnAway,
}

/// A connection on its way.
pub(super) struct Connection {
    pub(super) app: App,
    pub(super) stream: TcpStream,
    /// The address of the other side.
    pub(super) peer: IpAddr,
    pub(super) manner: Manner,
    pub(super) activity: Arc<Activity>,
    pub(super) stopping: CancellationToken,
}

/// The body of an answer that is on its way.
struct Leaving {
    body: Body,
    _answering: Answering,
}

impl Connection {
    /// Runs it to its end, or, once `stopping` is cancelled, to the end of the request that runs; or until it has lost its place.
    pub(super) async fn run(self) {
        let activity = self.activity.clone();
        tokio::select! { () = self.serve() => (), () = activity.gone() => () }
    }

    async fn serve(self) {
        let Self { app, stream, peer, manner, activity, stopping } = self;
        let limits = &app.settings().limits;
        let stream = Lingering::new(stream, activity.clone(), stopping.clone());
        let io = TokioIo::new(Paced::new(stream, Pace::of_downloads(limits)));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout).max_buf_size(BUFFER);
        let answer = service_fn(|mut request: hyper::Request<Incoming>| {
            let caller = caller::behind(&app.settings().proxies, peer, request.headers());
            request.extensions_mut().insert(caller);
            answer(app.clone(), manner, activity.clone(), request.map(Body::new))
        });
        let served = run(http.serve_connection(io, answer), stopping);
        match manner {
            Manner::Serve => served.await,
            // Too slow a client is let go without an answer.
            Manner::TurnAway => timeout(TURN_AWAY, served).await.unwrap_or_default(),
        }
    }
}

async fn answer(app: App, manner: Manner, activity: Arc<Activity>, request: Request) -> Result<Response, Infallible> {
    let Some(answering) = activity.answer() else {
        // The connection is about to be dropped, and this with it.
        return pending().await;
    };
    let response = match manner {
        Manner::Serve => dispatch::answer(app, request).await,
        Manner::TurnAway
            if Route::find(request.method(), request.uri().path()).is_some_and(Route::is_for_operators) =>
        {
            closing(dispatch::answer(app, request).await)
        }
        Manner::TurnAway => closing(turned_away(&app, &request)),
    };
    Ok(response.map(|body| Body::new(Leaving { body, _answering: answering })))
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
    guard::mark(headers);
    response
}

fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

impl http_body::Body for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
