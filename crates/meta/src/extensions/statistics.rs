//! [`example.array-statistics`](https://zarr.dev/zeps/draft/ZEP0010.html#statistics-array): the range of an array's elements.
//!
//! ```json
//! {"name": "example.array-statistics", "must_understand": false, "configuration": {"min": 5, "max": 1023}}
//! ```
//!
//! Both are elements of the array's type, as JSON writes them.

use super::{ExtensionEffect, ExtensionHandler, NodeContext};
use crate::{
    data_type::DataType,
    documents::{DocumentError, JsonPath},
};

pub(super) struct ArrayStatistics;

impl ExtensionHandler for ArrayStatistics {
    fn name(&self) -> &'static str {
        "example.array-statistics"
    }

    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError> {
        let NodeContext::Array { data_type, .. } = context else { return Ok(None) };
        configuration.only(&["min", "max"])?;
        let (min, max) = (configuration.required("min")?, configuration.required("max")?);
        let (min, largest) = (element(&min, data_type)?, element(&max, data_type)?);
        match (data_type.to_f64(&min), data_type.to_f64(&largest)) {
            (Some(low), Some(high)) if low > high => Err(max.invalid("is less than the least element")),
            _ => Ok(Some(ExtensionEffect::Statistics { min, max: largest })),
        }
    }

    /// Written elements may be outside the range, and so may the fill value if the array grows.
    fn survives_write(&self) -> bool {
        false
    }
}

fn element(place: &JsonPath<'_>, data_type: &DataType) -> Result<Vec<u8>, DocumentError> {
    let mut element = Vec::new();
    data_type.parse_json(place.value, &mut element).map_err(|error| place.invalid(format!("is wrong: {error}")))?;
    Ok(element)
}
