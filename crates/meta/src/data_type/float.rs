//! `float16`, `float32` and `float64`.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, Number, StoredOrder, TypeError, UnsupportedInFormat,
    V2Context, ValueError,
    binary_float::BinaryFloat,
    text::{NumpyText, invalid_value, is_null_fill, order_sign, unconfigured, words},
};
use crate::Dialect;

const FLOATS: [Float; 3] = [
    Float { format: BinaryFloat::Float16, name: "float16", numpy: Some((Number::Float16, "f2")) },
    Float { format: BinaryFloat::Float32, name: "float32", numpy: Some((Number::Float32, "f4")) },
    Float { format: BinaryFloat::Float64, name: "float64", numpy: Some((Number::Float64, "f8")) },
];

/// A real number in a binary floating-point format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float {
    pub(super) format: BinaryFloat,
    pub(super) name: &'static str,
    /// The NumPy type, if there is one.
    pub(super) numpy: Option<(Number, &'static str)>,
}

/// `float32` (v3), `<f4` (v2, draft).
pub(super) struct FloatFamily;

/// The data type of floats.
pub(super) fn data_type(number: Number) -> DataType {
    let [half, single, double] = FLOATS;
    DataType::new(match number {
        Number::Float16 => half,
        Number::Float32 => single,
        _ => double,
    })
}

impl DataTypeFamily for FloatFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        let float = FLOATS.into_iter().find(|float| {
            float.numpy.and_then(|(_, numpy)| numpy.strip_prefix(text.kind)).is_some_and(|size| size == text.rest)
        })?;
        Some(text.order().map(|order| (DataType::new(float), order)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        FLOATS.into_iter().find(|float| float.name == name).map(|float| unconfigured(name, configuration, float))
    }
}

impl ElementType for Float {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn layout(&self) -> Layout {
        let size = self.format.size();
        Layout::Fixed(FixedLayout { size, words: words(size, 1) })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            return Ok(self.zero());
        }
        let mut element = Vec::with_capacity(self.format.size());
        self.format.parse_fill(json, dialect, &mut element).map_err(|reason| invalid_value(self, json, reason))?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        self.format
            .fill_value_json(element, dialect)
            .ok_or_else(|| UnsupportedInFormat { dialect, feature: "a NaN with a payload".to_owned() })
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.format.size()]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        self.format.write_json(element, out);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.format.parse_json(json, out).map_err(|reason| invalid_value(self, json, reason))
    }

    fn npy_descr(&self) -> Option<String> {
        self.numpy.map(|(_, numpy)| format!("'<{numpy}'"))
    }

    fn number(&self) -> Option<Number> {
        self.numpy.map(|(number, _)| number)
    }

    fn to_f64(&self, element: &[u8]) -> Option<f64> {
        self.format.value(element)
    }

    fn to_v3(&self) -> Value {
        Value::from(self.name)
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        match self.numpy {
            Some((_, numpy)) => Ok(Value::from(format!("{}{numpy}", order_sign(order)))),
            None if *order == StoredOrder::Little => Ok(Value::from(self.name)),
            None => Err(UnsupportedInFormat { dialect: Dialect::V2, feature: format!("big-endian {}", self.name) }),
        }
    }
}
