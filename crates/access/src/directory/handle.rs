//! The handle of a directory.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use parking_lot::{Mutex, RwLock};

use super::{disk::Disk, state::State};
use crate::{
    clock::{Clock, TimeSource},
    credential::{Credential, Kind, Secret},
    denial::{Denial, ReadError},
    error::OpenError,
    id::CredentialId,
    principal::{Principal, PrincipalKind},
};

/// The maximum number of tokens, and of share links. A tenth of it can be made with one token.
pub const MAX_CREDENTIALS: usize = 100_000;

/// A directory of tokens, share links and keys, and their content in memory.
///
/// Several processes may share a directory, on one machine or through a network file system. Each reads the changes of
/// the others by [`reload_if_changed`](Self::reload_if_changed), which [`watch`](Self::watch) calls; its own changes
/// count at once.
///
/// All methods but the `authenticate` ones, [`status`](Self::status) and [`had_tokens`](Self::had_tokens) do file I/O,
/// or wait for it, and so may block.
pub struct AccessDirectory {
    path: PathBuf,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) state: RwLock<State>,
    /// Locked by whoever reads or changes the directory, before `state`.
    pub(super) disk: Mutex<Disk>,
}

/// The limits of a directory.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The number of tokens, and of share links, up to which they can be created.
    pub(super) create: usize,
    /// The number of valid tokens, and of valid share links, that can be made with one token.
    pub(super) per_maker: usize,
    /// The number of files of each kind up to which a directory is read. Servers that create some at the same time may
    /// exceed the other limit, which must not make the directory unreadable.
    pub(super) read: usize,
}

impl AccessDirectory {
    /// Opens a directory. It is created with a first key, accessible to its owner only, if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let limits = Limits {
            create: MAX_CREDENTIALS,
            per_maker: MAX_CREDENTIALS / 10,
            read: MAX_CREDENTIALS + MAX_CREDENTIALS / 10,
        };
        Self::open_with(path.into(), limits, Box::new(SystemTime::now))
    }

    /// Opens a directory if it exists.
    pub fn open_existing(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let path = path.into();
        match path.try_exists() {
            Ok(false) => Err(OpenError::Missing { path }),
            Ok(true) | Err(_) => Self::open(path),
        }
    }

    pub(super) fn open_with(path: PathBuf, limits: Limits, time: TimeSource) -> Result<Self, OpenError> {
        let disk = Disk::create(&path, limits.read)?;
        let directory =
            Self { path, clock: Clock::new(time), limits, state: RwLock::default(), disk: Mutex::new(disk) };
        directory.create_first_key()?;
        directory.read()?;
        Ok(directory)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The latest time that the directory knows of: that of the system, unless its clock went back. Expiries are
    /// judged by it, so that what has expired never becomes valid again.
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Verifies the text of a token. Does no I/O.
    pub fn authenticate(&self, token: impl AsRef<[u8]>) -> Result<Arc<Principal>, Denial> {
        self.verify(Kind::Token, token.as_ref())
    }

    /// Verifies the text of a share link. Does no I/O.
    pub fn authenticate_link(&self, link: impl AsRef<[u8]>) -> Result<Arc<Principal>, Denial> {
        self.verify(Kind::Link, link.as_ref())
    }

    /// The principal and the text of a valid token, to verify what was signed with it. Does no I/O.
    pub fn secret(&self, id: CredentialId) -> Result<(Arc<Principal>, Secret), Denial> {
        self.state.read().secret(id, self.clock.now())
    }

    fn verify(&self, kind: Kind, text: &[u8]) -> Result<Arc<Principal>, Denial> {
        let credential = Credential::parse(kind, text)?;
        self.state.read().verify(kind, &credential, self.clock.now()).map(Arc::clone)
    }

    /// Checks that the credential of a principal is still valid, and grants what it did. Does no I/O.
    pub fn confirm(&self, principal: &Principal) -> Result<(), Denial> {
        let kind = match principal.kind {
            PrincipalKind::Anonymous => return Ok(()),
            PrincipalKind::Token => Kind::Token,
            PrincipalKind::Link => Kind::Link,
        };
        let id = principal.credential.ok_or(Denial::Revoked)?;
        self.state.read().confirm(kind, id, principal, self.clock.now())
    }

    /// True once a token was made, even if all were revoked since, and if that is not known because the directory
    /// cannot be read.
    pub fn had_tokens(&self) -> bool {
        let state = self.state.read();
        state.failure.is_some() || state.had_tokens
    }

    /// The reason why the directory cannot be read, for which all credentials are denied.
    pub fn status(&self) -> Result<(), Arc<ReadError>> {
        self.state.read().failure.clone().map_or(Ok(()), Err)
    }
}

impl fmt::Debug for AccessDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}
