//! The session, the memory claim and the target of a request that was admitted.
//!
//! All memory of a request is taken through its claim: the body and its parsed form, the needs of arrays and
//! hierarchies, and buffered responses. The claim never waits for more while it holds some; see [`zarrd_array::Claim`].

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Request};
use http::{Extensions, request::Parts};
use zarrd_array::{Caller, Claim};
use zarrd_wire::routes::StoreTarget;

use crate::{app::App, authorization::Session};

/// An extractor for the request's claim.
pub(crate) struct RequestClaim(pub(crate) Claim);

/// An extension of admitted requests. It is one, since each extension costs an allocation.
#[derive(Clone)]
struct Admission {
    claim: Claim,
    /// `None` for an anonymous caller.
    session: Option<Session>,
    /// The key or prefix that the caller was authorized for, if the path was parsed for it.
    target: Option<StoreTarget>,
}

/// Attaches a session, a new claim of its caller, and the target that it is authorized for to a request.
pub(crate) fn attach(app: &App, session: &Session, target: Option<StoreTarget>, request: &mut Request) {
    let extensions = request.extensions_mut();
    let caller = session.caller().or_else(|| extensions.get().copied());
    let session = session.is_identified().then(|| session.clone());
    extensions.insert(Admission { claim: new_claim(app, caller), session, target });
}

/// Returns the claim of a request with these extensions, or a new one.
pub(crate) fn claim_of(extensions: &Extensions, app: &App) -> Claim {
    match extensions.get::<Admission>() {
        Some(admission) => admission.claim.clone(),
        None => new_claim(app, extensions.get().copied()),
    }
}

/// Returns the session of a request with these extensions, or that of one without a credential.
pub(crate) fn session_of(extensions: &Extensions, app: &App) -> Session {
    let session = extensions.get::<Admission>().and_then(|admission| admission.session.clone());
    session.unwrap_or_else(|| Session::anonymous(app))
}

/// Takes the target that a request with these extensions is authorized for.
pub(crate) fn take_target(extensions: &mut Extensions) -> Option<StoreTarget> {
    extensions.get_mut::<Admission>()?.target.take()
}

fn new_claim(app: &App, caller: Option<Caller>) -> Claim {
    app.memory().claim(caller.unwrap_or(Caller::UNKNOWN))
}

impl FromRequestParts<App> for RequestClaim {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self(claim_of(&parts.extensions, app)))
    }
}

impl FromRequestParts<App> for Session {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(session_of(&parts.extensions, app))
    }
}
