//! `/node`: the structure of hierarchies.

mod answer;
mod page;

use std::sync::Arc;

use ::array::{Conversion, Declaration, Depth, Effect, Existing, Losses};
use ::store::Precondition;
use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_TYPE};
use meta::{
    documents::Changes,
    zom::{MAX_VIOLATIONS, Version, Zom},
};
use wire::{
    headers::SCHEMA_JSON,
    listing::Erased,
    node::{ConvertReport, ValidateReport},
    query::{self, Confirm, NodeDeleteQuery, NodePatchQuery, NodePutQuery, NodeQuery},
};

use self::answer::{Telling, lost};
use crate::{
    blocking::blocking,
    body::{Document, NodeDocument, PatchDocument},
    extract::{AtNode, AtSchema, ConvertNode, Forms, Query, TagConditions, ValidateNode, WriteConditions},
    refusal::Refusal,
    room::Room,
    state::App,
};

/// Documents beyond this size are parsed where they do not keep other requests waiting.
const QUICK: usize = 16 << 10;

/// `GET`: the node, and what is below it to some depth.
pub(crate) async fn get(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<NodeQuery>,
    forms: Forms,
    conditions: TagConditions,
) -> Result<Response, Refusal> {
    if let Some(page) = &query.page {
        return page::get(&app, &path, &query, page, &forms, &conditions).await;
    }
    let depth = match query.depth {
        query::Depth::Levels(levels) => Depth::Levels(levels),
        query::Depth::All => Depth::All,
    };
    let node = app.hierarchies().node(&path, query.dialect, depth, query.mapped.map(Version::dialect)).await?;
    Telling::new(&query, &forms).answer(&app, node, &conditions).await
}

/// `PUT`: declares a tree.
pub(crate) async fn put(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<NodePutQuery>,
    forms: Forms,
    conditions: WriteConditions,
    NodeDocument(document): NodeDocument,
) -> Result<Response, Refusal> {
    let (zom, _room) = parsed(document).await?;
    let declared =
        app.hierarchies().declare(&path, &Arc::new(zom), &declaration(query, conditions.precondition)).await?;
    let status = match declared.effect {
        Effect::Created => StatusCode::CREATED,
        Effect::Equal | Effect::Replaced => StatusCode::OK,
    };
    let mut response = Telling::whole(&forms).tell(declared.node).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// `PATCH`: changes what is said of a node.
pub(crate) async fn patch(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<NodePatchQuery>,
    forms: Forms,
    conditions: WriteConditions,
    PatchDocument(Document { bytes, room: _room }): PatchDocument,
) -> Result<Response, Refusal> {
    let changes = match bytes.len() {
        ..=QUICK => Changes::parse(&bytes)?,
        _ => blocking(move || Changes::parse(&bytes)).await??,
    };
    let node = app.hierarchies().patch(&path, query.dialect, &changes, &conditions.precondition).await?;
    Telling::whole(&forms).tell(node).await
}

/// `DELETE`: erases a node and all below it.
pub(crate) async fn delete(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<NodeDeleteQuery>,
    conditions: WriteConditions,
) -> Result<Json<Erased>, Refusal> {
    if path.is_root() && query.confirm == Confirm::Unsaid {
        return Err(Refusal::unconfirmed("this is the root: every node would go"));
    }
    let erased = app.hierarchies().erase(&path, query.dialect, &conditions.precondition).await?;
    Ok(Json(erased.into()))
}

/// `POST` that compares: where the hierarchy differs from the ZOM in the body.
pub(crate) async fn validate(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<ValidateNode>,
    NodeDocument(document): NodeDocument,
) -> Result<Json<ValidateReport>, Refusal> {
    let (zom, _room) = parsed(document).await?;
    // One more than are told shows whether there are more.
    let mut found = app.hierarchies().compare(&path, query.dialect, &zom, MAX_VIOLATIONS + 1).await?;
    let truncated = found.len() > MAX_VIOLATIONS;
    found.truncate(MAX_VIOLATIONS);
    let differences: Vec<_> = found.iter().map(Into::into).collect();
    Ok(Json(ValidateReport { equal: differences.is_empty(), differences, truncated }))
}

/// `POST` that converts: the hierarchy in another dialect, at the same place or elsewhere.
pub(crate) async fn convert(
    State(app): State<App>,
    AtNode(path): AtNode,
    Query(query): Query<ConvertNode>,
) -> Result<Json<ConvertReport>, Refusal> {
    let conversion = Conversion { to: query.into, target: query.to };
    let report = app.hierarchies().convert(&path, query.dialect, &conversion).await?;
    let losses = lost(&report.losses);
    Ok(Json(ConvertReport { nodes: report.nodes, chunks: report.chunks, losses }))
}

/// `GET` of a schema.
pub(crate) async fn schema(AtSchema(version): AtSchema) -> Response {
    ([(CONTENT_TYPE, SCHEMA_JSON)], version.schema()).into_response()
}

/// The ZOM that a body is, and the memory that it is allowed to take.
async fn parsed(Document { bytes, room }: Document) -> Result<(Zom, Option<Room>), Refusal> {
    let zom = match bytes.len() {
        ..=QUICK => Zom::parse(&bytes)?,
        _ => blocking(move || Zom::parse(&bytes)).await??,
    };
    Ok((zom, room))
}

fn declaration(query: NodePutQuery, condition: Precondition) -> Declaration {
    let existing = match query.existing {
        query::Existing::Keep => Existing::Keep,
        query::Existing::Replace => Existing::Replace,
    };
    Declaration { dialect: query.dialect, existing, condition, losses: accepted(query.losses) }
}

fn accepted(losses: query::Losses) -> Losses {
    match losses {
        query::Losses::Refuse => Losses::Refuse,
        query::Losses::Accept => Losses::Accept,
    }
}
