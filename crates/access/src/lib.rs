//! Access rights: who may read, write and administer which prefix.
//!
//! A [`Principal`] is who makes a request, with their [`Grants`]: a list of [`Right`]s on prefixes, such as
//! `read:lab/`. It comes from a credential, which is a token or a share link, and which an [`AccessDirectory`] creates,
//! verifies and revokes:
//!
//! ```
//! use zarrd_access::{AccessDirectory, Grants, NewToken, Right};
//! use zarrd_store::Prefix;
//!
//! # let temp = tempfile::tempdir()?;
//! # let path = temp.path().join("access");
//! let directory = AccessDirectory::open(path)?;
//! let grants = Grants::new(["read:lab/".parse()?, "write:lab/exp1/".parse()?])?;
//! let (token, secret) = directory.create(NewToken { name: "Ada".to_owned(), grants, expires: None, maker: None })?;
//!
//! let principal = directory.authenticate(secret.expose())?;
//! assert!(principal.may(Right::Write, &Prefix::parse("lab/exp1/run2/")?));
//! assert!(!principal.may(Right::Write, &Prefix::parse("lab/exp2/")?));
//!
//! directory.revoke(token.id)?;
//! assert!(directory.authenticate(secret.expose()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Lifecycle of a token
//!
//! ```text
//!                    key ring           files of a directory
//!                  ┌───────────┐
//!     rotate ────► │ key 2     │ ◄──── keys/2.json            (the only secrets on disk)
//!                  │ key 1     │ ◄──── keys/1.json
//!                  └─────┬─────┘
//!   NewToken ── create ──┴──► tokens/<id>.json                (id, name, grants, created, expires, maker, key)
//!                  │                     │
//!                  ▼                     │ watch: within a second on each server of the directory
//!     zarrd_<key>_<id>_<mac>             ▼
//!                  └── authenticate ──► Principal, or Denial  (no I/O)
//!                                        │
//!          revoke: the file is removed ──┤
//!               expires: time passes ────┤──► denied for good
//!        drop_key: its key is removed ───┘
//! ```
//!
//! - **Secret**: the text of a credential, shown once. Its MAC is the HMAC-SHA256 of its id under a key of the key
//!   ring, so that nothing secret about it is stored, and who can only read the files of tokens cannot make one. A MAC
//!   is also of the kind of the credential, so that a share link never works as a token.
//! - **Key ring**: the newest key makes credentials, all of them verify. [`rotate`](AccessDirectory::rotate) adds a
//!   key; once everyone has a new token, [`drop_key`](AccessDirectory::drop_key) ends those of the old one. A key that
//!   leaked makes tokens only for ids that exist, with their rights.
//! - **Maker**: the token with which another one, or a share link, was made. A token with `admin:P` makes tokens within
//!   P and its own expiry, and sees only those within P ([`Grants::administer`]). They outlive its revocation.
//! - **Share link**: `zarrdlink_<key>_<id>_<mac>`, which reads one prefix until a time. It ends with its maker.
//! - **Denial**: the reason why a credential is refused. A damaged file denies its own token; a directory that cannot
//!   be read, or that other users of the machine can change, denies all of them.
//!
//! # Files
//!
//! Files are complete or absent: each is written under a temporary name, synced, and renamed. Those of tokens and share
//! links never change, so that revoking one is removing it. Only the owner of the directory may write to it; other
//! permissions are an error that names the `chmod` to run.
//!
//! # Time
//!
//! An expired token stays expired if the system's clock goes back. [`AccessDirectory::now`] is the latest time that was
//! seen, which has a floor on disk: the newest `created` of a file, and the file `clock`, which is written when
//! something expires or is revoked. If the system's clock was wrong and far ahead when one of them was written, tokens
//! seem to expire early: stop the servers, remove `clock` and the files that were made in the future.

mod clock;
mod credential;
mod denial;
mod directory;
mod encoded;
mod error;
mod files;
mod grant;
mod grants;
mod id;
mod info;
mod key_ring;
mod principal;
mod printable;
mod record;
mod record_files;
mod redaction;
mod right;
mod table;
mod watched;

pub use credential::Secret;
pub use denial::{Denial, ReadError};
pub use directory::{AccessDirectory, MAX_CREDENTIALS};
pub use error::{ChangeError, OpenError};
pub use grant::{Grant, GrantError};
pub use grants::{Grants, MAX_GRANTS, TooManyGrants};
pub use id::{CredentialId, IdError, KeyId};
pub use info::{CredentialState, DamagedFile, KeyInfo, LinkInfo, NewLink, NewToken, TokenInfo};
pub use principal::{Principal, PrincipalKind};
pub use printable::{is_invisible, printable, printable_line};
pub use record::{MAX_NAME_CHARS, MAX_RECORD_LEN, NameError};
pub use redaction::{OMITTED, without_credentials, without_userinfo};
pub use right::{Right, UnknownRight};
