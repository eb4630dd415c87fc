//! Uploads of callers who lose their rights meanwhile.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Method, StatusCode};
use zarrd_server::AnonymousAccess;
use zarrd_wire::problem::ProblemType;

use crate::common::{
    TestResponse,
    nodes::v3_array,
    tokens::{ServerWithTokens, grants},
};

/// Sends a request whose body ends after `meanwhile`.
async fn upload_around(
    site: &ServerWithTokens,
    headers: &[(&str, &str)],
    (method, path, body): (Method, &str, &str),
    meanwhile: impl AsyncFnOnce(),
) -> TestResponse {
    let (sender, receiver) = futures::channel::mpsc::unbounded::<Result<Bytes, std::io::Error>>();
    let (start, end) = body.split_at(1);
    sender.unbounded_send(Ok(start.to_owned().into())).unwrap();
    let ending = async {
        // The request is allowed and waits for the rest.
        tokio::time::sleep(Duration::from_millis(20)).await;
        meanwhile().await;
        // A request that failed before does not read it.
        let _ = sender.unbounded_send(Ok(end.to_owned().into()));
        drop(sender);
    };
    let request = site.server.request(method, path, headers, Body::from_stream(receiver));
    tokio::join!(request, ending).0
}

#[tokio::test]
async fn upload_is_not_stored_if_the_caller_loses_its_rights_meanwhile() {
    let array = v3_array("int32", &[2], &[2]).to_string();
    let token = r#"{"name":"late","allow":["read:lab/"]}"#;
    let uploads = [
        (Method::PUT, "/store/lab/new", "value"),
        (Method::PUT, "/array/lab/x", "[1, 2]"),
        (Method::PUT, "/node/lab/y", &array),
        (Method::PATCH, "/node/lab/x", r#"{"attributes":{"a":1}}"#),
        (Method::POST, "/token", token),
    ];
    for (method, path, body) in uploads {
        let site = ServerWithTokens::closed();
        let (id, authorization) = site.token(&["admin:lab/"]);
        let media_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let headers = [("authorization", &*authorization), ("content-type", media_type)];
        assert_eq!(
            site.send(&authorization, Method::PUT, "/node/lab/x", v3_array("int32", &[2], &[2])).await.status,
            201
        );
        let before = site.server.keys().await;
        let upload = (method.clone(), path, body);
        let revoke = async || site.directory.revoke(id).unwrap();
        upload_around(&site, &headers, upload, revoke).await.problem(ProblemType::Unauthorized);
        assert_eq!(site.server.keys().await, before, "{method} {path}");
        assert!(site.directory.list().unwrap().is_empty(), "{method} {path}");
        // The same upload is accepted from a token that stays.
        let (_, authorization) = site.token(&["admin:lab/"]);
        let headers = [("authorization", &*authorization), ("content-type", media_type)];
        let accepted = upload_around(&site, &headers, (method.clone(), path, body), async || {}).await;
        assert!(accepted.status.is_success(), "{method} {path}: {accepted:?}");
    }
}

#[tokio::test]
async fn upload_is_not_stored_if_the_server_is_closed_meanwhile() {
    let site = ServerWithTokens::new(AnonymousAccess::UntilFirstToken);
    let upload = (Method::PUT, "/store/a", "value");
    let make_token = async || drop(site.token(&["read:/"]));
    upload_around(&site, &[], upload, make_token).await.problem(ProblemType::Unauthorized);
    assert_eq!(site.server.value("a").await, None);
    let site = ServerWithTokens::new(AnonymousAccess::Granted(grants(&["write:/"])));
    let make_token = async || drop(site.token(&["read:/"]));
    let accepted = upload_around(&site, &[], (Method::PUT, "/store/a", "value"), make_token).await;
    assert_eq!(accepted.status, StatusCode::CREATED);
}
