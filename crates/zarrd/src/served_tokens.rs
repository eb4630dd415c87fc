//! The tokens of a server.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use access::{AccessDirectory, Grants, NewToken, OpenError, Right, Secret};
use server::AnonymousAccess;
use store::Prefix;
use store_local::Access;
use tokio::task::spawn_blocking;

use crate::{
    config::{ServeConfig, TokenDirectory},
    error::Error,
    ui,
};

/// The file of the first administrator's token, in the directory of tokens.
const FIRST_TOKEN: &str = "admin-token";

/// The tokens of a server.
#[derive(Default)]
pub(crate) struct ServedTokens {
    /// The directory, whose changes are read from now on; `None` if the server accepts no tokens.
    pub(crate) directory: Option<Arc<AccessDirectory>>,
    /// The token that was made because there was none.
    first: Option<FirstToken>,
}

/// The first administrator's token.
struct FirstToken {
    path: PathBuf,
    secret: Secret,
}

/// Opens the directory of tokens.
///
/// If there are changes that clients cannot make without a token, and there is no token, the first one is made. In the
/// directory of a read-only store nothing is created.
pub(crate) async fn open(config: &ServeConfig) -> Result<ServedTokens, Error> {
    let (tokens, access, anonymous) = (config.tokens.clone(), config.access, config.settings.access.anonymous.clone());
    let opened = spawn_blocking(move || open_blocking(&tokens, access, &anonymous)).await;
    opened.map_err(|error| Error::Runtime(error.into()))?
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

fn open_blocking(tokens: &TokenDirectory, access: Access, anonymous: &AnonymousAccess) -> Result<ServedTokens, Error> {
    let opened = match (tokens, access) {
        (TokenDirectory::None, _) => return Ok(ServedTokens::default()),
        (TokenDirectory::InStore(path), Access::ReadOnly) => match AccessDirectory::open_existing(path) {
            Err(OpenError::Missing { .. }) if *anonymous != AnonymousAccess::Granted(Grants::none()) => {
                return Ok(ServedTokens::default());
            }
            opened => opened?,
        },
        (TokenDirectory::Given(path), _) | (TokenDirectory::InStore(path), Access::ReadWrite) => {
            AccessDirectory::open(path)?
        }
    };
    let opened = Arc::new(opened);
    let is_missing = access == Access::ReadWrite && needs_token(anonymous) && opened.list()?.is_empty();
    let first = is_missing.then(|| create_first_token(&opened)).transpose()?;
    opened.watch().map_err(Error::Runtime)?;
    Ok(ServedTokens { directory: Some(opened), first })
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
