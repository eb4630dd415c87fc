//! Options of a store.

use std::time::Duration;

/// The options of a [`WebStore`](crate::WebStore).
#[derive(Clone, Debug)]
pub struct Options {
    /// The time for establishing a connection, including TLS. Five seconds by default.
    pub connect_timeout: Duration,
    /// The time in which the server has to send the next bytes. 20 seconds by default.
    pub read_timeout: Duration,
    /// The time in which a request has to be answered, including its retries and the wait for its turn. One minute by
    /// default. The time for reading a value after the answer has begun is not limited.
    pub deadline: Duration,
    /// The number of times that a request is repeated if the server is busy, fails or does not answer. Four by default.
    pub retries: usize,
    pub(crate) name: Option<String>,
}

impl Options {
    /// Sets the name of the store, which is its URL without options by default.
    ///
    /// The name is the key of the hash that versions are: servers that are given the same name have equal versions.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(20),
            deadline: Duration::from_secs(60),
            retries: 4,
            name: None,
        }
    }
}
