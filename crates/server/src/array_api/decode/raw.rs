//! Raw bytes: elements of a fixed size as they are in memory; of variable length their number as a `u32`, then of each its length as a `u32` and its
//! bytes, all numbers little-endian.

use array::ElementSource;
use bytes::{Buf, BytesMut};
use codec::{Swap, VariableElements};

use super::{
    Arrived, Bounds, IncomingError, Wanted,
    buffered::{Whole, made},
    transcoder::Passage,
    variable::{Collector, steps},
};
use crate::request_body::ElementsBody;

/// The size of a length.
const LENGTH: usize = size_of::<u32>();

/// Elements of a fixed size.
pub(super) fn fixed(body: ElementsBody, wanted: &Wanted) -> Result<Arrived, IncomingError> {
    let step = wanted.byte_len().unwrap_or(0);
    let (expected, count) = match (wanted.extents.is_open(), body.size) {
        (false, Some(found)) if found != step => return Err(IncomingError::Length { expected: step, found }),
        (false, _) => (Some(step), None),
        // Nothing says how many steps there are of what has no bytes.
        (true, Some(found)) if found.checked_rem(step).unwrap_or(found) != 0 => {
            return Err(IncomingError::Steps { step, found });
        }
        (true, found) => match step {
            0 => (Some(0), Some(0)),
            _ => (found, found.and_then(|found| found.checked_div(step))),
        },
    };
    let passage = Passage {
        expected,
        extents: wanted.extents.dimensions().to_vec(),
        data_type: wanted.data_type.clone(),
        size: wanted.data_type.fixed_size().unwrap_or(0),
        swap: Swap::Nothing,
    };
    Ok(Arrived { elements: ElementSource::Fixed(passage.through(body.stream)), count, memory: None })
}

/// Elements of variable length.
pub(super) async fn variable(bounds: &Bounds, body: ElementsBody, wanted: Wanted) -> Result<Arrived, IncomingError> {
    // Where each element ends takes twice the room of its length, and vectors that grow take as much again.
    let needed = |size: u64| size.saturating_mul(5);
    let Whole { bytes, memory } = bounds.whole(BytesMut::new(), body.stream, body.size, needed).await?;
    let limit = bounds.text;
    let (elements, count) = made(bytes.len() as u64, move || parsed(&bytes, &wanted, limit)).await?;
    Ok(Arrived { elements: ElementSource::Variable(elements), count, memory })
}

fn parsed(body: &[u8], wanted: &Wanted, limit: u64) -> Result<(VariableElements, Option<u64>), IncomingError> {
    let wrong = || IncomingError::Lengths { size: body.len() as u64 };
    let mut bytes = body;
    let found = bytes.try_get_u32_le().map_err(|_| wrong())?;
    let count = steps(wanted, u64::from(found))?;
    // Each has at least its length.
    if found as usize > bytes.len() / LENGTH {
        return Err(wrong());
    }
    let extents = wanted.extents.dimensions();
    let mut elements = Collector::new(&wanted.data_type, limit);
    for _ in 0..found {
        let len = bytes.try_get_u32_le().map_err(|_| wrong())?;
        let (element, rest) = bytes.split_at_checked(len as usize).ok_or_else(wrong)?;
        elements.push(element, extents)?;
        bytes = rest;
    }
    if bytes.is_empty() { Ok((elements.finish(), count)) } else { Err(wrong()) }
}
