//! A store of this machine whose values other programs write: requests cost little, and what they transfer counts.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use zarrd_array::{Arrays, Depth, Options};
use zarrd_meta::NodePath;
use zarrd_store::{ByteRange, Guarantees, Keyed, ServedStore};

use crate::latency::{
    checked,
    distant_store::{DistantStore, Request},
    document, plain, read, with_checksum,
};

fn arrays(store: &DistantStore) -> Arrays {
    let guarantees = Guarantees { near: true, ..Guarantees::READ_ONLY };
    Arrays::new(ServedStore::read_only(Arc::new(Keyed::new(store.clone(), guarantees))), Options::default())
}

/// The keys that begin with a text, of which a value was read.
fn read_values(requests: &[Request], below: &str) -> usize {
    requests.iter().filter(|request| matches!(request, Request::Get(key, _) if key.starts_with(below))).count()
}

/// With more chunks than versions are asked for in a plan.
#[tokio::test(start_paused = true)]
async fn a_chunk_that_is_cached_is_looked_at_and_not_read() {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(800, 4, &checked())).await;
    for chunk in 0..200_u8 {
        store.set(&format!("a/c/{chunk}"), with_checksum(&[chunk; 4])).await;
    }
    let arrays = arrays(&store);
    let expected: Vec<u8> = (0..200).flat_map(|chunk| [chunk; 4]).collect();
    for values in [200, 0] {
        let (elements, _, requests) = store.measure(read(&arrays, "")).await;
        assert_eq!(elements.unwrap(), expected);
        assert_eq!(read_values(&requests, "a/c/"), values);
    }
    store.set("a/c/7", with_checksum(&[9; 4])).await;
    let (elements, _, requests) = store.measure(read(&arrays, "28:32")).await;
    assert_eq!((elements.unwrap(), read_values(&requests, "a/c/")), (vec![9; 4], 1));
}

#[tokio::test(start_paused = true)]
async fn documents_of_a_tree_that_has_not_changed_are_not_read_again() {
    let store = DistantStore::new();
    for group in 0..3 {
        for member in 0..30 {
            store.set(&format!("g/n{group}/a{member}/zarr.json"), document(8, 4, &plain())).await;
        }
    }
    let nodes = arrays(&store).hierarchies();
    let described = async || {
        let path = NodePath::parse("/g").unwrap();
        let (node, _, requests) = store.measure(nodes.node(&path, None, Depth::All, None)).await;
        let info = node.unwrap().info;
        assert_eq!(info.zom.len() + info.broken.len(), 94);
        let shape = info.zom.to_text().to_value().unwrap()["members"]["n1"]["members"]["a7"]["shape"].clone();
        (read_values(&requests, "g/n"), shape)
    };
    assert_eq!(described().await, (90, json!([8])));
    assert_eq!(described().await, (0, json!([8])));
    for (text, shape) in [(document(9, 4, &plain()), json!([9])), ("{".to_owned(), json!(null))] {
        store.set("g/n1/a7/zarr.json", text).await;
        assert_eq!(described().await, (1, shape.clone()));
        assert_eq!(described().await, (0, shape));
    }
}

#[tokio::test(start_paused = true)]
async fn listed_documents_that_are_cached_take_no_requests() {
    let store = DistantStore::new();
    for array in 0..300 {
        store.set(&format!("g/n{}/a{array}/zarr.json", array % 3), document(8, 4, &plain())).await;
        store.set(&format!("g/n{}/a{array}/c/0", array % 3), vec![7; 4]).await;
    }
    let nodes = arrays(&store).hierarchies();
    let path = NodePath::parse("/g").unwrap();
    let of_arrays = |request: &&Request| match request {
        Request::Get(key, _) | Request::Head(key) => key.contains("/a"),
        Request::List(_) => false,
    };
    for requested in [true, false, false] {
        let (node, _, requests) = store.measure(nodes.node(&path, None, Depth::All, None)).await;
        assert_eq!(node.unwrap().info.zom.len(), 304);
        assert_eq!(requests.iter().any(|request| of_arrays(&request)), requested, "{requests:?}");
    }
}

/// The keys of chunks are many, and a listing of them would take more requests.
#[tokio::test(start_paused = true)]
async fn few_keys_are_listed_for_the_first_node_of_each_group() {
    let store = DistantStore::new();
    for key in 0..60 {
        store.set(&format!("g/n{}/a{key}/zarr.json", key % 3), document(100, 1, &plain())).await;
        for chunk in 0..100 {
            store.set(&format!("g/n{}/a{key}/c/{chunk}", key % 3), [7]).await;
        }
    }
    let nodes = arrays(&store).hierarchies();
    let path = NodePath::parse("/g").unwrap();
    let (node, _, requests) = store.measure(nodes.node(&path, None, Depth::Levels(1), None)).await;
    assert_eq!(node.unwrap().info.zom.len(), 4);
    let lists = |prefix: &str| requests.iter().filter(|request| **request == Request::List(prefix.to_owned())).count();
    assert_eq!(["g/n0/", "g/n1/", "g/n2/"].map(lists), [4; 3], "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tree_whose_listings_have_their_earlier_states_is_listed_once() {
    let store = DistantStore::new().with_states();
    for array in 0..60 {
        store.set(&format!("g/n{}/a{array}/zarr.json", array % 3), document(8, 4, &plain())).await;
    }
    let nodes = arrays(&store).hierarchies();
    let path = NodePath::parse("/g").unwrap();
    for (changed, listings) in [(None, 2), (None, 1), (Some("g/n1/a99/zarr.json"), 2), (None, 1)] {
        if let Some(changed) = changed {
            store.set(changed, document(8, 4, &plain())).await;
        }
        let (node, _, requests) = store.measure(nodes.node(&path, None, Depth::All, None)).await;
        let expected = 64 + usize::from(changed.is_some());
        assert!(node.unwrap().info.zom.len() >= expected);
        let listed = requests.iter().filter(|request| matches!(request, Request::List(_))).count();
        assert_eq!(listed, listings, "{changed:?}: {requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_is_of_one_moment_while_its_documents_are_written() {
    assert_one_moment(DistantStore::new(), 1_700).await;
}

#[tokio::test(start_paused = true)]
async fn a_tree_whose_listings_have_states_is_of_one_moment_while_its_documents_are_written() {
    assert_one_moment(DistantStore::new().with_states(), 5_000).await;
}

/// Reads a tree while one array is written after the other, with pauses up to this many milliseconds: at any time the
/// second one is as long as the first, or one shorter.
async fn assert_one_moment(store: DistantStore, longest_pause: u64) {
    for name in ["a", "m", "z"] {
        store.set(&format!("g/{name}/zarr.json"), document(1, 1, &plain())).await;
    }
    let writer = store.clone();
    let write = async move {
        for length in 2_u64.. {
            for (name, pause) in [("a", length * 37 % longest_pause), ("z", length * 61 % longest_pause)] {
                writer.set(&format!("g/{name}/zarr.json"), document(length, 1, &plain())).await;
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    };
    let writing = tokio::spawn(write);
    let nodes = arrays(&store).hierarchies();
    let path = NodePath::parse("/g").unwrap();
    let mut seen = [0, 0];
    for _ in 0..300 {
        let node = nodes.node(&path, None, Depth::All, None).await.unwrap();
        let tree = node.info.zom.to_text().to_value().unwrap();
        let length = |name: &str| tree["members"][name]["shape"][0].as_u64().unwrap();
        let ahead = length("a").checked_sub(length("z")).expect("the second one is not ahead");
        *seen.get_mut(ahead as usize).expect("the first one is ahead by one at most") += 1;
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn of_a_few_elements_little_around_them_is_read() {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(1 << 20, 1 << 20, &plain())).await;
    store.set("a/c/0", vec![7; 1 << 20]).await;
    let arrays = arrays(&store);
    for (select, range) in
        [("5000", 4_096..8_192), ("5000:5016", 4_096..8_192), ("5000:5064", 0..16_384), ("5000:6000", 0..131_072)]
    {
        let (elements, _, requests) = store.measure(read(&arrays, select)).await;
        assert!(elements.unwrap().iter().all(|element| *element == 7));
        let wanted = ByteRange::bounded(range.start, range.end).ok();
        assert_eq!(requests.last(), Some(&Request::Get("a/c/0".to_owned(), wanted)), "{select}");
    }
}
