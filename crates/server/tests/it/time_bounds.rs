//! Bounds of times, which are decoded as the times that name them.

use http::Method;
use serde_json::json;
use zarrd_server::Settings;

use crate::{
    common::{TestServer, tokens::ServerWithTokens},
    labels::{create, document, get},
};

/// A day, as times of nanoseconds are written.
fn midnight(day: &str) -> String {
    format!("{day}T00:00:00")
}

/// `lab/time`, whose bounds are `lab/cells`, and `lab/time_bounds`, which no attribute names.
async fn fill_bounds(server: &TestServer) {
    let times = json!({"units": "days since 2020-01-30", "bounds": "cells"});
    create(server, "lab/time", &document("int16", &[2], &["time"], times), &json!([0, 1])).await;
    let bounds = document("int16", &[2, 2], &["time", "edge"], json!({}));
    create(server, "lab/cells", &bounds, &json!([[0, 1], [1, 2]])).await;
    create(server, "lab/time_bounds", &bounds, &json!([[0, 1], [1, 2]])).await;
}

#[tokio::test]
async fn bounds_of_times_are_decoded_as_the_times_are() {
    let server = TestServer::new();
    fill_bounds(&server).await;
    let days = |first: [u64; 3]| {
        json!([[0, 1], [1, 2]].map(|cell| cell.map(|day: usize| midnight(&format!("2020-01-{}", first[day])))))
    };
    let bounds = get(&server, "lab/cells?decode=cf").await;
    assert_eq!(
        bounds.json(),
        json!([["2020-01-30", "2020-01-31"], ["2020-01-31", "2020-02-01"]].map(|cell| cell.map(midnight)))
    );
    assert_eq!(get(&server, "lab/cells?reduce=max&decode=cf").await.json(), json!(midnight("2020-02-01")));
    for stored in ["lab/cells", "lab/time_bounds", "lab/time_bounds?decode=cf"] {
        assert_eq!(get(&server, stored).await.json(), json!([[0, 1], [1, 2]]), "{stored}");
    }
    // The tag is that of what is decoded.
    let patch = json!({"attributes": {"units": "days since 2020-01-10"}});
    assert!(server.json(Method::PATCH, "/node/lab/time", &patch).await.status.is_success());
    let later = server.get("/array/lab/cells?decode=cf", &[("if-none-match", bounds.header("etag"))]).await;
    assert_eq!(later.json(), days([10, 11, 12]));
    // Units of their own take precedence.
    let patch = json!({"attributes": {"units": "days since 2020-01-20"}});
    assert!(server.json(Method::PATCH, "/node/lab/cells", &patch).await.status.is_success());
    assert_eq!(get(&server, "lab/cells?decode=cf").await.json(), days([20, 21, 22]));
}

#[tokio::test]
async fn bounds_stay_numbers_for_those_who_may_not_read_the_times() {
    let closed = ServerWithTokens::closed();
    fill_bounds(&TestServer::over(closed.server.store.clone(), Settings::default())).await;
    let (_, bounds) = closed.token(&["read:lab/cells/"]);
    let (_, whole) = closed.token(&["read:lab/"]);
    for _ in 0..2 {
        let numbers = closed.get(&bounds, "/array/lab/cells?decode=cf").await.json();
        assert_eq!(numbers, json!([[0, 1], [1, 2]]));
        let times = closed.get(&whole, "/array/lab/cells?decode=cf").await.json();
        assert_eq!(times[0][0], json!(midnight("2020-01-30")));
    }
}
