//! Elements on their way in.

use ::array::{Incoming, WriteReport};
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header::ETAG};
use meta::selection::Selection;
use wire::{
    array, etag,
    headers::SHAPE,
    node::WriteAnswer,
    query::{AppendQuery, WriteQuery},
};

use crate::{
    body::ElementsBody,
    extract::{AtArray, Query, WriteConditions},
    refusal::Refusal,
    state::App,
};

/// `PUT`: writes the elements that the query selects.
pub(crate) async fn put(
    State(app): State<App>,
    AtArray(path): AtArray,
    Query(query): Query<WriteQuery>,
    conditions: WriteConditions,
    body: ElementsBody,
) -> Result<Response, Refusal> {
    let selection = Selection::parse(query.select.as_deref().unwrap_or_default())?;
    let region = app.arrays().write(&path, query.dialect, &selection, conditions.precondition).await?;
    let report = region.run(Incoming::Fixed(body.stream)).await?;
    Ok(written(report))
}

/// `POST` that appends: grows the array along a dimension and writes what is new.
pub(crate) async fn append(
    State(app): State<App>,
    AtArray(path): AtArray,
    Query(query): Query<AppendQuery>,
    conditions: WriteConditions,
    body: ElementsBody,
) -> Result<Response, Refusal> {
    let append = app.arrays().append(&path, query.dialect, query.dimension, conditions.precondition).await?;
    let report = append.run(None, Incoming::Fixed(body.stream)).await?;
    Ok(written(report))
}

fn written(report: WriteReport) -> Response {
    let WriteReport { version, shape, stored, erased, repeated } = report;
    let mut headers = HeaderMap::new();
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.extend(array::shape(&shape).map(|shape| (SHAPE, shape)));
    (headers, Json(WriteAnswer { shape, stored, erased, repeated })).into_response()
}
