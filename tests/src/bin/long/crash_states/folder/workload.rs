//! The run that is recorded.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write as _,
    path::Path,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zarrd_store::{Key, Payload, Precondition, Prefix, Version, WriteableStore};

use super::{
    super::{
        history::{Change, describe},
        workload::{END, value},
    },
    contents::{DOCUMENTS, TreeDocuments, VALUES},
    engine::{CHUNK, CHUNKS, Engine},
};

/// The number of tasks that set and erase values, each with its own keys in directories that they share.
const VALUE_TASKS: u64 = 3;

/// The number of steps of each of them.
const VALUE_STEPS: usize = 14;

/// The number of tasks that make and erase trees.
const TREE_TASKS: u64 = 2;

/// The lengths of values: of less than a sector, of some sectors, and of more than is collected in memory.
const LENGTHS: [u32; 4] = [100, 3_000, 70_000, 1_300_000];

/// The state that the tasks share.
struct Run {
    engine: Engine,
    documents: TreeDocuments,
    notes: Mutex<File>,
    /// The id of the last operation, which fits into an element.
    last: AtomicU32,
}

/// Runs in a folder until the recorder stops it.
pub(super) fn run(arguments: &[String]) -> ExitCode {
    let [folder, notes, seed] = arguments else { panic!("the arguments of a workload") };
    let seed: u64 = seed.parse().expect("a seed");
    let notes = Mutex::new(File::create(notes).expect("make the notes"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let scratch = tempfile::tempdir().expect("a directory that is not recorded");
        let documents = TreeDocuments::read(&scratch.path().join("documents")).await;
        let engine = Engine::open(Path::new(folder)).await.expect("open the folder");
        let run = Arc::new(Run { engine, documents, notes, last: AtomicU32::new(0) });
        run.note("opened");
        let values = (0..VALUE_TASKS).map(|task| tokio::spawn(values(run.clone(), seed, task)));
        let trees = (0..TREE_TASKS).map(|task| tokio::spawn(trees(run.clone(), task)));
        futures::future::try_join_all(values.chain(trees)).await.expect("the tasks");
        run.note(END);
    });
    eprintln!("the recorder did not end the process");
    ExitCode::FAILURE
}

impl Run {
    /// Writes a line with one call, which the recorder takes as one note.
    fn note(&self, text: &str) {
        let written = self.notes.lock().expect("the notes").write(text.as_bytes()).expect("write a note");
        assert_eq!(written, text.len(), "a note was written in parts");
    }

    fn new_id(&self) -> u64 {
        u64::from(self.last.fetch_add(1, Ordering::SeqCst)) + 1
    }

    /// Notes that changes start, each of which is made by itself.
    fn start(&self, changes: &[(u64, Change)]) {
        changes
            .iter()
            .for_each(|(id, change)| self.note(&format!("b {}", describe(*id, std::slice::from_ref(change)))));
    }

    /// Notes that changes were acknowledged.
    fn end(&self, changes: &[(u64, Change)]) {
        changes.iter().for_each(|(id, _)| self.note(&format!("a {id}")));
    }

    /// The erases of some keys.
    fn erases(&self, keys: impl IntoIterator<Item = String>) -> Vec<(u64, Change)> {
        keys.into_iter().map(|key| (self.new_id(), (key, None))).collect()
    }
}

/// Sets, replaces, creates and erases values, and erases all of them once.
async fn values(run: Arc<Run>, seed: u64, task: u64) {
    let mut random = SmallRng::seed_from_u64(seed << 8 ^ task);
    let mut versions: BTreeMap<String, Version> = BTreeMap::new();
    for step in 0..VALUE_STEPS {
        if step == VALUE_STEPS * 2 / 3 {
            erase_prefix(&run, &format!("{VALUES}only-{task}/"), &mut versions).await;
            continue;
        }
        let directory = match random.random_range(0..3) {
            0 => format!("only-{task}/"),
            1 => "shared/deep/".to_owned(),
            _ => String::new(),
        };
        let name = format!("{VALUES}{directory}{task}-{}", random.random_range(0..3));
        let key = Key::parse(&name).expect("a key");
        let known = versions.get(&name).copied();
        if known.is_some() && random.random_bool(0.4) {
            let changes = run.erases([name.clone()]);
            run.start(&changes);
            let existed = run.engine.store.erase(&key, Precondition::none()).await.expect("erase a value");
            assert!(existed, "{name} had a value");
            versions.remove(&name);
            run.end(&changes);
            continue;
        }
        let precondition = match (known, random.random_bool(0.5)) {
            (None, true) => Precondition::absent(),
            (Some(version), true) => Precondition::at(version),
            (_, false) => Precondition::none(),
        };
        let (id, len) = (run.new_id(), LENGTHS[random.random_range(0..LENGTHS.len())]);
        let changes = [(id, (name.clone(), Some(len)))];
        run.start(&changes);
        let content = Payload::from_bytes(value(id, &name, len));
        let set = run.engine.store.set(&key, content, precondition).await.expect("set a value");
        versions.insert(name, set.version);
        run.end(&changes);
    }
}

async fn erase_prefix(run: &Run, prefix: &str, versions: &mut BTreeMap<String, Version>) {
    let below: Vec<String> = versions.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
    versions.retain(|key, _| !key.starts_with(prefix));
    let changes = run.erases(below);
    run.start(&changes);
    run.engine.store.erase_prefix(&Prefix::parse(prefix).expect("a prefix")).await.expect("erase a prefix");
    run.end(&changes);
}

/// Declares trees, writes regions of their arrays, and erases them: by the engine, and as a prefix.
async fn trees(run: Arc<Run>, task: u64) {
    for number in 0..3 {
        let tree = format!("t{task}{number}");
        let declared = DOCUMENTS.map(|name| {
            let (id, len) = run.documents.declared(&tree, name);
            (id, (format!("{tree}/{name}"), Some(len)))
        });
        run.start(&declared);
        run.engine.declare(&tree).await.expect("declare a tree");
        run.end(&declared);
        // All chunks; then the second half of one, and all of the next.
        for (first, start) in [(0, 0), (1, CHUNK + CHUNK / 2)] {
            write(&run, &tree, first, start).await;
        }
        if number == 0 {
            continue;
        }
        let keys = DOCUMENTS.iter().map(|name| format!("{tree}/{name}"));
        let changes = run.erases(keys.chain((0..CHUNKS).map(|chunk| chunk_key(&tree, chunk))).collect::<Vec<_>>());
        run.start(&changes);
        if !is_erased_as_prefix(&tree) {
            run.engine.erase(&tree).await.expect("erase a tree");
        } else {
            let prefix = Prefix::parse(&format!("{tree}/")).expect("a prefix");
            run.engine.store.erase_prefix(&prefix).await.expect("erase a tree");
        }
        run.end(&changes);
    }
}

/// True if a tree is erased by the store, and not by the engine.
pub(super) fn is_erased_as_prefix(tree: &str) -> bool {
    tree.ends_with('2')
}

/// Writes the elements of an array from a position in the chunk `first` on: to its end, or to the end of the next chunk.
async fn write(run: &Run, tree: &str, first: u64, start: u64) {
    let chunks = if first == 0 { 0..CHUNKS } else { first..first + 2 };
    let len = Some(u32::try_from(CHUNK * 4).expect("a small chunk"));
    let changes: Vec<_> = chunks.clone().map(|chunk| (run.new_id(), (chunk_key(tree, chunk), len))).collect();
    let of_chunk =
        |at: u64| u32::try_from(changes[usize::try_from(at / CHUNK - first).expect("few")].0).expect("an id");
    let elements: Vec<u32> = (start..chunks.end * CHUNK).map(of_chunk).collect();
    run.start(&changes);
    run.engine.write(&format!("{tree}/x"), start, &elements).await.expect("write a region");
    run.end(&changes);
}

fn chunk_key(tree: &str, chunk: u64) -> String {
    format!("{tree}/x/c/{chunk}")
}
