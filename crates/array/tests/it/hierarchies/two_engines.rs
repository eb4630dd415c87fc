//! Two engines over one store, as two servers over a database would be: what one is in the middle of, the other does not
//! undo or mix with. Each test has its control, in which the engine does not make the check that it is about.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::json;
use tokio::{sync::Notify, task::JoinHandle};
use zarrd_array::{
    ArrayError, Arrays, ConvertOptions, ElementSource, ExistingDocuments, LossPolicy, NodeError, Options,
    SettledIntents, WriteError,
};
use zarrd_meta::Dialect;
use zarrd_store::{
    Change, ChangeOutcome, Key, MemoryStore, Precondition, Prefix, StoreError, StoreWrapper, TransactionalStore,
    WriteableStore,
};

use super::test_store::{TestStore, path, v3_array, v3_group};

/// A check that an engine leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Nothing,
    /// That the intent of a copy still exists.
    OwnIntent,
    /// That no unfinished operation excludes a commit.
    OthersIntents,
    /// The run in the records of its intents.
    Run,
}

/// The store as one engine has it.
struct EngineStore {
    store: MemoryStore,
    omitted: Omitted,
    pause: Option<Pause>,
}

/// Holds up a commit until it may go on.
struct Pause {
    /// True if a commit with this change is held up.
    at: fn(&Change) -> bool,
    reached: Notify,
    resumed: Notify,
}

#[async_trait]
impl StoreWrapper for EngineStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn commit(&self, mut changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        if let Some(pause) = self.pause.as_ref().filter(|pause| changes.iter().any(pause.at)) {
            pause.reached.notify_one();
            pause.resumed.notified().await;
        }
        match self.omitted {
            Omitted::Nothing => {}
            Omitted::OwnIntent => changes.retain(|change| !matches!(change, Change::CheckIntent { .. })),
            Omitted::OthersIntents => changes.retain(|change| !matches!(change, Change::CheckNoIntent { .. })),
            Omitted::Run => changes.iter_mut().for_each(|change| {
                if let Change::AddIntent { record, .. } = change {
                    let mut json: serde_json::Value = serde_json::from_slice(record).unwrap();
                    json.as_object_mut().unwrap().remove("run").unwrap();
                    *record = json.to_string().into_bytes().into();
                }
            }),
        }
        self.store.commit(changes).await
    }
}

impl EngineStore {
    async fn wait_until_paused(&self) {
        self.pause.as_ref().unwrap().reached.notified().await;
    }

    /// Lets the commit go on.
    fn resume(&self) {
        self.pause.as_ref().unwrap().resumed.notify_one();
    }

    /// Lets all commits of a task go on, until its end.
    async fn resume_until_end<T>(&self, task: JoinHandle<T>) -> T {
        while !task.is_finished() {
            self.resume();
            tokio::task::yield_now().await;
        }
        task.await.unwrap()
    }
}

/// An engine over a store, and the store as it has it.
fn engine(store: &MemoryStore, omitted: Omitted, at: Option<fn(&Change) -> bool>) -> (TestStore, Arc<EngineStore>) {
    let pause = at.map(|at| Pause { at, reached: Notify::new(), resumed: Notify::new() });
    let own = Arc::new(EngineStore { store: store.clone(), omitted, pause });
    let options = Options { memory_timeout: Duration::from_millis(50), ..Options::default() };
    let arrays = Arrays::new(own.clone(), options);
    (TestStore { inner: own.clone(), nodes: arrays.hierarchies(), arrays }, own)
}

async fn set(store: &MemoryStore, key: &str, value: &[u8]) {
    store.set(&Key::parse(key).unwrap(), value.to_vec().into(), Precondition::none()).await.unwrap();
}

/// A group of one array with 700 chunks, which are copied in three commits.
async fn store_to_copy() -> MemoryStore {
    let store = MemoryStore::new();
    let (engine, _) = engine(&store, Omitted::Nothing, None);
    engine.declare("/from", &v3_group(&json!({"a": v3_array(&[1_400])}))).await.unwrap();
    for number in 0..700 {
        set(&store, &format!("from/a/c/{number}"), &[7; 2]).await;
    }
    store
}

fn to_v2(target: &str) -> ConvertOptions {
    let target = Some(path(target));
    ConvertOptions { dialect: Dialect::V2, target, losses: LossPolicy::Allow, existing: ExistingDocuments::Keep }
}

fn sets_a_chunk_of_the_copy(change: &Change) -> bool {
    matches!(change, Change::Set { staged, .. } if staged.key().as_str().starts_with("to/a/"))
}

fn settles(change: &Change) -> bool {
    matches!(change, Change::RemoveIntent { .. })
}

async fn count_below(engine: &TestStore, prefix: &str) -> usize {
    engine.keys().await.iter().filter(|key| key.starts_with(prefix)).count()
}

async fn append_two(engine: &TestStore) -> Result<(), WriteError> {
    let append = engine.arrays.append(&path("/a"), Some(Dialect::V3), "0", Precondition::none()).await?;
    append.execute(Some(2), ElementSource::Scalar(vec![5])).await.map(drop)
}

/// An array of eight elements in four chunks, which one engine is shrinking to two chunks: the others are not erased yet.
async fn shrinking(store: &MemoryStore) -> (JoinHandle<()>, Arc<EngineStore>) {
    let (one, paused) = engine(store, Omitted::Nothing, Some(settles));
    one.declare("/a", &v3_array(&[8])).await.unwrap();
    for number in 0..4 {
        set(store, &format!("a/c/{number}"), &[9; 2]).await;
    }
    let shrink = tokio::spawn(async move { drop(one.patch("/a", &json!({"shape": [4]})).await.unwrap()) });
    paused.wait_until_paused().await;
    (shrink, paused)
}

#[tokio::test]
async fn array_grows_once_another_engine_has_erased_the_chunks_outside() {
    let store = MemoryStore::new();
    let (shrink, paused) = shrinking(&store).await;
    let (other, _) = engine(&store, Omitted::Nothing, None);
    let grown = other.patch("/a", &json!({"shape": [8]})).await;
    assert!(matches!(grown, Err(NodeError::Array(ArrayError::Unfinished { .. }))), "{grown:?}");
    let appended = append_two(&other).await;
    assert!(matches!(appended, Err(WriteError::Array(ArrayError::Unfinished { .. }))), "{appended:?}");
    // A change of anything else does not wait.
    other.patch("/a", &json!({"attributes": {"n": 1}})).await.unwrap();
    paused.resume_until_end(shrink).await;
    append_two(&other).await.unwrap();
    assert_eq!(other.keys().await, ["a/c/0", "a/c/1", "a/c/2", "a/zarr.json"]);
    assert_eq!(other.stored("a/c/2").await, [5, 5]);
}

#[tokio::test]
async fn control_of_growth_finds_erased_elements_again() {
    let store = MemoryStore::new();
    let (_shrink, _paused) = shrinking(&store).await;
    let (other, _) = engine(&store, Omitted::OthersIntents, None);
    other.patch("/a", &json!({"shape": [8]})).await.unwrap();
    assert_eq!(other.stored("a/c/3").await, [9, 9], "elements that the shrink had erased");
}

#[tokio::test]
async fn nothing_is_created_where_another_engine_copies() {
    let store = store_to_copy().await;
    let (one, paused) = engine(&store, Omitted::Nothing, Some(sets_a_chunk_of_the_copy));
    let nodes = one.nodes.clone();
    let copy = tokio::spawn(async move { nodes.convert(&path("/from"), None, &to_v2("/to")).await.unwrap() });
    paused.wait_until_paused().await;
    let (other, _) = engine(&store, Omitted::Nothing, None);
    for at in ["/to", "/to/a", "/to/x"] {
        let created = other.declare(at, &v3_array(&[2])).await;
        assert!(matches!(created, Err(NodeError::Array(ArrayError::Unfinished { .. }))), "{at} {created:?}");
    }
    let copied = other.nodes.convert(&path("/from"), None, &to_v2("/to")).await;
    assert!(matches!(copied, Err(NodeError::Array(ArrayError::Unfinished { .. }))), "{copied:?}");
    other.declare("/too", &v3_array(&[2])).await.unwrap();
    let report = paused.resume_until_end(copy).await;
    assert_eq!((report.chunks, count_below(&other, "to/").await), (700, 702));
}

#[tokio::test]
async fn control_of_copies_leaves_chunks_of_no_array() {
    let store = store_to_copy().await;
    let (one, paused) = engine(&store, Omitted::Nothing, Some(sets_a_chunk_of_the_copy));
    let nodes = one.nodes.clone();
    let copy = tokio::spawn(async move { nodes.convert(&path("/from"), None, &to_v2("/to")).await });
    paused.wait_until_paused().await;
    paused.resume();
    paused.wait_until_paused().await;
    let (other, _) = engine(&store, Omitted::OthersIntents, None);
    other.declare("/to/x", &v3_array(&[2])).await.unwrap();
    copy.abort();
    let _ = copy.await;
    while !store.intents().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(count_below(&other, "to/a/").await > 0, "the copy is not undone, since there is a node at its target");
}

/// Copies while another process, which takes the copying one for ended, undoes the copy after its first commit.
async fn copy_that_is_undone(omitted: Omitted) -> (Result<u64, NodeError>, TestStore) {
    let store = store_to_copy().await;
    let (one, paused) = engine(&store, omitted, Some(sets_a_chunk_of_the_copy));
    let nodes = one.nodes.clone();
    let copy = tokio::spawn(async move { nodes.convert(&path("/from"), None, &to_v2("/to")).await });
    paused.wait_until_paused().await;
    paused.resume();
    paused.wait_until_paused().await;
    let undone = store.intents().await.unwrap().into_iter().map(|intent| Change::RemoveIntent { id: intent.id });
    let undone = undone.chain([Change::ErasePrefix { prefix: Prefix::parse("to/").unwrap() }]).collect();
    store.commit(undone).await.unwrap();
    let copied = paused.resume_until_end(copy).await;
    (copied.map(|report| report.chunks), one)
}

#[tokio::test]
async fn copy_that_was_undone_elsewhere_starts_anew() {
    let (copied, engine) = copy_that_is_undone(Omitted::Nothing).await;
    assert_eq!((copied.unwrap(), count_below(&engine, "to/").await), (700, 702));
    assert_eq!(engine.inner.intents().await.unwrap(), []);
}

#[tokio::test]
async fn control_of_own_intents_leaves_a_part_of_a_copy() {
    let (copied, engine) = copy_that_is_undone(Omitted::OwnIntent).await;
    assert!(copied.is_err(), "{copied:?}");
    assert!(count_below(&engine, "to/a/").await > 0, "chunks that were copied after it was undone");
}

/// Settles the intents of one engine by another, while the first copies.
async fn settled_by_another(omitted: Omitted) -> SettledIntents {
    let store = store_to_copy().await;
    let (one, paused) = engine(&store, omitted, Some(sets_a_chunk_of_the_copy));
    let copy = tokio::spawn(async move { one.nodes.convert(&path("/from"), None, &to_v2("/to")).await });
    paused.wait_until_paused().await;
    let (other, _) = engine(&store, Omitted::Nothing, None);
    let settled = other.nodes.settle_intents().await.unwrap();
    copy.abort();
    settled
}

#[tokio::test]
async fn operation_of_a_running_engine_is_not_settled_by_another() {
    assert_eq!(settled_by_another(Omitted::Nothing).await, SettledIntents::default());
}

#[tokio::test]
async fn control_of_runs_undoes_a_running_copy() {
    assert_eq!(settled_by_another(Omitted::Run).await, SettledIntents { undone: 1, ..SettledIntents::default() });
}
