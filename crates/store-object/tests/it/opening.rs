//! Opening buckets: with a profile, at an endpoint without encryption, and while the service is down.

use std::{fs, time::Duration};

use zarrd_store::{
    Batch, Change, Conditions, ListableStore, Listing, PageRequest, Precondition, Prefix, ReadableStore, StoreError,
    StoreUrl, WriteableStore, Writes,
};
use zarrd_store_object::{BucketStore, BucketUrl, OpenError, Options, ProfileError};

use crate::common::{Dialect, Fault, Flaws, SECRET, Server, key, options, variables};

#[tokio::test]
async fn profiles_lead_to_a_bucket_and_sign_requests() {
    let server = Server::start(Dialect::S3).await;
    server.put("p/k", "value");
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    let config = format!("[profile lab]\nregion = lab-1\nendpoint_url = {}\n", server.url());
    fs::write(home.path().join(".aws/config"), config).unwrap();
    let credentials = format!("[lab]\naws_access_key_id = AKIDOFTHELAB\naws_secret_access_key = {SECRET}\n");
    fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
    let with = |more: &[(&str, &str)]| {
        let home = ("HOME", home.path().to_str().unwrap());
        let all = more.iter().copied().chain([home, ("AWS_ALLOW_HTTP", "true")]);
        Options::with_variables(all.map(|(name, value)| (name.to_owned(), value.to_owned())))
    };
    let store = BucketStore::open(&"s3://b/p".parse().unwrap(), with(&[("AWS_PROFILE", "lab")])).await.unwrap();
    server.forget();
    assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "value");
    let signature = server.requests()[0].header("authorization").unwrap().to_owned();
    assert!(signature.contains("Credential=AKIDOFTHELAB/") && signature.contains("/lab-1/s3/"), "{signature}");
    let error = BucketStore::open(&"s3://b/p".parse().unwrap(), with(&[("AWS_PROFILE", "absent")])).await.unwrap_err();
    assert!(matches!(error, OpenError::Profile { source: ProfileError::Missing { .. }, .. }), "{error:?}");
}

#[tokio::test]
async fn endpoints_without_encryption_name_the_variable_that_allows_them() {
    let server = Server::start(Dialect::S3).await;
    for (url, endpoint, allowance) in [
        ("s3://b", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP=true"),
        ("gs://b", "GOOGLE_BASE_URL", "GOOGLE_ALLOW_HTTP=true"),
        ("az://b", "AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP=true"),
    ] {
        let mut all = variables(&server);
        all.retain(|(name, _)| !name.ends_with("ALLOW_HTTP"));
        let error = BucketStore::open(&url.parse().unwrap(), Options::with_variables(all)).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(endpoint) && text.contains(allowance), "{text}");
    }
}

#[tokio::test]
async fn buckets_open_while_their_service_is_down_and_are_read_when_it_is_up() {
    let url = "s3://b/p".parse().unwrap();
    let server = Server::start(Dialect::S3).await;
    server.put("p/k", "value");
    server.on_request(|_| Some(Fault::Answer(503, Vec::new(), String::new())));
    assert!(matches!(BucketStore::open(&url, options(&server)).await, Err(OpenError::Request(_))));
    let store = BucketStore::open_even_if_unreachable(&url, options(&server)).await.unwrap();
    assert_eq!(store.guarantees().listing, Listing::Sorted);
    let error = store.get(&key("k"), None).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    server.on_request(|_| None);
    assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "value");
    assert_eq!(store.list_prefix(&Prefix::root(), PageRequest::first(9)).await.unwrap().keys.len(), 1);
    // A bucket that does not exist, or that refuses, is an error at once.
    server.on_request(|_| Some(Fault::Answer(403, Vec::new(), String::new())));
    let started = std::time::Instant::now();
    assert!(BucketStore::open_even_if_unreachable(&url, options(&server)).await.is_err());
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_bucket_is_served_for_writing_if_its_url_says_so_and_it_can_be_written() {
    let exact = Flaws::default();
    let inexact = Flaws { ignores_if_match: true, ..exact };
    for (options_of_url, flaws, conditions) in [
        ("", exact, None),
        ("?writes=no", exact, None),
        ("?writes=yes", exact, Some(Conditions::Atomic)),
        ("?writes=yes", inexact, None),
        ("?writes=last-wins", inexact, Some(Conditions::None)),
    ] {
        let server = Server::start(Dialect::S3).await;
        server.bucket().flaws = flaws;
        let url: BucketUrl = format!("s3://b/p{options_of_url}").parse().unwrap();
        assert_eq!(url.is_written(), !matches!(options_of_url, "" | "?writes=no"));
        let store = url.open_served(options(&server), None).await.unwrap();
        assert_eq!(store.is_writable(), conditions.is_some(), "{options_of_url} {flaws:?}");
        let guarantees = store.guarantees();
        assert_eq!(guarantees.read_only_reason.is_some(), url.is_written() && conditions.is_none(), "{guarantees}");
        let Some(conditions) = conditions else { continue };
        assert_eq!((guarantees.writes, guarantees.conditions), (Writes::Key, conditions));
        let writes = store.writes().unwrap();
        // What is written is seen at once, although metadata are cached.
        for value in ["one", "two", "three"] {
            let written = writes.set(&key("k"), value.into(), Precondition::none()).await.unwrap();
            assert_eq!(store.head(&key("k")).await.unwrap().unwrap().version, written.version);
            assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), value);
        }
        let created = writes.set(&key("k"), "four".into(), Precondition::absent()).await.unwrap_err();
        match conditions {
            Conditions::Atomic => assert!(matches!(created, StoreError::PreconditionFailed { .. }), "{created:?}"),
            _ => assert!(matches!(created, StoreError::Unsupported { .. }), "{created:?}"),
        }
        let changes = ["a/c/0", "a/zarr.json"].map(|at| Change::Put {
            key: key(at),
            value: at.into(),
            precondition: Precondition::none(),
        });
        let [chunk, document] = changes;
        writes.apply(Batch { chunks: vec![chunk], documents: vec![document] }).await.unwrap();
        assert_eq!(server.names(), ["p/a/c/0", "p/a/zarr.json", "p/k"]);
        assert!(writes.erase(&key("k"), Precondition::none()).await.unwrap());
        assert!(store.get(&key("k"), None).await.unwrap().is_none());
    }
}
