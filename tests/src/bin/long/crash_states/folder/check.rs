//! Checks of a state: what its files have, and what a server makes of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use futures::TryStreamExt;
use zarrd_store::{Key, Payload, Precondition, Prefix, ReadableStore, WriteableStore, list_all};

use super::{
    super::{classes::STORE, history::KeyState, tree::Tree},
    contents::{DOCUMENTS, TreeDocuments, VALUES},
    engine::Engine,
    recording::files,
    workload::is_erased_as_prefix,
};

/// The observations of a state.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) found: BTreeMap<String, KeyState>,
    pub(super) problems: Vec<String>,
}

/// The names of temporary files end with this.
const TEMPORARY: &str = ".partial";

/// The time after which a file that was written is complete for readers, if something of it changed after a tick of the
/// clock: what has no other mark of its end.
const TICK: Duration = Duration::from_millis(12);

/// The age of a temporary file that was left.
const OLD: Duration = Duration::from_secs(2 * 3600);

/// The time within which a server that was opened removes what others left.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks a state, and opens it in a new directory.
pub(super) async fn inspect(state: &Tree, dir: &Path, documents: &TreeDocuments) -> Outcome {
    let mut outcome = Outcome::default();
    for (key, bytes) in files(state).filter(|(key, _)| !key.ends_with(TEMPORARY)) {
        match documents.identify(key, bytes) {
            Ok(found) => drop(outcome.found.insert(key.to_owned(), found)),
            Err(problem) => outcome.problems.push(problem),
        }
    }
    for tree in trees(outcome.found.keys()) {
        outcome.problems.extend(order_problem(&tree, &outcome.found));
    }
    if let Err(problem) = open(state, dir, &mut outcome).await {
        outcome.problems.push(problem);
    }
    fs::remove_dir_all(dir).expect("remove a state");
    outcome
}

/// The trees that have keys.
fn trees<'k>(keys: impl Iterator<Item = &'k String>) -> BTreeSet<String> {
    let tops = keys.filter(|key| !key.starts_with(VALUES)).filter_map(|key| key.split_once('/'));
    tops.map(|(tree, _)| tree.to_owned()).collect()
}

/// The problem of a tree whose documents and chunks did not change in order.
fn order_problem(tree: &str, found: &BTreeMap<String, KeyState>) -> Option<String> {
    let has = |name: &str| found.contains_key(&format!("{tree}/{name}"));
    let missing = DOCUMENTS.iter().find(|name| !has(name));
    // Erased as a prefix, the documents of a tree go in any order.
    if let Some(missing) = missing.filter(|_| has(DOCUMENTS[0]) && !is_erased_as_prefix(tree)) {
        return Some(format!("the tree {tree} is there without {missing}"));
    }
    let chunks = found.keys().filter(|key| key.starts_with(&format!("{tree}/x/c/"))).count();
    let last = DOCUMENTS.iter().find(|name| has(name));
    // All chunks are written at once, and no document is left when the first is erased.
    let is_cut = chunks > 0 && missing.is_some();
    last.filter(|_| is_cut && chunks < 4).map(|last| format!("the tree {tree} has {last} and {chunks} chunks of 4"))
}

/// Opens a state as a server does, and completes what was cut.
async fn open(state: &Tree, dir: &Path, outcome: &mut Outcome) -> Result<(), String> {
    fs::create_dir_all(dir).expect("make a directory for a state");
    state.write(dir);
    tokio::time::sleep(TICK).await;
    let folder = dir.join(STORE);
    for (key, _) in files(state) {
        let path = folder.join(key);
        if key.ends_with(TEMPORARY) {
            let file = fs::File::options().write(true).open(&path).expect("open a temporary file");
            file.set_modified(SystemTime::now() - OLD).expect("make a temporary file old");
        }
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&path, mode).expect("set a mode");
    }
    let engine = Engine::open(&folder).await?;
    let deadline = Instant::now() + SWEEP_TIMEOUT;
    let leftovers = || files(state).map(|(key, _)| key).filter(|key| key.ends_with(TEMPORARY));
    while let Some(left) = leftovers().find(|key| folder.join(key).exists()) {
        if Instant::now() > deadline {
            return Err(format!("{left} was not swept"));
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    read_all(&engine, state, outcome).await?;
    for tree in trees(outcome.found.keys()) {
        complete(&engine, &folder, &tree, &outcome.found).await?;
    }
    let key = Key::parse("v/after").expect("a key");
    let set = engine.store.set(&key, Payload::from_bytes(&b"after"[..]), Precondition::absent()).await;
    set.map(drop).map_err(|error| format!("a set after opening: {error:?}"))
}

/// Reads all values through the store, and compares them with the files.
async fn read_all(engine: &Engine, state: &Tree, outcome: &mut Outcome) -> Result<(), String> {
    let listed: Result<Vec<_>, _> = list_all(&engine.store, &Prefix::root()).try_collect().await;
    let listed: Vec<String> =
        listed.map_err(|error| format!("listing: {error:?}"))?.into_iter().map(|entry| entry.key.to_string()).collect();
    let present: Vec<&str> = files(state).map(|(key, _)| key).filter(|key| !key.ends_with(TEMPORARY)).collect();
    if listed.iter().map(String::as_str).ne(present.iter().copied().collect::<BTreeSet<_>>()) {
        outcome.problems.push(format!("listed are {listed:?}, and there are {present:?}"));
    }
    for (name, bytes) in files(state).filter(|(key, _)| !key.ends_with(TEMPORARY)) {
        let key = Key::parse(name).expect("a key");
        let found = engine.store.get(&key, None).await.map_err(|error| format!("{name}: {error:?}"))?;
        let Some(found) = found else { return Err(format!("{name} is not found")) };
        let read = found.bytes().await.map_err(|error| format!("{name}: {error:?}"))?;
        if read != **bytes {
            return Err(format!("{name} is read as {} bytes", read.len()));
        }
    }
    Ok(())
}

/// Repeats a declaration or an erase that was cut: a tree whose topmost document is missing.
async fn complete(
    engine: &Engine,
    folder: &Path,
    tree: &str,
    found: &BTreeMap<String, KeyState>,
) -> Result<(), String> {
    let below: Vec<&String> = found.keys().filter(|key| key.starts_with(&format!("{tree}/"))).collect();
    if found.contains_key(&format!("{tree}/{}", DOCUMENTS[0])) {
        return Ok(());
    }
    let has_chunks = below.iter().any(|key| key.contains("/c/"));
    if !has_chunks {
        engine.declare(tree).await.map_err(|error| format!("declaring what has {below:?} again: {error:?}"))?;
        let missing = DOCUMENTS.iter().find(|name| !folder.join(tree).join(name).exists());
        if let Some(missing) = missing {
            return Err(format!("declared again without {missing}"));
        }
    }
    engine.erase(tree).await.map_err(|error| format!("erasing what had {below:?} again: {error:?}"))?;
    match folder.join(tree).exists() {
        true => Err(format!("erased again, and {tree} is left")),
        false => Ok(()),
    }
}
