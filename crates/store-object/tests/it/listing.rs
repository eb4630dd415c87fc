//! Listing buckets.

use std::time::Duration;

use zarrd_store::{ListableStore, PageRequest, Prefix, ReadableStore, StoreError};
use zarrd_store_object::{Failure, RequestError};

use crate::common::{Fault, Fixture, key, texts};

fn failure(error: &StoreError) -> Failure {
    let source = error.backend_source::<RequestError>();
    source.unwrap_or_else(|| panic!("{error:?} is not the failure of a request")).failure.clone()
}

fn contents(names: &[&str]) -> Fault {
    let time = "2024-01-01T00:00:00.000Z";
    let entry = |name: &&str| {
        format!(
            "<Contents><Key>p/{name}</Key><LastModified>{time}</LastModified><ETag>\"x\"</ETag><Size>1</Size></Contents>"
        )
    };
    let entries: String = names.iter().map(entry).collect();
    Fault::Answer(200, vec![], format!("<ListBucketResult>{entries}</ListBucketResult>"))
}

#[tokio::test]
async fn names_that_are_no_keys_are_skipped_and_all_others_are_listed() {
    for url in ["s3://b/p", "gs://b/p", "az://b/p"] {
        let fixture = Fixture::open(url).await;
        // Names in the bucket that are not below the prefix.
        for other in ["o", "p", "p/", "p-/x", "pq", "q/r"] {
            fixture.server.put(other, "");
        }
        let keys = ["a", "a b", "a&<b>", "a/c", "a/d/e", "b", "b-", "b/c", "ä"];
        fixture.put_names(&keys);
        for no_key in ["a/", "a//b", "b/../c", "b/./c", "/x", "c/", "d/\u{1}", "b/\u{7f}x", "//"] {
            fixture.put(no_key, "");
        }
        for limit in [1, 2, 3, 1_000] {
            assert_eq!(fixture.keys("", limit).await.unwrap(), keys, "{url} {limit}");
            assert_eq!(fixture.keys("b/", limit).await.unwrap(), ["b/c"], "{url} {limit}");
            let children = ["a", "a b", "a&<b>", "a/", "b", "b-", "b/", "c/", "d/", "ä"];
            assert_eq!(fixture.children("", limit).await.unwrap(), children, "{url} {limit}");
            assert_eq!(fixture.children("a/", limit).await.unwrap(), ["a/c", "a/d/"], "{url} {limit}");
            assert_eq!(fixture.children("c/", limit).await.unwrap(), [""; 0], "{url} {limit}");
        }
    }
}

#[tokio::test]
async fn an_empty_object_and_the_marker_of_its_directory_are_two_things() {
    let fixture = Fixture::new().await;
    fixture.put("marker/", "");
    fixture.put("object", "");
    assert_eq!(fixture.keys("", 10).await.unwrap(), ["object"]);
    assert_eq!(fixture.store.head(&key("marker")).await.unwrap(), None);
    assert_eq!(fixture.store.head(&key("object")).await.unwrap().unwrap().size, 0);
}

#[tokio::test]
async fn a_page_takes_one_request_for_each_thousand_names() {
    let fixture = Fixture::new().await;
    for number in 0..2_500 {
        fixture.put(&format!("{number:04}"), "x");
    }
    let page = fixture.store.list(PageRequest::first(10_000)).await.unwrap();
    assert_eq!((page.keys.len(), page.cursor), (2_500, None));
    assert_eq!(fixture.server.methods().len(), 3);
    fixture.server.forget();
    let page = fixture.store.list(PageRequest::first(10)).await.unwrap();
    assert_eq!(page.keys.len(), 10);
    assert_eq!(fixture.server.requests()[0].query.get("max-keys").map(String::as_str), Some("11"));
    let page = fixture.store.list(PageRequest::after(10, page.cursor.unwrap())).await.unwrap();
    assert_eq!(page.keys[0].key.as_str(), "0010");
    assert_eq!(fixture.server.requests()[1].query.get("start-after").map(String::as_str), Some("p/0009"));
}

#[tokio::test]
async fn a_listing_that_is_not_sorted_is_an_error() {
    let fixture = Fixture::new().await;
    for names in [&["b", "a"][..], &["a", "a"], &["B", "b", "C"]] {
        fixture.server.on_request(move |_| Some(contents(names)));
        let error = fixture.keys("", 10).await.unwrap_err();
        assert!(matches!(failure(&error), Failure::Unsorted { .. }), "{error:?}");
        assert!(texts(&error).contains("s3://b/p/"), "{error:?}");
    }
    // A service that begins at the beginning again.
    fixture.server.on_request(|_| Some(contents(&["a", "b", "c"])));
    let page = fixture.store.list(PageRequest::first(2)).await.unwrap();
    let error = fixture.store.list(PageRequest::after(2, page.cursor.unwrap())).await.unwrap_err();
    assert!(matches!(failure(&error), Failure::Unsorted { .. }), "{error:?}");
}

#[tokio::test]
async fn answers_that_are_no_listings_are_errors() {
    let fixture = Fixture::new().await;
    let root = |body: &str| format!("<ListBucketResult>{body}</ListBucketResult>");
    for body in [
        String::new(),
        "<!DOCTYPE html><html><body><p>Please log in<br></body></html>".to_owned(),
        "<html></html>".to_owned(),
        "{}".to_owned(),
        "<ListBucketResult><Contents>".to_owned(),
        root("<Contents><Key>p/a</Key><ETag>\"x\"</ETag></Contents>"),
        root("<Contents><Key>p/a</Key><Size>1</Size></Contents>"),
        root("<IsTruncated>true</IsTruncated>"),
        "<a>".repeat(100_000),
    ] {
        let shown: String = body.chars().take(80).collect();
        fixture.server.on_request(move |_| Some(Fault::Answer(200, vec![], body.clone())));
        let error = fixture.keys("", 10).await.unwrap_err();
        assert!(matches!(failure(&error), Failure::Listing(_) | Failure::NoValidator), "{shown}: {error:?}");
    }
}

#[tokio::test]
async fn an_error_after_the_status_of_success_is_retried() {
    let fixture = Fixture::new().await;
    fixture.put("a", "x");
    let body = "<Error><Code>SlowDown</Code></Error>".to_owned();
    fixture.server.faults([Fault::Answer(200, vec![], body)]);
    assert_eq!(fixture.keys("", 10).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_token_that_leads_nowhere_does_not_hang() {
    let fixture = Fixture::new().await;
    let body = "<ListBucketResult><NextContinuationToken>x</NextContinuationToken></ListBucketResult>";
    fixture.server.on_request(move |_| Some(Fault::Answer(200, vec![], body.to_owned())));
    let error = fixture.keys("", 10).await.unwrap_err();
    assert!(matches!(failure(&error), Failure::Listing(_)), "{error:?}");
    let mut count = 0;
    fixture.server.on_request(move |_| {
        count += 1;
        let body = body.replace(">x<", &format!(">{count}<"));
        Some(Fault::Answer(200, vec![], body))
    });
    let error = fixture.keys("", 10).await.unwrap_err();
    assert!(matches!(failure(&error), Failure::Listing(_)), "{error:?}");
}

#[tokio::test]
async fn a_refused_listing_is_an_error_even_with_absent_403() {
    let fixture = Fixture::open("s3://b/p?absent=403").await;
    fixture.server.on_request(|_| Some(Fault::Answer(403, vec![], "<Error><Code>AccessDenied</Code></Error>".into())));
    let error = fixture.children("a/", 10).await.unwrap_err();
    assert!(texts(&error).contains("s3://b/p/a/"), "{error:?}");
}

#[tokio::test]
async fn a_slow_or_broken_listing_is_repeated() {
    let fixture = Fixture::new().await;
    fixture.put_names(&["a", "b"]);
    fixture.server.faults([Fault::Broken(100), Fault::StalledAfter(100), Fault::Slow(Duration::from_millis(100))]);
    assert_eq!(fixture.keys("", 10).await.unwrap(), ["a", "b"]);
    assert_eq!(fixture.server.requests().len(), 3);
}

#[tokio::test]
async fn directories_of_a_hierarchical_namespace_are_no_keys() {
    let fixture = Fixture::open("az://b/p").await;
    let blob = |name: &str, more: &str| {
        format!(
            "<Blob><Name Encoded=\"true\">p/{name}</Name><Properties><Content-Length>1</Content-Length><Etag>x</Etag>{more}</Properties></Blob>"
        )
    };
    let directory = blob("a", "<ResourceType>directory</ResourceType>");
    let blobs = format!("{directory}{}{}", blob("a%2Fb", ""), blob("c%FF", ""));
    let body = format!("<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>");
    fixture.server.on_request(move |_| Some(Fault::Answer(200, vec![], body.clone())));
    let page = fixture.store.list_prefix(&Prefix::root(), PageRequest::first(10)).await.unwrap();
    assert_eq!(page.keys.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a/b"]);
}
