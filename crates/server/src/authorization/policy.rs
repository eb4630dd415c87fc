//! The access policy of a server.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use access::{AccessDirectory, Grants, Principal, Right};

/// Rights of anonymous callers, and the tokens that the server accepts.
#[derive(Clone)]
pub struct AccessPolicy {
    /// The rights of callers without a credential.
    pub anonymous: AnonymousAccess,
    /// The tokens and share links.
    pub directory: DirectorySlot,
    /// The callers who may read the metrics.
    pub metrics: MetricsAccess,
}

/// A place for an access directory, which may come to exist while the server runs. Without one, the server accepts no
/// credential. Clones share it.
#[derive(Clone, Default)]
pub struct DirectorySlot(Arc<OnceLock<Arc<AccessDirectory>>>);

/// The rights of callers without a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// To read and change everything as long as no token exists, and none from then on.
    UntilFirstToken,
    /// These rights.
    Granted(Grants),
}

/// The callers who may read the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Everybody.
    Public,
    /// Callers who may read everything.
    Readers,
}

impl AccessPolicy {
    /// A policy without tokens: anonymous callers have the right on everything.
    pub fn anonymous(right: Right) -> Self {
        let anonymous = AnonymousAccess::Granted(Grants::everything(right));
        Self { anonymous, ..Self::default() }
    }

    /// True unless a token has ended the access of anonymous callers.
    fn is_open(&self) -> bool {
        // An unreadable directory may have tokens, and says that it has.
        self.anonymous != AnonymousAccess::UntilFirstToken
            || self.directory.get().is_none_or(|directory| !directory.had_tokens())
    }
}

/// The principals of callers without a credential, which are made once.
pub(crate) struct AnonymousPrincipals {
    open: Arc<Principal>,
    closed: Arc<Principal>,
}

impl AnonymousPrincipals {
    pub(crate) fn new(policy: &AccessPolicy) -> Self {
        let open = match &policy.anonymous {
            AnonymousAccess::Granted(grants) => grants.clone(),
            AnonymousAccess::UntilFirstToken => Grants::everything(Right::Write),
        };
        let [open, closed] = [open, Grants::none()].map(|grants| Arc::new(Principal::anonymous(grants)));
        Self { open, closed }
    }

    /// The principal at this moment.
    pub(crate) fn current(&self, policy: &AccessPolicy) -> &Arc<Principal> {
        if policy.is_open() { &self.open } else { &self.closed }
    }
}

impl DirectorySlot {
    /// The directory, if there is one.
    pub fn get(&self) -> Option<&Arc<AccessDirectory>> {
        self.0.get()
    }

    /// Sets the directory, once: it is that of all requests from now on.
    pub fn set(&self, directory: Arc<AccessDirectory>) {
        // The first one stays.
        let _ = self.0.set(directory);
    }
}

impl From<Arc<AccessDirectory>> for DirectorySlot {
    fn from(directory: Arc<AccessDirectory>) -> Self {
        Self(Arc::new(OnceLock::from(directory)))
    }
}

impl Default for AccessPolicy {
    /// Full access for everybody.
    fn default() -> Self {
        Self {
            anonymous: AnonymousAccess::UntilFirstToken,
            directory: DirectorySlot::default(),
            metrics: MetricsAccess::Readers,
        }
    }
}

impl fmt::Debug for AccessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { anonymous, directory, metrics } = self;
        f.debug_struct("AccessPolicy")
            .field("anonymous", anonymous)
            .field("has_directory", &directory.get().is_some())
            .field("metrics", metrics)
            .finish()
    }
}
