//! What was written when, and whether a reading can be what came of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard},
};

use super::region::{COLUMNS, ROWS, Region};

/// All writes so far. Time is counted in events, so that of any two one is the earlier.
#[derive(Debug)]
pub struct Journal(Mutex<State>);

/// What a reading that begins now must not lack.
#[derive(Clone, Debug)]
pub struct Moment {
    /// For each element when the last of the writes began that were acknowledged by now.
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

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is under way.
    Open,
    /// It was acknowledged at this time.
    Acknowledged(u64),
    /// It must never be seen: it was refused, or had not been applied when the server died.
    Nothing,
}

impl Default for Journal {
    fn default() -> Self {
        Self(Mutex::new(State { clock: 0, writes: HashMap::new(), floor: vec![0; ROWS * COLUMNS] }))
    }
}

impl Journal {
    /// Notes that a write begins; gives the stamp that it is to write.
    pub(crate) fn begin(&self, region: &Region) -> u64 {
        let mut state = self.state();
        let began = state.tick();
        // The time is the stamp: no other write has it, and it is not zero, which the array is full of at first.
        state.writes.insert(began, Write { region: region.clone(), began, end: End::Open });
        began
    }

    /// Notes that it was acknowledged.
    pub(crate) fn acknowledge(&self, stamp: u64) {
        let mut state = self.state();
        let now = state.tick();
        state.acknowledge(stamp, now);
    }

    /// Notes that it was refused.
    pub(crate) fn refuse(&self, stamp: u64) {
        self.state().write(stamp).end = End::Nothing;
    }

    /// The moment before a reading.
    pub(crate) fn now(&self) -> Moment {
        Moment { floor: self.state().floor.clone() }
    }

    /// Settles the writes that were under way when the server died: those that `found` shows are there, and the others must never be seen. Tells how many are there.
    pub(crate) fn settle(&self, pending: &[u64], found: &[u64]) -> u64 {
        let seen: BTreeSet<_> = found.iter().copied().collect();
        let mut state = self.state();
        let now = state.tick();
        for stamp in pending {
            match seen.contains(stamp) {
                true => state.acknowledge(*stamp, now),
                // What was applied and written over at once cannot come back either.
                false => state.write(*stamp).end = End::Nothing,
            }
        }
        pending.iter().filter(|stamp| seen.contains(stamp)).count() as u64
    }

    /// Whether a reading that began at `before` can be: all writes that had been acknowledged, one after another in some order, and of the others each wholly or not at all.
    ///
    /// # Errors
    ///
    /// Where it cannot, with what is wrong.
    pub(crate) fn check(&self, before: &Moment, found: &[u64]) -> Result<(), String> {
        // Only what is seen is looked at, so that writers do not wait for the whole check.
        let seen: BTreeSet<u64> = found.iter().copied().filter(|stamp| *stamp != 0).collect();
        let mut writes = BTreeMap::new();
        {
            let state = self.state();
            for stamp in seen {
                let write = state.writes.get(&stamp).ok_or_else(|| format!("nobody wrote {stamp:#x}"))?;
                writes.insert(stamp, write.clone());
            }
        }
        for (at, (stamp, floor)) in found.iter().zip(&before.floor).enumerate() {
            let (row, column) = (at / COLUMNS, at % COLUMNS);
            let end = writes.get(stamp).map_or(End::Acknowledged(0), |write| write.end);
            match end {
                End::Nothing => return Err(format!("[{row}, {column}] has {stamp}, which was not written")),
                End::Acknowledged(end) if end < *floor => {
                    return Err(format!("[{row}, {column}] has {stamp}, and the later write {floor} is lost"));
                }
                _ => {}
            }
        }
        in_order(&writes, found)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }
}

/// Whether the writes that are seen have an order in which one after another makes what was found.
fn in_order(writes: &BTreeMap<u64, Write>, found: &[u64]) -> Result<(), String> {
    // Whoever is seen within the region of another came after it.
    let mut after: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (stamp, write) in writes {
        let above = write.region.elements().map(|at| found[at]).filter(|other| other != stamp);
        after.insert(*stamp, above.collect());
    }
    for (stamp, above) in &after {
        if above.contains(&0) {
            return Err(format!("of the write {stamp} only a part is there"));
        }
        if let Some(other) =
            above.iter().find(|other| matches!(writes[other].end, End::Acknowledged(end) if end < *stamp))
        {
            return Err(format!(
                "of the write {stamp} only a part is there: {other} was done before it began, and is seen in its region"
            ));
        }
    }
    // Those that nothing came after are taken away, one after another; what cannot be taken away goes round in a circle.
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

    /// Two writes that overlap but are not the same.
    fn two(journal: &Journal) -> [(u64, Region); 2] {
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
        let [one, other] = two(&journal);
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
        let [one, other] = two(&journal);
        let empty = vec![0; ROWS * COLUMNS];
        let wrong = |found: &[u64]| journal.check(&journal.now(), found).unwrap_err();

        // Mixed: each is above the other somewhere.
        let mut mixed = empty.clone();
        put(&mut mixed, &one);
        put(&mut mixed, &other);
        let common = one.1.elements().find(|at| mixed[*at] == other.0).unwrap();
        mixed[common] = one.0;
        assert!(wrong(&mixed).contains("mixed"), "{}", wrong(&mixed));

        // Torn: an element of it is not there.
        let mut torn = empty.clone();
        put(&mut torn, &one);
        torn[one.1.elements().last().unwrap()] = 0;
        assert!(wrong(&torn).contains("part"), "{}", wrong(&torn));

        // Lost: it was acknowledged.
        journal.acknowledge(one.0);
        assert!(wrong(&empty).contains("lost"), "{}", wrong(&empty));
        let mut forged = empty.clone();
        forged[0] = 12345;
        assert!(wrong(&forged).contains("nobody"), "{}", wrong(&forged));
    }

    #[test]
    fn write_missing_after_a_crash_must_not_appear_later() {
        let journal = Journal::default();
        let [one, other] = two(&journal);
        let mut found = vec![0; ROWS * COLUMNS];
        put(&mut found, &one);
        assert_eq!(journal.settle(&[one.0, other.0], &found), 1);
        journal.check(&journal.now(), &found).unwrap();
        put(&mut found, &other);
        assert!(journal.check(&journal.now(), &found).unwrap_err().contains("not written"));
    }
}
