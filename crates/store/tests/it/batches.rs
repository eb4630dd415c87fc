//! Batches of stores that are written key by key.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use zarrd_store::{
    Batch, BatchStore, ByteRange, Change, ChangeOutcome, Conditions, Guarantees, IntentId, Key, Keyed, MemoryStore,
    Operation, Payload, Precondition, Prefix, ReadableStore, Staged, StoreError, StoreWrapper, Version, WriteableStore,
    Writes,
};

/// The guarantees of a store that is written key by key, with conditions.
const KEYS: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

/// A store that counts its sets, fails to set one key, and changes another key before it sets a third.
#[derive(Clone, Default)]
struct TestStore(Arc<State>);

#[derive(Default)]
struct State {
    inner: MemoryStore,
    sets: AtomicUsize,
    failing: Mutex<Option<Key>>,
    /// When this key is set, the other one is set as well, by another program.
    interference: Mutex<Option<(Key, Key)>>,
    /// Sets wait until they are let go.
    gate: Mutex<Option<Arc<Notify>>>,
}

#[async_trait]
impl StoreWrapper for TestStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0.inner
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        let Operation::Set(key) = operation else { return Ok(()) };
        let gate = self.0.gate.lock().clone();
        if let Some(gate) = gate {
            gate.notified().await;
        }
        if self.0.failing.lock().as_ref() == Some(key) {
            return Err(StoreError::OutOfSpace);
        }
        let other = self.0.interference.lock().take_if(|(at, _)| at == key);
        if let Some((_, other)) = other {
            self.0.inner.set(&other, "theirs".into(), Precondition::none()).await?;
        }
        self.0.sets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn put(name: &str, value: &'static str, precondition: Precondition) -> Change {
    Change::Put { key: key(name), value: value.into(), precondition }
}

fn check(name: &str, version: Option<Version>) -> Change {
    Change::Check { key: key(name), precondition: Precondition::unchanged(version) }
}

fn keyed(guarantees: Guarantees) -> (TestStore, Keyed<TestStore>) {
    let store = TestStore::default();
    (store.clone(), Keyed::new(store, guarantees))
}

async fn value(store: &impl ReadableStore, name: &str) -> Option<String> {
    let found = store.get(&key(name), None).await.unwrap()?;
    Some(String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap())
}

async fn version(store: &impl ReadableStore, name: &str) -> Option<Version> {
    store.head(&key(name)).await.unwrap().map(|meta| meta.version)
}

async fn staged(store: &impl BatchStore, name: &str, value: impl Into<Payload>) -> Staged {
    store.stage(&key(name), value.into()).await.unwrap()
}

#[tokio::test]
async fn chunks_are_changed_before_documents() {
    let (store, keyed) = keyed(KEYS);
    let zero = staged(&keyed, "a/c/0", "staged").await;
    assert_eq!(value(&keyed, "a/c/0").await, None, "it is not visible");
    let chunks = vec![
        Change::Set { staged: zero, precondition: Precondition::absent() },
        put("a/c/1", "put", Precondition::none()),
        Change::Erase { key: key("a/c/2"), precondition: Precondition::none() },
    ];
    let documents = vec![check("a/.zattrs", None), put("a/zarr.json", "document", Precondition::absent())];
    // The document is not set once a chunk fails.
    *store.0.failing.lock() = Some(key("a/c/1"));
    let batch = Batch { chunks, documents };
    let failed = keyed.apply(batch.clone()).await.unwrap_err();
    let StoreError::PartlyApplied { applied: 1..=2, of: 4, conflicts, source } = failed else { panic!("{failed:?}") };
    assert!(conflicts.is_empty());
    assert!(matches!(*source, StoreError::OutOfSpace));
    assert_eq!(value(&keyed, "a/zarr.json").await, None);
    *store.0.failing.lock() = None;
    keyed.erase(&key("a/c/0"), Precondition::none()).await.unwrap();
    let outcomes = keyed.apply(batch).await.unwrap();
    let [ChangeOutcome::Checked, ChangeOutcome::Set(document), ChangeOutcome::Set(_), ChangeOutcome::Set(_), erased] =
        outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert_eq!(erased, ChangeOutcome::Erased { existed: false });
    assert_eq!(Some(document.version), version(&keyed, "a/zarr.json").await);
    assert_eq!(value(&keyed, "a/c/0").await.as_deref(), Some("staged"));
}

#[tokio::test]
async fn failed_check_changes_nothing() {
    let (store, keyed) = keyed(KEYS);
    keyed.set(&key("a/zarr.json"), "document".into(), Precondition::none()).await.unwrap();
    let current = version(&keyed, "a/zarr.json").await;
    let sets = store.0.sets.load(Ordering::Relaxed);
    for documents in [
        vec![check("a/zarr.json", None)],
        vec![put("b", "new", Precondition::absent()), put("a/zarr.json", "new", Precondition::absent())],
    ] {
        let batch = Batch { chunks: vec![put("a/c/0", "new", Precondition::none())], documents };
        let failed = keyed.apply(batch).await;
        assert!(matches!(&failed, Err(StoreError::PreconditionFailed { key, current: found })
            if key.as_str() == "a/zarr.json" && *found == current));
    }
    let empty = Change::CheckEmpty { prefix: Prefix::parse("a/").unwrap() };
    let failed = keyed.apply(Batch::of_documents(vec![empty, put("b", "new", Precondition::none())])).await;
    assert!(matches!(failed, Err(StoreError::NotEmpty { .. })));
    assert_eq!(store.0.sets.load(Ordering::Relaxed), sets);
}

#[tokio::test]
async fn checks_are_compared_again_after_the_last_change() {
    let (store, keyed) = keyed(KEYS);
    *store.0.interference.lock() = Some((key("a/c/0"), key("a/zarr.json")));
    let chunks = vec![put("a/c/0", "ours", Precondition::none()), put("a/c/1", "ours", Precondition::none())];
    let failed = keyed.apply(Batch { chunks, documents: vec![check("a/zarr.json", None)] }).await.unwrap_err();
    let StoreError::PartlyApplied { applied: 2, of: 2, source, .. } = failed else { panic!("{failed:?}") };
    assert!(matches!(*source, StoreError::PreconditionFailed { key, .. } if key.as_str() == "a/zarr.json"));
}

#[tokio::test]
async fn chunk_that_another_program_changed_keeps_its_value() {
    let (store, keyed) = keyed(KEYS);
    *store.0.interference.lock() = Some((key("a/c/1"), key("a/c/1")));
    let chunks = (0..100).map(|number| put(&format!("a/c/{number}"), "ours", Precondition::absent())).collect();
    let documents = vec![put("a/zarr.json", "ours", Precondition::absent())];
    let failed = keyed.apply(Batch { chunks, documents }).await.unwrap_err();
    let StoreError::PartlyApplied { applied: 99, of: 101, conflicts, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(conflicts, [key("a/c/1")]);
    assert_eq!(value(&keyed, "a/c/1").await.as_deref(), Some("theirs"));
    assert_eq!(value(&keyed, "a/zarr.json").await, None);
}

#[tokio::test]
async fn undeclared_conditions_are_refused() {
    let at = Precondition::at(Version::from_u128(1));
    for (conditions, condition, is_refused) in [
        (Conditions::None, Precondition::absent(), true),
        (Conditions::None, Precondition::none(), false),
        (Conditions::CreateOnly, Precondition::absent(), false),
        (Conditions::CreateOnly, at.clone(), true),
    ] {
        let (store, keyed) = keyed(Guarantees { conditions, ..KEYS });
        let refused = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Unsupported { .. }));
        let set = keyed.set(&key("a"), "value".into(), condition.clone()).await.map(drop);
        assert_eq!(refused(set), is_refused, "{conditions:?} {condition:?}");
        let documents = vec![put("b", "value", Precondition::none()), put("c", "value", condition.clone())];
        let applied = keyed.apply(Batch::of_documents(documents)).await.map(drop);
        assert_eq!(refused(applied), is_refused, "{conditions:?} {condition:?}");
        assert_eq!(store.0.sets.load(Ordering::Relaxed), if is_refused { 0 } else { 3 });
    }
    let (_, keyed) = keyed(Guarantees { conditional_erase: false, ..KEYS });
    assert!(matches!(keyed.erase(&key("a"), at.clone()).await, Err(StoreError::Unsupported { .. })));
    let erase = Change::Erase { key: key("a"), precondition: at };
    assert!(matches!(keyed.apply(Batch::of_documents(vec![erase])).await, Err(StoreError::Unsupported { .. })));
    assert!(!keyed.erase(&key("a"), Precondition::none()).await.unwrap());
}

#[tokio::test]
async fn read_only_store_is_not_changed() {
    let (store, keyed) = keyed(Guarantees::READ_ONLY);
    assert!(matches!(
        keyed.set(&key("a"), "a".into(), Precondition::none()).await,
        Err(StoreError::Unsupported { .. })
    ));
    assert!(matches!(keyed.erase(&key("a"), Precondition::none()).await, Err(StoreError::Unsupported { .. })));
    assert!(matches!(keyed.erase_prefix(&Prefix::root()).await, Err(StoreError::Unsupported { .. })));
    assert!(matches!(keyed.stage(&key("a"), "a".into()).await, Err(StoreError::Unsupported { .. })));
    let batch = Batch::of_documents(vec![put("a", "a", Precondition::none())]);
    assert!(matches!(keyed.apply(batch).await, Err(StoreError::Unsupported { .. })));
    assert_eq!(store.0.sets.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn intents_are_refused_and_none_excludes() {
    let (_, keyed) = keyed(KEYS);
    let add = Change::AddIntent { id: IntentId::random(), record: "record".into() };
    let refused = keyed.apply(Batch::of_documents(vec![put("a", "a", Precondition::none()), add])).await;
    assert!(matches!(refused, Err(StoreError::Unsupported { .. })));
    assert_eq!(value(&keyed, "a").await, None);
    let twice = vec![put("a", "a", Precondition::none()), put("a", "b", Precondition::none())];
    assert!(matches!(keyed.apply(Batch::of_documents(twice)).await, Err(StoreError::DuplicateKey { .. })));
}

#[tokio::test]
async fn running_batch_is_finished_without_its_caller() {
    let (store, keyed) = keyed(KEYS);
    let gate = Arc::new(Notify::new());
    *store.0.gate.lock() = Some(gate.clone());
    let documents = vec![put("a", "a", Precondition::none()), put("b", "b", Precondition::none())];
    let mut applying = Box::pin(keyed.apply(Batch::of_documents(documents)));
    assert!(futures::poll!(&mut applying).is_pending());
    drop(applying);
    *store.0.gate.lock() = None;
    while value(&keyed, "b").await.is_none() {
        gate.notify_one();
        tokio::task::yield_now().await;
    }
    assert_eq!(value(&keyed, "a").await.as_deref(), Some("a"));
}

#[tokio::test]
async fn staged_values_of_every_size_are_read_and_set() {
    let (_, keyed) = keyed(KEYS);
    for len in [0, 1, 20_000, 3 << 20] {
        let content: Vec<u8> = (0..len).map(|number: u32| (number % 251) as u8).collect();
        let pieces = content.chunks(700_000).map(|piece| Ok(piece.to_vec().into())).collect::<Vec<_>>();
        let staged = staged(&keyed, "a", Payload::from_stream(futures::stream::iter(pieces))).await;
        assert_eq!(staged.size(), u64::from(len));
        for (start, end) in [(0, 7), (15_000, 1 << 20), ((1 << 20) - 1, (2 << 20) + 9), (2 << 20, 9 << 20)] {
            let range = ByteRange::bounded(start, end).unwrap();
            let found = keyed.read_staged(&staged, Some(range)).await.unwrap();
            let found: Vec<u8> =
                futures::TryStreamExt::try_concat(futures::TryStreamExt::map_ok(found, Vec::from)).await.unwrap();
            let within = |at: u64| (at as usize).min(content.len());
            assert_eq!(found, content[within(start)..within(end)], "{len} {start}");
        }
        let set = Change::Set { staged, precondition: Precondition::none() };
        keyed.apply(Batch { chunks: vec![set], documents: Vec::new() }).await.unwrap();
        let stored = keyed.get(&key("a"), None).await.unwrap().unwrap().bytes().await.unwrap();
        assert_eq!(stored, content);
    }
    let (_, other) = self::keyed(KEYS);
    let foreign = staged(&other, "a", "value").await;
    assert!(matches!(keyed.read_staged(&foreign, None).await, Err(StoreError::InvalidStaged)));
    let set = Change::Set { staged: foreign, precondition: Precondition::none() };
    assert!(matches!(keyed.apply(Batch::of_documents(vec![set])).await, Err(StoreError::InvalidStaged)));
    let short = keyed.stage(&key("a"), Payload::sized(3, futures::stream::iter([Ok("ab".into())]))).await;
    assert!(matches!(short, Err(StoreError::Upload(_))));
}
