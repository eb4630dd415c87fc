//! Trees of a thousand nodes.

use serde_json::{Value, json};
use tokio::time::{Duration, advance};
use zarrd_array::{Arrays, Depth, Options};
use zarrd_meta::NodePath;
use zarrd_store::Recheck;

use crate::latency::{
    distant_store::{DistantStore, Request},
    document, plain,
};

/// The documents of ten groups of ten groups of ten arrays, with `chunks` chunks in each array.
async fn store(chunks: usize) -> DistantStore {
    let store = DistantStore::new();
    let group = json!({"zarr_format": 3, "node_type": "group"}).to_string();
    let array = document(1_000, 4, &plain());
    store.set("g/zarr.json", group.clone()).await;
    for first in 0..10 {
        store.set(&format!("g/n{first}/zarr.json"), group.clone()).await;
        for second in 0..10 {
            store.set(&format!("g/n{first}/n{second}/zarr.json"), group.clone()).await;
            for third in 0..10 {
                let at = format!("g/n{first}/n{second}/n{third}");
                store.set(&format!("{at}/zarr.json"), array.clone()).await;
                for chunk in 0..chunks {
                    store.set(&format!("{at}/c/{chunk}"), [1; 4]).await;
                }
            }
        }
    }
    store
}

/// The number of nodes of the tree.
async fn nodes(arrays: &Arrays) -> usize {
    let path = NodePath::parse("/g").unwrap();
    arrays.hierarchies().node(&path, None, Depth::All, None).await.unwrap().info.zom.len()
}

/// The prefixes that were listed.
fn listed(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .filter_map(|request| match request {
            Request::List(prefix) => Some(prefix.as_str()),
            Request::Get(..) | Request::Head(_) => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_read_level_by_level() {
    for (chunks, trips, again) in [(0, 26, 5), (100, 29, 8)] {
        let store = store(chunks).await;
        let arrays = store.arrays(Recheck::DISTANT, Options::default());
        let (count, taken, requests) = store.measure(nodes(&arrays)).await;
        assert_eq!(count, 1_111);
        assert_eq!(taken, trips, "with {chunks} chunks");
        let below_arrays = listed(&requests).into_iter().filter(|prefix| prefix.split('/').count() > 4).count();
        assert_eq!(below_arrays, 0, "nothing is below arrays");
        let (count, taken, _) = store.measure(nodes(&arrays)).await;
        assert_eq!((count, taken), (1_111, again), "only listings are not remembered");
    }
}

/// Changes of the tree are seen when the time is over, and new nodes at once.
#[tokio::test(start_paused = true)]
async fn changes_of_a_tree_are_seen() {
    let store = store(0).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    assert_eq!(nodes(&arrays).await, 1_111);
    store.set("g/n5/n5/new/zarr.json", document(1, 1, &plain())).await;
    assert_eq!(nodes(&arrays).await, 1_112);
    // A broken node is left out.
    store.set("g/n5/n5/new/zarr.json", "{").await;
    assert_eq!(nodes(&arrays).await, 1_112);
    advance(Duration::from_secs(5)).await;
    assert_eq!(nodes(&arrays).await, 1_111);
}

/// Reading ahead changes no tree, whatever its dialects.
#[tokio::test(start_paused = true)]
async fn trees_of_all_dialects_are_the_same_as_in_a_store_that_answers_at_once() {
    let store = DistantStore::new();
    let v3 = json!({"zarr_format": 3, "node_type": "group"}).to_string();
    let v2 = json!({"zarr_format": 2}).to_string();
    let array = json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null})
    .to_string();
    for at in ["a", "a/both", "a/v3", "b/v3", "b/both", "deep/implicit/v3"] {
        store.set(&format!("{at}/zarr.json"), v3.clone()).await;
    }
    for at in ["b", "a/both", "a/v2", "b/v2", "b/both", "deep/other/v2"] {
        store.set(&format!("{at}/.zgroup"), v2.clone()).await;
        store.set(&format!("{at}/.zattrs"), json!({"at": at}).to_string()).await;
    }
    for at in ["a/v2/array", "b/array"] {
        store.set(&format!("{at}/.zarray"), array.clone()).await;
    }
    store.set("a/broken/zarr.json", "{").await;
    store.set("a/broken/.zgroup", v2.clone()).await;
    store.set("a/wrong/zarr.json", json!({"zarr_format": 3, "node_type": "array"}).to_string()).await;
    for chunk in 0..200 {
        store.set(&format!("b/array/{chunk}"), [1; 2]).await;
    }
    let distant = store.arrays(Recheck::DISTANT, Options::default());
    let near = Arrays::new(std::sync::Arc::new(store.memory.clone()), Options::default());
    let describe = async |arrays: &Arrays, at: &str, mapped| -> Value {
        let found = arrays.hierarchies().node(&NodePath::parse(at).unwrap(), None, Depth::All, mapped).await;
        let info = found.unwrap().info;
        let broken: Vec<_> = info.broken.iter().map(|node| node.key.to_string()).collect();
        let others: Vec<_> = info.other_dialects.iter().map(|(path, dialect)| format!("{path} {dialect:?}")).collect();
        json!([info.zom.to_text().to_value().unwrap(), broken, others])
    };
    for at in ["/", "/a", "/b", "/deep"] {
        for mapped in [None, Some(zarrd_meta::Dialect::V3)] {
            assert_eq!(describe(&distant, at, mapped).await, describe(&near, at, mapped).await, "{at} {mapped:?}");
        }
    }
}
