//! [`bfloat16`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/bfloat16): the upper half of a `float32`.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, StoredOrder, TypeError, V2Context, binary_float::BinaryFloat, float::Float,
    text::unconfigured,
};

/// `bfloat16` (v3). NumPy, v2 and the draft do not have it.
pub(super) struct BFloat16Family;

impl DataTypeFamily for BFloat16Family {
    fn read_v2(&self, _dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        None
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        let bfloat16 = Float { format: BinaryFloat::BFloat16, name: "bfloat16", numpy: None };
        (name == bfloat16.name).then(|| unconfigured(name, configuration, bfloat16))
    }
}
