//! Pagination of members.

use std::{collections::BTreeSet, sync::atomic::Ordering::Relaxed};

use serde_json::json;
use zarrd_array::{Depth, FileListing, MAX_MEMBERS, MemberPage, Members, NodeError};
use zarrd_meta::{Dialect, zom::Node};
use zarrd_store::{Cursor, StoreError};

use crate::hierarchies::{
    concurrency::InterferingStore,
    test_store::{TestStore, entry_point, path, v2_array, v3_array, v3_group},
};

impl TestStore {
    async fn page(&self, at: &str, limit: usize, cursor: Option<Cursor>) -> Result<Members, NodeError> {
        self.nodes.members(&path(at), None, &MemberPage { limit, cursor, files: FileListing::Omitted }, None).await
    }

    /// The names on each page.
    async fn pages(&self, at: &str, limit: usize) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let Members { node, next } = self.page(at, limit, cursor).await.unwrap();
            let Node::Group(group) = node.info.zom.root else { panic!("{at} is a group") };
            pages.push(group.members.unwrap().keys().cloned().collect());
            assert!(pages.len() < 1_000, "{at} has no end");
            cursor = next;
            if cursor.is_none() {
                return pages;
            }
        }
    }

    /// Asserts that pages of any length contain all members exactly once, equal to the unpaginated listing.
    async fn assert_paged(&self, at: &str) {
        let all = self.node(at, Depth::Levels(1)).await.unwrap().zom;
        let Node::Group(all) = all.root else { panic!("{at} is a group") };
        let all: Vec<String> = all.members.unwrap().keys().cloned().collect();
        for limit in [1, 2, 3, 7, 100, MAX_MEMBERS] {
            let pages = self.pages(at, limit).await;
            assert!(pages.iter().all(|page| page.len() <= limit), "{at} by {limit}");
            let names = pages.concat();
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{at} by {limit} repeats members");
            let mut names = names;
            names.sort_unstable();
            assert_eq!(names, all, "{at} by {limit}");
        }
    }
}

fn group(dialect: Dialect) -> serde_json::Value {
    match dialect {
        Dialect::V2 => json!({"zarr_format": 2}),
        _ => json!({"zarr_format": 3, "node_type": "group", "attributes": {}}),
    }
}

#[tokio::test]
async fn every_member_is_on_exactly_one_page() {
    for (dialect, document) in [(Dialect::V3, "zarr.json"), (Dialect::V2, ".zgroup")] {
        let store = TestStore::new();
        store.json(&format!("g/{document}"), &group(dialect)).await;
        for name in ["a", "a-b", "a.b", "ab", "b", "ä", "z"] {
            store.json(&format!("g/{name}/{document}"), &group(dialect)).await;
            // An implicit group, a prefix that is not a group, and a key that is not a member.
            store.json(&format!("g/{name}-implicit/x/y/{document}"), &group(dialect)).await;
            store.set(&format!("g/{name}-none/x/blob"), [1]).await;
            store.set(&format!("g/{name}.blob"), [1]).await;
            store.json(&format!("g/{name}/below/{document}"), &group(dialect)).await;
        }
        store.assert_paged("/g").await;
        // The same for members of implicit groups.
        store.assert_paged("/").await;
        store.assert_paged("/g/z-implicit").await;
    }
}

#[tokio::test]
async fn every_draft_member_is_on_exactly_one_page() {
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    let group = json!({"extensions": [], "attributes": {}});
    for name in ["a", "a.b", "b", "c", "x"] {
        store.json(&format!("d/meta/root/{name}.group.json"), &group).await;
        store.json(&format!("d/meta/root/{name}/deep.group.json"), &group).await;
        store.json(&format!("d/meta/root/implicit-{name}/deep.group.json"), &group).await;
        store.set(&format!("d/meta/root/{name}.blob"), [1]).await;
    }
    store.json("d/meta/root.group.json", &group).await;
    store.assert_paged("/d").await;
    store.assert_paged("/d/a.b").await;
    store.assert_paged("/d/implicit-x").await;
    assert_eq!(store.pages("/d", MAX_MEMBERS).await.concat().len(), 10);
}

#[tokio::test]
async fn members_of_other_dialects_are_listed_separately() {
    let store = TestStore::new();
    store.json("g/zarr.json", &group(Dialect::V3)).await;
    for name in 0..10 {
        store.json(&format!("g/new{name}/zarr.json"), &v3_array(&[1])).await;
        store.json(&format!("g/old{name}/.zarray"), &v2_array(&[1])).await;
    }
    let (mut other_count, mut names, mut cursor) = (0, 0, None);
    loop {
        let Members { node, next } = store.page("/g", 3, cursor).await.unwrap();
        assert!(node.zom.len() - 1 + node.other_dialects.len() <= 3);
        other_count += node.other_dialects.len();
        names += node.zom.len() - 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((other_count, names), (10, 10));
    let page = MemberPage { limit: 100, cursor: None, files: FileListing::Omitted };
    let mapped = store.nodes.members(&path("/g"), None, &page, Some(Dialect::V3)).await.unwrap();
    assert_eq!((mapped.node.zom.len(), mapped.node.other_dialects.len()), (21, 0));
}

/// The texts of the files on all pages of a group, in their order.
async fn files(store: &TestStore, at: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = MemberPage { limit, cursor, files: FileListing::Listed };
        let Members { node, next } = store.nodes.members(&path(at), None, &page, None).await.unwrap();
        let files = node.files.as_ref().expect("files were requested");
        assert!(node.zom.len() - 1 + node.other_dialects.len() + files.len() <= limit, "{at} by {limit}");
        found.extend(files.iter().map(|file| file.as_str().to_owned()));
        cursor = next;
        if cursor.is_none() {
            return found;
        }
    }
}

#[tokio::test]
async fn pages_list_each_file_that_belongs_to_no_node_once() {
    let store = TestStore::new();
    for (dialect, at, document) in
        [(Dialect::V3, "n/", "zarr.json"), (Dialect::V2, "o/", ".zgroup"), (Dialect::V3, "", "zarr.json")]
    {
        store.json(&format!("{at}{document}"), &group(dialect)).await;
        for key in [".zattrs", ".zmetadata", "README.md", "a.csv", "figures/1.png", "figures/deep/2.png"] {
            store.json(&format!("{at}{key}"), &json!({})).await;
        }
        // A member, an implicit one, one of the other dialect, and one that cannot be read.
        store.json(&format!("{at}a/{document}"), &group(dialect)).await;
        store.set(&format!("{at}a/notes.txt"), "x").await;
        store.json(&format!("{at}years/2020/{document}"), &group(dialect)).await;
        let (other, text) =
            if dialect == Dialect::V2 { ("zarr.json", v3_array(&[1])) } else { (".zarray", v2_array(&[1])) };
        store.json(&format!("{at}other/{other}"), &text).await;
        store.set(&format!("{at}broken/{document}"), "{").await;
    }
    for limit in [1, 2, 3, 100, MAX_MEMBERS] {
        assert_eq!(files(&store, "/n", limit).await, ["n/README.md", "n/a.csv", "n/figures/"], "{limit}");
        assert_eq!(files(&store, "/o", limit).await, ["o/README.md", "o/a.csv", "o/figures/"], "{limit}");
        assert_eq!(files(&store, "/", limit).await, ["README.md", "a.csv", "figures/"], "{limit}");
        assert_eq!(files(&store, "/n/a", limit).await, ["n/a/notes.txt"], "{limit}");
        assert_eq!(files(&store, "/n/years", limit).await, [""; 0], "{limit}");
    }
    store.json("t/zarr.json", &v3_array(&[1])).await;
    store.set("t/c/0", [1]).await;
    assert_eq!(files(&store, "/t", 10).await, [""; 0], "what is below an array belongs to it");
    let without = store.page("/n", 10, None).await.unwrap().node;
    assert_eq!(without.files, None);
}

#[tokio::test]
async fn cursor_is_valid_for_its_group_only() {
    let store = TestStore::new();
    for at in ["g", "h"] {
        for name in 0..5 {
            store.json(&format!("{at}/n{name}/zarr.json"), &group(Dialect::V3)).await;
        }
    }
    store.json("a/zarr.json", &v3_array(&[1])).await;
    let cursor = store.page("/g", 2, None).await.unwrap().next;
    assert!(cursor.is_some());
    assert!(store.page("/g", 3, cursor.clone()).await.is_ok());
    for (at, cursor) in
        [("/h", cursor.clone()), ("/", cursor.clone()), ("/a", cursor), ("/g", Some(Cursor::from_text("x")))]
    {
        let rejected = store.page(at, 2, cursor).await;
        assert!(matches!(rejected, Err(NodeError::Store(StoreError::InvalidCursor))), "{at} {rejected:?}");
    }
    assert!(store.page("/a", 2, None).await.unwrap().next.is_none());
}

#[tokio::test]
async fn page_cost_depends_on_its_size() {
    let (store, interference) = InterferingStore::create();
    let members = (0..3_000).map(|number| (format!("n{number:04}"), v3_group(&json!({})))).collect();
    store.declare("/up/g", &v3_group(&serde_json::Value::Object(members))).await.unwrap();
    // "up" is a member of the root, which is an implicit group.
    for (at, max) in [("/up/g", 10), ("/up", 2), ("/", 2)] {
        let mut cursor = None;
        for _ in 0..3 {
            let before = (interference.pages.load(Relaxed), interference.snapshot_keys.load(Relaxed));
            cursor = store.page(at, 10, cursor.take()).await.unwrap().next;
            let pages = interference.pages.load(Relaxed) - before.0;
            assert!(pages <= 4, "{pages} pages were listed for one of {at}");
            let snapshot_keys = interference.snapshot_keys.load(Relaxed) - before.1;
            assert!(snapshot_keys <= 4 * max + 30, "{snapshot_keys} keys were looked up for a page of {at}");
            if cursor.is_none() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn folders_without_documents_are_known_by_their_first_nodes() {
    let (store, interference) = InterferingStore::create();
    for folder in 0..20 {
        for array in 0..100 {
            store.json(&format!("f{folder:02}/a{array:02}/zarr.json"), &v3_array(&[1])).await;
            store.set(&format!("f{folder:02}/a{array:02}/c/0"), [1]).await;
        }
    }
    for paged in [false, true] {
        let before = (interference.keys.load(Relaxed), interference.snapshot_keys.load(Relaxed));
        let node = match paged {
            true => store.page("/", 100, None).await.unwrap().node.info,
            false => store.node("/", Depth::Levels(1)).await.unwrap(),
        };
        assert_eq!(node.zom.len(), 21);
        let scanned = interference.keys.load(Relaxed) - before.0;
        let stats = interference.snapshot_keys.load(Relaxed) - before.1;
        let expected = if paged { (384, 272) } else { (520, 195) };
        assert_eq!((scanned, stats), expected, "keys scanned and documents requested to know 20 folders");
    }
    // The preferred dialect counts, also if it is that of the last node only.
    for name in 0..40 {
        store.json(&format!("mixed/n{name:02}/.zarray"), &v2_array(&[1])).await;
    }
    assert_eq!(store.node("/mixed", Depth::Levels(1)).await.unwrap().dialect, Dialect::V2);
    store.json("mixed/z/zarr.json", &v3_array(&[1])).await;
    assert_eq!(store.node("/mixed", Depth::Levels(1)).await.unwrap().dialect, Dialect::V3);
    assert_eq!(store.page("/mixed", 100, None).await.unwrap().node.dialect, Dialect::V3);
    assert!(store.node("/", Depth::Levels(1)).await.unwrap().other_dialects.is_empty());
}

/// A key set while a page is read is on the page, or was set after it.
#[tokio::test]
async fn page_reflects_one_commit() {
    for busy in [false, true] {
        let (store, interference) = InterferingStore::create();
        interference.busy.store(busy, Relaxed);
        for name in 0..9 {
            store.json(&format!("g/n{name}/zarr.json"), &group(Dialect::V3)).await;
        }
        for page in 0..10 {
            interference.write_before_page(page, &format!("g/m{page}/zarr.json"), group(Dialect::V3));
            let names = store.pages("/g", 100).await.concat();
            if interference.has_pending_writes() {
                assert!(page > 0);
                break;
            }
            assert_eq!(names.len(), 9 + page + 1);
        }
    }
}
