//! `/token` and `/share`: tokens and share links.
//!
//! A token manages those of its own prefixes: who has `admin` on all prefixes of a token may create, list and revoke it.
//! Every token makes share links of what it may read. The secret of either is in the response to its creation only.

mod pages;
mod shares;
mod tokens;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::request::Parts;
use serde::de::DeserializeOwned;
use zarrd_access::{AccessDirectory, CredentialId};
use zarrd_wire::{
    problem::{Members, Problem, ProblemType},
    routes::parse_credential_id,
    time,
};

pub(crate) use self::{
    shares::{create_share, list_shares, revoke_share},
    tokens::{create_token, list_tokens, revoke_token},
};
use crate::{app::App, authorization::Session, blocking::run_blocking, error::ApiError, request_log::CredentialAudit};

/// The access directory on behalf of a token.
#[derive(Clone)]
pub(crate) struct Credentials {
    directory: Arc<AccessDirectory>,
    session: Session,
    /// The id of the caller's token.
    caller: CredentialId,
    audit: CredentialAudit,
}

/// The id in the path.
pub(crate) struct CredentialPath(CredentialId);

impl Credentials {
    /// Uses the directory on the blocking pool, since changes wait for the disk, and pages may be long.
    async fn run<T, E>(
        &self,
        work: impl FnOnce(&AccessDirectory) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let directory = self.directory.clone();
        run_blocking(move || work(&directory)).await?.map_err(Into::into)
    }
}

impl FromRequestParts<App> for Credentials {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Ok(session) = Session::from_request_parts(parts, app).await;
        // Only a token of the directory passes the guard.
        let caller = session.principal().token_id().ok_or_else(no_such_credential)?;
        let directory = app.settings().access.directory.get()?.cloned().ok_or_else(no_such_credential)?;
        Ok(Self { directory, session, caller, audit: CredentialAudit::of(&parts.extensions) })
    }
}

impl FromRequestParts<App> for CredentialPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let id = parse_credential_id(parts.uri.path()).and_then(|id| id.parse().ok());
        id.map(Self).ok_or_else(no_such_credential)
    }
}

/// An unknown id, or one of another caller: the response is the same.
fn no_such_credential() -> ApiError {
    ApiError::new(Problem::new(ProblemType::NoSuchCredential))
}

fn parse<T: DeserializeOwned>(document: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(document).map_err(|error| invalid(None, error.to_string()))
}

/// Parses a time, which is rounded down to seconds.
fn parse_time(pointer: &'static str, text: &str) -> Result<SystemTime, ApiError> {
    let time = time::parse_rfc3339(text);
    let time =
        time.ok_or_else(|| invalid(Some(pointer), "a time such as 2027-01-31T12:00:00Z is expected".to_owned()))?;
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn invalid(pointer: Option<&'static str>, detail: String) -> ApiError {
    let members = Members { pointer: pointer.map(str::to_owned), ..Members::default() };
    ApiError::new(Problem::new(ProblemType::InvalidBody).with_detail(detail).with_members(members))
}
