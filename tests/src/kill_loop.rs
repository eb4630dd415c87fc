//! Durability: a server is killed again and again while it is written to, and must have kept all that it acknowledged.
//!
//! Each writer has keys of its own and one connection, and sets, overwrites and erases. What was acknowledged must be there after the
//! next start. Of the one request that was under way when the server died, either outcome is right, but no mixture. The
//! listing must have exactly the keys that have values.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use client::HttpStore;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use store::{Key, ListableStore, Page, Precondition, Prefix, ReadableStore, StoreError, WriteableStore};
use tokio::task::JoinSet;

use crate::{
    content::Generated,
    server::{Launch, zarrd_with},
};

/// How the loop is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// How often the server is killed.
    pub rounds: u32,
    /// How many connections write at the same time.
    pub writers: u32,
    /// How many keys each has.
    pub keys: u32,
    /// The longest time between a start and the kill.
    pub longest: Duration,
    /// What the random choices are made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Sets and erases that were acknowledged.
    pub acknowledged: u64,
    /// Requests that were under way when the server was killed.
    pub interrupted: u64,
    /// Keys that were read back after a start, those that must have no value included.
    pub checked: u64,
}

/// What a key may hold: no value, or the one with this seed and size.
type State = Option<(u64, u64)>;

/// A writer, and what it was told.
#[derive(Debug)]
struct Writer {
    random: StdRng,
    keys: BTreeMap<Key, State>,
    /// The request that was under way when the server died: what it would have made of a key.
    pending: Option<(Key, State)>,
    acknowledged: u64,
}

impl Default for Plan {
    fn default() -> Self {
        let longest = Duration::from_millis(800);
        Self { index: "sled".into(), rounds: 5, writers: 6, keys: 48, longest, seed: rand::random() }
    }
}

/// Runs the loop on a new store in `dir`.
///
/// # Panics
///
/// Where something was lost, or the store does not open, or is damaged in the end.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let store = format!("{}:{}", plan.index, dir.display());
    let launch = Launch::of(&store);
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut writers: Vec<_> = (0..plan.writers).map(|number| Writer::new(number, plan, &mut random)).collect();
    let mut report = Report::default();
    for round in 1..=plan.rounds {
        let server = launch.start();
        let mut running: JoinSet<Writer> = writers.drain(..).map(|writer| writer.write(server.store())).collect();
        let shortest = plan.longest / 16;
        tokio::time::sleep(random.random_range(shortest..plan.longest)).await;
        server.kill();
        while let Some(writer) = running.join_next().await {
            writers.push(writer.expect("a writer does not panic"));
        }
        report.interrupted += writers.iter().filter(|writer| writer.pending.is_some()).count() as u64;
        let server = launch.start();
        report.checked += check_all(&server.store(), &mut writers, round).await;
        // Half of the rounds go on after a stop in order.
        if random.random_bool(0.5) { server.kill() } else { server.stop() }
    }
    report.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

/// Reads all keys back, and settles the requests of which the outcome was not known.
async fn check_all(store: &HttpStore, writers: &mut [Writer], round: u32) -> u64 {
    let mut checked = 0;
    for writer in &mut *writers {
        let pending = writer.pending.take();
        for (key, state) in &mut writer.keys {
            let other = pending.as_ref().filter(|(pending, _)| pending == key).map(|(_, state)| *state);
            *state =
                found(store, key, *state, other).await.unwrap_or_else(|error| panic!("round {round}: {key}: {error}"));
            checked += 1;
        }
    }
    let live: BTreeSet<_> = writers.iter().flat_map(Writer::live).collect();
    assert_eq!(live, listed(store).await, "round {round}: the listing");
    checked
}

/// Which of the allowed states a key is in.
async fn found(store: &HttpStore, key: &Key, known: State, other: Option<State>) -> Result<State, StoreError> {
    let value = store.get(key, None).await?;
    let allowed = [Some(known), other];
    let Some(value) = value else {
        assert!(allowed.contains(&Some(None)), "{key} was lost, it had {known:?}");
        return Ok(None);
    };
    let bytes = value.bytes().await?;
    let matching = |state: &(u64, u64)| Generated::new(state.0, state.1).bytes() == bytes;
    let state = allowed.into_iter().flatten().flatten().find(matching);
    assert!(state.is_some(), "{key} has {} bytes that it should not have, but {known:?} or {other:?}", bytes.len());
    Ok(state)
}

async fn listed(store: &HttpStore) -> BTreeSet<Key> {
    let (mut keys, mut page) = (BTreeSet::new(), Page::first(1000));
    loop {
        let found = store.list_prefix(&Prefix::root(), page).await.expect("keys can be listed");
        keys.extend(found.keys.into_iter().map(|entry| entry.key));
        match found.cursor {
            Some(cursor) => page = Page { limit: 1000, cursor: Some(cursor) },
            None => return keys,
        }
    }
}

impl Writer {
    fn new(number: u32, plan: &Plan, random: &mut StdRng) -> Self {
        let key = |key| Key::parse(&format!("writer/{number}/{}/{key}", key % 7)).expect("a key");
        let keys = (0..plan.keys).map(|number| (key(number), None)).collect();
        Self { random: StdRng::seed_from_u64(random.random()), keys, pending: None, acknowledged: 0 }
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
                    self.keys.insert(key, state);
                    self.acknowledged += 1;
                }
                Err(StoreError::Transport(_)) => {
                    self.pending = Some((key, state));
                    return self;
                }
                Err(error) => panic!("{key}: {error}"),
            }
        }
    }

    /// The next request: mostly small values, some that are files, a few large ones, and erases.
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
