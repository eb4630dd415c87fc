//! What others write while a change is planned, or an answer is read.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use array::{ArrayError, CreateAction, Depth, NodeError};
use async_trait::async_trait;
use serde_json::{Value, json};
use store::{
    ByteRange, ByteStream, Change, Content, DirPage, ErasedKeys, Info, Intent, Key, KeyPage, ListableStore,
    MemoryStore, Outcome, Page, Precondition, Prefix, ReadableStore, Snapshot, Staged, StoreError, TransactionalStore,
    Value as Stored, Watermark, WriteableStore, Written,
};

use crate::lab::{Lab, path, v2_array, v3_array, v3_group};

/// A store in which somebody else writes just before a commit, one write of the queue before each, and which counts what it is
/// asked for.
#[derive(Default)]
pub(crate) struct Intruded {
    store: MemoryStore,
    writes: Mutex<VecDeque<(String, Value)>>,
    /// The pages of listings.
    pub(crate) pages: AtomicUsize,
    /// The keys of their entries.
    pub(crate) keys: AtomicUsize,
    /// Whether every watermark is another one, as if somebody committed all the time.
    pub(crate) busy: AtomicBool,
    /// The watermarks that were asked for.
    watermarks: AtomicUsize,
    /// What is done before one of the pages is read.
    paged: Mutex<Option<Intrusion>>,
    /// The keys that snapshots were taken of.
    pub(crate) looked_up: AtomicUsize,
}

/// Keys that are set, one after the other.
struct Intrusion {
    /// The number of the page before which they are.
    page: usize,
    documents: Vec<(String, Value)>,
}

impl Intruded {
    pub(crate) fn lab() -> (Lab, Arc<Self>) {
        let store = Arc::new(Self::default());
        (Lab::over(store.clone()), store)
    }

    pub(crate) fn intrude(&self, key: &str, document: Value) {
        self.writes.lock().unwrap().push_back((key.to_owned(), document));
    }

    /// Sets a document before the page of this number is read, of those that come.
    pub(crate) fn intrude_on_page(&self, number: usize, key: &str, document: Value) {
        self.intrude_all_on_page(number, &[(key, document)]);
    }

    /// The same with several keys.
    pub(crate) fn intrude_all_on_page(&self, number: usize, documents: &[(&str, Value)]) {
        let documents = documents.iter().map(|(key, document)| ((*key).to_owned(), document.clone()));
        let page = self.pages.load(Ordering::Relaxed) + number;
        *self.paged.lock().unwrap() = Some(Intrusion { page, documents: documents.collect() });
    }

    /// Whether what was to be set before a page has not been set, and is not now.
    pub(crate) fn is_intruding(&self) -> bool {
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
impl ReadableStore for Intruded {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<Stored>, StoreError> {
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<Info>, StoreError> {
        self.store.head(key).await
    }
}

#[async_trait]
impl WriteableStore for Intruded {
    async fn set(&self, key: &Key, content: Content, precondition: Precondition) -> Result<Written, StoreError> {
        self.store.set(key, content, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<ErasedKeys, StoreError> {
        self.store.erase_prefix(prefix).await
    }

    async fn writable(&self) -> Result<(), StoreError> {
        self.store.writable().await
    }
}

#[async_trait]
impl ListableStore for Intruded {
    async fn list_prefix(&self, prefix: &Prefix, page: Page) -> Result<KeyPage, StoreError> {
        self.read_page().await?;
        let found = self.store.list_prefix(prefix, page).await?;
        self.keys.fetch_add(found.keys.len(), Ordering::Relaxed);
        Ok(found)
    }

    async fn list_dir(&self, prefix: &Prefix, page: Page) -> Result<DirPage, StoreError> {
        self.read_page().await?;
        self.store.list_dir(prefix, page).await
    }
}

#[async_trait]
impl TransactionalStore for Intruded {
    async fn stage(&self, key: &Key, content: Content) -> Result<Staged, StoreError> {
        self.store.stage(key, content).await
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        self.store.read_staged(staged, range).await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Outcome>, StoreError> {
        let write = self.writes.lock().unwrap().pop_front();
        if let Some((key, document)) = write {
            let content = document.to_string().into_bytes().into();
            self.store.set(&Key::parse(&key).unwrap(), content, Precondition::none()).await?;
        }
        self.store.commit(changes).await
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.store.intents().await
    }

    async fn watermark(&self) -> Result<Watermark, StoreError> {
        match self.busy.load(Ordering::Relaxed) {
            false => self.store.watermark().await,
            true => Ok(Watermark::from_u64(self.watermarks.fetch_add(1, Ordering::Relaxed) as u64)),
        }
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        self.looked_up.fetch_add(keys.len(), Ordering::Relaxed);
        self.store.snapshot(keys).await
    }
}

#[tokio::test]
async fn create_fails_if_parent_becomes_an_array() {
    for (key, document) in [("g/zarr.json", v3_array(&[1])), ("g/.zarray", v2_array(&[1]))] {
        let (lab, store) = Intruded::lab();
        lab.json("g/other/zarr.json", &v3_array(&[3])).await;
        store.intrude(key, document);
        let refused = lab.declare("/g/x", &v3_array(&[3])).await;
        assert!(matches!(refused, Err(NodeError::BelowArray { .. })), "{key}");
        assert_eq!(lab.keys().await.len(), 2, "{key}");
    }
}

#[tokio::test]
async fn create_compares_with_a_concurrently_created_node() {
    let (lab, store) = Intruded::lab();
    store.intrude("a/zarr.json", v3_array(&[3]));
    assert_eq!(lab.declare("/a", &v3_array(&[3])).await.unwrap().action, CreateAction::Unchanged);
    store.intrude("b/zarr.json", v3_array(&[4]));
    assert!(matches!(lab.declare("/b", &v3_array(&[3])).await, Err(NodeError::Differs { .. })));
    assert_eq!(lab.all("/b").await["shape"], json!([4]));
    // So does one below what is to be created.
    store.intrude("c/x/zarr.json", v3_array(&[4]));
    let tree = v3_group(&json!({"x": v3_array(&[3])}));
    assert!(matches!(lab.declare("/c", &tree).await, Err(NodeError::Differs { .. })));
}

#[tokio::test]
async fn concurrent_patches_are_merged() {
    let (lab, store) = Intruded::lab();
    lab.declare("/a", &v3_array(&[3])).await.unwrap();
    let mut other = v3_array(&[5]);
    other["attributes"] = json!({"theirs": 1});
    store.intrude("a/zarr.json", other);
    let found = lab.patch("/a", &json!({"attributes": {"ours": 2}})).await.unwrap().zom.to_text().to_value().unwrap();
    assert_eq!((&found["shape"], &found["attributes"]), (&json!([5]), &json!({"theirs": 1, "ours": 2})));
}

#[tokio::test]
async fn concurrent_change_of_consolidated_metadata_is_preserved() {
    let (lab, store) = Intruded::lab();
    lab.declare("/g", &crate::lab::v2_group(&json!({"a": v2_array(&[3])}))).await.unwrap();
    lab.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": {}})).await;
    let theirs = json!({"zarr_consolidated_format": 1, "metadata": {"theirs/.zgroup": {"zarr_format": 2}}});
    store.intrude("g/.zmetadata", theirs);
    lab.patch("/g/a", &json!({"shape": [9]})).await.unwrap();
    let copies = lab.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(copies["a/.zarray"]["shape"], json!([9]));
    assert!(copies.get("theirs/.zgroup").is_some());
}

#[tokio::test]
async fn erase_retries_unless_its_precondition_fails() {
    let (lab, store) = Intruded::lab();
    let version = lab.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    store.intrude("a/zarr.json", v3_array(&[4]));
    let refused = lab.nodes.erase(&path("/a"), None, &Precondition::at(version)).await;
    assert!(matches!(refused, Err(NodeError::PreconditionFailed { .. })));
    store.intrude("a/zarr.json", v3_array(&[5]));
    assert_eq!(lab.erase("/a").await.unwrap(), 1);
}

#[tokio::test]
async fn gives_up_when_document_keeps_changing() {
    let (lab, store) = Intruded::lab();
    lab.declare("/a", &v3_array(&[3])).await.unwrap();
    for extent in 0..50 {
        store.intrude("a/zarr.json", v3_array(&[extent]));
    }
    let refused = lab.patch("/a", &json!({"attributes": {"n": 1}})).await;
    assert!(matches!(refused, Err(NodeError::Array(ArrayError::TooManyConflicts { .. }))));
}

/// An answer is as of one commit: what two nodes say is always of the same, and the nodes that come and go do so with it. It is so where the store tells that nothing was
/// committed, and where everything is looked at again since it cannot; and where groups are listed by scans, and one by one because of the chunks among their keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_reflect_one_commit() {
    for (busy, chunks) in [(false, 0), (true, 0), (false, 200), (true, 200)] {
        let (lab, store) = Intruded::lab();
        store.busy.store(busy, Ordering::Relaxed);
        let lab = Arc::new(lab);
        lab.declare("/g", &v3_group(&json!({"a": v3_array(&[3]), "z": v3_group(&json!({}))}))).await.unwrap();
        for chunk in 0..chunks {
            lab.set(&format!("g/a/c/{chunk}"), [1; 2]).await;
        }
        let done = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn(write_rounds(lab.clone(), done.clone()));
        let (mut seen, mut conflicts) = (BTreeSet::new(), 0);
        // Rounds of both kinds, in whichever the writer is.
        while seen.iter().filter(|round| **round % 2 == 0).count() < 10
            || seen.iter().filter(|round| **round % 2 == 1).count() < 10
        {
            assert!(conflicts < 10_000, "of {seen:?}");
            match lab.node("/g", Depth::All).await {
                Ok(found) => {
                    let found = found.zom.to_text().to_value().unwrap();
                    let round = &found["members"]["a"]["attributes"]["round"];
                    assert_eq!(*round, found["members"]["z"]["attributes"]["round"]);
                    let told = round.as_u64();
                    let round = told.unwrap_or(0);
                    let odd = found["members"]["z"]["members"].get("odd").is_some();
                    assert_eq!(odd, round % 2 == 1, "{found}");
                    // The child of one round is never told beside that of another.
                    let members = found["members"].as_object().unwrap();
                    let rounds: Vec<&String> = members.keys().filter(|name| name.starts_with("in")).collect();
                    assert!(
                        rounds.len() <= 1 && rounds.iter().all(|name| **name == format!("in{round}")),
                        "{rounds:?}"
                    );
                    seen.extend(told);
                }
                Err(NodeError::Array(ArrayError::TooManyConflicts { .. })) => conflicts += 1,
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Release);
        let last = writer.await.unwrap();
        let found = lab.node("/g", Depth::All).await.unwrap().zom.to_text().to_value().unwrap();
        assert_eq!(found["members"]["a"]["attributes"]["round"], json!(last));
    }
}

/// Until it is `done`, in one commit for each round: the round in the attributes of an array and of a group, a child of the group in odd rounds, and a group of the round's own in place of that of
/// the one before. Gives the last round.
async fn write_rounds(lab: Arc<Lab>, done: Arc<AtomicBool>) -> u64 {
    let mut round = 0_u64;
    loop {
        let mut array = v3_array(&[3]);
        array["attributes"] = json!({"round": round});
        let mut group = v3_group(&json!({}));
        group["attributes"] = json!({"round": round});
        group.as_object_mut().unwrap().remove("members");
        let own = format!("g/in{round}/zarr.json");
        let mut changes = Vec::new();
        for (key, document) in [("g/a/zarr.json", &array), ("g/z/zarr.json", &group), (&*own, &group)] {
            let content = document.to_string().into_bytes().into();
            let staged = lab.store.stage(&Key::parse(key).unwrap(), content).await.unwrap();
            changes.push(Change::Set { staged, precondition: Precondition::none() });
        }
        changes.extend((round > 0).then(|| Change::Erase {
            key: Key::parse(&format!("g/in{}/zarr.json", round - 1)).unwrap(),
            precondition: Precondition::none(),
        }));
        // There is a child in odd rounds.
        let child = Key::parse("g/z/odd/zarr.json").unwrap();
        let precondition = Precondition::none();
        changes.push(match round % 2 {
            0 => Change::Erase { key: child, precondition },
            _ => {
                let content = v3_array(&[3]).to_string().into_bytes().into();
                Change::Set { staged: lab.store.stage(&child, content).await.unwrap(), precondition }
            }
        });
        lab.store.commit(changes).await.unwrap();
        if done.load(Ordering::Acquire) {
            return round;
        }
        // Sometimes there is time for an answer between two commits, and sometimes not.
        tokio::time::sleep(std::time::Duration::from_millis(round % 40)).await;
        round += 1;
    }
}

/// What is set between two pages is in the answer, whichever page it is and wherever it is set.
#[tokio::test]
async fn key_set_between_two_pages_is_listed() {
    for busy in [false, true] {
        for place in ["a", "m", "z"] {
            let (lab, store) = Intruded::lab();
            store.busy.store(busy, Ordering::Relaxed);
            for name in ["b", "n", "y"] {
                lab.json(&format!("g/{name}/zarr.json"), &bare()).await;
                lab.json(&format!("g/{name}/x/zarr.json"), &bare()).await;
            }
            for number in 0..200 {
                lab.json(&format!("g/n/x/n{number}/zarr.json"), &bare()).await;
                lab.set(&format!("g/b/x/blob{number}"), [1]).await;
            }
            assert_eq!(lab.node("/g", Depth::All).await.unwrap().zom.len(), 207);
            let mut page = 0;
            // Every group that is added may be listed by itself, so there may always be one page more.
            while page < 20 {
                store.intrude_on_page(page, &format!("g/{place}{page}/zarr.json"), bare());
                let found = lab.node("/g", Depth::All).await.unwrap().zom.len();
                if store.is_intruding() {
                    break;
                }
                page += 1;
                assert_eq!(found, 207 + page, "{place}");
            }
            assert!(page >= 4, "there were {page} pages");
        }
    }
}

fn bare() -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}})
}
