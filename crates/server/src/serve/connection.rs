//! A single HTTP/1 connection.

use std::{
    convert::Infallible,
    future::{Future, pending, poll_fn},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderValue, StatusCode, header::CONNECTION};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    lingering::Lingering,
    slots::{Activity, RequestInFlight},
    write_timeout::WriteTimeoutStream,
};
use crate::{
    app::App,
    caller, dispatch,
    error::ApiError,
    observed_body::{BodyObserver, ObservedBody},
    progress_timeout::ProgressTimeout,
    request_log::{ConnectionInfo, MalformedHead},
    routes::Route,
};

/// The size of the read buffer, in bytes. A request head may be up to twice as long.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// The time limit for rejecting a connection.
const REJECT_TIMEOUT: Duration = Duration::from_secs(5);

type Io = TokioIo<WriteTimeoutStream<Lingering>>;

/// The treatment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionMode {
    /// Handles its requests.
    Serve,
    /// Responds 503 to its first request, except on monitoring endpoints.
    Reject,
}

/// An accepted connection.
pub(super) struct Connection {
    pub(super) app: App,
    pub(super) stream: TcpStream,
    /// The client's address.
    pub(super) peer: IpAddr,
    pub(super) mode: ConnectionMode,
    pub(super) activity: Arc<Activity>,
    pub(super) stopping: CancellationToken,
}

impl Connection {
    /// Runs until the connection ends or is evicted. After `stopping` is cancelled, ends with the current request.
    pub(super) async fn run(self) {
        let activity = self.activity.clone();
        tokio::select! { () = self.serve() => (), () = activity.evicted() => () }
    }

    async fn serve(self) {
        let Self { app, stream, peer, mode, activity, stopping } = self;
        let limits = &app.settings().limits;
        let stream = Lingering::new(stream, activity.clone(), stopping.clone());
        let io = TokioIo::new(WriteTimeoutStream::new(stream, ProgressTimeout::for_downloads(limits)));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.header_timeout).max_buf_size(READ_BUFFER_BYTES);
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let client = caller::resolve(&app.settings().proxies, peer, request.headers());
            request.extensions_mut().insert(caller::for_address(client));
            if app.logs().is_on() {
                request.extensions_mut().insert(ConnectionInfo { client, tls: false });
            }
            handle(app.clone(), mode, activity.clone(), request.map(Body::new))
        });
        let connection = http.serve_connection(io, service);
        let served = async {
            let Err(error) = run(connection, stopping).await else { return };
            tracing::debug!(error = &error as &dyn std::error::Error, "connection ended early");
            if error.is_parse() {
                let id = app.request_ids().generate();
                MalformedHead { peer, id, status: status_of_malformed_head(&error) }.log(app.logs());
            }
        };
        match mode {
            ConnectionMode::Serve => served.await,
            // A client too slow for this gets no response.
            ConnectionMode::Reject => timeout(REJECT_TIMEOUT, served).await.unwrap_or_default(),
        }
    }
}

/// A response counts as in flight until its body is dropped.
impl BodyObserver for RequestInFlight {}

async fn handle(
    app: App,
    mode: ConnectionMode,
    activity: Arc<Activity>,
    request: Request,
) -> Result<Response, Infallible> {
    let Some(in_flight) = activity.begin_request() else {
        // The connection has been evicted and is about to be dropped.
        return pending().await;
    };
    let response = match mode {
        ConnectionMode::Serve => dispatch::handle(app, request).await,
        ConnectionMode::Reject
            if Route::find(request.method(), request.uri().path()).is_some_and(Route::is_monitoring) =>
        {
            with_connection_close(dispatch::handle(app, request).await)
        }
        ConnectionMode::Reject => with_connection_close(dispatch::reject(&app, &request, ApiError::busy(None))),
    };
    Ok(response.map(|body| ObservedBody::wrap(body, in_flight)))
}

async fn run<S>(connection: http1::Connection<Io, S>, stopping: CancellationToken) -> Result<(), hyper::Error>
where
    S: hyper::service::HttpService<Incoming, ResBody = Body>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut connection = std::pin::pin!(connection);
    let mut shutting_down = false;
    let mut stop = std::pin::pin!(stopping.cancelled());
    poll_fn(|context| {
        if !shutting_down && stop.as_mut().poll(context).is_ready() {
            shutting_down = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    })
    .await
}

/// The status with which hyper rejected a malformed head; `None` if it closed the connection without a response.
fn status_of_malformed_head(error: &hyper::Error) -> Option<StatusCode> {
    if error.is_parse_version_h2() {
        return None;
    }
    Some(match error.is_parse_too_large() {
        // Only the text distinguishes the two.
        true if error.to_string().contains("URI") => StatusCode::URI_TOO_LONG,
        true => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    })
}

fn with_connection_close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
