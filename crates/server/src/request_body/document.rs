//! Bodies with JSON documents.

use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use zarrd_array::Permit;
use zarrd_executor::{Cost, Work};
use zarrd_meta::limits::MAX_DOCUMENT_SIZE;
use zarrd_store::UploadError;
use zarrd_wire::dav::MAX_XML_SIZE;

use super::{
    json_memory::JsonMemoryEstimate,
    upload::{Upload, UploadStream, expected_digests, media_type, reject_content_encoding},
};
use crate::{admission, app::App, error::ApiError};

/// The text of a JSON document.
pub(crate) struct Document {
    /// The received bytes.
    pub(crate) bytes: Bytes,
    /// The permit for their memory and that of their parsed form; `None` for small documents.
    pub(crate) memory: Option<Permit>,
}

/// A document with a selection to read.
pub(crate) struct ReadRequestDocument(pub(crate) Document);

/// A document with the ZOM of a node.
pub(crate) struct NodeDocument(pub(crate) Document);

/// A document with a merge patch of a node.
pub(crate) struct PatchDocument(pub(crate) Document);

/// A document with a token or share link to be created.
pub(crate) struct CredentialDocument(pub(crate) Document);

/// A document of WebDAV, which may be empty.
pub(crate) struct XmlDocument(pub(crate) Bytes);

/// The XML of a request to S3, with the memory that is reserved for it and for what it becomes.
pub(crate) struct S3Document(pub(crate) Document);

/// The maximum size of the XML of a request to S3, in bytes.
const MAX_S3_XML_SIZE: u64 = 4 << 20;
/// The memory of parsed XML of S3, as a multiple of its size.
const S3_XML_FACTOR: u64 = 8;

/// The maximum size of a document with a token or share link, in bytes. Its parsed form takes a few times as much.
const MAX_CREDENTIAL_SIZE: u64 = 64 << 10;
/// The largest document, in bytes, that is received without a memory permit.
const UNRESERVED_BODY_LIMIT: usize = 64 << 10;
/// The largest memory estimate, in bytes, that needs no permit.
const UNRESERVED_ESTIMATE_LIMIT: u64 = 128 << 10;
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

impl Document {
    async fn receive(
        request: Request,
        app: &App,
        limit: u64,
        estimate: fn(&JsonMemoryEstimate) -> u64,
    ) -> Result<Self, ApiError> {
        reject_content_encoding(request.headers())?;
        let digests = expected_digests(request.headers())?;
        let claim = admission::claim_of(request.extensions(), app);
        let upload = Upload::new(request, app, digests);
        let max_size = upload.size().unwrap_or(limit);
        if max_size > limit {
            return Err(ApiError::body_too_large(limit));
        }
        let mut stream = UploadStream::new(app, upload, limit);
        let (mut bytes, mut memory) = (BytesMut::new(), None);
        while let Some(data) = stream.next().await.map_err(upload_error)? {
            if memory.is_none() && bytes.len().saturating_add(data.len()) > UNRESERVED_BODY_LIMIT {
                memory = Some(claim.take(max_size).await?);
            }
            bytes.extend_from_slice(&data);
        }
        let bytes = bytes.freeze();
        let text = bytes.clone();
        let estimate = move || estimate(&JsonMemoryEstimate::of(&text));
        let cost = Cost::of(Work::Documents, bytes.len() as u64);
        let estimate = match cost.is_at_once() {
            true => estimate(),
            false => app.arrays().for_request(claim.clone(), None).run(cost, estimate).await?,
        };
        match &mut memory {
            Some(memory) => memory.grow_to(estimate)?,
            None if estimate > UNRESERVED_ESTIMATE_LIMIT => memory = Some(claim.take(estimate).await?),
            None => {}
        }
        Ok(Self { bytes, memory })
    }
}

impl FromRequest<App> for ReadRequestDocument {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if media_type(request.headers()).as_deref() != Some(JSON) {
            return Err(ApiError::unsupported_media_type(&[JSON]));
        }
        Document::receive(request, app, app.settings().limits.read_request, JsonMemoryEstimate::parsed_bytes)
            .await
            .map(Self)
    }
}

impl FromRequest<App> for NodeDocument {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_media_type(&request, &[JSON])?;
        Document::receive(request, app, MAX_DOCUMENT_SIZE as u64, JsonMemoryEstimate::document_bytes).await.map(Self)
    }
}

impl FromRequest<App> for PatchDocument {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_media_type(&request, &[MERGE_PATCH, JSON])?;
        Document::receive(request, app, MAX_DOCUMENT_SIZE as u64, JsonMemoryEstimate::document_bytes).await.map(Self)
    }
}

impl FromRequest<App> for CredentialDocument {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_media_type(&request, &[JSON])?;
        Document::receive(request, app, MAX_CREDENTIAL_SIZE, JsonMemoryEstimate::parsed_bytes).await.map(Self)
    }
}

impl FromRequest<App> for XmlDocument {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        Ok(Self(Document::receive(request, app, MAX_XML_SIZE as u64, |_| 0).await?.bytes))
    }
}

/// Rejects a body with another media type; a body without one is checked by parsing it.
impl FromRequest<App> for S3Document {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let limit = MAX_S3_XML_SIZE;
        let claim = admission::claim_of(request.extensions(), app);
        let mut document = Document::receive(request, app, limit, |_| 0).await?;
        let parsed = (document.bytes.len() as u64).saturating_mul(S3_XML_FACTOR);
        match &mut document.memory {
            Some(memory) => memory.grow_to(parsed)?,
            None if parsed > UNRESERVED_ESTIMATE_LIMIT => document.memory = Some(claim.take(parsed).await?),
            None => {}
        }
        Ok(Self(document))
    }
}

fn check_media_type(request: &Request, supported: &[&str]) -> Result<(), ApiError> {
    match media_type(request.headers()) {
        Some(other) if !supported.contains(&other.as_str()) => Err(ApiError::unsupported_media_type(supported)),
        _ => Ok(()),
    }
}

fn upload_error(error: UploadError) -> ApiError {
    match error {
        UploadError::TooLarge { limit } => ApiError::body_too_large(limit),
        other => other.into(),
    }
}
