//! `format=png`: an 8-bit greyscale image, with the first dimension downwards.
//!
//! Values map linearly from black at `min` to white at `max`. A missing limit defaults to the minimum or maximum of the
//! finite values, or to 0 and 1 for booleans. If both limits are equal, greater values are white and all others black.
//! An image that contains NaN has an alpha channel, in which only NaN is transparent.

use std::io::Write;

use codec::Elements;
use meta::data_type::{DataType, Number};
use png::{BitDepth, ColorType, Compression};

use super::{Contrast, EncodeError, slice::ArraySlice};

/// The maximum number of pixels along a side, by the PNG specification.
const MAX_SIDE: u64 = (1 << 31) - 1;

pub(super) fn unsupported_reason(slice: &ArraySlice) -> Option<String> {
    let data_type = &slice.data_type;
    if data_type.to_f64(&data_type.zero()).is_none() {
        return Some(format!("needs real numbers, but the data type is {data_type}"));
    }
    match sides(slice) {
        Some(_) => None,
        None if slice.shape.len() != 2 => {
            Some(format!("needs 2 dimensions, but the selection has {}", slice.shape.len()))
        }
        None => Some(format!("supports 1 to {MAX_SIDE} pixels along a side, but the shape is {:?}", slice.shape)),
    }
}

/// The height and width.
fn sides(slice: &ArraySlice) -> Option<(u32, u32)> {
    let side = |extent: u64| u32::try_from(extent).ok().filter(|_| (1..=MAX_SIDE).contains(&extent));
    match slice.shape.as_slice() {
        &[height, width] => Some((side(height)?, side(width)?)),
        _ => None,
    }
}

/// Encodes all elements as an image.
pub(super) fn image(slice: &ArraySlice, buffers: &[Elements], contrast: Contrast) -> Result<Vec<u8>, EncodeError> {
    let (height, width) = sides(slice).unwrap_or_default();
    let values = || buffers.iter().flat_map(|elements| values(&slice.data_type, elements));
    let stats = ValueStats::of(values());
    let expected = u64::from(height) * u64::from(width);
    if stats.count != expected {
        return Err(EncodeError::Count { expected, found: stats.count });
    }
    let (min, max) = match slice.data_type.number() {
        Some(Number::Bool) => (0.0, 1.0),
        _ => (stats.min, stats.max),
    };
    let scale = PixelScale { min: contrast.min.unwrap_or(min), max: contrast.max.unwrap_or(max) };
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(if stats.nan { ColorType::GrayscaleAlpha } else { ColorType::Grayscale });
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut row = Vec::with_capacity(ROW_BUFFER_BYTES);
    for value in values() {
        row.push(scale.grey(value));
        if stats.nan {
            row.push(if value.is_nan() { 0 } else { u8::MAX });
        }
        if row.len() >= ROW_BUFFER_BYTES {
            stream.write_all(&row).map_err(png::EncodingError::from)?;
            row.clear();
        }
    }
    stream.write_all(&row).map_err(png::EncodingError::from)?;
    stream.finish()?;
    writer.finish()?;
    Ok(out)
}

/// The number of bytes passed to the PNG encoder at a time; independent of the image's rows.
const ROW_BUFFER_BYTES: usize = 16 << 10;

fn values<'p>(data_type: &'p DataType, elements: &'p Elements) -> impl Iterator<Item = f64> + 'p {
    let bytes: &[u8] = match elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => &[],
    };
    let size = data_type.fixed_size().unwrap_or(1).max(1);
    bytes.chunks_exact(size).map(|element| data_type.to_f64(element).unwrap_or(f64::NAN))
}

/// Statistics of the values.
struct ValueStats {
    count: u64,
    nan: bool,
    /// The minimum and maximum of the finite values; 0 if none is finite.
    min: f64,
    max: f64,
}

impl ValueStats {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut stats = Self { count: 0, nan: false, min: f64::INFINITY, max: f64::NEG_INFINITY };
        for value in values {
            stats.count += 1;
            stats.nan |= value.is_nan();
            if value.is_finite() {
                stats.min = stats.min.min(value);
                stats.max = stats.max.max(value);
            }
        }
        if stats.min > stats.max {
            (stats.min, stats.max) = (0.0, 0.0);
        }
        stats
    }
}

#[derive(Clone, Copy, Debug)]
struct PixelScale {
    min: f64,
    max: f64,
}

impl PixelScale {
    fn grey(self, value: f64) -> u8 {
        if value.is_nan() || value <= self.min {
            return 0;
        }
        if value >= self.max {
            return u8::MAX;
        }
        let range = self.max - self.min;
        // Halved first if the range overflows.
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
    use super::super::tests::slice;
    use super::*;

    /// Encodes and decodes an image; returns its samples and the number of channels.
    fn decoded_image(data_type: &str, shape: &[u64], elements: Vec<u8>, contrast: Contrast) -> (Vec<u8>, usize) {
        let (front, back) = elements.split_at(elements.len() / 16 * 8);
        let buffers = [front, back].map(|elements| Elements::Fixed(elements.to_vec().into()));
        let file = image(&slice(data_type, shape), &buffers, contrast).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut samples = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut samples).unwrap();
        assert_eq!([u64::from(info.height), u64::from(info.width)], shape);
        (samples, info.color_type.samples())
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    const AUTO_CONTRAST: Contrast = Contrast { min: None, max: None };

    #[test]
    fn values_map_linearly_between_limits() {
        let values = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            decoded_image("float32", &[2, 3], values.clone(), AUTO_CONTRAST),
            (vec![0, 51, 102, 153, 204, 255], 1)
        );
        let explicit = Contrast { min: Some(1.0), max: Some(3.0) };
        assert_eq!(decoded_image("float32", &[3, 2], values.clone(), explicit), (vec![0, 0, 128, 255, 255, 255], 1));
        let only_max = Contrast { min: None, max: Some(10.0) };
        assert_eq!(decoded_image("float32", &[1, 6], values, only_max).0, [0, 26, 51, 77, 102, 128]);
    }

    #[test]
    fn nan_is_transparent_and_infinities_saturate() {
        let values = floats(&[f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY, 3.0, 2.0]);
        assert_eq!(
            decoded_image("float32", &[2, 3], values, AUTO_CONTRAST),
            (vec![0, 0, 0, 255, 255, 255, 0, 255, 255, 255, 128, 255], 2)
        );
        assert_eq!(decoded_image("float32", &[1, 2], floats(&[f32::NAN; 2]), AUTO_CONTRAST), (vec![0; 4], 2));
        let infinite = floats(&[f32::NEG_INFINITY, f32::INFINITY]);
        assert_eq!(decoded_image("float32", &[1, 2], infinite, AUTO_CONTRAST), (vec![0, 255], 1));
    }

    #[test]
    fn equal_limits_are_a_threshold() {
        assert_eq!(decoded_image("float32", &[1, 3], floats(&[7.0; 3]), AUTO_CONTRAST), (vec![0; 3], 1));
        assert_eq!(
            decoded_image("bool", &[2, 4], vec![1, 0, 1, 1, 1, 1, 1, 1], AUTO_CONTRAST).0,
            [255, 0, 255, 255, 255, 255, 255, 255]
        );
        assert_eq!(decoded_image("bool", &[1, 8], vec![1; 8], AUTO_CONTRAST).0, [255; 8]);
        // The explicit limit lies outside the range of the values.
        let below = Contrast { min: None, max: Some(5.0) };
        assert_eq!(decoded_image("float32", &[1, 2], floats(&[7.0, 8.0]), below).0, [0, 255]);
    }

    #[test]
    fn range_may_overflow() {
        let values: Vec<u8> = [f64::MIN, 0.0, f64::MAX].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(decoded_image("float64", &[1, 3], values, AUTO_CONTRAST).0, [0, 128, 255]);
    }

    #[test]
    fn missing_elements_are_an_error() {
        let buffers = [Elements::Fixed(vec![0; 5].into())];
        let result = image(&slice("uint8", &[2, 3]), &buffers, AUTO_CONTRAST);
        assert!(matches!(result, Err(EncodeError::Count { expected: 6, found: 5 })));
    }
}
