//! The array engine on behalf of one request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{
    Method,
    header::{IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE},
    request::Parts,
};
use zarrd_array::{Arrays, Claim, Hierarchies, Purpose, RemovedCopies, VersionSource};

use crate::{admission, app::App, authorization::Session, guard};

/// The arrays and hierarchies on behalf of one request. They take memory through its claim, and threads as its caller.
pub(crate) struct Engine {
    pub(crate) app: App,
    pub(crate) arrays: Arrays,
    pub(crate) claim: Claim,
    pub(crate) session: Session,
}

impl Engine {
    /// The hierarchies.
    pub(crate) fn hierarchies(&self) -> Hierarchies {
        self.arrays.hierarchies()
    }
}

impl FromRequestParts<App> for Engine {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let claim = admission::claim_of(&parts.extensions, app);
        let session = admission::session_of(&parts.extensions, app);
        let arrays = app.arrays().for_request(claim.clone(), session.node_rights());
        let compares = [IF_NONE_MATCH, IF_MATCH, IF_RANGE].iter().any(|name| parts.headers.contains_key(name));
        let is_partial = parts.method == Method::HEAD || parts.headers.contains_key(RANGE);
        let purpose = match (compares, is_partial) {
            (true, _) => Purpose::Comparison,
            (false, true) => Purpose::Description,
            (false, false) => Purpose::Elements,
        };
        let versions = match guard::asks_for_current(&parts.headers) {
            true => VersionSource::Chunks,
            false => VersionSource::Listings,
        };
        let mut arrays = arrays.with_purpose(purpose).with_versions(versions);
        if let Some(removed) = parts.extensions.get::<RemovedCopies>() {
            arrays = arrays.with_removed_copies(removed.clone());
        }
        Ok(Self { app: app.clone(), arrays, claim, session })
    }
}
