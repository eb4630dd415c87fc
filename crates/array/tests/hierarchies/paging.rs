//! Members page by page.

use std::{collections::BTreeSet, sync::atomic::Ordering::Relaxed};

use array::{Depth, MAX_MEMBERS, MemberPage, Members, NodeError};
use meta::{Dialect, zom::Node};
use serde_json::json;
use store::{Cursor, StoreError};

use crate::{
    lab::{Lab, entry_point, path, v2_array, v3_array, v3_group},
    racing::Intruded,
};

impl Lab {
    async fn page(&self, at: &str, limit: usize, cursor: Option<Cursor>) -> Result<Members, NodeError> {
        self.nodes.members(&path(at), None, &MemberPage { limit, cursor }, None).await
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

    /// Fails unless the pages of each length have all members, each once, and as they are told at once.
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
        let lab = Lab::new();
        lab.json(&format!("g/{document}"), &group(dialect)).await;
        for name in ["a", "a-b", "a.b", "ab", "b", "ä", "z"] {
            lab.json(&format!("g/{name}/{document}"), &group(dialect)).await;
            // An implicit group, what is none, and what is not a member.
            lab.json(&format!("g/{name}-implicit/x/y/{document}"), &group(dialect)).await;
            lab.set(&format!("g/{name}-none/x/blob"), [1]).await;
            lab.set(&format!("g/{name}.blob"), [1]).await;
            lab.json(&format!("g/{name}/below/{document}"), &group(dialect)).await;
        }
        lab.assert_paged("/g").await;
        // So are those of implicit groups.
        lab.assert_paged("/").await;
        lab.assert_paged("/g/z-implicit").await;
    }
}

#[tokio::test]
async fn every_draft_member_is_on_exactly_one_page() {
    let lab = Lab::new();
    lab.json("d/zarr.json", &entry_point()).await;
    let group = json!({"extensions": [], "attributes": {}});
    for name in ["a", "a.b", "b", "c", "x"] {
        lab.json(&format!("d/meta/root/{name}.group.json"), &group).await;
        lab.json(&format!("d/meta/root/{name}/deep.group.json"), &group).await;
        lab.json(&format!("d/meta/root/implicit-{name}/deep.group.json"), &group).await;
        lab.set(&format!("d/meta/root/{name}.blob"), [1]).await;
    }
    lab.json("d/meta/root.group.json", &group).await;
    lab.assert_paged("/d").await;
    lab.assert_paged("/d/a.b").await;
    lab.assert_paged("/d/implicit-x").await;
    assert_eq!(lab.pages("/d", MAX_MEMBERS).await.concat().len(), 10);
}

#[tokio::test]
async fn members_of_other_dialects_are_listed_separately() {
    let lab = Lab::new();
    lab.json("g/zarr.json", &group(Dialect::V3)).await;
    for name in 0..10 {
        lab.json(&format!("g/new{name}/zarr.json"), &v3_array(&[1])).await;
        lab.json(&format!("g/old{name}/.zarray"), &v2_array(&[1])).await;
    }
    let (mut others, mut names, mut cursor) = (0, 0, None);
    loop {
        let Members { node, next } = lab.page("/g", 3, cursor).await.unwrap();
        assert!(node.zom.len() - 1 + node.other_dialects.len() <= 3);
        others += node.other_dialects.len();
        names += node.zom.len() - 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((others, names), (10, 10));
    let page = MemberPage { limit: 100, cursor: None };
    let mapped = lab.nodes.members(&path("/g"), None, &page, Some(Dialect::V3)).await.unwrap();
    assert_eq!((mapped.node.zom.len(), mapped.node.other_dialects.len()), (21, 0));
}

#[tokio::test]
async fn cursor_is_valid_for_its_group_only() {
    let lab = Lab::new();
    for at in ["g", "h"] {
        for name in 0..5 {
            lab.json(&format!("{at}/n{name}/zarr.json"), &group(Dialect::V3)).await;
        }
    }
    lab.json("a/zarr.json", &v3_array(&[1])).await;
    let cursor = lab.page("/g", 2, None).await.unwrap().next;
    assert!(cursor.is_some());
    assert!(lab.page("/g", 3, cursor.clone()).await.is_ok());
    for (at, cursor) in
        [("/h", cursor.clone()), ("/", cursor.clone()), ("/a", cursor), ("/g", Some(Cursor::from_text("x")))]
    {
        let refused = lab.page(at, 2, cursor).await;
        assert!(matches!(refused, Err(NodeError::Store(StoreError::InvalidCursor))), "{at} {refused:?}");
    }
    assert!(lab.page("/a", 2, None).await.unwrap().next.is_none());
}

#[tokio::test]
async fn page_cost_depends_on_its_size() {
    let (lab, store) = Intruded::lab();
    let members = (0..3_000).map(|number| (format!("n{number:04}"), v3_group(&json!({})))).collect();
    lab.declare("/up/g", &v3_group(&serde_json::Value::Object(members))).await.unwrap();
    // "up" is a group of the root, which is implicit.
    for (at, most) in [("/up/g", 10), ("/up", 2), ("/", 2)] {
        let mut cursor = None;
        for _ in 0..3 {
            let before = (store.pages.load(Relaxed), store.looked_up.load(Relaxed));
            cursor = lab.page(at, 10, cursor.take()).await.unwrap().next;
            let pages = store.pages.load(Relaxed) - before.0;
            assert!(pages <= 4, "{pages} pages were listed for one of {at}");
            let looked_up = store.looked_up.load(Relaxed) - before.1;
            assert!(looked_up <= 4 * most + 30, "{looked_up} keys were looked up for a page of {at}");
            if cursor.is_none() {
                break;
            }
        }
    }
}

/// What is set while a page is read is on it, or was set after it.
#[tokio::test]
async fn page_reflects_one_commit() {
    for busy in [false, true] {
        let (lab, store) = Intruded::lab();
        store.busy.store(busy, Relaxed);
        for name in 0..9 {
            lab.json(&format!("g/n{name}/zarr.json"), &group(Dialect::V3)).await;
        }
        for page in 0..10 {
            store.intrude_on_page(page, &format!("g/m{page}/zarr.json"), group(Dialect::V3));
            let names = lab.pages("/g", 100).await.concat();
            if store.is_intruding() {
                assert!(page > 0);
                break;
            }
            assert_eq!(names.len(), 9 + page + 1);
        }
    }
}
