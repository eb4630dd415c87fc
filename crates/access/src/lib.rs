//! Access rights: who may read, write and administer which prefix.

mod denial;
mod grant;
mod grants;
mod principal;
mod right;

pub use denial::{Denial, ReadError};
pub use grant::{Grant, GrantError};
pub use grants::{Grants, MAX_GRANTS, TooManyGrants};
pub use principal::{Principal, PrincipalKind};
pub use right::{Right, UnknownRight};
