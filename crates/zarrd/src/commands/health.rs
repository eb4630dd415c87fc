//! `zarrd health`: checks the health of a running server.

use zarrd_client::{HttpStore, Retries, Timeouts};

use crate::{
    config::{ConfigError, HealthConfig},
    error::Error,
    open::OpenStoreError,
    ui::error_chain,
};

/// Sends one request.
pub(super) async fn run(config: HealthConfig) -> Result<(), Error> {
    let url = config.url.to_string();
    let timeouts = Timeouts { connect: config.timeout, idle: config.timeout, total: Some(config.timeout) };
    let mut server = HttpStore::builder(config.url).timeouts(timeouts).retries(Retries::none());
    let fails = |source| OpenStoreError::Client { url: url.clone(), source };
    if let Some(file) = config.certificate {
        let pem = tokio::fs::read(&file).await.map_err(|source| ConfigError::ReadNamed { file, source })?;
        server = server.certificates(&pem).map_err(fails)?;
    }
    let server = server.build().map_err(fails)?;
    match server.ready().await {
        // A server that accepts no values is healthy: a full disk does not need a restart, and `--read-only` is
        // intended.
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Unhealthy { url, reason: error_chain(&error) }),
    }
}
