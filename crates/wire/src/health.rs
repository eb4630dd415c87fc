//! The JSON of `/healthz` and `/readyz`.

use serde::{Deserialize, Serialize};

use crate::problem::ProblemType;

/// The answer of `/healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The server's version.
    pub version: String,
}

/// The answer of `/readyz` where requests can be served.
///
/// A read-only server is ready, and says that it is not writable. A store without space is ready, since it reads and erases and heals by itself; it says that it is not writable. One
/// that is read-only until it is opened again, or is being closed, is not ready, and the answer is a problem document
/// with status 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// True if a value would be taken now.
    pub writable: bool,
    /// The reason if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemType>,
}
