//! [`example.multiscale-arrays`](https://zarr.dev/zeps/draft/ZEP0010.html#multiscale-arrays-group): the arrays of a group that are one pyramid.
//!
//! ```json
//! {"name": "example.multiscale-arrays", "must_understand": false, "configuration": {"multiscale": {"datasets": ["path/to/array/1"]}}}
//! ```
//!
//! The paths begin at the group.

use super::{Code, Host, Meaning, links};
use crate::documents::{DocumentError, Place};

pub(super) struct MultiscaleArrays;

impl Code for MultiscaleArrays {
    fn name(&self) -> &'static str {
        "example.multiscale-arrays"
    }

    fn read(&self, configuration: &Place<'_>, host: &Host<'_>) -> Result<Option<Meaning>, DocumentError> {
        let Host::Group = host else { return Ok(None) };
        configuration.only(&["multiscale"])?;
        let multiscale = configuration.required("multiscale")?;
        multiscale.only(&["datasets"])?;
        links(self.name(), &multiscale.required("datasets")?).map(Meaning::Links).map(Some)
    }
}
