//! `COPY` and `MOVE`.

use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{StatusCode, request::Parts};
use zarrd_store::{Key, Prefix, StoreError, Writes};
use zarrd_wire::{
    dav::{self, Depth, Overwrite},
    routes::StoreTarget,
};

use super::{
    transfer::{Destination, Kind, Transfer},
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

/// The destination of a copy or move, with the headers that say how to get there.
#[derive(Debug)]
pub(crate) struct TransferTarget {
    kind: Kind,
    destination: StoreTarget,
    overwrite: Overwrite,
    depth: Option<Depth>,
}

/// `COPY`: copies a value, or everything below a prefix, in one commit. `MOVE` erases the source in the same commit.
pub(crate) async fn copy_or_move(
    State(app): State<App>,
    StorePath(source): StorePath,
    _: Query<NoQuery>,
    target: TransferTarget,
    conditions: WriteConditions,
    session: Session,
    RequestClaim(claim): RequestClaim,
) -> Result<Response, ApiError> {
    let TransferTarget { kind, destination, overwrite, depth } = target;
    Transfer { app, session, claim, kind, conditions, overwrite }.run(source, destination, depth).await
}

impl FromRequestParts<App> for TransferTarget {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let destination = destination::parse(app, &parts.headers, &parts.uri, &parts.extensions)?;
        let depth = dav::depth(&parts.headers)?;
        let kind = if parts.method == dav::move_() { Kind::Move } else { Kind::Copy };
        Ok(Self { kind, destination, overwrite: dav::overwrite(&parts.headers)?, depth })
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
            Writes::Key => Err(StoreError::Unsupported { what: "copies and moves: it is written key by key" }.into()),
            Writes::Commit => Ok(()),
        }
    }

    /// Copies or moves everything below a prefix.
    async fn prefix(&self, prefix: &Prefix, destination: &Destination, depth: Option<Depth>) -> Result<bool, ApiError> {
        if self.kind == Kind::Move && depth == Some(Depth::Zero) {
            return Err(dav::DavHeaderError::Depth.into());
        }
        self.conditions.check_prefix()?;
        tree_transfer::transfer(self, prefix, destination, depth == Some(Depth::Zero)).await
    }
}

/// The name of a key, or of a prefix without its slash.
fn name(target: &StoreTarget) -> &str {
    match target {
        StoreTarget::Key(key) => key.as_str(),
        StoreTarget::Prefix(prefix) => prefix.as_str().trim_end_matches('/'),
    }
}
