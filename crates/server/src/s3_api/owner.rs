//! The owner of all buckets and objects.

use s3s::dto::Owner;

/// The id and the name of the owner.
pub(super) const OWNER: &str = "zarrd";

/// The owner.
pub(super) fn owner() -> Owner {
    Owner { display_name: Some(OWNER.to_owned()), id: Some(OWNER.to_owned()) }
}
