//! The memory claim of a request.
//!
//! All memory of a request is taken through its claim: the body and its parsed form, the needs of arrays and
//! hierarchies, and buffered responses. The claim never waits for more while it holds some; see [`array::Claim`].

use std::convert::Infallible;

use array::{Caller, Claim};
use axum::extract::{FromRequestParts, Request};
use http::{Extensions, request::Parts};

use crate::app::App;

/// An extractor for the request's claim.
pub(crate) struct RequestClaim(pub(crate) Claim);

/// Attaches a new claim of the request's caller to the request.
pub(crate) fn attach(app: &App, request: &mut Request) {
    let claim = claim_of(request.extensions(), app);
    request.extensions_mut().insert(claim);
}

/// Returns the claim in these extensions, or a new one.
pub(crate) fn claim_of(extensions: &Extensions, app: &App) -> Claim {
    let new_claim = || app.memory().claim(extensions.get().copied().unwrap_or(Caller::UNKNOWN));
    extensions.get().cloned().unwrap_or_else(new_claim)
}

impl FromRequestParts<App> for RequestClaim {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self(claim_of(&parts.extensions, app)))
    }
}
