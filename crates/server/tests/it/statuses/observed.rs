//! Requests and the statuses of their responses.

use std::collections::BTreeSet;

use axum::body::Body;
use http::{HeaderName, HeaderValue, Method, Request, header::HOST};
use zarrd_server::Caller;

use crate::common::{
    TestServer,
    contract::{CONTRACT, RequestInfo},
    read,
};

/// A request that may succeed.
#[derive(Clone, Debug)]
pub(super) struct TestRequest {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: &'static str,
}

impl TestRequest {
    pub(super) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut request = self.clone();
        request.headers.retain(|(known, _)| known != name);
        request.headers.push((HeaderName::from_static(name), value.parse().unwrap()));
        request
    }

    pub(super) fn without_host(&self) -> Self {
        let mut request = self.clone();
        request.headers.retain(|(name, _)| name != HOST);
        request
    }

    fn request(&self, body: Body) -> Request<Body> {
        let mut request = Request::builder().method(&self.method).uri(&self.target);
        request.headers_mut().unwrap().extend(self.headers.iter().cloned());
        request.extension(Caller::new(1)).body(body).unwrap()
    }
}

/// The statuses observed for one operation.
#[derive(Debug, Default)]
pub(super) struct ObservedStatuses {
    pub(super) statuses: BTreeSet<String>,
    pub(super) undocumented: BTreeSet<String>,
}

impl ObservedStatuses {
    /// Sends a request and returns the entity tag of the response.
    pub(super) async fn request(&mut self, server: &TestServer, request: &TestRequest) -> Option<String> {
        self.send(server, request, Body::from(request.body)).await
    }

    pub(super) async fn send(&mut self, server: &TestServer, request: &TestRequest, body: Body) -> Option<String> {
        let http_request = request.request(body);
        let info = RequestInfo::new(http_request.method(), http_request.uri());
        let answer = read(server.send_unchecked(http_request).await).await;
        if let Err(reason) = CONTRACT.try_check(&info, answer.status, &answer.headers, Some(&answer.body)) {
            self.undocumented.insert(format!("{} {}: {} {reason}", request.method, request.target, answer.status));
        }
        self.statuses.insert(answer.status.as_str().to_owned());
        answer.headers.get("etag").map(|tag| tag.to_str().unwrap().to_owned())
    }
}
