//! The JSON of `/healthz` and `/readyz`.

use serde::{Deserialize, Serialize};

use crate::problem::ProblemType;

/// The response of `/healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The server's version.
    pub version: String,
}

/// The response of `/readyz` if requests can be served.
///
/// A read-only server is ready, and reports that it is not writable. So is one whose store does not support changes, and
/// a store on a full disk, which reads and
/// erases and recovers by itself. A store that is read-only until it is reopened, or is being closed, is not ready: the
/// response is a problem document with status 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// True if a value would be accepted now.
    pub writable: bool,
    /// The reason if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemType>,
}
