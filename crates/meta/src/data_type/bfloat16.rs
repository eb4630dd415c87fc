//! [`bfloat16`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/bfloat16): the upper half of a
//! `float32`.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, StoredOrder, TypeError, V2Context, binary_float::BinaryFloat, float::Float,
    text::unconfigured,
};

/// `bfloat16` (v3), and `bfloat16` in v2, where tensorstore writes it little-endian. NumPy and the draft do not have
/// it.
pub(super) struct BFloat16Family;

const BFLOAT16: Float = Float { format: BinaryFloat::BFloat16, name: "bfloat16", numpy: None };

impl DataTypeFamily for BFloat16Family {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        (dtype == BFLOAT16.name).then(|| Ok((DataType::new(BFLOAT16), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        (name == BFLOAT16.name).then(|| unconfigured(name, configuration, BFLOAT16))
    }

    fn read_draft(&self, _name: &str) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        None
    }
}
