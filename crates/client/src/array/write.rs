//! Requests that write elements.

use bytes::Bytes;
use meta::{Dialect, NodePath, selection::Selection};
use operations::WriteReport;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use store::{Payload, Precondition};
use wire::{
    array::Format,
    etag,
    node::WriteAnswer,
    query::{AppendQuery, WriteQuery},
    routes,
};

use super::{ArrayError, problem};
use crate::{
    answer::Answer,
    failure::{Failure, Repeat},
    transport::{Clock, Transport},
    upload::Upload,
    write,
};

/// The longest report that is read.
const MAX_REPORT: usize = 64 * 1024;

/// A write that is about to be made.
pub(super) struct Change {
    path: NodePath,
    method: Method,
    target: String,
    condition: Precondition,
    repeat: Repeat,
}

impl Change {
    /// Writes a region. Written twice, it is what it is.
    pub(super) fn region(
        path: &NodePath,
        selection: &Selection,
        dialect: Option<Dialect>,
        condition: Precondition,
    ) -> Self {
        let select = Some(selection.to_string()).filter(|text| !text.is_empty());
        let query = WriteQuery { select, dialect }.render();
        let repeat = write::repeat(&condition);
        Self::of(path, Method::PUT, &query, condition, repeat)
    }

    /// Appends. Made twice, the elements would be there twice.
    pub(super) fn append(path: &NodePath, dimension: i64, dialect: Option<Dialect>, condition: Precondition) -> Self {
        let query = AppendQuery { dimension, dialect }.render();
        Self::of(path, Method::POST, &query, condition, Repeat::IfNotDone)
    }

    fn of(path: &NodePath, method: Method, query: &str, condition: Precondition, repeat: Repeat) -> Self {
        let question = if query.is_empty() { "" } else { "?" };
        let target = format!("{}{question}{query}", routes::array_path(path));
        Self { path: path.clone(), method, target, condition, repeat }
    }

    /// Makes it.
    pub(super) async fn run(
        &self,
        transport: &Transport,
        format: Format,
        content: Payload,
    ) -> Result<WriteReport, ArrayError> {
        // Chunks are encoded and made durable before the answer.
        let clock = transport.clock().patient();
        let bytes = match Upload::of(content, clock).await? {
            Upload::Replayable(bytes) => bytes,
            Upload::Once(streamed) => {
                let answer = streamed.send(self.request(transport, format), clock).await?;
                return self.report(answer).await.map_err(|failure| failure.error);
            }
        };
        let mut schedule = transport.schedule(clock);
        loop {
            match self.attempt(transport, format, bytes.clone(), clock).await {
                Ok(report) => return Ok(report),
                Err(failure) => schedule.wait(failure, self.repeat).await?,
            }
        }
    }

    async fn attempt(
        &self,
        transport: &Transport,
        format: Format,
        bytes: Bytes,
        clock: Clock,
    ) -> Result<WriteReport, Failure<ArrayError>> {
        self.report(transport.send(self.request(transport, format).body(bytes), clock).await?).await
    }

    fn request(&self, transport: &Transport, format: Format) -> RequestBuilder {
        let request = transport.request(self.method.clone(), &self.target).header(CONTENT_TYPE, format.media_type());
        write::conditional(request, &self.condition)
    }

    async fn report(&self, answer: Answer) -> Result<WriteReport, Failure<ArrayError>> {
        if answer.status() != StatusCode::OK {
            return Err(problem::into_failure(answer.into_problem().await, &self.path));
        }
        let version = answer.header(ETAG).and_then(etag::parse);
        let WriteAnswer { shape, chunks_written, chunks_erased, conflicts_retried } = answer.json(MAX_REPORT).await?;
        Ok(WriteReport { version, shape, chunks_written, chunks_erased, conflicts_retried })
    }
}
