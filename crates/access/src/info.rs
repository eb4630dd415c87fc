//! Descriptions of tokens, share links and keys.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use zarrd_store::Prefix;

use crate::{
    grants::Grants,
    id::{CredentialId, KeyId},
    record::Record,
};

/// A token to be created.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// A name for people, of at most [`MAX_NAME_CHARS`](crate::MAX_NAME_CHARS) characters.
    pub name: String,
    /// The rights.
    pub grants: Grants,
    /// The time from which on the token is void. Without one, it is that of the maker, if that has one.
    pub expires: Option<SystemTime>,
    /// The token with which it is made, which needs [`Right::Admin`](crate::Right::Admin) on all prefixes; `None` for
    /// those who have access to the directory itself.
    pub maker: Option<CredentialId>,
}

/// A share link to be created.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// A name for people, which may be empty.
    pub name: String,
    /// The prefix that it gives access to.
    pub prefix: Prefix,
    /// The time from which on the link is void. It is that of the maker if that is earlier.
    pub expires: SystemTime,
    /// The token with which it is made, which needs [`Right::Read`](crate::Right::Read) on the prefix; `None` for those
    /// who have access to the directory itself.
    pub maker: Option<CredentialId>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// The id.
    pub id: CredentialId,
    /// The name.
    pub name: Arc<str>,
    /// The rights.
    pub grants: Grants,
    /// The time at which it was made.
    pub created: SystemTime,
    /// The time from which on it is void, if any.
    pub expires: Option<SystemTime>,
    /// The token with which it was made, if any.
    pub maker: Option<CredentialId>,
    /// The key that it was made with.
    pub key: KeyId,
    /// The state.
    pub state: CredentialState,
}

/// A share link, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// The id.
    pub id: CredentialId,
    /// The name, which may be empty.
    pub name: Arc<str>,
    /// The prefix that it gives access to.
    pub prefix: Prefix,
    /// The time at which it was made.
    pub created: SystemTime,
    /// The time from which on it is void.
    pub expires: SystemTime,
    /// The token with which it was made, if any.
    pub maker: Option<CredentialId>,
    /// The key that it was made with.
    pub key: KeyId,
    /// The state.
    pub state: CredentialState,
}

impl TokenInfo {
    pub(crate) fn new(record: &Record, state: CredentialState) -> Self {
        let Record { id, name, grants, created, expires, maker, key, .. } = record.clone();
        Self { id, name, grants, created, expires, maker, key, state }
    }
}

impl LinkInfo {
    pub(crate) fn new(record: &Record, expires: SystemTime, state: CredentialState) -> Self {
        let Record { id, name, grants, created, maker, key, .. } = record.clone();
        // A share link has one grant.
        let prefix = grants.iter().next().map_or_else(Prefix::root, |grant| grant.prefix.clone());
        Self { id, name, prefix, created, expires, maker, key, state }
    }
}

/// The state of a token or share link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialState {
    /// It is accepted.
    Valid,
    /// It has expired.
    Expired,
    /// Its key was dropped.
    KeyDropped,
    /// The maker of the share link was revoked, has expired, or lacks the right that it shares.
    MakerGone,
}

/// A key of the key ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The number.
    pub id: KeyId,
    /// True for the key that makes new tokens and share links.
    pub is_current: bool,
    /// The number of tokens that were made with it and have not expired.
    pub tokens: usize,
}

/// A damaged file, whose token or share link is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The path.
    pub path: PathBuf,
    /// The id, by which it can be revoked.
    pub id: CredentialId,
    /// The damage.
    pub reason: Arc<str>,
}
