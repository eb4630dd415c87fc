//! Data types: the layout of elements, and their notation in each dialect and output format.
//!
//! A [`DataType`] is a shared [`ElementType`]. Elements in memory always have the same form, however they are stored:
//! of a fixed size with every word little-endian, or of variable length. The byte order in which elements are *stored*
//! is not part of the type; it is a [`StoredOrder`], which becomes a codec of the chain.
//!
//! A new data type is a module with an implementation of [`ElementType`] and one of [`DataTypeFamily`], and an entry in
//! [`FAMILIES`].

use std::{fmt, ops::Deref, sync::Arc};

use serde_json::Value;

use crate::{Dialect, codecs::CodecSpec};

mod base64;
mod bfloat16;
mod binary_float;
mod bool;
mod calendar;
mod casting;
mod complex;
mod fixed_bytes;
mod fixed_text;
mod float;
mod int;
mod json_value;
mod object;
mod raw;
mod registry;
mod small;
mod structs;
mod text;
mod time;
mod variable_array;
mod variable_bytes;
mod variable_text;

pub use casting::{Casting, CastingError};
pub use registry::{FAMILIES, parse_draft, parse_v2, parse_v3};

/// The type of an array's elements. Clones share one value.
#[derive(Clone)]
pub struct DataType {
    element_type: Arc<dyn ElementType>,
    /// The size of an element in bytes, from its layout.
    fixed_size: Option<usize>,
}

/// A data type and the operations on its elements.
///
/// An *element* is passed as its bytes in memory: [`FixedLayout::size`] bytes with each word little-endian, or the
/// content of variable length (a string's UTF-8, a byte string's bytes, an inner array's elements). Every method
/// expects complete elements of this type; for other lengths it returns an error, or has no effect if it cannot fail.
pub trait ElementType: fmt::Debug + Send + Sync {
    /// The name in messages and in the header `Zarr-Data-Type`: that of v3 with parameters, such as `float32` or
    /// `numpy.datetime64[10us]`. Two types with the same name are equal.
    fn name(&self) -> String;

    /// The layout of elements in memory.
    fn layout(&self) -> Layout;

    /// Reads a fill value of a dialect. `null`, if the dialect allows it, is zero; for times in v2 it is "not a time".
    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError>;

    /// Reads a fill value of an array that is stored in a byte order. It only matters to structs in v2, whose fill
    /// value is the stored bytes.
    fn stored_fill_value(&self, json: &Value, dialect: Dialect, order: &StoredOrder) -> Result<Vec<u8>, ValueError> {
        let _ = order;
        self.fill_value(json, dialect)
    }

    /// The fill value of a dialect for an element, of an array that is stored little-endian.
    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat>;

    /// The fill value of a dialect for an element, of an array that is stored in a byte order; inverts
    /// [`stored_fill_value`](Self::stored_fill_value).
    fn stored_fill_value_json(
        &self,
        element: &[u8],
        dialect: Dialect,
        order: &StoredOrder,
    ) -> Result<Value, UnsupportedInFormat> {
        let _ = order;
        self.fill_value_json(element, dialect)
    }

    /// The default fill value: zero, false, or empty.
    fn zero(&self) -> Vec<u8>;

    /// Appends an element as JSON, the notation of `format=json`.
    ///
    /// Byte strings are base64, raw bits are arrays of integers, complex numbers are `[re, im]`; NaN and infinities are
    /// the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, other NaNs than the default one `"0x…"`; datetimes are ISO
    /// 8601 or `"NaT"`, timedeltas integers in their unit or `"NaT"`, structs arrays of their fields. Floats have the
    /// shortest digits that read back as the same value.
    fn write_json(&self, element: &[u8], out: &mut Vec<u8>);

    /// Appends the element of a JSON value; inverts [`write_json`](Self::write_json). Values that the type cannot hold
    /// (NaN in integers, 256 in `uint8`, a string that is too long) are rejected, never wrapped.
    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError>;

    /// The `descr` of a `.npy` header as Python source, for elements in memory order: `'<f4'`, or `[('a', '<i4')]`.
    /// `None` if NumPy alone has no such type, or if it has no fixed size.
    fn npy_descr(&self) -> Option<String> {
        None
    }

    /// The reason why untrusted bytes are not an element; `None` if they are one. The size of fixed-size elements is
    /// not checked.
    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        let _ = element;
        None
    }

    /// The names of a struct's fields, in the order of [`write_json`](Self::write_json); empty for other types.
    fn field_names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The number type, if the type is a plain number.
    fn number(&self) -> Option<Number> {
        None
    }

    /// The number of bits of a number that is in the lower bits of a byte.
    fn packed_bits(&self) -> Option<u32> {
        None
    }

    /// True for moments and durations.
    fn is_time(&self) -> bool {
        false
    }

    /// The length of one count of a moment or a duration in nanoseconds; `None` for other types, and for counts that have
    /// no fixed length or are shorter.
    fn count_nanoseconds(&self) -> Option<i128> {
        None
    }

    /// True for elements that stand for a missing value by themselves: NaN, and "not a time".
    fn is_missing(&self, element: &[u8]) -> bool {
        self.to_f64(element).is_some_and(f64::is_nan)
    }

    /// The element as a grey value: a real number, infinite or NaN included. `None` for types that are no numbers.
    fn to_f64(&self, element: &[u8]) -> Option<f64> {
        let _ = element;
        None
    }

    /// The `data_type` of a v3 document.
    fn to_v3(&self) -> Value;

    /// The `dtype` of a v2 document, for elements stored in a byte order.
    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat>;
}

/// A family of data types: all that are written alike except for parameters, e.g. `|S1`, `|S2` …
///
/// Each method returns `None` if its input names no type of this family, and an error if it does but is invalid.
pub trait DataTypeFamily: Sync {
    /// Reads the `dtype` of a v2 document.
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>>;

    /// Reads the `data_type` of a v3 document, given its name and configuration. A bare name has no configuration.
    fn read_v3(
        &self,
        name: &str,
        configuration: Option<&serde_json::Map<String, Value>>,
    ) -> Option<Result<DataType, TypeError>>;

    /// Reads a `data_type` of a draft document, or the `type` of its extension object.
    fn read_draft(&self, name: &str) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        self.read_v2(&Value::from(name), V2Context::default())
    }
}

/// The context of a `dtype` in a v2 document.
#[derive(Clone, Copy, Debug, Default)]
pub struct V2Context<'a> {
    /// The first filter, which determines the type of the objects of `|O`.
    pub object_codec: Option<&'a CodecSpec>,
}

/// The layout of elements in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All elements have one size.
    Fixed(FixedLayout),
    /// Each element has its own length.
    Variable,
}

/// The layout of fixed-size elements in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedLayout {
    /// The size of an element in bytes; may be 0 (`|S0`).
    pub size: usize,
    /// The words of an element that have a byte order, sorted and not overlapping. A `complex64` has one run of two
    /// words of 4 bytes; `int8` and `|S5` have none.
    pub words: Vec<WordRun>,
}

/// Consecutive words of one width within an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRun {
    /// The offset of the first word from the start of the element, in bytes.
    pub offset: usize,
    /// The size of a word in bytes, at least 2.
    pub width: usize,
    /// The number of words, at least 1.
    pub count: usize,
}

/// The byte order in which an array's elements are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredOrder {
    /// Little-endian, as in memory; also for elements without multi-byte words.
    Little,
    /// Big-endian.
    Big,
    /// These words are big-endian, the others little-endian: a v2 struct with fields of both orders.
    Mixed(Vec<WordRun>),
}

/// Plain number types, for codecs that compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Number {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

/// Errors of a document's data type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The data type is unknown.
    #[error("unknown data type {name}")]
    Unknown {
        /// The data type in the document, truncated.
        name: String,
    },
    /// The data type is known, but invalid.
    #[error("the data type {name} {reason}")]
    Invalid {
        /// The data type in the document, truncated.
        name: String,
        /// The error, which continues "data type x".
        reason: String,
    },
    /// Elements are larger than [`MAX_ELEMENT_SIZE`](crate::limits::MAX_ELEMENT_SIZE).
    #[error("elements of {name} exceed the limit of {} bytes", crate::limits::MAX_ELEMENT_SIZE)]
    TooLarge {
        /// The data type in the document, truncated.
        name: String,
    },
}

/// A JSON value is not an element of a data type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is no {data_type}: {reason}")]
pub struct ValueError {
    /// The value, truncated.
    pub value: String,
    /// The data type's name.
    pub data_type: String,
    /// The error.
    pub reason: String,
}

/// A dialect cannot represent a data type or an element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} cannot represent {feature}")]
pub struct UnsupportedInFormat {
    /// The dialect.
    pub dialect: Dialect,
    /// The missing feature.
    pub feature: String,
}

impl DataType {
    /// Wraps an element type.
    pub fn new(element_type: impl ElementType + 'static) -> Self {
        let fixed_size = match element_type.layout() {
            Layout::Fixed(layout) => Some(layout.size),
            Layout::Variable => None,
        };
        Self { element_type: Arc::new(element_type), fixed_size }
    }

    /// The data type of plain numbers.
    pub fn of_number(number: Number) -> Self {
        registry::of_number(number)
    }

    /// `numpy.datetime64[ns]` whose whole seconds are written as `2021-03-01T00:00:00`, without nine zeros.
    pub fn moments_of_whole_seconds() -> Self {
        time::whole_seconds()
    }

    /// The size of an element in bytes; `None` for variable length.
    pub fn fixed_size(&self) -> Option<usize> {
        self.fixed_size
    }
}

impl Deref for DataType {
    type Target = dyn ElementType;

    fn deref(&self) -> &Self::Target {
        &*self.element_type
    }
}

impl PartialEq for DataType {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.element_type, &other.element_type) || self.name() == other.name()
    }
}

impl Eq for DataType {}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Number {
    /// The size of a number in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// The rank of its kind: 0 for booleans, 1 and 2 for unsigned and signed integers, 3 for floats, 4 for complex numbers.
    /// By NumPy's rule `same_kind`, numbers are cast to those of the same and of higher ranks.
    pub fn kind_rank(self) -> u8 {
        match self {
            Self::Bool => 0,
            Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64 => 1,
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => 2,
            Self::Float16 | Self::Float32 | Self::Float64 => 3,
            Self::Complex64 | Self::Complex128 => 4,
        }
    }

    /// True for floats of IEEE 754 that are not complex.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64)
    }

    /// True for integers and floats.
    pub fn is_real(self) -> bool {
        !matches!(self, Self::Bool | Self::Complex64 | Self::Complex128)
    }
}

#[cfg(test)]
mod tests;
