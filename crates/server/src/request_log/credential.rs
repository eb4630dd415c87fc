//! The tokens and share links that requests make and revoke.

use std::sync::Arc;

use http::Extensions;
use zarrd_access::{Grant, Grants, LinkInfo, Right, TokenInfo, without_credentials};
use zarrd_wire::time::rfc3339;

use super::{audited::AuditedCredential, record::RequestRecord};

/// The record of a request that changes tokens or share links, if a log is on.
#[derive(Clone)]
pub(crate) struct CredentialAudit(Option<Arc<RequestRecord>>);

impl CredentialAudit {
    /// The record of the request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        Self(extensions.get().cloned())
    }

    /// Records the token that the request makes or revokes, and returns it.
    pub(crate) fn token<'t>(&self, token: &'t TokenInfo) -> &'t TokenInfo {
        self.set(|| AuditedCredential {
            credential: format!("token:{}", token.id),
            name: safe(&token.name),
            allow: texts(&token.grants),
            expires: token.expires.map(rfc3339),
        });
        token
    }

    /// Records the share link that the request makes or revokes, and returns it.
    pub(crate) fn link<'l>(&self, link: &'l LinkInfo) -> &'l LinkInfo {
        self.set(|| AuditedCredential {
            credential: format!("link:{}", link.id),
            name: safe(&link.name),
            allow: texts(&Grants::from(Grant::new(Right::Read, link.prefix.clone()))),
            expires: Some(rfc3339(link.expires)),
        });
        link
    }

    fn set(&self, credential: impl FnOnce() -> AuditedCredential) {
        if let Some(record) = &self.0 {
            record.set_credential(credential());
        }
    }
}

fn texts(grants: &Grants) -> Vec<String> {
    grants.iter().map(|grant| safe(&grant.to_string())).collect()
}

/// A text of the client without any credential, which it may have put into a name.
fn safe(text: &str) -> String {
    without_credentials(text).into_owned()
}
