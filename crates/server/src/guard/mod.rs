//! Guards: checks before a request is dispatched.

mod access;
mod cors;
mod current;
mod framing;
mod host;
mod proxy;
mod truncated;

pub(crate) use access::{allowed_methods, check_changes, check_mutation, check_origin};
pub(crate) use cors::{add_common_headers, preflight, s3_preflight};
pub(crate) use current::asks_for_current;
pub(crate) use framing::{check_framing, is_chunked};
pub(crate) use host::check_host;
pub(crate) use proxy::check_proxy_headers;
