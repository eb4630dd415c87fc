//! The points of a body: an `.npy` file of their coordinates, which the elements follow.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::Permit;
use zarrd_codec::ByteSwap;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{data_type::DataType, limits::MAX_RANK, selection::MAX_POINTS};

use super::{
    DecodeContext, DecodeError,
    npy::{Remainder, byte_len, read_head},
    part_errors::PointsError,
};
use crate::{app::App, request_body::ElementsBody};

/// The memory of a point in addition to its coordinates, in bytes.
const POINT_SIZE: u64 = 128;

/// The memory of a coordinate in bytes: as received, as parsed, as resolved, and of the chunk.
const COORDINATE_SIZE: u64 = 64;

/// The names of the types of coordinates.
const INTEGERS: [&str; 8] = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];

/// The coordinates of points, with the memory that writing them takes.
pub(crate) struct DecodedPoints {
    pub(crate) points: Vec<Vec<i64>>,
    /// To be held as long as the write.
    pub(crate) memory: Permit,
}

/// Decodes the points that a body begins with; the elements remain.
pub(crate) async fn decode_points(app: &App, body: &mut ElementsBody) -> Result<DecodedPoints, DecodeError> {
    let context = DecodeContext::new(app, body);
    let (head, Remainder { header_len, mut bytes }) = read_head(&mut body.stream).await?;
    let name = head.data_type.name();
    if !INTEGERS.contains(&name.as_str()) {
        return Err(PointsError::Type { found: name.as_str().to_owned() }.into());
    }
    let &[count, rank] = head.shape.as_slice() else { return Err(PointsError::Shape { found: head.shape }.into()) };
    if count > MAX_POINTS as u64 {
        return Err(PointsError::TooMany { found: count }.into());
    }
    if rank > MAX_RANK as u64 {
        return Err(PointsError::Shape { found: head.shape }.into());
    }
    let size = head.data_type.fixed_size().unwrap_or(0);
    let expected = byte_len(&head.shape, size);
    if expected > context.text_limit {
        return Err(DecodeError::TooLarge { limit: context.text_limit });
    }
    let each = POINT_SIZE.saturating_add(COORDINATE_SIZE.saturating_mul(rank));
    let memory = context.acquire_memory(each.saturating_mul(count)).await?;
    while (bytes.len() as u64) < expected {
        let data = body.stream.try_next().await?.ok_or(PointsError::Ended { expected })?;
        bytes.extend_from_slice(&data);
    }
    let coordinates = bytes.split_to(usize::try_from(expected).unwrap_or(bytes.len()).min(bytes.len())).freeze();
    let rest = std::mem::replace(&mut body.stream, stream::empty().boxed());
    body.stream = stream::iter([Ok(bytes.freeze())]).chain(rest).boxed();
    body.size = body.size.map(|all| all.saturating_sub(header_len).saturating_sub(expected));
    let swap = ByteSwap::new(&head.data_type, &head.order);
    let (count, rank) = (usize::try_from(count).unwrap_or(0), usize::try_from(rank).unwrap_or(0));
    let decode = move || {
        let coordinates = coordinates_of(&head.data_type, &swap.apply(coordinates), size);
        let points = match head.fortran_order {
            false => (0..count).map(|point| row(&coordinates, (point.saturating_mul(rank), 1), rank)).collect(),
            true => (0..count).map(|point| row(&coordinates, (point, count), rank)).collect(),
        };
        Ok(points)
    };
    Ok(DecodedPoints { points: context.run_decoder(Cost::of(Work::Documents, expected), decode).await?, memory })
}

/// Little-endian whole numbers; those that exceed an `i64`, which no shape has room for, are the greatest one.
fn coordinates_of(data_type: &DataType, bytes: &Bytes, size: usize) -> Vec<i64> {
    let is_signed = data_type.name().as_str().starts_with('i');
    let number = |bytes: &[u8]| {
        let negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.iter_mut().zip(bytes).for_each(|(wide, byte)| *wide = *byte);
        let number = i64::from_le_bytes(wide);
        if is_signed || number >= 0 { number } else { i64::MAX }
    };
    bytes.chunks_exact(size.max(1)).map(number).collect()
}

/// The coordinates of one point, from the first of them on, at a distance from each other.
fn row(coordinates: &[i64], (first, distance): (usize, usize), rank: usize) -> Vec<i64> {
    let from = coordinates.get(first..).unwrap_or_default();
    from.iter().step_by(distance.max(1)).take(rank).copied().collect()
}
