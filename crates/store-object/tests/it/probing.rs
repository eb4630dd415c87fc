//! Buckets that are opened for writing are probed: what they do counts, and not what they say.

use std::time::{Duration, SystemTime};

use zarrd_store::{Conditions, Guarantees, Precondition, StoreError, WriteableStore, Writes};
use zarrd_store_object::{BucketStore, OpenError, WriteMode};

use crate::common::{Dialect, Fault, Flaws, Server, key, options, within};

const SERVICES: [&str; 3] = ["s3://b/p", "gs://b/p", "az://b/p"];

async fn server_of(url: &str) -> Server {
    Server::start(if url.starts_with("az") { Dialect::Azure } else { Dialect::S3 }).await
}

async fn open(server: &Server, url: &str, writes: WriteMode) -> Result<BucketStore, OpenError> {
    let mut options = options(server);
    options.writes = writes;
    // A slow machine is no lost answer.
    (options.read_timeout, options.deadline) = (Duration::from_secs(20), Duration::from_secs(50));
    within(BucketStore::open(&url.parse().unwrap(), options)).await
}

/// The guarantees of a store of a service with flaws, after which nothing of the probe is left.
async fn guarantees(url: &str, flaws: Flaws, writes: WriteMode) -> Guarantees {
    let server = server_of(url).await;
    server.bucket().flaws = flaws;
    let guarantees = open(&server, url, writes).await.unwrap().guarantees();
    if !flaws.forbids_deletes && !flaws.ignores_deletes {
        assert_eq!(server.names(), Vec::<String>::new(), "{url} {flaws:?}");
    }
    guarantees
}

#[tokio::test]
async fn a_service_with_exact_conditions_is_written_with_conditions() {
    for url in SERVICES {
        for writes in [WriteMode::Conditional, WriteMode::LastWins] {
            let found = guarantees(url, Flaws::default(), writes).await;
            let wanted = (Writes::Key, Conditions::Atomic, false, None);
            assert_eq!(
                (found.writes, found.conditions, found.conditional_erase, found.read_only_reason),
                wanted,
                "{url}"
            );
        }
        // Entity tags of S3 are hashes of values.
        let hashes = Flaws { hashes: true, ..Flaws::default() };
        assert_eq!(guarantees(url, hashes, WriteMode::Conditional).await.conditions, Conditions::Atomic, "{url}");
        let found = guarantees(url, Flaws::default(), WriteMode::ReadOnly).await;
        assert_eq!((found.writes, found.read_only_reason), (Writes::None, None), "{url}");
    }
}

#[tokio::test]
async fn a_service_that_accepts_what_it_must_refuse_is_read_only_or_last_wins() {
    let flawed = [
        (Flaws { ignores_create_only: true, ..Flaws::default() }, "of an object that exists"),
        (Flaws { ignores_if_match: true, ..Flaws::default() }, "a version that is not current"),
        (Flaws { checks_before: true, ..Flaws::default() }, "several create-only writes"),
        (Flaws { refuses_conditions: true, ..Flaws::default() }, "refuses a write on condition"),
    ];
    for url in SERVICES {
        for (flaws, reason) in flawed {
            let found = guarantees(url, flaws, WriteMode::Conditional).await;
            let shown = found.to_string();
            assert_eq!((found.writes, found.conditions), (Writes::None, Conditions::None), "{url} {shown}");
            assert!(shown.contains(reason), "{url} {flaws:?}: {shown}");
            let found = guarantees(url, flaws, WriteMode::LastWins).await;
            assert_eq!((found.writes, found.conditions), (Writes::Key, Conditions::None), "{url} {flaws:?}");
            assert_eq!(found.read_only_reason, None, "{url} {flaws:?}");
        }
    }
}

#[tokio::test]
async fn a_bucket_whose_objects_may_not_be_written_read_or_deleted_is_read_only() {
    let flawed = [
        (Flaws { forbids_puts: true, ..Flaws::default() }, "may not be written"),
        (Flaws { forbids_gets: true, ..Flaws::default() }, "may not be read"),
        (Flaws { forbids_deletes: true, ..Flaws::default() }, "may not be deleted"),
        (Flaws { ignores_deletes: true, ..Flaws::default() }, "may not be deleted"),
        (Flaws { loses_metadata: true, ..Flaws::default() }, "does not keep the metadata"),
    ];
    for url in SERVICES {
        for (flaws, reason) in flawed {
            for writes in [WriteMode::Conditional, WriteMode::LastWins] {
                let server = server_of(url).await;
                server.bucket().flaws = flaws;
                let store = open(&server, url, writes).await.unwrap();
                let found = store.guarantees();
                assert_eq!(found.writes, Writes::None, "{url} {flaws:?} {writes:?}");
                assert!(found.to_string().contains(reason), "{url} {flaws:?}: {found}");
                server.forget();
                let error = store.set(&key("k"), "value".into(), Precondition::none()).await.unwrap_err();
                assert!(matches!(&error, StoreError::Unsupported { what } if what.contains(reason)), "{error:?}");
                assert!(store.erase(&key("k"), Precondition::none()).await.is_err());
                assert!(store.check_writable().await.is_err());
                assert_eq!(server.methods(), Vec::<String>::new(), "{url}: nothing is requested");
            }
        }
    }
}

#[tokio::test]
async fn a_bucket_that_may_not_be_listed_is_refused_before_anything_is_written() {
    for url in SERVICES {
        for writes in [WriteMode::Conditional, WriteMode::LastWins] {
            let server = server_of(url).await;
            server.bucket().flaws = Flaws { forbids_listings: true, ..Flaws::default() };
            let error = open(&server, url, writes).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("403") && text.contains("AccessDenied"), "{url} {text}");
            assert_eq!(server.names(), Vec::<String>::new(), "{url}");
        }
    }
}

#[tokio::test]
async fn last_wins_has_no_conditions_and_refuses_writes_with_one() {
    let server = server_of("s3://b/p").await;
    server.bucket().flaws = Flaws { ignores_if_match: true, ..Flaws::default() };
    let store = open(&server, "s3://b/p", WriteMode::LastWins).await.unwrap();
    let set = async |value: &str, precondition| store.set(&key("k"), value.to_owned().into(), precondition).await;
    let first = set("1", Precondition::none()).await.unwrap();
    assert!(!first.replaced && set("2", Precondition::none()).await.unwrap().replaced);
    for precondition in [Precondition::absent(), Precondition::present(), Precondition::at(first.version)] {
        let error = set("3", precondition).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unsupported { .. }), "{error:?}");
    }
    assert_eq!(server.bucket().objects["p/k"].bytes, "2");
}

#[tokio::test]
async fn old_probes_are_removed_by_the_clock_of_the_service_and_recent_ones_stay() {
    let server = server_of("s3://b/p").await;
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    // The service's clock is a day behind.
    for (name, age) in [("p/.zarrd/probe-old", 26), ("p/.zarrd/probe-new", 24), ("p/.zarrd/append-a", 26), ("p/k", 26)]
    {
        server.put(name, "x");
        server.bucket().objects.get_mut(name).unwrap().modified = SystemTime::now() - hours(age);
    }
    let yesterday = httpdate::fmt_http_date(SystemTime::now() - hours(24));
    server
        .on_request(move |request| (request.method == "HEAD").then(|| Fault::With("Last-Modified", yesterday.clone())));
    open(&server, "s3://b/p", WriteMode::Conditional).await.unwrap();
    assert_eq!(server.names(), ["p/.zarrd/append-a", "p/.zarrd/probe-new", "p/k"]);
}

#[tokio::test]
async fn a_probe_with_lost_answers_is_repeated() {
    let server = server_of("s3://b/p").await;
    let mut number = 0;
    server.on_request(move |request| {
        number += u32::from(request.method == "PUT");
        (request.method == "PUT" && matches!(number, 2 | 9)).then_some(Fault::Unanswered)
    });
    let store = open(&server, "s3://b/p", WriteMode::Conditional).await.unwrap();
    assert_eq!(store.guarantees().conditions, Conditions::Atomic);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_bucket_that_was_unreachable_is_probed_before_its_first_write() {
    for (flaws, is_exact) in
        [(Flaws::default(), true), (Flaws { ignores_create_only: true, ..Flaws::default() }, false)]
    {
        let server = server_of("s3://b/p").await;
        server.bucket().flaws = flaws;
        server.on_request(|_| Some(Fault::Answer(503, Vec::new(), String::new())));
        let mut options = options(&server);
        options.writes = WriteMode::Conditional;
        let url = "s3://b/p".parse().unwrap();
        let store = within(BucketStore::open_even_if_unreachable(&url, options)).await.unwrap();
        let declared = store.guarantees();
        assert_eq!((declared.writes, declared.conditions), (Writes::Key, Conditions::Atomic));
        let set = async || within(store.set(&key("k"), "value".into(), Precondition::absent())).await;
        let error = set().await.unwrap_err();
        assert!(matches!(&error, StoreError::Busy { .. }), "{error:?}");
        assert!(store.check_writable().await.is_err());
        server.on_request(|_| None);
        match (set().await, is_exact) {
            (Ok(_), true) => assert_eq!(server.names(), ["p/k"]),
            (Err(StoreError::Unsupported { what }), false) => {
                assert!(what.contains("an object that exists"), "{what}");
                assert_eq!(server.names(), Vec::<String>::new());
            }
            (result, _) => panic!("{result:?}"),
        }
        assert_eq!(store.check_writable().await.is_ok(), is_exact);
        assert_eq!(store.guarantees(), declared, "guarantees do not change");
    }
}

#[tokio::test]
async fn writers_that_wait_for_a_probe_which_fails_do_not_wait_for_another() {
    let server = server_of("s3://b/p").await;
    server.on_request(|_| Some(Fault::Answer(503, Vec::new(), String::new())));
    let mut options = options(&server);
    (options.writes, options.retries) = (WriteMode::Conditional, 0);
    let url = "s3://b/p".parse().unwrap();
    let store = within(BucketStore::open_even_if_unreachable(&url, options)).await.unwrap();
    server.forget();
    server.on_request(|_| Some(Fault::Stalled));
    let key = key("k");
    let writes = (0..20).map(|_| store.set(&key, "value".into(), Precondition::none()));
    let results = within(futures::future::join_all(writes)).await;
    assert!(results.iter().all(Result::is_err));
    assert!(server.requests().len() <= 4, "{:?}", server.methods());
}
