//! [`example.tiered-storage`](https://zarr.dev/zeps/draft/ZEP0010.html#tiered-storage-group): the arrays of a group that are slow to read.
//!
//! ```json
//! {"name": "example.tiered-storage", "must_understand": false, "configuration": {"slow-arrays": ["path/to/array/1"]}}
//! ```
//!
//! The paths begin at the group.

use super::{ExtensionEffect, ExtensionHandler, NodeContext, links};
use crate::documents::{DocumentError, JsonPath};

pub(super) struct TieredStorage;

impl ExtensionHandler for TieredStorage {
    fn name(&self) -> &'static str {
        "example.tiered-storage"
    }

    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError> {
        let NodeContext::Group = context else { return Ok(None) };
        configuration.only(&["slow-arrays"])?;
        links(self.name(), &configuration.required("slow-arrays")?).map(ExtensionEffect::Links).map(Some)
    }
}
