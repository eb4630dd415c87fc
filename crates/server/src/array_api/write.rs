//! Handlers that write elements.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header::ETAG};
use zarrd_array::{RegionWrite, WriteReport};
use zarrd_meta::{NodePath, selection::ReadRequest};
use zarrd_wire::{
    array as wire_array,
    elements::Extents,
    etag,
    headers::{DIALECTS_DIFFER, SHAPE},
    node::WriteAnswer,
    problem::ProblemType,
    query::{AppendQuery, POINTS, WriteQuery},
};

use super::{
    decode::{Conversions, DecodedBody, DecodedPoints, ExpectedElements, decode_body, decode_points},
    request::{Requested, conflict},
};
use crate::{
    app::App,
    engine::Engine,
    error::ApiError,
    extract::{ArrayPath, Query, WriteConditions},
    headers::dialects_differ,
    request_body::ElementsBody,
};

/// `PUT`: writes the elements selected by the query.
pub(crate) async fn put(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<WriteQuery>,
    conditions: WriteConditions,
    body: ElementsBody,
) -> Result<Response, ApiError> {
    if query.points {
        return Box::pin(put_points(engine, &path, &query, conditions, body)).await;
    }
    let requested = Requested::of(query.select.as_deref(), &query.dimensions)?;
    let selected = requested.select(&engine, (&path, query.dialect)).await?;
    let Engine { app, arrays, .. } = engine;
    let request = requested.read_request(selected.as_ref());
    let ReadRequest::Select(selection) = &*request else {
        return Err(ApiError::with_cause(ProblemType::Internal, "a query selects no points"));
    };
    let region = arrays.write(&path, query.dialect, selection, conditions.precondition).await?;
    let region = region.with_coordinates(selected.map(|selected| selected.coordinates).unwrap_or_default());
    write_region(&app, (&path, &query), region, body).await
}

/// `PUT` with `points`: writes the elements at the points that the body begins with.
async fn put_points(
    Engine { app, arrays, .. }: Engine,
    path: &NodePath,
    query: &WriteQuery,
    conditions: WriteConditions,
    mut body: ElementsBody,
) -> Result<Response, ApiError> {
    if query.select.is_some() || !query.dimensions.is_empty() {
        return Err(conflict(POINTS, "the points of the body take the place of a selection in the query"));
    }
    let DecodedPoints { points, memory } = decode_points(&app, &mut body).await?;
    let region = arrays.write_points(path, query.dialect, points, conditions.precondition).await?;
    let response = write_region(&app, (path, query), region, body).await;
    drop(memory);
    response
}

/// Writes the elements of a body.
async fn write_region(
    app: &App,
    (path, query): (&NodePath, &WriteQuery),
    region: RegionWrite,
    body: ElementsBody,
) -> Result<Response, ApiError> {
    let conversions = Conversions::new(path, region.model(), query.decode, query.casting)?;
    let expected = ExpectedElements::new(region.model(), Extents::exactly(region.shape()), conversions);
    let DecodedBody { elements, memory, .. } = decode_body(app, body, expected).await?;
    let report = region.execute(elements).await?;
    drop(memory);
    Ok(write_response(report))
}

/// `POST` with `append`: grows the array along a dimension and writes the new elements.
pub(crate) async fn append(
    Engine { app, arrays, .. }: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<AppendQuery>,
    conditions: WriteConditions,
    body: ElementsBody,
) -> Result<Response, ApiError> {
    let append = arrays.append(&path, query.dialect, &query.dimension, conditions.precondition).await?;
    let conversions = Conversions::new(&path, append.model(), query.decode, query.casting)?;
    let extents = Extents::open(&append.model().view_shape(), append.dimension());
    let expected = ExpectedElements::new(append.model(), extents, conversions);
    let DecodedBody { elements, count, memory } = decode_body(&app, body, expected).await?;
    let report = append.execute(count, elements).await?;
    drop(memory);
    Ok(write_response(report))
}

/// The response to a write.
pub(super) fn write_response(report: WriteReport) -> Response {
    let WriteReport { version, shape, chunks_written, chunks_erased, conflicts_retried, relation } = report;
    let mut headers = HeaderMap::new();
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.extend(wire_array::shape(&shape).map(|shape| (SHAPE, shape)));
    headers.extend(dialects_differ(relation).map(|differ| (DIALECTS_DIFFER, differ)));
    (headers, Json(WriteAnswer { shape, chunks_written, chunks_erased, conflicts_retried })).into_response()
}
