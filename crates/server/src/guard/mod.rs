//! Who may ask, and for what: judged before anything else is looked at.

mod access;
mod cors;
mod framing;
mod host;
mod shown;

pub(crate) use access::{allow, change};
pub(crate) use cors::{mark, preflight};
pub(crate) use framing::{framing, is_chunked};
pub(crate) use host::host;
