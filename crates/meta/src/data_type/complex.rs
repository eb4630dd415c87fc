//! `complex64` and `complex128`: the real part, then the imaginary part.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, Number, StoredOrder, TypeError, UnsupportedInFormat,
    V2Context, ValueError,
    binary_float::BinaryFloat,
    text::{NumpyText, draft_bit_pattern, invalid_value, is_null_fill, order_sign, unconfigured, words},
};
use crate::Dialect;

const COMPLEX: [Complex; 2] = [
    Complex {
        part: BinaryFloat::Float32,
        number: Number::Complex64,
        name: "complex64",
        alias: "complex_float32",
        numpy: "c8",
    },
    Complex {
        part: BinaryFloat::Float64,
        number: Number::Complex128,
        name: "complex128",
        alias: "complex_float64",
        numpy: "c16",
    },
];

#[derive(Clone, Copy, Debug)]
struct Complex {
    part: BinaryFloat,
    number: Number,
    name: &'static str,
    /// A second name of the type in the extension registry.
    alias: &'static str,
    numpy: &'static str,
}

/// `complex64` (v3), `<c8` (v2, draft).
pub(super) struct ComplexFamily;

/// The data type of complex numbers.
pub(super) fn data_type(number: Number) -> DataType {
    let [single, double] = COMPLEX;
    DataType::new(if number == Number::Complex64 { single } else { double })
}

impl DataTypeFamily for ComplexFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        let complex = COMPLEX
            .into_iter()
            .find(|complex| complex.numpy.strip_prefix(text.kind).is_some_and(|size| size == text.rest))?;
        Some(text.order().map(|order| (DataType::new(complex), order)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        COMPLEX
            .into_iter()
            .find(|complex| complex.name == name || complex.alias == name)
            .map(|complex| unconfigured(name, configuration, complex))
    }
}

impl Complex {
    /// Appends both parts, each read by `read`; a missing imaginary part is zero.
    fn push(
        &self,
        json: &Value,
        out: &mut Vec<u8>,
        part: impl Fn(&Value, &mut Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), ValueError> {
        let start = out.len();
        let Some([real, imaginary]) = json.as_array().map(Vec::as_slice) else {
            return Err(invalid_value(self, json, "it is an array of the real and the imaginary part"));
        };
        for value in [real, imaginary] {
            if let Err(reason) = part(value, out) {
                out.truncate(start);
                return Err(invalid_value(self, value, format!("of each part, {reason}")));
            }
        }
        Ok(())
    }

    fn parts<'a>(&self, element: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        element.split_at_checked(self.part.size())
    }
}

impl ElementType for Complex {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn layout(&self) -> Layout {
        let width = self.part.size();
        Layout::Fixed(FixedLayout { size: 2 * width, words: words(width, 2) })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            return Ok(self.zero());
        }
        // The digits are the big-endian bytes: the real part, then the imaginary part.
        if let Some(pattern) = draft_bit_pattern(json, dialect, self.number.size()) {
            let mut parts: Vec<&[u8]> = pattern.chunks(self.part.size()).collect();
            parts.reverse();
            return Ok(parts.concat());
        }
        let mut element = Vec::with_capacity(self.number.size());
        // Real numbers are accepted, except in v3, whose complex numbers always have two parts.
        if dialect != Dialect::V3 && !json.is_array() {
            self.part.parse_fill(json, dialect, &mut element).map_err(|reason| invalid_value(self, json, reason))?;
            element.resize(self.number.size(), 0);
            return Ok(element);
        }
        self.push(json, &mut element, |value, out| self.part.parse_fill(value, dialect, out))?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let (real, imaginary) = self.parts(element).unwrap_or_default();
        let part = |bytes| {
            let inexpressible = || UnsupportedInFormat { dialect, feature: "a NaN with a payload".to_owned() };
            self.part.fill_value_json(bytes, dialect).ok_or_else(inexpressible)
        };
        Ok(Value::Array(vec![part(real)?, part(imaginary)?]))
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.number.size()]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let Some((real, imaginary)) = self.parts(element) else { return };
        out.push(b'[');
        self.part.write_json(real, out);
        out.push(b',');
        self.part.write_json(imaginary, out);
        out.push(b']');
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.push(json, out, |value, out| self.part.parse_json(value, out))
    }

    fn npy_descr(&self) -> Option<String> {
        Some(format!("'<{}'", self.numpy))
    }

    fn number(&self) -> Option<Number> {
        Some(self.number)
    }

    fn is_missing(&self, element: &[u8]) -> bool {
        element.chunks(self.part.size()).any(|part| self.part.value(part).is_some_and(f64::is_nan))
    }

    fn to_v3(&self) -> Value {
        Value::from(self.name)
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(format!("{}{}", order_sign(order), self.numpy)))
    }
}
