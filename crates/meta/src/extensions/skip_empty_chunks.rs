//! [`example.skip_empty_chunks`](https://zarr.dev/zeps/draft/ZEP0010.html#skip-empty-chunks-array): chunks that are full of the fill value are not
//! stored.
//!
//! ```json
//! "example.skip_empty_chunks"
//! ```
//!
//! It has no configuration.

use super::{ExtensionEffect, ExtensionHandler, NodeContext};
use crate::documents::{DocumentError, JsonPath};

pub(super) struct SkipEmptyChunks;

impl ExtensionHandler for SkipEmptyChunks {
    fn name(&self) -> &'static str {
        "example.skip_empty_chunks"
    }

    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError> {
        let NodeContext::Array { .. } = context else { return Ok(None) };
        configuration.only(&[])?;
        Ok(Some(ExtensionEffect::SkipEmptyChunks))
    }
}
