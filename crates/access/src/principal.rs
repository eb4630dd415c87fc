//! Principals: who makes a request.

use std::{sync::Arc, time::SystemTime};

use zarrd_store::{Key, Prefix};

use crate::{grants::Grants, id::CredentialId, right::Right};

/// The one who makes a request, and their rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The id of the token or share link, which is no secret; `None` without a credential.
    pub credential: Option<CredentialId>,
    /// The same as text; `anonymous` without a credential.
    pub id: Arc<str>,
    /// The name that the token or share link was given; empty for anonymous requests.
    pub name: Arc<str>,
    /// The kind of the credential.
    pub kind: PrincipalKind,
    /// The rights.
    pub grants: Grants,
    /// The time from which on the rights are void, if any.
    pub expires: Option<SystemTime>,
    /// The id of the token with which the credential was made; none if it was made on the server's machine.
    pub maker: Option<Arc<str>>,
}

/// The kind of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// No credential.
    Anonymous,
    /// A token.
    Token,
    /// A share link.
    Link,
}

impl Principal {
    /// Anyone without a credential, with these rights.
    pub fn anonymous(grants: Grants) -> Self {
        Self {
            credential: None,
            id: Arc::from("anonymous"),
            name: Arc::from(""),
            kind: PrincipalKind::Anonymous,
            grants,
            expires: None,
            maker: None,
        }
    }

    /// True if the right is granted on all of the prefix.
    pub fn may(&self, right: Right, prefix: &Prefix) -> bool {
        self.grants.allow(right, prefix)
    }

    /// True if the right is granted on the key.
    pub fn may_key(&self, right: Right, key: &Key) -> bool {
        self.grants.allow_key(right, key)
    }

    /// The id of the token, if this is one: the maker of what is created with it.
    pub fn token_id(&self) -> Option<CredentialId> {
        match self.kind {
            PrincipalKind::Token => self.credential,
            PrincipalKind::Anonymous | PrincipalKind::Link => None,
        }
    }

    /// True if the rights are void at a time.
    pub fn is_expired(&self, at: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= at)
    }
}
