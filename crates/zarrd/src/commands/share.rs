//! `zarrd share`: creates share links.

use std::time::SystemTime;

use serde::Serialize;
use zarrd_client::{Share, ShareClient};

use crate::{
    config::{OutputFormat, ShareConfig},
    error::Error,
    ui::{self, Output},
};

/// A share link that was just created, as JSON.
#[derive(Serialize)]
struct Created<'a> {
    id: &'a str,
    url: &'a str,
    expires: &'a str,
}

/// Runs the command.
pub(super) async fn run(config: ShareConfig) -> Result<(), Error> {
    let ShareConfig { server, token, prefix, expires, name, format } = config;
    let expires = expires.resolve(SystemTime::now()).ok_or(Error::ExpiryTooFar)?;
    let mut builder = ShareClient::builder(server);
    if let Some(token) = token {
        builder = builder.token(token);
    }
    let client = builder.build().map_err(Error::Client)?;
    let (Share { id, expires, .. }, url) = client.create(&name, &prefix, expires).await?;
    let mut output = Output::default();
    match format {
        OutputFormat::Text => output.line(&url)?,
        OutputFormat::Json => output.json(&Created { id: &id, url: &url, expires: &expires })?,
    }
    output.finish()?;
    ui::note(format_args!("the link {id} reads {prefix} until {expires}"));
    Ok(())
}
