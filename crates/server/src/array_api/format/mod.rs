//! The formats in which elements are answered.

mod csv;
mod header;
mod json;
mod npy;
mod png;
mod raw;

use codec::Elements;
pub(super) use header::Header;
use meta::data_type::{DataType, Number};
use wire::{array::Format, elements::npy::write_head};

/// What is answered: elements of a type, in C order, in a shape.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Their shape.
    pub(super) shape: Vec<u64>,
    /// Their type.
    pub(super) data_type: DataType,
    /// The names of the columns, of CSV that has them.
    pub(super) header: Option<Header>,
}

/// What a PNG shows black, and what white; `None` where the elements' own least and greatest are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contrast {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// How much of what comes before the first element was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// A part of it, and there is more.
    Partly,
    /// All that was left.
    Fully,
}

/// Writes elements one after the other.
pub(super) trait Encoder: Send {
    /// Writes what comes before the first element, or the next part of it where that is long.
    fn begin(&mut self, _out: &mut Vec<u8>) -> Begun {
        Begun::Fully
    }

    /// One element.
    fn element(&mut self, element: &[u8], out: &mut Vec<u8>);

    /// What comes after the last element.
    fn end(&mut self, _out: &mut Vec<u8>) {}
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
    Png(#[from] ::png::EncodingError),
}

impl Answer {
    /// How many elements there are; `None` where a `u64` does not count them.
    pub(super) fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent))
    }

    /// How often an empty text stands for what has no bytes: each element of a type without bytes, and each innermost list where
    /// a dimension is empty. `None` where elements have bytes; more than `u64::MAX` are as many as that.
    pub(super) fn empties(&self) -> Option<u64> {
        let product = |extents: &[u64]| extents.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        match self.outer() {
            Some(outer) => Some(product(outer)),
            None if self.data_type.fixed_size() == Some(0) => Some(product(&self.shape)),
            None => None,
        }
    }

    /// The dimensions around the first that is empty.
    pub(super) fn outer(&self) -> Option<&[u64]> {
        self.shape.iter().position(|&extent| extent == 0).and_then(|at| self.shape.get(..at))
    }

    /// At most how many bytes the elements have as JSON; of variable length, without their own.
    pub(super) fn json_len(&self) -> u64 {
        // A list of each dimension but the outermost is in one that is around it, with a comma.
        let lists = self.shape.iter().scan(1_u64, |lists, extent| {
            let around = *lists;
            *lists = lists.saturating_mul(*extent);
            Some(around)
        });
        let brackets = lists.fold(0_u64, |sum, lists| sum.saturating_add(lists.saturating_mul(3)));
        self.elements_len().saturating_add(brackets)
    }

    /// The same as CSV.
    pub(super) fn csv_len(&self) -> u64 {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let header = self.header.as_ref().map_or(0, |header| header.text_len(columns));
        // A field of a struct may be in quotes.
        let quotes = (self.data_type.field_names().len() as u64).saturating_mul(3);
        let quotes = self.elements().unwrap_or(u64::MAX).saturating_mul(quotes);
        self.elements_len().saturating_add(header).saturating_add(quotes)
    }

    /// At most how many bytes the elements have as text, each with what is between it and the next.
    fn elements_len(&self) -> u64 {
        self.elements().unwrap_or(u64::MAX).saturating_mul(self.widest().saturating_add(1))
    }

    /// At most how many bytes of text an element has.
    fn widest(&self) -> u64 {
        let Some(size) = self.data_type.fixed_size() else { return 2 };
        match (self.data_type.number(), size) {
            (Some(Number::Bool), _) => 5,
            (Some(_), 1) => 4,
            (Some(_), 2) => 9,
            (Some(_), 4) => 16,
            (Some(_), 8) => 26,
            // A byte is at most four characters, be it of a number, of a text or of what has to be escaped.
            _ => (size as u64).saturating_mul(4).saturating_add(2),
        }
    }

    /// True if each element has its own length.
    pub(super) fn is_variable(&self) -> bool {
        self.data_type.fixed_size().is_none()
    }
}

/// Why a format cannot hold an answer, as it continues its name; `None` where it can.
pub(super) fn obstacle(format: Format, answer: &Answer) -> Option<String> {
    match format {
        Format::Json => None,
        Format::Raw => raw::obstacle(answer),
        Format::Npy => npy::obstacle(answer),
        Format::Csv => csv::obstacle(answer),
        Format::Png => png::obstacle(answer),
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
        Whole::Png(contrast) => png::image(answer, pieces, contrast),
        Whole::NpyStrings => npy::strings(answer, pieces, limit),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
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

    #[test]
    fn counts() {
        assert_eq!(answer("int8", &[]).elements(), Some(1));
        assert_eq!(answer("int8", &[1 << 40, 1 << 40]).elements(), None);
        assert_eq!(answer("int8", &[1 << 40, 1 << 40, 0]).elements(), Some(0));
        assert_eq!(answer("int8", &[2, 3]).empties(), None);
        assert_eq!(answer("int8", &[2, 3, 0, 5]).empties(), Some(6));
        assert_eq!(answer("int8", &[0, 3]).empties(), Some(1));
        assert_eq!(answer("int8", &[1 << 40, 1 << 40, 0]).empties(), Some(u64::MAX));
    }
}
