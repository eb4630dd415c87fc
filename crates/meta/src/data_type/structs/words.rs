//! The words of structs.

use crate::data_type::{StoredOrder, WordRun};

/// The maximum number of runs in a struct. An array of small structs in a field has one per item.
const MAX_RUNS: usize = 1 << 16;

/// Appends the words of a field with `count` items of `size` bytes, the first of them at `offset`.
///
/// Adjacent runs are merged. `None` if there are too many runs, or beyond the addressable range.
pub(super) fn append(
    all: &mut Vec<WordRun>,
    words: &[WordRun],
    offset: usize,
    size: usize,
    count: usize,
) -> Option<()> {
    if let [run] = words
        && run.offset == 0
        && run.width.checked_mul(run.count)? == size
    {
        push(all, WordRun { offset, width: run.width, count: run.count.checked_mul(count)? });
        return Some(());
    }
    if words.is_empty() {
        return Some(());
    }
    for item in 0..count {
        for run in words {
            let offset = item.checked_mul(size)?.checked_add(offset)?.checked_add(run.offset)?;
            push(all, WordRun { offset, ..*run });
        }
        if all.len() > MAX_RUNS {
            return None;
        }
    }
    Some(())
}

fn push(all: &mut Vec<WordRun>, run: WordRun) {
    match all.last_mut() {
        Some(last)
            if last.width == run.width
                && last.offset.saturating_add(last.width.saturating_mul(last.count)) == run.offset =>
        {
            last.count = last.count.saturating_add(run.count);
        }
        _ => all.push(run),
    }
}

/// The byte order of the `size` bytes at `offset` of an element.
pub(super) fn order_within(order: &StoredOrder, offset: usize, size: usize) -> StoredOrder {
    let StoredOrder::Mixed(runs) = order else { return order.clone() };
    let end = offset.saturating_add(size);
    let within: Vec<WordRun> = runs
        .iter()
        .filter_map(|run| {
            let skipped = offset.saturating_sub(run.offset).div_ceil(run.width.max(1));
            let start = run.offset.saturating_add(run.width.saturating_mul(skipped));
            let fitting = end.saturating_sub(start) / run.width.max(1);
            let count = run.count.saturating_sub(skipped).min(fitting);
            (count > 0).then(|| WordRun { offset: start.saturating_sub(offset), width: run.width, count })
        })
        .collect();
    if within.is_empty() { StoredOrder::Little } else { StoredOrder::Mixed(within) }
}

/// Reverses the bytes of each word.
pub(super) fn swap(element: &mut [u8], words: &[WordRun]) {
    for run in words {
        let bytes = element.get_mut(run.offset..).unwrap_or_default();
        for word in bytes.chunks_exact_mut(run.width.max(1)).take(run.count) {
            word.reverse();
        }
    }
}
