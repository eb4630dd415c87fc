//! Pictures of two-dimensional elements, and their colours.

mod color_maps;
mod coloring;
mod composite;
mod limits;
mod png_file;
mod thresholds;
mod values;

use zarrd_codec::Elements;
use zarrd_meta::data_type::Number;
use zarrd_wire::{
    picture::{ColorMap, Limits},
    query::{Channels, PictureAnswer, PictureQuery},
};

pub(in crate::array_api) use self::composite::ShownChannel;
use self::{coloring::Coloring, limits::FoundLimits};
use super::{EncodeError, slice::ArraySlice};

/// The maximum number of pixels along a side, by the PNG specification.
const MAX_SIDE: u64 = (1 << 31) - 1;

/// Returns the reason why elements cannot be shown, worded to follow "png"; `None` if they can.
pub(super) fn unsupported_reason(slice: &ArraySlice, picture: &PictureQuery) -> Option<String> {
    let data_type = &slice.data_type;
    let rank = slice.shape.len();
    match (picture.channels, picture.answer) {
        (Channels::Rgb, _) if data_type.number() != Some(Number::UInt8) => {
            return Some(format!("needs uint8 for \"rgb\", but the data type is {data_type}"));
        }
        (Channels::Rgb, _) if rank != 3 || !matches!(slice.shape.last(), Some(3 | 4)) => {
            return Some(format!(
                "needs 3 dimensions for \"rgb\", the last with 3 or 4 channels, but the shape is {:?}",
                slice.shape
            ));
        }
        (Channels::Added, _) if data_type.to_f64(&data_type.zero()).is_none() || rank != 3 => {
            return Some(format!(
                "needs rows and columns of real numbers for each of the \"channels\", but the data type is {data_type} and \
                 the shape {:?}",
                slice.shape
            ));
        }
        (Channels::Added, _) => {}
        (Channels::Mapped, _) if data_type.to_f64(&data_type.zero()).is_none() => {
            return Some(format!("needs real numbers, but the data type is {data_type}"));
        }
        (Channels::Mapped, PictureAnswer::Thresholds) => return None,
        (Channels::Mapped, PictureAnswer::Pixels) if rank != 2 => {
            return Some(format!("needs 2 dimensions, but the selection has {rank}"));
        }
        _ => {}
    }
    sides(slice, picture.channels)
        .is_none()
        .then(|| format!("supports 1 to {MAX_SIDE} pixels along a side, but the shape is {:?}", slice.shape))
}

/// True if the answer depends on the elements.
pub(super) fn needs_elements(picture: &PictureQuery) -> bool {
    picture.answer == PictureAnswer::Pixels || picture.min.is_none() || picture.max.is_none()
}

/// True if the colours depend on the least or the greatest element.
pub(in crate::array_api) fn takes_limits(picture: &PictureQuery) -> bool {
    picture.channels == Channels::Mapped && (picture.min.is_none() || picture.max.is_none())
}

/// Encodes all elements as a picture, or describes its colours.
pub(super) fn encode(slice: &ArraySlice, buffers: &[Elements], picture: &PictureQuery) -> Result<Vec<u8>, EncodeError> {
    let (height, width) = sides(slice, picture.channels).unwrap_or_default();
    if picture.channels == Channels::Rgb {
        return png_file::of_channels((height, width), slice, buffers);
    }
    let coloring = Coloring::new(picture, FoundLimits::of(picture, &slice.data_type, buffers));
    if picture.answer == PictureAnswer::Thresholds {
        return Ok(coloring.to_json()?);
    }
    let mut pixels = Vec::new();
    buffers.iter().for_each(|elements| coloring.append_colors(&slice.data_type, elements, &mut pixels));
    check_count(u64::from(height) * u64::from(width), pixels.len() as u64)?;
    png_file::of_colors((height, width), &pixels, &coloring.colors)
}

/// Encodes elements of several channels as a picture.
pub(super) fn encode_channels(
    slice: &ArraySlice,
    buffers: &[Elements],
    channels: &[ShownChannel],
) -> Result<Vec<u8>, EncodeError> {
    composite::encode(slice, buffers, channels)
}

/// The memory of encoding elements of several channels, in bytes, in addition to the elements.
pub(super) fn memory_of_channels(elements: u64, channels: usize) -> u64 {
    (elements / (channels as u64).max(1)).saturating_mul(composite::PIXEL_MEMORY)
}

/// The memory of encoding elements, in bytes, in addition to the elements.
pub(super) fn memory_needed(elements: u64, picture: &PictureQuery) -> u64 {
    // The number of a colour, up to two or four channels in the file, and for robust limits a value.
    let channels = if picture.cmap.is_some_and(|map| map != ColorMap::Grey) { 4 } else { 2 };
    let per_element = match (picture.channels, picture.limits) {
        (Channels::Rgb | Channels::Added, _) => 2,
        (Channels::Mapped, Some(Limits::Robust)) => 2 + channels + 8,
        (Channels::Mapped, _) => 2 + channels,
    };
    elements.saturating_mul(per_element)
}

fn check_count(expected: u64, found: u64) -> Result<(), EncodeError> {
    if found == expected { Ok(()) } else { Err(EncodeError::Count { expected, found }) }
}

/// The height and width.
fn sides(slice: &ArraySlice, channels: Channels) -> Option<(u32, u32)> {
    let side = |extent: u64| u32::try_from(extent).ok().filter(|_| (1..=MAX_SIDE).contains(&extent));
    match *slice.shape.as_slice() {
        [height, width] => Some((side(height)?, side(width)?)),
        [first, second, last] => match channels {
            Channels::Added => Some((side(second)?, side(last)?)),
            _ if matches!(last, 3 | 4) => Some((side(first)?, side(second)?)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
