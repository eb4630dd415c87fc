//! The parts that stores over services of HTTP share, whatever the service is.
//!
//! # Lifecycle of a read
//!
//! ```text
//!   Requests::make ── transient failure ──► wait, once more; after the last attempt the failure
//!        │
//!        ▼
//!   Pins: a version of the validator, which is cached for conditional requests
//!        │
//!        ▼
//!   resumed ── the body breaks or ends early ──► Resume::resume: the rest of the same value
//! ```
//!
//! - **Failure**: why one request failed, a type of the store that implements [`Failed`].
//! - **Attempts** ([`Attempts`]): the delays between the requests of one operation, and its end. A `Retry-After` is
//!   honoured; the delays have a random part, which spreads the clients of a service that was down.
//! - **Pin**: what a later request sends so that it gets one value only, such as the entity tag for `If-Match`.
//! - **Resumption**: all bytes of one stream are of one value, never fewer and never more than announced.

mod attempts;
mod body;
mod pins;

pub use self::{
    attempts::{Attempts, Failed, Requests},
    body::{Body, Resume, resumed},
    pins::{Pins, is_strong, seconds},
};
