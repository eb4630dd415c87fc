//! Handlers that read elements.

use axum::response::Response;
use meta::{
    Dialect, NodePath,
    selection::{ReadRequest, Selection},
};
use store::{Reads, until_unchanged};
use wire::query::ElementsQuery;

use super::response::ResponseSpec;
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{ArrayPath, ContentNegotiation, ElementsPostQuery, Query, TagConditions},
    headers::guarantees_at,
    request_body::{Document, ReadRequestDocument},
};

/// The largest body, in bytes, that is parsed on the async thread.
const INLINE_PARSE_LIMIT: usize = 64 << 10;
/// The memory of a parsed request per byte of its text. Points with few digits take the most.
const PARSED_BYTES_PER_BYTE: u64 = 24;

/// `GET`: returns the elements selected by the query.
pub(crate) async fn get(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<ElementsQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
) -> Result<Response, ApiError> {
    let (spec, request) = parse(&query, &negotiation, conditions)?;
    respond(&engine, (&path, query.dialect), &spec, &request).await
}

/// `HEAD`: returns the headers of `GET` without decoding anything.
pub(crate) async fn head(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<ElementsQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
) -> Result<Response, ApiError> {
    let (spec, request) = parse(&query, &negotiation, conditions)?;
    let read = spec.read(&engine, &path, query.dialect, &request).await?;
    spec.head_response(&engine.app, &read)
}

/// `POST`: returns the elements selected by the body.
pub(crate) async fn post(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(ElementsPostQuery(query)): Query<ElementsPostQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
    ReadRequestDocument(Document { bytes, mut memory }): ReadRequestDocument,
) -> Result<Response, ApiError> {
    let spec = ResponseSpec::new(&query, &negotiation, conditions)?;
    let parsed_size = (bytes.len() as u64).saturating_mul(PARSED_BYTES_PER_BYTE);
    let request = match bytes.len() {
        ..=INLINE_PARSE_LIMIT => ReadRequest::from_json(&bytes)?,
        len => engine.arrays.run_on_documents(len as u64, move || ReadRequest::from_json(&bytes)).await??,
    };
    if let Some(memory) = &mut memory {
        memory.shrink_to(parsed_size);
    }
    if guarantees_at(&engine.app, &path).reads == Reads::Commit {
        let read = spec.read(&engine, &path, query.dialect, &request).await?;
        drop((request, memory));
        return spec.respond(&engine.app, read).await;
    }
    respond(&engine, (&path, query.dialect), &spec, &request).await
}

/// Reads until no other program changes a value before the response begins. Plans are repeated by the engine, so their
/// errors are final.
async fn respond(
    engine: &Engine,
    (path, dialect): (&NodePath, Option<Dialect>),
    spec: &ResponseSpec,
    request: &ReadRequest,
) -> Result<Response, ApiError> {
    let attempt = || async {
        match spec.read(engine, path, dialect, request).await {
            Ok(read) => spec.respond(&engine.app, read).await.map(Ok),
            Err(error) => Ok(Err(error)),
        }
    };
    until_unchanged(attempt).await?
}

/// The form of the response, and the selection in the query; the default is all elements.
fn parse(
    query: &ElementsQuery,
    negotiation: &ContentNegotiation,
    conditions: TagConditions,
) -> Result<(ResponseSpec, ReadRequest), ApiError> {
    let request = ReadRequest::Select(Selection::parse(query.select.as_deref().unwrap_or_default())?);
    Ok((ResponseSpec::new(query, negotiation, conditions)?, request))
}
