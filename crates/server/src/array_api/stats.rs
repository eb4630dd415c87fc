//! Statistics of elements, as JSON.

use axum::{body::Body, response::Response};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY},
};
use serde_json::{Map, Value, json};
use zarrd_array::StatisticsOf;
use zarrd_compute::{Statistics, StatisticsRequest};
use zarrd_meta::{
    Dialect, NodePath,
    data_type::{DataType, Number},
};
use zarrd_store::Version;
use zarrd_wire::{
    array::{self as wire_array, Format},
    etag,
    headers::{CONSISTENCY, DATA_TYPE, DIALECT, DIALECTS_DIFFER, SHAPE},
    problem::{Members, Problem, ProblemType},
    query::{ElementsQuery, FORMAT, QueryError, StatsQuery},
};

use super::{
    block_stream::MetricsGuard,
    request::ElementsRequest,
    response::{VARY_ACCEPT, server_timing},
    steps::decode_of,
};
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{ConditionOutcome, TagConditions},
    headers::{REVALIDATE, consistency, dialects_differ},
    response_body::empty_body_of_unknown_length,
};

/// The request for statistics in a query, if it has one.
pub(super) fn requested(query: &ElementsQuery) -> Result<Option<StatisticsOf>, ApiError> {
    let Some(StatsQuery { quantiles, bins, range }) = query.compute.stats.clone() else { return Ok(None) };
    if query.format.is_some_and(|format| format != Format::Json) {
        return Err(QueryError::Invalid { name: FORMAT, expected: "is json for statistics" }.into());
    }
    let decode = decode_of(query);
    Ok(Some(StatisticsOf { statistics: StatisticsRequest { quantiles, bins, range }, decode }))
}

/// Responds with statistics, or only with the headers.
pub(super) async fn respond(
    engine: &Engine,
    (path, dialect): (&NodePath, Option<Dialect>),
    (request, statistics): (&ElementsRequest, &StatisticsOf),
    (conditions, content): (&TagConditions, Content),
) -> Result<Response, ApiError> {
    let read = request.plan_statistics(statistics, engine, (path, dialect)).await?;
    let version = read.fingerprint().map(Version::from_u128);
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.insert(CACHE_CONTROL, REVALIDATE);
    headers.insert(VARY, VARY_ACCEPT);
    match conditions.evaluate(version) {
        ConditionOutcome::Proceed => {}
        ConditionOutcome::NotModified => {
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        ConditionOutcome::PreconditionFailed => {
            let members = Members { current: version.map(etag::text), ..Members::default() };
            return Err(ApiError::new(Problem::new(ProblemType::PreconditionFailed).with_members(members)));
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(DIALECT, HeaderValue::from_static(read.model().dialect.name()));
    headers.insert(CONSISTENCY, consistency(&engine.app, path));
    headers.extend(dialects_differ(read.relation()).map(|differ| (DIALECTS_DIFFER, differ)));
    headers.extend(wire_array::shape(read.shape()).map(|shape| (SHAPE, shape)));
    headers.extend(wire_array::data_type(&read.data_type().name()).map(|name| (DATA_TYPE, name)));
    let metrics = read.metrics();
    if content == Content::None {
        *response.body_mut() = empty_body_of_unknown_length();
    } else {
        let guard = MetricsGuard::new(&engine.app, metrics.clone());
        let data_type = read.data_type().clone();
        let body = read.run(move |statistics| render(&statistics, &data_type)).await?;
        drop(guard);
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len() as u64));
        headers.extend(server_timing(&metrics));
        *response.body_mut() = Body::from(body);
    }
    Ok(response)
}

/// The content of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// As of `GET`.
    Body,
    /// As of `HEAD`.
    None,
}

/// Statistics as JSON; numbers that JSON does not have are texts, as in elements.
fn render(statistics: &Statistics, data_type: &DataType) -> Vec<u8> {
    let float = DataType::of_number(Number::Float64);
    let element = |data_type: &DataType, element: &[u8]| {
        let mut text = Vec::new();
        data_type.write_json(element, &mut text);
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    };
    let number = |value: f64| element(&float, &value.to_le_bytes());
    let mut members = Map::new();
    members.insert("count".to_owned(), json!(statistics.count));
    members.insert("missing".to_owned(), json!(statistics.missing));
    let extremes = statistics.extremes.as_ref();
    members.insert("min".to_owned(), extremes.map_or(Value::Null, |(least, _)| element(data_type, least)));
    members.insert("max".to_owned(), extremes.map_or(Value::Null, |(_, greatest)| element(data_type, greatest)));
    let sum = statistics.sum.as_ref();
    members.insert("sum".to_owned(), sum.map_or(Value::Null, |(data_type, sum)| element(data_type, sum)));
    members.insert("mean".to_owned(), number(statistics.mean));
    members.insert("std".to_owned(), number(statistics.std));
    let quantiles = statistics.quantiles.iter().map(|&(quantile, value)| json!([quantile, number(value)]));
    members.insert("quantiles".to_owned(), quantiles.collect());
    let histogram = statistics.histogram.as_ref().map(|(edges, counts)| {
        json!({"edges": edges.iter().map(|&edge| number(edge)).collect::<Vec<_>>(), "counts": counts})
    });
    members.insert("histogram".to_owned(), histogram.unwrap_or(Value::Null));
    let mut text = Value::Object(members).to_string().into_bytes();
    text.push(b'\n');
    text
}
