//! Checks of the `Host` header, and of `:authority` in HTTP/2.

use http::{HeaderMap, Uri, Version, header::HOST, uri::Authority};
use zarrd_wire::problem::{Members, Problem, ProblemType};

use super::truncated::truncated;
use crate::{app::App, error::ApiError, settings::Hosts};

/// Rejects requests for hosts that the server does not serve.
///
/// Otherwise a page whose name was rebound to a loopback address (DNS rebinding) would share the server's origin.
pub(crate) fn check_host(app: &App, version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut host_headers = headers.get_all(HOST).iter();
    let (first, second) = (host_headers.next(), host_headers.next());
    if second.is_some() {
        return Err(ApiError::invalid_header("Host", "the header occurs more than once"));
    }
    let authority = uri.authority().map(Authority::as_str);
    // HTTP/1.0 requests need no host, and browsers do not send them. HTTP/2 requests may have an authority instead.
    let is_optional = version < Version::HTTP_11 || version >= Version::HTTP_2 && authority.is_some();
    if first.is_none() && !is_optional {
        return Err(ApiError::new(Problem::new(ProblemType::MissingHost)));
    }
    let hosts = &app.settings().hosts;
    if *hosts == Hosts::Any || first.is_none() && version < Version::HTTP_11 {
        return Ok(());
    }
    // An absolute request target and an authority take precedence over `Host`; both have to be allowed.
    let is_allowed = |host: &str| {
        let domain = app.settings().s3.domain.as_ref();
        hosts.allow(host) || domain.is_some_and(|domain| domain.covers(host))
    };
    let host_allowed = first.is_none_or(|host| host.to_str().is_ok_and(is_allowed));
    if host_allowed && authority.is_none_or(is_allowed) {
        return Ok(());
    }
    let host = first.map(truncated).or_else(|| authority.map(|authority| authority.chars().take(256).collect()));
    let problem = Problem::new(ProblemType::ForbiddenHost)
        .with_detail("a server on a loopback address serves loopback names and those given by `--allow-host`")
        .with_members(Members { host, ..Members::default() });
    Err(ApiError::new(problem))
}
