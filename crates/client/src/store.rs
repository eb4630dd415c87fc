//! The store client.

use std::{fmt, sync::Arc};

use zarrd_store::Key;
use zarrd_wire::{query, routes};

use crate::{BaseUrl, BuildError, ClientBuilder, Connection, transport::Transport};

/// Client of the key-value store of a zarrd server.
///
/// Clones share one pool of connections. Errors are [`StoreError`](zarrd_store::StoreError)s; the source of their `Backend`
/// variant is a [`RemoteError`](crate::RemoteError).
///
/// - Values are streamed in both directions, and are never silently truncated: an interrupted read is resumed where it
///   stopped if the value has not changed; otherwise its stream fails.
/// - Redirects are not followed: a redirect from a key to the prefix of that name means that the key has no value.
/// - [`Retries`](crate::Retries) documents which requests are retried.
#[derive(Clone)]
pub struct HttpStore {
    pub(crate) transport: Arc<Transport>,
    /// The id of the snapshot that is read; `None` for the current state.
    pub(crate) snapshot: Option<Arc<str>>,
}

impl HttpStore {
    /// Creates a client of the server at `base`, with default options.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Returns a builder of a client with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// URL of the server.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// The path and query of a value.
    pub(crate) fn value_target(&self, key: &Key) -> String {
        let path = routes::key_path(key);
        match &self.snapshot {
            Some(snapshot) => format!("{path}?{}", query::render_key_read(snapshot)),
            None => path,
        }
    }

    /// The pool of connections of this client.
    pub fn connection(&self) -> Connection {
        Connection { transport: Arc::clone(&self.transport) }
    }
}

impl From<Connection> for HttpStore {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport, snapshot: None }
    }
}

impl fmt::Debug for HttpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStore").field("base", self.base()).finish_non_exhaustive()
    }
}
