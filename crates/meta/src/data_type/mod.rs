//! Data types: what an element is, and how each dialect and each output format writes it.
//!
//! A data type is an [`ElementType`] behind a [`DataType`]. Elements in memory are always in one form, whatever is stored: of a
//! fixed size in bytes with every word little-endian, or of variable length. The byte order in which they are *stored* is
//! not part of the type; it is a [`StoredOrder`], which goes into the codec chain.
//!
//! A new type is one file with an implementation of [`ElementType`] and one of [`Family`], and one line in [`FAMILIES`].

use std::{fmt, ops::Deref, sync::Arc};

use serde_json::Value;

use crate::{Dialect, codecs::CodecSpec};

mod base64;
mod bfloat16;
mod binary_float;
mod bool;
mod calendar;
mod complex;
mod fixed_bytes;
mod fixed_text;
mod float;
mod int;
mod json_value;
mod object;
mod raw;
mod registry;
mod structs;
mod text;
mod time;
mod variable_array;
mod variable_bytes;
mod variable_text;

pub use registry::{FAMILIES, parse_draft, parse_v2, parse_v3};

/// The type of an array's elements. Clones are cheap and the same.
#[derive(Clone)]
pub struct DataType(Arc<dyn ElementType>);

/// A data type, and the operations on its elements.
///
/// An *element* is passed as its bytes in memory: of a fixed size, [`FixedLayout::size`] bytes with each word
/// little-endian; of variable length, the bytes of its content (a string's UTF-8, a byte string's bytes, an inner
/// array's elements in sequence). Every method expects whole elements of this type; other lengths yield an error or, if
/// the method has none, nothing.
pub trait ElementType: fmt::Debug + Send + Sync {
    /// The name of the type in messages and in the header `Zarr-Data-Type`: that of v3, parameters included, such as
    /// `float32` or `numpy.datetime64[10us]`. Two types with one name are the same type.
    fn name(&self) -> String;

    /// The layout of elements in memory.
    fn layout(&self) -> Layout;

    /// The element of a fill value in a dialect's document. `null`, if the dialect allows it, is zero, but for times of
    /// v2 "not a time".
    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError>;

    /// The same, in the document of an array whose elements are stored in a byte order: it matters only to a struct of v2, whose
    /// fill value is the bytes as they are stored.
    fn stored_fill_value(&self, json: &Value, dialect: Dialect, order: &StoredOrder) -> Result<Vec<u8>, ValueError> {
        let _ = order;
        self.fill_value(json, dialect)
    }

    /// The JSON by which a dialect's document writes an element as a fill value, where elements are stored little-endian.
    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat>;

    /// The same, in the document of an array whose elements are stored in a byte order: the way back from [`stored_fill_value`](Self::stored_fill_value).
    fn stored_fill_value_json(
        &self,
        element: &[u8],
        dialect: Dialect,
        order: &StoredOrder,
    ) -> Result<Value, UnsupportedInFormat> {
        let _ = order;
        self.fill_value_json(element, dialect)
    }

    /// The default element of arrays: zero, false, or empty.
    fn zero(&self) -> Vec<u8>;

    /// Appends an element as JSON text: what `format=json` answers with.
    ///
    /// Byte strings are base64, raw bits and voids an array of integers, complex numbers `[re, im]`; NaN and infinities are the strings
    /// `"NaN"`, `"Infinity"` and `"-Infinity"`, a NaN other than the usual one `"0x…"`; datetimes are ISO 8601 or `"NaT"`, timedeltas
    /// integers in their unit or `"NaT"`, structs arrays of their fields. Floats have the fewest digits that read back as the same.
    fn write_json(&self, element: &[u8], out: &mut Vec<u8>);

    /// Appends the element that a JSON value stands for: the way back from [`write_json`](Self::write_json). Whatever the type cannot hold
    /// exactly as a member of its range (NaN into integers, 256 into `uint8`, a text that is too long) is refused, never wrapped.
    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError>;

    /// The `descr` of a `.npy` header as Python text, for the elements as they are in memory: `'<f4'`, or `[('a', '<i4')]`.
    /// `None` where NumPy alone has no such type, or one that is not of a fixed size.
    fn npy_descr(&self) -> Option<String>;

    /// The reason why untrusted bytes are no element, as a sentence; `None` if they are one. The size of elements of a
    /// fixed size is not checked.
    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        let _ = element;
        None
    }

    /// The names of the fields of a struct, which [`write_json`](Self::write_json) writes in this order; none of anything else.
    fn field_names(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The plain number type, if it is one.
    fn number(&self) -> Option<Number> {
        None
    }

    /// The element as a grey value: a real number, infinite or NaN included. `None` for types that are no numbers.
    fn to_f64(&self, element: &[u8]) -> Option<f64>;

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

    /// Reads the `data_type` of a v3 document, whose name and configuration these are. A bare name has no configuration.
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
    /// The first filter, which says what the objects of `|O` are.
    pub object_codec: Option<&'a CodecSpec>,
}

/// The layout of elements in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All of one size.
    Fixed(FixedLayout),
    /// Each of its own length.
    Variable,
}

/// The layout of elements of one size in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedLayout {
    /// The size of an element in bytes; may be 0 (`|S0`).
    pub size: usize,
    /// The words of an element that have a byte order, sorted and not overlapping. A `complex64` has one run of two
    /// words of 4 bytes; `int8` and `|S5` have none.
    pub words: Vec<WordRun>,
}

/// Some words of one width, one after the other within an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRun {
    /// The offset of the first, in bytes from the start of the element.
    pub offset: usize,
    /// The size of each in bytes, at least 2.
    pub width: usize,
    /// The number of words, at least 1.
    pub count: usize,
}

/// The byte order in which an array's elements are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredOrder {
    /// As in memory: each word's least significant byte first; also for words without a byte order.
    Little,
    /// Each word's most significant byte first.
    Big,
    /// These words big-endian, and the others little: a v2 struct whose fields differ.
    Mixed(Vec<WordRun>),
}

/// The plain numbers, for codecs that calculate. Big-endian or little is not theirs to say.
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

/// The reason why a document's data type is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// No such data type is known.
    #[error("there is no data type {name}")]
    Unknown {
        /// Its text in the document, cut to a length that can be shown.
        name: String,
    },
    /// The data type is known, but what is said of it is wrong.
    #[error("the data type {name} {reason}")]
    Invalid {
        /// Its text in the document, cut to a length that can be shown.
        name: String,
        /// The error, which continues "the data type x".
        reason: String,
    },
    /// Elements are larger than [`MAX_ELEMENT_SIZE`](crate::limits::MAX_ELEMENT_SIZE).
    #[error("the elements of {name} are larger than {} bytes", crate::limits::MAX_ELEMENT_SIZE)]
    TooLarge {
        /// Its text in the document, cut to a length that can be shown.
        name: String,
    },
}

/// The reason why a JSON value is no element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is no {data_type}: {reason}")]
pub struct ValueError {
    /// The value, cut to a length that can be shown.
    pub value: String,
    /// The data type's name.
    pub data_type: String,
    /// The error.
    pub reason: String,
}

/// A dialect has no way to write a type or an element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} cannot express {feature}")]
pub struct UnsupportedInFormat {
    /// The dialect.
    pub dialect: Dialect,
    /// The missing feature.
    pub feature: String,
}

impl DataType {
    /// The type that `element_type` is.
    pub fn new(element_type: impl ElementType + 'static) -> Self {
        Self(Arc::new(element_type))
    }

    /// The size of an element in bytes; `None` for variable length.
    pub fn fixed_size(&self) -> Option<usize> {
        match self.layout() {
            Layout::Fixed(layout) => Some(layout.size),
            Layout::Variable => None,
        }
    }
}

impl Deref for DataType {
    type Target = dyn ElementType;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for DataType {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.name() == other.name()
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
    /// The size of one in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }
}

#[cfg(test)]
mod tests;
