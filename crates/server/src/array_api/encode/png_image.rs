//! `format=png`: a grey image of 8 bits, the first dimension downwards.
//!
//! Values are shown linearly from black at `min` (and below) to white at `max` (and above). A limit that is not given is the least or the
//! greatest of the finite values; of booleans they are 0 and 1. Where both limits are the same, that value and all below it are black and all
//! above it white. Where there is a NaN, the image has a second channel in which NaN alone is transparent.

use std::io::Write;

use codec::Elements;
use meta::data_type::{DataType, Number};
use png::{BitDepth, ColorType, Compression};

use super::{Contrast, WholeError, slice::Answer};

/// The most pixels along a side, by the format.
const MAX_SIDE: u64 = (1 << 31) - 1;

pub(super) fn obstacle(answer: &Answer) -> Option<String> {
    let data_type = &answer.data_type;
    if data_type.to_f64(&data_type.zero()).is_none() {
        return Some(format!("shows real numbers, and the data type is {data_type}"));
    }
    match sides(answer) {
        Some(_) => None,
        None if answer.shape.len() != 2 => {
            Some(format!("shows 2 dimensions, and the selection has {}", answer.shape.len()))
        }
        None => Some(format!("has from 1 to {MAX_SIDE} pixels along a side, and the shape is {:?}", answer.shape)),
    }
}

/// The height and the width.
fn sides(answer: &Answer) -> Option<(u32, u32)> {
    let side = |extent: u64| u32::try_from(extent).ok().filter(|_| (1..=MAX_SIDE).contains(&extent));
    match answer.shape.as_slice() {
        &[height, width] => Some((side(height)?, side(width)?)),
        _ => None,
    }
}

/// The image of all elements.
pub(super) fn image(answer: &Answer, pieces: &[Elements], contrast: Contrast) -> Result<Vec<u8>, WholeError> {
    let (height, width) = sides(answer).unwrap_or_default();
    let values = || pieces.iter().flat_map(|piece| values(&answer.data_type, piece));
    let seen = Seen::of(values());
    let expected = u64::from(height) * u64::from(width);
    if seen.count != expected {
        return Err(WholeError::Count { expected, found: seen.count });
    }
    let (least, greatest) = match answer.data_type.number() {
        Some(Number::Bool) => (0.0, 1.0),
        _ => (seen.least, seen.greatest),
    };
    let scale = Scale { min: contrast.min.unwrap_or(least), max: contrast.max.unwrap_or(greatest) };
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(if seen.nan { ColorType::GrayscaleAlpha } else { ColorType::Grayscale });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut row = Vec::with_capacity(ROW);
    for value in values() {
        row.push(scale.grey(value));
        if seen.nan {
            row.push(if value.is_nan() { 0 } else { u8::MAX });
        }
        if row.len() >= ROW {
            stream.write_all(&row).map_err(png::EncodingError::from)?;
            row.clear();
        }
    }
    stream.write_all(&row).map_err(png::EncodingError::from)?;
    stream.finish()?;
    writer.finish()?;
    Ok(out)
}

/// How many bytes are handed to the encoder at a time. Its rows are its own business.
const ROW: usize = 16 << 10;

fn values<'p>(data_type: &'p DataType, piece: &'p Elements) -> impl Iterator<Item = f64> + 'p {
    let bytes: &[u8] = match piece {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => &[],
    };
    let size = data_type.fixed_size().unwrap_or(1).max(1);
    bytes.chunks_exact(size).map(|element| data_type.to_f64(element).unwrap_or(f64::NAN))
}

/// What the values are like.
struct Seen {
    count: u64,
    nan: bool,
    /// The least finite value, and the greatest; 0 where none is finite.
    least: f64,
    greatest: f64,
}

impl Seen {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut seen = Self { count: 0, nan: false, least: f64::INFINITY, greatest: f64::NEG_INFINITY };
        for value in values {
            seen.count += 1;
            seen.nan |= value.is_nan();
            if value.is_finite() {
                seen.least = seen.least.min(value);
                seen.greatest = seen.greatest.max(value);
            }
        }
        if seen.least > seen.greatest {
            (seen.least, seen.greatest) = (0.0, 0.0);
        }
        seen
    }
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    min: f64,
    max: f64,
}

impl Scale {
    fn grey(self, value: f64) -> u8 {
        if value.is_nan() || value <= self.min {
            return 0;
        }
        if value >= self.max {
            return u8::MAX;
        }
        let range = self.max - self.min;
        // Halves, where the range itself is more than a number can be.
        let part = if range.is_finite() {
            (value - self.min) / range
        } else {
            (value / 2.0 - self.min / 2.0) / (self.max / 2.0 - self.min / 2.0)
        };
        // Between 0 and 255, where the cast is exact.
        (part * 255.0).round() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;
    use super::*;

    /// The samples of the image of these elements, and how many channels it has.
    fn shown(data_type: &str, shape: &[u64], elements: Vec<u8>, contrast: Contrast) -> (Vec<u8>, usize) {
        let (front, back) = elements.split_at(elements.len() / 16 * 8);
        let pieces = [front, back].map(|piece| Elements::Fixed(piece.to_vec().into()));
        let file = image(&answer(data_type, shape), &pieces, contrast).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut samples = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut samples).unwrap();
        assert_eq!([u64::from(info.height), u64::from(info.width)], shape);
        (samples, info.color_type.samples())
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    const OWN: Contrast = Contrast { min: None, max: None };

    #[test]
    fn limits() {
        let values = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(shown("float32", &[2, 3], values.clone(), OWN), (vec![0, 51, 102, 153, 204, 255], 1));
        let given = Contrast { min: Some(1.0), max: Some(3.0) };
        assert_eq!(shown("float32", &[3, 2], values.clone(), given), (vec![0, 0, 128, 255, 255, 255], 1));
        let only_max = Contrast { min: None, max: Some(10.0) };
        assert_eq!(shown("float32", &[1, 6], values, only_max).0, [0, 26, 51, 77, 102, 128]);
    }

    #[test]
    fn what_is_not_finite() {
        let values = floats(&[f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY, 3.0, 2.0]);
        assert_eq!(
            shown("float32", &[2, 3], values, OWN),
            (vec![0, 0, 0, 255, 255, 255, 0, 255, 255, 255, 128, 255], 2)
        );
        assert_eq!(shown("float32", &[1, 2], floats(&[f32::NAN; 2]), OWN), (vec![0; 4], 2));
        let infinite = floats(&[f32::NEG_INFINITY, f32::INFINITY]);
        assert_eq!(shown("float32", &[1, 2], infinite, OWN), (vec![0, 255], 1));
    }

    #[test]
    fn constant_images() {
        assert_eq!(shown("float32", &[1, 3], floats(&[7.0; 3]), OWN), (vec![0; 3], 1));
        assert_eq!(shown("bool", &[2, 4], vec![1, 0, 1, 1, 1, 1, 1, 1], OWN).0, [255, 0, 255, 255, 255, 255, 255, 255]);
        assert_eq!(shown("bool", &[1, 8], vec![1; 8], OWN).0, [255; 8]);
        // The limit that is given lies on the wrong side of the values' own.
        let below = Contrast { min: None, max: Some(5.0) };
        assert_eq!(shown("float32", &[1, 2], floats(&[7.0, 8.0]), below).0, [0, 255]);
    }

    #[test]
    fn the_widest_range() {
        let values: Vec<u8> = [f64::MIN, 0.0, f64::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(shown("float64", &[1, 3], values, OWN).0, [0, 128, 255]);
    }

    #[test]
    fn too_few_elements() {
        let pieces = [Elements::Fixed(vec![0; 5].into())];
        let refused = image(&answer("uint8", &[2, 3]), &pieces, OWN);
        assert!(matches!(refused, Err(WholeError::Count { expected: 6, found: 5 })));
    }
}
