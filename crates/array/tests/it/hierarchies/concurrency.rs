//! Concurrent writes while a change is planned or a response is read.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use serde_json::{Value, json};
use zarrd_array::{ArrayError, CreateAction, Depth, NodeError, NodeRejection};
use zarrd_store::{
    Change, ChangeOutcome, Key, KeyPage, ListableStore, MemoryStore, Operation, PageRequest, Precondition, Prefix,
    SnapshotStore, StoreError, StoreWrapper, TransactionalStore, Watermark, WriteableStore,
};

use crate::hierarchies::test_store::{TestStore, path, v2_array, v3_array, v3_group};

/// A store into which another writer sets a queued document before each commit, and which counts its requests.
#[derive(Default)]
pub(crate) struct InterferingStore {
    store: MemoryStore,
    writes: Mutex<VecDeque<(String, Value)>>,
    /// The number of listed pages.
    pub(crate) pages: AtomicUsize,
    /// The number of keys on these pages.
    pub(crate) keys: AtomicUsize,
    /// True if every watermark differs, as under constant commits.
    pub(crate) busy: AtomicBool,
    /// The number of requested watermarks.
    watermarks: AtomicUsize,
    /// Documents to set before a page is read.
    paged: Mutex<Option<PendingWrites>>,
    /// The number of keys in snapshots.
    pub(crate) snapshot_keys: AtomicUsize,
}

/// Documents to set, one after the other.
struct PendingWrites {
    /// The number of the page before which they are set.
    page: usize,
    documents: Vec<(String, Value)>,
}

impl InterferingStore {
    pub(crate) fn create() -> (TestStore, Arc<Self>) {
        let store = Arc::new(Self::default());
        (TestStore::on(store.clone()), store)
    }

    pub(crate) fn write_before_commit(&self, key: &str, document: Value) {
        self.writes.lock().unwrap().push_back((key.to_owned(), document));
    }

    /// Sets a document before the page with this number is read, counted from now.
    pub(crate) fn write_before_page(&self, number: usize, key: &str, document: Value) {
        self.write_all_before_page(number, &[(key, document)]);
    }

    /// The same with several documents.
    pub(crate) fn write_all_before_page(&self, number: usize, documents: &[(&str, Value)]) {
        let documents = documents.iter().map(|(key, document)| ((*key).to_owned(), document.clone()));
        let page = self.pages.load(Ordering::Relaxed) + number;
        *self.paged.lock().unwrap() = Some(PendingWrites { page, documents: documents.collect() });
    }

    /// Cancels the write that is pending before a page; true if there was one.
    pub(crate) fn has_pending_writes(&self) -> bool {
        self.paged.lock().unwrap().take().is_some()
    }

    async fn read_page(&self) -> Result<(), StoreError> {
        let number = self.pages.fetch_add(1, Ordering::Relaxed);
        let intrusion = self.paged.lock().unwrap().take_if(|intrusion| intrusion.page == number);
        for (key, document) in intrusion.into_iter().flat_map(|intrusion| intrusion.documents) {
            let content = document.to_string().into_bytes().into();
            self.store.set(&Key::parse(&key).unwrap(), content, Precondition::none()).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl StoreWrapper for InterferingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::ListPrefix(_) | Operation::ListDir(_) => self.read_page().await?,
            Operation::Snapshot(keys) => {
                self.snapshot_keys.fetch_add(keys.len(), Ordering::Relaxed);
            }
            _ => {}
        }
        Ok(())
    }

    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let found = self.store.list_prefix(prefix, page).await?;
        self.keys.fetch_add(found.keys.len(), Ordering::Relaxed);
        Ok(found)
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        let write = self.writes.lock().unwrap().pop_front();
        if let Some((key, document)) = write {
            let content = document.to_string().into_bytes().into();
            self.store.set(&Key::parse(&key).unwrap(), content, Precondition::none()).await?;
        }
        self.store.commit(changes).await
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        match self.busy.load(Ordering::Relaxed) {
            false => self.store.watermark().await,
            true => Ok(Some(Watermark::from_u64(self.watermarks.fetch_add(1, Ordering::Relaxed) as u64))),
        }
    }
}

#[tokio::test]
async fn create_fails_if_parent_becomes_an_array() {
    for (key, document) in [("g/zarr.json", v3_array(&[1])), ("g/.zarray", v2_array(&[1]))] {
        let (store, interference) = InterferingStore::create();
        store.json("g/other/zarr.json", &v3_array(&[3])).await;
        interference.write_before_commit(key, document);
        let rejected = store.declare("/g/x", &v3_array(&[3])).await;
        assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::ParentIsArray { .. }))), "{key}");
        assert_eq!(store.keys().await.len(), 2, "{key}");
    }
}

#[tokio::test]
async fn create_compares_with_a_concurrently_created_node() {
    let (store, interference) = InterferingStore::create();
    interference.write_before_commit("a/zarr.json", v3_array(&[3]));
    assert_eq!(store.declare("/a", &v3_array(&[3])).await.unwrap().action, CreateAction::Unchanged);
    interference.write_before_commit("b/zarr.json", v3_array(&[4]));
    assert!(matches!(
        store.declare("/b", &v3_array(&[3])).await,
        Err(NodeError::Rejected(NodeRejection::NodeConflict { .. }))
    ));
    assert_eq!(store.all("/b").await["shape"], json!([4]));
    // The same for a node below the one to be created.
    interference.write_before_commit("c/x/zarr.json", v3_array(&[4]));
    let tree = v3_group(&json!({"x": v3_array(&[3])}));
    assert!(matches!(store.declare("/c", &tree).await, Err(NodeError::Rejected(NodeRejection::NodeConflict { .. }))));
}

#[tokio::test]
async fn concurrent_patches_are_merged() {
    let (store, interference) = InterferingStore::create();
    store.declare("/a", &v3_array(&[3])).await.unwrap();
    let mut other = v3_array(&[5]);
    other["attributes"] = json!({"theirs": 1});
    interference.write_before_commit("a/zarr.json", other);
    let found = store.patch("/a", &json!({"attributes": {"ours": 2}})).await.unwrap().zom.to_text().to_value().unwrap();
    assert_eq!((&found["shape"], &found["attributes"]), (&json!([5]), &json!({"theirs": 1, "ours": 2})));
}

#[tokio::test]
async fn concurrent_change_of_consolidated_metadata_is_preserved() {
    let (store, interference) = InterferingStore::create();
    store.declare("/g", &crate::hierarchies::test_store::v2_group(&json!({"a": v2_array(&[3])}))).await.unwrap();
    store.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": {}})).await;
    let theirs = json!({"zarr_consolidated_format": 1, "metadata": {"theirs/.zgroup": {"zarr_format": 2}}});
    interference.write_before_commit("g/.zmetadata", theirs);
    store.patch("/g/a", &json!({"shape": [9]})).await.unwrap();
    let copies = store.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(copies["a/.zarray"]["shape"], json!([9]));
    assert!(copies.get("theirs/.zgroup").is_some());
}

#[tokio::test]
async fn erase_retries_unless_its_precondition_fails() {
    let (store, interference) = InterferingStore::create();
    let version = store.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    interference.write_before_commit("a/zarr.json", v3_array(&[4]));
    let rejected = store.nodes.erase(&path("/a"), None, &Precondition::at(version)).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::PreconditionFailed { .. }))));
    interference.write_before_commit("a/zarr.json", v3_array(&[5]));
    assert_eq!(store.erase("/a").await.unwrap(), 1);
}

#[tokio::test]
async fn gives_up_when_document_keeps_changing() {
    let (store, interference) = InterferingStore::create();
    store.declare("/a", &v3_array(&[3])).await.unwrap();
    for extent in 0..50 {
        interference.write_before_commit("a/zarr.json", v3_array(&[extent]));
    }
    let rejected = store.patch("/a", &json!({"attributes": {"n": 1}})).await;
    assert!(matches!(rejected, Err(NodeError::Array(ArrayError::TooManyConflicts { .. }))));
}

/// A response reflects one commit: nodes that change together are returned together, and nodes appear and disappear
/// with their commit. This holds if the watermark proves that nothing was committed, and if everything must be read
/// again because it does not; if groups are listed by scans, and one by one because of the chunks among their keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_reflect_one_commit() {
    for (busy, chunks) in [(false, 0), (true, 0), (false, 200), (true, 200)] {
        let (store, interference) = InterferingStore::create();
        interference.busy.store(busy, Ordering::Relaxed);
        let store = Arc::new(store);
        store.declare("/g", &v3_group(&json!({"a": v3_array(&[3]), "z": v3_group(&json!({}))}))).await.unwrap();
        for chunk in 0..chunks {
            store.set(&format!("g/a/c/{chunk}"), [1; 2]).await;
        }
        let done = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn(write_rounds(store.clone(), done.clone()));
        let (mut seen, mut conflicts) = (BTreeSet::new(), 0);
        // Rounds of both parities.
        while seen.iter().filter(|round| **round % 2 == 0).count() < 10
            || seen.iter().filter(|round| **round % 2 == 1).count() < 10
        {
            assert!(conflicts < 10_000, "of {seen:?}");
            match store.node("/g", Depth::All).await {
                Ok(found) => {
                    let found = found.zom.to_text().to_value().unwrap();
                    let round = &found["members"]["a"]["attributes"]["round"];
                    assert_eq!(*round, found["members"]["z"]["attributes"]["round"]);
                    let returned = round.as_u64();
                    let round = returned.unwrap_or(0);
                    let odd = found["members"]["z"]["members"].get("odd").is_some();
                    assert_eq!(odd, round % 2 == 1, "{found}");
                    // The children of two rounds are never returned together.
                    let members = found["members"].as_object().unwrap();
                    let rounds: Vec<&String> = members.keys().filter(|name| name.starts_with("in")).collect();
                    assert!(
                        rounds.len() <= 1 && rounds.iter().all(|name| **name == format!("in{round}")),
                        "{rounds:?}"
                    );
                    seen.extend(returned);
                }
                Err(NodeError::Array(ArrayError::TooManyConflicts { .. })) => conflicts += 1,
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Release);
        let last = writer.await.unwrap();
        let found = store.node("/g", Depth::All).await.unwrap().zom.to_text().to_value().unwrap();
        assert_eq!(found["members"]["a"]["attributes"]["round"], json!(last));
    }
}

/// Until it is `done`, commits one round after another: the round in the attributes of an array and of a group, a child
/// of the group in odd rounds, and a group named after the round, which replaces the one of the previous round. Returns
/// the last round.
async fn write_rounds(store: Arc<TestStore>, done: Arc<AtomicBool>) -> u64 {
    let mut round = 0_u64;
    loop {
        let mut array = v3_array(&[3]);
        array["attributes"] = json!({"round": round});
        let mut group = v3_group(&json!({}));
        group["attributes"] = json!({"round": round});
        group.as_object_mut().unwrap().remove("members");
        let round_group = format!("g/in{round}/zarr.json");
        let mut changes = Vec::new();
        for (key, document) in [("g/a/zarr.json", &array), ("g/z/zarr.json", &group), (&*round_group, &group)] {
            let content = document.to_string().into_bytes().into();
            let staged = store.inner.stage(&Key::parse(key).unwrap(), content).await.unwrap();
            changes.push(Change::Set { staged, precondition: Precondition::none() });
        }
        changes.extend((round > 0).then(|| Change::Erase {
            key: Key::parse(&format!("g/in{}/zarr.json", round - 1)).unwrap(),
            precondition: Precondition::none(),
        }));
        // The child exists in odd rounds.
        let child = Key::parse("g/z/odd/zarr.json").unwrap();
        let precondition = Precondition::none();
        changes.push(match round % 2 {
            0 => Change::Erase { key: child, precondition },
            _ => {
                let content = v3_array(&[3]).to_string().into_bytes().into();
                Change::Set { staged: store.inner.stage(&child, content).await.unwrap(), precondition }
            }
        });
        store.inner.commit(changes).await.unwrap();
        if done.load(Ordering::Acquire) {
            return round;
        }
        // Only some pauses are long enough for a response between two commits.
        tokio::time::sleep(std::time::Duration::from_millis(round % 40)).await;
        round += 1;
    }
}

/// A key set between two pages is in the response, for every page and every position.
#[tokio::test]
async fn key_set_between_two_pages_is_listed() {
    for busy in [false, true] {
        for position in ["a", "m", "z"] {
            let (store, interference) = InterferingStore::create();
            interference.busy.store(busy, Ordering::Relaxed);
            for name in ["b", "n", "y"] {
                store.json(&format!("g/{name}/zarr.json"), &bare_group()).await;
                store.json(&format!("g/{name}/x/zarr.json"), &bare_group()).await;
            }
            for number in 0..200 {
                store.json(&format!("g/n/x/n{number}/zarr.json"), &bare_group()).await;
                store.set(&format!("g/b/x/blob{number}"), [1]).await;
            }
            assert_eq!(store.node("/g", Depth::All).await.unwrap().zom.len(), 207);
            let mut page = 0;
            // Every added group may be listed individually, which may always need one more page.
            while page < 20 {
                interference.write_before_page(page, &format!("g/{position}{page}/zarr.json"), bare_group());
                let found = store.node("/g", Depth::All).await.unwrap().zom.len();
                if interference.has_pending_writes() {
                    break;
                }
                page += 1;
                assert_eq!(found, 207 + page, "{position}");
            }
            assert!(page >= 4, "there were {page} pages");
        }
    }
}

fn bare_group() -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}})
}
