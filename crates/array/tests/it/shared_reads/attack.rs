//! Many clients that request the same few slices, and leave, fail, have other limits, or read slowly.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::{JoinHandle, yield_now},
    time::timeout,
};
use zarrd_array::{ArrayError, ArrayResult, Arrays, Caller, MemoryError, Options, ReadMetrics};
use zarrd_codec::Elements;
use zarrd_meta::{
    NodePath,
    selection::{ReadRequest, Selection},
};
use zarrd_store::StoreError;

use super::{SLICE_CHUNK, SLICE_CHUNKS, SLICE_STEP, TIMEOUT, all_is_released, element, gated, sharing_slices};
use crate::concurrent_reads::gzip;

const CLIENTS: u64 = 1_000;

/// One request of this number fails in the store.
const FAILING: u64 = 23;

/// The chunks of a slice that is too small to be cached.
const FEW_CHUNKS: u64 = 8;

/// The number of slices that are shared; they come first.
const LARGE_SLICES: u64 = 4;

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

/// The behaviour of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Patient,
    /// Its limit is smaller than the slice.
    Limited,
    /// It does not wait for memory.
    Hasty,
    /// It has what it reads until all others have ended.
    Slow,
    /// It leaves.
    Leaving,
}

/// What the request of a client ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Read,
    Refused,
    Failed,
    Left,
}

/// A slice, and its elements.
struct Slice {
    select: String,
    elements: Vec<u8>,
}

impl Slice {
    fn new(range: std::ops::Range<u64>) -> Self {
        let elements = range.clone().step_by(SLICE_STEP as usize).map(|index| element(0, index)).collect();
        Self { select: format!("{}:{}:{SLICE_STEP}", range.start, range.end), elements }
    }
}

/// What all clients share.
struct Attack {
    arrays: Arrays,
    slices: Vec<Slice>,
    metrics: Mutex<Vec<ReadMetrics>>,
    ended: watch::Sender<bool>,
}

impl Attack {
    /// Runs a client.
    async fn run(self: Arc<Self>, number: u64, behaviour: Behaviour) -> Outcome {
        let mut numbers = Numbers(number);
        // A slow client of a slice that is not shared has all memory of its read.
        let slices = if behaviour == Behaviour::Slow { LARGE_SLICES } else { self.slices.len() as u64 };
        let slice = &self.slices[numbers.below(slices) as usize];
        let claim = self.arrays.memory().claim(Caller::new(u128::from(number % 11)));
        let arrays = self.arrays.for_request(claim.clone(), None);
        let limit = slice.elements.len() as u64 - u64::from(behaviour == Behaviour::Limited);
        let request = ReadRequest::Select(Selection::parse(&slice.select).unwrap());
        let read = match arrays.read(&NodePath::parse("/a").unwrap(), None, &request, limit).await {
            Ok(read) => read,
            Err(ArrayError::SelectionTooLarge { .. }) if behaviour == Behaviour::Limited => return Outcome::Refused,
            Err(error) => panic!("{error}"),
        };
        assert_ne!(behaviour, Behaviour::Limited, "the limit is its own");
        self.metrics.lock().push(read.metrics());
        if behaviour == Behaviour::Hasty {
            claim.never_wait();
        }
        let mut read = Box::pin(self.read(ArrayResult::from(read), behaviour));
        if behaviour == Behaviour::Leaving {
            for _ in 0..numbers.below(400) {
                if read.as_mut().now_or_never().is_some() {
                    break;
                }
                yield_now().await;
            }
            return Outcome::Left;
        }
        match read.await {
            Ok(all) => {
                assert!(all == slice.elements, "a wrong answer");
                Outcome::Read
            }
            Err(ArrayError::Store(StoreError::NotInSnapshot { .. })) => Outcome::Failed,
            Err(ArrayError::Memory(MemoryError::Busy { .. } | MemoryError::TooManyRequests { .. }))
                if behaviour == Behaviour::Hasty =>
            {
                Outcome::Refused
            }
            Err(error) => panic!("{behaviour:?}: {error}"),
        }
    }

    async fn read(&self, result: ArrayResult, behaviour: Behaviour) -> Result<Vec<u8>, ArrayError> {
        let mut pieces = Box::pin(result.into_stream());
        let mut all = Vec::new();
        while let Some(piece) = pieces.next().await {
            let Elements::Fixed(piece) = piece? else { panic!("elements of variable length") };
            if behaviour == Behaviour::Slow {
                self.ended.subscribe().wait_for(|ended| *ended).await.unwrap();
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

/// The behaviour of a client with a number: a few of each kind among those that wait for their answer.
fn behaviour(number: u64) -> Behaviour {
    match Numbers(number ^ 0x5bd1).below(10) {
        0 => Behaviour::Limited,
        1 => Behaviour::Hasty,
        2 => Behaviour::Slow,
        3..=5 => Behaviour::Leaving,
        _ => Behaviour::Patient,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_for_slices_do_not_disturb_each_other() {
    let (store, gate) = gated(SLICE_CHUNKS, SLICE_CHUNK, &gzip(), |index| element(0, index)).await;
    gate.failing.store(FAILING, Relaxed);
    // The part that is reserved for small requests, for which these wait, is more than the slow ones have.
    let options = Options { max_memory: 512 << 20, slab_memory: 8 << 20, memory_timeout: TIMEOUT, ..sharing_slices() };
    // The cache has room for a part of the chunks.
    let arrays = Arrays::new(store, Options { cache_capacity: 6 << 20, ..options });
    let large = (0..LARGE_SLICES).map(|first| first..SLICE_CHUNKS * SLICE_CHUNK);
    let small = (0..4).map(|first| first * SLICE_CHUNK..(first + FEW_CHUNKS) * SLICE_CHUNK);
    let (slices, ended) = (large.chain(small).map(Slice::new).collect(), watch::Sender::new(false));
    let attack = Arc::new(Attack { arrays: arrays.clone(), slices, metrics: Mutex::default(), ended });
    let client = |number| {
        let behaviour = behaviour(number);
        (behaviour, tokio::spawn(attack.clone().run(number, behaviour)))
    };
    let clients: Vec<(Behaviour, JoinHandle<Outcome>)> = (0..CLIENTS).map(client).collect();
    gate.open.send_replace(true);
    let (slow, others): (Vec<_>, Vec<_>) =
        clients.into_iter().partition(|(behaviour, _)| *behaviour == Behaviour::Slow);
    let mut outcomes = Vec::new();
    for (_, client) in others {
        outcomes.push(timeout(TIMEOUT, client).await.unwrap().unwrap());
    }
    attack.ended.send_replace(true);
    for (_, client) in slow {
        outcomes.push(timeout(TIMEOUT, client).await.unwrap().unwrap());
    }
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count() as u64;
    let [read, refused, failed] = [Outcome::Read, Outcome::Refused, Outcome::Failed].map(count);
    assert!(read > 400 && refused > 50 && count(Outcome::Left) > 200, "{read} were read, {refused} refused");
    let failures = gate.failed.load(Relaxed);
    assert!(failures > 0 && failed <= failures, "{failed} requests failed for {failures} failures of the store");
    let decoded: u64 = attack.metrics.lock().iter().map(|metrics| metrics.stats().decoded).sum();
    assert!(decoded < 40 * SLICE_CHUNKS, "{decoded} chunks were decoded");
    all_is_released(&arrays).await;
}
