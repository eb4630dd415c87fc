//! `.npy` bodies. Their elements have the array's data type in any byte order, or one that can be converted to it.
//! Fixed-length strings may be shorter than the array's, and convert to elements of variable length, or to the times that
//! they denote.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::ElementSource;
use zarrd_cf::Encoding;
use zarrd_codec::ByteSwap;
use zarrd_executor::{Cost, Work};
use zarrd_meta::data_type::DataType;
use zarrd_store::ByteStream;
use zarrd_wire::elements::npy::{NpyHeader, NpyHeaderError, header_len, parse_header};

use super::{
    DecodeContext, DecodeError, DecodedBody, ExpectedElements,
    buffered::BufferedBody,
    conversion::ElementStep,
    indices, ready_stream,
    transcoder::ElementTranscoder,
    variable::{Collector, TimeCollector, VariableCollector},
};
use crate::request_body::ElementsBody;

/// The size of a UTF-32 code point, in bytes.
const CODE_POINT: usize = 4;

/// The conversion from the file's elements to the array's.
#[derive(Clone, Debug)]
enum Conversion {
    /// That of elements of a fixed size.
    Fixed(ElementStep),
    /// Fixed-length UTF-32 to strings of variable length.
    Texts,
    /// Fixed-length bytes to bytes of variable length.
    Bytes,
    /// Fixed-length UTF-32 to the times that they denote.
    Times(Arc<Encoding>),
}

pub(super) async fn decode(
    context: &DecodeContext,
    mut body: ElementsBody,
    expected_elements: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    let (head, remainder) = read_head(&mut body.stream).await?;
    let conversion = conversion(&head.data_type, &expected_elements)?;
    let Some(aligned) = expected_elements.extents.aligned(&head.shape) else {
        return Err(DecodeError::Shape { expected: expected_elements.extents, found: head.shape });
    };
    let count = expected_elements.step_count(&aligned);
    let shape: Vec<Option<u64>> = head.shape.iter().copied().map(Some).collect();
    let size = head.data_type.fixed_size().unwrap_or(0);
    let expected = byte_len(&head.shape, size);
    let announced = body.size.map(|all| all.saturating_sub(remainder.header_len));
    if let Some(found) = announced.filter(|found| *found != expected) {
        return Err(DecodeError::Length { expected, found });
    }
    let swap = ByteSwap::new(&head.data_type, &head.order);
    let step = match &conversion {
        Conversion::Fixed(step) => step.clone(),
        Conversion::Texts | Conversion::Bytes | Conversion::Times(_) => ElementStep::Keep,
    };
    let data_type = match &step {
        ElementStep::Keep => expected_elements.data_type,
        ElementStep::Convert(_) | ElementStep::Encode(..) => head.data_type.clone(),
    };
    let is_fixed = matches!(conversion, Conversion::Fixed(_));
    let transcoder = ElementTranscoder { expected: Some(expected), extents: shape, data_type, step, size, swap };
    let is_transposed = head.fortran_order && head.shape.iter().filter(|extent| **extent != 1).count() > 1;
    if !is_transposed && is_fixed {
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
    let elements = context.run_decoder(Cost::of(Work::Documents, work), move || {
        let bytes = if is_transposed { to_c_order(&bytes, size, &head.shape).into() } else { bytes };
        Ok(match conversion {
            Conversion::Fixed(_) => ElementSource::Fixed(transcoder.transcode(ready_stream(bytes))),
            Conversion::Bytes => {
                let elements = VariableCollector::new(&transcoder.data_type, limit);
                transcoder
                    .collect(bytes, Collector::Elements(elements), |element| Some(trim_padding(element).to_vec()))?
            }
            Conversion::Texts => {
                let elements = VariableCollector::new(&transcoder.data_type, limit);
                transcoder
                    .collect(bytes, Collector::Elements(elements), |element| text(element).map(String::into_bytes))?
            }
            Conversion::Times(encoding) => {
                let times = Collector::Times(TimeCollector::new(&encoding, limit));
                transcoder.collect(bytes, times, |element| text(element).map(String::into_bytes))?
            }
        })
    });
    Ok(DecodedBody { elements: elements.await?, count, memory })
}

/// Reads the header of a body, which is put back.
pub(crate) async fn peek_header(body: &mut ElementsBody) -> Result<NpyHeader, DecodeError> {
    let mut received = BytesMut::new();
    let header = loop {
        if let Some(len) = header_len(&received)?.filter(|len| *len <= received.len()) {
            break parse_header(received.get(..len).unwrap_or_default())?;
        }
        match body.stream.try_next().await? {
            Some(data) => received.extend_from_slice(&data),
            None => return Err(NpyHeaderError::Ended.into()),
        }
    };
    let rest = std::mem::replace(&mut body.stream, stream::empty().boxed());
    body.stream = stream::iter([Ok(received.freeze())]).chain(rest).boxed();
    Ok(header)
}

/// The bytes received after the header.
pub(super) struct Remainder {
    pub(super) header_len: u64,
    pub(super) bytes: BytesMut,
}

pub(super) async fn read_head(stream: &mut ByteStream) -> Result<(NpyHeader, Remainder), DecodeError> {
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

pub(super) fn byte_len(shape: &[u64], size: usize) -> u64 {
    if size == 0 || shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(size as u64, |product, extent| product.saturating_mul(*extent))
}

/// Returns the conversion from the file's data type to the array's.
fn conversion(found: &DataType, expected: &ExpectedElements) -> Result<Conversion, DecodeError> {
    let (conversions, data_type) = (&expected.conversions, &expected.data_type);
    // Elements of size 0 have no bytes to pad.
    let fits = || found.fixed_size() > Some(0) && found.fixed_size() <= data_type.fixed_size();
    if let Some(step) = conversions.step(found, data_type) {
        return Ok(Conversion::Fixed(step));
    }
    match (kind(found), kind(data_type), data_type.name().as_str()) {
        (Some('U'), Some('U'), _) | (Some('S'), Some('S'), _) if fits() => Ok(Conversion::Fixed(ElementStep::Keep)),
        (Some('U'), _, "string") => Ok(Conversion::Texts),
        (Some('S'), _, "bytes") => Ok(Conversion::Bytes),
        (Some('U'), ..) if data_type.number().is_some() => match conversions.times() {
            Some(times) => Ok(Conversion::Times(times.clone())),
            None => Err(conversions.mismatch(found, data_type)),
        },
        _ => Err(conversions.mismatch(found, data_type)),
    }
}

/// NumPy's letter for the kind of a data type.
fn kind(data_type: &DataType) -> Option<char> {
    let descr = data_type.npy_descr()?;
    descr.strip_prefix('\'')?.chars().nth(1)
}

impl ElementTranscoder {
    /// Collects padded elements, each of which is converted; `None` if it is invalid.
    fn collect(
        &self,
        bytes: Bytes,
        mut elements: Collector,
        convert: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<ElementSource, DecodeError> {
        let bytes = self.swap.apply(bytes);
        let count = self.extents.iter().flatten().fold(1_u64, |count, extent| count.saturating_mul(*extent));
        let mut push = |number: u64, element: &[u8]| {
            let Some(element) = convert(element) else {
                let at = indices(&self.extents, number);
                return Err(DecodeError::Element { at, flaw: "invalid code point" });
            };
            elements.push(&element, &self.extents)
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
