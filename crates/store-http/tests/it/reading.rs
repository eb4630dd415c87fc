//! Reading files from a web server that fails, and that other programs change.

use std::time::{Duration, Instant};

use bytes::Bytes;
use zarrd_store::{
    BackendErrorKind, ByteRange, Keyed, ListableStore, PageRequest, ReadableStore, SnapshotStore, StoreError,
};
use zarrd_store_http::Failure;

use crate::common::{Dialect, Fault, Fixture, drain, failure, key, open, within};

const TIMES: &str = "?versions=last-modified";

fn large() -> Bytes {
    (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into()
}

fn refused(status: u16) -> Fault {
    Fault::Answer(status, vec![], "no".to_owned())
}

#[tokio::test]
async fn a_read_takes_one_request_and_keys_may_have_any_character() {
    let fixture = Fixture::new().await;
    for name in ["c/0/1", "a b/ä%2F", "x?y#z", ".zarray", "%2e"] {
        fixture.put(name, name.to_owned());
        assert_eq!(fixture.read(name).await.unwrap().as_deref(), Some(name.as_bytes()), "{name}");
        assert_eq!(fixture.server.methods(), ["GET"], "{name}");
        fixture.server.forget();
    }
    assert_eq!(fixture.read("none").await.unwrap(), None);
    assert_eq!(fixture.store.head(&key("none")).await.unwrap(), None);
    assert_eq!(fixture.store.head(&key("c/0/1")).await.unwrap().unwrap().size, 5);
    let listed = fixture.store.list(PageRequest::first(1)).await;
    assert!(matches!(listed, Err(StoreError::Unsupported { what: "listings" })), "{listed:?}");
}

#[tokio::test]
async fn ranges_are_read_whether_the_server_has_them_or_not() {
    for (dialect, query) in [(Dialect::Complete, ""), (Dialect::Simple, TIMES)] {
        let fixture = Fixture::open(dialect, query).await;
        fixture.put("a", "0123456789");
        fixture.put("empty", "");
        let get = async |at: &str, range| within(fixture.store.get(&key(at), Some(range))).await;
        let bounded = |start, end| ByteRange::bounded(start, end).unwrap();
        let last = |count| ByteRange::last(count).unwrap();
        for (range, expected) in [
            (bounded(2, 5), "234"),
            (bounded(8, u64::MAX), "89"),
            (ByteRange::From(7), "789"),
            (last(3), "789"),
            (last(30), "0123456789"),
            (last(u64::MAX), "0123456789"),
        ] {
            let value = get("a", range).await.unwrap().unwrap();
            assert_eq!(value.bytes().await.unwrap(), expected, "{dialect:?} {range:?}");
        }
        for range in [bounded(10, 12), ByteRange::From(10), ByteRange::From(u64::MAX)] {
            let result = get("a", range).await;
            assert!(
                matches!(result, Err(StoreError::RangeNotSatisfiable { meta }) if meta.size == 10),
                "{dialect:?} {range:?}"
            );
            assert!(get("none", range).await.unwrap().is_none(), "{dialect:?} {range:?}");
        }
        let value = get("empty", last(3)).await.unwrap().unwrap();
        assert_eq!((value.range.clone(), value.bytes().await.unwrap().len()), (0..0, 0), "{dialect:?}");
        let result = get("empty", ByteRange::From(0)).await;
        assert!(matches!(result, Err(StoreError::RangeNotSatisfiable { meta }) if meta.size == 0), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_range_of_a_large_value_is_cut_out_of_all_of_it_if_the_server_ignores_ranges() {
    let fixture = Fixture::new().await;
    fixture.put("a", large());
    fixture.server.on_request(|_| Some(Fault::Ignoring("range")));
    let range = 5_000_001..9_000_007;
    let asked = ByteRange::bounded(range.start, range.end).ok();
    let value = fixture.store.get(&key("a"), asked).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), large().slice(5_000_001..9_000_007));
}

#[tokio::test]
async fn a_body_that_breaks_is_resumed_where_it_broke_and_only_for_the_same_value() {
    for is_ignored in [false, true] {
        let fixture = Fixture::new().await;
        fixture.put("a", large());
        let mut faults = vec![Fault::Broken(1_000_000), Fault::Lost, Fault::StalledAfter(2_000_000)].into_iter();
        fixture.server.on_request(move |_| faults.next().or(is_ignored.then_some(Fault::Ignoring("range"))));
        assert_eq!(fixture.read("a").await.unwrap(), Some(large()));
        let requests = fixture.server.requests();
        assert_eq!(requests.len(), 4);
        assert_eq!(requests[0].header("if-match"), None);
        for request in &requests[1..] {
            assert_eq!(request.header("if-match"), Some("\"00000000000000000000000000000001\""));
            assert!(request.header("range").unwrap().ends_with("-11999999"), "{request:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_while_the_value_changes_fails_and_mixes_nothing() {
    for (replacement, ignored) in [
        (Some("other".repeat(2_400_000)), "none"),
        (Some("other".repeat(2_400_000)), "if-match"),
        (Some("short".to_owned()), "none"),
        (None, "none"),
    ] {
        let fixture = Fixture::new().await;
        fixture.put("a", large());
        let mut first = true;
        fixture.server.on_request(move |_| match std::mem::take(&mut first) {
            true => Some(Fault::Broken(1_000_000)),
            false => Some(Fault::Ignoring(ignored)),
        });
        let value = fixture.get("a").await.unwrap().unwrap();
        match replacement {
            Some(replacement) => fixture.put("a", replacement),
            None => fixture.server.remove("p/a"),
        }
        let (bytes, end) = drain(value).await;
        assert!(matches!(end, Err(StoreError::Changed { .. })), "{end:?}");
        assert_eq!(bytes[..], large()[..bytes.len()]);
    }
}

#[tokio::test]
async fn a_body_that_always_ends_early_is_an_error_and_never_a_short_value() {
    let fixture = Fixture::new().await;
    fixture.put("a", "0123456789");
    fixture.server.on_request(|_| Some(Fault::Broken(0)));
    let (bytes, end) = drain(fixture.get("a").await.unwrap().unwrap()).await;
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().backend_kind(), Some(BackendErrorKind::Connection));
    assert_eq!(fixture.server.requests().len(), 4, "the request and three retries");
}

#[tokio::test]
async fn lost_answers_and_failures_that_pass_are_retried() {
    for fault in [Fault::Lost, Fault::Stalled, refused(500), refused(502), refused(503), refused(429), refused(408)] {
        let fixture = Fixture::new().await;
        fixture.put("a", "value");
        fixture.server.faults([fault.clone(), fault.clone()]);
        assert_eq!(fixture.read("a").await.unwrap().as_deref(), Some(&b"value"[..]), "{fault:?}");
        assert_eq!(fixture.server.requests().len(), 3, "{fault:?}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says_and_then_reported_as_busy() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    let after = |seconds: &str| Fault::Answer(503, vec![("Retry-After", seconds.to_owned())], String::new());
    fixture.server.faults([after("1")]);
    let begin = Instant::now();
    assert!(fixture.read("a").await.unwrap().is_some());
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    fixture.server.forget();
    fixture.server.on_request(|_| Some(refused(429)));
    let error = fixture.get("a").await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: None }), "{error:?}");
    assert_eq!(fixture.server.requests().len(), 4);
    // A time beyond the deadline is not waited for.
    fixture.server.forget();
    fixture.server.on_request(move |_| Some(after("600")));
    let error = fixture.get("a").await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: Some(after) } if after.as_secs() == 600), "{error:?}");
    assert_eq!(fixture.server.requests().len(), 1);
}

#[tokio::test]
async fn only_404_is_absence_and_other_answers_are_errors_that_name_the_key() {
    let page = |name| Fault::With("Content-Type", String::from(name));
    for (fault, kind, text) in [
        (refused(403), BackendErrorKind::PermissionDenied, "?absent=403"),
        (refused(401), BackendErrorKind::Unauthenticated, "401"),
        (refused(400), BackendErrorKind::Internal, "400"),
        (refused(410), BackendErrorKind::Internal, "410"),
        (refused(204), BackendErrorKind::Internal, "204"),
        (Fault::Without("ETag"), BackendErrorKind::InvalidResponse, "?versions=last-modified"),
        (Fault::With("ETag", "W/\"x\"".to_owned()), BackendErrorKind::InvalidResponse, "no strong ETag"),
        (Fault::With("Content-Encoding", "gzip".to_owned()), BackendErrorKind::InvalidResponse, "content coding"),
        (page("text/html; charset=utf-8"), BackendErrorKind::InvalidResponse, "HTML page"),
    ] {
        let fixture = Fixture::new().await;
        fixture.put("a/zarr.json", "value");
        fixture.server.on_request(move |_| Some(fault.clone()));
        for error in
            [fixture.get("a/zarr.json").await.unwrap_err(), fixture.store.head(&key("a/zarr.json")).await.unwrap_err()]
        {
            assert_eq!(error.backend_kind(), Some(kind), "{error:?}");
            let shown = std::error::Error::source(&error).unwrap().to_string();
            assert!(shown.contains(text) && shown.contains("/p/a/zarr.json"), "{shown}");
        }
        assert_eq!(fixture.server.methods(), ["GET", "HEAD"], "{text}");
    }
}

#[tokio::test]
async fn redirect_to_a_directory_of_another_origin_is_an_error() {
    for query in ["", "?redirects=follow"] {
        let fixture = Fixture::open(Dialect::Complete, query).await;
        let moved = |location: &str| Fault::Answer(301, vec![("Location", location.to_owned())], String::new());
        // Nobody listens on this port.
        for location in ["http://127.0.0.1:1/p/a/", "//127.0.0.1:1/p/a/", "http://user@127.0.0.1:1/p/a/"] {
            fixture.server.on_request(move |_| Some(moved(location)));
            for found in [fixture.read("a").await.map(drop), fixture.store.head(&key("a")).await.map(drop)] {
                let error = found.unwrap_err();
                assert!(
                    matches!(failure(&error), Failure::Redirect(_) | Failure::Connection(_)),
                    "{location}: {error:?}"
                );
            }
        }
        // One for a login is no directory either: it is followed, and leads nowhere.
        fixture.server.on_request(move |_| Some(moved("a/?login")));
        assert!(matches!(failure(&fixture.get("a").await.unwrap_err()), Failure::Redirect(_)));
        fixture.server.on_request(move |_| Some(moved("a/")));
        assert_eq!(fixture.read("a").await.unwrap(), None);
    }
}

#[tokio::test]
async fn weak_tags_are_enough_for_values_that_never_change() {
    for query in ["?recheck=never", "?recheck=never&versions=last-modified"] {
        let fixture = Fixture::open(Dialect::Complete, query).await;
        fixture.put("a", "0123456789");
        fixture.server.on_request(|_| Some(Fault::With("ETag", "W/\"x\"".to_owned())));
        assert_eq!(fixture.read("a").await.unwrap().unwrap(), "0123456789");
        let meta = fixture.store.head(&key("a")).await.unwrap().unwrap();
        let part = fixture.store.get_if_match(&key("a"), ByteRange::bounded(3, 6).ok(), meta.version).await;
        assert_eq!(within(part.unwrap().unwrap().bytes()).await.unwrap(), "345");
        assert_eq!(fixture.server.requests().iter().filter(|request| request.header("if-match").is_some()).count(), 0);
    }
}

#[tokio::test]
async fn with_absent_403_what_may_not_be_read_has_no_value() {
    let fixture = Fixture::open(Dialect::Complete, "?absent=403").await;
    fixture.put("a", "value");
    fixture.server.on_request(|_| Some(refused(403)));
    assert_eq!(fixture.read("a").await.unwrap(), None);
    assert_eq!(fixture.store.head(&key("a")).await.unwrap(), None);
    fixture.server.on_request(|_| Some(refused(401)));
    assert_eq!(fixture.get("a").await.unwrap_err().backend_kind(), Some(BackendErrorKind::Unauthenticated));
}

#[tokio::test]
async fn answers_are_asked_for_without_coding_and_unchanged_by_caches() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    fixture.read("a").await.unwrap();
    let request = fixture.server.requests().remove(0);
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!(request.header("cache-control"), Some("no-cache"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn an_answer_with_another_range_is_an_error() {
    let fixture = Fixture::new().await;
    fixture.put("a", "0123456789");
    for range in ["bytes 0-2/10", "bytes 3-9/10", "bytes 3-5/*", "bytes 3-5/4", "none"] {
        fixture.server.on_request(move |_| Some(Fault::With("Content-Range", range.to_owned())));
        let error = within(fixture.store.get(&key("a"), ByteRange::bounded(3, 6).ok())).await.unwrap_err();
        assert_eq!(failure(&error), Failure::Range, "{range}");
    }
}

#[tokio::test]
async fn an_endless_body_is_an_error_and_so_is_one_without_a_length() {
    let fixture = Fixture::new().await;
    fixture.put("a", "0123456789");
    fixture.server.on_request(|_| Some(Fault::Endless));
    assert_eq!(failure(&fixture.get("a").await.unwrap_err()), Failure::NoLength);
    // An endless page of an error is not read to its end.
    fixture.server.on_request(|request| (request.path == "/p/none").then_some(Fault::Endless));
    assert_eq!(fixture.read("none").await.unwrap(), None);
}

#[tokio::test]
async fn a_later_read_in_a_snapshot_is_conditional_and_a_changed_value_is_not_transferred() {
    let fixture = Fixture::new().await;
    fixture.put("a", large());
    let store = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    assert_eq!(snapshot.meta(&key("a")).await.unwrap().unwrap().size, 12_000_000);
    let range = ByteRange::bounded(0, 4).ok();
    let value = snapshot.get(&key("a"), range).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap()[..], [0; 4]);
    fixture.put("a", "other");
    for range in [None, range, ByteRange::last(2).ok(), Some(ByteRange::From(100))] {
        let result = snapshot.get(&key("a"), range).await;
        assert!(matches!(result, Err(StoreError::Changed { .. })), "{range:?} {result:?}");
    }
    let requests = fixture.server.requests();
    assert!(requests.iter().skip(1).all(|request| request.header("if-match").is_some()), "{requests:?}");
}

#[tokio::test]
async fn without_entity_tags_times_tell_values_apart_only_if_asked_for_and_once_they_are_old() {
    let fixture = Fixture::open(Dialect::Simple, "").await;
    fixture.put("a", "value");
    assert_eq!(failure(&fixture.get("a").await.unwrap_err()), Failure::NoValidator);
    let fixture = Fixture::open(Dialect::Simple, TIMES).await;
    fixture.put("a", "value");
    let first = fixture.store.head(&key("a")).await.unwrap().unwrap();
    assert_eq!(fixture.get("a").await.unwrap().unwrap().meta, first);
    assert_eq!(fixture.read("a").await.unwrap().as_deref(), Some(&b"value"[..]));
    fixture.put("a", "values");
    assert_ne!(fixture.store.head(&key("a")).await.unwrap().unwrap().version, first.version);
    // The server's clock says that it was modified now; a second later it does not.
    let (now, later) = ("Mon, 02 Nov 2026 10:00:01 GMT", "Mon, 02 Nov 2026 10:00:02 GMT");
    fixture.server.on_request(|_| Some(Fault::With("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT".to_owned())));
    fixture.server.forget();
    let begin = Instant::now();
    fixture.server.dates([now.to_owned(), later.to_owned()]);
    assert!(fixture.get("a").await.unwrap().is_some());
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
    assert_eq!(fixture.server.requests().len(), 2);
}

#[tokio::test]
async fn a_name_with_a_directory_has_no_value() {
    let fixture = Fixture::new().await;
    fixture.put("g/a/zarr.json", "{}");
    for name in ["g", "g/a"] {
        assert_eq!(fixture.read(name).await.unwrap(), None, "{name}");
        assert_eq!(fixture.store.head(&key(name)).await.unwrap(), None, "{name}");
    }
    let requests = fixture.server.requests();
    assert_eq!(requests.len(), 4, "the directory itself is not asked for");
}

fn redirect(location: String) -> Fault {
    Fault::Answer(302, vec![("Location", location)], String::new())
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_three_at_most() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    let steps = |count: u32| {
        let mut left = count;
        move |_: &crate::common::Request| {
            left = left.checked_sub(1)?;
            Some(redirect(format!("/p/a?step={left}")))
        }
    };
    fixture.server.on_request(steps(3));
    assert_eq!(fixture.read("a").await.unwrap().as_deref(), Some(&b"value"[..]));
    fixture.server.on_request(steps(4));
    fixture.server.forget();
    let error = fixture.get("a").await.unwrap_err();
    assert!(failure(&error).to_string().contains("after 3 others"), "{error:?}");
    assert_eq!(fixture.server.requests().len(), 4);
    for location in ["", "http://", "ftp://h/a", "http://ada:pw@127.0.0.1/a"] {
        fixture.server.on_request(move |_| Some(redirect(location.to_owned())));
        let error = fixture.get("a").await.unwrap_err();
        assert!(matches!(failure(&error), Failure::Redirect(_)), "{location}: {error:?}");
    }
}

#[tokio::test]
async fn redirects_to_other_origins_are_followed_only_if_asked_for_and_send_no_secret() {
    let other = Fixture::new().await;
    other.put("a", "elsewhere");
    for (query, followed) in [("", false), ("?redirects=follow", true)] {
        let fixture = Fixture::open(Dialect::Complete, query).await;
        let target = format!("{}/p/a?signature=secret", other.server.url());
        fixture.server.on_request(move |_| Some(redirect(target.clone())));
        other.server.forget();
        if followed {
            assert_eq!(fixture.read("a").await.unwrap().as_deref(), Some(&b"elsewhere"[..]));
            continue;
        }
        let error = fixture.get("a").await.unwrap_err();
        let text = format!("{error:?} {}", failure(&error));
        assert!(text.contains(&other.server.url()) && text.contains("?redirects=follow"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(other.server.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_wants_credentials_is_not_opened() {
    let fixture = Fixture::new().await;
    let url = fixture.server.url();
    fixture.server.on_request(|_| Some(refused(401)));
    let error = open(&url).await.unwrap_err().to_string();
    assert!(error.contains("401") && error.contains(&url), "{error}");
    for status in [200, 403, 404] {
        fixture.server.on_request(move |_| Some(refused(status)));
        open(&url).await.unwrap();
    }
    drop(fixture);
    let error = open(&url).await.unwrap_err().to_string();
    assert!(error.contains("no connection could be established") && error.contains(&url), "{error}");
}
