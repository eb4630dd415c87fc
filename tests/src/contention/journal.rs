//! The journal of writes, which decides whether the result of a read is consistent with them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard},
};

use super::region::{COLUMNS, ROWS, Region};

/// All writes so far. Time is counted in events, so any two of them are ordered.
#[derive(Debug)]
pub struct Journal(Mutex<State>);

/// The state at the start of a read: the writes that it must include.
#[derive(Clone, Debug)]
pub struct ReadStart {
    /// For each element, the start time of the last write acknowledged by now.
    floor: Vec<u64>,
}

#[derive(Debug)]
struct State {
    clock: u64,
    writes: HashMap<u64, Write>,
    floor: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Write {
    region: Region,
    began: u64,
    end: End,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In progress.
    Open,
    /// Acknowledged at this time.
    Acknowledged(u64),
    /// It must never become visible: it was rejected, or was not applied when the server died.
    NotApplied,
}

impl Default for Journal {
    fn default() -> Self {
        Self(Mutex::new(State { clock: 0, writes: HashMap::new(), floor: vec![0; ROWS * COLUMNS] }))
    }
}

impl Journal {
    /// Records the start of a write; returns the stamp that it must write.
    pub(crate) fn begin(&self, region: &Region) -> u64 {
        let mut state = self.state();
        let began = state.tick();
        // The time is the stamp: it is unique, and not zero, which is the initial value of the array.
        state.writes.insert(began, Write { region: region.clone(), began, end: End::Open });
        began
    }

    /// Records an acknowledgement.
    pub(crate) fn acknowledge(&self, stamp: u64) {
        let mut state = self.state();
        let now = state.tick();
        state.acknowledge(stamp, now);
    }

    /// Records a rejection.
    pub(crate) fn reject(&self, stamp: u64) {
        self.state().write(stamp).end = End::NotApplied;
    }

    /// The state before a read.
    pub(crate) fn now(&self) -> ReadStart {
        ReadStart { floor: self.state().floor.clone() }
    }

    /// Settles the writes that were in progress when the server died: those visible in `found` were applied, the others
    /// must never become visible. Returns the number applied.
    pub(crate) fn settle(&self, pending: &[u64], found: &[u64]) -> u64 {
        let visible: BTreeSet<_> = found.iter().copied().collect();
        let mut state = self.state();
        let now = state.tick();
        for stamp in pending {
            match visible.contains(stamp) {
                true => state.acknowledge(*stamp, now),
                // A write that was applied and immediately overwritten cannot come back either.
                false => state.write(*stamp).end = End::NotApplied,
            }
        }
        pending.iter().filter(|stamp| visible.contains(stamp)).count() as u64
    }

    /// Checks the result of a read that started at `before`: it must be the result of all writes acknowledged by then,
    /// in some order, and of each other write completely or not at all.
    ///
    /// # Errors
    ///
    /// If the result is inconsistent, with the reason.
    pub(crate) fn check(&self, before: &ReadStart, found: &[u64]) -> Result<(), String> {
        // Only the visible stamps are examined, so that writers do not wait for the whole check.
        let visible: BTreeSet<u64> = found.iter().copied().filter(|stamp| *stamp != 0).collect();
        let mut writes = BTreeMap::new();
        {
            let state = self.state();
            for stamp in visible {
                let write = state.writes.get(&stamp).ok_or_else(|| format!("no write has the stamp {stamp:#x}"))?;
                writes.insert(stamp, write.clone());
            }
        }
        for (at, (stamp, floor)) in found.iter().zip(&before.floor).enumerate() {
            let (row, column) = (at / COLUMNS, at % COLUMNS);
            let end = writes.get(stamp).map_or(End::Acknowledged(0), |write| write.end);
            match end {
                End::NotApplied => return Err(format!("[{row}, {column}] has {stamp}, which was not written")),
                End::Acknowledged(end) if end < *floor => {
                    return Err(format!("[{row}, {column}] has {stamp}, and the later write {floor} is lost"));
                }
                _ => {}
            }
        }
        in_order(&writes, found)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the lock is not poisoned")
    }
}

/// Checks that the visible writes have an order that produces this result.
fn in_order(writes: &BTreeMap<u64, Write>, found: &[u64]) -> Result<(), String> {
    // A stamp visible within the region of another write was written after it.
    let mut after: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (stamp, write) in writes {
        let above = write.region.elements().map(|at| found[at]).filter(|other| other != stamp);
        after.insert(*stamp, above.collect());
    }
    for (stamp, above) in &after {
        if above.contains(&0) {
            return Err(format!("the write {stamp} is torn"));
        }
        if let Some(other) =
            above.iter().find(|other| matches!(writes[other].end, End::Acknowledged(end) if end < *stamp))
        {
            return Err(format!(
                "the write {stamp} is torn: {other} completed before it started, but is visible in its region"
            ));
        }
    }
    // Remove the writes without successors, one after another; the rest forms a cycle.
    while !after.is_empty() {
        let last: Vec<u64> = after.iter().filter(|(_, above)| above.is_empty()).map(|(stamp, _)| *stamp).collect();
        if last.is_empty() {
            return Err(format!("these writes are mixed: {:?}", after.keys().collect::<Vec<_>>()));
        }
        for stamp in last {
            after.remove(&stamp);
            for above in after.values_mut() {
                above.remove(&stamp);
            }
        }
    }
    Ok(())
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn write(&mut self, stamp: u64) -> &mut Write {
        self.writes.get_mut(&stamp).expect("a write that began")
    }

    fn acknowledge(&mut self, stamp: u64, now: u64) {
        let write = self.write(stamp);
        write.end = End::Acknowledged(now);
        let (region, began) = (write.region.clone(), write.began);
        for at in region.elements() {
            self.floor[at] = self.floor[at].max(began);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    /// Two writes that overlap but are not equal.
    fn overlapping_writes(journal: &Journal) -> [(u64, Region); 2] {
        let mut random = StdRng::seed_from_u64(3);
        let mut regions = std::iter::repeat_with(|| Region::choose(&mut random, 0, 16));
        loop {
            let (one, other) = (regions.next().unwrap(), regions.next().unwrap());
            let common = one.elements().filter(|at| other.elements().any(|also| also == *at)).count();
            if common > 1 && one != other {
                return [one, other].map(|region| (journal.begin(&region), region));
            }
        }
    }

    fn put(found: &mut [u64], (stamp, region): &(u64, Region)) {
        region.elements().for_each(|at| found[at] = *stamp);
    }

    #[test]
    fn sequential_writes_pass_the_check() {
        let journal = Journal::default();
        let [one, other] = overlapping_writes(&journal);
        let mut found = vec![0; ROWS * COLUMNS];
        journal.check(&journal.now(), &found).unwrap();
        for writes in [[&one, &other], [&other, &one]] {
            let mut found = found.clone();
            for write in writes {
                put(&mut found, write);
            }
            journal.check(&journal.now(), &found).unwrap();
        }
        put(&mut found, &one);
        journal.acknowledge(one.0);
        journal.check(&journal.now(), &found).unwrap();
    }

    #[test]
    fn lost_torn_and_mixed_writes_are_detected() {
        let journal = Journal::default();
        let [one, other] = overlapping_writes(&journal);
        let empty = vec![0; ROWS * COLUMNS];
        let inconsistent = |found: &[u64]| journal.check(&journal.now(), found).unwrap_err();

        // Mixed: each write covers the other somewhere.
        let mut mixed = empty.clone();
        put(&mut mixed, &one);
        put(&mut mixed, &other);
        let common = one.1.elements().find(|at| mixed[*at] == other.0).unwrap();
        mixed[common] = one.0;
        assert!(inconsistent(&mixed).contains("mixed"), "{}", inconsistent(&mixed));

        // Torn: an element of the write is missing.
        let mut torn = empty.clone();
        put(&mut torn, &one);
        torn[one.1.elements().last().unwrap()] = 0;
        assert!(inconsistent(&torn).contains("torn"), "{}", inconsistent(&torn));

        // Lost: the write was acknowledged.
        journal.acknowledge(one.0);
        assert!(inconsistent(&empty).contains("lost"), "{}", inconsistent(&empty));
        let mut forged = empty.clone();
        forged[0] = 12345;
        assert!(inconsistent(&forged).contains("no write has"), "{}", inconsistent(&forged));
    }

    #[test]
    fn write_missing_after_a_crash_must_not_appear_later() {
        let journal = Journal::default();
        let [one, other] = overlapping_writes(&journal);
        let mut found = vec![0; ROWS * COLUMNS];
        put(&mut found, &one);
        assert_eq!(journal.settle(&[one.0, other.0], &found), 1);
        journal.check(&journal.now(), &found).unwrap();
        put(&mut found, &other);
        assert!(journal.check(&journal.now(), &found).unwrap_err().contains("not written"));
    }
}
