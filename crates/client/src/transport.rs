//! Requests to one server, independent of what is requested.

use std::fmt;

use reqwest::{
    Client, Method, RequestBuilder,
    header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderValue},
};

use crate::{
    BaseUrl, Token,
    deadline::Deadline,
    error::RequestError,
    options::{Retries, Timeouts},
    response::Response,
    retry::{Backoff, FailedAttempt, Idempotency},
};

/// Sends requests to one server.
pub(crate) struct Transport {
    client: Client,
    base: BaseUrl,
    token: Option<Token>,
    timeouts: Timeouts,
    retries: Retries,
}

impl Transport {
    pub(crate) fn new(
        client: Client,
        base: BaseUrl,
        token: Option<Token>,
        timeouts: Timeouts,
        retries: Retries,
    ) -> Self {
        Self { client, base, token, timeouts, retries }
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Builds a request for a target: a percent-encoded path that begins with `/`, and optionally a query.
    pub(crate) fn request(&self, method: Method, target: &str) -> RequestBuilder {
        let request = self
            .client
            .request(method, self.base.target(target))
            // Lengths and ranges refer to the value itself, so no intermediary may compress it.
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.header()),
            None => request,
        }
    }

    /// Sends a request whose body is in memory.
    pub(crate) async fn send(&self, request: RequestBuilder, deadline: Deadline) -> Result<Response, RequestError> {
        Ok(Response::new(deadline.wait_for_server(request.send()).await??, deadline))
    }

    /// The time limits of an operation that begins now.
    pub(crate) fn start_deadline(&self) -> Deadline {
        Deadline::start(&self.timeouts)
    }

    /// Makes attempts of an operation until one succeeds or fails with an error that must not be retried.
    pub(crate) async fn retry<T, E, F>(&self, idempotency: Idempotency, attempt: impl Fn(Deadline) -> F) -> Result<T, E>
    where
        E: fmt::Display,
        F: Future<Output = Result<T, FailedAttempt<E>>>,
    {
        let deadline = self.start_deadline();
        self.backoff(deadline).retry(idempotency, || attempt(deadline)).await
    }

    /// The delays between the attempts of an operation.
    pub(crate) fn backoff(&self, deadline: Deadline) -> Backoff {
        Backoff::new(&self.retries, deadline.end())
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("base", &self.base)
            .field("token", &self.token)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
