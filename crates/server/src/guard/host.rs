//! Checks of the `Host` header.

use http::{HeaderMap, Uri, Version, header::HOST};
use wire::problem::{Members, Problem, ProblemType};

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
    let Some(first) = first else {
        // HTTP/1.0 requests need no host, and browsers do not send them.
        return if version < Version::HTTP_11 {
            Ok(())
        } else {
            Err(ApiError::new(Problem::new(ProblemType::MissingHost)))
        };
    };
    let hosts = &app.settings().hosts;
    if *hosts == Hosts::Any {
        return Ok(());
    }
    // An absolute request target takes precedence over `Host`; both have to be allowed.
    let texts = [first.to_str().ok(), uri.authority().map(|authority| authority.as_str()).or(Some("localhost"))];
    if texts.iter().all(|text| text.is_some_and(|text| hosts.allow(text))) {
        return Ok(());
    }
    let problem = Problem::new(ProblemType::ForbiddenHost)
        .with_detail("a server on a loopback address serves loopback names and those given by `--allow-host`")
        .with_members(Members { host: Some(truncated(first)), ..Members::default() });
    Err(ApiError::new(problem))
}
