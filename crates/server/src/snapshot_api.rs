//! `/snapshot`: everything below a prefix as of one commit, which `/store` then reads.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::LOCATION, request::Parts};
use zarrd_access::Right;
use zarrd_store::{Key, ListableStore, Prefix, PrefixSnapshot, ReadableStore};
use zarrd_wire::{
    problem::{Members, Problem, ProblemType},
    query::{self, SnapshotQuery},
    routes::{parse_snapshot_id, snapshot_path},
    snapshot::{SnapshotIntent, TakenSnapshot},
};

use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    extract::{NoQuery, Query},
    snapshots::{ABANDONED, MAX_IDLE, MAX_SNAPSHOTS, Refusal, SnapshotId},
};

/// What values and listings are read from: a snapshot that the query names, or the store.
pub(crate) struct ReadSource {
    app: App,
    snapshot: Option<Arc<dyn PrefixSnapshot>>,
}

/// The id of the snapshot in the path.
pub(crate) struct SnapshotPath(Option<SnapshotId>);

/// `POST`: takes a snapshot.
pub(crate) async fn take(
    State(app): State<App>,
    Query(query): Query<SnapshotQuery>,
    session: Session,
) -> Result<Response, ApiError> {
    let slot = app.snapshots().reserve(session.principal().credential).map_err(refused)?;
    let snapshot = app.store().snapshot_below(&query.prefix).await?;
    let is_administrator = session.principal().may(Right::Admin, &Prefix::root());
    let id = slot.fill(Arc::clone(&snapshot)).to_string();
    let location = format!("{}{}", app.settings().base_path.as_str(), snapshot_path(&id));
    let taken = TakenSnapshot {
        id,
        prefix: snapshot.prefix().to_string(),
        commit: format!("{:x}", snapshot.watermark().as_u64()),
        keys: snapshot.len(),
        idle_seconds: MAX_IDLE.as_secs(),
        intents: is_administrator.then(|| snapshot.intents().iter().map(SnapshotIntent::new).collect()),
    };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(taken)).into_response())
}

/// `DELETE`: ends a snapshot that the caller took.
pub(crate) async fn end(
    State(app): State<App>,
    SnapshotPath(id): SnapshotPath,
    _: Query<NoQuery>,
    session: Session,
) -> Result<StatusCode, ApiError> {
    let ended = id.is_some_and(|id| app.snapshots().end(id, session.principal().credential));
    if ended { Ok(StatusCode::NO_CONTENT) } else { Err(expired()) }
}

impl ReadSource {
    /// The source that a query names: the id of a snapshot, or the store. Snapshots are read by backups and exports, which
    /// read everything, so their requests move to the threads of low priority.
    pub(crate) async fn new(app: &App, snapshot: Option<&str>) -> Result<Self, ApiError> {
        let find = |text: &str| app.snapshots().get(text.parse().ok()?);
        let snapshot = snapshot.map(|text| find(text).ok_or_else(expired)).transpose()?;
        if snapshot.is_some() {
            zarrd_executor::leave().await;
        }
        Ok(Self { app: app.clone(), snapshot })
    }

    /// True if values and listings are those of a snapshot.
    pub(crate) fn is_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The source of the value of a key. Fails if the snapshot was not taken of it.
    pub(crate) fn values(&self, key: &Key) -> Result<&dyn ReadableStore, ApiError> {
        match &self.snapshot {
            None => Ok(&**self.app.store()),
            Some(snapshot) if snapshot.prefix().contains(key) => Ok(&**snapshot),
            Some(snapshot) => Err(outside(snapshot.prefix())),
        }
    }

    /// The source of a listing of a prefix. Fails if the snapshot was not taken of all of it.
    pub(crate) fn listings(&self, prefix: &Prefix) -> Result<Arc<dyn ListableStore>, ApiError> {
        match &self.snapshot {
            None => Ok(Arc::<dyn zarrd_store::SnapshotStore>::clone(self.app.store())),
            Some(snapshot) => Ok(Arc::clone(below(snapshot, prefix)?) as _),
        }
    }

    /// The source of a listing of a prefix with values: the snapshot, without which queries do not ask for one.
    pub(crate) fn values_below(&self, prefix: &Prefix) -> Result<&Arc<dyn PrefixSnapshot>, ApiError> {
        below(self.snapshot.as_ref().ok_or_else(expired)?, prefix)
    }
}

impl FromRequestParts<App> for ReadSource {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Some(text) = parts.uri.query() else { return Self::new(app, None).await };
        Self::new(app, query::parse_key_read(text)?.as_deref()).await
    }
}

impl FromRequestParts<App> for SnapshotPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Ok(Self(parse_snapshot_id(parts.uri.path()).and_then(|id| id.parse().ok())))
    }
}

/// A snapshot, if it was taken of all of a prefix.
fn below<'s>(snapshot: &'s Arc<dyn PrefixSnapshot>, prefix: &Prefix) -> Result<&'s Arc<dyn PrefixSnapshot>, ApiError> {
    match prefix.as_str().starts_with(snapshot.prefix().as_str()) {
        true => Ok(snapshot),
        false => Err(outside(snapshot.prefix())),
    }
}

fn refused(refusal: Refusal) -> ApiError {
    let (kind, detail) = match refusal {
        Refusal::TooMany => (ProblemType::Busy, format!("there are {MAX_SNAPSHOTS} snapshots, which is the limit")),
        Refusal::OwnExists => {
            let idle = MAX_IDLE.as_secs() / 60;
            let detail =
                format!("the caller has a snapshot; DELETE it, or wait until it was not used for {idle} minutes");
            (ProblemType::TooManyRequests, detail)
        }
    };
    ApiError::retry_after(kind, detail, ABANDONED)
}

fn expired() -> ApiError {
    ApiError::new(Problem::new(ProblemType::SnapshotExpired))
}

/// The request names something of which the snapshot was not taken.
fn outside(prefix: &Prefix) -> ApiError {
    let members = Members { parameter: Some(query::SNAPSHOT.to_owned()), ..Members::default() };
    let detail = format!("the snapshot was taken of {:?}", prefix.as_str());
    ApiError::new(Problem::new(ProblemType::InvalidParameter).with_detail(detail).with_members(members))
}
