//! The kinds of recorded runs. To add one, add a row to [`KINDS`] and a function that generates its steps.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, rngs::SmallRng, seq::IndexedRandom};

use crate::crash_states::uploads::End;

/// A kind of run.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) base: Base,
    /// The number of tasks that change the store concurrently, each with its own keys.
    pub(crate) tasks: u32,
    /// Generates the steps of a task.
    pub(crate) steps: fn(&mut SmallRng, u32) -> Vec<Step>,
    /// The event at which crashes start.
    pub(crate) from: From,
    /// True if the store is closed at the end.
    pub(crate) closes: bool,
    pub(crate) sizes: Sizes,
    pub(crate) full: Option<Full>,
    /// The situations that a run must reach; otherwise it proves nothing.
    pub(crate) covers: &'static [Coverage],
}

/// The initial directory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Nothing,
    /// A store of format 1, as a program of that version left it: `closed` or `crashed`.
    Format1(&'static str),
    /// The directory that a run of this kind leaves.
    After(&'static str),
    /// A crash state of a run of this kind, then a crash state of the run that starts from it, and so on, this many
    /// times.
    Crashes(&'static str, u32),
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Begin,
    Opened,
    Closing,
}

/// The sizes of the store's files and buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// A checkpoint every few commits.
    Small,
    /// Checkpoints that span several of sled's segments, which are small.
    ManySegments,
    /// A checkpoint every few commits, and an index that soon needs new blocks.
    Tight,
}

/// A disk that is full for a while: writes to `index*` and `log` fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// The number of bytes written there before the disk is full, plus a random part of up to the same number.
    pub(crate) after_bytes: u64,
    pub(crate) millis: u64,
}

/// A situation that a run can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// sled reuses several segments.
    SegmentsReused,
    /// Another generation of the index becomes current.
    Compacted,
    /// sled writes a page to a file of its own.
    Blobs,
    /// A sweep starts and continues to its second phase.
    Swept,
    /// A store of format 1 gets a log.
    Upgraded,
    /// A write to the index fails because the disk is full.
    Full,
}

/// The next step of a task.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sets with [`zarrd_store::WriteableStore::set`].
    Set(String, u32),
    Erase(String),
    /// Uploads the value of a key in parts.
    Upload(String, u32, End),
    /// Stages and commits values of these lengths, and erases.
    Commit(Vec<(String, Option<u32>)>),
    /// Erases prefixes and sets keys, some of them below, in one commit.
    Replace(Vec<String>, Vec<(String, u32)>),
    ErasePrefix(String),
    /// Reads all keys of a prefix through a snapshot and retains it for the next steps.
    Snapshot(String),
    /// Copies the index to a new generation.
    Compact,
    /// Waits for this number of milliseconds.
    Wait(u64),
}

const PLAIN: Kind = Kind {
    name: "",
    base: Base::Nothing,
    tasks: 1,
    steps: none,
    from: From::Opened,
    closes: false,
    sizes: Sizes::Small,
    full: None,
    covers: &[],
};

/// A start from a crash state of a kind, a few changes, and a close.
const fn again(name: &'static str, kind: &'static str, times: u32) -> Kind {
    Kind { name, base: Base::Crashes(kind, times), tasks: 2, steps: some, from: From::Begin, closes: true, ..PLAIN }
}

pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "create", steps: few, from: From::Begin, ..PLAIN },
    Kind { name: "close", tasks: 2, steps: some, from: From::Closing, closes: true, ..PLAIN },
    Kind { name: "start", base: Base::After("close"), from: From::Begin, closes: true, ..PLAIN },
    Kind { name: "steady", tasks: 4, steps: churn, ..PLAIN },
    again("recover", "steady", 3),
    Kind { name: "large", tasks: 3, steps: large, ..PLAIN },
    again("large-again", "large", 2),
    Kind { name: "uploads", tasks: 3, steps: uploads, ..PLAIN },
    again("uploads-again", "uploads", 2),
    Kind { name: "erase", steps: erase, ..PLAIN },
    Kind { name: "sweep", tasks: 2, steps: sweep, covers: &[Coverage::Swept], ..PLAIN },
    again("sweep-again", "sweep", 2),
    Kind { name: "compact", tasks: 3, steps: compact, covers: &[Coverage::Compacted], ..PLAIN },
    again("compact-again", "compact", 2),
    Kind {
        name: "reuse",
        tasks: 2,
        steps: rewrite,
        sizes: Sizes::ManySegments,
        covers: &[Coverage::SegmentsReused],
        ..PLAIN
    },
    again("reuse-again", "reuse", 2),
    Kind { name: "blobs", tasks: 2, steps: broad, sizes: Sizes::ManySegments, covers: &[Coverage::Blobs], ..PLAIN },
    Kind { name: "upgrade", covers: &[Coverage::Upgraded], ..upgrade("closed") },
    Kind { name: "upgrade-crashed", covers: &[Coverage::Upgraded], ..upgrade("crashed") },
    again("upgrade-again", "upgrade-crashed", 2),
    Kind {
        name: "full",
        tasks: 3,
        steps: through_full,
        sizes: Sizes::Tight,
        full: Some(Full { after_bytes: 200 << 10, millis: 2_000 }),
        covers: &[Coverage::Full],
        ..PLAIN
    },
    again("full-again", "full", 1),
];

const fn upgrade(state: &'static str) -> Kind {
    Kind { base: Base::Format1(state), tasks: 2, steps: some, from: From::Begin, closes: true, ..PLAIN }
}

pub(crate) fn named(name: &str) -> &'static Kind {
    let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    KINDS
        .iter()
        .find(|kind| kind.name == name)
        .unwrap_or_else(|| panic!("unknown kind {name}; known kinds: {}", known()))
}

/// The prefix of names that stand for intents in commits: an existing intent is settled.
pub(crate) const INTENTS: &str = "intents/";
/// The prefix of the keys that are swept.
pub(crate) const SWEPT: &str = "swept/";

fn key(task: u32, number: u32) -> String {
    format!("t{task}/{}/k{number}", number % 3)
}

/// The length of a value: mostly stored in the record, sometimes in a file, rarely in one of several blocks.
fn len(random: &mut SmallRng) -> u32 {
    match random.random_range(0..100) {
        0..70 => random.random_range(8..400),
        70..85 => random.random_range(400..4097),
        85..99 => random.random_range(4097..20_000),
        _ => random.random_range(130_000..300_000),
    }
}

fn none(_: &mut SmallRng, _: u32) -> Vec<Step> {
    Vec::new()
}

fn few(random: &mut SmallRng, task: u32) -> Vec<Step> {
    vec![
        Step::Set(key(task, 0), 100),
        Step::Set(key(task, 1), 9_000),
        Step::Commit(vec![(key(task, 0), Some(len(random))), (key(task, 2), Some(5_000)), (key(task, 3), Some(8))]),
    ]
}

fn some(random: &mut SmallRng, task: u32) -> Vec<Step> {
    steps(random, task, 12, 8)
}

fn churn(random: &mut SmallRng, task: u32) -> Vec<Step> {
    steps(random, task, 50, 20)
}

fn steps(random: &mut SmallRng, task: u32, count: u32, keys: u32) -> Vec<Step> {
    let one = |random: &mut SmallRng| match random.random_range(0..100) {
        0..55 => Step::Set(key(task, random.random_range(0..keys)), len(random)),
        55..70 => Step::Erase(key(task, random.random_range(0..keys))),
        70..95 => commit(random, task, keys),
        95..97 => Step::ErasePrefix(format!("t{task}/{}/", random.random_range(0..3))),
        _ => Step::Snapshot(format!("t{task}/")),
    };
    (0..count).map(|_| one(random)).collect()
}

fn commit(random: &mut SmallRng, task: u32, keys: u32) -> Step {
    let all: Vec<u32> = (0..keys).collect();
    let count = random.random_range(2..=6);
    let chosen: Vec<u32> = all.sample(random, count).copied().collect();
    let change = |number| (key(task, number), (!random.random_ratio(1, 4)).then(|| len(random)));
    let mut changes: Vec<_> = chosen.into_iter().map(change).collect();
    if random.random_bool(0.4) {
        changes.push((format!("{INTENTS}{task}/{}", random.random_range(0..3)), Some(random.random_range(8..4_000))));
    }
    Step::Commit(changes)
}

/// Large commits, which also erase prefixes, alongside small ones.
fn large(random: &mut SmallRng, task: u32) -> Vec<Step> {
    if task == 2 {
        return steps(random, task, 60, 10);
    }
    let mut steps = Vec::new();
    for round in 0..4 {
        let count = [3000, 1500, 2500, 1200][round];
        if round % 2 == 1 {
            let prefixes = vec![format!("t{task}/1/"), format!("t{task}/2/")];
            let keys = (0..count).filter(|number| number % 3 != 2);
            let sets = keys.map(|number| (key(task, number), random.random_range(8..100))).collect();
            steps.push(Step::Replace(prefixes, sets));
            steps.push(Step::Set(key(task, 8), 5_000));
            continue;
        }
        let mut change =
            |number| (key(task, number), (!random.random_ratio(1, 10)).then(|| random.random_range(8..100)));
        steps.push(Step::Commit((0..count).map(&mut change).collect()));
        steps.push(Step::Set(key(task, 7), 300));
        steps.push(Step::Replace(vec![format!("t{task}/0/")], vec![(key(task, 3), 200), (key(task, 4), 4_500)]));
    }
    steps
}

/// Uploads that are completed, aborted and left, between other changes of the same keys and of the root.
fn uploads(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let mut all = Vec::new();
    for _ in 0..12 {
        let end = *[End::Completed, End::Completed, End::Aborted, End::Open].choose(random).expect("an end");
        // Parts with files of their own are joined, others copied.
        let len = if random.random_bool(0.5) { random.random_range(13_000..40_000) } else { len(random).min(40_000) };
        all.push(Step::Upload(key(task, random.random_range(0..6)), len, end));
        all.extend(steps(random, task, 3, 6));
    }
    all
}

fn erase(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    let fill = |random: &mut SmallRng, count| {
        Step::Commit((0..count).map(|number| (key(task, number), Some(random.random_range(8..60)))).collect())
    };
    let prefix = format!("t{task}/");
    steps.push(fill(random, 3000));
    steps.extend((0..6).map(|number| Step::Set(key(task, number * 17), len(random))));
    steps.push(Step::Set("elsewhere/a".to_owned(), 50));
    steps.push(Step::ErasePrefix(prefix.clone()));
    steps.extend((0..12).map(|number| Step::Set(key(task, number * 11), len(random))));
    steps.push(fill(random, 500));
    steps.push(Step::ErasePrefix(format!("{prefix}1/")));
    steps.push(Step::Set(key(task, 1), 5_000));
    steps.push(Step::ErasePrefix(prefix));
    steps.push(Step::Set(key(task, 2), 70));
    steps
}

/// Prefixes with more keys than are erased at once; keys are set again below them during the sweep.
fn sweep(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let (outer, inner) = (format!("{SWEPT}{task}/"), format!("{SWEPT}{task}/1/"));
    let name = |number: u32| format!("{SWEPT}{task}/{}/k{number}", number % 3);
    let mut steps = Vec::new();
    for round in 0..3 {
        steps.push(Step::Commit((0..4500).map(|number| (name(number), Some(random.random_range(8..40)))).collect()));
        steps.push(Step::Set(name(round), 6_000));
        steps.push(Step::Wait(60));
        steps.push(Step::ErasePrefix(if round == 1 { inner.clone() } else { outer.clone() }));
        // More than fits the buffer, so that checkpoints occur during the sweep.
        for number in 0..40 {
            steps.push(Step::Set(name(number * 3 + random.random_range(0..3)), len(random).min(20_000)));
        }
        steps.push(Step::ErasePrefix(inner.clone()));
        steps.extend((0..20).map(|number| Step::Set(name(number * 7), random.random_range(8..600))));
        steps.push(Step::Replace(vec![outer.clone()], (0..30).map(|number| (name(number), 300)).collect()));
        steps.push(Step::Wait(30));
    }
    steps
}

fn compact(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let mut all = churn(random, task);
    if task == 0 {
        // These keys are copied last, so that the keys changed concurrently were copied before.
        let many = (0..8000).map(|number| (format!("z/k{number}"), Some(random.random_range(8..40)))).collect();
        all.insert(0, Step::Commit(many));
        all.insert(10, Step::Compact);
        all.insert(30, Step::ErasePrefix("z/".to_owned()));
        all.insert(32, Step::Compact);
        all.push(Step::Compact);
    }
    all.extend(steps(random, task, 10, 20));
    all
}

/// Some MiB of small values for a few hundred keys.
fn rewrite(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let one = |random: &mut SmallRng| match random.random_range(0..12) {
        0 => Step::Erase(key(task, random.random_range(0..300))),
        _ => {
            let change = |random: &mut SmallRng| {
                let len = (!random.random_ratio(1, 8)).then(|| random.random_range(100..700));
                (random.random_range(0..300), len)
            };
            let changes: BTreeMap<u32, _> = (0..60).map(|_| change(random)).collect();
            Step::Commit(changes.into_iter().map(|(number, len)| (key(task, number), len)).collect())
        }
    };
    (0..120).map(|_| one(random)).collect()
}

/// Values of the largest size stored in records, so that pages are large too.
fn broad(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let mut all = Vec::new();
    for _ in 0..40 {
        let numbers: BTreeSet<u32> = (0..20).map(|_| random.random_range(0..100)).collect();
        let changes = numbers.into_iter().map(|number| (key(task, number), Some(random.random_range(2_000..4_096))));
        all.push(Step::Commit(changes.collect()));
    }
    all
}

fn through_full(random: &mut SmallRng, task: u32) -> Vec<Step> {
    let mut all = steps(random, task, 100, 30);
    if task == 0 {
        all.insert(20, Step::Compact);
        all.insert(50, Step::Compact);
    }
    all.push(Step::Wait(2_500));
    all.extend(steps(random, task, 15, 20));
    all
}
