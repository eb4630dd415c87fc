//! Attributes of values.

use std::collections::BTreeMap;

use super::{
    Reopen, Storage,
    test_value::TestValue,
    tools::{SIZES, assert_has, key, put},
};
use zarrd_store::{
    AttributeFields, Attributes, BatchStore, Change, Checksum, ChecksumAlgorithm, ChecksumKind, ContentField,
    MAX_METADATA_FIELDS, MAX_METADATA_LEN, Payload, Precondition, ReadableStore, TransactionalStore, WriteableStore,
};

/// Attributes with every field, of which some depend on a number.
pub(super) fn attributes(number: usize) -> Attributes {
    let algorithm = ChecksumAlgorithm::ALL[number % 5];
    let kind = match number % 2 {
        0 => ChecksumKind::FullObject,
        _ => ChecksumKind::Composite { parts: 7 },
    };
    let bytes: Vec<u8> = (0..).take(algorithm.bytes()).collect();
    let metadata = BTreeMap::from([("number".to_owned(), number.to_string()), ("name".to_owned(), "ä".to_owned())]);
    let fields = AttributeFields {
        content: ContentField::ALL.map(|field| (field, format!("{field}; number={number}"))).into(),
        metadata,
        checksum: Some(Checksum::new(algorithm, kind, &bytes).unwrap()),
    };
    Attributes::new(fields).unwrap()
}

async fn set_with(store: &impl WriteableStore, at: &str, payload: Payload, attributes: &Attributes) {
    store.set(&key(at), payload.with_attributes(attributes.clone()), Precondition::none()).await.unwrap();
}

async fn assert_attributes(store: &impl ReadableStore, at: &str, expected: &Attributes) {
    assert_eq!(&store.head(&key(at)).await.unwrap().unwrap().attributes, expected, "{at}");
    assert_eq!(&store.get(&key(at), None).await.unwrap().unwrap().meta.attributes, expected, "{at}");
}

pub(super) async fn values_of_every_size_keep_their_attributes(store: impl Storage) {
    for (number, size) in (0..).zip(SIZES) {
        let (at, value) = (format!("a/{size}"), TestValue::new(number, size));
        set_with(&store, &at, value.payload(), &attributes(size as usize)).await;
        assert_attributes(&store, &at, &attributes(size as usize)).await;
        assert_has(&store, &at, value).await;
    }
    put(&store, "plain", "x").await;
    assert_attributes(&store, "plain", &Attributes::NONE).await;
}

pub(super) async fn the_largest_attributes_are_returned(store: impl Storage) {
    let len = MAX_METADATA_LEN / MAX_METADATA_FIELDS - 3;
    let metadata = (0..MAX_METADATA_FIELDS).map(|number| (format!("{number:03}"), "x".repeat(len))).collect();
    let fields = AttributeFields { metadata, ..attributes(4).fields() };
    let largest = Attributes::new(fields).unwrap();
    set_with(&store, "a", Payload::from_bytes("x"), &largest).await;
    assert_attributes(&store, "a", &largest).await;
}

pub(super) async fn a_set_replaces_attributes(store: impl Storage) {
    let before = put(&store, "a", "x").await;
    for number in [1, 2] {
        set_with(&store, "a", Payload::from_bytes("x"), &attributes(number)).await;
        assert_attributes(&store, "a", &attributes(number)).await;
    }
    assert_ne!(put(&store, "a", "x").await, before);
    assert_attributes(&store, "a", &Attributes::NONE).await;
}

pub(super) async fn commits_set_attributes(store: impl Storage + TransactionalStore) {
    // Few and many changes, which stores may write differently.
    for count in [2, 700] {
        let mut changes = Vec::new();
        for number in 0..count {
            let payload = TestValue::new(number as u64, if number % 100 == 1 { 20_000 } else { 20 }).payload();
            let staged = store.stage(&key(&format!("{count}/{number}")), payload).await.unwrap();
            // Known once all bytes have arrived.
            let staged = if number % 3 == 0 { staged } else { staged.with_attributes(attributes(number)) };
            changes.push(Change::Set { staged, precondition: Precondition::absent() });
        }
        store.commit(changes).await.unwrap();
        for number in 0..count {
            let expected = if number % 3 == 0 { Attributes::NONE } else { attributes(number) };
            assert_attributes(&store, &format!("{count}/{number}"), &expected).await;
            let size = if number % 100 == 1 { 20_000 } else { 20 };
            assert_has(&store, &format!("{count}/{number}"), TestValue::new(number as u64, size)).await;
        }
    }
    let payload = Payload::from_bytes("x").with_attributes(attributes(9));
    let staged = store.stage(&key("staged"), payload).await.unwrap();
    assert_eq!(staged.attributes(), &attributes(9));
    store.commit(vec![Change::Set { staged, precondition: Precondition::none() }]).await.unwrap();
    assert_attributes(&store, "staged", &attributes(9)).await;
}

pub(super) async fn snapshots_have_attributes(store: impl Storage + TransactionalStore) {
    set_with(&store, "a/b", Payload::from_bytes("x"), &attributes(1)).await;
    let snapshot = store.snapshot(&[key("a/b")]).await.unwrap();
    let below = store.snapshot_below(&key("a/b").parent()).await.unwrap();
    put(&store, "a/b", "y").await;
    assert_eq!(snapshot.meta(&key("a/b")).await.unwrap().unwrap().attributes, attributes(1));
    assert_eq!(snapshot.get(&key("a/b"), None).await.unwrap().unwrap().meta.attributes, attributes(1));
    assert_eq!(below.head(&key("a/b")).await.unwrap().unwrap().attributes, attributes(1));
    let copied = below.get(&key("a/b"), None).await.unwrap().unwrap().into_payload();
    store.set(&key("copy"), copied, Precondition::none()).await.unwrap();
    assert_attributes(&store, "copy", &attributes(1)).await;
}

pub(super) async fn attributes_persist<F: Reopen<Store: TransactionalStore>>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    put(&store, "plain", "x").await;
    (store, fixture) = factory.reopen(store, fixture).await;
    for (number, size) in (0..).zip(SIZES) {
        set_with(&store, &format!("a/{size}"), TestValue::new(number, size).payload(), &attributes(size as usize))
            .await;
    }
    // A large commit has a file of its own.
    let mut changes = Vec::new();
    for number in 0..700 {
        let payload = TestValue::new(number as u64, 20).payload().with_attributes(attributes(number));
        let staged = store.stage(&key(&format!("m/{number}")), payload).await.unwrap();
        changes.push(Change::Set { staged, precondition: Precondition::absent() });
    }
    store.commit(changes).await.unwrap();
    for _ in 0..2 {
        (store, fixture) = factory.reopen(store, fixture).await;
        for (number, size) in (0..).zip(SIZES) {
            assert_attributes(&store, &format!("a/{size}"), &attributes(size as usize)).await;
            assert_has(&store, &format!("a/{size}"), TestValue::new(number, size)).await;
        }
        for number in 0..700 {
            assert_attributes(&store, &format!("m/{number}"), &attributes(number)).await;
            assert_has(&store, &format!("m/{number}"), TestValue::new(number as u64, 20)).await;
        }
        assert_attributes(&store, "plain", &Attributes::NONE).await;
    }
    drop((store, fixture));
}
