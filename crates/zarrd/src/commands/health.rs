//! `zarrd health`: is the server well?

use client::{HttpStore, Retries, Timeouts};
use store::{StoreError, WriteableStore};

use crate::{
    config::HealthConfig,
    exit::{self, Failure},
};

/// Asks once.
pub(super) async fn run(config: HealthConfig) -> Result<(), Failure> {
    let url = config.url.to_string();
    let timeouts = Timeouts { connect: config.timeout, idle: config.timeout, total: Some(config.timeout) };
    let server = HttpStore::builder(config.url).timeouts(timeouts).retries(Retries::none()).build();
    let server = server.map_err(|source| Failure::Client { url: url.clone(), source })?;
    match server.writable().await {
        // A full disk heals without a restart, and reading and erasing go on.
        Ok(()) | Err(StoreError::OutOfSpace) => Ok(()),
        Err(error) => Err(Failure::Unhealthy { url, reason: exit::chain(&error) }),
    }
}
