//! Durability: a server is killed repeatedly during writes, and must retain everything that it acknowledged.
//!
//! Each writer has its own keys and one connection, and sets, overwrites and erases. Acknowledged changes must be
//! present after the next start. The request in progress when the server died may have been applied or not, but not
//! partially. The listing must contain exactly the keys with values.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;
use zarrd_client::HttpStore;
use zarrd_store::{
    BackendErrorKind, Key, ListableStore, PageRequest, Precondition, Prefix, ReadableStore, StoreError, WriteableStore,
};

use crate::{
    generated::Generated,
    server::{Launch, zarrd_with},
};

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The number of kills.
    pub rounds: u32,
    /// The number of concurrent connections.
    pub writers: u32,
    /// The number of keys of each connection.
    pub keys: u32,
    /// The maximum time between a start and the kill.
    pub max_delay: Duration,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Acknowledged sets and erases.
    pub acknowledged: u64,
    /// Requests in progress when the server was killed.
    pub interrupted: u64,
    /// Keys that were read back after a start, including those without a value.
    pub checked: u64,
}

/// The state of a key: no value, or the one with this seed and size.
type State = Option<(u64, u64)>;

/// All writers.
#[derive(Debug)]
pub(crate) struct Writers(Vec<Writer>);

/// Running writers.
#[derive(Debug)]
pub(crate) struct RunningWriters(JoinSet<Writer>);

/// A writer with the acknowledged state of its keys.
#[derive(Debug)]
struct Writer {
    random: StdRng,
    keys: BTreeMap<Key, State>,
    /// The interrupted requests since the last time the keys were read, with the state that they would have produced.
    pending: Vec<(Key, State)>,
    acknowledged: u64,
}

impl Default for Plan {
    fn default() -> Self {
        let max_delay = Duration::from_millis(800);
        Self { index: "sled".into(), rounds: 5, writers: 6, keys: 48, max_delay, seed: rand::random() }
    }
}

/// Runs the loop on a new store in `dir`.
///
/// # Panics
///
/// If data is lost, or the store does not open, or is damaged in the end.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let store = format!("{}:{}", plan.index, dir.display());
    let launch = Launch::of(&store);
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut writers = Writers::new(plan.writers, plan.keys, &mut random);
    let mut report = Report::default();
    for round in 1..=plan.rounds {
        let server = launch.start();
        let running = writers.write(&server.store());
        let shortest = plan.max_delay / 16;
        tokio::time::sleep(random.random_range(shortest..plan.max_delay)).await;
        server.kill();
        report.interrupted += writers.settle(running).await;
        let server = launch.start();
        report.checked += writers.check_all(&server.store(), round).await;
        // Half of the rounds end with a clean stop.
        if random.random_bool(0.5) { server.kill() } else { server.stop() }
    }
    report.acknowledged = writers.acknowledged();
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

impl Writers {
    /// `writers` writers with `keys` keys each, all without values.
    pub(crate) fn new(writers: u32, keys: u32, random: &mut StdRng) -> Self {
        Self((0..writers).map(|number| Writer::new(number, keys, random)).collect())
    }

    /// Starts the writers, which run until the server is gone.
    pub(crate) fn write(&mut self, store: &HttpStore) -> RunningWriters {
        RunningWriters(self.0.drain(..).map(|writer| writer.write(store.clone())).collect())
    }

    /// Collects the writers; returns the number of interrupted requests.
    pub(crate) async fn settle(&mut self, mut running: RunningWriters) -> u64 {
        while let Some(writer) = running.0.join_next().await {
            self.0.push(writer.expect("a writer does not panic"));
        }
        self.0.iter().filter(|writer| !writer.pending.is_empty()).count() as u64
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.0.iter().map(|writer| writer.acknowledged).sum()
    }

    /// Reads all keys, and settles the requests with unknown outcome.
    pub(crate) async fn check_all(&mut self, store: &HttpStore, round: u32) -> u64 {
        let mut checked = 0;
        for writer in &mut self.0 {
            let pending = std::mem::take(&mut writer.pending);
            for (key, state) in &mut writer.keys {
                let outcomes: Vec<_> =
                    pending.iter().filter(|(pending, _)| pending == key).map(|(_, state)| *state).collect();
                let observed_state = observed_state(store, key, *state, &outcomes).await;
                *state = observed_state.unwrap_or_else(|error| panic!("round {round}: {key}: {error}"));
                checked += 1;
            }
        }
        let live: BTreeSet<_> = self.0.iter().flat_map(Writer::live).collect();
        assert_eq!(live, listed(store).await, "round {round}: the listing");
        checked
    }
}

/// Determines which of the allowed states a key is in.
async fn observed_state(store: &HttpStore, key: &Key, known: State, outcomes: &[State]) -> Result<State, StoreError> {
    let value = store.get(key, None).await?;
    let allowed = || std::iter::once(known).chain(outcomes.iter().copied());
    let Some(value) = value else {
        assert!(allowed().any(|state| state.is_none()), "{key} was lost, it had {known:?}");
        return Ok(None);
    };
    let bytes = value.bytes().await?;
    let matching = |state: &(u64, u64)| Generated::new(state.0, state.1).bytes() == bytes;
    let state = allowed().flatten().find(matching);
    assert!(state.is_some(), "{key} has {} bytes that it should not have, but {known:?} or {outcomes:?}", bytes.len());
    Ok(state)
}

async fn listed(store: &HttpStore) -> BTreeSet<Key> {
    let below = Prefix::parse("writer/").expect("a prefix");
    let (mut keys, mut page) = (BTreeSet::new(), PageRequest::first(1000));
    loop {
        let observed_state = store.list_prefix(&below, page).await.expect("keys can be listed");
        keys.extend(observed_state.keys.into_iter().map(|entry| entry.key));
        match observed_state.cursor {
            Some(cursor) => page = PageRequest { limit: 1000, cursor: Some(cursor) },
            None => return keys,
        }
    }
}

impl Writer {
    fn new(number: u32, keys: u32, random: &mut StdRng) -> Self {
        let key = |key| Key::parse(&format!("writer/{number}/{}/{key}", key % 7)).expect("a key");
        let keys = (0..keys).map(|number| (key(number), None)).collect();
        Self { random: StdRng::seed_from_u64(random.random()), keys, pending: Vec::new(), acknowledged: 0 }
    }

    /// Writes until the server is gone.
    async fn write(mut self, store: HttpStore) -> Self {
        loop {
            let (key, state) = self.choose();
            let done = match state {
                Some((seed, size)) => {
                    store.set(&key, Generated::new(seed, size).bytes().into(), Precondition::none()).await.map(drop)
                }
                None => store.erase(&key, Precondition::none()).await.map(drop),
            };
            match done {
                Ok(()) => {
                    self.pending.retain(|(pending, _)| *pending != key);
                    self.keys.insert(key, state);
                    self.acknowledged += 1;
                }
                Err(StoreError::Backend { kind: BackendErrorKind::Connection, .. }) => {
                    self.pending.push((key, state));
                    return self;
                }
                Err(error) => panic!("{key}: {error}"),
            }
        }
    }

    /// The next request: mostly small values, some stored as files, a few large ones, and erases.
    fn choose(&mut self) -> (Key, State) {
        let number = self.random.random_range(0..self.keys.len());
        let key = self.keys.keys().nth(number).expect("one of the keys").clone();
        let size = match self.random.random_range(0..100) {
            0..20 => return (key, None),
            20..70 => self.random.random_range(0..4097),
            70..97 => self.random.random_range(4097..200_000),
            _ => self.random.random_range(1 << 20..3 << 20),
        };
        (key, Some((self.random.random(), size)))
    }

    fn live(&self) -> impl Iterator<Item = Key> + '_ {
        self.keys.iter().filter(|(_, state)| state.is_some()).map(|(key, _)| key.clone())
    }
}
