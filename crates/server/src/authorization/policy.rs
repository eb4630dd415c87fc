//! The access policy of a server.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use parking_lot::RwLock;
use zarrd_access::{AccessDirectory, Grants, OpenError, Principal, Right};

use super::shared_reload::SharedReload;

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
/// credential; as long as one exists that cannot be opened, nothing is known about credentials. Clones share it.
#[derive(Clone, Default)]
pub struct DirectorySlot(Arc<Slot>);

/// Opens the directory of a slot if it has come to exist.
type Opener = Arc<dyn Fn(&DirectorySlot) + Send + Sync>;

#[derive(Default)]
struct Slot {
    reload: SharedReload,
    opener: OnceLock<Opener>,
    directory: OnceLock<Arc<AccessDirectory>>,
    /// The last failure to open the directory, which counts until it is opened.
    failure: RwLock<Option<Arc<OpenError>>>,
}

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
        self.anonymous != AnonymousAccess::UntilFirstToken
            || match self.directory.get() {
                Ok(None) => true,
                // One that became unreadable may have had tokens, and says so.
                Ok(Some(directory)) => !directory.had_tokens(),
                Err(_) => false,
            }
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
    /// The directory, if there is one. Fails if there is one that could not be opened.
    pub fn get(&self) -> Result<Option<&Arc<AccessDirectory>>, Arc<OpenError>> {
        match self.0.directory.get() {
            Some(directory) => Ok(Some(directory)),
            None => self.0.failure.read().clone().map_or(Ok(None), Err),
        }
    }

    /// Fails if there is a directory that could not be opened, or cannot be read.
    pub fn status(&self) -> Result<(), Arc<OpenError>> {
        match self.get()?.map(|directory| directory.status()) {
            Some(Err(error)) => Err(Arc::new(OpenError::Read(error))),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Sets the directory, once: it is that of all requests from now on.
    pub fn set(&self, directory: Arc<AccessDirectory>) {
        // The first one stays.
        let _ = self.0.directory.set(directory);
    }

    /// Sets, once, what opens the directory as long as there is none. It may block.
    pub fn set_opener(&self, opener: impl Fn(&Self) + Send + Sync + 'static) {
        // The first one stays.
        let _ = self.0.opener.set(Arc::new(opener));
    }

    /// Reads the changes of the directory, or opens it, for a credential that is unknown: at once, but at most 20 times a
    /// second. Returns false if nothing was read.
    pub(super) async fn read_again(&self, credential: &[u8]) -> bool {
        let reload = &self.0.reload;
        match (self.0.directory.get().cloned(), self.0.opener.get().cloned()) {
            (Some(directory), _) => reload.read(credential, move || directory.reload_if_changed()).await,
            (None, Some(opener)) => {
                let slot = self.clone();
                reload.read(credential, move || opener(&slot)).await
            }
            (None, None) => false,
        }
    }

    /// Records that a directory exists, but could not be opened. This ends the access of anonymous callers that lasts
    /// until the first token, even if the directory is removed.
    pub fn fail(&self, error: OpenError) {
        *self.0.failure.write() = Some(Arc::new(error));
    }
}

impl From<Arc<AccessDirectory>> for DirectorySlot {
    fn from(directory: Arc<AccessDirectory>) -> Self {
        Self(Arc::new(Slot { directory: OnceLock::from(directory), ..Slot::default() }))
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
            .field("directory", &directory.get())
            .field("metrics", metrics)
            .finish()
    }
}
