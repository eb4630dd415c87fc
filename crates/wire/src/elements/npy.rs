//! Headers of [`.npy` files](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

use serde_json::Value;
use zarrd_meta::{
    data_type::{DataType, StoredOrder, TypeError, V2Context, parse_v2},
    limits::MAX_RANK,
};

use super::python;
pub use super::python::LiteralError;

/// The maximum length of a header in bytes.
pub const MAX_HEADER_LEN: usize = 64 << 10;

/// The alignment to which headers are padded.
const ALIGNMENT: usize = 64;
/// The space for the first extent to grow in place, as NumPy leaves it.
const GROWTH: usize = 21;
/// Version 1 has the length of its text in two bytes.
const MAX_V1_TEXT_LEN: usize = u16::MAX as usize;

const MAGIC: &[u8] = b"\x93NUMPY";
const MEMBERS: [&str; 3] = ["descr", "fortran_order", "shape"];

/// The header of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyHeader {
    /// The type of the elements.
    pub data_type: DataType,
    /// The byte order of the elements.
    pub order: StoredOrder,
    /// True if the first index changes fastest (Fortran order).
    pub fortran_order: bool,
    /// The shape; at most [`MAX_RANK`] extents.
    pub shape: Vec<u64>,
}

/// The reason why a header is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyHeaderError {
    /// The file does not begin with the magic string.
    #[error("not a .npy file: it does not begin with \\x93NUMPY")]
    Magic,
    /// The version is not 1, 2 or 3.
    #[error("unsupported version {0}.{1} of the .npy format")]
    Version(u8, u8),
    /// The header is too long.
    #[error("the header of the .npy file has {len} bytes, more than {MAX_HEADER_LEN}")]
    TooLong {
        /// Its length in bytes.
        len: u64,
    },
    /// The file ends within its header.
    #[error("the .npy file ends within its header")]
    Ended,
    /// The text is neither Latin-1 nor, in version 3, UTF-8.
    #[error("the header of the .npy file is not UTF-8")]
    Encoding,
    /// The text is not a dictionary.
    #[error("the header of the .npy file is not a Python dictionary: {0}")]
    Literal(#[from] LiteralError),
    /// A member is missing, unknown or invalid.
    #[error("in the header of the .npy file, {name} {reason}")]
    Member {
        /// The member.
        name: String,
        /// The error, which continues the name.
        reason: &'static str,
    },
    /// The elements are pickled Python objects, which only Python could read, and would run.
    #[error("the .npy file has pickled Python objects, which are not read: save it with allow_pickle=False")]
    Pickled,
    /// The data type is unknown.
    #[error("the data type of the .npy file is unknown: {0}")]
    Type(#[source] TypeError),
}

/// The length of the header, from the first bytes of a file; `None` if there are too few.
pub fn header_len(beginning: &[u8]) -> Result<Option<usize>, NpyHeaderError> {
    let magic = beginning.get(..MAGIC.len()).unwrap_or(beginning);
    if !MAGIC.starts_with(magic) {
        return Err(NpyHeaderError::Magic);
    }
    let text_len = match beginning.get(MAGIC.len()..) {
        Some([1, 0, low, high, ..]) => u64::from(u16::from_le_bytes([*low, *high])).saturating_add(10),
        Some([2 | 3, 0, a, b, c, d, ..]) => u64::from(u32::from_le_bytes([*a, *b, *c, *d])).saturating_add(12),
        Some([1..=3, 0, ..]) | Some([_]) | Some([]) | None => return Ok(None),
        Some([major, minor, ..]) => return Err(NpyHeaderError::Version(*major, *minor)),
    };
    match usize::try_from(text_len) {
        Ok(len) if len <= MAX_HEADER_LEN => Ok(Some(len)),
        _ => Err(NpyHeaderError::TooLong { len: text_len }),
    }
}

/// Reads a head of exactly [`header_len`] bytes.
pub fn parse_header(bytes: &[u8]) -> Result<NpyHeader, NpyHeaderError> {
    let len = header_len(bytes)?.filter(|len| *len == bytes.len()).ok_or(NpyHeaderError::Ended)?;
    let (version, rest) = (bytes.get(MAGIC.len()).copied().unwrap_or_default(), bytes.get(..len).unwrap_or_default());
    let text = rest.get(if version == 1 { 10 } else { 12 }..).unwrap_or_default();
    let text: String = match version {
        3 => str::from_utf8(text).map_err(|_| NpyHeaderError::Encoding)?.to_owned(),
        _ => text.iter().copied().map(char::from).collect(),
    };
    let members = python::dictionary(&text)?;
    if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(member(&unknown.chars().take(32).collect::<String>(), "is not known"));
    }
    let [descr, order, shape] = MEMBERS.map(|name| members.get(name).ok_or_else(|| member(name, "is missing")));
    let descr = descr?;
    if has_objects(descr) {
        return Err(NpyHeaderError::Pickled);
    }
    let (data_type, stored) = parse_v2(descr, V2Context::default()).map_err(NpyHeaderError::Type)?;
    let fortran_order = order?.as_bool().ok_or_else(|| member("fortran_order", "is neither True nor False"))?;
    Ok(NpyHeader { data_type, order: stored, fortran_order, shape: extents(shape?)? })
}

/// True if elements, or their fields, are Python objects.
fn has_objects(descr: &Value) -> bool {
    match descr {
        Value::String(dtype) => dtype.trim_start_matches(['|', '<', '>', '=']) == "O",
        Value::Array(fields) => {
            fields.iter().filter_map(Value::as_array).any(|field| field.get(1).is_some_and(has_objects))
        }
        _ => false,
    }
}

fn member(name: &str, reason: &'static str) -> NpyHeaderError {
    NpyHeaderError::Member { name: name.to_owned(), reason }
}

fn extents(shape: &Value) -> Result<Vec<u64>, NpyHeaderError> {
    let extents = shape.as_array().ok_or_else(|| member("shape", "is no tuple"))?;
    if extents.len() > MAX_RANK {
        return Err(member("shape", "has more than 64 dimensions"));
    }
    extents.iter().map(|extent| extent.as_u64().ok_or_else(|| member("shape", "has what is no extent"))).collect()
}

/// The head of a file whose elements have the type `descr`, in C order.
pub fn render_header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let extents = match shape {
        [extent] => format!("({extent},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let growth = shape.first().map_or(0, |extent| GROWTH.saturating_sub(extent.to_string().len()));
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {extents}, }}{:growth$}", "");
    let (version, length_size) = match (text.is_ascii(), text.len().saturating_add(ALIGNMENT) <= MAX_V1_TEXT_LEN) {
        (true, true) => (1, 2),
        (true, false) => (2, 4),
        // The text of the versions before is Latin-1.
        (false, _) => (3, 4),
    };
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[version, 0]);
    let unpadded = out.len() + length_size + text.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let length = (text.len() + padding + 1) as u32;
    out.extend(length.to_le_bytes().iter().take(length_size));
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padding, b' ');
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests;
