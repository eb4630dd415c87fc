//! Listings with small values, by which backups read a snapshot of many small values.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use zarrd_array::Claim;
use zarrd_store::{
    MAX_KEY_LEN, MAX_LISTED_VALUE_BYTES, MAX_VALUE_PAGE_ENTRIES, PageRequest, Prefix, PrefixSnapshot, ValuePage,
};
use zarrd_wire::{headers::JSON, query::ListQuery, value_listing::ValueListing};

use crate::{app::App, authorization::Session, error::ApiError};

/// The memory of a value besides its bytes: the key and the attributes, and their text.
const OVERHEAD_BYTES: u64 = 2 * MAX_KEY_LEN as u64 + 1024;

/// Returns a page of the keys of a snapshot below a prefix, with the small values.
pub(super) async fn json_page(
    app: &App,
    snapshot: &dyn PrefixSnapshot,
    prefix: &Prefix,
    query: ListQuery,
    session: &Session,
    claim: &Claim,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(MAX_VALUE_PAGE_ENTRIES);
    let request = PageRequest { limit, cursor: query.cursor }.with_values();
    let mut memory = claim.take(memory_estimate(request.limit())).await?;
    let permit = app.listing_permit(prefix).await;
    let page = snapshot.list_values(prefix, request).await?;
    drop(permit);
    let cursor = page.cursor.map(|cursor| session.bind(cursor));
    let listing = ValueListing::new(prefix, ValuePage { cursor, ..page });
    // Writing plain structures to memory cannot fail.
    let body = Bytes::from(serde_json::to_vec(&listing).unwrap_or_default());
    drop(listing);
    memory.shrink_to(body.len() as u64);
    Ok(([(CONTENT_TYPE, JSON)], Body::from(memory.attach_to(body))).into_response())
}

/// Estimates the memory for a page, in bytes: the values, their base64, and the text of the answer.
fn memory_estimate(limit: usize) -> u64 {
    let value = (MAX_LISTED_VALUE_BYTES * 11 / 3).saturating_add(OVERHEAD_BYTES);
    value.saturating_mul(limit as u64)
}
