//! A store without commits, in memory, that fails, and that other programs write at chosen moments.

use std::{collections::VecDeque, sync::Arc};

use async_trait::async_trait;
use futures::TryStreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use zarrd_array::{
    Arrays, CreateOptions, CreateOutcome, ElementSource, Hierarchies, NodeError, NodeInfo, Options, WriteError,
    WriteReport,
};
use zarrd_meta::{
    Dialect, NodePath,
    documents::NodePatch,
    selection::{ReadRequest, Selection},
    zom::Zom,
};
use zarrd_store::{
    Conditions, Guarantees, Key, Keyed, MemoryStore, Operation, Precondition, Prefix, ReadableStore, ServedStore,
    StoreError, StoreWrapper, WriteableStore, Writes, list_all,
};

/// The guarantees of a folder that one process writes.
pub(crate) const FOLDER: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

/// The guarantees of a bucket.
pub(crate) const BUCKET: Guarantees = Guarantees { conditions: Conditions::Atomic, conditional_erase: false, ..FOLDER };

/// Something that happens right before a change of a key.
pub(crate) enum Event {
    /// The change fails.
    Fail,
    /// Another program sets a key.
    Set(&'static str, Vec<u8>),
}

/// A store of keys. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct FakeStore(Arc<State>);

#[derive(Default)]
struct State {
    memory: MemoryStore,
    events: Mutex<VecDeque<(String, Event)>>,
    /// The keys that were changed, in order.
    changed: Mutex<Vec<String>>,
}

#[async_trait]
impl StoreWrapper for FakeStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0.memory
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        let name = match operation {
            Operation::Set(key) | Operation::Erase(key) => key.to_string(),
            Operation::ErasePrefix(prefix) => prefix.to_string(),
            Operation::Commit | Operation::Stage(_) => panic!("this store has no commits"),
            _ => return Ok(()),
        };
        let event = self.0.events.lock().pop_front_if(|(at, _)| *at == name);
        match event {
            Some((_, Event::Fail)) => return Err(StoreError::OutOfSpace),
            Some((_, Event::Set(key, value))) => self.put(key, value).await,
            None => {}
        }
        self.0.changed.lock().push(name);
        Ok(())
    }
}

/// An engine over the store.
pub(crate) struct Engine {
    pub(crate) store: FakeStore,
    pub(crate) arrays: Arrays,
    pub(crate) nodes: Hierarchies,
}

impl FakeStore {
    /// Sets a key as another program does.
    pub(crate) async fn put(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value: Vec<u8> = value.into();
        self.0.memory.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    /// Lets something happen right before the next change of a key.
    pub(crate) fn before_change(&self, key: &str, event: Event) {
        self.0.events.lock().push_back((key.to_owned(), event));
    }

    /// The keys that were changed since the last call, in order.
    pub(crate) fn take_changed(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.changed.lock())
    }

    pub(crate) async fn value(&self, key: &str) -> Option<Vec<u8>> {
        let value = ReadableStore::get(&self.0.memory, &Key::parse(key).unwrap(), None).await.unwrap()?;
        Some(value.bytes().await.unwrap().to_vec())
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        let all = list_all(&self.0.memory, &Prefix::root());
        all.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap()
    }
}

impl Engine {
    pub(crate) fn new(guarantees: Guarantees) -> Self {
        Self::over(FakeStore::default(), guarantees)
    }

    pub(crate) fn over(store: FakeStore, guarantees: Guarantees) -> Self {
        let served = ServedStore::key_by_key(Arc::new(Keyed::new(store.clone(), guarantees)));
        let arrays = Arrays::new(served, Options::default());
        Self { store, nodes: arrays.hierarchies(), arrays }
    }

    /// An engine over an array of one dimension, in chunks of four, full of ones.
    pub(crate) async fn with_array(guarantees: Guarantees, len: u64) -> Self {
        let engine = Self::new(guarantees);
        engine.create("/a", &array(len)).await.unwrap();
        if len > 0 {
            engine.write("", vec![1; len as usize]).await.unwrap();
        }
        engine.store.take_changed();
        engine
    }

    pub(crate) async fn create(&self, at: &str, document: &Value) -> Result<CreateOutcome, NodeError> {
        self.create_as(at, document, None).await
    }

    pub(crate) async fn create_as(
        &self,
        at: &str,
        document: &Value,
        dialect: Option<Dialect>,
    ) -> Result<CreateOutcome, NodeError> {
        let zom = Arc::new(Zom::parse(document.to_string()).unwrap());
        self.nodes.create(&path(at), zom, &CreateOptions { dialect, ..CreateOptions::default() }).await
    }

    pub(crate) async fn write(&self, select: &str, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let selection = Selection::parse(select).unwrap();
        let write = self.arrays.write(&path("/a"), None, &selection, Precondition::none()).await?;
        write.execute(elements(values)).await
    }

    pub(crate) async fn append(&self, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let append = self.arrays.append(&path("/a"), None, "0", Precondition::none()).await?;
        append.execute(None, elements(values)).await
    }

    pub(crate) async fn patch(&self, at: &str, patch: &Value) -> Result<NodeInfo, NodeError> {
        let changes = NodePatch::parse(patch.to_string()).unwrap();
        self.nodes.patch(&path(at), None, &changes, &Precondition::none()).await.map(|node| node.info)
    }

    pub(crate) async fn erase(&self, at: &str) -> Result<u64, NodeError> {
        Ok(self.nodes.erase(&path(at), None, &Precondition::none()).await?.count)
    }

    pub(crate) async fn read(&self) -> Vec<u8> {
        let reading = self.arrays.read(&path("/a"), None, &ReadRequest::Select(Selection::default()), 1 << 20).await;
        let parts = reading.unwrap().into_stream().map_ok(|part| match part {
            zarrd_codec::Elements::Fixed(bytes) => bytes.to_vec(),
            zarrd_codec::Elements::Variable(_) => panic!("elements of variable length"),
        });
        parts.try_concat().await.unwrap()
    }
}

pub(crate) fn path(text: &str) -> NodePath {
    NodePath::parse(text).unwrap()
}

fn elements(values: Vec<u8>) -> ElementSource {
    ElementSource::Fixed(Box::pin(futures::stream::iter([Ok(values.into())])))
}

/// An array of one dimension, in chunks of four.
pub(crate) fn array(len: u64) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [len], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}})
}
