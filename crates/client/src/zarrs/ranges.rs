//! Reads of many byte ranges with few requests.

use std::ops::Range;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_store::{ByteRange, Key, ReadableStore, StoreError, ValueMeta};
use zarrs_storage::{
    StorageError,
    byte_range::{ByteRange as ZarrsRange, InvalidByteRangeError},
};

use super::{MAX_ATTEMPTS, MAX_CONCURRENT_REQUESTS, storage_error};

/// Maximum gap between ranges that are read with one request, in bytes: reading the gap costs less than another
/// request.
const MAX_GAP: u64 = 16 * 1024;

/// A request, with the indices of the ranges that it covers.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    target: Target,
    indices: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The size only.
    Size,
    Full,
    Range(ByteRange),
}

/// The result of a request: bytes of a value from `start` on.
struct Fetched {
    info: ValueMeta,
    start: u64,
    bytes: Bytes,
}

/// Reads the byte ranges, each of which may fail by itself; `None` if the key has no value.
pub(super) async fn read<S: ReadableStore>(
    store: &S,
    key: &Key,
    ranges: &[ZarrsRange],
) -> Result<Option<Vec<Result<Bytes, StorageError>>>, StorageError> {
    let requests = plan(ranges);
    for _ in 0..MAX_ATTEMPTS {
        let targets: Vec<Target> = requests.iter().map(|request| request.target).collect();
        let responses = stream::iter(targets).map(|target| fetch(store, key, target)).buffered(MAX_CONCURRENT_REQUESTS);
        let fetched: Vec<Option<Fetched>> = responses.try_collect().await.map_err(storage_error)?;
        if fetched.iter().all(Option::is_none) {
            return Ok(None);
        }
        let unchanged: Option<Vec<Fetched>> = fetched.into_iter().collect();
        // Otherwise the value was set or erased between the requests, so they are repeated.
        let unchanged =
            unchanged.filter(|all| all.windows(2).all(|two| matches!(two, [a, b] if a.info.version == b.info.version)));
        if let Some(fetched) = unchanged {
            return Ok(Some(split(ranges, &requests, &fetched)));
        }
    }
    Err(StorageError::Unsupported(format!("{key} kept changing: gave up after {MAX_ATTEMPTS} attempts")))
}

/// Plans the requests, coalescing adjacent ranges.
fn plan(ranges: &[ZarrsRange]) -> Vec<Request> {
    let (mut requests, mut empty, mut bounded) = (Vec::new(), Vec::new(), Vec::new());
    for (index, &range) in ranges.iter().enumerate() {
        match range {
            ZarrsRange::FromStart(_, Some(0)) | ZarrsRange::Suffix(0) => empty.push(index),
            ZarrsRange::FromStart(start, Some(length)) => bounded.push((start, start.saturating_add(length), index)),
            ZarrsRange::FromStart(0, None) => requests.push(Request { target: Target::Full, indices: vec![index] }),
            ZarrsRange::FromStart(start, None) => requests.push(Request::one(ByteRange::From(start), index)),
            ZarrsRange::Suffix(length) => requests.push(Request::one(ByteRange::Last(length), index)),
        }
    }
    bounded.sort_unstable();
    let mut groups: Vec<(u64, u64, Vec<usize>)> = Vec::new();
    for (start, end, index) in bounded {
        match groups.last_mut() {
            Some((_, group_end, indices)) if start <= group_end.saturating_add(MAX_GAP) => {
                *group_end = end.max(*group_end);
                indices.push(index);
            }
            _ => groups.push((start, end, vec![index])),
        }
    }
    for (start, end, indices) in groups {
        // A value cannot be so long that the saturated sums are equal.
        let range = ByteRange::bounded(start, end).unwrap_or(ByteRange::From(start));
        requests.push(Request { target: Target::Range(range), indices });
    }
    if !empty.is_empty() || requests.is_empty() {
        requests.push(Request { target: Target::Size, indices: empty });
    }
    requests
}

async fn fetch<S: ReadableStore>(store: &S, key: &Key, target: Target) -> Result<Option<Fetched>, StoreError> {
    let range = match target {
        Target::Size => {
            let info = store.head(key).await?;
            return Ok(info.map(|info| Fetched { info, start: 0, bytes: Bytes::new() }));
        }
        Target::Full => None,
        Target::Range(range) => Some(range),
    };
    match store.get(key, range).await {
        Ok(Some(value)) => {
            let (info, start) = (value.meta.clone(), value.range.start);
            Ok(Some(Fetched { info, start, bytes: value.bytes().await? }))
        }
        Ok(None) => Ok(None),
        // `split` determines which of the ranges are out of bounds.
        Err(StoreError::RangeNotSatisfiable { meta: info }) => {
            Ok(Some(Fetched { info: info.clone(), start: info.size, bytes: Bytes::new() }))
        }
        Err(error) => Err(error),
    }
}

/// Splits the responses into the requested ranges.
fn split(ranges: &[ZarrsRange], requests: &[Request], fetched: &[Fetched]) -> Vec<Result<Bytes, StorageError>> {
    let mut results: Vec<(usize, Result<Bytes, StorageError>)> = Vec::with_capacity(ranges.len());
    for (request, fetched) in requests.iter().zip(fetched) {
        for &index in &request.indices {
            let Some(&range) = ranges.get(index) else { continue };
            let size = fetched.info.size;
            let bytes = resolve(range, size).and_then(|range| fetched.bytes_of(range));
            results.push((index, bytes.ok_or_else(|| InvalidByteRangeError::new(range, size).into())));
        }
    }
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Resolves a range within a value of `size` bytes. Unlike in HTTP, the full range must exist.
fn resolve(range: ZarrsRange, size: u64) -> Option<Range<u64>> {
    let range = match range {
        ZarrsRange::FromStart(start, None) => start..size,
        ZarrsRange::FromStart(start, Some(length)) => start..start.checked_add(length)?,
        ZarrsRange::Suffix(length) => size.checked_sub(length)?..size,
    };
    (range.start <= range.end && range.end <= size).then_some(range)
}

impl Request {
    fn one(range: ByteRange, index: usize) -> Self {
        Self { target: Target::Range(range), indices: vec![index] }
    }
}

impl Fetched {
    fn bytes_of(&self, range: Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        let start = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, indices: &[usize]) -> Request {
        Request { target: Target::Range(ByteRange::bounded(start, end).unwrap()), indices: indices.to_vec() }
    }

    #[test]
    fn adjacent_ranges_are_coalesced() {
        let far = 1_000_000;
        let ranges = [
            ZarrsRange::FromStart(far, Some(5)),
            ZarrsRange::FromStart(10, Some(5)),
            ZarrsRange::FromStart(0, Some(12)),
            ZarrsRange::FromStart(15 + MAX_GAP, Some(1)),
            ZarrsRange::Suffix(4),
            ZarrsRange::FromStart(3, Some(0)),
        ];
        let requests = plan(&ranges);
        assert_eq!(
            requests,
            [
                Request::one(ByteRange::Last(4), 4),
                range(0, 16 + MAX_GAP, &[2, 1, 3]),
                range(far, far + 5, &[0]),
                Request { target: Target::Size, indices: vec![5] },
            ]
        );
        assert_eq!(
            plan(&[]),
            [Request { target: Target::Size, indices: vec![] }],
            "the existence of the value is checked anyway"
        );
        assert_eq!(plan(&[ZarrsRange::FromStart(0, None)]), [Request { target: Target::Full, indices: vec![0] }]);
        let huge = [ZarrsRange::FromStart(u64::MAX, Some(u64::MAX)), ZarrsRange::FromStart(u64::MAX - 1, Some(1))];
        assert_eq!(plan(&huge).len(), 1, "sums do not overflow");
    }

    #[test]
    fn ranges_must_lie_within_the_value() {
        for (range, resolved) in [
            (ZarrsRange::FromStart(0, None), Some(0..10)),
            (ZarrsRange::FromStart(10, None), Some(10..10)),
            (ZarrsRange::FromStart(11, None), None),
            (ZarrsRange::FromStart(8, Some(2)), Some(8..10)),
            (ZarrsRange::FromStart(8, Some(3)), None),
            (ZarrsRange::FromStart(10, Some(0)), Some(10..10)),
            (ZarrsRange::FromStart(u64::MAX, Some(2)), None),
            (ZarrsRange::Suffix(10), Some(0..10)),
            (ZarrsRange::Suffix(11), None),
        ] {
            assert_eq!(resolve(range, 10), resolved, "{range}");
        }
    }
}
