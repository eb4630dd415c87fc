//! [`example.skip_empty_chunks`](https://zarr.dev/zeps/draft/ZEP0010.html#skip-empty-chunks-array): chunks that are full of the fill value are not
//! stored.
//!
//! ```json
//! "example.skip_empty_chunks"
//! ```
//!
//! It has no configuration.

use super::{Code, Host, Meaning};
use crate::documents::{DocumentError, Place};

pub(super) struct SkipEmptyChunks;

impl Code for SkipEmptyChunks {
    fn name(&self) -> &'static str {
        "example.skip_empty_chunks"
    }

    fn read(&self, configuration: &Place<'_>, host: &Host<'_>) -> Result<Option<Meaning>, DocumentError> {
        let Host::Array { .. } = host else { return Ok(None) };
        configuration.only(&[])?;
        Ok(Some(Meaning::SkipEmptyChunks))
    }
}
