//! The handler that creates an array from its elements.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value, json};
use zarrd_array::CreateOptions;
use zarrd_meta::zom::Zom;
use zarrd_operations::LossPolicy;
use zarrd_wire::{
    array::Format,
    elements::Extents,
    query::{CREATE_PARAMETERS, CreateQuery, DTYPE, QueryError, SHAPE},
};

use super::{
    decode::{Conversions, DecodedBody, ExpectedElements, decode_body, peek_header},
    write::write_response,
};
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{ArrayPath, Query, WriteConditions},
    request_body::ElementsBody,
};

/// `PUT` with `create`: creates the array that the body is the elements of.
pub(crate) async fn create(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<CreateQuery>,
    conditions: WriteConditions,
    mut body: ElementsBody,
) -> Result<Response, ApiError> {
    let zom = declaration(&query, &mut body).await?;
    let options = CreateOptions {
        dialect: query.dialect,
        if_exists: query.if_exists,
        precondition: conditions.precondition,
        losses: LossPolicy::Reject,
    };
    let creation = engine.hierarchies().create_array(&path, Arc::new(zom), &options).await?;
    let extents = Extents::exactly(&creation.model().view_shape());
    let expected = ExpectedElements::new(creation.model(), extents, Conversions::default());
    let DecodedBody { elements, memory, .. } = decode_body(&engine.app, body, expected).await?;
    let report = creation.execute(elements).await?;
    drop(memory);
    let mut response = write_response(report);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// The declaration of an array that has the shape and type of the query, or else of the body.
async fn declaration(query: &CreateQuery, body: &mut ElementsBody) -> Result<Zom, ApiError> {
    let (shape, data_type) = match (&query.shape, &query.dtype) {
        (Some(shape), Some(dtype)) => (shape.clone(), Value::from(dtype.as_str())),
        _ if body.media_type.as_deref() == Some(Format::Npy.media_type()) => {
            let header = peek_header(body).await?;
            (header.shape, header.data_type.to_v3())
        }
        _ => return Err(QueryError::Missing { names: &[SHAPE, DTYPE], known: CREATE_PARAMETERS }.into()),
    };
    let mut document = Map::new();
    document.insert("shape".to_owned(), json!(shape));
    document.insert("data_type".to_owned(), data_type);
    document.extend(query.dims.as_ref().map(|dims| ("dimension_names".to_owned(), json!(dims))));
    Ok(Zom::parse(Value::Object(document).to_string().into_bytes())?)
}
