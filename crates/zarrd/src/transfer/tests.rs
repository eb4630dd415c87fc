//! Transfers between test doubles.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use zarrd_store::{
    AttributeFields, Attributes, ContentField, Key, ListableStore, MemoryStore, PageRequest, Payload, Prefix,
    ReadableStore, StoreError, WriteableStore,
};

use super::{
    NameCheck, PresentValues, Sink, SinkError, SkipReason, SmallContent, Source, SourceError, SourceItem, StoreSink,
    StoreSource, Transfer, TransferError,
};
use crate::{
    config::OnUnsupported,
    ui::{Progress, error_chain},
};

/// Records the order in which values are completed. The errors in `failures` are returned first.
#[derive(Default)]
struct RecordingSink {
    received: Mutex<Vec<String>>,
    failures: Mutex<VecDeque<SinkError>>,
}

#[async_trait]
impl Sink for RecordingSink {
    fn name_check(&self) -> NameCheck<'_> {
        Box::new(|name| if name.as_str() == "unsupported" { Err(SkipReason::NotAFile) } else { Ok(()) })
    }

    async fn put(&self, name: &Key, mut content: Payload) -> Result<(), SinkError> {
        while let Some(bytes) = content.stream.next().await {
            bytes?;
        }
        if let Some(failure) = self.failures.lock().unwrap().pop_front() {
            return Err(failure);
        }
        // The first values take longest.
        tokio::time::sleep(Duration::from_millis(50 / name.as_str().len() as u64)).await;
        self.received.lock().unwrap().push(name.to_string());
        Ok(())
    }
}

/// A source in which some values are missing and some cannot be read.
struct PartlyUnreadableSource;

#[async_trait]
impl Source for PartlyUnreadableSource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        let names = ["broken", "damaged", "good", "missing"];
        stream::iter(names)
            .map(|name| {
                Ok(SourceItem::Value { name: key(name), size: 1, version: None, modified: None, content: None })
            })
            .boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let failing = |error| {
            let buffers = [Ok("half".into()), Err(error)];
            Ok(Some(Payload::sized(8, stream::iter(buffers))))
        };
        match name.as_str() {
            "missing" => Ok(None),
            "damaged" => failing(StoreError::corrupt(name.clone(), "the record is damaged")),
            "broken" => failing(StoreError::Io { action: "read", source: std::io::ErrorKind::Other.into() }),
            _ => Ok(Some("good".into())),
        }
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn filled(names: &[&str]) -> StoreSource<MemoryStore> {
    let store = MemoryStore::new();
    for name in names {
        store.set(&key(name), Payload::from_bytes(name.to_string()), Default::default()).await.unwrap();
    }
    StoreSource { store, prefix: Prefix::root(), max_keys: None }
}

async fn run(
    source: &dyn Source,
    sink: &dyn Sink,
    on_unsupported: OnUnsupported,
) -> (Result<(), TransferError>, Progress) {
    let progress = Progress::start("test");
    let (jobs, present) = (NonZeroUsize::new(4).unwrap(), PresentValues::Replace);
    let transfer = Transfer { source, sink, jobs, on_unsupported, present, progress: &progress };
    (transfer.run().await, progress)
}

/// A sink that counts what it is given.
struct CountingSink(StoreSink<MemoryStore>, Mutex<Vec<String>>);

#[async_trait]
impl Sink for CountingSink {
    fn name_check(&self) -> NameCheck<'_> {
        self.0.name_check()
    }

    async fn present(&self, name: &Key) -> Result<Option<(u64, SystemTime)>, SinkError> {
        self.0.present(name).await
    }

    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError> {
        self.1.lock().unwrap().push(name.to_string());
        self.0.put(name, content).await
    }
}

#[tokio::test]
async fn transfer_that_goes_on_leaves_what_is_there() {
    let source = filled(&["a/0", "a/1", "a/2", "a/zarr.json"]).await;
    let store = MemoryStore::new();
    let to = CountingSink(StoreSink { store, prefix: Prefix::parse("to/").unwrap() }, Mutex::default());
    let set = async |name: &str, value: &'static str| {
        to.0.store.set(&key(name), value.into(), Default::default()).await.unwrap();
    };
    tokio::time::sleep(Duration::from_millis(5)).await;
    // Documents are cheap, and come last.
    set("to/a/0", "a/0").await;
    set("to/a/zarr.json", "a/zarr.json").await;
    // Interrupted writes leave nothing, so another size is that of older data.
    set("to/a/1", "older").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    // Changed after it was transferred.
    set("to/a/2", "a/2").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    source.store.set(&key("a/2"), "A/2".into(), Default::default()).await.unwrap();
    let progress = Progress::start("test");
    let (jobs, on_unsupported, present) = (NonZeroUsize::new(1).unwrap(), OnUnsupported::Fail, PresentValues::Keep);
    let transfer = Transfer { source: &source, sink: &to, jobs, on_unsupported, present, progress: &progress };
    transfer.run().await.unwrap();
    assert_eq!(*to.1.lock().unwrap(), ["a/1", "a/2", "a/zarr.json"]);
    assert_eq!(progress.counters().present.load(Ordering::Relaxed), 1);
    let value = to.0.store.get(&key("to/a/2"), None).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), "A/2");
}

#[tokio::test]
async fn nodes_are_written_after_their_descendants() {
    let names = [
        ".zgroup",
        ".zmetadata",
        "a/.zarray",
        "a/.zattrs",
        "a/0.0",
        "a/0.1",
        "b/c/0/0",
        "b/c/0/1",
        "b/zarr.json",
        "zarr.json",
    ];
    let (source, sink) = (filled(&names).await, RecordingSink::default());
    let (result, progress) = run(&source, &sink, OnUnsupported::Fail).await;
    result.unwrap();
    let received = sink.received.into_inner().unwrap();
    let position = |name: &str| received.iter().position(|other| other == name).unwrap();
    for (before, after) in [
        ("a/0.0", "a/.zattrs"),
        ("b/c/0/1", "a/.zattrs"),
        ("a/.zattrs", "a/.zarray"),
        ("a/.zarray", ".zgroup"),
        ("b/zarr.json", "zarr.json"),
        ("a/.zarray", "zarr.json"),
        (".zgroup", ".zmetadata"),
        ("zarr.json", ".zmetadata"),
    ] {
        assert!(position(before) < position(after), "{before} {after}: {received:?}");
    }
    let counters = progress.counters();
    assert_eq!(counters.keys.load(Ordering::Relaxed), 10);
    assert_eq!(counters.bytes.load(Ordering::Relaxed), names.iter().map(|name| name.len() as u64).sum::<u64>());
}

#[tokio::test]
async fn failing_values_do_not_prevent_others() {
    let sink = StoreSink { store: MemoryStore::new(), prefix: Prefix::parse("to/").unwrap() };
    let (result, progress) = run(&PartlyUnreadableSource, &sink, OnUnsupported::Fail).await;
    let error = result.unwrap_err();
    assert!(matches!(error, TransferError::Incomplete { failed: 2, corrupt: 1 }), "{error:?}");
    let counters = progress.counters();
    assert_eq!(counters.vanished.load(Ordering::Relaxed), 1);
    assert_eq!(counters.keys.load(Ordering::Relaxed), 1);
    assert_eq!(counters.bytes.load(Ordering::Relaxed), 4, "incomplete values do not count");
}

#[tokio::test]
async fn failing_sink_aborts_the_transfer() {
    let (source, sink) = (filled(&["a", "b", "c"]).await, RecordingSink::default());
    sink.failures.lock().unwrap().push_back(StoreError::OutOfSpace.into());
    let (result, _) = run(&source, &sink, OnUnsupported::Fail).await;
    let error = result.unwrap_err();
    assert!(matches!(&error, TransferError::Aborted { key, .. } if key.as_str() == "a"), "{error:?}");
    assert!(error_chain(&error).contains(&StoreError::OutOfSpace.to_string()));
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_retried() {
    let (source, sink) = (filled(&["a", "b"]).await, RecordingSink::default());
    for retry_after in [None, Some(Duration::from_secs(7)), None] {
        sink.failures.lock().unwrap().push_back(StoreError::Busy { retry_after }.into());
    }
    let (result, progress) = run(&source, &sink, OnUnsupported::Fail).await;
    result.unwrap();
    assert_eq!(progress.counters().bytes.load(Ordering::Relaxed), 2);
    assert_eq!(sink.received.into_inner().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn permanently_busy_server_aborts_the_transfer() {
    let (source, sink) = (filled(&["a"]).await, RecordingSink::default());
    for _ in 0..100 {
        sink.failures.lock().unwrap().push_back(StoreError::Busy { retry_after: None }.into());
    }
    let (result, progress) = run(&source, &sink, OnUnsupported::Fail).await;
    assert!(matches!(result, Err(TransferError::Aborted { .. })), "{result:?}");
    assert_eq!(progress.counters().bytes.load(Ordering::Relaxed), 0);
    assert_eq!(sink.failures.lock().unwrap().len(), 94);
}

#[tokio::test]
async fn unsupported_names_stop_the_transfer_before_anything_is_written() {
    let (source, sink) = (filled(&["a", "unsupported", "z"]).await, RecordingSink::default());
    let (result, _) = run(&source, &sink, OnUnsupported::Fail).await;
    assert!(matches!(result, Err(TransferError::UnsupportedNames { count: 1 })), "{result:?}");
    assert!(sink.received.lock().unwrap().is_empty());

    let (result, progress) = run(&source, &sink, OnUnsupported::Skip).await;
    result.unwrap();
    let mut received = sink.received.into_inner().unwrap();
    received.sort();
    assert_eq!(received, ["a", "z"]);
    assert_eq!(progress.counters().skipped.load(Ordering::Relaxed), 1);
}

/// A source whose array grows while it is copied, as often as `changes` says.
struct GrowingSource {
    values: StoreSource<MemoryStore>,
    changes: AtomicU64,
}

#[async_trait]
impl Source for GrowingSource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.values.list()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let opened = self.values.open(name).await?;
        // After the chunks were listed, and before the document is read.
        if name.as_str() == "a/c/0" && self.changes.load(Ordering::Relaxed) > 0 {
            let left = self.changes.fetch_sub(1, Ordering::Relaxed);
            for name in [format!("a/c/{left}"), "a/zarr.json".to_owned()] {
                self.values.store.set(&key(&name), format!("{left}").into(), Default::default()).await.unwrap();
            }
        }
        Ok(opened)
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// A source whose chunks come along with their names, and whose other values are opened.
struct ContentsSource {
    values: StoreSource<MemoryStore>,
    opened: Mutex<Vec<String>>,
}

#[async_trait]
impl Source for ContentsSource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.values.list()
    }

    fn list_with_contents(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        let small = SmallContent { bytes: "along".into(), attributes: table_attributes() };
        let items = self.values.list().map(move |item| match item? {
            SourceItem::Value { name, size, version, modified, .. } => {
                let content = name.as_str().contains("/c/").then(|| small.clone());
                Ok(SourceItem::Value { name, size, version, modified, content })
            }
            other => Ok(other),
        });
        items.boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        self.opened.lock().unwrap().push(name.to_string());
        self.values.open(name).await
    }
}

fn table_attributes() -> Attributes {
    let content = [(ContentField::Type, "text/csv".to_owned())].into();
    Attributes::new(AttributeFields { content, ..AttributeFields::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn values_that_come_along_with_their_names_are_not_opened() {
    let values = filled(&["a/c/0", "a/c/1", "a/zarr.json", "other"]).await;
    let source = ContentsSource { values, opened: Mutex::default() };
    let sink = StoreSink { store: MemoryStore::new(), prefix: Prefix::root() };
    let (result, progress) = run(&source, &sink, OnUnsupported::Fail).await;
    result.unwrap();
    assert_eq!(*source.opened.lock().unwrap(), ["other", "a/zarr.json"]);
    for name in ["a/c/0", "a/c/1"] {
        let value = sink.store.get(&key(name), None).await.unwrap().unwrap();
        assert_eq!(value.meta.attributes, table_attributes());
        assert_eq!(value.bytes().await.unwrap(), "along");
    }
    assert_eq!(progress.counters().keys.load(Ordering::Relaxed), 4);

    // They are sent again after a failure.
    let sink = RecordingSink::default();
    let failure = StoreError::Busy { retry_after: None };
    sink.failures.lock().unwrap().push_back(SinkError::Store(failure));
    let (result, progress) = run(&source, &sink, OnUnsupported::Fail).await;
    result.unwrap();
    assert_eq!(sink.received.lock().unwrap().len(), 4);
    let bytes = "along".len() * 2 + "other".len() + "a/zarr.json".len();
    assert_eq!(progress.counters().bytes.load(Ordering::Relaxed), bytes as u64);
}

#[tokio::test]
async fn arrays_that_grow_meanwhile_are_copied_again() {
    for (changes, succeeds) in [(0, true), (1, true), (4, true), (100, false)] {
        let values = filled(&["a/c/0", "a/zarr.json", "b/c/0", "b/zarr.json"]).await;
        let source = GrowingSource { values, changes: AtomicU64::new(changes) };
        let sink = StoreSink { store: MemoryStore::new(), prefix: Prefix::root() };
        let (result, _) = run(&source, &sink, OnUnsupported::Fail).await;
        if !succeeds {
            let error = result.unwrap_err();
            assert!(matches!(&error, TransferError::Changing { keys } if keys == &[key("a/zarr.json")]), "{error:?}");
            continue;
        }
        result.unwrap();
        let texts = async |store: &MemoryStore| {
            let mut texts = Vec::new();
            for entry in store.list_prefix(&Prefix::root(), PageRequest::first(100)).await.unwrap().keys {
                let value = store.get(&entry.key, None).await.unwrap().unwrap();
                texts.push((entry.key, value.bytes().await.unwrap()));
            }
            texts
        };
        assert_eq!(texts(&sink.store).await, texts(&source.values.store).await, "{changes}");
    }
}
