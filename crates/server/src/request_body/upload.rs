//! Streamed uploads, checked while they are received.

use std::{error::Error, io};

use axum::{
    body::Body,
    extract::{FromRequest, Request},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE},
};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use sha2::{Digest as _, Sha256, Sha512};
use tokio::time::{Instant, timeout};
use zarrd_array::Claim;
use zarrd_store::{ByteStream, Payload, StoreError, UploadError};
use zarrd_wire::{
    digest::{self, Algorithm, Digest, DigestError},
    headers::CONTENT_DIGEST,
    problem::{Members, Problem, ProblemType},
};

use crate::{admission, app::App, authorization::Session, error::ApiError, progress_timeout::ProgressTimeout};

/// A body to be stored as a value; its headers are checked.
pub(crate) struct Upload {
    body: Body,
    size: Option<u64>,
    digests: Vec<Digest>,
    session: Session,
}

/// A body with elements of an array; its headers are checked.
pub(crate) struct ElementsBody {
    /// The media type, in lower case and without parameters.
    pub(crate) media_type: Option<String>,
    /// The boundary of the parts of a form, if there is one.
    pub(crate) boundary: Option<String>,
    /// The announced length, in bytes.
    pub(crate) size: Option<u64>,
    /// The body, which fails like [`payload`].
    pub(crate) stream: ByteStream,
    /// The memory claim of the request.
    pub(crate) claim: Claim,
}

impl FromRequest<App> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        Self::validate(request, app, |limit| UploadError::TooLarge { limit }.into())
    }
}

impl FromRequest<App> for ElementsBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let media_type = sent_media_type(request.headers());
        let boundary = boundary(request.headers());
        let claim = admission::claim_of(request.extensions(), app);
        let upload = Upload::validate(request, app, ApiError::body_too_large)?;
        let Payload { size, stream, .. } = payload(app, upload);
        Ok(Self { media_type, boundary, size, stream, claim })
    }
}

/// Returns the upload as the payload of a value. The stream fails if the body exceeds the limit, stalls, differs from
/// its announced length, or does not match its digests, and at its end if the caller has lost its rights meanwhile.
pub(crate) fn payload(app: &App, upload: Upload) -> Payload {
    limited_payload(app, upload, app.settings().limits.value)
}

/// Like [`payload`], with a limit of its own.
pub(crate) fn limited_payload(app: &App, upload: Upload, limit: u64) -> Payload {
    let size = upload.size;
    let receiver = UploadStream::new(app, upload, limit);
    let stream =
        stream::try_unfold(
            receiver,
            |mut receiver| async move { Ok(receiver.next().await?.map(|data| (data, receiver))) },
        );
    Payload { size, ..Payload::from_stream(stream.map(|data| data.map_err(StoreError::Upload))) }
}

/// Parses the digests that the body must match.
pub(super) fn expected_digests(headers: &HeaderMap) -> Result<Vec<Digest>, DigestError> {
    let mut digests = Vec::new();
    for line in headers.get_all(CONTENT_DIGEST) {
        digests.extend(digest::parse(line.to_str().map_err(|_| DigestError::Malformed)?)?);
    }
    Ok(digests)
}

/// curl's default media type.
pub(crate) const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Returns the media type, in lower case and without parameters. curl's default form type is treated as absent: the
/// body can only be JSON.
pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    sent_media_type(headers).filter(|kind| kind != FORM_MEDIA_TYPE)
}

/// Returns the media type, in lower case and without parameters.
fn sent_media_type(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Returns the boundary of a `multipart/form-data` body.
fn boundary(headers: &HeaderMap) -> Option<String> {
    multer::parse_boundary(headers.get(CONTENT_TYPE)?.to_str().ok()?).ok()
}

/// Rejects bodies with a payload coding.
pub(super) fn reject_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.get_all(CONTENT_ENCODING).iter().all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let members = Members { header: Some("Content-Encoding".to_owned()), ..Members::default() };
    Err(ApiError::new(Problem::new(ProblemType::UnsupportedContentEncoding).with_members(members)))
}

/// A body in transit, with its checks.
pub(super) struct UploadStream {
    app: App,
    body: Body,
    progress: ProgressTimeout,
    limit: u64,
    announced: Option<u64>,
    received: u64,
    hashes: Vec<(Hasher, Vec<u8>)>,
    session: Session,
}

/// Both variants hold a message block, so their sizes are similar.
#[derive(Clone)]
enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Upload {
    fn validate(request: Request, app: &App, too_large: impl FnOnce(u64) -> ApiError) -> Result<Self, ApiError> {
        let (headers, limit) = (request.headers(), app.settings().limits.value);
        if headers.contains_key(CONTENT_RANGE) {
            return Err(ApiError::invalid_header("Content-Range", "partial PUT is not supported"));
        }
        reject_content_encoding(headers)?;
        let digests = expected_digests(headers)?;
        let upload = Self::new(request, app, digests);
        if upload.size.is_some_and(|size| size > limit) {
            return Err(too_large(limit));
        }
        Ok(upload)
    }

    /// A body that is decoded already, of an announced length.
    pub(crate) fn decoded(body: Body, size: Option<u64>, session: Session) -> Self {
        Self { body, size, digests: Vec::new(), session }
    }

    pub(super) fn new(request: Request, app: &App, digests: Vec<Digest>) -> Self {
        let session = admission::session_of(request.extensions(), app);
        let body = request.into_body();
        Self { size: body.size_hint().exact(), body, digests, session }
    }

    /// The announced length, in bytes.
    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }
}

impl UploadStream {
    /// Receives at most `limit` bytes.
    pub(super) fn new(app: &App, upload: Upload, limit: u64) -> Self {
        Self {
            app: app.clone(),
            body: upload.body,
            progress: ProgressTimeout::for_uploads(&app.settings().limits),
            limit,
            announced: upload.size,
            received: 0,
            session: upload.session,
            hashes: upload.digests.into_iter().map(|digest| (Hasher::new(digest.algorithm), digest.hash)).collect(),
        }
    }

    /// Returns the next piece, or `None` at the end if all checks pass.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, UploadError> {
        while let Some(frame) = self.frame().await? {
            // Trailers are not part of the body.
            let Ok(data) = frame.into_data() else { continue };
            self.record_received(data.len() as u64)?;
            for (hasher, _) in &mut self.hashes {
                hasher.update(&data);
            }
            return Ok(Some(data));
        }
        self.verify().map(|()| None)
    }

    /// Waits for the next frame.
    async fn frame(&mut self) -> Result<Option<Frame<Bytes>>, UploadError> {
        let started = Instant::now();
        let polled = timeout(self.progress.remaining(), self.body.frame()).await;
        let Some(frame) = polled.map_err(|_| UploadError::TimedOut)? else { return Ok(None) };
        let frame = frame.map_err(|error| self.transport_error(error.into_inner()))?;
        self.progress.record(started.elapsed(), frame.data_ref().map_or(0, |data| data.len() as u64));
        Ok(Some(frame))
    }

    fn record_received(&mut self, bytes: u64) -> Result<(), UploadError> {
        self.app.metrics().record_received(bytes);
        self.received = self.received.saturating_add(bytes);
        let limit = self.limit;
        if self.received > limit { Err(UploadError::TooLarge { limit }) } else { Ok(()) }
    }

    fn verify(&mut self) -> Result<(), UploadError> {
        if let Some(announced) = self.announced.filter(|announced| *announced != self.received) {
            return Err(UploadError::LengthMismatch { announced, received: self.received });
        }
        let matching = self.hashes.iter().all(|(hasher, expected)| hasher.clone().finish() == *expected);
        if !matching {
            return Err(UploadError::DigestMismatch);
        }
        // An upload may take long, and changes something at its end.
        self.session.confirm(&self.app).map_err(|lost| UploadError::Aborted(lost.into()))
    }

    /// Maps a failed transfer: the end of the connection before the announced length is a length mismatch.
    fn transport_error(&self, error: Box<dyn Error + Send + Sync>) -> UploadError {
        let is_eof = |cause: &(dyn Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        };
        match self.announced {
            Some(announced) if error_chain(&*error).any(is_eof) => {
                UploadError::LengthMismatch { announced, received: self.received }
            }
            _ => UploadError::Aborted(error),
        }
    }
}

impl Hasher {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha256(hasher) => hasher.finalize().to_vec(),
            Self::Sha512(hasher) => hasher.finalize().to_vec(),
        }
    }
}

/// Iterates over an error and its sources.
fn error_chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
