//! The configuration of `append`.

use std::path::PathBuf;

use zarrd_client::{AppendOptions, BaseUrl, Dialect, NodePath, Token};

use super::{ConfigError, OutputFormat, logins};
use crate::cli::AppendArgs;

/// Configuration of `append`.
#[derive(Debug)]
pub(crate) struct AppendConfig {
    /// URL of the server.
    pub(crate) server: BaseUrl,
    /// Token for the server, if there is one.
    pub(crate) token: Option<Token>,
    /// Path of the group.
    pub(crate) group: NodePath,
    /// The file.
    pub(crate) file: PathBuf,
    /// The dimension that grows.
    pub(crate) dimension: String,
    /// Conversions of the elements.
    pub(crate) options: AppendOptions,
    /// Dialect of the group, if its path has nodes of several.
    pub(crate) dialect: Option<Dialect>,
    /// Format of the output.
    pub(crate) format: OutputFormat,
}

impl AppendConfig {
    /// Resolves the options.
    pub(crate) fn new(args: AppendArgs) -> Result<Self, ConfigError> {
        let AppendArgs { server, group, file, dim, casting, decode, dialect, json } = args;
        let token = logins::token(&server)?;
        let options = AppendOptions { casting, decode: decode.map(Into::into) };
        let format = OutputFormat::new(json);
        Ok(Self { server, token, group, file, dimension: dim, options, dialect, format })
    }
}
