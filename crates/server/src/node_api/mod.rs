//! `/node`: the structure of hierarchies.

mod members_page;
mod render;

use std::sync::Arc;

use array::{CreateAction, CreateOptions, Permit};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_TYPE};
use meta::{
    documents::Changes,
    zom::{MAX_VIOLATIONS, Version, Zom},
};
use operations::ConvertOptions;
use store::Precondition;
use wire::{
    headers::SCHEMA_JSON,
    listing::Erased,
    node::{ConvertReport, ValidateReport},
    query::{Confirm, NodeDeleteQuery, NodePatchQuery, NodePutQuery, NodeQuery},
};

use self::render::{Telling, lost};
use crate::{
    engine::Engine,
    error::Refusal,
    extract::{AtNode, AtSchema, ConvertNode, Forms, Query, TagConditions, ValidateNode, WriteConditions},
    request_body::{Document, NodeDocument, OF_NODE, PatchDocument},
};

/// Documents beyond this size are parsed where they do not keep other requests waiting.
const QUICK: usize = 16 << 10;

/// `GET`: the node, and what is below it to some depth.
pub(crate) async fn get(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<NodeQuery>,
    forms: Forms,
    conditions: TagConditions,
) -> Result<Response, Refusal> {
    if let Some(page) = &query.page {
        return members_page::get(&engine, &path, &query, page, &forms, &conditions).await;
    }
    let node = engine.hierarchies().node(&path, query.dialect, query.depth, query.mapped.map(Version::dialect)).await?;
    Telling::new(&query, &forms).answer(&engine, node, &conditions).await
}

/// `PUT`: declares a tree.
pub(crate) async fn put(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<NodePutQuery>,
    forms: Forms,
    conditions: WriteConditions,
    NodeDocument(document): NodeDocument,
) -> Result<Response, Refusal> {
    let (zom, mut memory) = parsed(&engine, document).await?;
    // Nodes take memory beside their documents. Few of them, for which there is no permit, take little.
    if let Some(memory) = &mut memory {
        memory.grow_to(memory.bytes().saturating_add(OF_NODE.saturating_mul(zom.len() as u64)))?;
    }
    let declared =
        engine.hierarchies().create(&path, &Arc::new(zom), &declaration(query, conditions.precondition)).await?;
    let status = match declared.action {
        CreateAction::Created => StatusCode::CREATED,
        CreateAction::Unchanged | CreateAction::Replaced => StatusCode::OK,
    };
    let mut response = Telling::whole(&forms).tell(&engine, declared.node, memory).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// `PATCH`: changes what is said of a node.
pub(crate) async fn patch(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<NodePatchQuery>,
    forms: Forms,
    conditions: WriteConditions,
    PatchDocument(Document { bytes, memory }): PatchDocument,
) -> Result<Response, Refusal> {
    let changes = match bytes.len() {
        ..=QUICK => Changes::parse(bytes)?,
        len => engine.arrays.run_on_documents(len as u64, move || Changes::parse(bytes)).await??,
    };
    let node = engine.hierarchies().patch(&path, query.dialect, &changes, &conditions.precondition).await?;
    Telling::whole(&forms).tell(&engine, node, memory).await
}

/// `DELETE`: erases a node and all below it.
pub(crate) async fn delete(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<NodeDeleteQuery>,
    conditions: WriteConditions,
) -> Result<Json<Erased>, Refusal> {
    if path.is_root() && query.confirm == Confirm::Unsaid {
        return Err(Refusal::unconfirmed("this is the root: every node would go"));
    }
    let erased = engine.hierarchies().erase(&path, query.dialect, &conditions.precondition).await?;
    Ok(Json(erased.into()))
}

/// `POST` that compares: where the hierarchy differs from the ZOM in the body.
pub(crate) async fn validate(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<ValidateNode>,
    NodeDocument(document): NodeDocument,
) -> Result<Json<ValidateReport>, Refusal> {
    let (zom, _memory) = parsed(&engine, document).await?;
    // One more than are told shows whether there are more.
    let mut found = engine.hierarchies().compare(&path, query.dialect, zom, MAX_VIOLATIONS + 1).await?;
    let truncated = found.len() > MAX_VIOLATIONS;
    found.truncate(MAX_VIOLATIONS);
    let differences: Vec<_> = found.iter().map(Into::into).collect();
    Ok(Json(ValidateReport { unchanged: differences.is_empty(), differences, truncated }))
}

/// `POST` that converts: the hierarchy in another dialect, at the same place or elsewhere.
pub(crate) async fn convert(
    engine: Engine,
    AtNode(path): AtNode,
    Query(query): Query<ConvertNode>,
) -> Result<Json<ConvertReport>, Refusal> {
    let options = ConvertOptions { dialect: query.into, target: query.target };
    let report = engine.hierarchies().convert(&path, query.dialect, &options).await?;
    let losses = lost(&report.losses);
    Ok(Json(ConvertReport { nodes: report.nodes, chunks: report.chunks, losses }))
}

/// `GET` of a schema.
pub(crate) async fn schema(AtSchema(version): AtSchema) -> Response {
    ([(CONTENT_TYPE, SCHEMA_JSON)], version.schema()).into_response()
}

/// The ZOM that a body is, and the memory that it is allowed to take.
async fn parsed(engine: &Engine, Document { bytes, memory }: Document) -> Result<(Zom, Option<Permit>), Refusal> {
    let zom = match bytes.len() {
        ..=QUICK => Zom::parse(bytes)?,
        len => engine.arrays.run_on_documents(len as u64, move || Zom::parse(bytes)).await??,
    };
    Ok((zom, memory))
}

fn declaration(query: NodePutQuery, condition: Precondition) -> CreateOptions {
    let NodePutQuery { dialect, if_exists, losses } = query;
    CreateOptions { dialect, if_exists, precondition: condition, losses }
}
