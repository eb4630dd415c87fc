//! Options of a store.

use std::{env, fmt, time::Duration};

/// The options of a [`BucketStore`](crate::BucketStore).
#[derive(Clone)]
pub struct Options {
    /// The time for establishing a connection, including TLS. Five seconds by default.
    pub connect_timeout: Duration,
    /// The time in which the service has to send the next bytes. 20 seconds by default.
    pub read_timeout: Duration,
    /// The time in which a request has to be answered, including its retries and the wait for its turn. One minute by
    /// default. The time for reading a value after the answer has begun is not limited.
    pub deadline: Duration,
    /// The number of times that a request is repeated if the service is busy, fails or does not answer. Four by
    /// default.
    pub retries: usize,
    /// Whether the store changes the bucket. It does not by default.
    pub writes: WriteMode,
    /// The time in which the outcome of a write whose answer was lost has to become known. 30 seconds by default.
    pub settle: Duration,
    pub(crate) name: Option<String>,
    pub(crate) variables: Vec<(String, String)>,
}

/// Whether a store changes its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// It only reads.
    #[default]
    ReadOnly,
    /// It writes if the service checks conditions of writes exactly, which is probed.
    Conditional,
    /// It writes even if the service does not: then writes have no conditions, and the last one wins.
    LastWins,
}

impl Options {
    /// The options by default, with the variables of this process's environment.
    pub fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::with_variables(env::vars_os().filter_map(text))
    }

    /// The options by default, with these variables in place of those of the environment.
    pub fn with_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(20),
            deadline: Duration::from_secs(60),
            retries: 4,
            writes: WriteMode::ReadOnly,
            settle: Duration::from_secs(30),
            name: None,
            variables: variables.into_iter().collect(),
        }
    }

    /// Sets the name of the store, which is its URL without options by default.
    ///
    /// The name is the key of the hash that versions are, and the secret of cursors: servers of one bucket that are
    /// given the same name have equal versions, and continue the listings of each other.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables have the credentials.
        f.debug_struct("Options")
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("deadline", &self.deadline)
            .field("retries", &self.retries)
            .field("writes", &self.writes)
            .field("settle", &self.settle)
            .finish_non_exhaustive()
    }
}
