//! `zarrd health`: checks the health of a running server.

use client::{HttpStore, Retries, Timeouts};

use crate::{config::HealthConfig, error::Error, open::OpenStoreError, ui::error_chain};

/// Sends one request.
pub(super) async fn run(config: HealthConfig) -> Result<(), Error> {
    let url = config.url.to_string();
    let timeouts = Timeouts { connect: config.timeout, idle: config.timeout, total: Some(config.timeout) };
    let server = HttpStore::builder(config.url).timeouts(timeouts).retries(Retries::none()).build();
    let server = server.map_err(|source| OpenStoreError::Client { url: url.clone(), source })?;
    match server.ready().await {
        // A server that accepts no values is healthy: a full disk does not need a restart, and `--read-only` is
        // intended.
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Unhealthy { url, reason: error_chain(&error) }),
    }
}
