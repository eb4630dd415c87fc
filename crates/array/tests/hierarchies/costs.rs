//! The number of keys that operations look at.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};

use array::Depth;

use crate::{
    lab::{Lab, path, v2_array, v2_group, v3_array, v3_group},
    racing::Intruded,
};

fn members(count: usize, member: &Value) -> Value {
    Value::Object((0..count).map(|number| (format!("n{number}"), member.clone())).collect::<Map<_, _>>())
}

/// A patch of a group depends on its own documents, those of its twin and consolidated metadata above, however many nodes are below.
#[tokio::test]
async fn group_patch_reads_no_descendants() {
    for group in [v3_group(&members(300, &v3_array(&[1]))), v2_group(&members(300, &v2_array(&[1])))] {
        let (lab, store) = Intruded::lab();
        lab.declare("/up/g", &group).await.unwrap();
        let before = (store.pages.load(Relaxed), store.looked_up.load(Relaxed));
        lab.patch("/up/g", &json!({"attributes": {"n": 1}})).await.unwrap();
        assert_eq!(store.pages.load(Relaxed) - before.0, 0);
        let looked_up = store.looked_up.load(Relaxed) - before.1;
        assert_eq!(looked_up, 35);
        assert_eq!(lab.all("/up/g").await["attributes"], json!({"n": 1}));
    }
}

/// A tree is told with a few pages of keys, and looks nothing up that is not there, and nothing twice.
#[tokio::test]
async fn tree_is_listed_with_few_scans() {
    let wide = |member: &Value| members(10, member);
    for (leaf, group, documents) in
        [(v3_array(&[1]), v3_group as fn(&Value) -> Value, 1), (v2_array(&[1]), v2_group as fn(&Value) -> Value, 2)]
    {
        let (lab, store) = Intruded::lab();
        lab.declare("/g", &group(&wide(&group(&wide(&group(&wide(&leaf))))))).await.unwrap();
        for (depth, nodes, most) in [(Depth::All, 1111, 20), (Depth::Levels(3), 1111, 20), (Depth::Levels(2), 111, 40)]
        {
            let before = (store.pages.load(Relaxed), store.looked_up.load(Relaxed));
            assert_eq!(lab.node("/g", depth).await.unwrap().zom.len(), nodes);
            let pages = store.pages.load(Relaxed) - before.0;
            assert!(pages <= most, "{pages} pages were listed for {depth:?}");
            let looked_up = store.looked_up.load(Relaxed) - before.1;
            // Beside the documents, the keys at which the top may have others.
            assert_eq!(looked_up, nodes * documents + if documents == 1 { 8 } else { 7 }, "{depth:?}");
        }
    }
}

/// The chunks of arrays are not gone through: at most one listing is wasted for each that is needed.
#[tokio::test]
async fn chunks_are_skipped_in_listings() {
    let (lab, store) = Intruded::lab();
    lab.declare("/g", &v3_group(&members(20, &v3_group(&json!({"a": v3_array(&[1_000])}))))).await.unwrap();
    for group in 0..20 {
        for chunk in 0..500 {
            lab.set(&format!("g/n{group}/a/c/{chunk}"), [1; 2]).await;
        }
    }
    let before = (store.pages.load(Relaxed), store.keys.load(Relaxed));
    assert_eq!(lab.node("/g", Depth::All).await.unwrap().zom.len(), 41);
    let pages = store.pages.load(Relaxed) - before.0;
    let keys = store.keys.load(Relaxed) - before.1;
    // Two listings for each of 21 groups; of the 10,000 chunks no more than the scans come to before they stop.
    assert_eq!((pages, keys), (2 * 21, 384));
}

/// Prefixes without documents are looked through together.
#[tokio::test]
async fn prefixes_without_documents_are_scanned_together() {
    let (lab, store) = Intruded::lab();
    for prefix in 0..1_000 {
        lab.set(&format!("p/x{prefix}/blob"), [1]).await;
        lab.set(&format!("q/x{}/y{}/z{}/blob", prefix / 100, prefix / 10 % 10, prefix % 10), [1]).await;
    }
    lab.json("p/x500/deep/zarr.json", &v3_array(&[1])).await;
    lab.json("q/x5/y5/z5/deep/zarr.json", &v3_array(&[1])).await;
    for (at, most) in [("/p", 10), ("/q", 150)] {
        let before = (store.pages.load(Relaxed), store.looked_up.load(Relaxed));
        assert_eq!(lab.node(at, Depth::Levels(1)).await.unwrap().zom.len(), 2);
        let pages = store.pages.load(Relaxed) - before.0;
        assert!(pages <= most, "{pages} pages were listed below {at}");
        let looked_up = store.looked_up.load(Relaxed) - before.1;
        assert!(looked_up <= 4 * most, "{looked_up} keys were looked up below {at}");
    }
}

/// Who has some memory does not wait for more, so a tree whose size is not known beforehand is looked at again with enough of it from the beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trees_exceeding_memory_together_are_listed_in_turn() {
    let lab = Lab::new();
    let member = json!({"zarr_format": 3, "node_type": "group", "attributes": {"text": "x".repeat(2000)}});
    let members: serde_json::Map<_, _> = (0..5000).map(|number| (format!("g{number}"), member.clone())).collect();
    lab.declare("/tree", &v3_group(&json!(members))).await.unwrap();
    let patience = std::time::Duration::from_secs(120);
    let options = array::Options { max_memory: 44 << 20, memory_timeout: patience, ..array::Options::default() };
    let nodes = array::Arrays::new(lab.store.clone(), options).hierarchies();
    let told: Vec<_> = (0..6)
        .map(|_| {
            let nodes = nodes.clone();
            tokio::spawn(
                async move { nodes.node(&path("/tree"), None, Depth::All, None).await.map(|node| node.zom.len()) },
            )
        })
        .collect();
    for told in told {
        assert_eq!(told.await.unwrap().unwrap(), 5001);
    }
}
