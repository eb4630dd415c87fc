//! Checks of the right to change what is stored.

use http::{HeaderMap, HeaderName, Uri, header::ORIGIN};
use zarrd_wire::problem::{Members, Problem, ProblemType};

use super::truncated::truncated;
use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    routes::{Operation, Route, Safety},
    settings::Changes,
};

/// Fetch metadata: `none` is a user's own navigation, every other value a web page.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const PAGE_SITES: [&[u8]; 3] = [b"cross-site", b"same-site", b"same-origin"];

/// Rejects an unsafe request that the settings or the browser's origin do not permit.
pub(crate) fn check_mutation(
    app: &App,
    operation: &Operation,
    session: &Session,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    if operation.safety == Safety::Safe {
        return Ok(());
    }
    if operation.changes_store() {
        check_changes(app)?;
    }
    check_origin(app, session, headers)
}

/// Rejects changes of a read-only server.
pub(crate) fn check_changes(app: &App) -> Result<(), ApiError> {
    match app.settings().changes {
        Changes::Accepted => Ok(()),
        Changes::Rejected => Err(ApiError::new(Problem::new(ProblemType::ReadOnlyServer))),
    }
}

/// Rejects an unsafe request that the browser's origin does not permit.
///
/// An `Origin` header marks a request as sent by a web page, possibly without the user's knowledge. Only pages of
/// allowed origins may change the store; `null` and the server's own address are not exempt. A page that sends
/// `Sec-Fetch-Site` without `Origin` is rejected. A bearer token is different: only a page that has it can send it.
pub(crate) fn check_origin(app: &App, session: &Session, headers: &HeaderMap) -> Result<(), ApiError> {
    if !session.is_ambient() {
        return Ok(());
    }
    let forbidden = headers.get_all(ORIGIN).iter().find(|origin| !origin_allowed(app, origin.as_bytes()));
    if let Some(origin) = forbidden {
        let members = Members { origin: Some(truncated(origin)), ..Members::default() };
        return Err(ApiError::new(Problem::new(ProblemType::ForbiddenOrigin).with_members(members)));
    }
    let is_page = headers.get_all(SEC_FETCH_SITE).iter().any(|site| PAGE_SITES.contains(&site.as_bytes()));
    if is_page && !headers.contains_key(ORIGIN) {
        let detail = "Sec-Fetch-Site marks a request of a web page, but Origin is missing";
        return Err(ApiError::new(Problem::new(ProblemType::ForbiddenOrigin).with_detail(detail)));
    }
    Ok(())
}

/// Returns the value of `Allow` for a resource under the current settings, without what the store does not support.
pub(crate) fn allowed_methods(app: &App, route: &Route, uri: &Uri) -> String {
    let is_allowed = |operation: &Operation| {
        let is_accepted = !operation.changes_store() || app.settings().changes == Changes::Accepted;
        is_accepted && operation.check_supported(app, uri).is_ok()
    };
    match route.operations.iter().all(is_allowed) {
        true => route.allow(),
        false => route.allow_matching(uri.query().unwrap_or_default(), is_allowed),
    }
}

pub(super) fn origin_allowed(app: &App, origin: &[u8]) -> bool {
    app.settings().origins.iter().any(|allowed| allowed.matches(origin))
}
