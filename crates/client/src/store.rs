//! The store as the caller holds it.

use std::{fmt, sync::Arc};

use crate::{BaseUrl, BuildError, ClientBuilder, Connection, transport::Transport};

/// The store of a zarrd server.
///
/// A clone is the same store: it shares the connections, which are kept and used again. Whatever fails is a
/// [`StoreError`](store::StoreError); the source of its `Backend` variant is a [`RemoteError`](crate::RemoteError).
///
/// - Values are streamed both ways, and a value is never silently shorter than it is. A value that breaks off while it is
///   read is read on from there, as long as it is still the same; else its stream fails.
/// - Redirections are not followed: one from a key to the prefix of that name means that the key has no value.
/// - Which requests are made again, and when, is told at [`Retries`](crate::Retries).
#[derive(Clone)]
pub struct HttpStore {
    pub(crate) transport: Arc<Transport>,
}

impl HttpStore {
    /// The store of the server at `base`, with the options as they are without being asked for.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Begins a store with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// Where the server is.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// The connections that it uses.
    pub fn connection(&self) -> Connection {
        Connection { transport: Arc::clone(&self.transport) }
    }
}

impl From<Connection> for HttpStore {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport }
    }
}

impl fmt::Debug for HttpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStore").field("base", self.base()).finish_non_exhaustive()
    }
}
