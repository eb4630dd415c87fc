//! `zarrd health`: is the server well?

use client::{HttpStore, Retries, Timeouts};

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
    match server.ready().await {
        // Also where it takes no values: a full disk heals without a restart, and a read-only server is meant to be one.
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Unhealthy { url, reason: exit::chain(&error) }),
    }
}
