//! A group with one page of its members.

use array::{MemberPage, Members};
use axum::response::Response;
use http::{
    HeaderValue, StatusCode,
    header::{HeaderMap, LINK},
};
use meta::{NodePath, zom::ZomFormat};
use wire::{
    headers::CURSOR,
    query::{MembersPage, NodeQuery},
    routes,
};

use super::render::NodeRenderer;
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{ContentNegotiation, TagConditions},
};

/// `GET` with `limit`: a group with some of its members, and a link to the next page.
pub(super) async fn get(
    engine: &Engine,
    path: &NodePath,
    query: &NodeQuery,
    page: &MembersPage,
    negotiation: &ContentNegotiation,
    conditions: &TagConditions,
) -> Result<Response, ApiError> {
    let request = MemberPage { limit: page.limit, cursor: page.cursor.clone() };
    let mapped = query.mapped.map(ZomFormat::dialect);
    let Members { node, next } = engine.hierarchies().members(path, query.dialect, &request, mapped).await?;
    let mut response = NodeRenderer::new(query, negotiation).respond(engine, node, conditions).await?;
    if let Some(cursor) = next.filter(|_| response.status() == StatusCode::OK) {
        let page = Some(MembersPage { limit: page.limit, cursor: Some(cursor) });
        add_next_page_headers(path, NodeQuery { page, ..query.clone() }, response.headers_mut());
    }
    Ok(response)
}

/// Adds the headers that link the next page.
fn add_next_page_headers(path: &NodePath, next: NodeQuery, headers: &mut HeaderMap) {
    let cursor = next.page.as_ref().and_then(|page| page.cursor.as_ref());
    // Both values are ASCII without control characters.
    let cursor = cursor.and_then(|cursor| HeaderValue::try_from(cursor.as_str()).ok());
    let link = HeaderValue::try_from(format!("<{}?{}>; rel=\"next\"", routes::node_path(path), next.render()));
    headers.extend(cursor.map(|cursor| (CURSOR, cursor)));
    headers.extend(link.ok().map(|link| (LINK, link)));
}
