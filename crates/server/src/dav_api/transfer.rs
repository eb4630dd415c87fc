//! `COPY` and `MOVE`.

use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{StatusCode, request::Parts};
use zarrd_access::Right;
use zarrd_array::Claim;
use zarrd_store::{
    Change, ChangeOutcome, GetResult, Key, Payload, Precondition, Prefix, ReadError, ReadableStore, Staged, StoreError,
    Version, Writes,
};
use zarrd_wire::{
    dav::{self, Depth, Overwrite},
    routes::StoreTarget,
};

use super::{
    resource::{first_below, version_of},
    tree_transfer,
};
use crate::{
    admission::RequestClaim,
    app::App,
    authorization::Session,
    destination,
    error::ApiError,
    extract::{NoQuery, Query, StorePath, WriteConditions},
};

/// The number of attempts while others change the source or the destination.
pub(super) const ATTEMPTS: usize = 3;

/// What becomes of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stays.
    Copy,
    /// It is erased in the same commit.
    Move,
}

/// Where to copy or move, and how.
#[derive(Debug)]
pub(crate) struct TransferTarget {
    destination: StoreTarget,
    overwrite: Overwrite,
    depth: Option<Depth>,
}

/// A copy or move of one request.
pub(super) struct Transfer {
    pub(super) app: App,
    pub(super) session: Session,
    pub(super) claim: Claim,
    pub(super) kind: Kind,
    pub(super) conditions: WriteConditions,
    pub(super) overwrite: Overwrite,
}

/// The names of a destination, which are replaced together.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    /// The key; `None` if the path ends in a slash.
    pub(super) key: Option<Key>,
    /// The key that a value gets, even if the path ends in a slash.
    value_key: Option<Key>,
    /// The prefix of what is below it; `None` if no key can be.
    pub(super) prefix: Option<Prefix>,
}

/// `COPY`: copies a value, or everything below a prefix, in one commit.
pub(crate) async fn copy(
    State(app): State<App>,
    StorePath(source): StorePath,
    _: Query<NoQuery>,
    target: TransferTarget,
    conditions: WriteConditions,
    session: Session,
    RequestClaim(claim): RequestClaim,
) -> Result<Response, ApiError> {
    let TransferTarget { destination, overwrite, depth } = target;
    Transfer { app, session, claim, kind: Kind::Copy, conditions, overwrite }.run(source, destination, depth).await
}

/// `MOVE`: like [`copy`], and erases the source in the same commit.
pub(crate) async fn move_(
    State(app): State<App>,
    StorePath(source): StorePath,
    _: Query<NoQuery>,
    target: TransferTarget,
    conditions: WriteConditions,
    session: Session,
    RequestClaim(claim): RequestClaim,
) -> Result<Response, ApiError> {
    let TransferTarget { destination, overwrite, depth } = target;
    Transfer { app, session, claim, kind: Kind::Move, conditions, overwrite }.run(source, destination, depth).await
}

impl FromRequestParts<App> for TransferTarget {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let destination = destination::parse(app, &parts.headers, &parts.uri, &parts.extensions)?;
        let depth = dav::depth(&parts.headers)?;
        Ok(Self { destination, overwrite: dav::overwrite(&parts.headers)?, depth })
    }
}

impl Transfer {
    async fn run(
        self,
        source: StoreTarget,
        destination: StoreTarget,
        depth: Option<Depth>,
    ) -> Result<Response, ApiError> {
        self.check_overlap(name(&source), name(&destination))?;
        let destination = Destination::new(destination);
        self.check_writable(&destination)?;
        if depth == Some(Depth::One) {
            return Err(dav::DavHeaderError::Depth.into());
        }
        let replaced = match source {
            StoreTarget::Prefix(prefix) => self.prefix(&prefix, &destination, depth).await?,
            StoreTarget::Key(key) => match self.key(&key, &destination).await? {
                Some(replaced) => replaced,
                None => {
                    let prefix = Prefix::from_key(&key).ok_or_else(|| ApiError::no_such_key(&key))?;
                    self.prefix(&prefix, &destination, depth).await?
                }
            },
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = if replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        Ok(response)
    }

    /// Rejects a destination that is the source, or would replace it; and for a move one below it.
    fn check_overlap(&self, source: &str, destination: &str) -> Result<(), ApiError> {
        let is_below = |inner: &str, outer: &str| {
            outer.is_empty() || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
        };
        if source == destination {
            return Err(ApiError::overlapping_destination("the destination is the source"));
        }
        if is_below(source, destination) {
            return Err(ApiError::overlapping_destination(
                "the source is below the destination, which would be replaced",
            ));
        }
        if self.kind == Kind::Move && is_below(destination, source) {
            return Err(ApiError::overlapping_destination("the destination is below the source"));
        }
        Ok(())
    }

    /// Fails if the store that has the destination cannot be changed.
    fn check_writable(&self, destination: &Destination) -> Result<(), ApiError> {
        let prefix = destination.prefix.clone().or(destination.key.as_ref().map(Key::parent));
        let prefix = prefix.unwrap_or_else(Prefix::root);
        match self.app.store().guarantees_below(&prefix).writes {
            Writes::None => Err(StoreError::Unsupported { what: "changes" }.into()),
            _ => Ok(()),
        }
    }

    /// Copies or moves everything below a prefix.
    async fn prefix(&self, prefix: &Prefix, destination: &Destination, depth: Option<Depth>) -> Result<bool, ApiError> {
        if self.kind == Kind::Move && depth == Some(Depth::Zero) {
            return Err(dav::DavHeaderError::Depth.into());
        }
        if self.conditions.is_conditional() {
            return Err(ApiError::invalid_header("If-Match", "a prefix has no version to compare"));
        }
        tree_transfer::transfer(self, prefix, destination, depth == Some(Depth::Zero)).await
    }

    /// Copies or moves a value; returns whether something was replaced. `None` if the key has no value.
    async fn key(&self, source: &Key, destination: &Destination) -> Result<Option<bool>, ApiError> {
        let mut staged: Option<(Version, Staged)> = None;
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.app.store().head(source).await? else { return Ok(None) };
            let target = self.key_of_value(destination)?;
            let current = version_of(&**self.app.store(), target).await?;
            self.conditions.check(source, Some(&meta), &[(target, current)])?;
            let existing = self.existing(destination, current).await?;
            if staged.as_ref().is_none_or(|(version, _)| *version != meta.version) {
                staged = self.stage(source, target).await?;
            }
            // Of another version the conditions may not hold.
            let Some((version, value)) = staged.as_ref().filter(|(version, _)| *version == meta.version) else {
                continue;
            };
            let mut changes = existing.changes;
            changes.push(Change::Set { staged: value.clone(), precondition: existing.precondition });
            if self.kind == Kind::Move {
                changes.push(Change::Erase { key: source.clone(), precondition: Precondition::at(*version) });
            }
            match self.commit(changes).await {
                Ok(outcomes) => {
                    let replaced = |outcome: &ChangeOutcome| matches!(outcome, ChangeOutcome::Set(put) if put.replaced);
                    return Ok(Some(existing.has_keys_below || outcomes.iter().any(replaced)));
                }
                Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::too_many_conflicts())
    }

    /// The key that a value gets. With a slash at its end a destination stands for the prefix alone, so that the right to
    /// change the key is checked here.
    fn key_of_value<'d>(&self, destination: &'d Destination) -> Result<&'d Key, ApiError> {
        match (&destination.key, &destination.value_key) {
            (Some(key), _) => Ok(key),
            (None, Some(key)) if self.session.principal().may_key(Right::Write, key) => Ok(key),
            (None, Some(key)) => Err(ApiError::forbidden(format!("this requires the right to write {key}"))),
            (None, None) => Err(ApiError::invalid_header("Destination", "the destination is no key")),
        }
    }

    /// Stages the value of a key for another one. `None` if it has been erased or changed meanwhile.
    async fn stage(&self, source: &Key, target: &Key) -> Result<Option<(Version, Staged)>, ApiError> {
        let Some(GetResult { meta, stream, .. }) = self.app.store().get(source, None).await? else { return Ok(None) };
        let payload = Payload { size: Some(meta.size), stream };
        match self.app.writes()?.stage(target, payload).await {
            Ok(staged) => Ok(Some((meta.version, staged))),
            Err(error) if error.is_changed() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What is at the destination, and the changes that remove it. Fails if it must not be replaced.
    pub(super) async fn existing(
        &self,
        destination: &Destination,
        current: Option<Version>,
    ) -> Result<Existing, ApiError> {
        let below = match &destination.prefix {
            Some(prefix) => first_below(&self.app, prefix).await?,
            None => None,
        };
        if self.overwrite == Overwrite::Fail {
            let existing = destination.key.as_ref().filter(|_| current.is_some()).map(Key::as_str);
            if let Some(name) = existing.or(below.as_ref().map(Key::as_str)) {
                return Err(ApiError::destination_exists(name));
            }
        }
        let change = destination.prefix.clone().map(|prefix| match &below {
            Some(_) => Change::ErasePrefix { prefix },
            None => Change::CheckEmpty { prefix },
        });
        let precondition = match self.overwrite {
            Overwrite::Fail => Precondition::absent(),
            Overwrite::Replace => Precondition::none(),
        };
        Ok(Existing { changes: change.into_iter().collect(), precondition, has_keys_below: below.is_some() })
    }

    /// Commits, if the caller still has its rights.
    pub(super) async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        if let Err(lost) = self.session.confirm(&self.app) {
            return Err(StoreError::Upload(zarrd_store::UploadError::Aborted(lost.into())));
        }
        self.app.writes()?.commit(changes).await
    }
}

/// What is at a destination.
pub(super) struct Existing {
    /// The changes that remove what is below it, or check that there is nothing.
    pub(super) changes: Vec<Change>,
    /// The condition on its key.
    pub(super) precondition: Precondition,
    /// True if there are keys below it.
    pub(super) has_keys_below: bool,
}

impl Destination {
    fn new(target: StoreTarget) -> Self {
        match target {
            StoreTarget::Key(key) => {
                Self { prefix: Prefix::from_key(&key), value_key: Some(key.clone()), key: Some(key) }
            }
            StoreTarget::Prefix(prefix) => {
                let value_key = Key::parse(prefix.as_str().trim_end_matches('/')).ok();
                Self { key: None, value_key, prefix: Some(prefix) }
            }
        }
    }
}

/// The name of a key, or of a prefix without its slash.
fn name(target: &StoreTarget) -> &str {
    match target {
        StoreTarget::Key(key) => key.as_str(),
        StoreTarget::Prefix(prefix) => prefix.as_str().trim_end_matches('/'),
    }
}
