//! Many writers below one group with consolidated metadata.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::{Value, json};
use zarrd_array::{CreateOptions, ElementSource, NodeError, RemovedCopies, WriteError};
use zarrd_meta::limits::{MAX_CONSOLIDATED_SIZE, MAX_DOCUMENT_SIZE};
use zarrd_store::{MemoryStore, Operation, Precondition, StoreError, StoreWrapper};

use crate::hierarchies::test_store::{TestStore, path, v2_array, v2_group, v3_array, v3_group, zom};

/// A store whose commits take a while, so that all who planned before one of them conflict with it.
#[derive(Default)]
struct SlowStore {
    store: MemoryStore,
    commits: AtomicUsize,
}

#[async_trait]
impl StoreWrapper for SlowStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        if matches!(operation, Operation::Commit) {
            self.commits.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// Both dialects: an array, a group of some members, and the key and pointer of its consolidated metadata.
type Consolidated = (fn(&[u64]) -> Value, fn(&Value) -> Value, &'static str, &'static str);

const DIALECTS: [Consolidated; 2] = [
    (v2_array, v2_group, "g/.zmetadata", "/metadata"),
    (v3_array, v3_group, "g/zarr.json", "/consolidated_metadata/metadata"),
];

/// `/g` with these members and their consolidated metadata.
async fn consolidate(store: &TestStore, dialect: Consolidated, members: &[String]) {
    let (array, group, key, _) = dialect;
    let declared: Value = members.iter().map(|name| (name.clone(), array(&[2]))).collect();
    store.declare("/g", &group(&declared)).await.unwrap();
    if key == "g/.zmetadata" {
        let mut metadata = json!({".zgroup": {"zarr_format": 2}});
        for name in members {
            metadata[format!("{name}/.zarray")] = store.document(&format!("g/{name}/.zarray")).await;
        }
        store.json(key, &json!({"zarr_consolidated_format": 1, "metadata": metadata})).await;
    } else {
        let mut document = store.document(key).await;
        let metadata: Value = members.iter().map(|name| (name.clone(), array(&[2]))).collect();
        document["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        store.json(key, &document).await;
    }
}

async fn append(store: &TestStore, at: &str) -> Result<Vec<u64>, WriteError> {
    let append = store.arrays.append(&path(at), None, "0", Precondition::none()).await?;
    append.execute(Some(2), ElementSource::Scalar(vec![7])).await.map(|report| report.shape)
}

/// Sixteen who append to arrays of their own, one who changes attributes, and one who creates and erases arrays.
#[tokio::test(start_paused = true)]
async fn writers_of_different_arrays_are_never_refused() {
    const ROUNDS: u64 = 20;
    for dialect in DIALECTS {
        let (array, _, key, pointer) = dialect;
        let slow = Arc::new(SlowStore::default());
        let store = TestStore::on(slow.clone());
        let names: Vec<String> = (0..16).map(|number| format!("a{number}")).collect();
        consolidate(&store, dialect, &names).await;
        slow.commits.store(0, Ordering::Relaxed);
        let appends = join_all(names.iter().map(async |name| {
            for round in 1..=ROUNDS {
                assert_eq!(append(&store, &format!("/g/{name}")).await.unwrap(), [2 + 2 * round], "{name}");
            }
        }));
        let patches = async {
            for round in 0..ROUNDS {
                store.patch("/g/a0", &json!({"attributes": {"round": round}})).await.unwrap();
            }
        };
        let others = async {
            for _ in 0..ROUNDS {
                store.declare("/g/other", &array(&[3])).await.unwrap();
                store.erase("/g/other").await.unwrap();
            }
        };
        futures::join!(appends, patches, others);
        let commits = slow.commits.load(Ordering::Relaxed);
        assert!(commits <= 600, "{commits} commits for 380 changes, of which one commit can make many");
        let metadata = store.document(key).await.pointer(pointer).unwrap().clone();
        for name in &names {
            let (entry, document) = match key {
                "g/.zmetadata" => (format!("{name}/.zarray"), format!("g/{name}/.zarray")),
                _ => (name.clone(), format!("g/{name}/zarr.json")),
            };
            let document = store.document(&document).await;
            assert_eq!(document["shape"], json!([2 + 2 * ROUNDS]), "{name}");
            assert_eq!(metadata[&entry], document, "{name}");
        }
        assert!(!metadata.as_object().unwrap().keys().any(|name| name.starts_with("other")));
    }
}

/// Two writers of the same array have one commit after the other, also if they wait together.
#[tokio::test(start_paused = true)]
async fn appends_to_one_array_follow_each_other() {
    for dialect in DIALECTS {
        let store = TestStore::on(Arc::new(SlowStore::default()));
        consolidate(&store, dialect, &["a".into(), "b".into()]).await;
        let all = (0..12).map(|number| append(&store, if number % 3 == 0 { "/g/b" } else { "/g/a" }));
        let mut shapes: Vec<u64> = join_all(all).await.into_iter().flat_map(|shape| shape.unwrap()).collect();
        shapes.sort_unstable();
        assert_eq!(shapes, [4, 4, 6, 6, 8, 8, 10, 10, 12, 14, 16, 18]);
    }
}

/// The caller who leaves does not end the commit that is made for others.
#[tokio::test(start_paused = true)]
async fn writer_that_leaves_costs_others_nothing() {
    for leaves_after in 0..30 {
        let store = TestStore::on(Arc::new(SlowStore::default()));
        let names: Vec<String> = (0..6).map(|number| format!("a{number}")).collect();
        consolidate(&store, DIALECTS[1], &names).await;
        let leaving = tokio::time::timeout(Duration::from_millis(leaves_after), append(&store, "/g/a0"));
        let others = join_all(names[1..].iter().map(async |name| append(&store, &format!("/g/{name}")).await));
        let (_, others) = futures::join!(leaving, others);
        others.into_iter().for_each(|shape| assert_eq!(shape.unwrap(), [4], "{leaves_after}"));
    }
}

/// A group whose consolidated metadata is as large as given, by an entry of a member that does not exist.
async fn large_copy(store: &TestStore, dialect: Consolidated, size: usize) {
    let (.., key, pointer) = dialect;
    consolidate(store, dialect, &["a".into()]).await;
    let mut document = store.document(key).await;
    let metadata = document.pointer_mut(pointer).unwrap();
    metadata["z"] = json!({"attributes": {"text": "x".repeat(size)}});
    store.json(key, &document).await;
}

#[tokio::test]
async fn copy_that_would_be_too_large_is_removed() {
    for dialect in DIALECTS {
        let (array, _, key, _) = dialect;
        let store = TestStore::new();
        large_copy(&store, dialect, MAX_CONSOLIDATED_SIZE - 1000).await;
        append(&store, "/g/a").await.unwrap();
        assert!(store.stored(key).await.len() <= MAX_CONSOLIDATED_SIZE, "{key}: it is kept up to date");
        let mut large = array(&[3]);
        large["attributes"] = json!({"text": "x".repeat(2000)});
        let removed = RemovedCopies::default();
        let arrays = store.arrays.clone().with_removed_copies(removed.clone());
        let (nodes, options) = (arrays.hierarchies(), CreateOptions::default());
        nodes.create(&path("/g/b"), Arc::new(zom(&large)), &options).await.unwrap();
        assert_eq!(removed.keys().iter().map(ToString::to_string).collect::<Vec<_>>(), [key]);
        assert!(!has_copy(&store, key).await, "{key}");
        assert_eq!(append(&store, "/g/a").await.unwrap(), [6]);
    }
}

/// Another program, or a caller with rights below the group only, made it too large to be read.
#[tokio::test]
async fn change_below_mends_a_group_that_is_too_large() {
    type Change = fn(&TestStore) -> futures::future::BoxFuture<'_, Result<(), NodeError>>;
    let [v2, v3] = DIALECTS;
    let changes: [(&str, Consolidated, Change); 3] = [
        ("append", v3, |store| {
            Box::pin(async {
                append(store, "/g/a").await.unwrap();
                Ok(())
            })
        }),
        ("patch", v3, |store| {
            Box::pin(async { store.patch("/g/a", &json!({"attributes": {"n": 1}})).await.map(|_| ()) })
        }),
        ("erase", v2, |store| Box::pin(async { store.erase("/g/a").await.map(|_| ()) })),
    ];
    for (name, dialect, change) in changes {
        let (.., key, _) = dialect;
        let store = TestStore::new();
        large_copy(&store, dialect, MAX_DOCUMENT_SIZE).await;
        change(&store).await.unwrap();
        assert!(!has_copy(&store, key).await, "{name} {key}");
        store.all("/g").await;
    }
}

async fn has_copy(store: &TestStore, key: &str) -> bool {
    match key {
        "g/.zmetadata" => store.keys().await.iter().any(|found| found == key),
        _ => store.document(key).await.get("consolidated_metadata").is_some(),
    }
}
