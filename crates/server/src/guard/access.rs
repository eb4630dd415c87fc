//! Which requests may change what is stored.

use http::{HeaderMap, HeaderName, header::ORIGIN};
use wire::problem::{Members, Problem, ProblemType};

use super::truncated::truncated;
use crate::{
    app::App,
    error::ApiError,
    routes::{Route, Safety},
    settings::{Access, Changes},
};

/// What a browser says of who asks: `none` is whoever uses it, all else a page (Fetch Metadata).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const PAGE_SITES: [&[u8]; 3] = [b"cross-site", b"same-site", b"same-origin"];

/// True if a request may change anything, if it would.
///
/// An `Origin` says that a web page asks, without the knowledge of whoever visits it. Only pages of allowed origins may
/// change the store; `null`, and the server's own address, are origins like any other. A page that says by `Sec-Fetch-Site` that it is one, and not of
/// which origin, is of none that is allowed.
pub(crate) fn check_mutation(app: &App, safety: Safety, headers: &HeaderMap) -> Result<(), ApiError> {
    if safety == Safety::Safe {
        return Ok(());
    }
    if app.settings().changes == Changes::Rejected {
        return Err(ApiError::new(Problem::new(ProblemType::ReadOnlyServer)));
    }
    let forbidden = headers.get_all(ORIGIN).iter().find(|origin| !origin_allowed(app, origin.as_bytes()));
    if let Some(origin) = forbidden {
        let members = Members { origin: Some(truncated(origin)), ..Members::default() };
        return Err(ApiError::new(Problem::new(ProblemType::ForbiddenOrigin).with_members(members)));
    }
    let is_page = headers.get_all(SEC_FETCH_SITE).iter().any(|site| PAGE_SITES.contains(&site.as_bytes()));
    if is_page && !headers.contains_key(ORIGIN) {
        let detail = "Sec-Fetch-Site says that a web page asks, and there is no Origin";
        return Err(ApiError::new(Problem::new(ProblemType::ForbiddenOrigin).with_detail(detail)));
    }
    match app.settings().access {
        Access::Write => Ok(()),
        Access::Read => Err(ApiError::new(Problem::new(ProblemType::ReadOnlyAccess))),
    }
}

/// The value of `Allow`: what can be done with a resource on this server.
pub(crate) fn allowed_methods(app: &App, route: &Route, query: &str) -> String {
    match app.settings().changes {
        Changes::Accepted => route.allow(),
        Changes::Rejected => route.allow_safe(query),
    }
}

pub(super) fn origin_allowed(app: &App, origin: &[u8]) -> bool {
    app.settings().origins.iter().any(|allowed| allowed.matches(origin))
}
