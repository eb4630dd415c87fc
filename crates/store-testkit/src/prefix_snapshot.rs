//! Snapshots of everything below a prefix.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::{
    AttributeFields, Attributes, ByteRange, Change, ContentField, Entry, Intent, IntentId, ListedValue,
    MAX_LISTED_VALUE_BYTES, MAX_VALUE_PAGE_ENTRIES, PageRequest, Payload, Precondition, PrefixSnapshot, StoreError,
    TransactionalStore, list_all,
};

use super::{
    Storage,
    test_value::TestValue,
    tools::{dir_pages, get, key, key_pages, list_children, list_keys, prefix, put, put_names},
};

async fn snapshot(store: &impl TransactionalStore, below: &str) -> Arc<dyn PrefixSnapshot> {
    store.snapshot_below(&prefix(below)).await.expect("a snapshot of a prefix")
}

async fn entries(snapshot: &dyn PrefixSnapshot) -> Vec<Entry> {
    list_all(snapshot, &prefix("")).try_collect().await.expect("a listing of the snapshot")
}

async fn text(snapshot: &dyn PrefixSnapshot, at: &str) -> Option<String> {
    get(snapshot, at).await.map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
}

pub(super) async fn a_snapshot_of_a_prefix_stays_while_everything_changes(store: impl Storage + TransactionalStore) {
    let names = ["a/erased", "a/kept", "a/replaced", "a/swept/1", "a/swept/2"];
    put_names(&store, &names).await;
    let large = TestValue::new(7, 3 << 20);
    put(&store, "a/large", large.payload()).await;
    put_names(&store, &["a", "b/other"]).await;
    let snapshot = snapshot(&store, "a/").await;
    let before = entries(&*snapshot).await;
    assert_eq!(snapshot.len(), before.len() as u64);
    for round in 0..4 {
        put(&store, "a/replaced", format!("{round}")).await;
        put(&store, "a/large", format!("{round}")).await;
        put(&store, "a/new", "new").await;
        store.erase(&key("a/erased"), Precondition::none()).await.unwrap();
        store.erase_prefix(&prefix("a/swept/")).await.unwrap();
        if round == 2 {
            store.erase_prefix(&prefix("")).await.unwrap();
        }
        for name in names {
            assert_eq!(text(&*snapshot, name).await.as_deref(), Some(name), "round {round}");
        }
        large.assert_is(snapshot.get(&key("a/large"), None).await.unwrap().expect("the large value")).await;
        assert_eq!(text(&*snapshot, "a/new").await, None);
        assert_eq!(entries(&*snapshot).await, before, "round {round}");
    }
    for Entry { key, meta, .. } in &before {
        assert_eq!(snapshot.head(key).await.unwrap().as_ref(), Some(meta));
    }
    assert!(snapshot.is_valid());
    let part = snapshot.get(&key("a/kept"), Some(ByteRange::Last(4))).await.unwrap().unwrap();
    assert_eq!(part.bytes().await.unwrap(), "kept");
}

pub(super) async fn a_snapshot_of_a_prefix_lists_as_the_store_does(store: impl Storage + TransactionalStore) {
    put_names(&store, &["a/b", "a/b/c", "a/b/d", "a/b-c", "a/é/x", "a/z/1/2/3", "a/z/1/2/4", "a/z/9", "b"]).await;
    let many: Vec<String> = (0..300).map(|number| format!("a/many/{number:03}")).collect();
    put_names(&store, &many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let snapshot = snapshot(&store, "a/").await;
    for below in ["a/", "a/b/", "a/many/", "a/z/", "a/z/1/", "a/none/"] {
        for limit in [1, 2, 7, 64, 1000] {
            assert_eq!(
                key_pages(&*snapshot, below, limit).await,
                key_pages(&store, below, limit).await,
                "{below} {limit}"
            );
            let (found, expected) = (dir_pages(&*snapshot, below, limit).await, dir_pages(&store, below, limit).await);
            assert_eq!(found, expected, "{below} {limit}");
        }
    }
    let below: Vec<String> = list_keys(&store, "").await.into_iter().filter(|name| name.starts_with("a/")).collect();
    assert_eq!(list_keys(&*snapshot, "").await, below);
    assert_eq!(list_children(&*snapshot, "").await, ["a/"]);
    assert_eq!(list_keys(&*snapshot, "b/").await, Vec::<String>::new());
}

/// All keys of a snapshot below a prefix with their small values, read by pages.
async fn listed_values(snapshot: &dyn PrefixSnapshot, below: &str, limit: usize) -> Vec<ListedValue> {
    let (mut found, mut request) = (Vec::new(), Some(PageRequest::first(limit)));
    while let Some(page) = request.take() {
        let page = snapshot.list_values(&prefix(below), page).await.expect("a page with values");
        assert!(page.keys.len() <= limit.min(MAX_VALUE_PAGE_ENTRIES));
        found.extend(page.keys);
        request = page.cursor.map(|cursor| PageRequest::after(limit, cursor));
    }
    found
}

pub(super) async fn small_values_of_a_snapshot_come_with_its_listing(store: impl Storage + TransactionalStore) {
    let many: Vec<String> = (0..300).map(|number| format!("a/many/{number:03}")).collect();
    put_names(&store, &many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    put_names(&store, &["a/zarr.json", "b/other"]).await;
    put(&store, "a/nothing", "").await;
    for (name, size) in
        [("a/most", MAX_LISTED_VALUE_BYTES), ("a/more", MAX_LISTED_VALUE_BYTES + 1), ("a/much", 1 << 20)]
    {
        put(&store, name, TestValue::new(3, size).payload()).await;
    }
    let fields =
        AttributeFields { content: [(ContentField::Type, "text/csv".to_owned())].into(), ..Default::default() };
    let attributes = Attributes::new(fields).expect("attributes");
    let table = Payload { attributes: attributes.clone(), ..Payload::from(Bytes::from_static(b"1,2")) };
    store.set(&key("a/table"), table, Precondition::none()).await.unwrap();
    let snapshot = snapshot(&store, "a/").await;
    store.erase_prefix(&prefix("")).await.unwrap();
    for (below, limit) in [("", 1000), ("a/", 100), ("a/many/", 7), ("a/none/", 10)] {
        let listed = listed_values(&*snapshot, below, limit).await;
        let names: Vec<String> = listed.iter().map(|listed| listed.entry.key.to_string()).collect();
        assert_eq!(names, list_keys(&*snapshot, below).await, "{below}");
        for ListedValue { entry, value } in listed {
            let expected = snapshot.get(&entry.key, None).await.unwrap().expect("a value of the snapshot");
            assert_eq!((entry.meta.version, entry.meta.size), (expected.meta.version, expected.meta.size));
            assert_eq!(value.is_some(), entry.meta.size <= MAX_LISTED_VALUE_BYTES, "{}", entry.key);
            if let Some(value) = value {
                assert_eq!(entry.meta, expected.meta, "{}", entry.key);
                assert_eq!(value, expected.bytes().await.unwrap(), "{}", entry.key);
            }
        }
    }
    let pages = snapshot.list_values(&prefix("a/"), PageRequest::first(1000)).await.unwrap();
    assert_eq!(pages.keys.len(), MAX_VALUE_PAGE_ENTRIES);
    let plain = PageRequest::after(1000, pages.cursor.expect("another page"));
    let rest = snapshot.list_prefix(&prefix("a/"), plain).await.unwrap();
    assert_eq!(pages.keys.len() + rest.keys.len(), snapshot.len() as usize, "cursors are those of plain listings");
}

pub(super) async fn a_snapshot_of_a_prefix_has_only_its_keys(store: impl Storage + TransactionalStore) {
    put_names(&store, &["a", "a/b", "ab"]).await;
    let snapshot = snapshot(&store, "a/").await;
    assert_eq!(list_keys(&*snapshot, "").await, ["a/b"]);
    for outside in ["a", "ab", "b"] {
        let read = snapshot.get(&key(outside), None).await.map(drop);
        assert!(matches!(read, Err(StoreError::NotInSnapshot { .. })), "{outside}: {read:?}");
        let head = snapshot.head(&key(outside)).await;
        assert!(matches!(head, Err(StoreError::NotInSnapshot { .. })), "{outside}: {head:?}");
    }
    let range = snapshot.get(&key("a/b"), Some(ByteRange::From(5))).await.map(drop);
    assert!(matches!(range, Err(StoreError::RangeNotSatisfiable { .. })), "{range:?}");
    let empty = store.snapshot_below(&prefix("none/")).await.unwrap();
    assert!(empty.is_empty());
    assert_eq!(list_keys(&*empty, "").await, Vec::<String>::new());
}

/// The number of keys that each commit sets together.
const TOGETHER: usize = 12;

pub(super) async fn snapshots_of_prefixes_are_of_one_commit(store: impl Storage + TransactionalStore) {
    let filler: Vec<String> = (0..600).map(|number| format!("g/f/{number:03}")).collect();
    put_names(&store, &filler.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop) = (store.clone(), stop.clone());
        tokio::spawn(async move {
            let mut round = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                // Small and large values, and erases of all of them.
                let text = match round % 5 {
                    4 => None,
                    3 => Some(format!("{round}").repeat(3000)),
                    _ => Some(format!("{round}")),
                };
                let changes = (0..TOGETHER).map(|number| {
                    let key = key(&format!("g/{}/{number}", number % 3));
                    match &text {
                        Some(text) => {
                            Change::Put { key, value: text.clone().into(), precondition: Precondition::none() }
                        }
                        None => Change::Erase { key, precondition: Precondition::none() },
                    }
                });
                store.commit(changes.collect()).await.expect("a commit");
                round += 1;
            }
            round
        })
    };
    for _ in 0..25 {
        let snapshot = snapshot(&store, "g/").await;
        tokio::task::yield_now().await;
        let mut texts = Vec::new();
        for number in 0..TOGETHER {
            texts.push(text(&*snapshot, &format!("g/{}/{number}", number % 3)).await);
        }
        assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "a snapshot has values of several commits");
        let expected = 600 + if texts[0].is_some() { TOGETHER as u64 } else { 0 };
        assert_eq!(snapshot.len(), expected);
        assert_eq!(entries(&*snapshot).await.len() as u64, expected);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.expect("the writer") > 0);
}

pub(super) async fn a_snapshot_of_a_prefix_has_the_intents_of_its_commit(store: impl Storage + TransactionalStore) {
    let intent = Intent { id: IntentId::from_u128(7), record: Bytes::from_static(b"a shrink") };
    let add = Change::AddIntent { id: intent.id, record: intent.record.clone() };
    store.commit(vec![add]).await.unwrap();
    let with = snapshot(&store, "a/").await;
    store.commit(vec![Change::RemoveIntent { id: intent.id }]).await.unwrap();
    let without = snapshot(&store, "a/").await;
    assert_eq!((with.intents(), without.intents()), (&[intent][..], &[][..]));
    assert_ne!(with.watermark(), without.watermark());
}
