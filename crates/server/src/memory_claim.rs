//! The claim of a request on memory.
//!
//! All that a request holds is taken through it: its body and what is made of that, what its arrays and hierarchies need, and answers that are made whole. Whoever holds some
//! never waits for more, which the claim itself sees to: see [`array::Claim`].

use std::convert::Infallible;

use array::{Caller, Claim};
use axum::extract::{FromRequestParts, Request};
use http::{Extensions, request::Parts};

use crate::app::App;

/// The claim of a request, as an extractor.
pub(crate) struct RequestClaim(pub(crate) Claim);

/// Gives a request its claim, on behalf of its caller.
pub(crate) fn attach(app: &App, request: &mut Request) {
    let claim = claim_of(request.extensions(), app);
    request.extensions_mut().insert(claim);
}

/// The claim of the request with these extensions.
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
