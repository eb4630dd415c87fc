//! Documents that a walk has read and checked before.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};
use zarrd_array::{Arrays, Depth, Options};
use zarrd_meta::Dialect;
use zarrd_store::{
    ByteRange, CachedMeta, GetResult, Guarantees, Key, Keyed, MemoryStore, Prefetch, ServedStore, Snapshot,
    SnapshotStore, StoreError, StoreWrapper, ValueMeta,
};

use crate::hierarchies::test_store::{
    TestStore, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group,
};

/// A store that counts the values that are read in snapshots.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    reads: Arc<AtomicUsize>,
}

struct CountingSnapshot {
    inner: Box<dyn Snapshot>,
    reads: Arc<AtomicUsize>,
}

#[async_trait]
impl StoreWrapper for CountingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let inner = SnapshotStore::snapshot(&self.store, keys).await?;
        Ok(Box::new(CountingSnapshot { inner, reads: self.reads.clone() }))
    }
}

#[async_trait]
impl Snapshot for CountingSnapshot {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        self.inner.cached(key)
    }

    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        self.inner.stat(key, prefetch).await
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.reads.fetch_add(1, Relaxed);
        self.inner.get(key, range).await
    }
}

fn members(count: usize, member: &Value) -> Value {
    Value::Object((0..count).map(|number| (format!("n{number}"), member.clone())).collect::<Map<_, _>>())
}

#[tokio::test]
async fn documents_of_a_tree_that_has_not_changed_are_read_once() {
    let v3 = (v3_group as fn(&Value) -> Value, v3_array(&[1]), "zarr.json", v3_array(&[2]));
    let v2 = (v2_group as fn(&Value) -> Value, v2_array(&[1]), ".zarray", v2_array(&[2]));
    for (group, array, name, other) in [v3, v2] {
        let counting = Arc::new(CountingStore::default());
        let (store, reads) = (TestStore::on(counting.clone()), counting.reads.clone());
        store.declare("/g", &group(&members(20, &group(&members(20, &array))))).await.unwrap();
        let counted = async || {
            let before = reads.load(Relaxed);
            let node = store.node("/g", Depth::All).await.unwrap();
            assert_eq!(node.zom.len(), 421);
            (node, reads.load(Relaxed) - before)
        };
        let (first, all) = counted().await;
        // To resolve the topmost node, its document is read once more.
        assert_eq!(all, 421 + 1);
        let (again, few) = counted().await;
        assert_eq!(again, first);
        assert_eq!(few, 1);
        store.json(&format!("g/n3/n4/{name}"), &other).await;
        let (changed, one_more) = counted().await;
        assert!(changed != first);
        assert_eq!(one_more, 1 + 1);
    }
}

const KEYS: [&str; 10] = [
    "zarr.json",
    ".zgroup",
    "a/zarr.json",
    "a/.zarray",
    "a/.zattrs",
    "b/.zgroup",
    "b/.zattrs",
    "b/c/zarr.json",
    "meta/root/d.array.json",
    "b/c/.zarray",
];

/// The texts that a key may have; `None` for none.
fn documents() -> Vec<Option<String>> {
    let values = [
        v3_array(&[3]),
        v3_array(&[4]),
        v2_array(&[3]),
        json!({"zarr_format": 2}),
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 1}}),
        json!({"units": "K"}),
        json!({"zarr_format": 3, "node_type": "array"}),
        draft_array(&[5]),
        entry_point(),
    ];
    let texts = values.iter().map(Value::to_string).chain(["{".to_owned(), format!(" {}\n", json!({}))]);
    texts.map(Some).chain([None, None]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// After each change an engine that has read the tree before describes it like one that has just started.
    #[test]
    fn trees_are_described_as_if_nothing_were_cached(
        changes in vec((0..KEYS.len(), 0..documents().len()), 1..25)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let memory = MemoryStore::new();
            let store = TestStore::on(Arc::new(memory.clone()));
            // The same as a folder of this machine that other programs write.
            let folder = || {
                let guarantees = Guarantees { near: true, ..Guarantees::READ_ONLY };
                ServedStore::read_only(Arc::new(Keyed::new(memory.clone(), guarantees)))
            };
            let hierarchies = |store: ServedStore| Arrays::new(store, Options::default()).hierarchies();
            let of_folder = hierarchies(folder());
            let documents = documents();
            for (key, document) in changes {
                match &documents[document] {
                    Some(text) => store.set(KEYS[key], text.clone()).await,
                    None => store.erase_key(KEYS[key]).await,
                }
                let fresh = [hierarchies(store.inner.clone().into()), hierarchies(folder())];
                for (cached, fresh) in [&store.nodes, &of_folder].into_iter().zip(&fresh) {
                    for (at, mapped) in ["/", "/b"].into_iter().flat_map(|at| [(at, None), (at, Some(Dialect::V3))]) {
                        let [ours, theirs] = [cached, fresh].map(|nodes| async move {
                            let node = nodes.node(&path(at), None, Depth::All, mapped).await;
                            node.map(|node| node.info).map_err(|error| error.to_string())
                        });
                        assert_eq!(ours.await, theirs.await);
                    }
                }
            }
        });
    }
}
