//! Conversion of the filters of numcodecs. In v2 and the draft they get bytes, and their configuration names the data
//! type and byte order; in v3 they get elements in memory order.

use serde_json::Value;

use crate::{
    codecs::CodecSpec,
    data_type::{DataType, StoredOrder, V2Context, parse_v2, parse_v3},
    text::truncated,
};

/// The data type and byte order of the elements on one side of a filter.
#[derive(Clone, Debug)]
pub(super) struct FilterElements {
    pub(super) data_type: DataType,
    pub(super) order: StoredOrder,
}

/// The members of a filter's configuration that name the types of its two sides.
#[derive(Clone, Copy, Debug)]
enum FilterTypes {
    /// Neither is configured: both sides have the type of the input.
    Same,
    /// Members for the decoded and the encoded type; the second defaults to the first.
    Named(&'static str, &'static str),
    /// Booleans are packed into bytes.
    Bits,
}

/// True if this is the id of a filter.
pub(super) fn is_filter(id: &str) -> bool {
    filter_types(id).is_some()
}

fn filter_types(id: &str) -> Option<FilterTypes> {
    Some(match id {
        "bitround" => FilterTypes::Same,
        "delta" | "fixedscaleoffset" | "quantize" => FilterTypes::Named("dtype", "astype"),
        "astype" => FilterTypes::Named("decode_dtype", "encode_dtype"),
        "packbits" => FilterTypes::Bits,
        _ => return None,
    })
}

impl FilterElements {
    /// Reads a configured `dtype`: `<f4`, `f4`, `float32`.
    fn from_dtype(dtype: &Value) -> Option<Self> {
        let text = dtype.as_str()?;
        let v2 = |text: &str| parse_v2(&Value::from(text), V2Context::default());
        if let Ok((data_type, order)) = v2(text).or_else(|_| v2(&format!("<{text}"))) {
            return Some(Self { data_type, order });
        }
        Some(Self { data_type: parse_v3(dtype).ok()?, order: StoredOrder::Little })
    }

    /// True if both sides have the same bytes.
    fn has_same_bytes(&self, other: &Self) -> bool {
        self.is_of_type(&other.data_type) && self.order == other.order
    }

    /// True if the elements have a data type, or are the integers that count the units of a time type.
    fn is_of_type(&self, data_type: &DataType) -> bool {
        let is_time = data_type.name().starts_with("numpy.");
        self.data_type == *data_type || (is_time && self.data_type.name() == "int64")
    }
}

/// The filter with both sides in a byte order, and its encoded elements.
///
/// Fails with the reason if the filter does not accept the input. If `stored` is true, the input is in its stored byte
/// order, otherwise in memory order.
pub(super) fn with_byte_order(
    filter: &CodecSpec,
    input: &FilterElements,
    stored: bool,
    order: &StoredOrder,
) -> Result<(CodecSpec, FilterElements), String> {
    let mut filter = filter.clone();
    let output = match filter_types(&filter.name) {
        Some(FilterTypes::Same) => input.clone(),
        Some(FilterTypes::Bits) => {
            let bytes = FilterElements::from_dtype(&Value::from("|u1")).ok_or("makes bytes")?;
            if input.data_type.name() != "bool" {
                return Err(format!("is for bool, and given {}", truncated(&input.data_type.name())));
            }
            bytes
        }
        Some(FilterTypes::Named(from, to)) => {
            let read = |filter: &CodecSpec, member: &str| match filter.configuration.get(member) {
                None | Some(Value::Null) => Ok(None),
                Some(dtype) => {
                    FilterElements::from_dtype(dtype).map(Some).ok_or(format!("has a {member} that is not known"))
                }
            };
            let decoded = read(&filter, from)?.unwrap_or_else(|| input.clone());
            let is_accepted = if stored { decoded.has_same_bytes(input) } else { decoded.is_of_type(&input.data_type) };
            if !is_accepted {
                return Err(format!(
                    "is not for the elements that it is given, {}",
                    truncated(&input.data_type.name())
                ));
            }
            let encoded = read(&filter, to)?.unwrap_or_else(|| decoded.clone());
            if stored && filter.name == "quantize" && decoded.data_type != encoded.data_type {
                return Err("has an astype, which zarr-python does not read in v3".to_owned());
            }
            for (member, elements) in [(from, &decoded), (to, &encoded)] {
                let dtype = elements.data_type.to_v2(order).map_err(|error| format!("is of {}", error.feature))?;
                filter.configuration.insert(member.to_owned(), dtype);
            }
            encoded
        }
        None => return Err(format!("is the filter {}, which is not known", truncated(&filter.name))),
    };
    Ok((filter, output))
}
