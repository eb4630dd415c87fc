//! Handlers that read elements.

use axum::response::Response;
use zarrd_executor::{Cost, Work, leave_crowd};
use zarrd_meta::{Dialect, NodePath};
use zarrd_store::{Reads, until_unchanged};
use zarrd_wire::query::ElementsQuery;

use super::{
    image::{self, Located},
    request::ElementsRequest,
    response::ResponseSpec,
    stats::{self, Content},
};
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{ArrayPath, ContentNegotiation, ElementsPostQuery, Query, TagConditions},
    headers::guarantees_at,
    request_body::{Document, ReadRequestDocument},
};

/// The memory of a parsed request per byte of its text. Points with few digits take the most.
const PARSED_BYTES_PER_BYTE: u64 = 24;

/// `GET`: returns the elements selected by the query.
pub(crate) async fn get(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(mut query): Query<ElementsQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
) -> Result<Response, ApiError> {
    let Located { path, channels } = image::locate(&engine, path, &mut query).await?;
    if let Some(statistics) = stats::requested(&query)? {
        let request = ElementsRequest::of_query(&query)?;
        let read =
            || stats::respond(&engine, (&path, query.dialect), (&request, &statistics), (&conditions, Content::Body));
        // Rare ways are boxed, so that others do not take their memory.
        return Box::pin(until_unchanged(|| async { Ok::<_, ApiError>(read().await) })).await?;
    }
    let (spec, request) = parse(&query, &negotiation, conditions)?;
    let spec = spec.with_channels(channels);
    respond(&engine, (&path, query.dialect), &spec, &request).await
}

/// `HEAD`: returns the headers of `GET` without decoding anything.
pub(crate) async fn head(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(mut query): Query<ElementsQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
) -> Result<Response, ApiError> {
    let Located { path, channels } = image::locate(&engine, path, &mut query).await?;
    if let Some(statistics) = stats::requested(&query)? {
        let request = ElementsRequest::of_query(&query)?;
        let conditions = (&conditions, Content::None);
        return Box::pin(stats::respond(&engine, (&path, query.dialect), (&request, &statistics), conditions)).await;
    }
    let (spec, request) = parse(&query, &negotiation, conditions)?;
    let spec = spec.with_channels(channels);
    let (result, notes) = request.plan(&spec, &engine, (&path, query.dialect)).await?;
    spec.with_notes(notes).head_response(&engine.app, &result)
}

/// `POST`: returns the elements selected by the body.
pub(crate) async fn post(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(ElementsPostQuery(mut query)): Query<ElementsPostQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
    ReadRequestDocument(Document { bytes, mut memory }): ReadRequestDocument,
) -> Result<Response, ApiError> {
    let statistics = stats::requested(&query)?;
    let Located { path, channels } = image::locate(&engine, path, &mut query).await?;
    let spec = ResponseSpec::new(&query, &negotiation, conditions)?.with_channels(channels);
    let size = bytes.len() as u64;
    leave_crowd(Cost::of(Work::RequestBody, size)).await;
    let parsed_size = size.saturating_mul(PARSED_BYTES_PER_BYTE);
    let parse = {
        let query = query.clone();
        move || ElementsRequest::of_body(&query, &bytes)
    };
    let request = engine.arrays.run(Cost::of(Work::Documents, size), parse).await??;
    if let Some(memory) = &mut memory {
        memory.shrink_to(parsed_size);
    }
    if let Some(statistics) = statistics {
        let conditions = (spec.conditions(), Content::Body);
        return Box::pin(stats::respond(&engine, (&path, query.dialect), (&request, &statistics), conditions)).await;
    }
    if guarantees_at(&engine.app, &path).reads == Reads::Commit {
        let (result, notes) = request.plan(&spec, &engine, (&path, query.dialect)).await?;
        drop((request, memory));
        return spec.with_notes(notes).respond(&engine, result).await;
    }
    respond(&engine, (&path, query.dialect), &spec, &request).await
}

/// Reads until no other program changes a value before the response begins. Plans are repeated by the engine, so their
/// errors are final.
async fn respond(
    engine: &Engine,
    (path, dialect): (&NodePath, Option<Dialect>),
    spec: &ResponseSpec,
    request: &ElementsRequest,
) -> Result<Response, ApiError> {
    let attempt = || async {
        match request.plan(spec, engine, (path, dialect)).await {
            Ok((result, notes)) => spec.with_notes(notes).respond(engine, result).await.map(Ok),
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
) -> Result<(ResponseSpec, ElementsRequest), ApiError> {
    Ok((ResponseSpec::new(query, negotiation, conditions)?, ElementsRequest::of_query(query)?))
}
