//! Pages of tokens and share links.

use std::sync::Arc;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use zarrd_access::{AccessDirectory, CredentialId, LinkInfo, MAX_RECORD_LEN, ReadError, TokenInfo};
use zarrd_array::Claim;
use zarrd_store::{Cursor, StoreError};
use zarrd_wire::{
    headers::JSON,
    problem::ProblemType,
    query::{DEFAULT_LIMIT, PageQuery},
};

use super::Credentials;
use crate::{authorization::Session, error::ApiError};

/// The size in bytes of the names and prefixes of a page. It ends with the entry that exceeds it.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The memory of an entry and of its JSON in bytes, without its names and prefixes.
const ENTRY_BYTES: usize = 1 << 10;
/// The memory of a name or prefix and of its JSON, as a multiple of its length: a character may be escaped in JSON.
const TEXT_FACTOR: usize = 4;

/// An entry of a page: a token or a share link.
pub(super) trait PageEntry: Send + 'static {
    fn id(&self) -> CredentialId;
    /// The length of its name and prefixes in bytes.
    fn text_len(&self) -> usize;
}

impl Credentials {
    /// Responds with a page of the entries that `read` returns: so many after an id, by id. `render` makes the document
    /// of them and the cursor of the next page.
    pub(super) async fn page<E: PageEntry, D: Serialize + 'static>(
        &self,
        claim: &Claim,
        query: PageQuery,
        read: impl FnOnce(&AccessDirectory, Option<CredentialId>, usize) -> Result<Vec<E>, Arc<ReadError>> + Send + 'static,
        render: fn(&[E], Option<String>) -> D,
    ) -> Result<Response, ApiError> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        let after = query.cursor.map(|cursor| last_id(&self.session, &cursor)).transpose()?;
        let mut memory = claim.take(page_bytes(limit)).await?;
        let session = self.session.clone();
        let json = self.run(move |directory| {
            // One more shows whether there is another page.
            let mut entries = read(directory, after, limit.saturating_add(1)).map_err(ApiError::from)?;
            let (count, len) = (entries.len(), page_len(&entries, limit));
            entries.truncate(len);
            let last = entries.last().filter(|_| len < count);
            let cursor = last.map(|last| session.bind(Cursor::from_text(last.id().to_string())).as_str().to_owned());
            let document = render(&entries, cursor);
            serde_json::to_vec(&document).map_err(|error| ApiError::with_cause(ProblemType::Internal, error))
        });
        let json = json.await?;
        memory.shrink_to(json.len() as u64);
        Ok(([(CONTENT_TYPE, JSON)], Body::from(memory.attach_to(json))).into_response())
    }
}

/// The id at the end of the page before.
fn last_id(session: &Session, cursor: &Cursor) -> Result<CredentialId, ApiError> {
    session.unbind(cursor)?.as_str().parse().map_err(|_| StoreError::InvalidCursor.into())
}

/// The number of entries on a page.
fn page_len(entries: &[impl PageEntry], limit: usize) -> usize {
    let mut text_len = 0_usize;
    let has_room = |entry: &&_| {
        let has_room = text_len <= MAX_TEXT_BYTES;
        text_len = text_len.saturating_add(PageEntry::text_len(*entry));
        has_room
    };
    entries.iter().take(limit).take_while(has_room).count()
}

/// The memory of a page and of its JSON in bytes.
fn page_bytes(limit: usize) -> u64 {
    // The file of a token has its name and prefixes.
    let text_len = limit.saturating_mul(MAX_RECORD_LEN).min(MAX_TEXT_BYTES.saturating_add(MAX_RECORD_LEN));
    limit.saturating_mul(ENTRY_BYTES).saturating_add(text_len.saturating_mul(TEXT_FACTOR)) as u64
}

impl PageEntry for TokenInfo {
    fn id(&self) -> CredentialId {
        self.id
    }

    fn text_len(&self) -> usize {
        self.grants.iter().map(|grant| grant.prefix.as_str().len()).fold(self.name.len(), usize::saturating_add)
    }
}

impl PageEntry for LinkInfo {
    fn id(&self) -> CredentialId {
        self.id
    }

    fn text_len(&self) -> usize {
        self.name.len().saturating_add(self.prefix.as_str().len())
    }
}
