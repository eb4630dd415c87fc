//! How a server is asked: by whom, how patiently, how often.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::{Certificate, Client, redirect};

use crate::{BaseUrl, Token, transport::Transport};

/// How long is waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection to be set up, its TLS included. Ten seconds.
    pub connect: Duration,
    /// For the server to take or give any byte: for the head of its answer once the request was sent, and for each
    /// piece of a value. How long the caller takes to make the content of a value, or to ask for the next piece of
    /// one, does not count. The erasing of a prefix, during which a server is silent, has ten times as long. One minute.
    pub idle: Duration,
    /// For a whole operation, with its repetitions and with the value that it yields. Without limit, since values may
    /// have any size.
    pub total: Option<Duration>,
}

/// How often a request that failed is made again, and after how long.
///
/// The delay doubles each time, and a random part is added so that clients do not come back all at once. Where the
/// server says in `Retry-After` for how long it wants to be left alone, that is waited for instead, unless it is longer than
/// `longest_wait`: then the request fails at once.
///
/// What is repeated is only what may be carried out twice: reading, listing, and unconditional setting (of a content that is in
/// memory) and erasing. What such a repetition tells is what the last try found: an erase whose first answer was lost may
/// say that there was nothing to erase.
///
/// [`NodeClient`](crate::NodeClient) and [`ArrayClient`](crate::ArrayClient) say which of their changes these are.
///
/// A conditional change is repeated only where the request is known not to have been carried out: where no connection
/// came about, or the server said that it is busy. If an answer was merely lost, the change may have been made; it would itself be the reason
/// why its precondition no longer holds, and the caller would be told that somebody else came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a request is made again, and how often a value that breaks off is taken up again. Four times.
    pub times: usize,
    /// The first delay. 100 milliseconds.
    pub first_delay: Duration,
    /// The longest delay, without its random part. Five seconds.
    pub longest_delay: Duration,
    /// The longest wait that is granted to a server that asks for one. 30 seconds.
    pub longest_wait: Duration,
}

/// What a client of a server is made with: an [`HttpStore`](crate::HttpStore), an [`ArrayClient`](crate::ArrayClient), a
/// [`NodeClient`](crate::NodeClient), or the [`Connection`] of which all can be made.
pub struct ClientBuilder<C> {
    base: BaseUrl,
    token: Option<Token>,
    certificates: Vec<Certificate>,
    timeouts: Timeouts,
    retries: Retries,
    made: PhantomData<fn() -> C>,
}

/// The connections to a server, which are kept and used again. An [`HttpStore`](crate::HttpStore), an
/// [`ArrayClient`](crate::ArrayClient) and a [`NodeClient`](crate::NodeClient) that are made of one share them.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) transport: Arc<Transport>,
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// What was given as certificates is not PEM.
    #[error("these are not certificates in PEM")]
    Certificates(#[source] reqwest::Error),
    /// There is no certificate in what was given.
    #[error("there is no certificate in this PEM")]
    NoCertificate,
    /// The HTTP client could not be made, for example since the system has no certificate authorities.
    #[error("the HTTP client could not be made")]
    Client(#[source] reqwest::Error),
}

impl<C: From<Connection>> ClientBuilder<C> {
    pub(crate) fn new(base: BaseUrl) -> Self {
        let (timeouts, retries) = (Timeouts::default(), Retries::default());
        Self { base, token: None, certificates: Vec::new(), timeouts, retries, made: PhantomData }
    }

    /// Sends this token with every request.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Trusts these certificate authorities (PEM, one or many) besides those of the system.
    pub fn certificates(mut self, pem: &[u8]) -> Result<Self, BuildError> {
        let certificates = Certificate::from_pem_bundle(pem).map_err(BuildError::Certificates)?;
        if certificates.is_empty() {
            return Err(BuildError::NoCertificate);
        }
        self.certificates.extend(certificates);
        Ok(self)
    }

    /// Waits for so long.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Makes failed requests again so often.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Makes the client. Nothing is asked of the server yet.
    pub fn build(self) -> Result<C, BuildError> {
        let client = Client::builder()
            .user_agent(concat!("zarrd-client/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.timeouts.connect)
            // Sooner than the server gives an idle connection up, so that no request goes out on one that is being closed.
            .pool_idle_timeout(Duration::from_secs(30))
            // The policy of retries above is the only one, and knows what may be repeated.
            .retry(reqwest::retry::never())
            // A token must reach no other host, and a redirection has a meaning of its own here.
            .redirect(redirect::Policy::none())
            .referer(false)
            // For the same reason: a plain HTTP proxy would be told the token.
            .no_proxy();
        let client = if self.base.is_https() {
            client.tls_certs_merge(self.certificates)
        } else {
            // No redirection is followed, so there is no TLS, and a machine without any authorities will do.
            client.tls_certs_only([])
        };
        let client = client.build().map_err(BuildError::Client)?;
        let transport = Transport::new(client, self.base, self.token, self.timeouts, self.retries);
        Ok(Connection { transport: Arc::new(transport) }.into())
    }
}

impl Connection {
    /// Begins connections to the server at `base`.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }
}

impl Retries {
    /// Makes no request twice.
    pub fn none() -> Self {
        Self { times: 0, ..Self::default() }
    }

    pub(crate) fn delays(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.first_delay)
            .with_max_delay(self.longest_delay)
            .with_max_times(self.times)
            .with_jitter()
            .build()
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(60), total: None }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            times: 4,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(5),
            longest_wait: Duration::from_secs(30),
        }
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
            made: PhantomData,
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
