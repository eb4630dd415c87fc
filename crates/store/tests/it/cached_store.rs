//! A store that caches the data of other programs.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use proptest::prelude::*;
use tokio::time::{Duration, Instant, advance};
use zarrd_store::{
    ByteRange, CachedMeta, CachedStore, GetResult, Guarantees, Key, Keyed, ListableStore, MemoryStore, MetadataCache,
    Operation, PageRequest, Precondition, Prefix, ReadableStore, Recheck, Snapshot, SnapshotStore, StoreError,
    StoreWrapper, ValueMeta, Version, WriteableStore, not_before,
};

const RECHECK: Duration = Duration::from_secs(5);

/// A store that counts its requests.
#[derive(Clone, Default)]
struct Counting {
    memory: MemoryStore,
    requests: Arc<AtomicUsize>,
    /// True if the streams of values fail, as if the values changed.
    breaking: Arc<AtomicUsize>,
}

#[async_trait]
impl StoreWrapper for Counting {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.memory
    }

    async fn before(&self, _: Operation<'_>) -> Result<(), StoreError> {
        self.requests.fetch_add(1, Relaxed);
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let value = self.memory.get(key, range).await?;
        if self.breaking.load(Relaxed) == 0 {
            return Ok(value);
        }
        let broken = stream::iter([Err(StoreError::Changed { key: key.clone() })]).boxed();
        Ok(value.map(|value| GetResult { stream: broken, ..value }))
    }
}

impl Counting {
    async fn set(&self, name: &str, value: &str) -> Version {
        self.memory.set(&key(name), value.to_owned().into(), Precondition::none()).await.unwrap().version
    }

    fn take(&self) -> usize {
        self.requests.swap(0, Relaxed)
    }
}

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn caching(recheck: Recheck) -> (Counting, CachedStore<Counting>) {
    let store = Counting::default();
    (store.clone(), CachedStore::new(store, recheck))
}

async fn text(value: Result<Option<GetResult>, StoreError>) -> Option<(Version, Bytes)> {
    match value.unwrap() {
        Some(value) => Some((value.meta.version, value.bytes().await.unwrap())),
        None => None,
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_answered_from_memory_until_their_time_is_over() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let first = store.set("a/zarr.json", "first").await;
    let document = key("a/zarr.json");
    assert_eq!(cached.cached(&document), CachedMeta::Unknown);
    for _ in 0..3 {
        assert_eq!(text(cached.get(&document, None).await).await, Some((first, "first".into())));
        assert!(cached.head(&document).await.unwrap().is_some_and(|meta| meta.version == first));
    }
    assert_eq!(store.take(), 1);
    let second = store.set("a/zarr.json", "second").await;
    advance(RECHECK - Duration::from_millis(1)).await;
    assert_eq!(text(cached.get(&document, None).await).await, Some((first, "first".into())));
    assert!(matches!(cached.cached(&document), CachedMeta::Known(Some(meta)) if meta.version == first));
    advance(Duration::from_millis(1)).await;
    assert_eq!(cached.cached(&document), CachedMeta::Unknown);
    assert_eq!(text(cached.get_if_match(&document, None, first).await).await, Some((first, "first".into())));
    assert_eq!(store.take(), 0, "the bytes of a version do not change");
    assert_eq!(text(cached.get(&document, None).await).await, Some((second, "second".into())));
    assert_eq!(store.take(), 2, "a HEAD and a read");
    advance(RECHECK).await;
    assert_eq!(text(cached.get(&document, None).await).await, Some((second, "second".into())));
    assert_eq!(store.take(), 1, "a HEAD");
}

#[tokio::test(start_paused = true)]
async fn only_metadata_of_other_values_are_cached() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let long = "x".repeat((64 << 10) + 1);
    for (name, value) in [("a/c/0", "chunk"), ("a/.zarray", long.as_str())] {
        let version = store.set(name, value).await;
        for _ in 0..2 {
            assert_eq!(text(cached.get(&key(name), None).await).await, Some((version, value.to_owned().into())));
            assert!(cached.head(&key(name)).await.unwrap().is_some_and(|meta| meta.version == version));
        }
        assert_eq!(store.take(), 2, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn absence_is_cached() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    for name in ["a/zarr.json", "a/c/0"] {
        for _ in 0..2 {
            assert!(cached.get(&key(name), None).await.unwrap().is_none());
            assert!(cached.get(&key(name), ByteRange::last(3).ok()).await.unwrap().is_none());
            assert_eq!(cached.head(&key(name)).await.unwrap(), None);
        }
        assert_eq!((store.take(), cached.cached(&key(name))), (1, CachedMeta::Known(None)));
        store.set(name, "value").await;
        assert!(cached.get(&key(name), None).await.unwrap().is_none());
        advance(RECHECK).await;
        assert!(text(cached.get(&key(name), None).await).await.is_some(), "{name}");
        store.take();
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_another_version_replaces_the_entry() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let first = store.set("a/c/0", "first").await;
    cached.head(&key("a/c/0")).await.unwrap();
    let second = store.set("a/c/0", "2").await;
    let known = || cached.cached(&key("a/c/0"));
    assert!(matches!(known(), CachedMeta::Known(Some(meta)) if meta.version == first));
    advance(Duration::from_millis(1)).await;
    let error = cached.get_if_match(&key("a/c/0"), Some(ByteRange::From(3)), first).await;
    assert!(matches!(error, Err(StoreError::RangeNotSatisfiable { .. })));
    assert!(matches!(known(), CachedMeta::Known(Some(meta)) if meta.version == second));
}

/// A value that changed before its time was over is seldom the only one.
#[tokio::test(start_paused = true)]
async fn a_change_revalidates_all_older_entries() {
    let (store, cached) = caching(Recheck::Never);
    let mut versions = Vec::new();
    for name in ["a/c/0", "a/c/1", "a/zarr.json"] {
        versions.push(store.set(name, "first").await);
        cached.get(&key(name), None).await.unwrap();
    }
    advance(Duration::from_secs(1)).await;
    store.set("a/c/0", "second").await;
    let found = cached.get_if_match(&key("a/c/0"), None, *versions.first().unwrap()).await;
    assert!(found.unwrap().is_some_and(|value| value.meta.version != *versions.first().unwrap()));
    for name in ["a/c/1", "a/zarr.json"] {
        assert_eq!(cached.cached(&key(name)), CachedMeta::Unknown, "{name}");
        cached.head(&key(name)).await.unwrap();
        assert!(matches!(cached.cached(&key(name)), CachedMeta::Known(Some(_))), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_finds_a_change_removes_the_entry() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    for name in ["a/c/0", "a/zarr.json"] {
        store.set(name, "value").await;
        cached.head(&key(name)).await.unwrap();
        store.breaking.store(1, Relaxed);
        let failed = match cached.get(&key(name), None).await {
            Ok(value) => value.unwrap().bytes().await.map(drop),
            Err(error) => Err(error),
        };
        assert!(matches!(failed, Err(StoreError::Changed { .. })), "{name}");
        assert_eq!(cached.cached(&key(name)), CachedMeta::Unknown, "{name}");
        store.breaking.store(0, Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_heads_of_a_key_share_a_request() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    store.set("a/zarr.json", "document").await;
    let document = key("a/zarr.json");
    let (first, second, third) =
        tokio::join!(cached.get(&document, None), cached.get(&document, None), cached.head(&document));
    assert_eq!(text(first).await, text(second).await);
    assert!(third.unwrap().is_some());
    assert_eq!(store.take(), 1);
    let absent = key("b/c/0");
    let (first, second) = tokio::join!(cached.head(&absent), cached.head(&absent));
    assert_eq!((first.unwrap(), second.unwrap(), store.take()), (None, None, 1));
}

#[tokio::test(start_paused = true)]
async fn versions_in_listings_are_cached() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let listed = store.set("a/c/0", "first").await;
    cached.head(&key("a/c/1")).await.unwrap();
    store.set("a/c/1", "new").await;
    store.take();
    cached.list_prefix(&Prefix::root(), PageRequest::first(10)).await.unwrap();
    cached.list_dir(&Prefix::parse("a/c/").unwrap(), PageRequest::first(10)).await.unwrap();
    assert!(matches!(cached.cached(&key("a/c/0")), CachedMeta::Known(Some(meta)) if meta.version == listed));
    assert_eq!(cached.cached(&key("a/c/1")), CachedMeta::Known(None), "a listing may be older than a read");
    assert_eq!(store.take(), 2);
}

#[tokio::test(start_paused = true)]
async fn guarantees_have_the_time_for_which_changes_may_be_missed() {
    let nfs = Guarantees { staleness: Duration::from_secs(60), ..Guarantees::READ_ONLY };
    for (recheck, staleness) in [
        (Recheck::Always, Duration::from_secs(60)),
        (Recheck::After(RECHECK), Duration::from_secs(65)),
        (Recheck::Never, Duration::MAX),
    ] {
        let (_, cached) = caching(recheck);
        assert_eq!(cached.guarantees(nfs), Guarantees { staleness, ..nfs });
        assert_eq!(cached.is_filled_by_requests(), recheck != Recheck::Always);
    }
}

#[tokio::test(start_paused = true)]
async fn cache_is_bounded() {
    let (store, cached) = caching(Recheck::Never);
    let document = "x".repeat(64 << 10);
    for number in 0..1_000 {
        store.set(&format!("{number}/zarr.json"), &document).await;
        cached.get(&key(&format!("{number}/zarr.json")), None).await.unwrap();
    }
    let entries =
        (0..1_000).filter(|number| cached.cached(&key(&format!("{number}/zarr.json"))) != CachedMeta::Unknown);
    assert!((256..=512).contains(&entries.count()), "of 64 KiB each, 32 MiB are cached");
}

/// A step of a sequence: a change by another program, a read, or time that passes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Set(usize),
    Erase(usize),
    Get(usize),
    GetRange(usize),
    Head(usize),
    List,
    Current(usize),
    Pass(u64),
}

const NAMES: [&str; 3] = ["a/zarr.json", "a/c/0", "b/.zattrs"];

fn steps() -> impl Strategy<Value = Step> {
    let at = || 0..NAMES.len();
    prop_oneof![
        3 => at().prop_map(Step::Set),
        1 => at().prop_map(Step::Erase),
        3 => at().prop_map(Step::Get),
        1 => at().prop_map(Step::GetRange),
        2 => at().prop_map(Step::Head),
        1 => Just(Step::List),
        1 => at().prop_map(Step::Current),
        2 => (1..6_000_u64).prop_map(Step::Pass),
    ]
}

/// A value of a key, with its version.
type Value = (Version, String);

/// The values that each key has had, each with the time until which it was there.
#[derive(Default)]
struct Model {
    past: HashMap<usize, Vec<(Option<Value>, Instant)>>,
    now: HashMap<usize, Value>,
}

impl Model {
    fn change(&mut self, at: usize, value: Option<Value>) {
        let before = match value {
            Some(value) => self.now.insert(at, value),
            None => self.now.remove(&at),
        };
        self.past.entry(at).or_default().push((before, Instant::now()));
    }

    /// True if a key has had this value within the time for which changes may be missed.
    fn allows(&self, at: usize, found: &Option<Value>) -> bool {
        let is_recent = |(value, until): &(_, Instant)| value == found && until.elapsed() <= RECHECK;
        self.now.get(&at) == found.as_ref() || self.past.get(&at).is_some_and(|past| past.iter().any(is_recent))
    }
}

async fn check(steps: Vec<Step>) {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let mut model = Model::default();
    for (number, step) in steps.into_iter().enumerate() {
        let name = |at: usize| key(NAMES.get(at).unwrap());
        match step {
            Step::Set(at) => {
                let value = "v".repeat(number + 1);
                let version = store.set(NAMES.get(at).unwrap(), &value).await;
                model.change(at, Some((version, value)));
            }
            Step::Erase(at) => {
                store.memory.erase(&name(at), Precondition::none()).await.unwrap();
                model.change(at, None);
            }
            Step::Get(at) | Step::GetRange(at) => {
                let range = matches!(step, Step::GetRange(_)).then_some(ByteRange::From(0));
                let found = text(cached.get(&name(at), range).await).await;
                let found = found.map(|(version, bytes)| (version, String::from_utf8(bytes.to_vec()).unwrap()));
                assert!(model.allows(at, &found), "{step:?} of step {number} found {found:?}");
            }
            Step::Head(at) => {
                let found: Option<ValueMeta> = cached.head(&name(at)).await.unwrap();
                let found = found.map(|meta| (meta.version, "v".repeat(meta.size as usize)));
                assert!(model.allows(at, &found), "{step:?} of step {number} found {found:?}");
            }
            Step::List => drop(cached.list(PageRequest::first(10)).await.unwrap()),
            Step::Current(at) => {
                advance(Duration::from_nanos(1)).await;
                let key = name(at);
                let read = cached.get(&key, None);
                let found = text(not_before(Some(Instant::now()), read).await).await;
                let found = found.map(|(version, bytes)| (version, String::from_utf8(bytes.to_vec()).unwrap()));
                assert_eq!(found, model.now.get(&at).cloned(), "{step:?} of step {number}");
                advance(Duration::from_nanos(1)).await;
            }
            Step::Pass(milliseconds) => advance(Duration::from_millis(milliseconds)).await,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_answer_is_older_than_the_time(steps in prop::collection::vec(steps(), 1..40)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(check(steps));
    }
}

/// The absence of a key from a listing is cached, unless a read found a value.
#[tokio::test(start_paused = true)]
async fn keys_that_a_listing_does_not_contain_are_cached_as_absent() {
    let (store, cached) = caching(Recheck::After(RECHECK));
    let (absent, read) = (key("a/c/0"), key("a/c/1"));
    let version = store.set("a/c/1", "chunk").await;
    cached.head(&read).await.unwrap();
    let requested = Instant::now();
    cached.insert_absent(&absent, requested);
    cached.insert_absent(&read, requested);
    assert_eq!(cached.cached(&absent), CachedMeta::Known(None));
    assert!(matches!(cached.cached(&read), CachedMeta::Known(Some(meta)) if meta.version == version));
    advance(RECHECK).await;
    assert_eq!(cached.cached(&absent), CachedMeta::Unknown);
    cached.insert_absent(&absent, requested);
    assert_eq!(cached.cached(&absent), CachedMeta::Unknown, "the time begins with the listing");
    cached.insert_absent(&absent, Instant::now());
    assert_eq!(cached.cached(&absent), CachedMeta::Known(None));
    advance(Duration::from_nanos(1)).await;
    let current = not_before(Some(Instant::now()), async { cached.cached(&absent) }).await;
    assert_eq!(
        (current, cached.cached(&absent)),
        (CachedMeta::Unknown, CachedMeta::Known(None)),
        "for others it is known"
    );
    let (_, uncached) = caching(Recheck::Always);
    uncached.insert_absent(&absent, Instant::now());
    assert_eq!(uncached.cached(&absent), CachedMeta::Unknown);
}

/// A request for what is current asks for the keys that it reads, in whatever task, and for no others.
#[tokio::test(start_paused = true)]
async fn request_for_what_is_current_asks_for_its_own_keys_only() {
    let (store, cached) = caching(Recheck::Never);
    let [a, b] = ["a/zarr.json", "b/zarr.json"].map(key);
    for name in ["a/zarr.json", "b/zarr.json"] {
        store.set(name, "old").await;
    }
    let keyed = Keyed::new(cached, Guarantees::READ_ONLY);
    let read = async |snapshot: &dyn Snapshot, key: &Key| {
        snapshot.get(key, None).await.unwrap().unwrap().bytes().await.unwrap()
    };
    let snapshot = keyed.snapshot(&[a.clone(), b.clone()]).await.unwrap();
    assert_eq!((read(&*snapshot, &a).await, read(&*snapshot, &b).await), ("old".into(), "old".into()));
    for name in ["a/zarr.json", "b/zarr.json"] {
        store.set(name, "newer").await;
    }
    advance(Duration::from_secs(1)).await;
    // The snapshot is read outside of the request, such as by the task that sends a body.
    let snapshot = not_before(Some(Instant::now()), keyed.snapshot(&[a.clone(), b.clone()])).await.unwrap();
    assert_eq!(read(&*snapshot, &a).await, "newer");
    let other = keyed.snapshot(&[a.clone(), b.clone()]).await.unwrap();
    assert!(matches!(other.cached(&b).unwrap(), CachedMeta::Known(Some(meta)) if meta.size == 3));
    assert_eq!(read(&*snapshot, &b).await, "newer");
}

#[tokio::test(start_paused = true)]
async fn changes_through_the_cache_are_seen_at_once() {
    let (_, cached) = caching(Recheck::Never);
    let document = key("zarr.json");
    assert_eq!(cached.head(&document).await.unwrap(), None);
    advance(Duration::from_millis(1)).await;
    let set = cached.set(&document, "one".into(), Precondition::none()).await.unwrap();
    advance(Duration::from_millis(1)).await;
    assert_eq!(cached.head(&document).await.unwrap().unwrap().version, set.version);
    assert_eq!(cached.get(&document, None).await.unwrap().unwrap().bytes().await.unwrap(), "one");
    advance(Duration::from_millis(1)).await;
    cached.set(&document, "two".into(), Precondition::none()).await.unwrap();
    advance(Duration::from_millis(1)).await;
    assert_eq!(cached.get(&document, None).await.unwrap().unwrap().bytes().await.unwrap(), "two");
    cached.erase(&document, Precondition::none()).await.unwrap();
    advance(Duration::from_millis(1)).await;
    assert!(cached.get(&document, None).await.unwrap().is_none());
    cached.set(&document, "three".into(), Precondition::none()).await.unwrap();
    advance(Duration::from_millis(1)).await;
    assert!(cached.head(&document).await.unwrap().is_some());
    cached.erase_prefix(&Prefix::root()).await.unwrap();
    assert!(cached.head(&document).await.unwrap().is_none());
}

/// An answer that was requested before a change, and arrives after it.
#[tokio::test(start_paused = true)]
async fn answer_from_before_a_change_is_not_cached() {
    let (_, cached) = caching(Recheck::Never);
    cached.set(&key("a"), "one".into(), Precondition::none()).await.unwrap();
    advance(Duration::from_millis(1)).await;
    let requested = Instant::now();
    let listed = cached.inner().memory.list_prefix(&Prefix::root(), PageRequest::first(1)).await.unwrap();
    let before = listed.keys.first().unwrap().meta.clone();
    advance(Duration::from_millis(1)).await;
    let set = cached.set(&key("a"), "two".into(), Precondition::none()).await.unwrap();
    cached.insert_absent(&key("a"), requested);
    assert_eq!(cached.cached(&key("a")), CachedMeta::Unknown);
    advance(Duration::from_millis(1)).await;
    assert_ne!(before.version, set.version);
    assert_eq!(cached.head(&key("a")).await.unwrap().unwrap().version, set.version);
}
