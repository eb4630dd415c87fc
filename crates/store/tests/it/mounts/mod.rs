//! Stores that are mounted below names of another one.

mod unseen;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use tokio::time::Instant;
use zarrd_store::{
    Batch, BatchStore, ByteRange, CachedMeta, CachedStore, Change, ChangeOutcome, Conditions, Consolidated, DirPage,
    GetResult, Guarantees, Key, KeyCount, KeyPage, Keyed, ListableStore, Listing, MemoryStore, MetadataCache,
    MetadataReader, MountName, Mounts, Operation, PageRequest, Payload, Precondition, Prefix, ReadableStore, Reads,
    Recheck, ServedStore, Snapshot, SnapshotStore, StoreError, StoreWrapper, TransactionalStore, ValueMeta,
    WriteableStore, Writes,
};
use zarrd_store_testkit::Unlisted;

use self::unseen::WithMount;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).unwrap()
}

fn name(text: &str) -> MountName {
    text.parse().unwrap()
}

async fn put(store: &MemoryStore, names: &[&str]) {
    for at in names {
        store.set(&key(at), Bytes::copy_from_slice(at.as_bytes()).into(), Precondition::none()).await.unwrap();
    }
}

fn foreign(store: &MemoryStore) -> Arc<dyn SnapshotStore> {
    Arc::new(Keyed::new(store.clone(), Guarantees::READ_ONLY))
}

/// A store at the root, and two others below `lab` and `lab-2`.
struct Fixture {
    root: MemoryStore,
    lab: MemoryStore,
    other: MemoryStore,
    all: Mounts,
}

impl Fixture {
    async fn new() -> Self {
        let [root, lab, other] = [(); 3].map(|()| MemoryStore::new());
        put(&root, &["a", "lab", "lab/hidden/x", "lab-", "lab0", "m/x", "zarr.json"]).await;
        put(&lab, &["c/0", "d", "zarr.json"]).await;
        put(&other, &["e"]).await;
        let mounts = BTreeMap::from([(name("lab"), foreign(&lab)), (name("lab-2"), foreign(&other))]);
        let all = Mounts::new("test", Arc::new(root.clone()).into(), mounts);
        Self { root, lab, other, all }
    }

    async fn read(&self, at: &str) -> Option<Bytes> {
        match self.all.get(&key(at), None).await.unwrap() {
            Some(value) => Some(value.bytes().await.unwrap()),
            None => None,
        }
    }
}

async fn keys(store: &dyn SnapshotStore, below: &str, limit: usize) -> Vec<String> {
    let (mut page, mut all) = (PageRequest::first(limit), Vec::new());
    loop {
        let KeyPage { keys, cursor, .. } = store.list_prefix(&prefix(below), page).await.unwrap();
        assert!(cursor.is_none() || keys.len() == limit, "a page that is not the last is full");
        all.extend(keys.iter().map(|entry| entry.key.to_string()));
        let Some(cursor) = cursor else { return all };
        page = PageRequest::after(limit, cursor);
    }
}

async fn children(store: &dyn SnapshotStore, below: &str, limit: usize) -> Vec<String> {
    let (mut page, mut all) = (PageRequest::first(limit), Vec::new());
    loop {
        let DirPage { keys, prefixes, cursor } = store.list_dir(&prefix(below), page).await.unwrap();
        assert!(cursor.is_none() || keys.len() + prefixes.len() == limit, "a page that is not the last is full");
        let mut names: Vec<_> = keys.iter().map(|entry| entry.key.to_string()).collect();
        names.extend(prefixes.iter().map(ToString::to_string));
        names.sort_unstable();
        all.extend(names);
        let Some(cursor) = cursor else { return all };
        page = PageRequest::after(limit, cursor);
    }
}

#[tokio::test]
async fn reads_go_to_the_mount_and_hide_what_the_root_has_there() {
    let fixture = Fixture::new().await;
    for (at, expected) in [
        ("a", Some("a")),
        ("lab/c/0", Some("c/0")),
        ("lab/zarr.json", Some("zarr.json")),
        ("zarr.json", Some("zarr.json")),
        ("lab-2/e", Some("e")),
        ("lab-", Some("lab-")),
        ("lab", None),
        ("lab/hidden/x", None),
        ("lab/lab/c/0", None),
        ("m/x", Some("m/x")),
    ] {
        assert_eq!(fixture.read(at).await.as_deref(), expected.map(str::as_bytes), "{at}");
        let head = fixture.all.head(&key(at)).await.unwrap();
        assert_eq!(head.is_some(), expected.is_some(), "{at}");
    }
}

#[tokio::test]
async fn listings_of_the_root_have_all_stores_in_order_in_pages_of_any_size() {
    let fixture = Fixture::new().await;
    let all = ["a", "lab-", "lab-2/e", "lab/c/0", "lab/d", "lab/zarr.json", "lab0", "m/x", "zarr.json"];
    let top = ["a", "lab-", "lab-2/", "lab/", "lab0", "m/", "zarr.json"];
    for limit in 1..12 {
        assert_eq!(keys(&fixture.all, "", limit).await, all, "{limit}");
        assert_eq!(children(&fixture.all, "", limit).await, top, "{limit}");
        assert_eq!(keys(&fixture.all, "lab/", limit).await, ["lab/c/0", "lab/d", "lab/zarr.json"], "{limit}");
        assert_eq!(children(&fixture.all, "lab/", limit).await, ["lab/c/", "lab/d", "lab/zarr.json"], "{limit}");
        assert_eq!(keys(&fixture.all, "m/", limit).await, ["m/x"], "{limit}");
    }
    assert_eq!(keys(&fixture.all, "lab/c/", 5).await, ["lab/c/0"]);
    let page = fixture.all.list(PageRequest::first(2)).await.unwrap();
    let cursor = page.cursor.unwrap();
    for below in ["lab/", "m/"] {
        let other = fixture.all.list_prefix(&prefix(below), PageRequest::after(2, cursor.clone())).await;
        assert!(matches!(other, Err(StoreError::InvalidCursor)), "{below}");
    }
    let other = fixture.all.list_dir(&prefix(""), PageRequest::after(2, cursor)).await;
    assert!(matches!(other, Err(StoreError::InvalidCursor)));
}

#[tokio::test]
async fn a_mount_without_keys_is_listed_and_one_without_listings_fails_those_below_it() {
    let (root, unlisted) = (MemoryStore::new(), Guarantees { listing: Listing::None, ..Guarantees::READ_ONLY });
    put(&root, &["a"]).await;
    let store = Arc::new(Keyed::new(Unlisted(MemoryStore::new()), unlisted));
    let all =
        Mounts::new("test", Arc::new(root).into(), BTreeMap::from([(name("w"), store as Arc<dyn SnapshotStore>)]));
    assert_eq!(children(&all, "", 1).await, ["a", "w/"]);
    for below in ["", "w/"] {
        let listed = all.list_prefix(&prefix(below), PageRequest::first(9)).await;
        assert!(matches!(listed, Err(StoreError::Unsupported { what: "listings" })), "{below}");
    }
    assert_eq!(all.guarantees_below(&prefix("w/")).listing, Listing::None);
    assert_eq!(all.guarantees_below(&prefix("x/")).listing, Listing::Sorted);
}

/// The root is not of one store, so its consolidated metadata are not trusted.
#[tokio::test]
async fn trust_in_consolidated_metadata_ends_at_mounts() {
    let trusted = Guarantees { consolidated: Consolidated::Trusted, ..Guarantees::READ_ONLY };
    let store = |guarantees| -> Arc<dyn SnapshotStore> { Arc::new(Keyed::new(MemoryStore::new(), guarantees)) };
    let mounts = BTreeMap::from([(name("lab"), store(trusted)), (name("other"), store(Guarantees::READ_ONLY))]);
    let all = Mounts::new("test", ServedStore::read_only(store(trusted)), mounts);
    for (below, expected) in [
        ("", Consolidated::Ignored),
        ("x/", Consolidated::Trusted),
        ("lab/", Consolidated::Trusted),
        ("other/", Consolidated::Ignored),
    ] {
        assert_eq!(all.guarantees_below(&prefix(below)).consolidated, expected, "{below}");
    }
    let alone = Mounts::new("test", ServedStore::read_only(store(trusted)), BTreeMap::<_, ServedStore>::new());
    assert_eq!(alone.guarantees().consolidated, Consolidated::Trusted);
}

/// A listing fixes the keys of each store.
#[tokio::test]
async fn listed_keys_are_known_to_the_snapshot_of_their_store() {
    let fixture = Fixture::new().await;
    let keys = ["lab/d", "lab/none", "a", "lab"].map(key);
    let snapshot = fixture.all.snapshot(&keys).await.unwrap();
    let listed = fixture.all.list_prefix(&prefix("lab/"), PageRequest::first(9)).await.unwrap().keys;
    let found = listed.iter().find(|entry| entry.key == keys[0]).map(|entry| entry.meta.clone());
    assert_eq!(snapshot.cached(&keys[0]).unwrap(), CachedMeta::Unknown);
    for (key, meta) in [(&keys[0], found.clone()), (&keys[1], None), (&keys[2], None), (&keys[3], None)] {
        snapshot.insert_listed(key, meta, Instant::now()).unwrap();
    }
    assert_eq!(snapshot.cached(&keys[0]).unwrap(), CachedMeta::Known(found));
    assert_eq!(snapshot.cached(&keys[1]).unwrap(), CachedMeta::Known(None));
    assert!(
        matches!(snapshot.cached(&keys[2]).unwrap(), CachedMeta::Known(Some(_))),
        "commits are known without listings"
    );
}

/// A store with a reader of metadata.
#[derive(Clone)]
struct WithReader(MemoryStore, Arc<AtomicU64>);

#[async_trait]
impl ReadableStore for WithReader {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.0.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.0.head(key).await
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        Some(self)
    }
}

impl MetadataCache for WithReader {
    fn cached(&self, _key: &Key) -> CachedMeta {
        CachedMeta::Unknown
    }

    fn is_filled_by_requests(&self) -> bool {
        false
    }

    fn reader(&self) -> Option<MetadataReader<'_>> {
        Some(Box::new(|key| {
            self.1.fetch_add(1, Ordering::Relaxed);
            let found = self.0.head(key).now_or_never();
            found.and_then(Result::ok).map_or(CachedMeta::Unknown, CachedMeta::Known)
        }))
    }
}

#[async_trait]
impl ListableStore for WithReader {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.0.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.0.list_dir(prefix, page).await
    }
}

#[tokio::test]
async fn each_store_caches_its_keys() {
    let fixture = Fixture::new().await;
    let read = Arc::new(AtomicU64::new(0));
    let recalling = CachedStore::new(WithReader(fixture.lab.clone(), read.clone()), Recheck::Always);
    let lab: Arc<dyn SnapshotStore> = Arc::new(Keyed::new(recalling, Guarantees::READ_ONLY));
    let mounts = BTreeMap::from([(name("lab"), lab), (name("lab-2"), foreign(&fixture.other))]);
    let all = Mounts::new("test", Arc::new(fixture.root.clone()).into(), mounts);
    let keys = ["a", "lab", "lab/c/0", "lab/d", "lab/none", "lab-2/e"].map(key);
    let snapshot = all.snapshot(&keys).await.unwrap();
    let first = snapshot.meta(&keys[3]).await.unwrap();
    put(&fixture.lab, &["d"]).await;
    snapshot.load_cached(&keys.to_vec()).unwrap();
    assert_eq!(read.load(Ordering::Relaxed), 2, "one was read before");
    assert_eq!(snapshot.cached(&keys[2]).unwrap(), CachedMeta::Known(fixture.lab.head(&key("c/0")).await.unwrap()));
    assert_eq!(snapshot.cached(&keys[3]).unwrap(), CachedMeta::Known(first), "the first read counts");
    assert_eq!(snapshot.cached(&keys[4]).unwrap(), CachedMeta::Known(None));
    assert_eq!(snapshot.cached(&keys[5]).unwrap(), CachedMeta::Unknown, "its store has no reader");
    let missing = snapshot.load_cached(&vec![key("lab/d"), key("lab/e")]);
    assert!(matches!(missing, Err(StoreError::NotInSnapshot { key: missing }) if missing == key("lab/e")));
}

#[tokio::test]
async fn a_snapshot_is_one_of_each_store() {
    let fixture = Fixture::new().await;
    let all = ["a", "lab", "lab/d", "lab-2/e", "m/none"].map(key);
    let snapshot = fixture.all.snapshot(&all).await.unwrap();
    assert_eq!(snapshot.cached(&key("a")).unwrap(), CachedMeta::Known(fixture.root.head(&key("a")).await.unwrap()));
    assert_eq!(snapshot.cached(&key("lab/d")).unwrap(), CachedMeta::Unknown);
    assert_eq!(snapshot.cached(&key("lab")).unwrap(), CachedMeta::Known(None));
    snapshot.stat_many(&all).await.unwrap();
    assert!(snapshot.meta(&key("lab/d")).await.unwrap().is_some());
    put(&fixture.lab, &["d"]).await;
    put(&fixture.root, &["a"]).await;
    let read = async |at: &str| snapshot.get(&key(at), None).await;
    assert!(matches!(read("lab/d").await, Err(StoreError::Changed { key: changed }) if changed == key("lab/d")));
    assert!(read("a").await.unwrap().is_some());
    assert!(read("lab").await.unwrap().is_none());
    assert_eq!(read("lab-2/e").await.unwrap().unwrap().bytes().await.unwrap(), "e");
    for at in ["lab/c/0", "m/x"] {
        assert!(matches!(read(at).await, Err(StoreError::NotInSnapshot { key: missing }) if missing == key(at)));
    }
    let single = fixture.all.snapshot(&[key("lab/c/0")]).await.unwrap();
    let last = single.get(&key("lab/c/0"), ByteRange::last(1).ok()).await.unwrap().unwrap();
    assert_eq!(last.bytes().await.unwrap(), "0");
    assert!(single.get(&key("a"), None).await.is_err());
    let _: &dyn Snapshot = &*single;
}

fn is_refused<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unsupported { what }) if what.starts_with("changes"))
}

#[tokio::test]
async fn changes_of_a_mount_or_across_stores_are_unsupported_and_change_nothing() {
    let fixture = Fixture::new().await;
    let all = &fixture.all;
    let before = keys(all, "", 50).await;
    let any = Precondition::none;
    for at in ["lab", "lab/d", "lab/new", "lab-2/e"] {
        assert!(is_refused(all.set(&key(at), "new".into(), any()).await), "{at}");
        assert!(is_refused(all.stage(&key(at), "new".into()).await), "{at}");
        assert!(is_refused(all.erase(&key(at), any()).await), "{at}");
    }
    for below in ["", "lab/", "lab/c/", "lab-2/"] {
        assert!(is_refused(all.erase_prefix(&prefix(below)).await), "{below}");
    }
    let put = |at: &str| Change::Put { key: key(at), value: "new".into(), precondition: any() };
    for change in [
        put("lab/new"),
        Change::Erase { key: key("lab/d"), precondition: any() },
        Change::Check { key: key("lab/none"), precondition: any() },
        Change::ErasePrefix { prefix: prefix("") },
        Change::ErasePrefix { prefix: prefix("lab/c/") },
        Change::CheckEmpty { prefix: prefix("lab/none/") },
    ] {
        assert!(is_refused(all.commit(vec![put("new"), change.clone()]).await), "{change:?}");
    }
    assert_eq!(keys(all, "", 50).await, before);
    all.commit(vec![put("new"), Change::ErasePrefix { prefix: prefix("m/") }]).await.unwrap();
    let staged = all.stage(&key("n/staged"), Payload::from_bytes("s")).await.unwrap();
    all.commit(vec![Change::Set { staged, precondition: any() }]).await.unwrap();
    assert_eq!(fixture.root.head(&key("n/staged")).await.unwrap().unwrap().size, 1);
    assert!(fixture.root.head(&key("m/x")).await.unwrap().is_none());
    all.check_writable().await.unwrap();
}

#[tokio::test]
async fn guarantees_are_those_of_the_store_below_a_prefix_and_the_weakest_at_the_root() {
    let fixture = Fixture::new().await;
    let all = &fixture.all;
    let root = fixture.root.guarantees();
    assert_eq!(all.guarantees_below(&prefix("m/")), root);
    assert_eq!(all.guarantees_below(&prefix("lab/c/")), Guarantees::READ_ONLY);
    let weakest = all.guarantees();
    assert_eq!((weakest.reads, weakest.writes, weakest.conditions), (Reads::Key, Writes::None, Conditions::None));
    assert_eq!(all.guarantees_below(&prefix("")), weakest);
    let parts = all.parts();
    let named: Vec<_> = parts.iter().map(|(name, _)| name.as_deref()).collect();
    assert_eq!(named, [None, Some("lab-2"), Some("lab")]);
    assert_eq!(parts[0].1, root);
    assert!(all.watermark_below(&prefix("m/")).await.unwrap().is_some());
    assert!(all.watermark_below(&prefix("lab/")).await.unwrap().is_none());
    assert!(all.watermark_below(&prefix("")).await.unwrap().is_none());
    // A store with commits is read-only where it is mounted.
    let mounts = BTreeMap::from([(name("x"), Arc::new(fixture.other.clone()) as Arc<dyn SnapshotStore>)]);
    let mounted = Mounts::new("test", ServedStore::read_only(foreign(&fixture.root)), mounts);
    let below = mounted.guarantees_below(&prefix("x/"));
    assert_eq!((below.reads, below.writes, below.conditions), (Reads::Commit, Writes::None, Conditions::None));
    assert!(!mounted.served().is_writable());
}

#[tokio::test]
async fn errors_of_a_mount_have_the_keys_of_all_stores() {
    let (root, lab) = (MemoryStore::new(), Failing(MemoryStore::new()));
    put(&lab.0, &["corrupt", "down"]).await;
    let lab = Arc::new(Keyed::new(lab, Guarantees::READ_ONLY)) as Arc<dyn SnapshotStore>;
    let all = Mounts::new("test", Arc::new(root).into(), BTreeMap::from([(name("lab"), lab)]));
    let error = all.get(&key("lab/corrupt"), None).await.map(|_| ()).unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { key: found, .. } if *found == key("lab/corrupt")), "{error:?}");
    let error = all.head(&key("lab/down")).await.unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.to_string().contains("lab/") && source.source().is_some(), "{error:?}");
    assert_eq!((error.failed_at(), error.reason()), (Some("lab/down"), Some("no cable")));
    assert!(error.backend_source::<zarrd_store::MountFailure>().is_some(), "{error:?}");
}

struct Failing(MemoryStore);

#[async_trait]
impl StoreWrapper for Failing {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation.key() {
            Some(key) if key.as_str() == "corrupt" => Err(StoreError::corrupt(key.clone(), "torn")),
            Some(key) => {
                let failed = StoreError::backend(zarrd_store::BackendErrorKind::Connection, "unplugged");
                Err(failed.at(key.as_str()).because("no cable"))
            }
            None => Ok(()),
        }
    }
}

zarrd_store_testkit::conformance_tests!(WithMount => readable_writeable_listable, snapshots, transactional);

/// The guarantees of a store that is written key by key.
const KEYS: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

fn set(at: &str, precondition: Precondition) -> Change {
    Change::Put { key: key(at), value: "ours".into(), precondition }
}

fn check_absent(at: &str) -> Change {
    Change::Check { key: key(at), precondition: Precondition::absent() }
}

#[tokio::test]
async fn mount_that_can_be_written_is_written_key_by_key() {
    let (root, lab, other) = (MemoryStore::new(), MemoryStore::new(), MemoryStore::new());
    put(&other, &["e"]).await;
    let written = ServedStore::key_by_key(Arc::new(Keyed::new(lab.clone(), KEYS)));
    let mounts = BTreeMap::from([(name("lab"), written), (name("other"), foreign(&other).into())]);
    let all = Mounts::new("test", Arc::new(root.clone()).into(), mounts);
    let of = |below: &str| all.guarantees_below(&prefix(below)).writes;
    assert_eq!([of("a/"), of("lab/"), of("other/"), of("")], [Writes::Commit, Writes::Key, Writes::None, Writes::None]);
    all.set(&key("lab/a"), "value".into(), Precondition::absent()).await.unwrap();
    let failed = all.set(&key("lab/a"), "value".into(), Precondition::absent()).await;
    assert!(matches!(failed, Err(StoreError::PreconditionFailed { key: found, .. }) if found == key("lab/a")));
    let staged = all.stage(&key("lab/s"), "staged".into()).await.unwrap();
    assert_eq!(staged.key(), &key("lab/s"));
    let changes = vec![Change::Set { staged, precondition: Precondition::none() }];
    let batch = |documents| Batch { chunks: Vec::new(), documents };
    let documents = vec![check_absent("zarr.json"), set("lab/b", Precondition::none())];
    let outcomes = all.apply(Batch { chunks: changes, documents }).await.unwrap();
    assert!(matches!(outcomes[..], [ChangeOutcome::Checked, ChangeOutcome::Set(_), ChangeOutcome::Set(_)]));
    for (at, expected) in [("a", "value"), ("s", "staged"), ("b", "ours")] {
        assert_eq!(lab.get(&key(at), None).await.unwrap().unwrap().bytes().await.unwrap(), expected);
    }
    // A check of the store at the root.
    put(&root, &["zarr.json"]).await;
    let failed = all.apply(batch(vec![check_absent("zarr.json"), set("lab/x", Precondition::none())])).await;
    assert!(matches!(failed, Err(StoreError::PreconditionFailed { key: found, .. }) if found == key("zarr.json")));
    for refused in [
        vec![set("lab/x", Precondition::none()), set("x", Precondition::none())],
        vec![set("other/x", Precondition::none())],
        vec![set("lab/x", Precondition::none()), set("other/x", Precondition::none())],
        vec![Change::ErasePrefix { prefix: Prefix::root() }],
        vec![set("lab", Precondition::none())],
    ] {
        assert!(matches!(all.apply(batch(refused)).await, Err(StoreError::Unsupported { .. })));
    }
    // A commit is of the store at the root alone.
    let commit = all.commit(vec![set("lab/x", Precondition::none())]).await;
    assert!(matches!(commit, Err(StoreError::Unsupported { .. })));
    assert!(lab.head(&key("x")).await.unwrap().is_none() && root.head(&key("x")).await.unwrap().is_none());
    assert_eq!(all.erase_prefix(&prefix("lab/")).await.unwrap(), KeyCount::exact(3));
    assert!(all.served().commits().is_ok());
    // A store at the root that is read-only.
    let written = ServedStore::key_by_key(Arc::new(Keyed::new(lab, KEYS)));
    let below = Mounts::new("test", foreign(&other).into(), BTreeMap::from([(name("lab"), written)])).served();
    below.writes().unwrap().set(&key("lab/a"), "value".into(), Precondition::none()).await.unwrap();
    assert!(below.writes().unwrap().set(&key("a"), "value".into(), Precondition::none()).await.is_err());
    assert!(matches!(below.commits(), Err(StoreError::Unsupported { .. })));
}
