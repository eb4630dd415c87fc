//! Files of 8-bit PNG: grey, with a palette, or with channels.

use std::{borrow::Cow, io::Write};

use png::{BitDepth, ColorType, Compression};
use zarrd_codec::Elements;
use zarrd_wire::picture::Rgba;

use super::{ArraySlice, EncodeError, check_count};

/// The number of bytes passed to the PNG encoder at a time; independent of the picture's rows.
const BUFFER_BYTES: usize = 16 << 10;

/// The notation of pixels.
enum Pixels {
    /// These samples of each colour; grey with alpha, or red, green, blue and alpha.
    Direct(ColorType, Vec<Vec<u8>>),
    /// The place of each colour in a palette, and that.
    Palette(Vec<u8>, Vec<Rgba>),
}

/// Encodes a picture of numbers of colours. A grey picture has grey samples, any other one a palette if its colours
/// fit.
pub(super) fn of_colors(sides: (u32, u32), pixels: &[u16], colors: &[Rgba]) -> Result<Vec<u8>, EncodeError> {
    let notation = notation(pixels, colors);
    let mut out = Vec::new();
    let mut encoder = encoder(&mut out, sides);
    let samples: Vec<Cow<'_, [u8]>> = match &notation {
        Pixels::Direct(color_type, samples) => {
            encoder.set_color(*color_type);
            samples.iter().map(|samples| Cow::Borrowed(&samples[..])).collect()
        }
        Pixels::Palette(places, palette) => {
            encoder.set_color(ColorType::Indexed);
            encoder.set_palette(
                palette.iter().flat_map(|Rgba([red, green, blue, _])| [*red, *green, *blue]).collect::<Vec<_>>(),
            );
            if palette.iter().any(|color| !color.is_opaque()) {
                encoder.set_trns(palette.iter().map(|Rgba([.., alpha])| *alpha).collect::<Vec<_>>());
            }
            places.iter().map(|&place| Cow::Owned(vec![place])).collect()
        }
    };
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES + 4);
    for &pixel in pixels {
        buffer.extend_from_slice(samples.get(usize::from(pixel)).map_or(&[], |samples| samples));
        if buffer.len() >= BUFFER_BYTES {
            stream.write_all(&buffer).map_err(png::EncodingError::from)?;
            buffer.clear();
        }
    }
    stream.write_all(&buffer).map_err(png::EncodingError::from)?;
    stream.finish()?;
    writer.finish()?;
    Ok(out)
}

/// Encodes a picture of elements that are its samples, three or four of each pixel.
pub(super) fn of_channels(sides: (u32, u32), slice: &ArraySlice, buffers: &[Elements]) -> Result<Vec<u8>, EncodeError> {
    let samples = buffers.iter().map(|elements| match elements {
        Elements::Fixed(bytes) => &bytes[..],
        Elements::Variable(_) => &[],
    });
    check_count(slice.elements().unwrap_or(u64::MAX), samples.clone().map(|samples| samples.len() as u64).sum())?;
    let color_type = if slice.shape.last() == Some(&4) { ColorType::Rgba } else { ColorType::Rgb };
    of_samples(sides, color_type, samples)
}

/// Encodes a picture of samples of 8 bits, which may be in several pieces.
pub(super) fn of_samples<'a>(
    sides: (u32, u32),
    color_type: ColorType,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let mut encoder = encoder(&mut out, sides);
    encoder.set_color(color_type);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    for samples in pieces {
        stream.write_all(samples).map_err(png::EncodingError::from)?;
    }
    stream.finish()?;
    writer.finish()?;
    Ok(out)
}

fn encoder(out: &mut Vec<u8>, (height, width): (u32, u32)) -> png::Encoder<'_, &mut Vec<u8>> {
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    encoder
}

/// The shortest notation for the colours that are used.
fn notation(pixels: &[u16], colors: &[Rgba]) -> Pixels {
    let mut used = vec![false; colors.len()];
    for &pixel in pixels {
        if let Some(used) = used.get_mut(usize::from(pixel)) {
            *used = true;
        }
    }
    let used: Vec<_> = colors.iter().zip(used).filter_map(|(color, used)| used.then_some(*color)).collect();
    let is_opaque = used.iter().all(|color| color.is_opaque());
    if used.iter().all(|Rgba([red, green, blue, _])| red == green && green == blue) {
        let grey = |Rgba([grey, .., alpha]): &Rgba| if is_opaque { vec![*grey] } else { vec![*grey, *alpha] };
        let color_type = if is_opaque { ColorType::Grayscale } else { ColorType::GrayscaleAlpha };
        return Pixels::Direct(color_type, colors.iter().map(grey).collect());
    }
    let mut palette = used;
    palette.sort_by_key(|color| color.0);
    palette.dedup();
    if palette.len() > 256 {
        let samples = |Rgba(samples): &Rgba| if is_opaque { samples[..3].to_vec() } else { samples.to_vec() };
        let color_type = if is_opaque { ColorType::Rgb } else { ColorType::Rgba };
        return Pixels::Direct(color_type, colors.iter().map(samples).collect());
    }
    let place = |color: &Rgba| palette.binary_search_by_key(&color.0, |color| color.0).ok();
    let places = colors.iter().map(|color| place(color).and_then(|place| u8::try_from(place).ok()).unwrap_or_default());
    Pixels::Palette(places.collect(), palette)
}
