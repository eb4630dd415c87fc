//! Share links of a server.

use std::{fmt, sync::Arc, time::SystemTime};

use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use zarrd_store::{Cursor, Prefix};
use zarrd_wire::{
    access::{CreatedShare, NewShare, Share, Shares},
    headers,
    problem::Problem,
    query::{DEFAULT_LIMIT, PageQuery},
    routes::{SHARES, share_path},
    time::rfc3339,
};

use crate::{
    base_url::BaseUrl,
    connection::{BuildError, ClientBuilder, Connection},
    deadline::Deadline,
    error::RequestError,
    remote::RemoteError,
    response::{ErrorResponse, Response},
    retry::{FailedAttempt, Idempotency},
    transport::Transport,
};

/// Maximum size of a response, in bytes. The server ends a page of long names and prefixes early.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

type Attempt<T> = Result<T, FailedAttempt<RemoteError>>;

/// The share links of a server that were made with the token of this client.
#[derive(Clone)]
pub struct ShareClient {
    transport: Arc<Transport>,
}

impl ShareClient {
    /// Returns a builder of a client of the server at `base`.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// Creates a client of the server at `base`, with default options.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Creates a share link that reads `prefix` until `expires`, and returns its URL: the base for all clients, which the
    /// usual path follows. `name` is for people.
    pub async fn create(
        &self,
        name: &str,
        prefix: &Prefix,
        expires: SystemTime,
    ) -> Result<(Share, String), RemoteError> {
        let share = NewShare { name: name.to_owned(), prefix: prefix.to_string(), expires: rfc3339(expires) };
        // Writing plain structures to memory cannot fail.
        let body = serde_json::to_vec(&share).unwrap_or_default();
        let attempt = async |deadline| -> Attempt<CreatedShare> {
            let request = self.transport.request(Method::POST, SHARES).header(CONTENT_TYPE, headers::JSON);
            let response = self.transport.send(request.body(body.clone()), deadline).await?;
            parse(expect(response, StatusCode::CREATED).await?).await
        };
        let created = self.transport.retry(Idempotency::NotIdempotent, attempt).await?;
        let base = self.transport.base().to_string();
        let url = format!("{}{}", base.trim_end_matches('/'), created.link);
        Ok((created.properties, url))
    }

    /// Lists the share links that this client made or administers, by id. Each page of the listing is an operation with
    /// a time limit and retries of its own.
    pub async fn list(&self) -> Result<Vec<Share>, RemoteError> {
        let mut query = PageQuery { limit: Some(DEFAULT_LIMIT), cursor: None };
        let mut shares = Vec::new();
        loop {
            let page = self.page(&query, shares.last()).await?;
            shares.extend(page.shares);
            let Some(cursor) = page.cursor else { return Ok(shares) };
            query.cursor = Some(Cursor::from_text(cursor));
        }
    }

    /// Returns the page of a listing that follows the link `last`.
    async fn page(&self, query: &PageQuery, last: Option<&Share>) -> Result<Shares, RemoteError> {
        let target = format!("{SHARES}?{}", query.render());
        let attempt = async |deadline| -> Attempt<Shares> {
            let response = self.transport.send(self.transport.request(Method::GET, &target), deadline).await?;
            let page: Shares = parse(expect(response, StatusCode::OK).await?).await?;
            check_page(&page, last)?;
            Ok(page)
        };
        self.transport.retry(Idempotency::Idempotent, attempt).await
    }

    /// Revokes a share link. It is an error if there is none with this id, also if it was revoked by an attempt whose
    /// response was lost.
    pub async fn revoke(&self, id: &str) -> Result<(), RemoteError> {
        let attempt = async |deadline: Deadline| -> Attempt<()> {
            let request = self.transport.request(Method::DELETE, &share_path(id));
            expect(self.transport.send(request, deadline).await?, StatusCode::NO_CONTENT).await?;
            Ok(())
        };
        self.transport.retry(Idempotency::Idempotent, attempt).await
    }
}

impl From<Connection> for ShareClient {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport }
    }
}

impl fmt::Debug for ShareClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareClient").field("transport", &self.transport).finish()
    }
}

/// Checks that a page begins after the last link of the page before, and that a cursor advances, so that a listing ends.
fn check_page(page: &Shares, last: Option<&Share>) -> Result<(), RequestError> {
    if !last.into_iter().chain(&page.shares).is_sorted_by(|one, next| one.id < next.id) {
        return Err(RequestError::protocol("a listing that is not sorted"));
    }
    if page.cursor.is_some() && page.shares.is_empty() {
        return Err(RequestError::protocol("a cursor that does not advance"));
    }
    Ok(())
}

/// Fails unless the response has the status.
async fn expect(response: Response, status: StatusCode) -> Attempt<Response> {
    if response.status() == status {
        return Ok(response);
    }
    let from_problem = |response: &ErrorResponse, problem: Problem| {
        RemoteError::from_problem(response, problem.kind, problem.message().to_owned())
    };
    Err(response.into_error_response().await.into_failure(from_problem, RemoteError::from_status))
}

async fn parse<T: DeserializeOwned>(response: Response) -> Attempt<T> {
    let body = response.bytes(MAX_RESPONSE_BYTES).await?;
    let parsed = serde_json::from_slice(&body);
    Ok(parsed.map_err(|error| RequestError::protocol(format!("invalid JSON: {error}")))?)
}
