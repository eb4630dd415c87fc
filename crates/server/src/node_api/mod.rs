//! `/node`: the structure of hierarchies.

mod members_page;
mod render;

use std::sync::Arc;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_TYPE};
use zarrd_array::{CreateAction, CreateOptions, Permit};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    documents::NodePatch,
    zom::{MAX_VIOLATIONS, Zom, ZomFormat},
};
use zarrd_operations::ConvertOptions;
use zarrd_store::Precondition;
use zarrd_wire::{
    headers::SCHEMA_JSON,
    listing::Erased,
    node::{ConvertReport, ValidateReport, render_losses},
    query::{Confirmation, NodeDeleteQuery, NodePatchQuery, NodePutQuery, NodeQuery},
};

use self::render::NodeRenderer;
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{
        ContentNegotiation, ConvertQuery, NodePathParam, Query, SchemaPath, TagConditions, ValidateQuery,
        WriteConditions,
    },
    request_body::{Document, NODE_OVERHEAD_BYTES, NodeDocument, PatchDocument},
};

/// `GET`: describes a node and its descendants to some depth.
pub(crate) async fn get(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<NodeQuery>,
    negotiation: ContentNegotiation,
    conditions: TagConditions,
) -> Result<Response, ApiError> {
    if let Some(page) = &query.page {
        return members_page::get(&engine, &path, &query, page, &negotiation, &conditions).await;
    }
    let node =
        engine.hierarchies().node(&path, query.dialect, query.depth, query.mapped.map(ZomFormat::dialect)).await?;
    NodeRenderer::new(&query, &negotiation).respond(&engine, node, &conditions).await
}

/// `PUT`: creates a tree.
pub(crate) async fn put(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<NodePutQuery>,
    negotiation: ContentNegotiation,
    conditions: WriteConditions,
    NodeDocument(document): NodeDocument,
) -> Result<Response, ApiError> {
    let (zom, mut memory) = parse_zom(&engine, document).await?;
    // Nodes take memory in addition to their documents; without a permit they are few.
    if let Some(memory) = &mut memory {
        memory.grow_to(memory.bytes().saturating_add(NODE_OVERHEAD_BYTES.saturating_mul(zom.len() as u64)))?;
    }
    let outcome =
        engine.hierarchies().create(&path, Arc::new(zom), &create_options(query, conditions.precondition)).await?;
    let status = match outcome.action {
        CreateAction::Created => StatusCode::CREATED,
        CreateAction::Unchanged | CreateAction::Replaced => StatusCode::OK,
    };
    let mut response = NodeRenderer::full_tree(&negotiation).render_changed(&engine, outcome.node, memory).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// `PATCH`: updates the metadata of a node.
pub(crate) async fn patch(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<NodePatchQuery>,
    negotiation: ContentNegotiation,
    conditions: WriteConditions,
    PatchDocument(Document { bytes, memory }): PatchDocument,
) -> Result<Response, ApiError> {
    let cost = Cost::of(Work::Declaration, bytes.len() as u64);
    let changes = engine.arrays.run(cost, move || NodePatch::parse(bytes)).await??;
    let how = (&conditions.precondition, query.mode);
    let node = engine.hierarchies().patch_in(&path, query.dialect, &changes, how).await?;
    NodeRenderer::full_tree(&negotiation).render_changed(&engine, node, memory).await
}

/// `DELETE`: erases a node and all nodes below it.
pub(crate) async fn delete(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<NodeDeleteQuery>,
    conditions: WriteConditions,
) -> Result<Json<Erased>, ApiError> {
    if path.is_root() && query.confirm == Confirmation::Missing {
        return Err(ApiError::confirmation_required("this erases every node in the store"));
    }
    let erased = engine.hierarchies().erase(&path, query.dialect, &conditions.precondition).await?;
    Ok(Json(erased.into()))
}

/// `POST` with `validate`: compares the hierarchy with the ZOM in the body.
pub(crate) async fn validate(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<ValidateQuery>,
    NodeDocument(document): NodeDocument,
) -> Result<Json<ValidateReport>, ApiError> {
    let (zom, _memory) = parse_zom(&engine, document).await?;
    // One extra difference shows whether the list is truncated.
    let mut found = engine.hierarchies().compare(&path, query.dialect, zom, MAX_VIOLATIONS + 1).await?;
    let truncated = found.len() > MAX_VIOLATIONS;
    found.truncate(MAX_VIOLATIONS);
    let differences: Vec<_> = found.iter().map(Into::into).collect();
    Ok(Json(ValidateReport { unchanged: differences.is_empty(), differences, truncated }))
}

/// `POST` with `convert`: converts the hierarchy to another dialect, in place or at another path.
pub(crate) async fn convert(
    engine: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<ConvertQuery>,
) -> Result<Json<ConvertReport>, ApiError> {
    let ConvertQuery { into, target, existing, losses, .. } = query;
    let options = ConvertOptions { dialect: into, target, losses, existing };
    let report = engine.hierarchies().convert(&path, query.dialect, &options).await?;
    let losses = render_losses(&report.losses);
    Ok(Json(ConvertReport { nodes: report.nodes, chunks: report.chunks, losses }))
}

/// `GET` of a JSON schema.
pub(crate) async fn schema(SchemaPath(version): SchemaPath) -> Response {
    ([(CONTENT_TYPE, SCHEMA_JSON)], version.schema()).into_response()
}

/// Parses the ZOM in a body; returns it with the permit for its memory.
async fn parse_zom(engine: &Engine, Document { bytes, memory }: Document) -> Result<(Zom, Option<Permit>), ApiError> {
    let cost = Cost::of(Work::Declaration, bytes.len() as u64);
    Ok((engine.arrays.run(cost, move || Zom::parse(bytes)).await??, memory))
}

fn create_options(query: NodePutQuery, condition: Precondition) -> CreateOptions {
    let NodePutQuery { dialect, if_exists, losses } = query;
    CreateOptions { dialect, if_exists, precondition: condition, losses }
}
