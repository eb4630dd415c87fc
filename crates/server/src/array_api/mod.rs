//! `/array`: the elements of arrays.

mod answer;
mod blocks;
mod format;
mod incoming;
mod write;

pub(crate) use incoming::IncomingError;
pub(crate) use write::{append, put};

use std::convert::Infallible;

use ::array::Arrays;
use axum::{extract::FromRequestParts, response::Response};
use http::request::Parts;
use meta::selection::{ReadRequest, Selection};
use wire::query::ElementsQuery;

use self::answer::Asked;
use crate::{
    blocking::blocking,
    body::{Document, ReadDocument},
    caller::Caller,
    extract::{AtArray, Forms, PostElements, Query, TagConditions},
    refusal::Refusal,
    room::RightToWait,
    state::App,
};

/// Bodies beyond this size are parsed where they do not keep other requests waiting.
const QUICK: usize = 64 << 10;

/// The arrays on behalf of the caller of a request.
pub(crate) struct Engine {
    app: App,
    arrays: Arrays,
}

impl FromRequestParts<App> for Engine {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let caller = Caller::from_request_parts(parts, app).await?;
        Ok(Self { app: app.clone(), arrays: app.arrays().on_behalf_of(::array::Caller::new(caller.id())) })
    }
}

/// `GET`: the elements that the query selects.
pub(crate) async fn get(
    Engine { app, arrays }: Engine,
    AtArray(path): AtArray,
    Query(query): Query<ElementsQuery>,
    forms: Forms,
    conditions: TagConditions,
    right: RightToWait,
) -> Result<Response, Refusal> {
    let (request, asked) = (selected(&query)?, Asked::new(&query, &forms, conditions)?);
    let limit = asked.limit(&app);
    let reading = arrays.read(&path, query.dialect, &request, limit).await?;
    asked.answer(&app, &right, reading).await
}

/// `HEAD`: what `GET` would say of them. Nothing is decoded.
pub(crate) async fn head(
    Engine { app, arrays }: Engine,
    AtArray(path): AtArray,
    Query(query): Query<ElementsQuery>,
    forms: Forms,
    conditions: TagConditions,
) -> Result<Response, Refusal> {
    let (request, asked) = (selected(&query)?, Asked::new(&query, &forms, conditions)?);
    let limit = asked.limit(&app);
    let reading = arrays.read(&path, query.dialect, &request, limit).await?;
    asked.describe(&app, &reading)
}

/// `POST` that reads: the elements that the body selects.
pub(crate) async fn post(
    Engine { app, arrays }: Engine,
    AtArray(path): AtArray,
    Query(PostElements(query)): Query<PostElements>,
    forms: Forms,
    conditions: TagConditions,
    right: RightToWait,
    ReadDocument(Document { bytes, room }): ReadDocument,
) -> Result<Response, Refusal> {
    let asked = Asked::new(&query, &forms, conditions)?;
    let request = match bytes.len() {
        ..=QUICK => ReadRequest::from_json(&bytes)?,
        _ => blocking(move || ReadRequest::from_json(&bytes)).await??,
    };
    let limit = asked.limit(&app);
    let reading = arrays.read(&path, query.dialect, &request, limit).await?;
    drop((request, room));
    asked.answer(&app, &right, reading).await
}

/// All elements, where nothing is selected.
fn selected(query: &ElementsQuery) -> Result<ReadRequest, Refusal> {
    let text = query.select.as_deref().unwrap_or_default();
    Ok(ReadRequest::Select(Selection::parse(text)?))
}
