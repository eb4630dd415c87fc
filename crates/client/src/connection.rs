//! Connections to a server, and their builder.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use reqwest::{Certificate, Client, redirect};

use crate::{
    BaseUrl, Token,
    options::{Retries, Timeouts},
    transport::Transport,
};

/// Time after which an idle connection is closed: less than the server's own limit, so that no request is sent on a
/// connection that the server is closing.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Builder of a client: an [`HttpStore`](crate::HttpStore), an [`ArrayClient`](crate::ArrayClient), a
/// [`NodeClient`](crate::NodeClient), or a [`Connection`] that all of them can share.
pub struct ClientBuilder<C> {
    base: BaseUrl,
    token: Option<Token>,
    certificates: Vec<Certificate>,
    timeouts: Timeouts,
    retries: Retries,
    client: PhantomData<fn() -> C>,
}

/// A pool of connections to a server. An [`HttpStore`](crate::HttpStore), an [`ArrayClient`](crate::ArrayClient) and a
/// [`NodeClient`](crate::NodeClient) that are created from the same one share it.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) transport: Arc<Transport>,
}

/// Errors of building a client.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The certificates are not valid PEM.
    #[error("the certificates are not valid PEM")]
    Certificates(#[source] reqwest::Error),
    /// The PEM contains no certificate.
    #[error("the PEM contains no certificate")]
    NoCertificate,
    /// The HTTP client could not be initialized, for example because the system has no certificate authorities.
    #[error("cannot initialize the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl<C: From<Connection>> ClientBuilder<C> {
    pub(crate) fn new(base: BaseUrl) -> Self {
        let (timeouts, retries) = (Timeouts::default(), Retries::default());
        Self { base, token: None, certificates: Vec::new(), timeouts, retries, client: PhantomData }
    }

    /// Sends this token with every request.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Trusts these certificate authorities (PEM, one or more) in addition to those of the system.
    pub fn certificates(mut self, pem: &[u8]) -> Result<Self, BuildError> {
        let certificates = Certificate::from_pem_bundle(pem).map_err(BuildError::Certificates)?;
        if certificates.is_empty() {
            return Err(BuildError::NoCertificate);
        }
        self.certificates.extend(certificates);
        Ok(self)
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the number and delays of retries.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Builds the client, without sending a request.
    pub fn build(self) -> Result<C, BuildError> {
        let client = Client::builder()
            .user_agent(concat!("zarrd-client/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.timeouts.connect)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            // Retries are made by this crate, which knows what is idempotent.
            .retry(reqwest::retry::never())
            // A token must not reach another host, and redirects of a key have a meaning that the store interprets.
            .redirect(redirect::Policy::none())
            .referer(false)
            // A plain HTTP proxy would see the token.
            .no_proxy();
        let client = if self.base.is_https() {
            client.tls_certs_merge(self.certificates)
        } else {
            // Redirects are not followed, so TLS is never used, and the system needs no certificate authorities.
            client.tls_certs_only([])
        };
        let client = client.build().map_err(BuildError::Client)?;
        let transport = Transport::new(client, self.base, self.token, self.timeouts, self.retries);
        Ok(Connection { transport: Arc::new(transport) }.into())
    }
}

impl Connection {
    /// Returns a builder of connections to the server at `base`.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }
}

impl<C> Clone for ClientBuilder<C> {
    fn clone(&self) -> Self {
        Self {
            base: self.base.clone(),
            token: self.token.clone(),
            certificates: self.certificates.clone(),
            timeouts: self.timeouts,
            retries: self.retries,
            client: PhantomData,
        }
    }
}

impl<C> fmt::Debug for ClientBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("base", &self.base)
            .field("token", &self.token)
            .field("certificates", &self.certificates.len())
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
