//! The number of keys that operations read.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use serde_json::{Map, Value, json};

use zarrd_array::Depth;
use zarrd_store::{Guarantees, Keyed, MemoryStore, Mounts, SnapshotStore, TransactionalStore};

use crate::hierarchies::{
    concurrency::InterferingStore,
    test_store::{TestStore, path, v2_array, v2_group, v3_array, v3_group},
};

fn members(count: usize, member: &Value) -> Value {
    Value::Object((0..count).map(|number| (format!("n{number}"), member.clone())).collect::<Map<_, _>>())
}

/// A patch of a group depends on its own documents, its counterpart, and the consolidated metadata above it, for any
/// number of descendants.
#[tokio::test]
async fn group_patch_reads_no_descendants() {
    for group in [v3_group(&members(300, &v3_array(&[1]))), v2_group(&members(300, &v2_array(&[1])))] {
        let (store, interference) = InterferingStore::create();
        store.declare("/up/g", &group).await.unwrap();
        let before = (interference.pages.load(Relaxed), interference.snapshot_keys.load(Relaxed));
        store.patch("/up/g", &json!({"attributes": {"n": 1}})).await.unwrap();
        assert_eq!(interference.pages.load(Relaxed) - before.0, 0);
        let snapshot_keys = interference.snapshot_keys.load(Relaxed) - before.1;
        assert_eq!(snapshot_keys, 29);
        assert_eq!(store.all("/up/g").await["attributes"], json!({"n": 1}));
    }
}

/// A tree is listed with a few pages of keys; no absent key is looked up, and no key twice.
#[tokio::test]
async fn tree_is_listed_with_few_scans() {
    let wide = |member: &Value| members(10, member);
    for (leaf, group, documents) in
        [(v3_array(&[1]), v3_group as fn(&Value) -> Value, 1), (v2_array(&[1]), v2_group as fn(&Value) -> Value, 2)]
    {
        let (store, interference) = InterferingStore::create();
        store.declare("/g", &group(&wide(&group(&wide(&group(&wide(&leaf))))))).await.unwrap();
        for (depth, nodes, max) in [(Depth::All, 1111, 20), (Depth::Levels(3), 1111, 20), (Depth::Levels(2), 111, 40)] {
            let before = (interference.pages.load(Relaxed), interference.snapshot_keys.load(Relaxed));
            assert_eq!(store.node("/g", depth).await.unwrap().zom.len(), nodes);
            let pages = interference.pages.load(Relaxed) - before.0;
            assert!(pages <= max, "{pages} pages were listed for {depth:?}");
            let snapshot_keys = interference.snapshot_keys.load(Relaxed) - before.1;
            // In addition to the documents, the keys of other possible documents of the root.
            assert_eq!(snapshot_keys, nodes * documents + if documents == 1 { 8 } else { 7 }, "{depth:?}");
        }
    }
}

/// Nodes that are not below a mount are read as without mounts.
#[tokio::test]
async fn a_mount_changes_no_requests_for_others() {
    let (plain, interference) = InterferingStore::create();
    let wide = |member: &Value| members(10, member);
    plain.declare("/g", &v3_group(&wide(&v3_group(&wide(&v3_array(&[1])))))).await.unwrap();
    let guarantees = Guarantees { staleness: Duration::from_secs(5), ..Guarantees::READ_ONLY };
    let web: Arc<dyn SnapshotStore> = Arc::new(Keyed::new(MemoryStore::new(), guarantees));
    let mounts = BTreeMap::from([("web".parse().unwrap(), web)]);
    let root: Arc<dyn TransactionalStore> = interference.clone();
    let mounted = TestStore::on(Arc::new(Mounts::new("test", root.into(), mounts)));
    let mut counts = Vec::new();
    for store in [&plain, &mounted] {
        let before = [&interference.pages, &interference.keys, &interference.snapshot_keys].map(|it| it.load(Relaxed));
        assert_eq!(store.node("/g", Depth::All).await.unwrap().zom.len(), 111);
        assert_eq!(store.node("/g/n0", Depth::Levels(1)).await.unwrap().zom.len(), 11);
        let after = [&interference.pages, &interference.keys, &interference.snapshot_keys].map(|it| it.load(Relaxed));
        counts.push([0, 1, 2].map(|at| after[at] - before[at]));
    }
    assert_eq!(counts[0], counts[1]);
    // The root has what is mounted, too.
    mounted.node("/", Depth::All).await.unwrap();
}

/// The chunks of arrays are not iterated: at most one listing is wasted for each required one.
#[tokio::test]
async fn chunks_are_skipped_in_listings() {
    let (store, interference) = InterferingStore::create();
    store.declare("/g", &v3_group(&members(20, &v3_group(&json!({"a": v3_array(&[1_000])}))))).await.unwrap();
    for group in 0..20 {
        for chunk in 0..500 {
            store.set(&format!("g/n{group}/a/c/{chunk}"), [1; 2]).await;
        }
    }
    let before = (interference.pages.load(Relaxed), interference.keys.load(Relaxed));
    assert_eq!(store.node("/g", Depth::All).await.unwrap().zom.len(), 41);
    let pages = interference.pages.load(Relaxed) - before.0;
    let keys = interference.keys.load(Relaxed) - before.1;
    // Two listings for each of 21 groups; of the 10,000 chunks only those that the scans reach before they stop.
    assert_eq!((pages, keys), (2 * 21, 384));
}

/// Prefixes without documents are scanned together.
#[tokio::test]
async fn prefixes_without_documents_are_scanned_together() {
    let (store, interference) = InterferingStore::create();
    for prefix in 0..1_000 {
        store.set(&format!("p/x{prefix}/blob"), [1]).await;
        store.set(&format!("q/x{}/y{}/z{}/blob", prefix / 100, prefix / 10 % 10, prefix % 10), [1]).await;
    }
    store.json("p/x500/deep/zarr.json", &v3_array(&[1])).await;
    store.json("q/x5/y5/z5/deep/zarr.json", &v3_array(&[1])).await;
    for (at, max) in [("/p", 10), ("/q", 150)] {
        let before = (interference.pages.load(Relaxed), interference.snapshot_keys.load(Relaxed));
        assert_eq!(store.node(at, Depth::Levels(1)).await.unwrap().zom.len(), 2);
        let pages = interference.pages.load(Relaxed) - before.0;
        assert!(pages <= max, "{pages} pages were listed below {at}");
        let snapshot_keys = interference.snapshot_keys.load(Relaxed) - before.1;
        assert!(snapshot_keys <= 4 * max, "{snapshot_keys} keys were looked up below {at}");
    }
}

/// A request that holds memory does not wait for more, so the listing of a tree of unknown size restarts with enough
/// memory reserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trees_exceeding_memory_together_are_listed_in_turn() {
    let store = TestStore::new();
    let member = json!({"zarr_format": 3, "node_type": "group", "attributes": {"text": "x".repeat(2000)}});
    let members: serde_json::Map<_, _> = (0..5000).map(|number| (format!("g{number}"), member.clone())).collect();
    store.declare("/tree", &v3_group(&json!(members))).await.unwrap();
    let patience = std::time::Duration::from_secs(120);
    let options =
        zarrd_array::Options { max_memory: 44 << 20, memory_timeout: patience, ..zarrd_array::Options::default() };
    let nodes = zarrd_array::Arrays::new(store.inner.clone(), options).hierarchies();
    let returned: Vec<_> = (0..6)
        .map(|_| {
            let nodes = nodes.clone();
            tokio::spawn(
                async move { nodes.node(&path("/tree"), None, Depth::All, None).await.map(|node| node.zom.len()) },
            )
        })
        .collect();
    for returned in returned {
        assert_eq!(returned.await.unwrap().unwrap(), 5001);
    }
}
