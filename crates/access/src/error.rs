//! Errors of opening and changing an access directory.

use std::{io, path::PathBuf, sync::Arc, time::SystemTime};

use crate::{
    clock::rfc3339,
    denial::ReadError,
    grants::Grants,
    id::{CredentialId, KeyId},
    key_ring::MAX_KEYS,
    record::{MAX_RECORD_LEN, NameError},
};

/// Errors of opening an access directory.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory does not exist, and was not to be created.
    #[error("there is no access directory at {}", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be read, or is not secure.
    #[error(transparent)]
    Read(#[from] Arc<ReadError>),
    /// The first key cannot be made.
    #[error("cannot make the first key")]
    FirstKey(#[source] ChangeError),
}

/// Errors of creating and revoking tokens and share links, and of changing keys. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The token has no rights.
    #[error("a token needs at least one grant")]
    NoGrants,
    /// The grants are too long together.
    #[error("the prefixes of the grants are too long together: the token's file exceeds {MAX_RECORD_LEN} bytes")]
    GrantsTooLong,
    /// The token or share link would have expired before it is made.
    #[error("the expiry {} is not in the future", rfc3339(*expires))]
    ExpiryPassed {
        /// The expiry.
        expires: SystemTime,
    },
    /// The token would outlive its maker.
    #[error("the expiry is after {}, when the token that makes it expires", rfc3339(*limit))]
    ExpiryAfterMaker {
        /// The expiry of the maker.
        limit: SystemTime,
    },
    /// The maker is not, or no longer, a valid token.
    #[error("the token {id} is not valid any more")]
    InvalidMaker {
        /// The id of the maker.
        id: CredentialId,
    },
    /// The maker may not give such rights.
    #[error("not within the rights of the token that makes it")]
    NotWithinMaker {
        /// The rights of the maker.
        rights: Grants,
    },
    /// There are too many tokens, or too many share links.
    #[error("there are {limit} already, which is the limit; revoke some first")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A token has made too many tokens, or too many share links.
    #[error("this token has made {limit} already, which is the limit of one; revoke some first")]
    TooManyOfMaker {
        /// The limit.
        limit: usize,
    },
    /// There is no such token or share link.
    #[error("there is no {id}")]
    NotFound {
        /// The id.
        id: CredentialId,
    },
    /// There is no such key.
    #[error("there is no key {id}")]
    NoSuchKey {
        /// The key.
        id: KeyId,
    },
    /// The key makes new tokens.
    #[error("the key {id} makes new tokens; add another one first")]
    CurrentKey {
        /// The key.
        id: KeyId,
    },
    /// There are too many keys.
    #[error("there are {MAX_KEYS} keys already, which is the limit; drop old ones first")]
    TooManyKeys,
    /// The directory cannot be read.
    #[error(transparent)]
    Unavailable(#[from] Arc<ReadError>),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random(#[from] rand::rngs::SysError),
    /// A file cannot be changed.
    #[error("cannot {action} {}", path.display())]
    Write {
        /// The failed action, which continues "cannot".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}
