//! Writes of elements.

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use zarrd_meta::{Dialect, NodePath, selection::Selection};
use zarrd_operations::WriteReport;
use zarrd_store::{Payload, Precondition};
use zarrd_wire::{
    array::Format,
    etag,
    headers::DIALECTS_DIFFER,
    node::WriteAnswer,
    query::{AppendQuery, CreateQuery, WriteQuery},
    routes,
};

use super::{ArrayError, problem};
use crate::{
    deadline::Deadline,
    precondition::{conditional, idempotency},
    response::Response,
    retry::{FailedAttempt, Idempotency},
    transport::Transport,
    upload::Upload,
};

/// Maximum size of a report, in bytes.
const MAX_REPORT_BYTES: usize = 64 * 1024;

/// A request that writes elements.
pub(super) struct WriteRequest {
    path: NodePath,
    method: Method,
    target: String,
    precondition: Precondition,
    idempotency: Idempotency,
}

impl WriteRequest {
    /// Writes a region, which is idempotent.
    pub(super) fn region(
        path: &NodePath,
        selection: &Selection,
        dialect: Option<Dialect>,
        precondition: Precondition,
    ) -> Self {
        let select = Some(selection.to_string()).filter(|text| !text.is_empty());
        let query = WriteQuery { select, dialect, ..WriteQuery::default() }.render();
        let idempotency = idempotency(&precondition);
        Self::new(path, Method::PUT, &query, precondition, idempotency)
    }

    /// Appends elements, which is not idempotent: a retry could append them twice.
    pub(super) fn append(
        path: &NodePath,
        dimension: String,
        dialect: Option<Dialect>,
        precondition: Precondition,
    ) -> Self {
        let query = AppendQuery { dimension, dialect, ..AppendQuery::default() }.render();
        Self::new(path, Method::POST, &query, precondition, Idempotency::NotIdempotent)
    }

    /// Creates an array from its elements, which is not idempotent: the array of a first attempt is a conflict.
    pub(super) fn create(path: &NodePath, query: &CreateQuery, precondition: Precondition) -> Self {
        Self::new(path, Method::PUT, &query.render(), precondition, Idempotency::NotIdempotent)
    }

    fn new(path: &NodePath, method: Method, query: &str, precondition: Precondition, idempotency: Idempotency) -> Self {
        let separator = if query.is_empty() { "" } else { "?" };
        let target = format!("{}{separator}{query}", routes::array_path(path));
        Self { path: path.clone(), method, target, precondition, idempotency }
    }

    /// Sends the request with the elements as its body.
    pub(super) async fn send(
        &self,
        transport: &Transport,
        format: Format,
        content: Payload,
    ) -> Result<WriteReport, ArrayError> {
        // The server responds after it has encoded all chunks and committed them.
        let deadline = transport.start_deadline().for_long_work();
        let bytes = match Upload::new(content, deadline).await? {
            Upload::Replayable(bytes) => bytes,
            Upload::Once(streamed) => {
                let response = streamed.send(self.build(transport, format), deadline).await?;
                return self.report(response).await.map_err(|failed| failed.error);
            }
        };
        let attempt = || self.attempt(transport, format, bytes.clone(), deadline);
        transport.backoff(deadline).retry(self.idempotency, attempt).await
    }

    async fn attempt(
        &self,
        transport: &Transport,
        format: Format,
        bytes: Bytes,
        deadline: Deadline,
    ) -> Result<WriteReport, FailedAttempt<ArrayError>> {
        self.report(transport.send(self.build(transport, format).body(bytes), deadline).await?).await
    }

    fn build(&self, transport: &Transport, format: Format) -> RequestBuilder {
        let request = transport.request(self.method.clone(), &self.target).header(CONTENT_TYPE, format.media_type());
        conditional(request, &self.precondition)
    }

    async fn report(&self, response: Response) -> Result<WriteReport, FailedAttempt<ArrayError>> {
        if !matches!(response.status(), StatusCode::OK | StatusCode::CREATED) {
            return Err(problem::into_failure(response.into_error_response().await, &self.path));
        }
        let version = response.header(ETAG).and_then(etag::parse);
        let relation = response.header(DIALECTS_DIFFER).and_then(|relation| relation.parse().ok());
        let WriteAnswer { shape, chunks_written, chunks_erased, conflicts_retried } =
            response.json(MAX_REPORT_BYTES).await?;
        Ok(WriteReport { version, shape, chunks_written, chunks_erased, conflicts_retried, relation })
    }
}
