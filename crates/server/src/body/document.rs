//! Bodies that say what is wanted.

use ::store::UploadError;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::CONTENT_TYPE};
use wire::problem::{Members, Problem, ProblemType};

use super::upload::{Receiving, Upload, refuse_coded};
use crate::{refusal::Refusal, room::Room, state::App};

/// A JSON document, as the bytes that came.
pub(crate) struct Document {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// The memory that they, and what is made of them, are allowed to take.
    pub(crate) room: Option<Room>,
}

/// Documents up to this size are taken without asking whether there is memory.
const SMALL: usize = 64 << 10;
/// How many times its own size a document and what is made of it may take.
const GROWTH: u64 = 11;
const JSON: &str = "application/json";

impl FromRequest<App> for Document {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        refuse_coded(request.headers())?;
        refuse_other(request.headers())?;
        let (upload, limit) = (Upload::plain(request.into_body()), app.settings().limits.read_request);
        let most = upload.size().unwrap_or(limit);
        if most > limit {
            return Err(too_large(limit));
        }
        let mut receiving = Receiving::new(app, upload, limit);
        let (mut bytes, mut room) = (BytesMut::new(), None);
        while let Some(piece) = receiving.next().await.map_err(refused)? {
            if room.is_none() && bytes.len().saturating_add(piece.len()) > SMALL {
                room = Some(app.rooms().take(most.saturating_mul(GROWTH)).await?);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Self { bytes: bytes.freeze(), room })
    }
}

/// Refuses a body that is said to be something else than JSON.
fn refuse_other(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(JSON) {
        return Ok(());
    }
    let members =
        Members { header: Some("Content-Type".to_owned()), known: Some(vec![JSON.to_owned()]), ..Members::default() };
    Err(Refusal::new(Problem::new(ProblemType::UnsupportedMediaType).with_members(members)))
}

fn refused(error: UploadError) -> Refusal {
    match error {
        UploadError::TooLarge { limit } => too_large(limit),
        other => other.into(),
    }
}

fn too_large(limit: u64) -> Refusal {
    let problem = Problem::new(ProblemType::BodyTooLarge)
        .with_detail(format!("the body is larger than the limit of {limit} bytes"))
        .with_members(Members { limit: Some(limit), ..Members::default() });
    Refusal::new(problem)
}
