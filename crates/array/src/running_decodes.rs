//! The chunks that are being decoded, each once for all reads that need it at the same time.
//!
//! A read that needs a chunk which is not cached takes an [`Interest`] in it. Each read that has one fetches the chunk
//! and waits for a thread by itself; the first that has both becomes the decoder ([`Turn`]), and all others get what it
//! decodes, wherever they are by then. So a read waits for another one only while that decodes, which takes neither
//! memory nor permits that the waiting read could hold. A decoder that fails or is dropped wakes the others, of which
//! one takes over.
//!
//! A read of normal priority does not wait for a decoder of low priority: it decodes the chunk itself.
//!
//! An entry ends with the last interest in it, so there are as many as running jobs need.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zarrd_codec::Elements;
use zarrd_meta::NodePath;

use crate::cache::CacheKey;

/// The number of parts of the table, each with a lock of its own.
const SHARDS: u64 = 64;

/// The chunks that are being decoded, and the arrays that several reads scan.
#[derive(Debug)]
pub(crate) struct RunningDecodes {
    shards: Vec<Mutex<HashMap<CacheKey, Entry>>>,
    scans: Mutex<HashMap<ScannedArray, Arc<RunningScans>>>,
}

#[derive(Debug)]
struct Entry {
    decode: Arc<Decode>,
    interests: usize,
}

/// A chunk that is being decoded, or will be.
#[derive(Debug, Default)]
struct Decode {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    /// The number of the last turn.
    turn: u64,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// One read fetches the encoded chunk for all, with this increment of the nice value.
    Fetching(i32),
    /// The encoded chunk.
    Fetched(Bytes),
    /// One read decodes it, with this increment of the nice value.
    Decoding(i32),
    Decoded(Elements),
}

/// The interest of a read in a chunk.
#[derive(Debug)]
pub(crate) struct Interest {
    table: Arc<RunningDecodes>,
    key: CacheKey,
    decode: Arc<Decode>,
}

/// The turn of a read to fetch or decode a chunk for all. If it is dropped without a result, another read takes over.
#[derive(Debug)]
pub(crate) struct Turn {
    interest: Arc<Interest>,
    number: u64,
}

/// The next step towards a chunk.
#[derive(Debug)]
pub(crate) enum FetchStep {
    /// It is decoded.
    Decoded(Elements),
    /// It is fetched.
    Fetched(Bytes),
    /// The caller fetches it.
    Fetch(Turn),
}

/// The next step of a read that has a fetched chunk, and a thread.
#[derive(Debug)]
pub(crate) enum DecodeStep {
    /// The chunk is decoded.
    Decoded(Elements),
    /// Another read decodes it.
    Running,
    /// The caller decodes it.
    Decode(Turn),
}

/// An array that is scanned: its path, and a hash of its metadata.
type ScannedArray = (NodePath, u128);

/// The scans of an array.
#[derive(Debug, Default)]
struct RunningScans {
    number: AtomicUsize,
    /// The index of the chunk that one of them has reached, the last that reached one.
    position: Mutex<Option<Vec<u64>>>,
}

/// A scan of an array: a read of more chunks than are cached for one read.
#[derive(Debug)]
pub(crate) struct Scan {
    table: Arc<RunningDecodes>,
    array: ScannedArray,
    running: Arc<RunningScans>,
}

impl Default for RunningDecodes {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), scans: Mutex::default() }
    }
}

impl RunningDecodes {
    /// An interest in a chunk.
    pub(crate) fn join(self: &Arc<Self>, key: CacheKey) -> Arc<Interest> {
        let decode = self.with_shard(&key, |shard| {
            let entry = shard.entry(key.clone()).or_insert_with(|| Entry { decode: Arc::default(), interests: 0 });
            entry.interests = entry.interests.saturating_add(1);
            entry.decode.clone()
        });
        Arc::new(Interest { table: self.clone(), key, decode: decode.unwrap_or_default() })
    }

    /// The start of a scan of an array.
    pub(crate) fn start_scan(self: &Arc<Self>, array: ScannedArray) -> Scan {
        let mut scans = self.scans.lock();
        let running = scans.entry(array.clone()).or_default().clone();
        running.number.fetch_add(1, Relaxed);
        Scan { table: self.clone(), array, running }
    }

    /// The number of chunks in which reads have an interest.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// The number of interests in all chunks.
    #[cfg(test)]
    pub(crate) fn interests(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().values().map(|entry| entry.interests).sum::<usize>()).sum()
    }

    fn with_shard<T>(&self, key: &CacheKey, run: impl FnOnce(&mut HashMap<CacheKey, Entry>) -> T) -> Option<T> {
        let shard = xxh3_64_with_seed(key.key.as_bytes(), key.start) % SHARDS;
        let shard = usize::try_from(shard).ok().and_then(|shard| self.shards.get(shard))?;
        Some(run(&mut shard.lock()))
    }
}

impl Interest {
    /// Waits until the chunk is fetched or decoded, or it is the caller's turn to fetch it, with a thread of this increment
    /// of the nice value.
    pub(crate) async fn fetch_step(self: &Arc<Self>, nicer: i32) -> FetchStep {
        self.wait_for(|state| {
            Some(match &state.stage {
                Stage::Decoded(elements) => FetchStep::Decoded(elements.clone()),
                Stage::Fetched(encoded) => FetchStep::Fetched(encoded.clone()),
                Stage::Fetching(own) | Stage::Decoding(own) if *own <= nicer => return None,
                Stage::Idle | Stage::Fetching(_) | Stage::Decoding(_) => {
                    FetchStep::Fetch(self.take_turn(state, Stage::Fetching(nicer)))
                }
            })
        })
        .await
    }

    /// Waits until the chunk is decoded.
    pub(crate) async fn decoded(&self) -> Elements {
        self.wait_for(|state| match &state.stage {
            Stage::Decoded(elements) => Some(elements.clone()),
            _ => None,
        })
        .await
    }

    /// Waits while another read decodes the chunk with at least this priority. Returns what it decoded; `None` if it
    /// failed, or if none does.
    pub(crate) async fn ended(&self, nicer: i32) -> Option<Elements> {
        self.wait_for(|state| match &state.stage {
            Stage::Decoded(elements) => Some(Some(elements.clone())),
            Stage::Decoding(own) if *own <= nicer => None,
            _ => Some(None),
        })
        .await
    }

    /// The next step of a read that has all it takes to decode the chunk, on a thread of this increment of the nice value.
    pub(crate) fn decode_step(self: &Arc<Self>, nicer: i32) -> DecodeStep {
        let mut state = self.decode.state.lock();
        match &state.stage {
            Stage::Decoded(elements) => DecodeStep::Decoded(elements.clone()),
            Stage::Decoding(own) if *own <= nicer => DecodeStep::Running,
            _ => DecodeStep::Decode(self.take_turn(&mut state, Stage::Decoding(nicer))),
        }
    }

    /// True if there is another interest in the chunk.
    fn has_company(&self) -> bool {
        let interests = |shard: &mut HashMap<CacheKey, Entry>| shard.get(&self.key).map_or(0, |entry| entry.interests);
        self.table.with_shard(&self.key, interests).is_some_and(|interests| interests > 1)
    }

    fn take_turn(self: &Arc<Self>, state: &mut State, stage: Stage) -> Turn {
        state.stage = stage;
        state.turn = state.turn.wrapping_add(1);
        Turn { interest: self.clone(), number: state.turn }
    }

    async fn wait_for<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.decode.changed.notified());
            changed.as_mut().enable();
            let found = ready(&mut self.decode.state.lock());
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }
}

impl Turn {
    /// Ends the turn with the encoded chunk.
    pub(crate) fn fetched(self, encoded: Bytes) {
        let mut state = self.interest.decode.state.lock();
        // Another read may have taken over.
        if state.turn == self.number {
            state.stage = Stage::Fetched(encoded);
        }
    }

    /// Ends the turn with the decoded chunk. Elements of variable length take time to copy, so without another interest in
    /// them they are not.
    pub(crate) fn decoded(self, elements: &Elements) {
        if matches!(elements, Elements::Fixed(_)) || self.interest.has_company() {
            self.interest.decode.state.lock().stage = Stage::Decoded(elements.clone());
        }
    }
}

impl Scan {
    /// True if another read scans the array at the same time.
    pub(crate) fn has_company(&self) -> bool {
        self.running.number.load(Relaxed) > 1
    }

    /// The index of the chunk that a scan of the array has reached; `None` if none has reached one.
    pub(crate) fn position(&self) -> Option<Vec<u64>> {
        self.running.position.lock().clone()
    }

    /// Records that this scan has reached a chunk.
    pub(crate) fn reach(&self, chunk: &[u64]) {
        chunk.clone_into(self.running.position.lock().get_or_insert_default());
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let decode = &self.interest.decode;
        let mut state = decode.state.lock();
        if state.turn == self.number && matches!(state.stage, Stage::Fetching(_) | Stage::Decoding(_)) {
            state.stage = Stage::Idle;
        }
        drop(state);
        decode.changed.notify_waiters();
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.table.with_shard(&self.key, |shard| {
            let Some(entry) = shard.get_mut(&self.key) else { return };
            entry.interests = entry.interests.saturating_sub(1);
            if entry.interests == 0 {
                shard.remove(&self.key);
            }
        });
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        let mut scans = self.table.scans.lock();
        if self.running.number.fetch_sub(1, Relaxed) <= 1 {
            scans.remove(&self.array);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use zarrd_codec::VariableBuilder;
    use zarrd_store::{Key, Version};

    use super::*;
    use crate::cache::CacheKind;

    fn key(start: u64) -> CacheKey {
        let key = Key::parse("a/c/0").unwrap();
        CacheKey { key, version: Version::from_u128(1), start, kind: CacheKind::Chunk, metadata: 0 }
    }

    fn elements(text: &'static [u8]) -> Elements {
        Elements::Fixed(Bytes::from_static(text))
    }

    fn turn_of(interest: &Arc<Interest>, nicer: i32) -> Turn {
        match interest.decode_step(nicer) {
            DecodeStep::Decode(turn) => turn,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn one_decodes_for_all_who_have_an_interest() {
        let table = Arc::<RunningDecodes>::default();
        let [first, second, third] = [(); 3].map(|()| table.join(key(0)));
        let turn = turn_of(&first, 0);
        assert!(matches!(second.decode_step(0), DecodeStep::Running));
        assert!(matches!(table.join(key(1)).decode_step(0), DecodeStep::Decode(_)), "another chunk");
        let mut waiting = Box::pin(second.ended(0));
        assert!(waiting.as_mut().now_or_never().is_none());
        turn.decoded(&elements(b"a"));
        assert_eq!(waiting.await, Some(elements(b"a")));
        assert_eq!(third.decoded().now_or_never(), Some(elements(b"a")), "it has not waited");
        assert!(matches!(third.decode_step(0), DecodeStep::Decoded(_)));
        assert_eq!((table.len(), table.interests()), (1, 3));
        drop((first, second, third));
        assert_eq!(table.len(), 0);
    }

    #[tokio::test]
    async fn elements_of_variable_length_are_passed_on_if_another_read_needs_them() {
        let table = Arc::<RunningDecodes>::default();
        let mut builder = VariableBuilder::new(u64::MAX);
        builder.push(b"text").unwrap();
        let texts = Elements::Variable(builder.finish());
        let first = table.join(key(0));
        turn_of(&first, 0).decoded(&texts);
        assert!(first.decoded().now_or_never().is_none(), "no other read needs them");
        let second = table.join(key(0));
        turn_of(&first, 0).decoded(&texts);
        assert_eq!(second.decoded().now_or_never(), Some(texts));
    }

    #[tokio::test]
    async fn one_takes_over_if_the_decoder_fails() {
        let table = Arc::<RunningDecodes>::default();
        let [first, second, third] = [(); 3].map(|()| table.join(key(0)));
        let turn = turn_of(&first, 0);
        let (mut two, mut three) = (Box::pin(second.ended(0)), Box::pin(third.ended(0)));
        assert!(two.as_mut().now_or_never().is_none() && three.as_mut().now_or_never().is_none());
        drop((turn, first));
        assert_eq!((two.await, three.await), (None, None));
        let turn = turn_of(&second, 0);
        assert!(matches!(third.decode_step(0), DecodeStep::Running));
        turn.decoded(&elements(b"b"));
        assert_eq!(third.decoded().await, elements(b"b"));
    }

    #[tokio::test]
    async fn decoder_that_was_left_goes_on_for_those_who_come_later() {
        let table = Arc::<RunningDecodes>::default();
        let first = table.join(key(0));
        let turn = turn_of(&first, 0);
        drop(first);
        let second = table.join(key(0));
        assert!(matches!(second.decode_step(0), DecodeStep::Running));
        turn.decoded(&elements(b"c"));
        assert_eq!(second.decoded().await, elements(b"c"));
        drop(second);
        assert_eq!(table.len(), 0);
    }

    #[tokio::test]
    async fn normal_priority_does_not_wait_for_low_priority() {
        let table = Arc::<RunningDecodes>::default();
        let [low, normal, another] = [(); 3].map(|()| table.join(key(0)));
        let slow = turn_of(&low, 10);
        assert!(matches!(another.decode_step(10), DecodeStep::Running), "as low");
        assert_eq!(normal.ended(0).now_or_never(), Some(None));
        let fast = turn_of(&normal, 0);
        assert!(matches!(another.decode_step(5), DecodeStep::Running), "the one that took over is waited for");
        drop(slow);
        assert!(matches!(another.decode_step(0), DecodeStep::Running), "the slow one has no turn to end");
        fast.decoded(&elements(b"d"));
        assert_eq!(low.decoded().await, elements(b"d"));
    }

    #[tokio::test]
    async fn normal_priority_fetches_what_low_priority_has_not_decoded() {
        let table = Arc::<RunningDecodes>::default();
        let [low, normal] = [(); 2].map(|()| table.join(key(0)));
        let FetchStep::Fetch(slow) = low.fetch_step(10).await else { panic!("nothing is fetched") };
        let Some(FetchStep::Fetch(fast)) = normal.fetch_step(0).now_or_never() else { panic!("it waits") };
        slow.fetched(Bytes::from_static(b"late"));
        assert!(low.fetch_step(10).now_or_never().is_none(), "the other one fetches for both");
        fast.fetched(Bytes::from_static(b"encoded"));
        assert!(matches!(low.fetch_step(10).await, FetchStep::Fetched(encoded) if encoded == "encoded"));
        let _slow = turn_of(&low, 10);
        assert!(matches!(normal.fetch_step(0).now_or_never(), Some(FetchStep::Fetch(_))));
    }

    #[tokio::test]
    async fn one_fetches_for_all_and_another_one_if_it_fails() {
        let table = Arc::<RunningDecodes>::default();
        let [first, second] = [(); 2].map(|()| table.join(key(0)));
        let FetchStep::Fetch(turn) = first.fetch_step(0).await else { panic!("nothing is fetched") };
        let mut waiting = Box::pin(second.fetch_step(0));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(turn);
        let FetchStep::Fetch(turn) = waiting.await else { panic!("the first one failed") };
        let mut waiting = Box::pin(first.fetch_step(0));
        assert!(waiting.as_mut().now_or_never().is_none());
        turn.fetched(Bytes::from_static(b"encoded"));
        assert!(matches!(waiting.await, FetchStep::Fetched(encoded) if encoded == "encoded"));
        let turn = turn_of(&first, 0);
        drop(turn);
        assert!(matches!(second.fetch_step(0).await, FetchStep::Fetch(_)), "the decoder had the encoded chunk");
    }

    #[test]
    fn scans_of_one_array_have_company() {
        let table = Arc::<RunningDecodes>::default();
        let array = |number| (NodePath::parse("/a").unwrap(), number);
        let (one, other) = (table.start_scan(array(1)), table.start_scan(array(2)));
        assert!(!one.has_company() && !other.has_company());
        let two = table.start_scan(array(1));
        assert!(one.has_company() && two.has_company() && !other.has_company());
        drop(one);
        assert!(!two.has_company());
        drop((two, other));
        assert!(table.scans.lock().is_empty());
    }
}
