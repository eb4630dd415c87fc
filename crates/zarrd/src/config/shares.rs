//! The configuration of `share`.

use zarrd_client::{BaseUrl, Token};
use zarrd_store::Prefix;

use super::{ConfigError, Expiry, OutputFormat, logins};
use crate::cli::ShareArgs;

/// Configuration of `share`.
#[derive(Debug)]
pub(crate) struct ShareConfig {
    /// URL of the server.
    pub(crate) server: BaseUrl,
    /// Token for the server, if there is one.
    pub(crate) token: Option<Token>,
    /// The prefix that the link reads.
    pub(crate) prefix: Prefix,
    /// Its expiry.
    pub(crate) expires: Expiry,
    /// Its name; may be empty.
    pub(crate) name: String,
    /// Format of the output.
    pub(crate) format: OutputFormat,
}

impl ShareConfig {
    /// Resolves the options.
    pub(crate) fn new(args: ShareArgs) -> Result<Self, ConfigError> {
        let ShareArgs { server, prefix, expires, name, json } = args;
        let token = logins::token(&server)?;
        Ok(Self { server, token, prefix: prefix.0, expires, name, format: OutputFormat::new(json) })
    }
}
