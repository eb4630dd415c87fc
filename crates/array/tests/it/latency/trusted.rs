//! Trees of a thousand nodes with consolidated metadata that are trusted.

use serde_json::{Map, Value, json};
use zarrd_array::{Arrays, Depth, Options};
use zarrd_meta::NodePath;
use zarrd_store::{Consolidated, Guarantees, ListableStore, Listing, PageRequest, Prefix, ReadableStore, Recheck};

use crate::latency::{
    distant_store::{DistantStore, Request},
    document, plain,
};

const TRUSTED: Guarantees = Guarantees { consolidated: Consolidated::Trusted, ..Guarantees::READ_ONLY };

fn zarray() -> String {
    json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null})
    .to_string()
}

/// Ten groups of ten groups of ten arrays, in v3 or v2.
async fn tree(names: [&str; 2], [group, array]: [&str; 2]) -> DistantStore {
    let store = DistantStore::new();
    store.set(&format!("g/{}", names[0]), group).await;
    for first in 0..10 {
        store.set(&format!("g/n{first}/{}", names[0]), group).await;
        for second in 0..10 {
            store.set(&format!("g/n{first}/n{second}/{}", names[0]), group).await;
            for third in 0..10 {
                let at = format!("g/n{first}/n{second}/n{third}");
                store.set(&format!("{at}/{}", names[1]), array).await;
                store.set(&format!("{at}/.zattrs"), json!({"third": third}).to_string()).await;
            }
        }
    }
    store
}

/// Consolidates the metadata below `g`, as zarr-python does.
async fn consolidate(store: &DistantStore, v3: bool) {
    let mut metadata = Map::new();
    let prefix = Prefix::parse("g/").unwrap();
    let listed = store.memory.list_prefix(&prefix, PageRequest::first(10_000)).await.unwrap();
    for entry in listed.keys {
        let value = store.memory.get(&entry.key, None).await.unwrap().unwrap().bytes().await.unwrap();
        let name = entry.key.as_str().strip_prefix("g/").unwrap();
        let name = if v3 { name.strip_suffix("/zarr.json") } else { Some(name) };
        if let Some(name) = name {
            metadata.insert(name.to_owned(), serde_json::from_slice(&value).unwrap());
        }
    }
    if v3 {
        let consolidated = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        let group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated});
        store.set("g/zarr.json", group.to_string()).await;
    } else {
        let document = json!({"zarr_consolidated_format": 1, "metadata": metadata});
        store.set("g/.zmetadata", document.to_string()).await;
    }
}

async fn in_v3() -> DistantStore {
    let group = json!({"zarr_format": 3, "node_type": "group"}).to_string();
    let store = tree(["zarr.json"; 2], [&group, &document(1_000, 4, &plain())]).await;
    consolidate(&store, true).await;
    store
}

async fn in_v2() -> DistantStore {
    let store = tree([".zgroup", ".zarray"], [r#"{"zarr_format": 2}"#, &zarray()]).await;
    consolidate(&store, false).await;
    store
}

async fn describe(arrays: &Arrays, at: &str) -> Value {
    let path = NodePath::parse(at).unwrap();
    let node = arrays.hierarchies().node(&path, None, Depth::All, None).await.unwrap();
    json!([node.info.zom.len(), node.info.zom.to_text().to_value().unwrap()])
}

#[tokio::test(start_paused = true)]
async fn a_tree_takes_two_or_three_round_trips_and_is_the_same() {
    for (store, trips, requests) in [(in_v3().await, 2, 5), (in_v2().await, 3, 5)] {
        let exact = describe(&store.arrays(Recheck::DISTANT, Options::default()), "/g").await;
        for guarantees in [TRUSTED, Guarantees { listing: Listing::None, ..TRUSTED }] {
            let arrays = Arrays::new(store.served(Recheck::DISTANT, guarantees), Options::default());
            let (found, taken, asked) = store.measure(describe(&arrays, "/g")).await;
            assert_eq!(found[0], 1_111);
            assert!(found == exact, "the trees differ");
            assert!(taken <= 3, "{taken} round trips");
            assert_eq!((taken, asked.len()), (trips, requests), "{asked:?}");
            assert!(!asked.iter().any(|request| matches!(request, Request::List(_))));
        }
    }
}

/// A part of a tree, whose group has no consolidated metadata of its own.
#[tokio::test(start_paused = true)]
async fn a_part_of_a_tree_is_read_level_by_level_unless_it_cannot_be_listed() {
    for (store, trips) in [(in_v3().await, 3), (in_v2().await, 4)] {
        let arrays = Arrays::new(store.served(Recheck::DISTANT, TRUSTED), Options::default());
        let (found, _, asked) = store.measure(describe(&arrays, "/g/n3")).await;
        assert_eq!(found[0], 111);
        assert!(asked.iter().any(|request| matches!(request, Request::List(_))));
        let unlisted = Guarantees { listing: Listing::None, ..TRUSTED };
        let arrays = Arrays::new(store.served(Recheck::DISTANT, unlisted), Options::default());
        let (again, taken, asked) = store.measure(describe(&arrays, "/g/n3")).await;
        assert_eq!((again == found, taken), (true, trips), "{asked:?}");
    }
}
