//! Trees with more nodes than one request declares or one response returns.

use std::time::Instant;

use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use zarrd_client::{BaseUrl, NodeClient, NodePath, zom::Node};
use zarrd_store::Precondition;
use zarrd_tests::server::Launch;

/// The number of requests that declare the tree, of groups in each, and of members in a page.
const REQUESTS: usize = if cfg!(debug_assertions) { 4 } else { 11 };
const GROUPS: usize = if cfg!(debug_assertions) { 300 } else { 95_000 };
const PAGE: usize = if cfg!(debug_assertions) { 70 } else { 10_000 };

/// The number of keys that an erase counts.
const COUNTED: u64 = 100_000;

fn group(members: Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

/// A tree is declared by several requests, listed page by page, patched at its root and erased.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_tree_is_paginated_and_erased() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let started = Instant::now();
    for request in 0..REQUESTS {
        let members = (0..GROUPS).map(|number| (format!("n{number:05}"), group(Map::new()))).collect();
        let created = server.put(&format!("/node/top/part{request:02}"), group(members).to_string()).await;
        assert_eq!(created.status(), 201, "{}", created.text().await.unwrap());
    }
    println!("declared {} nodes in {:?}", REQUESTS * (GROUPS + 1) + 1, started.elapsed());

    let started = Instant::now();
    let client = NodeClient::new(BaseUrl::parse(&server.url("")).unwrap()).unwrap();
    let mut nodes = 1;
    for part in members(&client, "/top").await {
        nodes += 1 + members(&client, &format!("/top/{part}")).await.len();
    }
    assert_eq!(nodes, REQUESTS * (GROUPS + 1) + 1);
    println!("listed all members in pages of {PAGE} in {:?}", started.elapsed());

    let started = Instant::now();
    let path = NodePath::parse("/top").unwrap();
    let attributes = json!({"changed": true}).as_object().unwrap().clone();
    client.set_attributes(&path, attributes, Precondition::none()).await.unwrap();
    println!("patched the top in {:?}", started.elapsed());

    let started = Instant::now();
    let erased = client.erase(&path, Precondition::none()).await.unwrap();
    let keys = nodes as u64;
    assert_eq!((erased.count, erased.exact), (keys.min(COUNTED), keys <= COUNTED));
    println!("erased it in {:?}", started.elapsed());
    assert!(!client.exists(&path).await.unwrap());
}

/// The names of a group's members, each of which must be on one page and in order.
async fn members(client: &NodeClient, at: &str) -> Vec<String> {
    let mut pages = std::pin::pin!(client.member_pages(&NodePath::parse(at).unwrap(), PAGE));
    let mut names: Vec<String> = Vec::new();
    while let Some(page) = pages.try_next().await.unwrap() {
        let Node::Group(group) = page.zom.root else { panic!("{at} is a group") };
        let members = group.members.unwrap();
        assert!(members.len() <= PAGE, "{at}");
        names.extend(members.keys().cloned());
    }
    assert!(names.is_sorted_by(|a, b| a < b), "{at}");
    names
}
