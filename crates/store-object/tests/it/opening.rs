//! Opening buckets: with a profile, at an endpoint without encryption, and while the service is down.

use std::{fs, time::Duration};

use zarrd_store::{ListableStore, Listing, PageRequest, Prefix, ReadableStore, StoreError};
use zarrd_store_object::{BucketStore, OpenError, Options, ProfileError};

use crate::common::{Dialect, Fault, SECRET, Server, key, options, variables};

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
