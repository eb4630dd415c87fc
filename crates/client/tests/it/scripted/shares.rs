//! Listings of share links.

use serde_json::{Value, json};
use zarrd_client::{RemoteError, ShareClient};

use crate::scripted::scripted_server::{ScriptedServer, Step, response};

fn page(ids: &[&str], cursor: Value) -> Step {
    let share = |id: &&str| {
        json!({
            "id": id, "name": "", "prefix": "lab/", "created": "2026-11-23T09:00:00.000Z",
            "expires": "2026-11-30T09:00:00.000Z",
        })
    };
    let shares: Vec<_> = ids.iter().map(share).collect();
    Step::Respond(response(200, &[], &json!({"shares": shares, "cursor": cursor}).to_string()))
}

async fn list(pages: impl IntoIterator<Item = Step>) -> (Result<Vec<String>, RemoteError>, Vec<String>) {
    let server = ScriptedServer::start(pages).await;
    let shares = ShareClient::from(server.store().connection()).list().await;
    let ids = shares.map(|shares| shares.into_iter().map(|share| share.id).collect());
    (ids, server.requests().into_iter().map(|request| request.line).collect())
}

#[tokio::test]
async fn listing_follows_its_cursors() {
    let (ids, requests) =
        list([page(&["a", "b"], json!("b.&=t")), page(&["c"], json!("c")), page(&[], json!(null))]).await;
    assert_eq!(ids.unwrap(), ["a", "b", "c"]);
    assert_eq!(
        requests,
        [
            "GET /mount/share?limit=1000",
            "GET /mount/share?limit=1000&cursor=b.%26%3Dt",
            "GET /mount/share?limit=1000&cursor=c",
        ]
    );
}

#[tokio::test]
async fn page_is_retried() {
    let (ids, requests) = list([page(&["a"], json!("a")), Step::Close, page(&["b"], json!(null))]).await;
    assert_eq!(ids.unwrap(), ["a", "b"]);
    assert_eq!(requests[1], requests[2]);
}

#[tokio::test]
async fn listing_that_does_not_advance_is_an_error() {
    for pages in [
        vec![page(&["b", "a"], json!(null))],
        vec![page(&["a", "a"], json!(null))],
        vec![page(&[], json!("x"))],
        vec![page(&["a"], json!("a")), page(&["a"], json!("a"))],
        vec![page(&["b"], json!("b")), page(&["a"], json!(null))],
        vec![page(&["a"], json!("a")), page(&[], json!("a"))],
    ] {
        let count = pages.len();
        let (ids, requests) = list(pages).await;
        assert!(matches!(ids, Err(RemoteError::InvalidResponse { .. })), "{ids:?}");
        assert_eq!(requests.len(), count);
    }
}
