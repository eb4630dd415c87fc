//! The requests of a connection, whichever version of HTTP carries them.

use std::{future::pending, net::IpAddr, sync::Arc};

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderValue, header::CONNECTION};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use super::slots::{Activity, RequestInFlight};
use crate::{
    app::App,
    caller::{self, Peer},
    dispatch,
    error::ApiError,
    request_log::ConnectionInfo,
    routes::Route,
    s3_api,
    surface::Surface,
};

/// The treatment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionMode {
    /// Handles its requests.
    Serve,
    /// Responds 503 to its first request, except on monitoring endpoints.
    Reject,
}

/// A handler for the requests of a connection.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) app: App,
    /// The client's address.
    pub(super) peer: IpAddr,
    /// The meaning of the paths of requests.
    pub(super) surface: Surface,
    pub(super) mode: ConnectionMode,
    /// True if the connection is encrypted.
    pub(super) tls: bool,
    pub(super) activity: Arc<Activity>,
    /// Permits for requests that share their connection with others.
    pub(super) concurrent: Arc<Semaphore>,
}

impl Requests {
    /// Handles a request. The result has the request, which is in progress until dropped.
    pub(super) async fn handle(&self, request: hyper::Request<Incoming>) -> (Response, RequestInFlight) {
        let Some(in_flight) = self.activity.begin_request() else {
            // The connection has been evicted and is about to be dropped.
            return pending().await;
        };
        let in_flight = in_flight.in_place().await;
        let request = self.identified(request);
        if self.mode == ConnectionMode::Reject {
            let response = match self.is_monitoring(&request) {
                true => self.respond(request).await,
                false => self.busy(&request),
            };
            return (with_connection_close(response), in_flight);
        }
        match self.permitted(in_flight) {
            Ok(in_flight) => (self.respond(request).await, in_flight),
            Err(in_flight) if self.is_monitoring(&request) => (self.respond(request).await, in_flight),
            Err(in_flight) => (self.busy(&request), in_flight),
        }
    }

    async fn respond(&self, request: Request) -> Response {
        match self.surface {
            Surface::Api | Surface::Root => dispatch::handle(self.app.clone(), request).await,
            Surface::S3 => s3_api::handle(self.app.clone(), request).await,
        }
    }

    fn is_monitoring(&self, request: &Request) -> bool {
        let route = Route::find(request.method(), request.uri().path());
        self.surface != Surface::S3 && route.is_some_and(Route::is_monitoring)
    }

    /// Attaches the peer and the caller to a request.
    fn identified(&self, request: hyper::Request<Incoming>) -> Request {
        let mut request = request.map(Body::new);
        match self.surface {
            Surface::Api => dispatch::strip_base_path(&self.app, &mut request),
            Surface::Root | Surface::S3 => self.surface.enter(&mut request),
        }
        let proxies = &self.app.settings().proxies;
        let client = caller::resolve(proxies, self.peer, request.headers());
        request.extensions_mut().insert(caller::for_address(client));
        request.extensions_mut().insert(Peer::new(proxies, self.peer));
        if self.app.logs().is_on() {
            request.extensions_mut().insert(ConnectionInfo { client, tls: self.tls });
        }
        request
    }

    /// Takes a permit for a request that is not the only one of its connection. Fails if there is none.
    fn permitted(&self, in_flight: RequestInFlight) -> Result<RequestInFlight, RequestInFlight> {
        if self.activity.requests() <= 1 {
            return Ok(in_flight);
        }
        match self.concurrent.clone().try_acquire_owned() {
            Ok(permit) => Ok(in_flight.with_permit(permit)),
            Err(_) => Err(in_flight),
        }
    }

    /// The response to a request that is rejected because of the number of connections or requests.
    fn busy(&self, request: &Request) -> Response {
        dispatch::reject(&self.app, request, ApiError::too_many_connections(self.app.settings().limits.connections))
    }
}

fn with_connection_close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
