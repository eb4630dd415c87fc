//! The engine between made-up ends.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{Mutex, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use store::{Key, MemoryStore, Payload, Prefix, StoreError, WriteableStore};

use super::{
    Admission, Found, Refused, Sink, SinkError, Source, SourceError, StoreSink, StoreSource, Transfer, TransferError,
};
use crate::{config::OnRefused, exit::Code, ui::Progress};

/// Takes everything, and remembers in which order it came to an end. What is in `failures` comes first.
#[derive(Default)]
struct Recorder {
    taken: Mutex<Vec<String>>,
    failures: Mutex<VecDeque<SinkError>>,
}

#[async_trait]
impl Sink for Recorder {
    fn admission(&self) -> Admission<'_> {
        Box::new(|name| if name.as_str() == "refused" { Err(Refused::NotAFile) } else { Ok(()) })
    }

    async fn put(&self, name: &Key, mut content: Payload) -> Result<(), SinkError> {
        while let Some(piece) = content.stream.next().await {
            piece?;
        }
        if let Some(failure) = self.failures.lock().unwrap().pop_front() {
            return Err(failure);
        }
        // Those that come first take longest.
        tokio::time::sleep(Duration::from_millis(50 / name.as_str().len() as u64)).await;
        self.taken.lock().unwrap().push(name.to_string());
        Ok(())
    }
}

/// Lists names of which some are gone and some cannot be read.
struct Shaky;

#[async_trait]
impl Source for Shaky {
    fn list(&self) -> BoxStream<'_, Result<Found, SourceError>> {
        let names = ["broken", "damaged", "good", "gone"];
        stream::iter(names).map(|name| Ok(Found::Value { name: key(name), size: 1 })).boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let failing = |error| {
            let pieces = [Ok("half".into()), Err(error)];
            Ok(Some(Payload { size: Some(8), stream: stream::iter(pieces).boxed() }))
        };
        match name.as_str() {
            "gone" => Ok(None),
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
    StoreSource { store, prefix: Prefix::root(), most: None }
}

async fn run(source: &dyn Source, sink: &dyn Sink, refused: OnRefused) -> (Result<(), TransferError>, Progress) {
    let progress = Progress::begin("test");
    let transfer = Transfer { source, sink, jobs: NonZeroUsize::new(4).unwrap(), refused, progress: &progress };
    (transfer.run().await, progress)
}

#[tokio::test]
async fn no_node_is_there_before_what_lies_below_it() {
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
    let (source, sink) = (filled(&names).await, Recorder::default());
    let (result, progress) = run(&source, &sink, OnRefused::Stop).await;
    result.unwrap();
    let taken = sink.taken.into_inner().unwrap();
    let at = |name: &str| taken.iter().position(|taken| taken == name).unwrap();
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
        assert!(at(before) < at(after), "{before} {after}: {taken:?}");
    }
    let tally = progress.tally();
    assert_eq!(tally.keys.load(Ordering::Relaxed), 10);
    assert_eq!(tally.bytes.load(Ordering::Relaxed), names.iter().map(|name| name.len() as u64).sum::<u64>());
}

#[tokio::test]
async fn a_value_that_fails_does_not_keep_the_others_back() {
    let sink = StoreSink { store: MemoryStore::new(), prefix: Prefix::parse("to/").unwrap() };
    let (result, progress) = run(&Shaky, &sink, OnRefused::Stop).await;
    let error = result.unwrap_err();
    assert!(matches!(error, TransferError::Incomplete { failed: 2, damaged: 1 }), "{error:?}");
    assert_eq!(error.code(), Code::DamageFound);
    let tally = progress.tally();
    assert_eq!(tally.vanished.load(Ordering::Relaxed), 1);
    assert_eq!(tally.keys.load(Ordering::Relaxed), 1);
    assert_eq!(tally.bytes.load(Ordering::Relaxed), 4, "what did not arrive whole does not count");
}

#[tokio::test]
async fn a_sink_that_fails_ends_it() {
    let (source, sink) = (filled(&["a", "b", "c"]).await, Recorder::default());
    sink.failures.lock().unwrap().push_back(StoreError::OutOfSpace.into());
    let (result, _) = run(&source, &sink, OnRefused::Stop).await;
    let error = result.unwrap_err();
    assert!(matches!(&error, TransferError::Stopped { key, .. } if key.as_str() == "a"), "{error:?}");
    assert!(crate::exit::chain(&error).contains("no space left"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again() {
    let (source, sink) = (filled(&["a", "b"]).await, Recorder::default());
    for retry_after in [None, Some(Duration::from_secs(7)), None] {
        sink.failures.lock().unwrap().push_back(StoreError::Busy { retry_after }.into());
    }
    let (result, progress) = run(&source, &sink, OnRefused::Stop).await;
    result.unwrap();
    assert_eq!(progress.tally().bytes.load(Ordering::Relaxed), 2);
    assert_eq!(sink.taken.into_inner().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_ends_it() {
    let (source, sink) = (filled(&["a"]).await, Recorder::default());
    for _ in 0..100 {
        sink.failures.lock().unwrap().push_back(StoreError::Busy { retry_after: None }.into());
    }
    let (result, progress) = run(&source, &sink, OnRefused::Stop).await;
    assert!(matches!(result, Err(TransferError::Stopped { .. })), "{result:?}");
    assert_eq!(progress.tally().bytes.load(Ordering::Relaxed), 0);
    assert_eq!(sink.failures.lock().unwrap().len(), 94);
}

#[tokio::test]
async fn names_are_judged_before_anything_is_moved() {
    let (source, sink) = (filled(&["a", "refused", "z"]).await, Recorder::default());
    let (result, _) = run(&source, &sink, OnRefused::Stop).await;
    assert!(matches!(result, Err(TransferError::Refused { count: 1 })), "{result:?}");
    assert!(sink.taken.lock().unwrap().is_empty());

    let (result, progress) = run(&source, &sink, OnRefused::Skip).await;
    result.unwrap();
    let mut taken = sink.taken.into_inner().unwrap();
    taken.sort();
    assert_eq!(taken, ["a", "z"]);
    assert_eq!(progress.tally().skipped.load(Ordering::Relaxed), 1);
}
