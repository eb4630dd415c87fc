//! The command line of `token`.

use clap::{Args, Subcommand};
use zarrd_access::{Grant, KeyId};

use crate::{
    config::{AccessOptions, Expiry, StoreOptions},
    ui::error_chain,
};

const TOKEN_CREATE_EXAMPLES: &str = "\
Examples:
  zarrd token create --name Ada --allow read:lab/ --allow write:lab/exp1/ --expires 90d
  zarrd token create --name backup --allow read:/ --json
  zarrd token create --name rclone --allow write:lab/ --s3 https://s3.example.org

A right applies to everything below its prefix: read:lab/ to lab/x and lab/exp1/y, but not to the key lab. write includes \
read, and admin, which creates tokens for its prefix, includes both. The token is printed on stdout.";

const TOKEN_LIST_EXAMPLES: &str = "\
Examples:
  zarrd token list
  zarrd token list --json | jq 'select(.state == \"expired\")'

Expired tokens and those of dropped keys are listed until they are revoked. With --json the output is one JSON object per \
line.";

const TOKEN_REVOKE_EXAMPLES: &str = "\
Examples:
  zarrd token revoke Ada
  zarrd token revoke 3f0c9a52d1e84b7796a1c2d3e4f50617

The share links that were made with a token end with it; the tokens that were made with it do not.";

const TOKEN_ROTATE_EXAMPLES: &str = "\
Examples:
  zarrd token rotate
      add a key, which makes new tokens and share links; the others stay valid
  zarrd token rotate --drop 1
      end the tokens and share links that were made with key 1

The number of a key is the part of a token after zarrd_.";

/// A command of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenArgs {
    /// Create a token and print it
    #[command(after_help = TOKEN_CREATE_EXAMPLES)]
    Create(TokenCreateArgs),
    /// List all tokens
    #[command(after_help = TOKEN_LIST_EXAMPLES)]
    List(AccessArgs),
    /// Revoke a token
    #[command(after_help = TOKEN_REVOKE_EXAMPLES)]
    Revoke(TokenRevokeArgs),
    /// Add the key for new tokens, or drop an old one
    #[command(after_help = TOKEN_ROTATE_EXAMPLES)]
    Rotate(TokenRotateArgs),
}

/// The directory of tokens, and the format of the output.
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    /// The directory.
    #[command(flatten)]
    pub(crate) access: AccessOptions,
    /// The store, in whose directory it is by default.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `token create`.
#[derive(Debug, Args)]
pub(crate) struct TokenCreateArgs {
    /// Name of the token, such as that of its owner
    #[arg(long)]
    pub(crate) name: String,
    /// Right and prefix, such as read:lab/, write:lab/exp1/ or admin:/; may be repeated
    #[arg(long, value_name = "RIGHT:PREFIX", required = true, value_parser = grant)]
    pub(crate) allow: Vec<Grant>,
    /// Time after which, or at which, the token expires, such as 90d, 2027-01-01 or 2027-01-01T12:00:00Z [default:
    /// never]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<Expiry>,
    /// Print, in addition, what S3 clients need: the key pair, a profile of ~/.aws and the environment of several clients.
    /// The URL is that of --s3-listen
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:8002")]
    #[arg(value_parser = s3_url)]
    pub(crate) s3: Option<String>,
    /// The directory.
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// The arguments of `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// Id or name of the token, or id of a share link
    #[arg(value_name = "ID|NAME")]
    pub(crate) token: String,
    /// The directory.
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// The arguments of `token rotate`.
#[derive(Debug, Args)]
pub(crate) struct TokenRotateArgs {
    /// Drop this key instead of adding one, which ends its tokens
    #[arg(long, value_name = "KEY")]
    pub(crate) drop: Option<KeyId>,
    /// The directory.
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Parses the URL of an S3 endpoint, without a slash at its end.
fn s3_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = host.map(|host| host.trim_end_matches('/')).filter(|host| !host.is_empty());
    match host {
        Some(host) if host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte)) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("it has the form http://HOST:PORT or https://HOST".to_owned()),
    }
}

/// Parses a grant. The error has its reason.
fn grant(text: &str) -> Result<Grant, String> {
    text.parse().map_err(|error: zarrd_access::GrantError| error_chain(&error))
}
