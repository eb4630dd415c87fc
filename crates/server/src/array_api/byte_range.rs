//! Byte ranges of responses whose length is known before reading.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::ArrayResult;

use super::block_stream::{Blocks, MetricsGuard, passthrough};

/// Streams a byte range of a response that consists of a header and the elements in their memory layout. Reads only the
/// elements that overlap the range.
pub(super) fn bytes(mut head: Vec<u8>, mut result: ArrayResult, range: Range<u64>, guard: MetricsGuard) -> Blocks {
    let head_len = head.len() as u64;
    let size = result.data_type().fixed_size().map_or(1, |size| size.max(1) as u64);
    let element_bytes = range.start.saturating_sub(head_len)..range.end.saturating_sub(head_len);
    let first = match element_bytes.is_empty() {
        true => 0,
        false => result.narrow(element_bytes.start / size..element_bytes.end.div_ceil(size)),
    };
    // The header is cut separately because the elements are addressed from its end.
    head.truncate(usize::try_from(range.end).unwrap_or(usize::MAX));
    let head = head.split_off(usize::try_from(range.start).unwrap_or(usize::MAX).min(head.len()));
    let elements = passthrough(Vec::new(), result.into_stream().boxed(), guard);
    let skip = element_bytes.start.saturating_sub(first.saturating_mul(size));
    let elements = take_range(elements, skip, element_bytes.end.saturating_sub(element_bytes.start));
    stream::iter((!head.is_empty()).then(|| Ok(head.into()))).chain(elements).boxed()
}

/// Skips `skip` bytes, then yields `take` bytes and stops reading.
fn take_range(blocks: Blocks, skip: u64, take: u64) -> Blocks {
    let take_range = stream::try_unfold((blocks, skip, take), |(mut blocks, mut skip, take)| async move {
        if take == 0 {
            return Ok(None);
        }
        while let Some(mut block) = blocks.try_next().await? {
            let before = usize::try_from(skip).unwrap_or(usize::MAX).min(block.len());
            skip = skip.saturating_sub(before as u64);
            let mut block = block.split_off(before);
            block.truncate(usize::try_from(take).unwrap_or(usize::MAX));
            if !block.is_empty() {
                let remaining = take.saturating_sub(block.len() as u64);
                return Ok(Some((block, (blocks, skip, remaining))));
            }
        }
        Ok(None)
    });
    take_range.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures::executor::block_on;

    #[test]
    fn range_is_taken_from_blocks_of_any_size() {
        let all = b"abcdefghij";
        for step in 1..=all.len() {
            for (skip, take) in [(0, 10), (0, 0), (3, 4), (9, 1), (5, 5), (10, 1)] {
                let blocks = all.chunks(step).map(|block| Ok(Bytes::from_static(block)));
                let take_range: Vec<Bytes> =
                    block_on(take_range(stream::iter(blocks).boxed(), skip, take).try_collect()).unwrap();
                let expected = all.iter().copied().skip(skip as usize).take(take as usize).collect::<Vec<_>>();
                assert_eq!(take_range.concat(), expected, "{step} {skip} {take}");
                assert!(take_range.iter().all(|block| !block.is_empty()));
            }
        }
    }
}
