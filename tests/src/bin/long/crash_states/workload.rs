//! The recorded process: runs the steps of a kind against a store, and notes the start and acknowledgement of each
//! operation.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};
use zarrd_store::{
    BatchStore, Change, IntentId, Key, Payload, Precondition, Prefix, ReadableStore, Snapshot, SnapshotStore,
    StoreError, TransactionalStore, WriteableStore,
};
use zarrd_store_local::{IndexKind, LocalStore, Options};

use crate::crash_states::{
    history::describe,
    kinds::{self, Full, INTENTS, Sizes, Step},
    uploads::{End, Uploaded},
};

/// The configuration of a recorded run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) index: IndexKind,
    pub(crate) kind: &'static kinds::Kind,
    pub(crate) seed: u64,
    /// The number of crashes before this run.
    pub(crate) level: u32,
    pub(crate) store: PathBuf,
    /// The keys that earlier runs used, one per line.
    pub(crate) keys: PathBuf,
    pub(crate) notes: PathBuf,
}

/// The note after which nothing is recorded; it ends the process.
pub(crate) const END: &str = "end";
/// The note for a store that does not open.
pub(crate) const OPEN_FAILED: &str = "open failed";

/// The options of the stores: everything is small, so that files change often.
pub(crate) fn options(index: IndexKind, sizes: Sizes) -> Options {
    let options = Options {
        cache_bytes: 4 << 20,
        reserve_bytes: Some(0),
        commit_buffer_bytes: Some(64 << 10),
        segment_bytes: Some(64 << 10),
        min_joined_bytes: 0,
        // Its file is one of those that a crash leaves in any state.
        scrub: Some(Duration::from_secs(1)),
        ..Options::new(index)
    };
    match sizes {
        Sizes::Small => options,
        Sizes::Tight => Options { index_segment_bytes: Some(128 << 10), ..options },
        Sizes::ManySegments => Options {
            commit_buffer_bytes: Some(2 << 20),
            segment_bytes: Some(256 << 10),
            // A page larger than a quarter of a segment is stored in a file of its own.
            index_segment_bytes: Some(64 << 10),
            ..options
        },
    }
}

/// The value that an operation sets: the operation's id, followed by bytes derived from it, the key and the length.
pub(crate) fn value(id: u64, key: &str, len: u32) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    let seed = xxh3_64_with_seed(key.as_bytes(), id ^ u64::from(len) << 32);
    let (head, rest) = bytes.split_first_chunk_mut::<8>().expect("a value has an id");
    *head = id.to_be_bytes();
    SmallRng::seed_from_u64(seed).fill(rest);
    bytes
}

/// Writes notes.
#[derive(Clone)]
struct Notes(Arc<Mutex<fs::File>>);

impl Notes {
    /// Writes a line with one write call, which the recorder takes as one note.
    fn note(&self, text: &str) {
        let written = self.0.lock().expect("the notes").write(text.as_bytes()).expect("write a note");
        assert_eq!(written, text.len(), "a note was written in parts");
    }
}

/// Runs until the recorder stops it.
pub(crate) fn run(run: &Run) -> ExitCode {
    let notes = Notes(Arc::new(Mutex::new(fs::File::create(&run.notes).expect("make the notes"))));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = match LocalStore::open(&run.store, options(run.index, run.kind.sizes)).await {
            Ok(store) => store,
            Err(error) => {
                notes.note(&format!("{OPEN_FAILED} {error}: {:?}", std::error::Error::source(&error)));
                notes.note(END);
                return;
            }
        };
        notes.note("opened");
        let tasks = (0..run.kind.tasks).map(|number| tokio::spawn(Task::new(run, number, &store, &notes).work()));
        futures::future::try_join_all(tasks).await.expect("the tasks");
        if run.kind.closes {
            notes.note("closing");
            store.close().await.expect("close the store");
            notes.note("closed");
        }
        notes.note(END);
    });
    eprintln!("the recorder did not end the process");
    ExitCode::FAILURE
}

/// One of the tasks that change the store.
struct Task {
    store: LocalStore,
    notes: Notes,
    steps: Vec<Step>,
    next: u64,
    /// All keys ever set.
    keys: BTreeSet<String>,
    retained: Option<(Box<dyn Snapshot>, Vec<Key>)>,
    /// Set if changes may fail because the disk is full for a while.
    full: Option<Full>,
}

impl Task {
    fn new(run: &Run, number: u32, store: &LocalStore, notes: &Notes) -> Self {
        let first = u64::from(run.level) << 40 | u64::from(number) << 32;
        let mut random = SmallRng::seed_from_u64(run.seed ^ first);
        let steps = (run.kind.steps)(&mut random, number);
        let keys = fs::read_to_string(&run.keys).expect("the keys").lines().map(str::to_owned).collect();
        Self {
            store: store.clone(),
            notes: notes.clone(),
            steps,
            next: first,
            keys,
            retained: None,
            full: run.kind.full,
        }
    }

    async fn work(mut self) {
        for step in std::mem::take(&mut self.steps) {
            self.step(step).await;
        }
        self.read().await;
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Set(name, len) => {
                let id = self.begin(&[(name.clone(), Some(len))]);
                let content = Payload::from_bytes(value(id, &name, len));
                let set = self.store.set(&key(&name), content, Precondition::none()).await;
                self.ended(id, set, "set");
            }
            Step::Upload(name, len, end) => {
                let id = self.next + 1;
                let uploaded = Uploaded::new(&self.store, id, &name, len).await;
                let Some(uploaded) = self.allow(uploaded, "upload parts") else { return };
                if end == End::Completed {
                    let id = self.begin(&[(name, Some(len))]);
                    let completed = uploaded.end(&self.store, end).await;
                    self.ended(id, completed, "complete an upload");
                } else {
                    self.allow(uploaded.end(&self.store, end).await, "end an upload");
                }
            }
            Step::Erase(name) => {
                let id = self.begin(&[(name.clone(), None)]);
                let erased = self.store.erase(&key(&name), Precondition::none()).await;
                self.ended(id, erased, "erase");
            }
            Step::Commit(mut changes) => {
                self.adapt(&mut changes).await;
                let id = self.begin(&changes);
                let all = self.changes(id, &changes).await;
                self.commit(id, all).await;
            }
            Step::Replace(prefixes, sets) => {
                let sets: Vec<_> = sets.into_iter().map(|(name, len)| (name, Some(len))).collect();
                let set = |key: &String| sets.iter().any(|(name, _)| name == key);
                let below = self.keys.iter().filter(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)));
                let erased: Vec<_> = below.filter(|key| !set(key)).map(|key| (key.clone(), None)).collect();
                let id = self.begin(&[&erased[..], &sets[..]].concat());
                let parse = |prefix: &String| Prefix::parse(prefix).expect("a prefix");
                let mut all: Vec<_> =
                    prefixes.iter().map(|prefix| Change::ErasePrefix { prefix: parse(prefix) }).collect();
                if let Some(sets) = self.changes(id, &sets).await {
                    all.extend(sets);
                    self.commit(id, Some(all)).await;
                }
            }
            Step::ErasePrefix(prefix) => {
                let below = self.keys.iter().filter(|key| key.starts_with(&prefix));
                let changes: Vec<_> = below.map(|key| (key.clone(), None)).collect();
                let id = self.begin(&changes);
                let erased = self.store.erase_prefix(&Prefix::parse(&prefix).expect("a prefix")).await;
                self.ended(id, erased, "erase a prefix");
            }
            Step::Snapshot(prefix) => {
                self.read().await;
                let keys: Vec<Key> =
                    self.keys.iter().filter(|key| key.starts_with(&prefix)).map(|name| key(name)).collect();
                let snapshot = self.store.snapshot(&keys).await;
                self.retained = self.allow(snapshot, "a snapshot").map(|snapshot| (snapshot, keys));
            }
            Step::Compact => {
                let compacted = self.store.compact(|_| ()).await;
                assert!(compacted.is_ok() || self.full.is_some(), "compact: {compacted:?}");
            }
            Step::Wait(millis) => tokio::time::sleep(std::time::Duration::from_millis(millis)).await,
        }
    }

    /// Reads through the retained snapshot, and reads all keys.
    async fn read(&mut self) {
        if let Some((snapshot, keys)) = self.retained.take() {
            for key in &keys {
                let found = snapshot.get(key, None).await;
                if let Some(Some(value)) = self.allow(found, "get of a snapshot") {
                    value.bytes().await.expect("the bytes of a snapshot's value");
                }
            }
        }
        self.allow(self.store.intents().await, "intents");
        for name in self.keys.iter().filter(|name| !name.starts_with(INTENTS)) {
            let found = self.store.get(&key(name), None).await;
            if let Some(Some(value)) = self.allow(found, "get") {
                value.bytes().await.expect("the bytes of a value");
            }
        }
    }

    /// Settles existing intents and adds missing ones, since neither can be done twice.
    async fn adapt(&self, changes: &mut Vec<(String, Option<u32>)>) {
        if !changes.iter().any(|(name, _)| name.starts_with(INTENTS)) {
            return;
        }
        match self.allow(self.store.intents().await, "intents") {
            None => changes.retain(|(name, _)| !name.starts_with(INTENTS)),
            Some(there) => {
                for (name, len) in changes.iter_mut().filter(|(name, _)| name.starts_with(INTENTS)) {
                    *len = len.filter(|_| !there.iter().any(|intent| intent.id == intent_id(name)));
                }
            }
        }
    }

    /// Stages values and returns the changes; `None` if the disk is full.
    async fn changes(&self, id: u64, changes: &[(String, Option<u32>)]) -> Option<Vec<Change>> {
        let mut all = Vec::new();
        for (name, len) in changes {
            let precondition = Precondition::none();
            all.push(match len {
                Some(len) if name.starts_with(INTENTS) => {
                    Change::AddIntent { id: intent_id(name), record: value(id, name, *len).into() }
                }
                None if name.starts_with(INTENTS) => Change::RemoveIntent { id: intent_id(name) },
                Some(len) => {
                    let content = Payload::from_bytes(value(id, name, *len));
                    let staged = self.store.stage(&key(name), content).await;
                    Change::Set { staged: self.allow(staged, "stage")?, precondition }
                }
                None => Change::Erase { key: key(name), precondition },
            });
        }
        Some(all)
    }

    async fn commit(&self, id: u64, changes: Option<Vec<Change>>) {
        if let Some(changes) = changes {
            let committed = self.store.commit(changes).await;
            self.ended(id, committed, "commit");
        }
    }

    /// Notes the acknowledgement of a change.
    fn ended<T>(&self, id: u64, result: Result<T, StoreError>, what: &str) {
        if self.allow(result, what).is_some() {
            self.notes.note(&format!("a {id}"));
        }
    }

    /// Panics on an error unless the disk may be full.
    fn allow<T>(&self, result: Result<T, StoreError>, what: &str) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(StoreError::OutOfSpace | StoreError::Busy { .. }) if self.full.is_some() => None,
            Err(error) => panic!("{what}: {error:?}"),
        }
    }

    fn begin(&mut self, changes: &[(String, Option<u32>)]) -> u64 {
        self.next += 1;
        self.keys.extend(changes.iter().map(|(key, _)| key.clone()));
        self.notes.note(&format!("b {}", describe(self.next, changes)));
        self.next
    }
}

/// The id of an intent; names that begin with [`INTENTS`] are not keys.
pub(crate) fn intent_id(name: &str) -> IntentId {
    IntentId::from_u128(xxh3_128(name.as_bytes()))
}

pub(crate) fn key(name: &str) -> Key {
    Key::parse(name).expect("a key")
}

/// The arguments of the process.
pub(crate) fn arguments(run: &Run) -> Vec<String> {
    let path = |path: &Path| path.to_str().expect("a path of text").to_owned();
    let (store, keys, notes) = (path(&run.store), path(&run.keys), path(&run.notes));
    let (seed, level) = (run.seed.to_string(), run.level.to_string());
    vec!["workload".to_owned(), run.index.name().to_owned(), run.kind.name.to_owned(), seed, level, store, keys, notes]
}

pub(crate) fn parse(arguments: &[String]) -> Run {
    let [index, kind, seed, level, store, keys, notes] = arguments else { panic!("the arguments of a workload") };
    Run {
        index: crate::crash_states::plan::index(index),
        kind: kinds::named(kind),
        seed: seed.parse().expect("a seed"),
        level: level.parse().expect("a level"),
        store: store.into(),
        keys: keys.into(),
        notes: notes.into(),
    }
}
