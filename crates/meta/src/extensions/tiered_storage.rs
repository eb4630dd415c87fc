//! [`example.tiered-storage`](https://zarr.dev/zeps/draft/ZEP0010.html#tiered-storage-group): the arrays of a group that are slow to read.
//!
//! ```json
//! {"name": "example.tiered-storage", "must_understand": false, "configuration": {"slow-arrays": ["path/to/array/1"]}}
//! ```
//!
//! The paths begin at the group.

use super::{Code, Host, Meaning, links};
use crate::documents::{DocumentError, Place};

pub(super) struct TieredStorage;

impl Code for TieredStorage {
    fn name(&self) -> &'static str {
        "example.tiered-storage"
    }

    fn read(&self, configuration: &Place<'_>, host: &Host<'_>) -> Result<Option<Meaning>, DocumentError> {
        let Host::Group = host else { return Ok(None) };
        configuration.only(&["slow-arrays"])?;
        links(self.name(), &configuration.required("slow-arrays")?).map(Meaning::Links).map(Some)
    }
}
