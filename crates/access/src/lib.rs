//! Access rights: who may read, write and administer which prefix.

mod clock;
mod credential;
mod denial;
mod directory;
mod error;
mod files;
mod grant;
mod grants;
mod id;
mod info;
mod key_ring;
mod principal;
mod record;
mod record_files;
mod right;
mod table;
mod watched;

pub use credential::Secret;
pub use denial::{Denial, ReadError};
pub use directory::{AccessDirectory, MAX_CREDENTIALS};
pub use error::{ChangeError, OpenError};
pub use grant::{Grant, GrantError};
pub use grants::{Grants, MAX_GRANTS, TooManyGrants};
pub use id::{CredentialId, IdError, KeyId};
pub use info::{CredentialState, DamagedFile, KeyInfo, LinkInfo, NewLink, NewToken, TokenInfo};
pub use principal::{Principal, PrincipalKind};
pub use record::{MAX_NAME_CHARS, MAX_RECORD_LEN, NameError};
pub use right::{Right, UnknownRight};
