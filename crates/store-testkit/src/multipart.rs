//! Uploads of values in parts.

use std::time::Duration;

use super::{
    Factory, FaultInjection, Reopen, Storage,
    attributes::attributes,
    test_value::{TestValue, broken_payload},
    tools::{assert_absent, get, key, list_keys, put},
    transaction::erase_prefix,
};
use zarrd_store::{
    Attributes, Checksum, ChecksumAlgorithm, ChecksumKind, Completion, Fold, MAX_PARTS, MAX_UPLOAD_NOTE_LEN, NewUpload,
    Part, Precondition, Prefix, PutResult, ReadableStore, Scan, StoreError, TransactionalStore, UploadError, UploadId,
    UploadState, UploadStore, UploadsAfter, UploadsError, Version,
};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

fn new_upload(owner: &str) -> NewUpload {
    NewUpload { attributes: attributes(3), owner: owner.to_owned(), note: "crc32".to_owned() }
}

async fn begin(store: &impl TransactionalStore, at: &str) -> UploadId {
    store.begin_upload(&key(at), &new_upload("alice")).await.unwrap()
}

/// Uploads a part whose content has its number as seed.
async fn add(store: &impl TransactionalStore, at: &str, id: UploadId, number: u32, size: u64) -> Part {
    let payload = TestValue::new(number.into(), size).payload();
    let staged = store.stage_part(&key(at), id, number, payload).await.unwrap();
    store.put_part(staged, None).await.unwrap()
}

fn named(parts: &[Part]) -> Vec<(u32, Version)> {
    parts.iter().map(|part| (part.number, part.version)).collect()
}

async fn complete(store: &impl TransactionalStore, at: &str, id: UploadId, parts: &[Part]) -> PutResult {
    let completion = Completion { parts: &named(parts), ..Completion::default() };
    store.complete_upload(&key(at), id, &completion).await.unwrap()
}

/// The parts' bytes, one after the other.
fn joined(parts: &[Part]) -> Vec<u8> {
    parts.iter().flat_map(|part| TestValue::new(part.number.into(), part.size).bytes().to_vec()).collect()
}

async fn assert_ended(store: &impl TransactionalStore, at: &str, id: UploadId) {
    let (at, not_found) = (key(at), |error| matches!(error, UploadsError::NotFound { .. }));
    assert!(store.upload_parts(&at, id, 0, 10).await.is_err_and(not_found));
    assert!(store.stage_part(&at, id, 1, "x".into()).await.is_err_and(not_found));
    assert!(store.abort_upload(&at, id).await.is_err_and(not_found));
    let listed = store.uploads("", UploadsAfter::Nothing, 1000).await.unwrap().uploads;
    assert!(listed.iter().all(|upload| upload.id != id));
}

pub(super) async fn parts_become_one_value(store: impl Storage + TransactionalStore) {
    let small = [(1, 200_000), (2, 0), (9, 5_000_000), (10_000, 3)];
    // A store may join what is large, and copy the rest.
    let large = [(1, 9 << 20), (2, (8 << 20) + 1), (9, 5_000_000), (10_000, 3)];
    let mut before = put(&store, "a/b", "old").await;
    let mut value = b"old".to_vec();
    for sizes in [small, large, small] {
        let id = begin(&store, "a/b").await;
        let mut parts = Vec::new();
        for (number, size) in sizes {
            parts.push(add(&store, "a/b", id, number, size).await);
        }
        assert!(get(&store, "a/b").await.unwrap() == value);
        let checksum = Checksum::new(ChecksumAlgorithm::Crc32, ChecksumKind::FullObject, &[1, 2, 3, 4]).unwrap();
        let (named, precondition) = (named(&parts), Precondition::at(before));
        let completion = Completion { parts: &named, precondition, checksum: Some(checksum) };
        let written = store.complete_upload(&key("a/b"), id, &completion).await.unwrap();
        let meta = store.head(&key("a/b")).await.unwrap().unwrap();
        assert_eq!((written.version, written.replaced), (meta.version, true));
        assert_eq!(meta.attributes, attributes(3).with_checksum(Some(checksum)));
        (before, value) = (meta.version, joined(&parts));
        assert!(get(&store, "a/b").await.unwrap() == value, "the value is not that of its parts");
        assert_ended(&store, "a/b", id).await;
    }
}

pub(super) async fn some_of_the_parts_may_be_named(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let mut parts = Vec::new();
    for number in 1..=5 {
        parts.push(add(&store, "a", id, number, 1000).await);
    }
    parts.retain(|part| part.number % 2 == 0);
    complete(&store, "a", id, &parts).await;
    assert!(get(&store, "a").await.unwrap() == joined(&parts));
    assert_ended(&store, "a", id).await;
}

pub(super) async fn uploads_are_hidden(store: impl Storage + TransactionalStore) {
    let watched = put(&store, "a", "x").await;
    let id = begin(&store, "b/c").await;
    add(&store, "b/c", id, 1, 100_000).await;
    assert_eq!(list_keys(&store, "").await, ["a"]);
    for text in ["", "\u{3}", "\u{3}uploads/", "\u{3}parts/", "b"] {
        for fold in [Fold::Nothing, Fold::Slash] {
            let page = store.scan(&Scan::new(text, "", fold, 10)).await.unwrap();
            let found: Vec<_> = page.entries.iter().map(|entry| entry.as_str()).collect();
            assert_eq!(found, if text.is_empty() { &["a"][..] } else { &[] }, "{text:?}");
        }
    }
    // Several stores as one have no snapshot of all of them.
    if let Ok(snapshot) = store.snapshot_below(&Prefix::root()).await {
        assert_eq!((snapshot.len(), list_keys(&*snapshot, "").await), (1, vec!["a".to_owned()]));
    }
    assert_absent(&store, "b/c").await;
    // The root does not contain them: neither counting nor erasing it concerns uploads.
    let empty = zarrd_store::Change::CheckEmpty { prefix: Prefix::root() };
    assert!(
        matches!(store.commit(vec![empty.clone()]).await, Err(StoreError::NotEmpty { key, .. }) if key.as_str() == "a")
    );
    assert_eq!(store.erase_prefix(&Prefix::root()).await.unwrap().count, 1);
    assert_eq!(store.head(&key("a")).await.unwrap().map(|meta| meta.version), None, "{watched:?}");
    store.commit(vec![empty]).await.unwrap();
    store.commit(vec![erase_prefix("")]).await.unwrap();
    let parts = store.upload_parts(&key("b/c"), id, 0, 10).await.unwrap().parts;
    complete(&store, "b/c", id, &parts).await;
    assert!(get(&store, "b/c").await.unwrap() == joined(&parts));
}

pub(super) async fn parts_are_listed_and_replaced(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let other = begin(&store, "a").await;
    let sum = Checksum::new(ChecksumAlgorithm::Sha1, ChecksumKind::FullObject, &[5; 20]).unwrap();
    let mut expected = Vec::new();
    for number in [3, 1, 20, 10_000] {
        let payload = TestValue::new(number.into(), u64::from(number)).payload().with_attributes(attributes(1));
        let staged = store.stage_part(&key("a"), id, number, payload).await.unwrap();
        let part = store.put_part(staged, Some(sum)).await.unwrap();
        assert_eq!((part.number, part.size, part.checksum), (number, u64::from(number), Some(sum)));
        expected.push((number, part.version));
    }
    let replaced = add(&store, "a", id, 3, 50).await;
    assert_ne!(expected[0].1, replaced.version);
    expected[0].1 = replaced.version;
    expected.sort_unstable_by_key(|(number, _)| *number);
    let listed = store.upload_parts(&key("a"), id, 0, 1000).await.unwrap();
    assert!(!listed.more && named(&listed.parts) == expected);
    assert_eq!(
        listed.parts.iter().map(|part| part.checksum).collect::<Vec<_>>(),
        [Some(sum), None, Some(sum), Some(sum)]
    );
    let page = store.upload_parts(&key("a"), id, 1, 2).await.unwrap();
    assert!(page.more && named(&page.parts) == expected[1..3]);
    let page = store.upload_parts(&key("a"), id, 20, 2).await.unwrap();
    assert!(!page.more && named(&page.parts) == expected[3..]);
    assert!(store.upload_parts(&key("a"), id, 10_000, 2).await.unwrap().parts.is_empty());
    assert!(store.upload_parts(&key("a"), other, 0, 10).await.unwrap().parts.is_empty());
}

pub(super) async fn uploads_are_listed_by_key(store: impl Storage + TransactionalStore) {
    let mut expected = Vec::new();
    let long = "k".repeat(1024);
    for at in ["a", "a", "a!", "a/b", "a/b/c", "ab", &long, "ä"] {
        expected.push((at.to_owned(), begin(&store, at).await));
    }
    expected.sort();
    let all = store.uploads("", UploadsAfter::Nothing, 1000).await.unwrap();
    let names = |page: &[zarrd_store::Upload]| {
        page.iter().map(|upload| (upload.key.to_string(), upload.id)).collect::<Vec<_>>()
    };
    assert!(!all.more && names(&all.uploads) == expected);
    for upload in &all.uploads {
        let found = (upload.owner.as_str(), upload.note.as_str(), upload.state);
        assert_eq!(found, ("alice", "crc32", UploadState::Begun));
        assert_eq!(upload.attributes, attributes(3).with_checksum(None));
        assert_eq!(&store.upload(&upload.key, upload.id).await.unwrap(), upload);
    }
    for (prefix, count) in [("a", 6), ("a/", 2), ("a/b", 2), ("k", 1), ("x", 0), ("//", 0), ("ä", 1)] {
        assert_eq!(store.uploads(prefix, UploadsAfter::Nothing, 1000).await.unwrap().uploads.len(), count, "{prefix}");
    }
    let page = store.uploads("", UploadsAfter::Key("a"), 2).await.unwrap();
    assert!(page.more && names(&page.uploads) == expected[2..4]);
    let page = store.uploads("", UploadsAfter::Upload("a", expected[0].1), 1).await.unwrap();
    assert_eq!(names(&page.uploads), expected[1..2]);
    // What follows the keys below a prefix may be its upper bound itself.
    let id = begin(&store, "a0").await;
    let page = store.uploads("", UploadsAfter::Below(&Prefix::parse("a/").unwrap()), 1).await.unwrap();
    assert_eq!(names(&page.uploads), [("a0".to_owned(), id)]);
    let page = store.uploads("", UploadsAfter::Below(&Prefix::root()), 1).await.unwrap();
    assert!(page.uploads.is_empty() && !page.more);
}

pub(super) async fn wrong_parts_are_rejected(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let (one, two) = (add(&store, "a", id, 1, 10).await, add(&store, "a", id, 2, 10).await);
    let replaced = add(&store, "a", id, 2, 20).await;
    let absent = (3, one.version);
    let at = |part: &Part| (part.number, part.version);
    for (parts, expected) in [
        (vec![], "NoParts"),
        (vec![at(&replaced), at(&one)], "PartOrder"),
        (vec![at(&one), at(&one)], "PartOrder"),
        (vec![at(&one), at(&two)], "InvalidPart { number: 2 }"),
        (vec![at(&one), at(&replaced), absent], "InvalidPart { number: 3 }"),
        (vec![(0, one.version)], "PartNumber { number: 0 }"),
        (vec![(MAX_PARTS + 1, one.version)], "PartNumber { number: 10001 }"),
    ] {
        let completion = Completion { parts: &parts, ..Completion::default() };
        let error = store.complete_upload(&key("a"), id, &completion).await.unwrap_err();
        assert_eq!(format!("{error:?}"), expected);
    }
    for number in [0, MAX_PARTS + 1] {
        let error = store.stage_part(&key("a"), id, number, "x".into()).await.unwrap_err();
        assert!(matches!(error, UploadsError::PartNumber { .. }));
    }
    let owner = "o".repeat(MAX_UPLOAD_NOTE_LEN + 1);
    assert!(matches!(store.begin_upload(&key("a"), &new_upload(&owner)).await, Err(UploadsError::NoteTooLong)));
    assert_absent(&store, "a").await;
    complete(&store, "a", id, &[one, replaced]).await;
}

pub(super) async fn an_upload_is_of_one_key(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let part = add(&store, "a", id, 1, 10).await;
    assert_ended(&store, "b", "0123456789abcdef0123456789abcdef".parse().unwrap()).await;
    let completion = Completion { parts: &named(&[part]), ..Completion::default() };
    let not_found = |error| matches!(error, UploadsError::NotFound { .. });
    assert!(store.complete_upload(&key("b"), id, &completion).await.is_err_and(not_found));
    assert!(store.upload(&key("b"), id).await.is_err_and(not_found));
    assert!(store.abort_upload(&key("b"), id).await.is_err_and(not_found));
    store.complete_upload(&key("a"), id, &completion).await.unwrap();
}

pub(super) async fn an_aborted_upload_leaves_nothing(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    add(&store, "a", id, 1, 200_000).await;
    let late = store.stage_part(&key("a"), id, 2, TestValue::new(2, 200_000).payload()).await.unwrap();
    store.abort_upload(&key("a"), id).await.unwrap();
    assert!(store.put_part(late, None).await.is_err_and(|error| matches!(error, UploadsError::NotFound { .. })));
    assert_ended(&store, "a", id).await;
    assert!(store.upload(&key("a"), id).await.is_err());
    assert_absent(&store, "a").await;
}

pub(super) async fn a_failed_condition_leaves_the_upload(store: impl Storage + TransactionalStore) {
    let old = put(&store, "a", "old").await;
    let id = begin(&store, "a").await;
    let parts = named(&[add(&store, "a", id, 1, 10).await]);
    let new = put(&store, "a", "new").await;
    for precondition in [Precondition::absent(), Precondition::at(old)] {
        let completion = Completion { parts: &parts, precondition, checksum: None };
        let failed = store.complete_upload(&key("a"), id, &completion).await;
        let Err(UploadsError::Store(StoreError::PreconditionFailed { key, current })) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!((key.as_str(), current), ("a", Some(new)));
    }
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"new"[..]));
    let completion = Completion { parts: &parts, precondition: Precondition::at(new), checksum: None };
    store.complete_upload(&key("a"), id, &completion).await.unwrap();
}

pub(super) async fn a_part_that_fails_leaves_the_one_before(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let before = add(&store, "a", id, 1, 100).await;
    let broken = broken_payload(TestValue::new(2, 300_000), 5, UploadError::TimedOut.into());
    assert!(store.stage_part(&key("a"), id, 1, broken).await.is_err());
    // Staged, and never put.
    drop(store.stage_part(&key("a"), id, 1, TestValue::new(3, 300_000).payload()).await.unwrap());
    let parts = store.upload_parts(&key("a"), id, 0, 10).await.unwrap().parts;
    assert_eq!(named(&parts), named(&[before]));
    complete(&store, "a", id, &parts).await;
    assert!(get(&store, "a").await.unwrap() == joined(&parts));
}

pub(super) async fn completing_can_be_repeated(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let parts = vec![add(&store, "a", id, 1, 10).await, add(&store, "a", id, 2, 10).await];
    let completion = |precondition| Completion { parts: &[], precondition, checksum: None };
    let named = named(&parts);
    let create = Completion { parts: &named, ..completion(Precondition::absent()) };
    let first = store.complete_upload(&key("a"), id, &create).await.unwrap();
    for _ in 0..2 {
        let again = store.complete_upload(&key("a"), id, &create).await.unwrap();
        assert_eq!(again.version, first.version);
    }
    let other = Completion { parts: &named[..1], ..completion(Precondition::none()) };
    let failed = store.complete_upload(&key("a"), id, &other).await;
    assert!(matches!(failed, Err(UploadsError::NotFound { .. })));
    let upload = store.upload(&key("a"), id).await.unwrap();
    assert_eq!((upload.state, upload.owner.as_str()), (UploadState::Completed, "alice"));
    // A repetition changes nothing, whatever became of the value.
    let later = put(&store, "a", "later").await;
    assert_eq!(store.complete_upload(&key("a"), id, &create).await.unwrap().version, first.version);
    assert_eq!(store.head(&key("a")).await.unwrap().unwrap().version, later);
}

pub(super) async fn of_two_completions_one_is_a_repetition(store: impl Storage + TransactionalStore) {
    for round in 0..8 {
        let at = format!("a/{round}");
        let id = begin(&store, &at).await;
        let parts = vec![add(&store, &at, id, 1, 100_000).await, add(&store, &at, id, 2, 100_000).await];
        let completions = (0..4).map(|_| {
            let (store, at, named) = (store.clone(), key(&at), named(&parts));
            tokio::spawn(async move {
                let completion = Completion { parts: &named, precondition: Precondition::absent(), checksum: None };
                store.complete_upload(&at, id, &completion).await.map(|result| result.version)
            })
        });
        let mut versions = Vec::new();
        for completion in completions.collect::<Vec<_>>() {
            versions.push(completion.await.unwrap().unwrap());
        }
        let current = store.head(&key(&at)).await.unwrap().unwrap().version;
        assert!(versions.iter().all(|version| *version == current), "{versions:?} {current:?}");
        assert!(get(&store, &at).await.unwrap() == joined(&parts));
    }
}

pub(super) async fn completing_and_aborting_exclude_each_other(store: impl Storage + TransactionalStore) {
    for round in 0..8 {
        let at = format!("a/{round}");
        let id = begin(&store, &at).await;
        let parts = vec![add(&store, &at, id, 1, 100_000).await];
        let completing = tokio::spawn({
            let (store, at, named) = (store.clone(), key(&at), named(&parts));
            async move {
                let completion = Completion { parts: &named, ..Completion::default() };
                store.complete_upload(&at, id, &completion).await.is_ok()
            }
        });
        let aborted = store.abort_upload(&key(&at), id).await.is_ok();
        let completed = completing.await.unwrap();
        assert!(aborted != completed, "aborted: {aborted}, completed: {completed}");
        assert_eq!(get(&store, &at).await.is_some(), completed);
        assert_ended(&store, &at, id).await;
    }
}

pub(super) async fn abandoned_uploads_are_swept(store: impl Storage + TransactionalStore) {
    let id = begin(&store, "a").await;
    let completed = begin(&store, "b").await;
    add(&store, "a", id, 1, 200_000).await;
    let part = add(&store, "b", completed, 1, 10).await;
    complete(&store, "b", completed, &[part]).await;
    assert_eq!(store.sweep_uploads(WEEK).await.unwrap(), 0);
    assert_eq!(store.upload_parts(&key("a"), id, 0, 10).await.unwrap().parts.len(), 1);
    assert_eq!(store.sweep_uploads(Duration::ZERO).await.unwrap(), 1);
    assert_ended(&store, "a", id).await;
    assert_eq!(store.upload(&key("b"), completed).await.unwrap().state, UploadState::Completed);
    assert_eq!(store.upload(&key("b"), completed).await.unwrap().attributes, Attributes::NONE);
    assert_eq!(list_keys(&store, "").await, ["b"]);
}

pub(super) async fn uploads_persist_between_all_steps<F: Reopen<Store: TransactionalStore>>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    macro_rules! reopen {
        () => {
            (store, fixture) = factory.reopen(store, fixture).await
        };
    }
    let id = begin(&store, "a/b").await;
    reopen!();
    let mut parts = Vec::new();
    for (number, size) in [(1, 200_000), (2, 100), (3, 0), (4, 5_000)] {
        parts.push(add(&store, "a/b", id, number, size).await);
        reopen!();
        assert_eq!(named(&store.upload_parts(&key("a/b"), id, 0, 10).await.unwrap().parts), named(&parts));
        assert_eq!(list_keys(&store, "").await.len(), 0);
    }
    assert_eq!(store.upload(&key("a/b"), id).await.unwrap().owner, "alice");
    let aborted = begin(&store, "c").await;
    add(&store, "c", aborted, 1, 200_000).await;
    reopen!();
    store.abort_upload(&key("c"), aborted).await.unwrap();
    reopen!();
    assert_ended(&store, "c", aborted).await;
    let written = complete(&store, "a/b", id, &parts).await;
    for _ in 0..2 {
        reopen!();
        assert_ended(&store, "a/b", id).await;
        assert!(get(&store, "a/b").await.unwrap() == joined(&parts));
        assert_eq!(complete(&store, "a/b", id, &parts).await.version, written.version);
        assert_eq!(store.head(&key("a/b")).await.unwrap().unwrap().version, written.version);
        assert_eq!(list_keys(&store, "").await, ["a/b"]);
    }
    drop((store, fixture));
}

/// Lets the syncs of a completion fail, and completes the upload after that.
pub(super) async fn a_failed_completion_is_whole_or_absent<F>(factory: &F)
where
    F: FaultInjection + Factory<Store: TransactionalStore>,
{
    let (store, fixture) = factory.create().await;
    let id = begin(&store, "a").await;
    let parts = vec![add(&store, "a", id, 1, 200_000).await, add(&store, "a", id, 2, 10).await];
    factory.fail_syncs(&fixture);
    let named = named(&parts);
    let completion = Completion { parts: &named, ..Completion::default() };
    assert!(store.complete_upload(&key("a"), id, &completion).await.is_err());
    assert_absent(&store, "a").await;
    let (store, fixture) = factory.reopen(store, fixture).await;
    // The disk may have the commit or not, but not a part of it.
    let is_whole = store.upload(&key("a"), id).await.unwrap().state == UploadState::Completed;
    assert_eq!(get(&store, "a").await.is_some(), is_whole);
    let written = store.complete_upload(&key("a"), id, &completion).await.unwrap();
    assert_eq!(store.head(&key("a")).await.unwrap().unwrap().version, written.version);
    assert!(get(&store, "a").await.unwrap() == joined(&parts));
    assert_ended(&store, "a", id).await;
    drop((store, fixture));
}
