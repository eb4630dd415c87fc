//! Units that are cached and only have to be written: a few jobs take one after another, since to hand each to a thread
//! takes as long as to write a small one.

use std::{collections::VecDeque, sync::Arc};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use zarrd_codec::Elements;
use zarrd_executor::Cost;

use super::{context::ReadContext, sink::ElementSink, unit::DecodeUnit};
use crate::error::ArrayError;

/// The decoded bytes after which a writer lets the jobs of others have its thread.
const TURN_BYTES: u64 = 8 << 20;

/// The units that are written without waking the assembly, at most: it returns the segments that are full.
const MAX_UNNOTICED: usize = 4;

/// A cached unit to be written.
#[derive(Debug)]
pub(crate) struct CachedUnit {
    pub(crate) unit: DecodeUnit,
    pub(crate) elements: Elements,
    pub(crate) sink: Arc<dyn ElementSink>,
    /// The memory that it takes of what the jobs of a read share, in bytes.
    pub(crate) memory: u64,
}

/// The cached units of a read that are not written yet.
#[derive(Debug)]
pub(crate) struct CachedUnits {
    queue: Mutex<Queue>,
    /// Wakes the assembly, which adds units, when few are left.
    assembly: AtomicWaker,
    /// The number of units that are few.
    few: usize,
    /// The number of writers, at most.
    most_writers: usize,
}

#[derive(Debug, Default)]
struct Queue {
    units: VecDeque<CachedUnit>,
    /// The writers that run. Each takes units until there are none, so there is one if there are units.
    writers: usize,
    /// The memory of units that were written since the assembly asked, in bytes.
    released: u64,
}

impl CachedUnits {
    /// No units yet, of a read with at most `jobs` jobs at a time, on a machine with `cores` cores.
    pub(crate) fn new(jobs: usize, cores: usize) -> Self {
        let few = (jobs / 2).max(jobs.saturating_sub(MAX_UNNOTICED));
        Self { queue: Mutex::default(), assembly: AtomicWaker::new(), few, most_writers: cores.max(1) }
    }

    /// The number of units that no writer has taken yet.
    pub(crate) fn len(&self) -> usize {
        self.queue.lock().units.len()
    }

    /// Wakes a task once few units are left. Returns the memory of units that were written since the last call, in bytes.
    pub(crate) fn poll_released(&self, waker: &std::task::Waker) -> u64 {
        self.assembly.register(waker);
        std::mem::take(&mut self.queue.lock().released)
    }

    /// Adds a unit. If true is returned, the caller has to [write](Self::write) in a task of its own.
    #[must_use]
    pub(crate) fn push(&self, unit: CachedUnit) -> bool {
        let writers = self.most_writers.min(unit.sink.most_writers());
        let mut queue = self.queue.lock();
        queue.units.push_back(unit);
        let is_short = queue.writers < writers;
        queue.writers += usize::from(is_short);
        is_short
    }

    /// Drops all units that no writer has taken yet, for nobody waits for them any more.
    pub(crate) fn clear(&self) {
        self.queue.lock().units.clear();
    }

    /// Writes units until there are none.
    pub(crate) async fn write(self: Arc<Self>, source: Arc<ReadContext>) -> Result<(), ArrayError> {
        while let Some(steps) = self.next_work(&source) {
            let (units, work) = (self.clone(), source.clone());
            source.context.run(Cost::codec(steps), move || units.write_turn(&work)).await??;
        }
        Ok(())
    }

    /// The work of the units, in steps; `None` if the writer ends, since there are none.
    fn next_work(&self, source: &ReadContext) -> Option<u64> {
        let mut queue = self.queue.lock();
        if queue.units.is_empty() {
            queue.writers = queue.writers.saturating_sub(1);
            return None;
        }
        let work = queue.units.iter().map(|CachedUnit { unit, sink, .. }| sink.write_work(source, &unit.selection));
        Some(work.fold(0, u64::saturating_add))
    }

    /// Writes some units.
    fn write_turn(&self, source: &ReadContext) -> Result<(), ArrayError> {
        let mut bytes = 0_u64;
        while bytes < TURN_BYTES
            && let Some(CachedUnit { unit, elements, sink, memory }) = self.pop()
        {
            sink.write(source, &unit.shape, &unit.selection, &elements)?;
            bytes = bytes.saturating_add(unit.decoded_len()).max(1);
            self.queue.lock().released += memory;
        }
        Ok(())
    }

    fn pop(&self) -> Option<CachedUnit> {
        let mut queue = self.queue.lock();
        let unit = queue.units.pop_front();
        let is_low = queue.units.len() <= self.few;
        drop(queue);
        if is_low && unit.is_some() {
            self.assembly.wake();
        }
        unit
    }
}
