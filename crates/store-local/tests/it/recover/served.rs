//! Damaged stores that are opened and used: what is whole is served, what is not is an error that names its key.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use tempfile::TempDir;
use zarrd_store::{
    Entry, Key, ListableStore, PageRequest, Payload, Precondition, Prefix, ReadableStore, SnapshotStore, StoreError,
    WriteableStore, list_all,
};
use zarrd_store_local::{Access, IndexKind, LocalStore, OpenError, Options};

use super::{
    KINDS,
    damage::{Damage, Random},
    sample::{self, Ending, Sample},
};

/// What a store serves of the keys of a model.
#[derive(Debug, Default)]
struct Served {
    whole: usize,
    /// Keys whose reads fail with an error that names them.
    named: Vec<String>,
    /// Keys with other bytes, that are absent, or that exist and should not.
    wrong: Vec<String>,
}

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

/// The result of a request, which is repeated while the index is rebuilt.
async fn until_rebuilt<T>(request: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 0..600 {
        match request().await {
            Err(StoreError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            result => return result,
        }
    }
    request().await
}

async fn read(store: &LocalStore, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    until_rebuilt(async || match store.get(&key(name), None).await? {
        Some(value) => Ok(Some(value.bytes().await?.to_vec())),
        None => Ok(None),
    })
    .await
}

fn is_named(error: &StoreError, name: &str) -> bool {
    matches!(error, StoreError::Corrupt { key, .. } if key.as_str() == name)
}

async fn listed(store: &dyn ListableStore) -> Result<Vec<Entry>, StoreError> {
    until_rebuilt(async || list_all(store, &Prefix::root()).try_collect().await).await
}

async fn served(store: &LocalStore, model: &BTreeMap<String, Vec<u8>>) -> Served {
    let mut served = Served::default();
    for (name, value) in model {
        match read(store, name).await {
            Ok(Some(bytes)) if bytes == *value => served.whole += 1,
            Err(error) if is_named(&error, name) => served.named.push(name.clone()),
            other => served.wrong.push(format!("{name}: {:?}", other.map(|bytes| bytes.map(|bytes| bytes.len())))),
        }
    }
    let listing = match listed(store).await {
        // After damage without bounds was found in use, the keys are unknown.
        Err(StoreError::Backend { source, .. }) if format!("{source:?}").contains("Unbounded") => Vec::new(),
        listing => listing.unwrap(),
    };
    let unknown = listing.iter().filter(|entry| !entry.is_damaged && !model.contains_key(entry.key.as_str()));
    served.wrong.extend(unknown.map(|entry| format!("{} is listed", entry.key)));
    served
}

/// A copy of a sample, in which the page of a redb index with a small value is damaged. Returns its key.
fn with_damaged_page(sample: &Sample) -> (TempDir, String) {
    let copied = tempfile::tempdir().unwrap();
    sample::copy(sample.dir.path(), copied.path());
    let is_small = |value: &[u8]| (50..600).contains(&value.len());
    let mut found = sample.model.iter().filter(|(name, value)| name.starts_with("lab/array2/c/1/") && is_small(value));
    let (name, value) = found.next().unwrap();
    let file = copied.path().join("index/index.redb");
    let mut bytes = fs::read(&file).unwrap();
    // Earlier states of the page have it too.
    let windows = bytes.windows(value.len()).enumerate().filter(|(_, window)| *window == value.as_slice());
    let places: Vec<usize> = windows.map(|(place, _)| place).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|place| bytes[place..place + 12].fill(0x5A));
    fs::write(file, bytes).unwrap();
    (copied, name.clone())
}

/// A copy of a sample, of which one file is damaged.
fn damaged_copy(sample: &Sample, damage: impl FnOnce(&Path) -> Damage) -> (TempDir, Damage) {
    let copied = tempfile::tempdir().unwrap();
    sample::copy(sample.dir.path(), copied.path());
    let damage = damage(copied.path());
    // It is not undone.
    drop(damage.apply());
    (copied, damage)
}

async fn open(dir: &Path, kind: IndexKind) -> Result<LocalStore, OpenError> {
    LocalStore::open(dir, Options::new(kind)).await
}

async fn set(store: &LocalStore, name: &str, condition: Precondition) -> Result<(), StoreError> {
    let value = || Payload::from_bytes(b"again".to_vec());
    until_rebuilt(async || store.set(&key(name), value(), condition.clone()).await.map(drop)).await
}

/// Sets and erases some damaged keys, which works at once and after a restart.
async fn replace_damaged(store: LocalStore, dir: &Path, kind: IndexKind, named: &[String]) {
    let mut named = named.iter().take(6).enumerate();
    for (number, name) in named.clone() {
        match number % 2 {
            0 => set(&store, name, Precondition::none()).await.unwrap(),
            _ => {
                let erased = until_rebuilt(async || store.erase(&key(name), Precondition::none()).await).await;
                assert!(erased.unwrap(), "{name}");
            }
        }
    }
    let check = async |store: &LocalStore| {
        for (number, name) in named.clone() {
            let expected = (number % 2 == 0).then(|| b"again".to_vec());
            assert_eq!(read(store, name).await.unwrap(), expected, "{name}");
        }
    };
    check(&store).await;
    match store.close().await {
        // After a crash, damage that has no bounds is found while the store is used.
        Err(StoreError::ReadOnly) => return,
        closed => closed.unwrap(),
    }
    let store = open(dir, kind).await.unwrap();
    check(&store).await;
    store.close().await.unwrap();
    assert!(named.next().is_none_or(|(_, name)| !name.is_empty()));
}

#[tokio::test]
async fn damaged_stores_serve_what_is_whole_and_name_the_rest() {
    let rounds = std::env::var("ZARRD_DAMAGES").map_or(16, |rounds| rounds.parse().unwrap());
    let mut random = Random::new(std::env::var("ZARRD_SEED").map_or(5, |seed| seed.parse().unwrap()));
    let mut shares: BTreeMap<(String, &str), [usize; 5]> = BTreeMap::new();
    for kind in KINDS {
        for ending in [Ending::Closed, Ending::Dropped] {
            let sample = Sample::create(kind, ending, 500).await;
            for round in 0..rounds / 2 {
                let (dir, damage) = damaged_copy(&sample, |dir| Damage::random(dir, &mut random));
                let share = shares.entry((format!("{kind} {ending:?}"), damage.place())).or_default();
                let mut counts = [1, 0, sample.model.len(), 0, 0];
                match open(dir.path(), kind).await {
                    Ok(store) => {
                        let mut served = served(&store, &sample.model).await;
                        // After a crash, the order of entries is verified while the store is used.
                        for _ in 0..200 {
                            if served.wrong.is_empty() || ending == Ending::Closed {
                                break;
                            }
                            tokio::time::sleep(Duration::from_millis(100)).await;
                            served = self::served(&store, &sample.model).await;
                        }
                        // The last frame after a crash is taken for a torn one, whose commit was not acknowledged.
                        let may_lack_last = ending == Ending::Dropped && damage.is_of("log");
                        let is_right = served.wrong.is_empty() || may_lack_last;
                        assert!(is_right, "{kind} {ending:?} {round} {damage:?}: {:?}", served.wrong);
                        (counts[3], counts[4]) = (served.whole, served.named.len());
                        replace_damaged(store, dir.path(), kind, &served.named).await;
                    }
                    Err(error @ (OpenError::Corrupt { .. } | OpenError::StaleIndex { .. } | OpenError::Io { .. })) => {
                        assert!(!error.to_string().is_empty());
                        counts[1] = 1;
                    }
                    Err(OpenError::NotAStore { .. }) => counts[1] = 1,
                    Err(error) => panic!("{kind} {ending:?} {damage:?}: {error:?}"),
                }
                share.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    for ((store, place), [damages, refused, keys, whole, named]) in shares {
        let percent = |count: usize| 100.0 * count as f64 / keys as f64;
        let (whole, named) = (percent(whole), percent(named));
        println!("{store} | {place} | {damages} | {refused} refused, {whole:.1} % served, {named:.1} % named");
    }
}

#[tokio::test]
async fn one_flipped_bit_of_an_index_is_repaired_at_the_next_start() {
    let rounds = std::env::var("ZARRD_DAMAGES").map_or(12, |rounds| rounds.parse().unwrap());
    let mut random = Random::new(std::env::var("ZARRD_SEED").map_or(4, |seed| seed.parse().unwrap()));
    for kind in KINDS {
        let sample = Sample::create(kind, Ending::Closed, 300).await;
        for round in 0..rounds {
            let (dir, damage) = damaged_copy(&sample, |dir| Damage::bit_of_index(dir, kind, &mut random));
            let store = open(dir.path(), kind).await.unwrap_or_else(|error| panic!("{kind} {damage:?}: {error:?}"));
            let served = served(&store, &sample.model).await;
            let is_whole = served.whole == sample.model.len() && served.wrong.is_empty();
            assert!(is_whole, "{kind} {round} {damage:?}: not served: {:?}, wrong: {:?}", served.named, served.wrong);
            set(&store, "later", Precondition::none()).await.unwrap();
            store.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn flipped_bit_of_a_key_that_separates_pages_is_repaired() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 300).await;
    let file = sample.dir.path().join("index/index.redb");
    let bytes = fs::read(&file).unwrap();
    // Branches, also of earlier commits. The last of their keys ends where their checksum does.
    let branches = bytes.chunks_exact(4096).enumerate().filter(|(_, page)| page[0] == 2);
    let mut served_otherwise = 0;
    for (number, page) in branches {
        let count = usize::from(u16::from_le_bytes([page[2], page[3]]));
        let last_end = 8 + (count + 1) * 24 + (count - 1) * 4;
        let end = u32::from_le_bytes(page[last_end..last_end + 4].try_into().unwrap());
        let bit = (number as u64 * 4096 + u64::from(end) - 3) * 8 + 1;
        let (dir, damage) = damaged_copy(&sample, |dir| Damage::Bit { file: dir.join("index/index.redb"), bit });
        let store = open(dir.path(), IndexKind::Redb).await.unwrap();
        let served = served(&store, &sample.model).await;
        assert!(served.whole == sample.model.len() && served.wrong.is_empty(), "{damage:?}: {served:?}");
        served_otherwise += usize::from(dir.path().join("damaged-index").is_dir());
        store.close().await.unwrap();
    }
    assert!(served_otherwise > 0, "no damaged branch is of the current tree");
}

#[tokio::test]
async fn damaged_page_costs_what_is_on_it_and_nothing_else() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 500).await;
    let (dir, name) = with_damaged_page(&sample);
    // Without writing there, the same is served.
    let before = sample::bytes(dir.path());
    let options = Options { access: Access::ReadOnly, ..Options::new(IndexKind::Redb) };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    let read_only = served(&store, &sample.model).await;
    store.close().await.unwrap();
    assert!(sample::bytes(dir.path()) == before);

    let store = open(dir.path(), IndexKind::Redb).await.unwrap();
    let served = served(&store, &sample.model).await;
    assert_eq!(served.wrong, Vec::<String>::new());
    assert_eq!((served.whole, &served.named), (read_only.whole, &read_only.named));
    assert!((1..100).contains(&served.named.len()), "{served:?}");
    assert!(dir.path().join("damaged-index").is_dir());

    // Listings, snapshots and checks have the rest, and mark what is damaged.
    let listing = listed(&store).await.unwrap();
    let marked: Vec<&Key> = listing.iter().filter(|entry| entry.is_damaged).map(|entry| &entry.key).collect();
    assert!(!marked.is_empty());
    assert_eq!(listing.len() - marked.len(), served.whole);
    let snapshot = store.snapshot_below(&Prefix::root()).await.unwrap();
    assert_eq!(listed(&*snapshot).await.unwrap(), listing);
    assert!(matches!(snapshot.get(marked[0], None).await, Err(StoreError::Corrupt { key, .. }) if key == *marked[0]));
    let checked = store.check(|_| ()).await.unwrap();
    assert!(checked.corrupt.iter().map(|found| &found.key).eq(marked.iter().copied()), "{checked:?}");
    let children = store.list_dir(&Prefix::parse("lab/").unwrap(), PageRequest::first(1000)).await.unwrap();
    assert_eq!(children.prefixes.len(), 3, "{children:?}");

    // What depends on the version of a damaged key fails, and leaves it.
    let name = &name;
    assert!(served.named.contains(name));
    let version = listing[0].meta.version;
    for condition in [Precondition::absent(), Precondition::present(), Precondition::at(version)] {
        let error = set(&store, name, condition.clone()).await.unwrap_err();
        assert!(is_named(&error, name), "{condition:?}: {error:?}");
        let error = store.erase(&key(name), condition.clone()).await.unwrap_err();
        assert!(is_named(&error, name), "{condition:?}: {error:?}");
    }
    assert!(is_named(&read(&store, name).await.unwrap_err(), name));
    // A key that may have existed is no absent one, until it is erased.
    let between = format!("{name}-");
    assert!(is_named(&read(&store, &between).await.unwrap_err(), &between));
    assert!(is_named(&set(&store, &between, Precondition::absent()).await.unwrap_err(), &between));
    store.erase(&key(&between), Precondition::none()).await.unwrap();
    assert_eq!(read(&store, &between).await.unwrap(), None);
    store.close().await.unwrap();
    let store = open(dir.path(), IndexKind::Redb).await.unwrap();
    assert_eq!(read(&store, &between).await.unwrap(), None);
    set(&store, &between, Precondition::absent()).await.unwrap();

    // Erasing what is listed for lost keys ends their damage.
    for key in listed(&store).await.unwrap().into_iter().filter(|entry| entry.is_damaged).map(|entry| entry.key) {
        store.erase(&key, Precondition::none()).await.unwrap();
    }
    let expect_whole = async |store: &LocalStore| {
        assert!(listed(store).await.unwrap().iter().all(|entry| !entry.is_damaged));
        assert_eq!(read(store, name).await.unwrap(), None);
        assert_eq!(read(store, &format!("{name}+")).await.unwrap(), None);
        assert_eq!(read(store, &between).await.unwrap().unwrap(), b"again");
    };
    expect_whole(&store).await;
    store.close().await.unwrap();
    let store = open(dir.path(), IndexKind::Redb).await.unwrap();
    expect_whole(&store).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn swapped_pages_are_found_although_no_entry_is_missing() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 500).await;
    // The pages of two small values, as they are in the tree and as they were before.
    let (one, other) = ("lab/array1/c/3/82", "bulk/255");
    let file = sample.dir.path().join("index/index.redb");
    let bytes = fs::read(&file).unwrap();
    let pages = |name: &str| {
        let has = |page: &[u8]| page[0] == 1 && page.windows(name.len()).any(|window| window == name.as_bytes());
        let places = bytes.chunks_exact(4096).enumerate().filter(|(_, page)| has(page));
        places.map(|(number, _)| number as u64 * 4096).collect::<Vec<_>>()
    };
    for one in pages(one) {
        for other in pages(other).into_iter().filter(|other| *other != one) {
            let swapped =
                |dir: &Path| Damage::SwappedPages { file: dir.join("index/index.redb"), offsets: [one, other] };
            let (dir, _) = damaged_copy(&sample, swapped);
            let store = open(dir.path(), IndexKind::Redb).await.unwrap();
            let served = served(&store, &sample.model).await;
            assert!(served.wrong.is_empty(), "{one} {other}: {:?}", served.wrong);
            store.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn erased_prefix_ends_the_damage_below_it() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 500).await;
    let (dir, _) = with_damaged_page(&sample);
    let store = open(dir.path(), IndexKind::Redb).await.unwrap();
    let damaged = served(&store, &sample.model).await.named;
    let prefix = Prefix::parse("lab/array2/c/1/").unwrap();
    assert!(damaged.iter().any(|name| name.starts_with(prefix.as_str())), "{damaged:?}");
    store.erase_prefix(&prefix).await.unwrap();
    let store = {
        store.close().await.unwrap();
        open(dir.path(), IndexKind::Redb).await.unwrap()
    };
    for name in sample.model.keys().filter(|name| name.starts_with(prefix.as_str())) {
        assert_eq!(read(&store, name).await.unwrap(), None, "{name}");
    }
    assert_eq!(read(&store, "lab/array2/c/1/9999999").await.unwrap(), None);
    assert!(store.list_prefix(&prefix, PageRequest::first(10)).await.unwrap().keys.is_empty());
    store.close().await.unwrap();
}

#[tokio::test]
async fn index_that_is_found_to_be_damaged_in_use_is_rebuilt() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 500).await;
    let (dir, _) = with_damaged_page(&sample);
    // As after a crash: the entries are verified while the store is used.
    fs::remove_file(dir.path().join("clean-shutdown")).unwrap();
    let store = open(dir.path(), IndexKind::Redb).await.unwrap();
    let began = Instant::now();
    while !dir.path().join("damaged-index").exists() {
        assert!(began.elapsed().as_secs() < 60, "the index was not rebuilt");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let served = served(&store, &sample.model).await;
    assert!(served.wrong.is_empty() && !served.named.is_empty(), "{served:?}");
    replace_damaged(store, dir.path(), IndexKind::Redb, &served.named).await;
}

#[tokio::test]
async fn index_that_misses_a_record_answers_nothing_once_that_is_found() {
    let sample = Sample::create(IndexKind::Sled, Ending::Dropped, 500).await;
    let name = sample.model.keys().find(|name| name.starts_with("lab/array2/c/0/")).unwrap();
    let dir = sample.dir.path().join("index");
    let settings = fs::read(dir.join("conf")).unwrap();
    let settings = String::from_utf8_lossy(&settings);
    let segment = settings.lines().find_map(|line| line.strip_prefix("segment_size: ")).unwrap();
    let index = sled::Config::new().path(dir).segment_size(segment.parse().unwrap()).open().unwrap();
    assert!(index.remove(name).unwrap().is_some());
    index.flush().unwrap();
    drop(index);
    let store = open(sample.dir.path(), IndexKind::Sled).await.unwrap();
    let began = Instant::now();
    while read(&store, name).await.is_ok() {
        assert!(began.elapsed().as_secs() < 60, "the record is still absent");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for name in [name, "lab/array2/c/0/none"] {
        let error = read(&store, name).await.unwrap_err();
        assert!(is_named(&error, name), "{error:?}");
    }
    assert!(matches!(listed(&store).await, Err(StoreError::Backend { .. })));
    assert!(matches!(set(&store, "later", Precondition::none()).await, Err(StoreError::ReadOnly)));
    assert!(matches!(store.close().await, Err(StoreError::ReadOnly)));
    assert!(open(sample.dir.path(), IndexKind::Sled).await.is_err());
}

#[tokio::test]
async fn swapped_pages_of_a_store_that_was_not_closed_are_found_before_a_change_is_applied() {
    let sample = Sample::create(IndexKind::Redb, Ending::Dropped, 500).await;
    let bytes = fs::read(sample.dir.path().join("index/index.redb")).unwrap();
    let is_page = |page: &[u8]| matches!(page[0], 1 | 2);
    let pages = bytes.chunks_exact(4096).enumerate().filter(|(_, page)| is_page(page));
    let pages: Vec<u64> = pages.map(|(number, _)| number as u64 * 4096).collect();
    let pairs = pages.iter().enumerate().flat_map(|(at, one)| pages[..at].iter().map(|other| [*one, *other]));
    let every: usize = std::env::var("ZARRD_DAMAGES").map_or(40, |_| 1);
    let (mut served_ones, mut refused) = (0, 0);
    for offsets in pairs.step_by(every) {
        let swapped = |dir: &Path| Damage::SwappedPages { file: dir.join("index/index.redb"), offsets };
        let (dir, _) = damaged_copy(&sample, swapped);
        match open(dir.path(), IndexKind::Redb).await {
            Ok(store) => {
                let served = served(&store, &sample.model).await;
                assert!(served.wrong.is_empty(), "{offsets:?}: {:?}", served.wrong);
                served_ones += 1;
                drop(store);
            }
            Err(OpenError::Corrupt { .. } | OpenError::StaleIndex { .. }) => refused += 1,
            Err(error) => panic!("{offsets:?}: {error:?}"),
        }
    }
    println!("{} pages: {served_ones} served, {refused} refused", pages.len());
    assert!(served_ones > refused);
}
