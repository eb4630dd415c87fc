//! Pictures of several channels: the colours of all of them, added.

use png::ColorType;
use zarrd_codec::Elements;
use zarrd_wire::query::Channels;

use super::{ArraySlice, EncodeError, check_count, png_file, values::for_each_value};

/// A channel of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::array_api) struct ShownChannel {
    /// The colour of values at the end of the window and above.
    pub(in crate::array_api) color: [u8; 3],
    /// The values that are black and in full colour; `None` for the least and the greatest finite value.
    pub(in crate::array_api) window: Option<(f64, f64)>,
}

/// The memory of a pixel, in bytes: its sums, and its samples in the file.
pub(super) const PIXEL_MEMORY: u64 = 3 * 4 + 3;

/// Encodes elements of the shape channels, rows, columns. NaN adds nothing.
pub(super) fn encode(
    slice: &ArraySlice,
    buffers: &[Elements],
    channels: &[ShownChannel],
) -> Result<Vec<u8>, EncodeError> {
    let (height, width) = super::sides(slice, Channels::Added).unwrap_or_default();
    let pixels = usize::try_from(u64::from(height) * u64::from(width)).unwrap_or(usize::MAX);
    let windows = windows(slice, buffers, channels, pixels);
    let mut sums = vec![[0_f32; 3]; pixels];
    let mut found = 0_u64;
    each_value(slice, buffers, pixels, |channel, pixel, value| {
        found = found.saturating_add(1);
        let (Some(shown), Some((start, end)), Some(sum)) =
            (channels.get(channel), windows.get(channel), sums.get_mut(pixel))
        else {
            return;
        };
        let part = ((value - start) / (end - start)).clamp(0.0, 1.0);
        if part > 0.0 {
            sum.iter_mut().zip(shown.color).for_each(|(sum, sample)| *sum += part as f32 * f32::from(sample));
        }
    });
    check_count(slice.elements().unwrap_or(u64::MAX), found)?;
    let samples: Vec<u8> = sums.into_iter().flatten().map(|sum| sum.min(255.0).round() as u8).collect();
    png_file::of_samples((height, width), ColorType::Rgb, [&samples[..]])
}

/// The window of each channel: its own, or the range of its finite values, which is never empty.
fn windows(slice: &ArraySlice, buffers: &[Elements], channels: &[ShownChannel], pixels: usize) -> Vec<(f64, f64)> {
    let mut limits = vec![(f64::INFINITY, f64::NEG_INFINITY); channels.len()];
    if channels.iter().any(|channel| channel.window.is_none()) {
        each_value(slice, buffers, pixels, |channel, _, value| {
            if let Some((least, greatest)) = limits.get_mut(channel).filter(|_| value.is_finite()) {
                *least = least.min(value);
                *greatest = greatest.max(value);
            }
        });
    }
    let window = |(channel, (least, greatest)): (&ShownChannel, (f64, f64))| match channel.window {
        Some(window) => window,
        None if least < greatest => (least, greatest),
        None if least.is_finite() => (least, least + 1.0),
        None => (0.0, 1.0),
    };
    channels.iter().zip(limits).map(window).collect()
}

/// Visits each value with the numbers of its channel and its pixel.
fn each_value(slice: &ArraySlice, buffers: &[Elements], pixels: usize, mut visit: impl FnMut(usize, usize, f64)) {
    let (mut channel, mut pixel) = (0, 0);
    for elements in buffers {
        for_each_value(&slice.data_type, elements, &mut |value| {
            visit(channel, pixel, value);
            pixel += 1;
            if pixel >= pixels {
                (channel, pixel) = (channel + 1, 0);
            }
        });
    }
}
