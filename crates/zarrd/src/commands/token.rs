//! `zarrd token`: creates, lists and revokes tokens, and changes the keys that they are made with.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::SystemTime};

use serde::Serialize;
use zarrd_access::{
    AccessDirectory, ChangeError, CredentialId, CredentialState, Grants, KeyId, NewToken, TokenInfo, printable,
};
use zarrd_wire::time::rfc3339;

use super::s3_profile;
use crate::{
    config::{Expiry, OutputFormat, TokenCommand, TokenConfig},
    error::Error,
    ui::{self, Output},
};

/// A token that was just created, as JSON.
#[derive(Serialize)]
struct Created<'a> {
    id: String,
    token: &'a str,
    /// The secret key of S3 clients, whose access key is the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key: Option<&'a str>,
}

/// A token, as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    id: String,
    name: &'a str,
    allow: &'a Grants,
    created: String,
    expires: Option<String>,
    maker: Option<String>,
    key: u32,
    state: &'static str,
}

/// A key that was added, as JSON.
#[derive(Serialize)]
struct Rotated {
    key: u32,
}

/// Runs the command.
pub(super) fn run(config: TokenConfig) -> Result<(), Error> {
    let TokenConfig { directory, command, format } = config;
    if matches!(command, TokenCommand::List) {
        return list(&AccessDirectory::open_existing(directory)?, format);
    }
    check_owner(&directory)?;
    match command {
        TokenCommand::Create { name, grants, expires, s3 } => {
            create(&AccessDirectory::open(directory)?, (name, grants), expires, s3.as_deref(), format)
        }
        TokenCommand::List => list(&AccessDirectory::open_existing(directory)?, format),
        TokenCommand::Revoke { token } => revoke(&AccessDirectory::open_existing(directory)?, &token),
        TokenCommand::Rotate => rotate(&AccessDirectory::open_existing(directory)?, format),
        TokenCommand::Drop { key } => drop_key(&AccessDirectory::open_existing(directory)?, key),
    }
}

/// Fails if the directory belongs to another user, whose servers could not read what this one writes.
fn check_owner(directory: &Path) -> Result<(), Error> {
    let Ok(metadata) = fs::metadata(directory) else { return Ok(()) };
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == user { Ok(()) } else { Err(Error::OtherOwner { directory: directory.to_owned(), owner, user }) }
}

fn create(
    directory: &AccessDirectory,
    (name, grants): (String, Grants),
    expires: Option<Expiry>,
    s3: Option<&str>,
    format: OutputFormat,
) -> Result<(), Error> {
    let expires = expires.map(|expires| expires.resolve(directory.now()).ok_or(Error::ExpiryTooFar)).transpose()?;
    let (info, secret) = directory.create(NewToken { name, grants, expires, maker: None })?;
    let mut output = Output::default();
    match format {
        OutputFormat::Text => output.line(secret.expose())?,
        OutputFormat::Json => {
            let secret_key = s3.is_some().then(|| secret.secret_key());
            output.json(&Created { id: info.id.to_string(), token: secret.expose(), secret_key })?;
        }
    }
    if let (Some(url), OutputFormat::Text) = (s3, format) {
        output.line(s3_profile::render(url, info.id, &secret))?;
    }
    output.finish()?;
    let TokenInfo { id, name, .. } = &info;
    let until =
        info.expires.map_or_else(|| "until it is revoked".to_owned(), |time| format!("until {}", rfc3339(time)));
    let name = printable(name);
    ui::note(format_args!("token {id} ({name}) allows {} {until}; it is not shown again", shown(&info.grants)));
    Ok(())
}

fn list(directory: &AccessDirectory, format: OutputFormat) -> Result<(), Error> {
    let tokens = directory.list()?;
    let mut output = Output::default();
    for token in &tokens {
        match format {
            OutputFormat::Json => output.json(&Listed::new(token))?,
            OutputFormat::Text => {
                let TokenInfo { id, name, grants, .. } = token;
                let expires = token.expires.map_or_else(|| "never expires".to_owned(), expiry);
                let state = match token.state {
                    CredentialState::KeyDropped => format!(", key {} dropped", token.key),
                    _ => String::new(),
                };
                let name = printable(name);
                output.line(format_args!("{id}  {name}  {}  {expires}{state}", shown(grants)))?;
            }
        }
    }
    Ok(output.finish()?)
}

fn revoke(directory: &AccessDirectory, token: &str) -> Result<(), Error> {
    let id = match token.parse() {
        Ok(id) => id,
        Err(_) => id_of(directory, token)?,
    };
    match directory.revoke(id) {
        Err(ChangeError::NotFound { .. }) => directory.revoke_link(id)?,
        revoked => revoked?,
    }
    ui::note(format_args!("revoked {id}"));
    Ok(())
}

fn id_of(directory: &AccessDirectory, name: &str) -> Result<CredentialId, Error> {
    let tokens = directory.list()?;
    let named: Vec<CredentialId> = tokens.iter().filter(|token| &*token.name == name).map(|token| token.id).collect();
    match named.as_slice() {
        [] => Err(Error::NoSuchName { name: name.to_owned() }),
        [id] => Ok(*id),
        _ => Err(Error::AmbiguousName { name: name.to_owned(), count: named.len() }),
    }
}

fn rotate(directory: &AccessDirectory, format: OutputFormat) -> Result<(), Error> {
    let key = directory.rotate()?;
    let mut output = Output::default();
    match format {
        OutputFormat::Text => output.line(key)?,
        OutputFormat::Json => output.json(&Rotated { key: key.into() })?,
    }
    output.finish()?;
    ui::note(format_args!("key {key} makes new tokens"));
    for old in directory.keys()?.iter().filter(|key| !key.is_current) {
        let (id, tokens) = (old.id, old.tokens);
        ui::note(format_args!("key {id} has made {tokens} tokens; `zarrd token rotate --drop {id}` ends them"));
    }
    Ok(())
}

fn drop_key(directory: &AccessDirectory, key: KeyId) -> Result<(), Error> {
    directory.drop_key(key)?;
    ui::note(format_args!("dropped key {key}; its tokens and share links are void"));
    Ok(())
}

fn shown(grants: &Grants) -> String {
    let texts: Vec<String> = grants.iter().map(|grant| printable(&grant.to_string()).into_owned()).collect();
    texts.join(" ")
}

/// The expiry, judged by this machine's clock.
fn expiry(time: SystemTime) -> String {
    let verb = if time <= SystemTime::now() { "expired" } else { "expires" };
    format!("{verb} {}", rfc3339(time))
}

impl<'a> Listed<'a> {
    fn new(token: &'a TokenInfo) -> Self {
        Self {
            id: token.id.to_string(),
            name: &token.name,
            allow: &token.grants,
            created: rfc3339(token.created),
            expires: token.expires.map(rfc3339),
            maker: token.maker.map(|maker| maker.to_string()),
            key: token.key.into(),
            state: match token.state {
                CredentialState::Valid => "valid",
                CredentialState::Expired => "expired",
                CredentialState::KeyDropped => "key-dropped",
                CredentialState::MakerGone => "maker-gone",
            },
        }
    }
}
