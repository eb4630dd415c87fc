//! The process that opens states: it reads the path of a store from each input line and reports its contents.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::{
    KeyPage, ListableStore, PageRequest, Payload, Precondition, Prefix, ReadableStore, TransactionalStore,
    WriteableStore,
};
use zarrd_store_local::{Certainty, IndexKind, LocalStore, Loss, OpenError, Recovery};

use crate::crash_states::{
    history::KeyState,
    kinds::{INTENTS, Sizes},
    uploads,
    workload::{intent_id, key, options, value},
};

/// The observations about a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The error with which the store failed to open.
    pub(crate) open_error: Option<String>,
    pub(crate) found: BTreeMap<String, KeyState>,
    /// Other defects.
    pub(crate) problems: Vec<String>,
}

/// The last line of a reply.
pub(crate) const DONE: &str = "done";

/// The key that is set to test that a state accepts changes.
const PROBE: &str = "probe/after";
const PROBE_ID: u64 = u64::MAX;
const PROBE_LEN: u32 = 5_000;
/// The start of the name of an index that was moved aside.
const DAMAGED_INDEX: &str = "damaged-";

/// Reads paths of stores from standard input until it ends. `keys` is a file of keys to look up.
pub(crate) fn run(index: &str, keys: &str) -> ExitCode {
    let index = crate::crash_states::plan::index(index);
    let keys: Vec<String> = fs::read_to_string(keys).expect("the keys").lines().map(str::to_owned).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    for dir in std::io::stdin().lock().lines() {
        let dir = PathBuf::from(dir.expect("a path"));
        let outcome = runtime.block_on(inspect(&dir, index, &keys));
        let mut out = std::io::stdout().lock();
        out.write_all(outcome.to_text().as_bytes()).and_then(|()| out.flush()).expect("answer");
    }
    ExitCode::SUCCESS
}

async fn inspect(dir: &Path, index: IndexKind, keys: &[String]) -> Outcome {
    let mut outcome = Outcome::default();
    // Nothing is written for that, so the store is opened in the same state.
    let recovered = Recovered::read(dir).await;
    let store = match LocalStore::open(dir, options(index, Sizes::Small)).await {
        Ok(store) => store,
        Err(error) => {
            let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
            let causes: String = causes.map(|cause| format!(": {cause}")).collect();
            let error = error.to_string().replace(&dir.display().to_string(), "STORE");
            outcome.open_error = Some(format!("{error}{causes}"));
            return outcome;
        }
    };
    // An index that has to be rebuilt may be whole by luck alone, and hides that a sync is missing.
    outcome.problems.extend(rebuilt_index(dir));
    outcome.found = outcome.read(&store, keys).await;
    let recovered = recovered.and_then(|recovered| recovered.agrees_with(&outcome.found));
    outcome.problems.extend(recovered.err().map(|problem| format!("recovering: {problem}")));
    if let Err(problem) = outcome.check_and_reopen(store, dir, index, keys).await {
        outcome.problems.push(problem);
    }
    outcome
}

/// The problem of a store that had to rebuild its index; `None` without one.
fn rebuilt_index(dir: &Path) -> Option<String> {
    let names = fs::read_dir(dir).expect("list the store").map(|entry| entry.expect("an entry").file_name());
    let damaged = names.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with(DAMAGED_INDEX))?;
    Some(format!("the index was rebuilt: {damaged}"))
}

/// What can be recovered of a state.
#[derive(Default)]
struct Recovered {
    /// The certain values.
    certain: BTreeMap<String, KeyState>,
    /// The keys of all values.
    keys: BTreeSet<String>,
    losses: Vec<Loss>,
}

impl Recovered {
    async fn read(dir: &Path) -> Result<Self, String> {
        // It has the lock of the store until it is dropped.
        let recovery = match Recovery::open(dir).await {
            Ok(recovery) => recovery,
            // A crash at the beginning leaves nothing.
            Err(OpenError::NotAStore { .. }) => return Ok(Self::default()),
            Err(error) => return Err(format!("{error:?}")),
        };
        let mut certain = BTreeMap::new();
        for found in recovery.values().iter().filter(|found| found.certainty == Certainty::Certain) {
            let name = found.key.as_str();
            let payload = recovery.read(found).await.map_err(|error| format!("{name}: {error:?}"))?;
            let parts: Vec<Bytes> = payload.stream.try_collect().await.map_err(|error| format!("{name}: {error:?}"))?;
            certain.insert(name.to_owned(), state_of(&parts.concat(), name)?);
        }
        let keys = recovery.values().iter().map(|value| value.key.as_str().to_owned()).collect();
        Ok(Self { certain, keys, losses: recovery.losses().to_vec() })
    }

    /// Fails if a certain value is not the one that the store has, or if one of the store's is neither recovered nor named.
    fn agrees_with(&self, found: &BTreeMap<String, KeyState>) -> Result<(), String> {
        for (name, state) in found.iter().filter(|(name, _)| !name.starts_with(INTENTS)) {
            match self.certain.get(name) {
                Some(certain) if certain == state => {}
                Some(certain) => return Err(format!("{name} is {state:?}, and {certain:?} is said to be certain")),
                None if state.is_none() || self.names(name) => {}
                None => return Err(format!("{name} is neither recovered nor named")),
            }
        }
        Ok(())
    }

    /// True if a value is doubtful, or known to be lost.
    fn names(&self, name: &str) -> bool {
        self.keys.contains(name) || self.losses.iter().any(|loss| loss.concerns(name))
    }
}

impl Outcome {
    /// Looks up all keys and compares them with the listing.
    async fn read(&mut self, store: &LocalStore, keys: &[String]) -> BTreeMap<String, KeyState> {
        let mut all = BTreeMap::new();
        for name in keys {
            match get(store, name).await {
                Ok(found) => {
                    all.insert(name.clone(), found);
                }
                Err(why) => self.problems.push(format!("{name}: {why}")),
            }
        }
        match list(store).await {
            Err(why) => self.problems.push(format!("the listing: {why}")),
            Ok(listed) => {
                let present = all.iter().filter(|(name, found)| found.is_some() && !name.starts_with(INTENTS));
                let got: BTreeSet<&String> = present.map(|(name, _)| name).collect();
                let only = |one: &BTreeSet<&String>, other: &BTreeSet<&String>| {
                    one.difference(other).next().map(|name| (*name).clone())
                };
                let listed = listed.iter().collect();
                if let Some(name) = only(&got, &listed) {
                    self.problems.push(format!("{name} exists but is not listed"));
                }
                if let Some(name) = only(&listed, &got) {
                    self.problems.push(format!("{name} is listed but does not exist"));
                }
            }
        }
        let known = all.iter().filter(|(name, found)| found.is_some() && name.starts_with(INTENTS)).count();
        match store.intents().await {
            Ok(intents) if intents.len() == known => {}
            Ok(intents) => self.problems.push(format!("{} intents exist, {known} of them are known", intents.len())),
            Err(error) => self.problems.push(format!("the intents: {error:?}")),
        }
        all
    }

    /// Checks all values, sets one more, closes, and verifies that reopening finds the same.
    async fn check_and_reopen(
        &mut self,
        store: LocalStore,
        dir: &Path,
        index: IndexKind,
        keys: &[String],
    ) -> Result<(), String> {
        check(&store, "").await?;
        uploads::end_all(&store).await?;
        let content = Payload::from_bytes(value(PROBE_ID, PROBE, PROBE_LEN));
        let set = store.set(&key(PROBE), content, Precondition::none()).await;
        set.map_err(|error| format!("a set after opening: {error:?}"))?;
        store.close().await.map_err(|error| format!("closing: {error:?}"))?;
        drop(store);
        let store = LocalStore::open(dir, options(index, Sizes::Small)).await;
        let store = store.map_err(|error| format!("reopening failed: {error}: {error:?}"))?;
        let mut keys = keys.to_vec();
        keys.push(PROBE.to_owned());
        let mut again = self.read(&store, &keys).await;
        if again.remove(PROBE) != Some(Some((PROBE_ID, PROBE_LEN))) {
            return Err("a value set after opening is missing after reopening".to_owned());
        }
        if let Some(problem) = rebuilt_index(dir) {
            return Err(format!("after reopening, {problem}"));
        }
        for (name, found) in &self.found {
            if again.get(name) != Some(found) {
                return Err(format!("{name} was {found:?}, and {:?} after reopening", again.get(name)));
            }
        }
        check(&store, " after reopening").await?;
        store.close().await.map_err(|error| format!("closing again: {error:?}"))
    }

    /// The lines of the reply.
    fn to_text(&self) -> String {
        let line = |text: &str| text.replace('\n', " ");
        let mut text = String::new();
        if let Some(why) = &self.open_error {
            text.push_str(&format!("error {}\n", line(why)));
        }
        for (name, found) in &self.found {
            text.push_str(&match found {
                Some((id, len)) => format!("found {name} {id} {len}\n"),
                None => format!("absent {name}\n"),
            });
        }
        for problem in &self.problems {
            text.push_str(&format!("problem {}\n", line(problem)));
        }
        text + DONE + "\n"
    }

    /// Parses a line of a reply.
    pub(crate) fn parse_line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let describe: Vec<&str> = rest.split(' ').collect();
        match (word, &describe[..]) {
            ("error", _) => self.open_error = Some(rest.to_owned()),
            ("problem", _) => self.problems.push(rest.to_owned()),
            ("absent", [name]) => {
                self.found.insert((*name).to_owned(), None);
            }
            ("found", [name, id, len]) => {
                let found = (id.parse().expect("an id"), len.parse().expect("a length"));
                self.found.insert((*name).to_owned(), Some(found));
            }
            _ => self.problems.push(format!("unexpected output of the process: {line}")),
        }
    }
}

async fn get(store: &LocalStore, name: &str) -> Result<KeyState, String> {
    let Some(bytes) = bytes(store, name).await? else { return Ok(None) };
    state_of(&bytes, name)
}

/// The state of a key with these bytes.
fn state_of(bytes: &[u8], name: &str) -> Result<KeyState, String> {
    let id = u64::from_be_bytes(*bytes.first_chunk::<8>().ok_or("a value without an id")?);
    let len = bytes.len() as u32;
    if bytes == value(id, name, len) { Ok(Some((id, len))) } else { Err(format!("other bytes than {id} has")) }
}

/// The bytes of a key or an intent.
async fn bytes(store: &LocalStore, name: &str) -> Result<Option<Bytes>, String> {
    if name.starts_with(INTENTS) {
        let intents = store.intents().await.map_err(|error| format!("{error:?}"))?;
        return Ok(intents.into_iter().find(|intent| intent.id == intent_id(name)).map(|intent| intent.record));
    }
    match store.get(&key(name), None).await.map_err(|error| format!("{error:?}"))? {
        Some(value) => value.bytes().await.map(Some).map_err(|error| format!("{error:?}")),
        None => Ok(None),
    }
}

async fn list(store: &LocalStore) -> Result<Vec<String>, String> {
    let (mut names, mut page) = (Vec::new(), PageRequest::first(1000));
    loop {
        let found = store.list_prefix(&Prefix::root(), page).await;
        let KeyPage { keys, cursor, .. } = found.map_err(|error| format!("{error:?}"))?;
        names.extend(keys.into_iter().map(|entry| entry.key.as_str().to_owned()));
        match cursor {
            Some(cursor) => page = PageRequest::after(1000, cursor),
            None => return Ok(names),
        }
    }
}

async fn check(store: &LocalStore, when: &str) -> Result<(), String> {
    match store.check(|_| {}).await {
        Ok(checked) if checked.corrupt.is_empty() && checked.unreadable_index.is_none() => Ok(()),
        Ok(checked) => Err(format!("the check finds damage{when}: {checked:?}")),
        Err(error) => Err(format!("the check fails{when}: {error:?}")),
    }
}
