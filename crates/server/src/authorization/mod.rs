//! Authentication and authorization: the caller of a request, and the caller's rights.
//!
//! A request has at most one credential: a token in `Authorization`, or a share link at the beginning of its path. It is
//! authorized by what the request names, before the store is touched. A credential that is not accepted is an error even
//! where anonymous callers have the right.

mod authorizer;
mod credential;
mod policy;
mod session;
mod share_link;
mod shared_reload;

pub(crate) use authorizer::{authenticate, authorize, identify_signer};
pub(crate) use policy::AnonymousPrincipals;
pub use policy::{AccessPolicy, AnonymousAccess, DirectorySlot, MetricsAccess};
pub(crate) use session::Session;
pub(crate) use share_link::{ShareLink, strip_share_link};
