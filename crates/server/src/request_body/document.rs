//! Bodies that are JSON documents.

use array::Permit;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use meta::limits::MAX_DOCUMENT;
use store::UploadError;

use super::{
    json_memory::Cost,
    upload::{Receiving, Upload, digests, media_type, refuse_coded},
};
use crate::{app::App, error::Refusal, memory_claim};

/// A JSON document, as the bytes that came.
pub(crate) struct Document {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// The memory that they, and what is made of them, are allowed to take.
    pub(crate) memory: Option<Permit>,
}

/// A document that says what is to be read.
pub(crate) struct ReadDocument(pub(crate) Document);

/// A document that says what a node is to be.
pub(crate) struct NodeDocument(pub(crate) Document);

/// A document that says what of a node is to change.
pub(crate) struct PatchDocument(pub(crate) Document);

/// Documents up to this size are received without asking whether there is memory.
const SMALL: usize = 64 << 10;
/// Those that cost no more than this are parsed without asking, too.
const CHEAP: u64 = 128 << 10;
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

impl Document {
    async fn receive(request: Request, app: &App, limit: u64, cost: fn(&Cost) -> u64) -> Result<Self, Refusal> {
        refuse_coded(request.headers())?;
        let digests = digests(request.headers())?;
        let claim = memory_claim::of(request.extensions(), app);
        let upload = Upload::new(request.into_body(), digests);
        let most = upload.size().unwrap_or(limit);
        if most > limit {
            return Err(Refusal::body_too_large(limit));
        }
        let mut receiving = Receiving::new(app, upload, limit);
        let (mut bytes, mut memory) = (BytesMut::new(), None);
        while let Some(piece) = receiving.next().await.map_err(refused)? {
            if memory.is_none() && bytes.len().saturating_add(piece.len()) > SMALL {
                memory = Some(claim.take(most).await?);
            }
            bytes.extend_from_slice(&piece);
        }
        let bytes = bytes.freeze();
        let counted = bytes.clone();
        let cost = move || cost(&Cost::of(&counted));
        let cost = match bytes.len() {
            ..=SMALL => cost(),
            len => app.arrays().for_request(claim.clone()).run_on_documents(len as u64, cost).await?,
        };
        match &mut memory {
            Some(memory) => memory.grow_to(cost)?,
            None if cost > CHEAP => memory = Some(claim.take(cost).await?),
            None => {}
        }
        Ok(Self { bytes, memory })
    }
}

impl FromRequest<App> for ReadDocument {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        if media_type(request.headers()).as_deref() != Some(JSON) {
            return Err(Refusal::media_type(&[JSON]));
        }
        Document::receive(request, app, app.settings().limits.read_request, Cost::parsed).await.map(Self)
    }
}

impl FromRequest<App> for NodeDocument {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        refuse_other(&request, &[JSON])?;
        Document::receive(request, app, MAX_DOCUMENT as u64, Cost::documents).await.map(Self)
    }
}

impl FromRequest<App> for PatchDocument {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        refuse_other(&request, &[MERGE_PATCH, JSON])?;
        Document::receive(request, app, MAX_DOCUMENT as u64, Cost::documents).await.map(Self)
    }
}

/// Refuses a body that is said to be something else; of one that says nothing it is seen when it is parsed.
fn refuse_other(request: &Request, known: &[&str]) -> Result<(), Refusal> {
    match media_type(request.headers()) {
        Some(other) if !known.contains(&other.as_str()) => Err(Refusal::media_type(known)),
        _ => Ok(()),
    }
}

fn refused(error: UploadError) -> Refusal {
    match error {
        UploadError::TooLarge { limit } => Refusal::body_too_large(limit),
        other => other.into(),
    }
}
