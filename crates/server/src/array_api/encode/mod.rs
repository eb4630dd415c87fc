//! Encoders for the elements in responses.

mod csv;
mod csv_field;
mod csv_header;
pub(super) mod encoder;
mod indices;
mod json;
mod labels;
mod npy;
mod numpy_json;
mod picture;
mod raw;
mod slice;
mod text_list;
mod xarray;

use std::sync::Arc;

use encoder::ElementEncoder;
use zarrd_codec::Elements;
use zarrd_wire::{
    array::Format,
    elements::npy::render_header,
    query::{PictureAnswer, PictureQuery},
};

pub(super) use csv_header::ColumnNames;
pub(super) use labels::{AnswerLabels, LabelledAnswer};
pub(super) use picture::{ShownChannel, takes_limits};
pub(super) use slice::ArraySlice;

/// The way in which a format encodes a response.
pub(super) enum ResponseEncoding {
    /// The memory layout of the elements, after this header.
    Passthrough(Vec<u8>),
    /// Element by element.
    PerElement(Box<dyn ElementEncoder>),
    /// From all elements at once.
    Buffered(BufferedFormat),
}

/// Formats that need all elements before the first byte.
#[derive(Clone, Debug)]
pub(super) enum BufferedFormat {
    /// A picture, or its colours.
    Picture(PictureQuery),
    /// A picture of these channels, one above the other.
    Channels(Arc<[ShownChannel]>),
    /// NumPy strings, all padded to the length of the longest.
    NpyStrings,
}

/// Errors of encoding all elements at once.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    /// The number of elements does not match the shape.
    #[error("read {found} elements, but the shape has {expected}")]
    Count {
        /// The number of elements in the shape.
        expected: u64,
        /// The number of elements read.
        found: u64,
    },
    /// The encoded response exceeds its limit.
    #[error("padding all strings to the longest needs {size} bytes, which exceeds the limit (`--max-text-selection`)")]
    TooLong {
        /// Its size, in bytes.
        size: u64,
    },
    /// A string ends with NUL, which NumPy would strip.
    #[error("cannot represent a string that ends with NUL")]
    TrailingNul,
    /// Encoding the picture failed.
    #[error("encoding the picture failed")]
    Png(#[from] png::EncodingError),
    /// Describing its colours failed.
    #[error("describing the colours of a picture failed")]
    Json(#[from] serde_json::Error),
}

/// Returns the reason why a format cannot represent the elements, worded to follow its name; `None` if it can.
pub(super) fn unsupported_reason(format: Format, slice: &ArraySlice, picture: &PictureQuery) -> Option<String> {
    match format {
        Format::Json if picture.answer == PictureAnswer::Thresholds => picture::unsupported_reason(slice, picture),
        Format::Json | Format::Xarray => None,
        Format::Raw => raw::unsupported_reason(slice),
        Format::Npy => npy::unsupported_reason(slice),
        Format::Csv => csv::unsupported_reason(slice),
        Format::Png => picture::unsupported_reason(slice, picture),
    }
}

/// Returns the formats that can represent the elements.
pub(super) fn supported_formats(slice: &ArraySlice) -> Vec<Format> {
    let picture = PictureQuery::default();
    Format::ALL.into_iter().filter(|&format| unsupported_reason(format, slice, &picture).is_none()).collect()
}

/// Returns the encoding of a response in a format that can represent its elements.
pub(super) fn response_encoding(format: Format, slice: &ArraySlice, picture: &PictureQuery) -> ResponseEncoding {
    match format {
        Format::Json if picture.answer == PictureAnswer::Thresholds => {
            ResponseEncoding::Buffered(BufferedFormat::Picture(*picture))
        }
        Format::Json => ResponseEncoding::PerElement(Box::new(json::JsonEncoder::new(slice))),
        Format::Xarray => ResponseEncoding::PerElement(Box::new(xarray::XarrayEncoder::new(slice))),
        Format::Csv => ResponseEncoding::PerElement(Box::new(csv::CsvEncoder::new(slice))),
        Format::Raw if slice.is_variable() => {
            ResponseEncoding::PerElement(Box::new(raw::LengthPrefixedEncoder::new(slice)))
        }
        Format::Raw => ResponseEncoding::Passthrough(Vec::new()),
        Format::Npy => match slice.data_type.npy_descr() {
            Some(descr) => ResponseEncoding::Passthrough(render_header(&descr, &slice.shape)),
            None => ResponseEncoding::Buffered(BufferedFormat::NpyStrings),
        },
        Format::Png => ResponseEncoding::Buffered(BufferedFormat::Picture(*picture)),
    }
}

impl BufferedFormat {
    /// True if the answer depends on the elements.
    pub(super) fn needs_elements(&self) -> bool {
        match self {
            Self::Picture(picture) => picture::needs_elements(picture),
            Self::Channels(_) | Self::NpyStrings => true,
        }
    }

    /// The memory of encoding elements of a fixed size, in bytes, in addition to them.
    pub(super) fn memory_needed(&self, elements: u64) -> u64 {
        match self {
            Self::Picture(picture) => picture::memory_needed(elements, picture),
            Self::Channels(channels) => picture::memory_of_channels(elements, channels.len()),
            Self::NpyStrings => elements.saturating_mul(2),
        }
    }
}

/// Encodes all elements at once, into at most `limit` bytes.
pub(super) fn encode_buffered(
    format: BufferedFormat,
    slice: &ArraySlice,
    buffers: &[Elements],
    limit: u64,
) -> Result<Vec<u8>, EncodeError> {
    match format {
        BufferedFormat::Picture(picture) => picture::encode(slice, buffers, &picture),
        BufferedFormat::Channels(channels) => picture::encode_channels(slice, buffers, &channels),
        BufferedFormat::NpyStrings => npy::strings(slice, buffers, limit),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{encoder::Progress, *};
    use serde_json::json;
    use zarrd_meta::data_type::parse_v3;

    pub(crate) fn slice(data_type: &str, shape: &[u64]) -> ArraySlice {
        ArraySlice {
            shape: shape.to_vec(),
            data_type: parse_v3(&json!(data_type)).unwrap(),
            column_names: None,
            labels: None,
        }
    }

    /// Encodes these elements.
    pub(crate) fn encoded(mut encoder: impl ElementEncoder, elements: &[&[u8]]) -> String {
        let mut out = Vec::new();
        while encoder.write_header(&mut out) == Progress::Partial {}
        elements.iter().for_each(|element| encoder.write_element(element, &mut out));
        encoder.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn formats_support_shapes_and_types() {
        use Format::{Csv, Json, Npy, Png, Raw, Xarray};
        for (data_type, shape, formats) in [
            ("float32", &[2, 3][..], &[Json, Raw, Npy, Csv, Png, Xarray][..]),
            ("uint8", &[], &[Json, Raw, Npy, Csv, Xarray]),
            ("uint8", &[3], &[Json, Raw, Npy, Csv, Xarray]),
            ("uint8", &[1, 2, 3], &[Json, Raw, Npy, Xarray]),
            ("uint8", &[0, 3], &[Json, Raw, Npy, Csv, Xarray]),
            ("uint8", &[1 << 31, 3], &[Json, Raw, Npy, Csv, Xarray]),
            ("complex64", &[2, 3], &[Json, Raw, Npy, Csv, Xarray]),
            ("bool", &[2, 3], &[Json, Raw, Npy, Csv, Png, Xarray]),
            ("string", &[2, 3], &[Json, Raw, Npy, Csv, Xarray]),
            ("bytes", &[2, 3], &[Json, Raw, Csv, Xarray]),
            ("bytes", &[1 << 32, 1, 1], &[Json, Xarray]),
        ] {
            assert_eq!(supported_formats(&slice(data_type, shape)), formats, "{data_type} {shape:?}");
        }
    }
}
