//! `.npy` bodies. Their elements have the array's data type in any byte order. Fixed-length strings may be shorter than
//! the array's, and convert to elements of variable length.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::ElementSource;
use zarrd_codec::{ByteSwap, VariableElements};
use zarrd_meta::data_type::DataType;
use zarrd_store::ByteStream;
use zarrd_wire::elements::npy::{NpyHeader, NpyHeaderError, header_len, parse_header};

use super::{
    DecodeContext, DecodeError, DecodedBody, ExpectedElements, buffered::BufferedBody, indices, ready_stream,
    transcoder::ElementTranscoder, variable::VariableCollector,
};
use crate::request_body::ElementsBody;

/// The size of a UTF-32 code point, in bytes.
const CODE_POINT: usize = 4;

/// The conversion from the file's elements to the array's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    /// None, or padding to a larger size.
    Fixed,
    /// Fixed-length UTF-32 to strings of variable length.
    Texts,
    /// Fixed-length bytes to bytes of variable length.
    Bytes,
}

pub(super) async fn decode(
    context: &DecodeContext,
    mut body: ElementsBody,
    expected_elements: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    let (head, remainder) = read_head(&mut body.stream).await?;
    let conversion = conversion(&head.data_type, &expected_elements.data_type)?;
    if !expected_elements.extents.fit(&head.shape) {
        return Err(DecodeError::Shape { expected: expected_elements.extents, found: head.shape });
    }
    let count = expected_elements.step_count(&head.shape);
    let shape: Vec<Option<u64>> = head.shape.iter().copied().map(Some).collect();
    let size = head.data_type.fixed_size().unwrap_or(0);
    let expected = byte_len(&head.shape, size);
    let announced = body.size.map(|all| all.saturating_sub(remainder.header_len));
    if let Some(found) = announced.filter(|found| *found != expected) {
        return Err(DecodeError::Length { expected, found });
    }
    let swap = ByteSwap::new(&head.data_type, &head.order);
    let transcoder = ElementTranscoder {
        expected: Some(expected),
        extents: shape,
        data_type: expected_elements.data_type,
        size,
        swap,
    };
    let is_transposed = head.fortran_order && head.shape.iter().filter(|extent| **extent != 1).count() > 1;
    if !is_transposed && conversion == Conversion::Fixed {
        let stream = stream::iter([Ok(remainder.bytes.freeze())]).chain(body.stream).boxed();
        return Ok(DecodedBody { elements: ElementSource::Fixed(transcoder.transcode(stream)), count, memory: None });
    }
    let limit = context.text_limit;
    if expected > limit {
        return Err(match is_transposed {
            true => DecodeError::Fortran { size: expected, limit },
            false => DecodeError::TooLarge { limit },
        });
    }
    // The received bytes, their transposition, and the converted elements.
    let memory_needed = |size: u64| size.saturating_mul(4);
    let BufferedBody { bytes, memory } =
        context.buffer(remainder.bytes, body.stream, Some(expected), memory_needed).await?;
    if bytes.len() as u64 != expected {
        return Err(DecodeError::Length { expected, found: bytes.len() as u64 });
    }
    // Elements of size 0 also take time.
    let work = expected.max(byte_len(&head.shape, 1));
    let elements = context.run_decoder(work, move || {
        let bytes = if is_transposed { to_c_order(&bytes, size, &head.shape).into() } else { bytes };
        Ok(match conversion {
            Conversion::Fixed => ElementSource::Fixed(transcoder.transcode(ready_stream(bytes))),
            Conversion::Texts | Conversion::Bytes => {
                ElementSource::Variable(transcoder.variable(conversion, bytes, limit)?)
            }
        })
    });
    Ok(DecodedBody { elements: elements.await?, count, memory })
}

/// The bytes received after the header.
struct Remainder {
    header_len: u64,
    bytes: BytesMut,
}

async fn read_head(stream: &mut ByteStream) -> Result<(NpyHeader, Remainder), DecodeError> {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(len) = header_len(&bytes)?.filter(|len| *len <= bytes.len()) {
            let read = parse_header(&bytes.split_to(len))?;
            return Ok((read, Remainder { header_len: len as u64, bytes }));
        }
        match stream.try_next().await? {
            Some(data) => bytes.extend_from_slice(&data),
            None => return Err(NpyHeaderError::Ended.into()),
        }
    }
}

fn byte_len(shape: &[u64], size: usize) -> u64 {
    if size == 0 || shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(size as u64, |product, extent| product.saturating_mul(*extent))
}

/// Returns the conversion from the file's data type to the array's.
fn conversion(found: &DataType, expected_elements: &DataType) -> Result<Conversion, DecodeError> {
    // Elements of size 0 have no bytes to pad.
    let fits = || found.fixed_size() > Some(0) && found.fixed_size() <= expected_elements.fixed_size();
    match (kind(found), kind(expected_elements), expected_elements.name().as_str()) {
        _ if found == expected_elements => Ok(Conversion::Fixed),
        (Some('U'), Some('U'), _) | (Some('S'), Some('S'), _) if fits() => Ok(Conversion::Fixed),
        (Some('U'), _, "string") => Ok(Conversion::Texts),
        (Some('S'), _, "bytes") => Ok(Conversion::Bytes),
        _ => Err(DecodeError::ElementType { expected: expected_elements.to_string(), found: found.to_string() }),
    }
}

/// NumPy's letter for the kind of a data type.
fn kind(data_type: &DataType) -> Option<char> {
    let descr = data_type.npy_descr()?;
    descr.strip_prefix('\'')?.chars().nth(1)
}

impl ElementTranscoder {
    /// Converts padded elements to elements of variable length.
    fn variable(&self, conversion: Conversion, bytes: Bytes, limit: u64) -> Result<VariableElements, DecodeError> {
        let bytes = self.swap.apply(bytes);
        let mut elements = VariableCollector::new(&self.data_type, limit);
        let count = self.extents.iter().flatten().fold(1_u64, |count, extent| count.saturating_mul(*extent));
        let mut push = |number: u64, element: &[u8]| match conversion {
            Conversion::Texts => {
                let Some(text) = text(element) else {
                    let at = indices(&self.extents, number);
                    return Err(DecodeError::Element { at, flaw: "invalid code point" });
                };
                elements.push(text.as_bytes(), &self.extents)
            }
            Conversion::Bytes | Conversion::Fixed => elements.push(trim_padding(element), &self.extents),
        };
        match self.size {
            // NumPy allows strings of length 0. The collector's limit ends the loop.
            0 => (0..count).try_for_each(|number| push(number, &[]))?,
            size => (0..).zip(bytes.chunks_exact(size)).try_for_each(|(number, element)| push(number, element))?,
        }
        Ok(elements.finish())
    }
}

fn text(element: &[u8]) -> Option<String> {
    let code_points = element.as_chunks::<CODE_POINT>().0;
    let mut text =
        code_points.iter().map(|word| char::from_u32(u32::from_le_bytes(*word))).collect::<Option<String>>()?;
    text.truncate(text.trim_end_matches('\0').len());
    Some(text)
}

fn trim_padding(element: &[u8]) -> &[u8] {
    let padding = element.iter().rev().take_while(|byte| **byte == 0).count();
    element.get(..element.len().saturating_sub(padding)).unwrap_or_default()
}

/// Transposes elements of `size` bytes from Fortran order to C order.
fn to_c_order(bytes: &[u8], size: usize, shape: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    // The distances in Fortran order, in bytes, between neighbours along each dimension.
    let strides: Vec<usize> = shape
        .iter()
        .scan(size, |next, extent| {
            let stride = *next;
            *next = next.saturating_mul(usize::try_from(*extent).unwrap_or(usize::MAX));
            Some(stride)
        })
        .collect();
    let mut at = vec![0_u64; shape.len()];
    let mut from = 0_usize;
    while out.len() < bytes.len() {
        out.extend_from_slice(bytes.get(from..from.saturating_add(size)).unwrap_or_default());
        for ((at, &extent), &stride) in at.iter_mut().zip(shape).zip(&strides).rev() {
            *at += 1;
            from = from.saturating_add(stride);
            if *at < extent {
                break;
            }
            from = from.saturating_sub(stride.saturating_mul(usize::try_from(extent).unwrap_or(usize::MAX)));
            *at = 0;
        }
        if size == 0 || from >= bytes.len() {
            break;
        }
    }
    out
}
