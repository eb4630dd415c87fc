//! NumPy's names of number types.

use serde::{Deserialize, Deserializer, de::Error};
use zarrd_meta::data_type::{DataType, Number, StoredOrder, parse_v3};

/// A configured `dtype` that is a plain number: `<f4`, `float32`, `>i2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codecs) struct Dtype {
    pub(in crate::codecs) number: Number,
    big: bool,
}
impl Dtype {
    pub(in crate::codecs) fn little(number: Number) -> Self {
        Self { number, big: false }
    }

    /// Parses a NumPy name.
    pub(in crate::codecs) fn parse(text: &str) -> Option<Self> {
        let (big, name) = match text.split_at_checked(1)? {
            (">", name) => (true, name),
            ("<" | "|" | "=", name) => (false, name),
            _ => (false, text),
        };
        let number = match name {
            "b1" | "?" | "bool" => Number::Bool,
            "i1" | "int8" => Number::Int8,
            "i2" | "int16" => Number::Int16,
            "i4" | "int32" => Number::Int32,
            "i8" | "int64" | "int" => Number::Int64,
            "u1" | "uint8" => Number::UInt8,
            "u2" | "uint16" => Number::UInt16,
            "u4" | "uint32" => Number::UInt32,
            "u8" | "uint64" | "uint" => Number::UInt64,
            "f2" | "float16" => Number::Float16,
            "f4" | "float32" => Number::Float32,
            "f8" | "float64" | "float" => Number::Float64,
            "c8" | "complex64" => Number::Complex64,
            "c16" | "complex128" | "complex" => Number::Complex128,
            _ => return None,
        };
        Some(Self { number, big })
    }

    /// The stored byte order.
    pub(in crate::codecs) fn order(self) -> StoredOrder {
        if self.big { StoredOrder::Big } else { StoredOrder::Little }
    }

    /// The data type.
    pub(in crate::codecs) fn data_type(self) -> Option<DataType> {
        parse_v3(&name(self.number).into()).ok()
    }
}

impl<'de> Deserialize<'de> for Dtype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let shown = || text.chars().take(64).collect::<String>();
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{} is not a dtype of numbers", shown())))
    }
}

/// The name of a number type in v3.
fn name(number: Number) -> &'static str {
    match number {
        Number::Bool => "bool",
        Number::Int8 => "int8",
        Number::Int16 => "int16",
        Number::Int32 => "int32",
        Number::Int64 => "int64",
        Number::UInt8 => "uint8",
        Number::UInt16 => "uint16",
        Number::UInt32 => "uint32",
        Number::UInt64 => "uint64",
        Number::Float16 => "float16",
        Number::Float32 => "float32",
        Number::Float64 => "float64",
        Number::Complex64 => "complex64",
        Number::Complex128 => "complex128",
    }
}
