//! A group with one page of its members.

use axum::response::Response;
use http::{
    HeaderValue, StatusCode,
    header::{HeaderMap, LINK},
};
use zarrd_array::{FileListing, MemberPage, Members};
use zarrd_meta::{NodePath, zom::ZomFormat};
use zarrd_wire::{
    headers::CURSOR,
    query::{Include, MembersPage, NodeQuery},
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
    let cursor = page.cursor.as_ref().map(|cursor| engine.session.unbind(cursor)).transpose()?;
    let files = match query.include {
        Include::Nothing | Include::Source => FileListing::Omitted,
        Include::Files => FileListing::Listed,
    };
    let request = MemberPage { limit: page.limit, cursor, files };
    let mapped = query.mapped.map(ZomFormat::dialect);
    let Members { node, next } = engine.hierarchies().members(path, query.dialect, &request, mapped).await?;
    let mut response = NodeRenderer::new(query, negotiation).respond(engine, node, conditions).await?;
    if let Some(cursor) = next.filter(|_| response.status() == StatusCode::OK) {
        let page = Some(MembersPage { limit: page.limit, cursor: Some(engine.session.bind(cursor)) });
        add_next_page_headers(NodeQuery { page, ..query.clone() }, response.headers_mut());
    }
    Ok(response)
}

/// Adds the headers that link the next page.
///
/// The link is relative to the request's URL, so that it stays valid behind a share link, or a proxy that serves this
/// server below another path.
fn add_next_page_headers(next: NodeQuery, headers: &mut HeaderMap) {
    let cursor = next.page.as_ref().and_then(|page| page.cursor.as_ref());
    // Both values are ASCII without control characters.
    let cursor = cursor.and_then(|cursor| HeaderValue::try_from(cursor.as_str()).ok());
    let link = HeaderValue::try_from(format!("<?{}>; rel=\"next\"", next.render()));
    headers.extend(cursor.map(|cursor| (CURSOR, cursor)));
    headers.extend(link.ok().map(|link| (LINK, link)));
}
