//! Many parts of one value in few requests.

use std::ops::Range;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use store::{ByteRange, Key, ReadableStore, StoreError, ValueMeta};
use zarrs_storage::{
    StorageError,
    byte_range::{ByteRange as Wanted, InvalidByteRangeError},
};

use super::{CONCURRENT, TRIES, storage_error};

/// Parts with no more bytes than this between them are read in one request, since these bytes cost less than another
/// request.
const GAP: u64 = 16 * 1024;

/// One request, and which of the parts it is for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    ask: Ask,
    parts: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// For the size alone.
    Size,
    Whole,
    Range(ByteRange),
}

/// What a request brought: some bytes of a value, from `start` on.
struct Fetched {
    info: ValueMeta,
    start: u64,
    bytes: Bytes,
}

/// Each part that is wanted, or why it cannot be; `None` where the key has no value.
pub(super) async fn read<S: ReadableStore>(
    store: &S,
    key: &Key,
    wanted: &[Wanted],
) -> Result<Option<Vec<Result<Bytes, StorageError>>>, StorageError> {
    let requests = plan(wanted);
    for _ in 0..TRIES {
        let asks: Vec<Ask> = requests.iter().map(|request| request.ask).collect();
        let fetching = stream::iter(asks).map(|ask| fetch(store, key, ask)).buffered(CONCURRENT);
        let fetched: Vec<Option<Fetched>> = fetching.try_collect().await.map_err(storage_error)?;
        if fetched.iter().all(Option::is_none) {
            return Ok(None);
        }
        let same: Option<Vec<Fetched>> = fetched.into_iter().collect();
        // Otherwise the value was set or erased between the requests, and they have to be made again.
        let same =
            same.filter(|all| all.windows(2).all(|two| matches!(two, [a, b] if a.info.version == b.info.version)));
        if let Some(fetched) = same {
            return Ok(Some(cut(wanted, &requests, &fetched)));
        }
    }
    Err(StorageError::Unsupported(format!("{key} is replaced faster than its parts can be read")))
}

/// The requests for the parts: neighbours in one.
fn plan(wanted: &[Wanted]) -> Vec<Request> {
    let (mut requests, mut empty, mut bounded) = (Vec::new(), Vec::new(), Vec::new());
    for (part, &range) in wanted.iter().enumerate() {
        match range {
            Wanted::FromStart(_, Some(0)) | Wanted::Suffix(0) => empty.push(part),
            Wanted::FromStart(start, Some(length)) => bounded.push((start, start.saturating_add(length), part)),
            Wanted::FromStart(0, None) => requests.push(Request { ask: Ask::Whole, parts: vec![part] }),
            Wanted::FromStart(start, None) => requests.push(Request::one(ByteRange::From(start), part)),
            Wanted::Suffix(length) => requests.push(Request::one(ByteRange::Last(length), part)),
        }
    }
    bounded.sort_unstable();
    let mut groups: Vec<(u64, u64, Vec<usize>)> = Vec::new();
    for (start, end, part) in bounded {
        match groups.last_mut() {
            Some((_, group_end, parts)) if start <= group_end.saturating_add(GAP) => {
                *group_end = end.max(*group_end);
                parts.push(part);
            }
            _ => groups.push((start, end, vec![part])),
        }
    }
    for (start, end, parts) in groups {
        // No value reaches so far that the two could be equal.
        let range = ByteRange::bounded(start, end).unwrap_or(ByteRange::From(start));
        requests.push(Request { ask: Ask::Range(range), parts });
    }
    if !empty.is_empty() || requests.is_empty() {
        requests.push(Request { ask: Ask::Size, parts: empty });
    }
    requests
}

async fn fetch<S: ReadableStore>(store: &S, key: &Key, ask: Ask) -> Result<Option<Fetched>, StoreError> {
    let range = match ask {
        Ask::Size => {
            let info = store.head(key).await?;
            return Ok(info.map(|info| Fetched { info, start: 0, bytes: Bytes::new() }));
        }
        Ask::Whole => None,
        Ask::Range(range) => Some(range),
    };
    match store.get(key, range).await {
        Ok(Some(value)) => {
            let (info, start) = (value.meta, value.range.start);
            Ok(Some(Fetched { info, start, bytes: value.bytes().await? }))
        }
        Ok(None) => Ok(None),
        // Which of the parts that concerns is seen when they are cut.
        Err(StoreError::RangeNotSatisfiable { meta: info }) => {
            Ok(Some(Fetched { info, start: info.size, bytes: Bytes::new() }))
        }
        Err(error) => Err(error),
    }
}

/// Cuts the parts out of what came for them.
fn cut(wanted: &[Wanted], requests: &[Request], fetched: &[Fetched]) -> Vec<Result<Bytes, StorageError>> {
    let mut parts: Vec<(usize, Result<Bytes, StorageError>)> = Vec::with_capacity(wanted.len());
    for (request, fetched) in requests.iter().zip(fetched) {
        for &part in &request.parts {
            let Some(&range) = wanted.get(part) else { continue };
            let size = fetched.info.size;
            let bytes = absolute(range, size).and_then(|range| fetched.bytes_of(range));
            parts.push((part, bytes.ok_or_else(|| InvalidByteRangeError::new(range, size).into())));
        }
    }
    parts.sort_unstable_by_key(|(part, _)| *part);
    parts.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Where a part lies in a value of so many bytes. Unlike in HTTP, it must lie there whole.
fn absolute(range: Wanted, size: u64) -> Option<Range<u64>> {
    let range = match range {
        Wanted::FromStart(start, None) => start..size,
        Wanted::FromStart(start, Some(length)) => start..start.checked_add(length)?,
        Wanted::Suffix(length) => size.checked_sub(length)?..size,
    };
    (range.start <= range.end && range.end <= size).then_some(range)
}

impl Request {
    fn one(range: ByteRange, part: usize) -> Self {
        Self { ask: Ask::Range(range), parts: vec![part] }
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

    fn range(start: u64, end: u64, parts: &[usize]) -> Request {
        Request { ask: Ask::Range(ByteRange::bounded(start, end).unwrap()), parts: parts.to_vec() }
    }

    #[test]
    fn neighbours_are_read_together() {
        let far = 1_000_000;
        let wanted = [
            Wanted::FromStart(far, Some(5)),
            Wanted::FromStart(10, Some(5)),
            Wanted::FromStart(0, Some(12)),
            Wanted::FromStart(15 + GAP, Some(1)),
            Wanted::Suffix(4),
            Wanted::FromStart(3, Some(0)),
        ];
        let planned = plan(&wanted);
        assert_eq!(
            planned,
            [
                Request::one(ByteRange::Last(4), 4),
                range(0, 16 + GAP, &[2, 1, 3]),
                range(far, far + 5, &[0]),
                Request { ask: Ask::Size, parts: vec![5] },
            ]
        );
        assert_eq!(
            plan(&[]),
            [Request { ask: Ask::Size, parts: vec![] }],
            "whether there is a value is asked all the same"
        );
        assert_eq!(plan(&[Wanted::FromStart(0, None)]), [Request { ask: Ask::Whole, parts: vec![0] }]);
        let huge = [Wanted::FromStart(u64::MAX, Some(u64::MAX)), Wanted::FromStart(u64::MAX - 1, Some(1))];
        assert_eq!(plan(&huge).len(), 1, "sums do not overflow");
    }

    #[test]
    fn a_part_lies_in_the_value_whole() {
        for (wanted, found) in [
            (Wanted::FromStart(0, None), Some(0..10)),
            (Wanted::FromStart(10, None), Some(10..10)),
            (Wanted::FromStart(11, None), None),
            (Wanted::FromStart(8, Some(2)), Some(8..10)),
            (Wanted::FromStart(8, Some(3)), None),
            (Wanted::FromStart(10, Some(0)), Some(10..10)),
            (Wanted::FromStart(u64::MAX, Some(2)), None),
            (Wanted::Suffix(10), Some(0..10)),
            (Wanted::Suffix(11), None),
        ] {
            assert_eq!(absolute(wanted, 10), found, "{wanted}");
        }
    }
}
