//! A store without commits, in memory, that fails, and that other programs write at chosen moments.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use zarrd_array::{
    Arrays, CreateOptions, CreateOutcome, ElementSource, Hierarchies, NodeError, NodeInfo, Options, PatchMode,
    WriteError, WriteReport,
};
use zarrd_meta::{
    Dialect, NodePath,
    documents::NodePatch,
    selection::{ReadRequest, Selection},
    zom::Zom,
};
use zarrd_store::{
    ByteRange, Conditions, Entry, GetResult, Guarantees, Key, KeyPage, Keyed, ListableStore, MemoryStore, Operation,
    PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore, ServedStore, StoreError, StoreWrapper,
    ValueMeta, WriteableStore, Writes, list_all,
};

/// The time at which the clock of a bucket begins: it differs from the clock of this machine by years.
fn epoch() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30)
}

/// The guarantees of a folder that one process writes.
pub(crate) const FOLDER: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

/// The guarantees of a bucket.
pub(crate) const BUCKET: Guarantees = Guarantees { conditions: Conditions::Atomic, conditional_erase: false, ..FOLDER };

/// Something that happens right before a change of a key, or instead of it.
pub(crate) enum Event {
    /// The change fails.
    Fail,
    /// Another program sets a key.
    Set(&'static str, Vec<u8>),
    /// The change waits until it is let go.
    Pause(Arc<Pause>),
    /// The change is made, and the answer is lost.
    LoseAnswer,
    /// The change does not arrive.
    LoseRequest,
    /// The change arrives only when it is [let in](FakeStore::let_in), and the answer is lost.
    Delay,
}

/// A change that waits.
#[derive(Default)]
pub(crate) struct Pause {
    /// Notified when it waits.
    pub(crate) reached: Notify,
    /// Lets it go.
    pub(crate) resume: Notify,
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
    /// The event that ends the change of a key.
    losses: Mutex<HashMap<String, Event>>,
    delayed: Mutex<Vec<(Key, Bytes, Precondition)>>,
    /// The time since then.
    clock: Mutex<Duration>,
    /// The time of each key's value, by that clock.
    times: Mutex<HashMap<Key, SystemTime>>,
}

#[async_trait]
impl StoreWrapper for FakeStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0.memory
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let found = ReadableStore::get(self.inner(), key, range).await?;
        Ok(found.map(|found| GetResult { meta: self.dated(key, found.meta.clone()), ..found }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(ReadableStore::head(self.inner(), key).await?.map(|meta| self.dated(key, meta)))
    }

    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let KeyPage { keys, cursor, .. } = ListableStore::list_prefix(self.inner(), prefix, page).await?;
        let dated = |entry: Entry| Entry::new(entry.key.clone(), self.dated(&entry.key, entry.meta));
        Ok(KeyPage::new(keys.into_iter().map(dated).collect(), cursor))
    }

    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        let loss = self.0.losses.lock().remove(key.as_str());
        let value: Vec<Bytes> = payload.stream.try_collect().await?;
        let value = Bytes::from(value.concat());
        let unknown = || StoreError::OutcomeUnknown { key: key.clone(), source: "no answer".into() };
        match loss {
            Some(Event::LoseRequest) => return Err(unknown()),
            Some(Event::Delay) => {
                self.0.delayed.lock().push((key.clone(), value, precondition));
                return Err(unknown());
            }
            _ => {}
        }
        let written = self.set_now(key, value, precondition).await?;
        if loss.is_some() { Err(unknown()) } else { Ok(written) }
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        for _ in 0..zarrd_store::RunId::random().as_u64() % 6 + 1 {
            tokio::task::yield_now().await;
        }
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
            Some((_, Event::Pause(pause))) => {
                pause.reached.notify_one();
                pause.resume.notified().await;
            }
            Some((_, loss)) => drop(self.0.losses.lock().insert(name.clone(), loss)),
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
        self.set_now(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    async fn set_now(&self, key: &Key, value: Bytes, precondition: Precondition) -> Result<PutResult, StoreError> {
        let written = WriteableStore::set(self.inner(), key, value.into(), precondition).await?;
        let time = epoch() + *self.0.clock.lock();
        self.0.times.lock().insert(key.clone(), time);
        Ok(written)
    }

    fn dated(&self, key: &Key, meta: ValueMeta) -> ValueMeta {
        let modified = self.0.times.lock().get(key).copied().unwrap();
        ValueMeta { modified, ..meta }
    }

    /// Lets time pass by the clock of the store, and not by the clock of this machine.
    pub(crate) fn advance(&self, by: Duration) {
        *self.0.clock.lock() += by;
    }

    /// Lets in the changes that were delayed; returns how many of them are made.
    pub(crate) async fn let_in(&self) -> usize {
        let delayed = std::mem::take(&mut *self.0.delayed.lock());
        let mut made = 0;
        for (key, value, precondition) in delayed {
            made += usize::from(self.set_now(&key, value, precondition).await.is_ok());
        }
        made
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
        let store = FakeStore::default();
        if guarantees.conditions == Conditions::ThisProcess {
            store.advance(SystemTime::now().duration_since(epoch()).unwrap());
        }
        Self::over(store, guarantees)
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

    /// Creates `/a`, an array of one dimension in chunks of four, with its elements.
    pub(crate) async fn create_with(&self, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let zom = Arc::new(Zom::parse(array(values.len() as u64).to_string()).unwrap());
        let creation = self.nodes.create_array(&path("/a"), zom, &CreateOptions::default()).await?;
        creation.execute(elements(values)).await
    }

    pub(crate) async fn write(&self, select: &str, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let selection = Selection::parse(select).unwrap();
        let write = self.arrays.write(&path("/a"), None, &selection, Precondition::none()).await?;
        write.execute(elements(values)).await
    }

    pub(crate) async fn write_points(&self, points: &[i64], values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let points = points.iter().map(|point| vec![*point]).collect();
        let write = self.arrays.write_points(&path("/a"), None, points, Precondition::none()).await?;
        write.execute(elements(values)).await
    }

    pub(crate) async fn append(&self, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        self.append_to("/a", values).await
    }

    pub(crate) async fn append_to(&self, at: &str, values: Vec<u8>) -> Result<WriteReport, WriteError> {
        let append = self.arrays.append(&path(at), None, "0", Precondition::none()).await?;
        append.execute(None, elements(values)).await
    }

    pub(crate) async fn patch(&self, at: &str, patch: &Value) -> Result<NodeInfo, NodeError> {
        self.patch_if(at, patch, &Precondition::none()).await
    }

    pub(crate) async fn patch_if(
        &self,
        at: &str,
        patch: &Value,
        condition: &Precondition,
    ) -> Result<NodeInfo, NodeError> {
        let changes = NodePatch::parse(patch.to_string()).unwrap();
        self.nodes.patch(&path(at), None, &changes, condition).await.map(|node| node.info)
    }

    /// Changes several documents one after the other.
    pub(crate) async fn patch_piecewise(&self, at: &str, patch: &Value) -> Result<NodeInfo, NodeError> {
        let changes = NodePatch::parse(patch.to_string()).unwrap();
        let how = (&Precondition::none(), PatchMode::Piecewise);
        self.nodes.patch_in(&path(at), None, &changes, how).await.map(|node| node.info)
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
