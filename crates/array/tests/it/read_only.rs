//! Arrays and hierarchies in a store without commits, whose values other programs change.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use futures::TryStreamExt;
use serde_json::{Value, json};
use zarrd_array::{
    ArrayError, ArrayRead, Arrays, ConvertOptions, CreateOptions, Depth, ExistingDocuments, LossPolicy, NodeError,
    Options, SettledIntents, WriteError,
};
use zarrd_codec::Elements;
use zarrd_meta::{
    Dialect, NodePath,
    documents::NodePatch,
    selection::{ReadRequest, Selection},
    zom::Zom,
};
use zarrd_store::{
    ByteRange, GetResult, Guarantees, Key, Keyed, MemoryStore, Operation, Precondition, ServedStore, StoreError,
    StoreWrapper, WriteableStore,
};

/// The number of attempts to read values that change.
const ATTEMPTS: usize = 16;

/// A store that counts its requests, and sets a value after each look at a key, as often as asked for.
#[derive(Clone, Default)]
struct ChangingStore {
    memory: MemoryStore,
    requests: Arc<AtomicUsize>,
    /// The number of looks that are still followed by a change.
    changes: Arc<AtomicUsize>,
    /// The key whose looks are followed by a change.
    changing: &'static str,
    /// True if the array is moved from `g/a` to `g/b` before the next look at it.
    moving: Arc<AtomicBool>,
}

#[async_trait]
impl StoreWrapper for ChangingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.memory
    }

    async fn before(&self, _: Operation<'_>) -> Result<(), StoreError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn head(&self, key: &Key) -> Result<Option<zarrd_store::ValueMeta>, StoreError> {
        if self.moving.load(Ordering::Relaxed) && key.as_str() == "g/a/zarr.json" {
            self.moving.store(false, Ordering::Relaxed);
            let value = zarrd_store::ReadableStore::get(&self.memory, key, None).await?.unwrap().bytes().await?;
            self.memory.erase(key, Precondition::none()).await?;
            self.memory.set(&Key::parse("g/b/zarr.json").unwrap(), value.into(), Precondition::none()).await?;
        }
        let found = zarrd_store::ReadableStore::head(&self.memory, key).await?;
        self.change(key).await?;
        Ok(found)
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let found = zarrd_store::ReadableStore::get(&self.memory, key, range).await?;
        self.change(key).await?;
        Ok(found)
    }
}

impl ChangingStore {
    /// Sets a value after a look at it, if that is due.
    async fn change(&self, key: &Key) -> Result<(), StoreError> {
        let is_due = |left: usize| left.checked_sub(1);
        if key.as_str() == self.changing
            && self.changes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok()
        {
            let value = zarrd_store::ReadableStore::get(&self.memory, key, None).await?.unwrap().bytes().await?;
            self.memory.set(key, value.into(), Precondition::none()).await?;
        }
        Ok(())
    }
}

/// Arrays over a store that is served for reading only.
struct ReadOnly {
    store: ChangingStore,
    arrays: Arrays,
}

impl ReadOnly {
    async fn new() -> Self {
        Self::changing("").await
    }

    /// With a key that is changed after looks at it.
    async fn changing(key: &'static str) -> Self {
        let store = ChangingStore { changing: key, ..ChangingStore::default() };
        let keyed = Keyed::new(store.clone(), Guarantees::READ_ONLY);
        let arrays = Arrays::new(ServedStore::read_only(Arc::new(keyed)), Options::default());
        let filled = Self { store, arrays };
        filled.set("g/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
        filled.set("g/a/zarr.json", document(&[400])).await;
        for chunk in 0..200_u8 {
            filled.set(&format!("g/a/c/{chunk}"), vec![chunk; 2]).await;
        }
        filled
    }

    async fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value: Vec<u8> = value.into();
        self.store.memory.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    fn change_next_looks(&self, count: usize) {
        self.store.changes.store(count, Ordering::Relaxed);
    }

    async fn read(&self, select: &str) -> Result<ArrayRead, ArrayError> {
        read(&self.arrays, select).await
    }
}

fn document(shape: &[u64]) -> Vec<u8> {
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 9,
        "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}});
    document.to_string().into_bytes()
}

fn path(text: &str) -> NodePath {
    NodePath::parse(text).unwrap()
}

async fn read(arrays: &Arrays, select: &str) -> Result<ArrayRead, ArrayError> {
    let request = ReadRequest::Select(Selection::parse(select).unwrap());
    arrays.read(&path("/g/a"), None, &request, 1 << 20).await
}

async fn elements(read: ArrayRead) -> Result<Vec<u8>, ArrayError> {
    let parts = read.into_stream().map_ok(|part| match part {
        Elements::Fixed(bytes) => bytes.to_vec(),
        Elements::Variable(_) => panic!("elements of variable length"),
    });
    parts.try_concat().await
}

fn is_changed(error: &ArrayError) -> bool {
    matches!(error, ArrayError::Store(StoreError::Changed { .. }))
}

/// True for the error of an operation that found another version at each attempt.
fn is_given_up(error: &ArrayError) -> bool {
    is_changed(error) || matches!(error, ArrayError::TooManyConflicts { .. })
}

#[tokio::test]
async fn every_change_fails_before_anything_is_read() {
    let ReadOnly { store, arrays } = ReadOnly::new().await;
    let (nodes, any) = (arrays.hierarchies(), Precondition::none());
    let zom: Value = serde_json::from_slice(&document(&[4])).unwrap();
    let zom = Arc::new(Zom::parse(zom.to_string()).unwrap());
    let patch = NodePatch::parse(json!({"attributes": {"a": 1}}).to_string()).unwrap();
    let convert = |target: Option<NodePath>| ConvertOptions {
        dialect: Dialect::V2,
        target,
        losses: LossPolicy::Allow,
        existing: ExistingDocuments::Keep,
    };
    let is_refused = |error: NodeError| matches!(error, NodeError::Store(StoreError::Unsupported { what: "changes" }));
    assert!(is_refused(nodes.create(&path("/new"), zom.clone(), &CreateOptions::default()).await.unwrap_err()));
    assert!(is_refused(nodes.patch(&path("/g"), None, &patch, &any).await.unwrap_err()));
    assert!(is_refused(nodes.erase(&path("/g"), None, &any).await.unwrap_err()));
    assert!(is_refused(nodes.convert(&path("/g"), None, &convert(None)).await.unwrap_err()));
    assert!(is_refused(nodes.convert(&path("/g"), None, &convert(Some(path("/new")))).await.unwrap_err()));
    let is_refused = |error: WriteError| {
        matches!(error, WriteError::Array(ArrayError::Store(StoreError::Unsupported { what: "changes" })))
            || matches!(error, WriteError::Store(StoreError::Unsupported { what: "changes" }))
    };
    let all = Selection::parse("").unwrap();
    assert!(is_refused(arrays.write(&path("/g/a"), None, &all, any.clone()).await.unwrap_err()));
    assert!(is_refused(arrays.append(&path("/g/a"), None, "0", any).await.unwrap_err()));
    assert_eq!(nodes.settle_intents().await.unwrap(), SettledIntents::default());
    assert_eq!(store.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn reads_answer_as_over_a_store_with_commits() {
    let served = ReadOnly::new().await;
    let plain = Arrays::new(Arc::new(served.store.memory.clone()), Options::default());
    for select in ["", "3", "10:100:7", "[5,1,399]", "0:0", "0:128"] {
        let (expected, found) = (read(&plain, select).await.unwrap(), served.read(select).await.unwrap());
        // Few chunks are looked up for the entity tag.
        let is_large = expected.elements() > 128;
        assert_eq!(found.fingerprint(), expected.fingerprint().filter(|_| !is_large), "{select}");
        assert_eq!(elements(found).await.unwrap(), elements(expected).await.unwrap(), "{select}");
    }
    let describe = |arrays: Arrays| async move {
        let node = arrays.hierarchies().node(&path("/g"), None, Depth::All, None).await.unwrap();
        node.info.zom.to_text().to_value().unwrap()
    };
    assert_eq!(describe(served.arrays).await, describe(plain).await);
}

#[tokio::test]
async fn missing_chunks_are_fill_values() {
    let served = ReadOnly::new().await;
    for chunk in [0, 199] {
        served.store.memory.erase(&Key::parse(&format!("g/a/c/{chunk}")).unwrap(), Precondition::none()).await.unwrap();
    }
    assert_eq!(elements(served.read("0:4").await.unwrap()).await.unwrap(), [9, 9, 1, 1]);
    let all = elements(served.read("").await.unwrap()).await.unwrap();
    assert_eq!((all.first(), all.get(2), all.last()), (Some(&9), Some(&1), Some(&9)));
}

#[tokio::test]
async fn a_cached_array_is_current() {
    let served = ReadOnly::new().await;
    assert_eq!(served.read("").await.unwrap().shape(), [400]);
    served.set("g/a/zarr.json", document(&[6])).await;
    assert_eq!(served.read("").await.unwrap().shape(), [6]);
    let first = served.read("0:2").await.unwrap().fingerprint();
    served.set("g/a/c/0", [7, 7]).await;
    let second = served.read("0:2").await.unwrap();
    assert!(first.is_some() && second.fingerprint() != first);
    assert_eq!(elements(second).await.unwrap(), [7, 7]);
}

#[tokio::test]
async fn a_document_that_changes_while_it_is_read_is_read_again() {
    let served = ReadOnly::changing("g/a/zarr.json").await;
    served.change_next_looks(3);
    assert_eq!(elements(served.read("0:4").await.unwrap()).await.unwrap(), [0, 0, 1, 1]);
    served.change_next_looks(3);
    let info = served.arrays.hierarchies().node(&path("/g"), None, Depth::All, None).await.unwrap().info;
    assert!(info.zom.to_text().to_value().unwrap()["members"]["a"].is_object());
}

#[tokio::test]
async fn a_document_that_never_stays_is_given_up() {
    let served = ReadOnly::changing("g/a/zarr.json").await;
    served.change_next_looks(usize::MAX);
    assert!(is_given_up(&served.read("0:4").await.unwrap_err()));
    let looks = usize::MAX - served.store.changes.load(Ordering::Relaxed);
    // Each attempt reads the document, and then looks at it again.
    assert_eq!(looks, 2 * ATTEMPTS);
    served.change_next_looks(usize::MAX);
    let error = served.arrays.hierarchies().node(&path("/g"), None, Depth::All, None).await.unwrap_err();
    assert!(
        matches!(&error, NodeError::Store(StoreError::Changed { .. }))
            || matches!(&error, NodeError::Array(error) if is_given_up(error)),
        "{error:?}"
    );
    assert_eq!(usize::MAX - served.store.changes.load(Ordering::Relaxed), 2 * ATTEMPTS);
}

/// A plan for a chunk's former value is not carried out on its current one.
#[tokio::test]
async fn a_chunk_that_changes_after_the_plan_fails_the_read() {
    let served = ReadOnly::new().await;
    let planned = served.read("0:4").await.unwrap();
    served.set("g/a/c/1", [8, 8]).await;
    let error = elements(planned).await.unwrap_err();
    assert!(is_changed(&error), "{error:?}");
    assert_eq!(elements(served.read("0:4").await.unwrap()).await.unwrap(), [0, 0, 8, 8]);
}

#[tokio::test]
async fn hierarchies_follow_changes() {
    let served = ReadOnly::new().await;
    let members = || async {
        let info = served.arrays.hierarchies().node(&path("/g"), None, Depth::All, None).await.unwrap().info;
        let tree = info.zom.to_text().to_value().unwrap();
        tree["members"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(members().await, ["a"]);
    served.set("g/b/zarr.json", document(&[4])).await;
    assert_eq!(members().await, ["a", "b"]);
    served.store.memory.erase(&Key::parse("g/a/zarr.json").unwrap(), Precondition::none()).await.unwrap();
    assert_eq!(members().await, ["b"]);
}

/// A group is listed before its members are looked at: a member that moves in between is found where it is now.
#[tokio::test]
async fn a_hierarchy_that_changes_during_the_walk_is_walked_again() {
    let served = ReadOnly::new().await;
    served.store.moving.store(true, Ordering::Relaxed);
    let info = served.arrays.hierarchies().node(&path("/g"), None, Depth::All, None).await.unwrap().info;
    assert!(!served.store.moving.load(Ordering::Relaxed), "the array was moved");
    let tree = info.zom.to_text().to_value().unwrap();
    assert_eq!(tree["members"].as_object().unwrap().keys().collect::<Vec<_>>(), ["b"]);
}
