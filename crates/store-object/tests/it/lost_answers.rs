//! Writes whose answers are lost, late or duplicated: each ends as done, conflict or unknown, never wrongly as done.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use object_store::{
    Attribute, Attributes, Error, ObjectStore, PutMode, PutOptions, RetryConfig, UpdateVersion, aws::AmazonS3Builder,
    path::Path,
};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;
use zarrd_store::{Precondition, ReadableStore, StoreError, Version, WriteableStore};
use zarrd_store_object::{BucketStore, WriteMode};

use crate::common::{Dialect, Fault, Server, key, options, within};

/// The kinds of loss, in the order of the columns.
const LOSSES: [&str; 8] = ["none", "lost", "unanswered", "misreported", "late", "twice", "again", "refused"];

/// The fault of a kind of loss.
fn fault(loss: &str) -> Option<Fault> {
    let later = Duration::from_millis(150);
    match loss {
        "lost" => Some(Fault::Lost),
        "unanswered" => Some(Fault::Unanswered),
        "misreported" => Some(Fault::Misreported(500)),
        "late" => Some(Fault::Late(later)),
        "twice" => Some(Fault::Twice),
        "again" => Some(Fault::Again(later)),
        "refused" => Some(Fault::Answer(503, Vec::new(), "<Error><Code>SlowDown</Code></Error>".to_owned())),
        _ => None,
    }
}

/// The end of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Done,
    Conflict,
    Unknown,
}

/// A write of a unique value, as its writer saw it.
#[derive(Clone, Debug)]
struct Record {
    name: String,
    value: String,
    /// The value that the write was conditioned on; `None` for a create-only write.
    before: Option<String>,
    end: End,
}

/// The counts of ends by kind of loss.
type Counts = BTreeMap<(&'static str, End), u32>;

fn count(counts: &mut Counts, loss: &'static str, end: End) {
    *counts.entry((loss, end)).or_default() += 1;
}

/// Writes that compare and swap one of several objects. `swap` is the writer under test.
trait Swap: Send + Sync + 'static {
    /// Reads an object.
    fn read(&self, name: &str) -> impl Future<Output = Option<(String, Token)>> + Send;

    /// Replaces an object as it was read, or creates it.
    fn swap(&self, name: &str, value: String, token: Option<Token>) -> impl Future<Output = End> + Send;
}

#[derive(Clone, Debug)]
enum Token {
    Version(Version),
    ETag(String),
}

/// The store.
struct Settled(BucketStore);

impl Swap for Settled {
    async fn read(&self, name: &str) -> Option<(String, Token)> {
        let value = self.0.get(&key(name), None).await.unwrap()?;
        let token = Token::Version(value.meta.version);
        Some((String::from_utf8(value.bytes().await.unwrap().to_vec()).unwrap(), token))
    }

    async fn swap(&self, name: &str, value: String, token: Option<Token>) -> End {
        let version = token.map(|token| match token {
            Token::Version(version) => version,
            Token::ETag(etag) => panic!("{etag}"),
        });
        match self.0.set(&key(name), value.into(), Precondition::unchanged(version)).await {
            Ok(_) => End::Done,
            Err(StoreError::PreconditionFailed { .. }) => End::Conflict,
            Err(StoreError::OutcomeUnknown { .. }) => End::Unknown,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// The library by itself: with its retries, or taking each failure of a write for one that did not happen.
struct Library {
    bucket: Arc<dyn ObjectStore>,
    /// A failure is an unknown outcome; otherwise it is taken for a conflict, and the value is written again later.
    honest: bool,
}

impl Library {
    fn new(server: &Server, retries: usize, honest: bool) -> Self {
        let retry = RetryConfig {
            max_retries: retries,
            backoff: object_store::BackoffConfig {
                init_backoff: Duration::from_millis(10),
                max_backoff: Duration::from_millis(50),
                base: 2.0,
            },
            ..RetryConfig::default()
        };
        let bucket = AmazonS3Builder::new()
            .with_endpoint(server.url())
            .with_allow_http(true)
            .with_bucket_name("b")
            .with_region("us-east-1")
            .with_access_key_id("k")
            .with_secret_access_key("s")
            .with_retry(retry)
            .build()
            .unwrap();
        Self { bucket: Arc::new(bucket), honest }
    }
}

impl Swap for Library {
    async fn read(&self, name: &str) -> Option<(String, Token)> {
        let path = Path::from(format!("p/{name}"));
        match self.bucket.get_opts(&path, object_store::GetOptions::default()).await {
            Ok(found) => {
                let token = Token::ETag(found.meta.e_tag.clone().unwrap());
                Some((String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap(), token))
            }
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn swap(&self, name: &str, value: String, token: Option<Token>) -> End {
        let path = Path::from(format!("p/{name}"));
        let mode = match token {
            None => PutMode::Create,
            Some(Token::ETag(etag)) => PutMode::Update(UpdateVersion { e_tag: Some(etag), version: None }),
            Some(Token::Version(version)) => panic!("{version}"),
        };
        let attributes = Attributes::from_iter([(Attribute::Metadata("writer".into()), "library".to_owned())]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        match self.bucket.put_opts(&path, value.into(), options).await {
            Ok(_) => End::Done,
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => End::Conflict,
            Err(_) if self.honest => End::Unknown,
            Err(_) => End::Conflict,
        }
    }
}

/// The wrong results of writers, compared with the history of the bucket.
fn errors(server: &Server, records: &[Record]) -> Vec<String> {
    let mut errors = Vec::new();
    let history = server.bucket().history.clone();
    let mut made: BTreeMap<(&str, String), Vec<Option<String>>> = BTreeMap::new();
    let mut current: BTreeMap<&str, String> = BTreeMap::new();
    for change in &history {
        let Some(name) = change.name.strip_prefix("p/").filter(|name| name.starts_with('k')) else { continue };
        let value = String::from_utf8(change.value.clone().unwrap_or_default().to_vec()).unwrap();
        let before = current.insert(name, value.clone());
        made.entry((name, value)).or_default().push(before);
    }
    for record in records {
        let times = made.get(&(record.name.as_str(), record.value.clone())).map(Vec::as_slice).unwrap_or_default();
        match (record.end, times) {
            (End::Done, [before]) if *before == record.before => {}
            (End::Conflict, []) | (End::Unknown, [] | [_]) => {}
            // The second of two equal requests was answered, and another writer replaced what the first one made.
            (End::Conflict, [_]) if record.value.starts_with("twice") => {}
            (end, times) => errors.push(format!("{end:?}, and made {} times: {record:?} after {times:?}", times.len())),
        }
    }
    errors
}

/// Lets writers change a few objects while answers are lost; returns their results, and the counts by kind of loss.
async fn run<S: Swap>(writer: S, seed: u64, writes: u32) -> (Vec<Record>, Counts) {
    let writer = Arc::new(writer);
    let (records, counts) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Counts::new())));
    // The kind of loss of each value, which is chosen by its writer.
    let mut tasks = JoinSet::new();
    for task in 0..8_u64 {
        let (writer, records, counts) = (Arc::clone(&writer), Arc::clone(&records), Arc::clone(&counts));
        let mut random = StdRng::seed_from_u64(seed + task);
        tasks.spawn(async move {
            for number in 0..writes {
                let name = format!("k{}", random.random_range(0..6_u32));
                let loss = LOSSES[random.random_range(0..LOSSES.len())];
                let read = writer.read(&name).await;
                let (before, token) = read.unzip();
                let value = format!("{loss} {task} {number}");
                let end = writer.swap(&name, value.clone(), token).await;
                count(&mut counts.lock(), loss, end);
                records.lock().push(Record { name, value, before, end });
            }
        });
    }
    while let Some(result) = within(tasks.join_next()).await {
        result.unwrap();
    }
    // What is late has arrived.
    tokio::time::sleep(Duration::from_millis(400)).await;
    (Arc::into_inner(records).unwrap().into_inner(), Arc::into_inner(counts).unwrap().into_inner())
}

/// A server that loses the first answers to the writes of each value, as the value says.
async fn losing_server() -> Server {
    let server = Server::start(Dialect::S3).await;
    let mut lost: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    server.on_request(move |request| {
        if request.method != "PUT" || request.query.contains_key("partNumber") {
            return None;
        }
        let text = std::str::from_utf8(&request.body).ok()?;
        let loss = text.split(' ').next()?;
        let times = lost.entry(request.body.to_vec()).or_default();
        *times += 1;
        // Some are lost twice.
        let most = if text.ends_with(['1', '3', '7']) { 2 } else { 1 };
        fault(loss).filter(|_| *times <= most)
    });
    server
}

async fn settled(server: &Server) -> Settled {
    let mut options = options(server);
    options.writes = WriteMode::Conditional;
    options.settle = Duration::from_secs(3);
    // A slow machine is no lost answer.
    (options.read_timeout, options.deadline) = (Duration::from_secs(20), Duration::from_secs(50));
    Settled(BucketStore::open(&"s3://b/p".parse().unwrap(), options).await.unwrap())
}

struct Table(Counts);

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for loss in LOSSES {
            let of = |end| self.0.get(&(loss, end)).copied().unwrap_or_default();
            writeln!(
                f,
                "{loss:>12} done {:>4} conflict {:>4} unknown {:>4}",
                of(End::Done),
                of(End::Conflict),
                of(End::Unknown)
            )?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_end_as_done_conflict_or_unknown_and_never_wrongly_as_done() {
    let server = losing_server().await;
    let (records, counts) = run(settled(&server).await, 1, 40).await;
    println!("{}", Table(counts.clone()));
    let errors = errors(&server, &records);
    assert!(errors.is_empty(), "{} of {}: {errors:#?}", errors.len(), records.len());
    // A lost answer alone leaves nothing unknown: only another writer that came between does.
    let of = |end| counts.iter().filter(|((_, found), _)| *found == end).map(|(_, count)| count).sum::<u32>();
    assert!(of(End::Done) > of(End::Unknown), "{}", Table(counts));
    for loss in LOSSES {
        assert!(counts.contains_key(&(loss, End::Done)), "{loss}: {}", Table(counts.clone()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_finds_retries_of_the_library_and_writers_without_ids() {
    for (what, retries, honest) in [("retries of the library", 4, true), ("failures that count as not made", 0, false)]
    {
        let server = losing_server().await;
        let (records, counts) = run(Library::new(&server, retries, honest), 1, 40).await;
        let errors = errors(&server, &records);
        println!("{what}: {} wrong ends of {}\n{}", errors.len(), records.len(), Table(counts));
        assert!(!errors.is_empty(), "{what}: no wrong end of {} is found", records.len());
    }
}

#[tokio::test]
async fn a_lost_answer_is_settled_with_one_head_and_the_same_id() {
    for (loss, puts, heads) in [("lost", 2, 1), ("unanswered", 1, 1), ("misreported", 1, 1), ("refused", 2, 0)] {
        let server = losing_server().await;
        let Settled(store) = settled(&server).await;
        server.forget();
        let written = store.set(&key("k"), loss.into(), Precondition::absent()).await.unwrap();
        assert!(!written.replaced);
        let methods = server.methods();
        let count = |method: &str| methods.iter().filter(|found| *found == method).count();
        assert_eq!((count("PUT"), count("HEAD")), (puts, heads), "{loss}: {methods:?}");
        let requests = server.requests();
        let puts = requests.iter().filter(|request| request.method == "PUT");
        let ids: std::collections::BTreeSet<_> =
            puts.map(|put| put.header("x-amz-meta-zarrdwriteid").unwrap()).collect();
        assert_eq!(ids.len(), 1, "{loss}");
        assert_eq!(store.head(&key("k")).await.unwrap().unwrap().version, written.version, "{loss}");
    }
}

#[tokio::test]
async fn a_lost_write_that_another_client_replaced_is_of_unknown_outcome() {
    let server = Server::start(Dialect::S3).await;
    let Settled(store) = settled(&server).await;
    let put = server.handle();
    let mut first = true;
    server.on_request(move |request| {
        if std::mem::take(&mut first) {
            return Some(Fault::Unanswered);
        }
        if request.method == "HEAD" {
            put("p/k", "of another client".into());
        }
        None
    });
    let error = store.set(&key("k"), "ours".into(), Precondition::absent()).await.unwrap_err();
    assert!(matches!(&error, StoreError::OutcomeUnknown { key, .. } if key.as_str() == "k"), "{error:?}");
}

#[tokio::test]
async fn a_write_without_answers_is_unknown_after_the_time_to_settle() {
    let server = Server::start(Dialect::S3).await;
    let mut options = options(&server);
    (options.writes, options.settle) = (WriteMode::Conditional, Duration::from_secs(1));
    let store = BucketStore::open(&"s3://b/p".parse().unwrap(), options).await.unwrap();
    server.on_request(|_| Some(Fault::Lost));
    let started = Instant::now();
    let error = store.set(&key("k"), "ours".into(), Precondition::absent()).await.unwrap_err();
    assert!(matches!(&error, StoreError::OutcomeUnknown { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    // Nothing was sent that may have been made.
    server.on_request(|_| Some(Fault::Answer(503, Vec::new(), "<Error><Code>SlowDown</Code></Error>".to_owned())));
    let error = store.set(&key("k"), "ours".into(), Precondition::absent()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Busy { .. }), "{error:?}");
}

#[tokio::test]
async fn a_late_write_does_not_replace_what_was_written_since() {
    let server = Server::start(Dialect::S3).await;
    let Settled(store) = settled(&server).await;
    store.set(&key("k"), "old".into(), Precondition::none()).await.unwrap();
    server.faults([]);
    let mut puts = 0;
    server.on_request(move |request| {
        puts += u32::from(request.method == "PUT");
        (request.method == "PUT" && puts == 1).then_some(Fault::Late(Duration::from_millis(500)))
    });
    // Neither write has a precondition.
    store.set(&key("k"), "first".into(), Precondition::none()).await.unwrap();
    store.set(&key("k"), "second".into(), Precondition::none()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(800)).await;
    let value = store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap();
    assert_eq!(value, "second");
}

#[tokio::test]
async fn an_erase_whose_answer_is_lost_is_settled() {
    for fault in [Fault::Lost, Fault::Unanswered] {
        let server = Server::start(Dialect::S3).await;
        let Settled(store) = settled(&server).await;
        server.put("p/k", "value");
        let mut lost = Some(fault.clone());
        server.on_request(move |request| if request.method == "POST" { lost.take() } else { None });
        assert!(store.erase(&key("k"), Precondition::none()).await.unwrap(), "{fault:?}");
        assert!(server.names().is_empty(), "{fault:?}");
    }
    // Another client has set it since.
    let server = Server::start(Dialect::S3).await;
    let Settled(store) = settled(&server).await;
    server.put("p/k", "value");
    let put = server.handle();
    let mut erased = false;
    server.on_request(move |request| {
        if request.method == "POST" {
            erased = true;
            return Some(Fault::Unanswered);
        }
        if erased && request.method == "HEAD" {
            put("p/k", "of another client".into());
        }
        None
    });
    let error = store.erase(&key("k"), Precondition::none()).await.unwrap_err();
    assert!(matches!(&error, StoreError::OutcomeUnknown { .. }), "{error:?}");
    assert_eq!(server.names(), ["p/k"]);
    let erases = server.methods().iter().filter(|method| *method == "POST").count();
    assert_eq!(erases, 2, "one of the probe, and one that is not repeated");
}
