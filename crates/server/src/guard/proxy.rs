//! Checks of the headers that proxies add.

use http::{
    Extensions, HeaderMap, HeaderName,
    header::{FORWARDED, VIA},
};
use zarrd_wire::problem::{Members, Problem, ProblemType};

use crate::{caller::Peer, error::ApiError};

/// The beginning of the names of headers such as `X-Forwarded-For`.
const X_FORWARDED: &str = "x-forwarded-";

/// Rejects requests that a proxy has forwarded, unless it is trusted.
///
/// Otherwise all clients of a proxy that `--behind-proxy` does not name would be one caller, and share its part of
/// memory and threads.
pub(crate) fn check_proxy_headers(extensions: &Extensions, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(address) = extensions.get::<Peer>().and_then(|peer| peer.untrusted()) else { return Ok(()) };
    let Some(header) = headers.keys().find(|name| is_added_by_proxies(name)) else { return Ok(()) };
    let members = Members { header: Some(header.to_string()), ..Members::default() };
    let problem = Problem::new(ProblemType::UntrustedProxy)
        .with_detail(format!(
            "the request was forwarded by {address}, which is not in a network of trusted proxies (`--behind-proxy`)"
        ))
        .with_members(members);
    Err(ApiError::new(problem))
}

fn is_added_by_proxies(name: &HeaderName) -> bool {
    name == FORWARDED || name == VIA || name.as_str().starts_with(X_FORWARDED)
}
