//! Tokens of servers: that of the environment, and those that `zarrd login` stored.

use std::{
    collections::BTreeMap,
    env, fs,
    fs::DirBuilder,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use zarrd_client::{BaseUrl, Token, TokenError};

/// The variable with a token.
pub(crate) const TOKEN_VARIABLE: &str = "ZARRD_TOKEN";

/// The maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The file with one token per origin, `zarrd/tokens.json` in the user's configuration directory.
#[derive(Debug)]
pub(crate) struct Logins {
    path: PathBuf,
}

/// Errors of the tokens of servers. Messages have no part of a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The user has no configuration directory.
    #[error("neither XDG_CONFIG_HOME nor HOME is an absolute path, so there is no place for tokens")]
    NoDirectory,
    /// Other users can read the file.
    #[error("{} is accessible to others than its owner (mode {mode:o}); run `chmod 600` on it", path.display())]
    Insecure {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is damaged.
    #[error("{} is damaged; remove it and log in again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The operating system failed an operation on the file.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed action, which continues "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The token of the environment is not valid.
    #[error("the token in {TOKEN_VARIABLE} is invalid")]
    Variable(#[source] TokenError),
    /// A token is not valid.
    #[error("the token is invalid")]
    Token(#[source] TokenError),
    /// The input has no token.
    #[error("cannot read the token")]
    Input(#[source] io::Error),
    /// There is no token of the server.
    #[error("there is no token of {origin} in {}", path.display())]
    NotLoggedIn {
        /// The origin of the server.
        origin: String,
        /// The file.
        path: PathBuf,
    },
}

impl Logins {
    /// The file of the user.
    pub(crate) fn locate() -> Result<Self, LoginError> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
        let directory = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
        Ok(Self { path: directory.ok_or(LoginError::NoDirectory)?.join("zarrd").join("tokens.json") })
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stores the token of a server.
    pub(crate) fn add(&self, server: &BaseUrl, token: &str) -> Result<(), LoginError> {
        Token::parse(token).map_err(LoginError::Token)?;
        let mut tokens = self.read()?;
        tokens.insert(server.origin(), token.to_owned());
        self.write(&tokens)
    }

    /// Removes the token of a server.
    pub(crate) fn remove(&self, server: &BaseUrl) -> Result<(), LoginError> {
        let mut tokens = self.read()?;
        let origin = server.origin();
        match tokens.remove(&origin) {
            Some(_) => self.write(&tokens),
            None => Err(LoginError::NotLoggedIn { origin, path: self.path.clone() }),
        }
    }

    fn token(&self, server: &BaseUrl) -> Result<Option<Token>, LoginError> {
        let Some(token) = self.read()?.remove(&server.origin()) else { return Ok(None) };
        Token::parse(&token).map(Some).map_err(|_| LoginError::Damaged { path: self.path.clone() })
    }

    fn read(&self) -> Result<BTreeMap<String, String>, LoginError> {
        let file = match fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.io("open")(error)),
        };
        let mode = file.metadata().map_err(self.io("inspect"))?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(LoginError::Insecure { path: self.path.clone(), mode });
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(self.io("read"))?;
        serde_json::from_slice(&content).map_err(|_| LoginError::Damaged { path: self.path.clone() })
    }

    /// Replaces the file atomically. Only its owner can read it.
    fn write(&self, tokens: &BTreeMap<String, String>) -> Result<(), LoginError> {
        let write = || {
            let directory = self.path.parent().unwrap_or(Path::new("/"));
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer_pretty(&mut file, tokens)?;
            writeln!(file)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().map_err(self.io("write"))
    }

    fn io(&self, action: &'static str) -> impl FnOnce(io::Error) -> LoginError {
        let path = self.path.clone();
        move |source| LoginError::Io { action, path, source }
    }
}

/// The token for a server: that of [`TOKEN_VARIABLE`], or else the one that is stored for its origin.
pub(crate) fn token(server: &BaseUrl) -> Result<Option<Token>, LoginError> {
    match env::var(TOKEN_VARIABLE) {
        Ok(token) if !token.is_empty() => Token::parse(&token).map(Some).map_err(LoginError::Variable),
        Err(env::VarError::NotUnicode(_)) => Err(LoginError::Variable(TokenError::Character)),
        Ok(_) | Err(env::VarError::NotPresent) => stored_token(server),
    }
}

/// The token that is stored for the origin of a server.
pub(crate) fn stored_token(server: &BaseUrl) -> Result<Option<Token>, LoginError> {
    match Logins::locate() {
        Ok(logins) => logins.token(server),
        Err(LoginError::NoDirectory) => Ok(None),
        Err(error) => Err(error),
    }
}
