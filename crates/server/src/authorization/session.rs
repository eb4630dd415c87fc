//! The caller of a request.

use std::sync::Arc;

use axum::response::Response;
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, REFERRER_POLICY},
};
use zarrd_access::{Principal, PrincipalKind, Right};
use zarrd_array::{Caller, NodeRights};
use zarrd_meta::NodePath;
use zarrd_store::{Cursor, Prefix};
use zarrd_wire::routes;

use super::{credential::Scheme, share_link::ShareLink};
use crate::{
    app::App,
    error::{ApiError, RightsLost},
};

/// Shared caches must not store what depends on a credential.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

/// The principal on whose behalf a request is handled.
#[derive(Clone)]
pub(crate) struct Session {
    pub(super) principal: Arc<Principal>,
    /// The scheme of the credential, if it was in a header.
    pub(super) scheme: Option<Scheme>,
    /// The credential, if it was in the path.
    pub(super) link: Option<ShareLink>,
}

impl Session {
    /// The session of a request without a credential.
    pub(crate) fn anonymous(app: &App) -> Self {
        Self { principal: app.anonymous_principal().clone(), scheme: None, link: None }
    }

    /// Fails if the principal has lost its rights since the request was allowed. Does no I/O.
    pub(crate) fn confirm(&self, app: &App) -> Result<(), RightsLost> {
        if !self.is_identified() {
            let unchanged = Arc::ptr_eq(&self.principal, app.anonymous_principal());
            return if unchanged { Ok(()) } else { Err(RightsLost::Anonymous) };
        }
        // Whoever is identified is so by the directory.
        let Ok(Some(directory)) = app.settings().access.directory.get() else { return Ok(()) };
        directory.confirm(&self.principal).map_err(RightsLost::Credential)
    }

    /// The principal.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// True if the request has a credential.
    pub(crate) fn is_identified(&self) -> bool {
        self.principal.kind != PrincipalKind::Anonymous
    }

    /// The caller's name in the logs, such as `token:` and its id; `None` for anonymous callers.
    pub(crate) fn log_name(&self) -> Option<String> {
        match self.principal.kind {
            PrincipalKind::Anonymous => None,
            PrincipalKind::Token => Some(format!("token:{}", self.principal.id)),
            PrincipalKind::Link => Some(format!("link:{}", self.principal.id)),
        }
    }

    /// The rights on nodes that the request does not name; `None` for all.
    pub(crate) fn node_rights(&self) -> Option<Arc<dyn NodeRights>> {
        let unlimited = self.principal.may(Right::Write, &Prefix::root());
        (!unlimited).then(|| Arc::new(PrincipalRights(self.principal.clone())) as Arc<dyn NodeRights>)
    }

    /// The beginning of the URL's path before the usual one: a share link, or nothing.
    pub(crate) fn base_path(&self) -> String {
        self.link.as_ref().map_or_else(String::new, |ShareLink(link)| routes::share_link_path(link))
    }

    /// The caller for fair sharing, if the request has a credential.
    pub(crate) fn caller(&self) -> Option<Caller> {
        self.principal.credential.map(|id| Caller::new(id.to_u128()))
    }

    /// True if a browser may have sent the credential without the intention of the page.
    pub(crate) fn is_ambient(&self) -> bool {
        !matches!(self.scheme, Some(Scheme::Bearer | Scheme::Signature))
    }

    /// Marks a response that depends on the credential.
    pub(crate) fn mark(&self, response: &mut Response) {
        if !self.is_identified() {
            return;
        }
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, PRIVATE);
        if self.principal.kind == PrincipalKind::Link {
            headers.insert(REFERRER_POLICY, NO_REFERRER);
        }
    }

    /// Binds a cursor to the principal.
    pub(crate) fn bind(&self, cursor: Cursor) -> Cursor {
        match self.is_identified() {
            true => Cursor::from_text(format!("{}.{}", cursor.as_str(), self.principal.id)),
            false => cursor,
        }
    }

    /// Returns the store's cursor in one that was [bound](Self::bind) to the same principal.
    pub(crate) fn unbind(&self, cursor: &Cursor) -> Result<Cursor, ApiError> {
        if !self.is_identified() {
            return Ok(cursor.clone());
        }
        match cursor.as_str().rsplit_once('.') {
            Some((cursor, id)) if *id == *self.principal.id => Ok(Cursor::from_text(cursor)),
            _ => Err(zarrd_store::StoreError::InvalidCursor.into()),
        }
    }
}

/// The rights of a principal on nodes.
struct PrincipalRights(Arc<Principal>);

impl PrincipalRights {
    fn may(&self, right: Right, path: &NodePath) -> bool {
        Prefix::parse(&path.key_prefix()).is_ok_and(|prefix| self.0.may(right, &prefix))
    }
}

impl NodeRights for PrincipalRights {
    fn can_read(&self, path: &NodePath) -> bool {
        self.may(Right::Read, path)
    }

    fn can_write(&self, path: &NodePath) -> bool {
        self.may(Right::Write, path)
    }
}
