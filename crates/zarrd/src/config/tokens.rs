//! The configuration of `token`.

use std::path::PathBuf;

use zarrd_access::{Grants, KeyId};

use super::{ConfigError, ConfigFile, Expiry, OutputFormat, TokenDirectory};
use crate::cli::{AccessArgs, TokenArgs};

/// Configuration of `token`.
#[derive(Debug)]
pub(crate) struct TokenConfig {
    /// The directory of the tokens.
    pub(crate) directory: PathBuf,
    /// The command.
    pub(crate) command: TokenCommand,
    /// Format of the output.
    pub(crate) format: OutputFormat,
}

/// A command of `token`.
#[derive(Debug)]
pub(crate) enum TokenCommand {
    /// Creates a token.
    Create {
        /// Its name.
        name: String,
        /// Its rights.
        grants: Grants,
        /// Its expiry, if any.
        expires: Option<Expiry>,
        /// The URL of the S3 endpoint whose clients are to use it, if any.
        s3: Option<String>,
    },
    /// Lists all tokens.
    List,
    /// Revokes a token, or a share link.
    Revoke {
        /// The id, or the name of a token.
        token: String,
    },
    /// Adds a key.
    Rotate,
    /// Drops a key.
    Drop {
        /// The key.
        key: KeyId,
    },
}

impl TokenConfig {
    /// Resolves the options.
    pub(crate) fn new(args: TokenArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let (AccessArgs { access, store, json }, command) = match args {
            TokenArgs::Create(args) => {
                let grants = Grants::new(args.allow)?;
                (args.access, TokenCommand::Create { name: args.name, grants, expires: args.expires, s3: args.s3 })
            }
            TokenArgs::List(args) => (args, TokenCommand::List),
            TokenArgs::Revoke(args) => (args.access, TokenCommand::Revoke { token: args.token }),
            TokenArgs::Rotate(args) => {
                (args.access, args.drop.map_or(TokenCommand::Rotate, |key| TokenCommand::Drop { key }))
            }
        };
        let directory = match TokenDirectory::new(access, store.clone(), file) {
            TokenDirectory::Given(directory) | TokenDirectory::InStore(directory) => directory,
            TokenDirectory::None => return Err(ConfigError::AccessRequired { store: file.location(store) }),
        };
        Ok(Self { directory, command, format: OutputFormat::new(json) })
    }
}
