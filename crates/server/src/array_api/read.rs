//! Reading elements.

use axum::response::Response;
use meta::selection::{ReadRequest, Selection};
use wire::query::ElementsQuery;

use super::response::Asked;
use crate::{
    engine::Engine,
    error::Refusal,
    extract::{AtArray, Forms, PostElements, Query, TagConditions},
    request_body::{Document, ReadDocument},
};

/// Bodies beyond this size are parsed where they do not keep other requests waiting.
const QUICK: usize = 64 << 10;
/// How many bytes a request takes for each byte of its text, when that has been parsed: a point of few digits takes most.
const PARSED: u64 = 24;

/// `GET`: the elements that the query selects.
pub(crate) async fn get(
    engine: Engine,
    AtArray(path): AtArray,
    Query(query): Query<ElementsQuery>,
    forms: Forms,
    conditions: TagConditions,
) -> Result<Response, Refusal> {
    let (request, asked) = (selected(&query)?, Asked::new(&query, &forms, conditions)?);
    let reading = asked.read(&engine, &path, query.dialect, &request).await?;
    asked.answer(&engine.app, reading).await
}

/// `HEAD`: what `GET` would say of them. Nothing is decoded.
pub(crate) async fn head(
    engine: Engine,
    AtArray(path): AtArray,
    Query(query): Query<ElementsQuery>,
    forms: Forms,
    conditions: TagConditions,
) -> Result<Response, Refusal> {
    let (request, asked) = (selected(&query)?, Asked::new(&query, &forms, conditions)?);
    let reading = asked.read(&engine, &path, query.dialect, &request).await?;
    asked.describe(&engine.app, &reading)
}

/// `POST` that reads: the elements that the body selects.
pub(crate) async fn post(
    engine: Engine,
    AtArray(path): AtArray,
    Query(PostElements(query)): Query<PostElements>,
    forms: Forms,
    conditions: TagConditions,
    ReadDocument(Document { bytes, mut memory }): ReadDocument,
) -> Result<Response, Refusal> {
    let asked = Asked::new(&query, &forms, conditions)?;
    let parsed = (bytes.len() as u64).saturating_mul(PARSED);
    let request = match bytes.len() {
        ..=QUICK => ReadRequest::from_json(&bytes)?,
        len => engine.arrays.run_on_documents(len as u64, move || ReadRequest::from_json(&bytes)).await??,
    };
    if let Some(memory) = &mut memory {
        memory.shrink_to(parsed);
    }
    let reading = asked.read(&engine, &path, query.dialect, &request).await?;
    drop((request, memory));
    asked.answer(&engine.app, reading).await
}

/// All elements, where nothing is selected.
fn selected(query: &ElementsQuery) -> Result<ReadRequest, Refusal> {
    let text = query.select.as_deref().unwrap_or_default();
    Ok(ReadRequest::Select(Selection::parse(text)?))
}
