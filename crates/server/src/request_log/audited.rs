//! Tokens and share links in the audit log.

use serde::Serialize;

/// A token or share link in the audit log.
#[derive(Debug, Serialize)]
pub(super) struct AuditedCredential {
    /// Its kind and id, as in `principal`.
    pub(super) credential: String,
    pub(super) name: String,
    /// Its grants.
    pub(super) allow: Vec<String>,
    pub(super) expires: Option<String>,
}
