//! The tokens of a server.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use zarrd_access::{AccessDirectory, Grants, NewToken, OpenError, Right, Secret};
use zarrd_executor::spawn_blocking;
use zarrd_server::{AnonymousAccess, DirectorySlot};
use zarrd_store::Prefix;
use zarrd_store_local::Access;

use crate::{
    config::{ServeConfig, TokenDirectory},
    error::Error,
    ui,
};

/// The time between two looks for a directory that does not exist yet. A new token must count within a second.
const WAIT_INTERVAL: Duration = Duration::from_millis(250);
/// The file of the first administrator's token, in the directory of tokens.
const FIRST_TOKEN: &str = "admin-token";

/// The consequence of a directory that does not exist.
#[derive(Clone, Copy)]
enum Creation {
    /// It is created.
    IfMissing,
    /// That is an error.
    Never,
}

/// The tokens of a server.
#[derive(Default)]
pub(crate) struct ServedTokens {
    /// The token that was made because there was none.
    first: Option<FirstToken>,
    /// Waits for the directory to be created.
    _waiting: Option<AbortOnDropHandle<()>>,
}

/// The first administrator's token.
struct FirstToken {
    path: PathBuf,
    secret: Secret,
}

/// Opens the directory of tokens for the server's access policy. Its changes are read from then on.
///
/// A server that is open until the first token is made creates no directory, and opens it once another program has done
/// so. If there are changes that clients cannot make without a token, and there is no token, the first one is made.
pub(crate) async fn open(config: &ServeConfig) -> Result<ServedTokens, Error> {
    let policy = &config.settings.access;
    let (path, is_given) = match &config.tokens {
        TokenDirectory::None => return Ok(ServedTokens::default()),
        TokenDirectory::Given(path) => (path.clone(), true),
        TokenDirectory::InStore(path) => (path.clone(), false),
    };
    let is_closed = policy.anonymous == AnonymousAccess::Granted(Grants::none());
    let makes_token = config.access == Access::ReadWrite && needs_token(&policy.anonymous);
    if !makes_token && !is_given && !is_closed && !path.try_exists().unwrap_or(true) {
        let opened = path.clone();
        policy.directory.set_opener(move |slot| {
            try_open(&opened, slot);
        });
        let waiting = AbortOnDropHandle::new(tokio::spawn(wait_for(path, policy.directory.clone())));
        return Ok(ServedTokens { first: None, _waiting: Some(waiting) });
    }
    let creation = if is_given || config.access == Access::ReadWrite { Creation::IfMissing } else { Creation::Never };
    let opened = spawn_blocking(move || {
        let directory = open_watched(&path, creation)?;
        let is_missing = makes_token && directory.list()?.is_empty();
        let first = is_missing.then(|| create_first_token(&directory)).transpose()?;
        Ok::<_, Error>((directory, first))
    });
    let (directory, first) = opened.await.map_err(|error| Error::Runtime(error.into()))??;
    policy.directory.set(directory);
    Ok(ServedTokens { first, _waiting: None })
}

impl ServedTokens {
    /// Prints the path of the first administrator's token if it was just made, and the token itself to a terminal only.
    pub(crate) fn print_first(&self) {
        let Some(FirstToken { path, secret }) = &self.first else { return };
        ui::print(format_args!("the token of the first administrator is in {}", path.display()));
        if io::stdout().is_terminal() {
            ui::print(secret.expose());
        }
    }
}

/// Opens the directory once it exists. As long as it exists and cannot be opened, the slot says so.
async fn wait_for(path: PathBuf, slot: DirectorySlot) {
    let mut ticks = interval(WAIT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (path, slot) = (path.clone(), slot.clone());
        // An error of the task would mean that its thread panicked; the next round tries again.
        if let Ok(true) = spawn_blocking(move || try_open(&path, &slot)).await {
            return;
        }
    }
}

/// Opens the directory if it exists. Returns true if it is open.
fn try_open(path: &Path, slot: &DirectorySlot) -> bool {
    if slot.get().is_ok_and(|directory| directory.is_some()) {
        return true;
    }
    match open_watched(path, Creation::Never) {
        Ok(directory) => {
            slot.set(directory);
            return true;
        }
        Err(OpenError::Missing { .. }) => {}
        Err(error) => {
            if slot.status().is_ok() {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the access directory cannot be opened; all tokens are denied");
            }
            slot.fail(error);
        }
    }
    false
}

/// Opens the directory and watches it.
fn open_watched(path: &Path, creation: Creation) -> Result<Arc<AccessDirectory>, OpenError> {
    let directory = Arc::new(match creation {
        Creation::IfMissing => AccessDirectory::open(path)?,
        Creation::Never => AccessDirectory::open_existing(path)?,
    });
    directory.watch()?;
    Ok(directory)
}

/// True if there are changes that clients cannot make without a token.
fn needs_token(anonymous: &AnonymousAccess) -> bool {
    match anonymous {
        AnonymousAccess::UntilFirstToken => false,
        AnonymousAccess::Granted(grants) => !grants.allow(Right::Write, &Prefix::root()),
    }
}

fn create_first_token(directory: &AccessDirectory) -> Result<FirstToken, Error> {
    let grants = Grants::everything(Right::Admin);
    let new = NewToken { name: "first administrator".to_owned(), grants, expires: None, maker: None };
    let (_, secret) = directory.create(new)?;
    let path = directory.path().join(FIRST_TOKEN);
    write_token(&path, &secret).map_err(|source| Error::FirstToken { path: path.clone(), source })?;
    Ok(FirstToken { path, secret })
}

/// Writes a token into a file that only its owner can read.
fn write_token(path: &Path, secret: &Secret) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", secret.expose())?;
    file.sync_all()
}
