//! The formats in which elements are answered.

mod csv;
mod csv_field;
mod csv_header;
pub(super) mod encoder;
mod json;
mod npy;
mod png_image;
mod raw;
mod slice;

use codec::Elements;
use encoder::Encoder;
use wire::{array::Format, elements::npy::write_head};

pub(super) use csv_header::Header;
pub(super) use slice::Answer;

/// What a PNG shows black, and what white; `None` where the elements' own least and greatest are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contrast {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// How a format makes an answer.
pub(super) enum Writing {
    /// The elements as they are in memory, after this head.
    Verbatim(Vec<u8>),
    /// One after the other.
    Each(Box<dyn Encoder>),
    /// From all of them at once.
    Whole(Whole),
}

/// The formats that need to see all elements before the first byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whole {
    /// An image.
    Png(Contrast),
    /// NumPy's strings, all of which take the space of the longest.
    NpyStrings,
}

/// Why an answer cannot be made of all elements.
#[derive(Debug, thiserror::Error)]
pub(super) enum WholeError {
    /// There are fewer or more elements than the shape says.
    #[error("{found} elements came where the shape has {expected}")]
    Count {
        /// How many the shape has.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// The text is longer than it may be.
    #[error("{size} bytes are needed so that each string has the space of the longest")]
    TooLong {
        /// How long it is.
        size: u64,
    },
    /// A string would lose its end.
    #[error("ends a string with a NUL, which NumPy would not give back")]
    TrailingNul,
    /// The image was not written.
    #[error("the image was not written")]
    Png(#[from] png::EncodingError),
}

/// Why a format cannot hold an answer, as it continues its name; `None` where it can.
pub(super) fn obstacle(format: Format, answer: &Answer) -> Option<String> {
    match format {
        Format::Json => None,
        Format::Raw => raw::obstacle(answer),
        Format::Npy => npy::obstacle(answer),
        Format::Csv => csv::obstacle(answer),
        Format::Png => png_image::obstacle(answer),
    }
}

/// The formats that can hold an answer.
pub(super) fn able(answer: &Answer) -> Vec<Format> {
    Format::ALL.into_iter().filter(|&format| obstacle(format, answer).is_none()).collect()
}

/// How a format makes an answer that it can hold.
pub(super) fn writing(format: Format, answer: &Answer, contrast: Contrast) -> Writing {
    match format {
        Format::Json => Writing::Each(Box::new(json::Json::new(answer))),
        Format::Csv => Writing::Each(Box::new(csv::Csv::new(answer))),
        Format::Raw if answer.is_variable() => Writing::Each(Box::new(raw::Prefixed::new(answer))),
        Format::Raw => Writing::Verbatim(Vec::new()),
        Format::Npy => match answer.data_type.npy_descr() {
            Some(descr) => Writing::Verbatim(write_head(&descr, &answer.shape)),
            None => Writing::Whole(Whole::NpyStrings),
        },
        Format::Png => Writing::Whole(Whole::Png(contrast)),
    }
}

/// Makes an answer of all elements, at most `limit` bytes.
pub(super) fn whole(how: Whole, answer: &Answer, pieces: &[Elements], limit: u64) -> Result<Vec<u8>, WholeError> {
    match how {
        Whole::Png(contrast) => png_image::image(answer, pieces, contrast),
        Whole::NpyStrings => npy::strings(answer, pieces, limit),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{encoder::Begun, *};
    use meta::data_type::parse_v3;
    use serde_json::json;

    pub(crate) fn answer(data_type: &str, shape: &[u64]) -> Answer {
        Answer { shape: shape.to_vec(), data_type: parse_v3(&json!(data_type)).unwrap(), header: None }
    }

    /// What an encoder writes of elements of these sizes.
    pub(crate) fn encoded(mut encoder: impl Encoder, elements: &[&[u8]]) -> String {
        let mut out = Vec::new();
        while encoder.begin(&mut out) == Begun::Partly {}
        elements.iter().for_each(|element| encoder.element(element, &mut out));
        encoder.end(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn who_can_hold_what() {
        use Format::{Csv, Json, Npy, Png, Raw};
        for (data_type, shape, formats) in [
            ("float32", &[2, 3][..], &[Json, Raw, Npy, Csv, Png][..]),
            ("uint8", &[], &[Json, Raw, Npy, Csv]),
            ("uint8", &[3], &[Json, Raw, Npy, Csv]),
            ("uint8", &[1, 2, 3], &[Json, Raw, Npy]),
            ("uint8", &[0, 3], &[Json, Raw, Npy, Csv]),
            ("uint8", &[1 << 31, 3], &[Json, Raw, Npy, Csv]),
            ("complex64", &[2, 3], &[Json, Raw, Npy, Csv]),
            ("bool", &[2, 3], &[Json, Raw, Npy, Csv, Png]),
            ("string", &[2, 3], &[Json, Raw, Npy, Csv]),
            ("bytes", &[2, 3], &[Json, Raw, Csv]),
            ("bytes", &[1 << 32, 1, 1], &[Json]),
        ] {
            assert_eq!(able(&answer(data_type, shape)), formats, "{data_type} {shape:?}");
        }
    }
}
