//! Listings in several pages.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::task::JoinSet;

use super::{
    Storage,
    tools::{assert_ascending, children, dir_pages, key, key_pages, list_children, list_keys, prefix, put, put_names},
};
use zarrd_store::{Cursor, DirPage, KeyCount, KeyPage, PageRequest, Precondition, StoreError};

pub(super) async fn pages_of_any_size_make_up_the_listing(store: impl Storage) {
    let names: Vec<_> = (0..23).map(|n| if n % 3 == 0 { format!("d/{n}/x/{n}") } else { format!("d/{n}") }).collect();
    put_names(&store, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    put_names(&store, &["d/9/y", "d-", "d", "d0", "c/z", "e"]).await;
    let (keys, direct) = (list_keys(&store, "d/").await, list_children(&store, "d/").await);
    assert_eq!((keys.len(), direct.len()), (24, 23));
    for limit in [1, 2, 3, 7, 22, 23, 24, 25, 10_000, 10_001, usize::MAX] {
        let pages = key_pages(&store, "d/", limit).await;
        let found: Vec<_> = pages.concat().iter().map(|entry| entry.key.to_string()).collect();
        assert_eq!(found, keys, "pages of {limit}");
        assert_eq!(pages.len(), keys.len().div_ceil(limit), "the last page of {limit} has no cursor, the others do");

        let pages = dir_pages(&store, "d/", limit).await;
        let found: Vec<_> = pages.iter().flat_map(children).collect();
        assert_eq!(found, direct, "pages of {limit}");
        assert_eq!(pages.len(), direct.len().div_ceil(limit), "the last page of {limit} has no cursor, the others do");
    }
}

pub(super) async fn a_limit_of_zero_means_one(store: impl Storage) {
    put_names(&store, &["a", "b/c"]).await;
    let page = store.list_prefix(&prefix(""), PageRequest::first(0)).await.unwrap();
    assert_eq!(page.keys.len(), 1);
    assert!(page.cursor.is_some());
    let page = store.list_dir(&prefix(""), PageRequest::first(0)).await.unwrap();
    assert_eq!(children(&page), ["a"]);
    let page = store.list_dir(&prefix(""), PageRequest::after(0, page.cursor.unwrap())).await.unwrap();
    assert_eq!((children(&page), page.cursor), (vec!["b/".to_owned()], None));
}

pub(super) async fn paging_continues_after_the_last_key_is_erased(store: impl Storage) {
    put_names(&store, &["d/a", "d/b", "d/c", "d/d"]).await;
    let keys = store.list_prefix(&prefix("d/"), PageRequest::first(2)).await.unwrap();
    let dir = store.list_dir(&prefix("d/"), PageRequest::first(2)).await.unwrap();
    for erased in ["d/a", "d/b"] {
        assert!(store.erase(&key(erased), Precondition::none()).await.unwrap());
    }
    put_names(&store, &["d/a", "d/aa", "d/bb"]).await;
    let KeyPage { keys, cursor, .. } =
        store.list_prefix(&prefix("d/"), PageRequest::after(10, keys.cursor.unwrap())).await.unwrap();
    assert_eq!(keys.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["d/bb", "d/c", "d/d"]);
    assert_eq!(cursor, None);
    let page = store.list_dir(&prefix("d/"), PageRequest::after(10, dir.cursor.unwrap())).await.unwrap();
    assert_eq!(children(&page), ["d/bb", "d/c", "d/d"]);
}

pub(super) async fn paging_continues_after_the_last_prefix_is_erased(store: impl Storage) {
    put_names(&store, &["d/a/x", "d/b/x", "d/b/y", "d/c/x"]).await;
    let dir = store.list_dir(&prefix("d/"), PageRequest::first(2)).await.unwrap();
    let keys = store.list_prefix(&prefix("d/"), PageRequest::first(2)).await.unwrap();
    assert_eq!(store.erase_prefix(&prefix("d/b/")).await.unwrap(), KeyCount::exact(2));
    put_names(&store, &["d/b", "d/b-", "d/b0"]).await;
    let page = store.list_dir(&prefix("d/"), PageRequest::after(10, dir.cursor.unwrap())).await.unwrap();
    assert_eq!(children(&page), ["d/b0", "d/c/"]);
    let page = store.list_prefix(&prefix("d/"), PageRequest::after(10, keys.cursor.unwrap())).await.unwrap();
    assert_eq!(page.keys.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["d/b0", "d/c/x"]);
    // With everything erased, the listing ends.
    let dir = store.list_dir(&prefix("d/"), PageRequest::first(1)).await.unwrap();
    store.erase_prefix(&prefix("")).await.unwrap();
    let page = store.list_dir(&prefix("d/"), PageRequest::after(10, dir.cursor.unwrap())).await.unwrap();
    assert_eq!(page, DirPage { keys: vec![], prefixes: vec![], cursor: None });
}

/// Asserts that both listings of the prefix reject the cursor.
async fn assert_rejected(store: &impl Storage, below: &str, cursor: &str) {
    let page = || PageRequest::after(10, Cursor::from_text(cursor));
    assert_fails!(store.list_prefix(&prefix(below), page()).await, StoreError::InvalidCursor);
    assert_fails!(store.list_dir(&prefix(below), page()).await, StoreError::InvalidCursor);
}

pub(super) async fn forged_cursors_are_rejected(store: impl Storage) {
    put_names(&store, &["d/a", "d/b", "d/c"]).await;
    let long = "A".repeat(2_000);
    let garbage = ["", "d/a", "0", "AAAA", "AAAAAAAAAAA", "AAAAAAAAAAAAAAAA", "../..", "ä=&%2F#?", " ", "null", &long];
    for text in garbage {
        assert_rejected(&store, "d/", text).await;
        assert_rejected(&store, "none/", text).await;
    }
    // A cursor with any character changed is rejected, unless it decodes to the same bytes.
    let keys = store.list_prefix(&prefix("d/"), PageRequest::first(1)).await.unwrap();
    let cursor = keys.cursor.unwrap();
    let next = store.list_prefix(&prefix("d/"), PageRequest::after(1, cursor.clone())).await.unwrap();
    for at in 0..cursor.as_str().len() {
        let mut text = cursor.as_str().to_owned();
        let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        text.replace_range(at..=at, other);
        match store.list_prefix(&prefix("d/"), PageRequest::after(1, Cursor::from_text(text))).await {
            Ok(page) => assert_eq!(page, next),
            Err(error) => assert!(matches!(error, StoreError::InvalidCursor), "{error:?}"),
        }
    }
    let mut shortened = cursor.as_str().to_owned();
    while shortened.pop().is_some() {
        assert_rejected(&store, "d/", &shortened).await;
    }
}

pub(super) async fn cursors_of_other_listings_are_rejected(store: impl Storage) {
    put_names(&store, &["d/a", "d/b", "d/e/a", "d/e/b", "f/a", "f/b"]).await;
    let keys = store.list_prefix(&prefix("d/"), PageRequest::first(1)).await.unwrap().cursor.unwrap();
    let dir = store.list_dir(&prefix("d/"), PageRequest::first(1)).await.unwrap().cursor.unwrap();
    for other in ["", "d/e/", "f/", "none/"] {
        assert_rejected(&store, other, keys.as_str()).await;
        assert_rejected(&store, other, dir.as_str()).await;
    }
    let result = store.list_dir(&prefix("d/"), PageRequest::after(1, keys)).await;
    assert_fails!(result, StoreError::InvalidCursor);
    let result = store.list_prefix(&prefix("d/"), PageRequest::after(1, dir)).await;
    assert_fails!(result, StoreError::InvalidCursor);
}

pub(super) async fn cursors_of_another_store_are_rejected(store: impl Storage, other: impl Storage) {
    put_names(&store, &["a", "b"]).await;
    put_names(&other, &["a", "b"]).await;
    let keys = other.list(PageRequest::first(1)).await.unwrap().cursor.unwrap();
    let dir = other.list_dir(&prefix(""), PageRequest::first(1)).await.unwrap().cursor.unwrap();
    assert_rejected(&store, "", keys.as_str()).await;
    assert_rejected(&store, "", dir.as_str()).await;
}

/// The number of keys, or prefixes, that exist throughout while others are set and erased.
const STABLE: usize = 60;

/// Runs `pager` repeatedly while writers set, replace and erase the keys that `busy` returns.
async fn while_writers_run<S: Storage>(store: S, busy: fn(usize) -> Vec<String>, pager: impl AsyncFn(S, usize)) {
    let (stop, changes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for writer in 0..3 {
        let (store, stop, changes) = (store.clone(), stop.clone(), changes.clone());
        writers.spawn(async move {
            for step in (writer..).step_by(3).take_while(|_| !stop.load(Ordering::Relaxed)) {
                // Visit all numbers in an unsorted order.
                for name in busy(step * 37 % STABLE) {
                    put(&store, &name, "busy").await;
                    put(&store, &name, "busier").await;
                    if step % 2 == 0 {
                        store.erase(&key(&name), Precondition::none()).await.expect("erase");
                    }
                    changes.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    for round in 0.. {
        pager(store.clone(), [1, 3, 7, 50, 1_000][round % 5]).await;
        if round >= 10 && changes.load(Ordering::Relaxed) >= 50 {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer");
    }
}

fn assert_holds(found: &[String], stable: &BTreeSet<String>, limit: usize) {
    assert_ascending(found);
    let found: BTreeSet<_> = found.iter().cloned().collect();
    let lost: Vec<_> = stable.difference(&found).collect();
    assert!(lost.is_empty(), "pages of {limit} lost {lost:?}");
}

pub(super) async fn key_pages_are_consistent_while_writers_run(store: impl Storage) {
    let stable: BTreeSet<_> = (0..STABLE).map(|number| format!("d/{number:03}")).collect();
    for name in &stable {
        put(&store, name, "stable").await;
    }
    let busy = |number| vec![format!("d/{number:03}-"), format!("d/{number:03}/a"), format!("c/{number}")];
    while_writers_run(store, busy, async |store, limit| {
        let pages = key_pages(&store, "d/", limit).await.concat();
        let found: Vec<_> = pages.iter().map(|entry| entry.key.to_string()).collect();
        assert_holds(&found, &stable, limit);
    })
    .await;
}

pub(super) async fn dir_pages_are_consistent_while_writers_run(store: impl Storage) {
    let stable: BTreeSet<_> = (0..STABLE).map(|number| format!("d/{number:03}/")).collect();
    for name in &stable {
        put(&store, &format!("{name}stable"), "stable").await;
    }
    let busy = |number| vec![format!("d/{number:03}"), format!("d/{number:03}/busy"), format!("d/{number:03}0/busy")];
    while_writers_run(store, busy, async |store, limit| {
        let found: Vec<_> = dir_pages(&store, "d/", limit).await.iter().flat_map(children).collect();
        assert_holds(&found, &stable, limit);
    })
    .await;
}
