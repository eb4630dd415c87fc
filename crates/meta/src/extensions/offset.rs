//! [`example.offset`](https://zarr.dev/zeps/draft/ZEP0010.html#offset-array): an array that begins elsewhere than its chunks do.
//!
//! ```json
//! {"name": "example.offset", "configuration": {"offset": [12, 24]}}
//! ```
//!
//! The array is a view: index 0 is the element at the offset, and what is before it is not seen. An offset is at most the extent of
//! its dimension. A second offset is one of the view that the first makes.

use super::{ExtensionEffect, ExtensionHandler, NodeContext};
use crate::documents::{DocumentError, JsonPath};

pub(super) struct Offset;

impl ExtensionHandler for Offset {
    fn name(&self) -> &'static str {
        "example.offset"
    }

    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError> {
        let NodeContext::Array { shape, .. } = context else { return Ok(None) };
        configuration.only(&["offset"])?;
        let list = configuration.required("offset")?;
        match list.list()?.len() {
            found if found == shape.len() => {}
            found => return Err(list.invalid(format!("has {found} entries for {} dimensions", shape.len()))),
        }
        let offset = |(place, &extent): (JsonPath<'_>, &u64)| match place.unsigned()? {
            offset if offset <= extent => Ok(offset),
            _ => Err(place.invalid(format!("is beyond the {extent} elements of the dimension"))),
        };
        let offset = list.items()?.zip(shape).map(offset).collect::<Result<_, _>>()?;
        Ok(Some(ExtensionEffect::View { offset }))
    }
}
