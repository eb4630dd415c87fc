//! Formats of `/array` responses, and the headers that describe the elements.

use std::{fmt, str::FromStr};

use http::HeaderValue;
use serde_json::{Map, Value};
use zarrd_meta::selection::{Item, Selection};

/// The maximum length in bytes of each header that describes the elements. A longer one (for a struct of a thousand
/// fields) is left out, since many clients reject heads that long.
pub const MAX_DESCRIPTION: usize = 4096;

/// The maximum length of the header with selected indices in bytes.
const MAX_SELECTED: usize = 2048;

/// The maximum number of indices of a list in it.
const MAX_SHOWN_INDICES: usize = 16;

/// A format of elements in C order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Nested lists of JSON, a bare scalar where there is no dimension.
    Json,
    /// The elements' bytes, every word little-endian. Of variable length: their number as a `u32`, then of each its
    /// length as a `u32` and its bytes; all numbers little-endian.
    Raw,
    /// The `.npy` file that NumPy's `load` takes.
    Npy,
    /// RFC 4180: a row per line; of one dimension, an element per line. See [`CsvHeader`].
    Csv,
    /// A grey image of two dimensions, the first downwards.
    Png,
    /// The JSON that `xarray.DataArray.from_dict` takes: elements like [`Json`](Self::Json), with coordinates.
    Xarray,
}

/// The presence of a CSV header line with column names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CsvHeader {
    /// The first line has the column names.
    Present,
    /// All lines are data.
    Absent,
    /// The first line and the first column have labels.
    Labels,
}

/// A text that is not the name of a [`Format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format: use json, raw, npy, csv, png or xarray")]
pub struct FormatError;

impl Format {
    /// All formats; the first is the default.
    pub const ALL: [Self; 6] = [Self::Json, Self::Raw, Self::Npy, Self::Csv, Self::Png, Self::Xarray];

    /// The name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Raw => "raw",
            Self::Npy => "npy",
            Self::Csv => "csv",
            Self::Png => "png",
            Self::Xarray => "xarray",
        }
    }

    /// The media type without parameters, for `Accept`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json | Self::Xarray => "application/json",
            Self::Raw => "application/octet-stream",
            Self::Npy => "application/x-npy",
            Self::Csv => "text/csv",
            Self::Png => "image/png",
        }
    }

    /// The `Content-Type` of responses; for CSV, of those without a header line.
    pub fn content_type(self) -> HeaderValue {
        match self {
            Self::Csv => CsvHeader::Absent.content_type(),
            other => HeaderValue::from_static(other.media_type()),
        }
    }
}

impl CsvHeader {
    /// The value of the query's parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "true",
            Self::Absent => "false",
            Self::Labels => "labels",
        }
    }

    /// The `Content-Type` of CSV (RFC 4180, section 3).
    pub fn content_type(self) -> HeaderValue {
        match self {
            Self::Present | Self::Labels => HeaderValue::from_static("text/csv; charset=utf-8; header=present"),
            Self::Absent => HeaderValue::from_static("text/csv; charset=utf-8; header=absent"),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(FormatError)
    }
}

/// The value of [`SHAPE`](crate::headers::SHAPE): the extents with commas between them, `512,512`; empty for no
/// dimension.
pub fn shape(shape: &[u64]) -> Option<HeaderValue> {
    described(shape.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

/// Parses a value of [`SHAPE`](crate::headers::SHAPE).
pub fn parse_shape(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').map(|extent| extent.parse().ok().filter(|_| digits(extent))).collect()
}

/// The value of [`READ`](crate::headers::READ): the number of chunks or shards that an answer needs, and of those that
/// are stored, with their size in bytes, if these are known before any is read: `chunks=12, stored=10, bytes=40960`.
pub fn read_cost(chunks: u64, stored: Option<(u64, u64)>) -> HeaderValue {
    let text = match stored {
        Some((stored, bytes)) => format!("chunks={chunks}, stored={stored}, bytes={bytes}"),
        None => format!("chunks={chunks}"),
    };
    // Digits, letters and commas are a valid header value.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("chunks"))
}

/// The value of [`DIMENSION_NAMES`](crate::headers::DIMENSION_NAMES): a JSON array of strings and nulls, in ASCII.
/// `None` where no dimension has a name.
pub fn dimension_names(names: &[Option<String>]) -> Option<HeaderValue> {
    if names.iter().all(Option::is_none) {
        return None;
    }
    described(ascii(&serde_json::to_string(names).ok()?))
}

/// The value of [`NORTHWARD_ROWS`](crate::headers::NORTHWARD_ROWS): a JSON string, in ASCII.
pub fn dimension_name(name: &str) -> Option<HeaderValue> {
    described(ascii(&serde_json::to_string(name).ok()?))
}

/// Parses a value of [`NORTHWARD_ROWS`](crate::headers::NORTHWARD_ROWS).
pub fn parse_dimension_name(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// Parses a value of [`DIMENSION_NAMES`](crate::headers::DIMENSION_NAMES).
pub fn parse_dimension_names(text: &str) -> Option<Vec<Option<String>>> {
    serde_json::from_str(text).ok()
}

/// The value of [`SELECTED`](crate::headers::SELECTED): names of dimensions with their items, an index as a number and
/// others as text, in ASCII. Lists of more than 16 indices are counts: `"24 indices"`. `None` without items, or if the
/// value would exceed 2 KiB.
pub fn selected(dimensions: &[(String, Item)]) -> Option<HeaderValue> {
    if dimensions.is_empty() {
        return None;
    }
    let value = |item: &Item| match item {
        Item::Index(index) => Value::from(*index),
        Item::List(indices) if indices.len() > MAX_SHOWN_INDICES => Value::from(format!("{} indices", indices.len())),
        other => Value::from(Selection { items: vec![other.clone()] }.to_string()),
    };
    let members: Map<String, Value> =
        dimensions.iter().map(|(dimension, item)| (dimension.clone(), value(item))).collect();
    described(ascii(&Value::Object(members).to_string())).filter(|value| value.len() <= MAX_SELECTED)
}

/// The value of [`DATA_TYPE`](crate::headers::DATA_TYPE): the type's name as Zarr v3 has it. What is not ASCII (in the
/// names of a struct's fields) is written as JSON escapes it, `\u00e9`.
pub fn data_type(name: &str) -> Option<HeaderValue> {
    described(ascii(name))
}

fn described(text: String) -> Option<HeaderValue> {
    HeaderValue::try_from(text).ok().filter(|value| value.len() <= MAX_DESCRIPTION)
}

/// The text with everything that is not printable ASCII as escapes of JSON.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_round_trip() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert!(format.content_type().to_str().unwrap().starts_with(format.media_type()));
        }
        for bad in ["", "JSON", "numpy"] {
            assert_eq!(bad.parse::<Format>(), Err(FormatError), "{bad}");
        }
    }

    #[test]
    fn shapes_round_trip() {
        for (extents, text) in [(&[][..], ""), (&[0], "0"), (&[512, 7], "512,7"), (&[u64::MAX], "18446744073709551615")]
        {
            assert_eq!(shape(extents).unwrap(), text);
            assert_eq!(parse_shape(text).as_deref(), Some(extents));
        }
        for bad in [",", "1,", "+1", "-1", "1, 2", "x", "18446744073709551616"] {
            assert_eq!(parse_shape(bad), None, "{bad}");
        }
    }

    #[test]
    fn dimension_names_are_ascii_json() {
        let names = [Some("y \"é\" \u{1f600}\n".to_owned()), None, Some("x,\\".to_owned())];
        let value = dimension_names(&names).unwrap();
        let text = value.to_str().unwrap();
        assert_eq!(text, r#"["y \"\u00e9\" \ud83d\ude00\n",null,"x,\\"]"#);
        assert_eq!(parse_dimension_names(text).as_deref(), Some(&names[..]));
        assert_eq!((dimension_names(&[]), dimension_names(&[None, None])), (None, None));
        assert_eq!(dimension_names(&[Some("x".repeat(MAX_DESCRIPTION))]), None);
        assert_eq!(parse_dimension_names("x"), None);
    }

    #[test]
    fn data_types_are_ascii() {
        assert_eq!(data_type("numpy.datetime64[10us]").unwrap(), "numpy.datetime64[10us]");
        assert_eq!(data_type("é\r\n").unwrap(), r"\u00e9\u000d\u000a");
        assert_eq!(data_type(&"é".repeat(1000)), None);
    }
}
