//! [`example.multiscale-arrays`](https://zarr.dev/zeps/draft/ZEP0010.html#multiscale-arrays-group): the arrays of a group that are one pyramid.
//!
//! ```json
//! {"name": "example.multiscale-arrays", "must_understand": false, "configuration": {"multiscale": {"datasets": ["path/to/array/1"]}}}
//! ```
//!
//! The paths begin at the group.

use super::{ExtensionEffect, ExtensionHandler, NodeContext, links};
use crate::documents::{DocumentError, JsonPath};

pub(super) struct MultiscaleArrays;

impl ExtensionHandler for MultiscaleArrays {
    fn name(&self) -> &'static str {
        "example.multiscale-arrays"
    }

    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError> {
        let NodeContext::Group = context else { return Ok(None) };
        configuration.only(&["multiscale"])?;
        let multiscale = configuration.required("multiscale")?;
        multiscale.only(&["datasets"])?;
        links(self.name(), &multiscale.required("datasets")?).map(ExtensionEffect::Links).map(Some)
    }
}
