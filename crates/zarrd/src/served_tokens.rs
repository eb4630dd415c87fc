//! The tokens of a server.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
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

/// Opens the directory of tokens, whose changes are read from then on; `None` if the server accepts no tokens.
///
/// If there are changes that clients cannot make without a token, and there is no token, the first one is made. Its path
/// is printed, and the token itself to a terminal only. In the directory of a read-only store nothing is created.
pub(crate) async fn open(config: &ServeConfig) -> Result<Option<Arc<AccessDirectory>>, Error> {
    let (tokens, access, anonymous) = (config.tokens.clone(), config.access, config.settings.access.anonymous.clone());
    let opened = spawn_blocking(move || open_blocking(&tokens, access, &anonymous)).await;
    opened.map_err(|error| Error::Runtime(error.into()))?
}

fn open_blocking(
    tokens: &TokenDirectory,
    access: Access,
    anonymous: &AnonymousAccess,
) -> Result<Option<Arc<AccessDirectory>>, Error> {
    let opened = match (tokens, access) {
        (TokenDirectory::None, _) => return Ok(None),
        (TokenDirectory::InStore(path), Access::ReadOnly) => match AccessDirectory::open_existing(path) {
            Err(OpenError::Missing { .. }) if *anonymous != AnonymousAccess::Granted(Grants::none()) => {
                return Ok(None);
            }
            opened => opened?,
        },
        (TokenDirectory::Given(path), _) | (TokenDirectory::InStore(path), Access::ReadWrite) => {
            AccessDirectory::open(path)?
        }
    };
    let opened = Arc::new(opened);
    if access == Access::ReadWrite && needs_token(anonymous) && opened.list()?.is_empty() {
        create_first_token(&opened)?;
    }
    opened.watch().map_err(Error::Runtime)?;
    Ok(Some(opened))
}

/// True if there are changes that clients cannot make without a token.
fn needs_token(anonymous: &AnonymousAccess) -> bool {
    match anonymous {
        AnonymousAccess::UntilFirstToken => false,
        AnonymousAccess::Granted(grants) => !grants.allow(Right::Write, &Prefix::root()),
    }
}

fn create_first_token(directory: &AccessDirectory) -> Result<(), Error> {
    let grants = Grants::everything(Right::Admin);
    let new = NewToken { name: "first administrator".to_owned(), grants, expires: None, maker: None };
    let (_, secret) = directory.create(new)?;
    let path = directory.path().join(FIRST_TOKEN);
    write_token(&path, &secret).map_err(|source| Error::FirstToken { path: path.clone(), source })?;
    ui::print(format_args!("the token of the first administrator is in {}", path.display()));
    if io::stdout().is_terminal() {
        ui::print(secret.expose());
    }
    Ok(())
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
