//! Tokens and share links: management, challenges, and what lies outside of a caller's prefix.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod common;

use std::{sync::Arc, time::Duration};

use access::{AccessDirectory, NewLink};
use axum::body::Body;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use common::{
    TestResponse, TestServer,
    arrays::v3,
    nodes::v3_array,
    tokens::{
        ServerWithTokens, closed_server_over, create_link, create_token, grants, in_an_hour, new_link, new_token,
    },
};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use server::AnonymousAccess;
use wire::{
    problem::ProblemType,
    time::{parse_rfc3339, rfc3339},
};

#[tokio::test]
async fn server_is_open_until_the_first_token() {
    let site = ServerWithTokens::new(AnonymousAccess::UntilFirstToken);
    assert_eq!(site.server.put("/store/a", &[], "1").await.status, StatusCode::CREATED);
    let (_, token) = site.token(&["read:/"]);
    site.server.get("/store/a", &[]).await.problem(ProblemType::Unauthorized);
    assert_eq!(site.get(&token, "/store/a").await.status, StatusCode::OK);
    site.send(&token, Method::PUT, "/store/a", json!(2)).await.problem(ProblemType::Forbidden);
}

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

#[tokio::test]
async fn server_without_directory_refuses_tokens() {
    let server = TestServer::new();
    server.get("/store/", &[("authorization", "Bearer zarrd_1_a_b")]).await.problem(ProblemType::Unauthorized);
    server.get("/s/zarrd/store/", &[]).await.problem(ProblemType::Unauthorized);
    assert_eq!(server.get("/store/", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn challenge_depends_on_who_asks() {
    let site = ServerWithTokens::closed();
    let both = "Basic realm=\"zarrd\", charset=\"UTF-8\", Bearer realm=\"zarrd\"";
    for (headers, challenge) in [
        (&[][..], both),
        (&[("sec-fetch-mode", "navigate")], both),
        (&[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")], both),
        (&[("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")], "Bearer realm=\"zarrd\""),
        (&[("sec-fetch-mode", "cors")], "Bearer realm=\"zarrd\""),
        (&[("sec-fetch-mode", "no-cors")], "Bearer realm=\"zarrd\""),
        (&[("authorization", "Bearer x"), ("sec-fetch-mode", "same-origin")], "Bearer realm=\"zarrd\""),
        (&[("origin", "http://viewer.example")], "Bearer realm=\"zarrd\""),
        (&[("origin", "http://viewer.example"), ("sec-fetch-mode", "navigate")], both),
    ] {
        let answer = site.server.get("/store/a", headers).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (StatusCode::UNAUTHORIZED, challenge));
    }
}

#[tokio::test]
async fn conflicting_and_misplaced_credentials_are_rejected() {
    let site = ServerWithTokens::closed();
    let (_, token) = site.token(&["admin:/"]);
    let share = json!({"prefix": "/", "expires": rfc3339(in_an_hour())});
    let link = site.send(&token, Method::POST, "/share", share).await.json()["link"].as_str().unwrap().to_owned();
    let both = site.get(&token, &format!("{link}/store/")).await;
    both.problem(ProblemType::InvalidHeader);
    let twice = [("authorization", token.as_str()), ("authorization", token.as_str())];
    site.server.get("/store/", &twice).await.problem(ProblemType::InvalidHeader);
    let secret = token.strip_prefix("Bearer ").unwrap();
    for parameter in ["token", "access_token", "%74oken"] {
        let query = format!("/store/?{parameter}={secret}");
        site.server.get(&query, &[]).await.problem(ProblemType::UnknownParameter);
        site.get(&token, &query).await.problem(ProblemType::UnknownParameter);
    }
    for header in ["Digest x", "Bearer", "Basic", "Basic e30=", &format!("Token {secret}"), &"x".repeat(3000)] {
        site.server.get("/store/", &[("authorization", header)]).await.problem(ProblemType::Unauthorized);
    }
}

#[tokio::test]
async fn administrator_manages_tokens_within_its_prefix() {
    let site = ServerWithTokens::closed();
    let (root_id, root) = site.token(&["admin:/"]);
    let (lab_id, lab) = site.token(&["admin:lab/", "read:public/"]);
    let (_, reader) = site.token(&["read:lab/"]);
    let new = json!({"name": "beamline", "allow": ["write:lab/exp1/", "read:lab/"], "expires": rfc3339(in_an_hour())});
    let created = site.send(&lab, Method::POST, "/token", new.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let created = created.json();
    assert_eq!(created["allow"], json!(["read:lab/", "write:lab/exp1/"]));
    assert_eq!((&created["name"], &created["maker"]), (&json!("beamline"), &json!(lab_id.to_string())));
    assert!(parse_rfc3339(created["expires"].as_str().unwrap()).is_some());
    let made = format!("Bearer {}", created["token"].as_str().unwrap());
    assert_eq!(site.send(&made, Method::PUT, "/store/lab/exp1/k", json!(1)).await.status, StatusCode::CREATED);
    site.send(&made, Method::PUT, "/store/lab/k", json!(1)).await.problem(ProblemType::Forbidden);

    // Nobody gives what they do not administer.
    for allow in [json!(["read:/"]), json!(["read:public/"]), json!(["admin:lab2/"]), json!(["read:lab/", "read:x/"])] {
        let new = json!({"name": "n", "allow": allow});
        site.send(&lab, Method::POST, "/token", new).await.problem(ProblemType::Forbidden);
    }
    site.send(&reader, Method::POST, "/token", new).await.problem(ProblemType::Forbidden);
    for bad in [
        json!({"name": "n", "allow": []}),
        json!({"name": "n", "allow": ["read:lab"]}),
        json!({"name": "n", "allow": ["own:lab/"]}),
        json!({"name": "n", "allow": ["read:lab/../x/"]}),
        json!({"name": "", "allow": ["read:lab/"]}),
        json!({"name": "n\u{1}", "allow": ["read:lab/"]}),
        json!({"name": "n", "allow": ["read:lab/"], "expires": "soon"}),
        json!({"name": "n", "allow": ["read:lab/"], "expires": "2001-01-01T00:00:00Z"}),
        json!({"name": "n", "allow": ["read:lab/"], "for": "ever"}),
        json!({"allow": ["read:lab/"]}),
        json!([]),
    ] {
        site.send(&lab, Method::POST, "/token", bad).await.problem(ProblemType::InvalidBody);
    }

    // An administrator sees the tokens of its prefix only.
    let ids = |answer: &TestResponse| -> Vec<String> {
        let tokens = answer.json()["tokens"].as_array().unwrap().clone();
        tokens.iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&site.get(&root, "/token").await).len(), 4);
    let seen = ids(&site.get(&lab, "/token").await);
    assert!(seen.len() == 2 && !seen.contains(&root_id.to_string()) && !seen.contains(&lab_id.to_string()), "{seen:?}");
    assert_eq!(ids(&site.get(&reader, "/token").await), Vec::<String>::new());
    assert!(!site.get(&root, "/token").await.text().contains(made.strip_prefix("Bearer ").unwrap()));

    // Revoking, with the same answer for tokens of others and for none.
    let made_id = created["id"].as_str().unwrap();
    let revoke = |token: String, id: String| {
        let site = &site;
        async move { site.send(&token, Method::DELETE, &format!("/token/{id}"), Value::Null).await }
    };
    for id in [root_id.to_string(), "0".repeat(32), "x".to_owned()] {
        revoke(lab.clone(), id).await.problem(ProblemType::NoSuchCredential);
    }
    revoke(reader.clone(), made_id.to_owned()).await.problem(ProblemType::NoSuchCredential);
    assert_eq!(revoke(lab.clone(), made_id.to_owned()).await.status, StatusCode::NO_CONTENT);
    revoke(lab, made_id.to_owned()).await.problem(ProblemType::NoSuchCredential);
    site.get(&made, "/store/lab/exp1/k").await.problem(ProblemType::Unauthorized);
}

#[tokio::test]
async fn share_link_reads_its_prefix_until_its_maker_is_revoked() {
    let site = ServerWithTokens::closed();
    site.server.set("lab/exp1/k", b"1").await;
    site.server.set("lab/other", b"2").await;
    let (id, maker) = site.token(&["read:lab/"]);
    for (prefix, problem) in [
        ("other/", ProblemType::Forbidden),
        ("", ProblemType::Forbidden),
        ("lab", ProblemType::InvalidBody),
        ("../", ProblemType::InvalidBody),
    ] {
        let share = json!({"prefix": prefix, "expires": rfc3339(in_an_hour())});
        site.send(&maker, Method::POST, "/share", share).await.problem(problem);
    }
    let share = json!({"name": "for Ada", "prefix": "lab/exp1/", "expires": rfc3339(in_an_hour())});
    let created = site.send(&maker, Method::POST, "/share", share.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let link = created.json()["link"].as_str().unwrap().to_owned();
    let value = site.server.get(&format!("{link}/store/lab/exp1/k"), &[]).await;
    assert_eq!((value.status, value.text()), (StatusCode::OK, "1"));
    assert_eq!(value.header("referrer-policy"), "no-referrer");
    assert_eq!(value.header("cache-control"), "private, no-cache");
    for path in ["/store/lab/other", "/store/lab/exp1", "/node/lab", "/array/lab"] {
        site.server.get(&format!("{link}{path}"), &[]).await.problem(ProblemType::Forbidden);
    }
    let path = format!("{link}/store/lab/exp1/k");
    site.server.put(&path, &[], "3").await.problem(ProblemType::Forbidden);
    site.server.get(&format!("{link}/token"), &[]).await.problem(ProblemType::Forbidden);
    // The way to the prefix can be listed.
    let listing = site.server.get(&format!("{link}/store/lab/"), &[]).await.json();
    assert_eq!((&listing["prefixes"], &listing["keys"]), (&json!(["lab/exp1/"]), &json!([])));

    let listed = site.get(&maker, "/share").await.json();
    assert_eq!(listed["shares"][0]["name"], "for Ada");
    assert!(!listed.to_string().contains(link.rsplit('_').next().unwrap()));
    let share_path = format!("/share/{}", listed["shares"][0]["id"].as_str().unwrap());
    let (_, other) = site.token(&["read:/"]);
    assert_eq!(site.get(&other, "/share").await.json()["shares"], json!([]));
    site.send(&other, Method::DELETE, &share_path, Value::Null).await.problem(ProblemType::NoSuchCredential);
    assert_eq!(site.send(&maker, Method::DELETE, &share_path, Value::Null).await.status, StatusCode::NO_CONTENT);
    site.server.get(&path, &[]).await.problem(ProblemType::Unauthorized);

    let created = site.send(&maker, Method::POST, "/share", share).await.json();
    let path = format!("{}/store/lab/exp1/k", created["link"].as_str().unwrap());
    assert_eq!(site.server.get(&path, &[]).await.status, StatusCode::OK);
    site.directory.revoke(id).unwrap();
    site.server.get(&path, &[]).await.problem(ProblemType::Unauthorized);
}

#[tokio::test]
async fn groups_outside_of_the_prefix_are_not_created() {
    let site = ServerWithTokens::closed();
    let (_, token) = site.token(&["write:lab/exp1/"]);
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let created = site.send(&token, Method::PUT, "/node/lab/exp1/a/b", group.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let keys = site.server.all().await;
    let names: Vec<_> = keys.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(names, ["lab/exp1/a/b/zarr.json", "lab/exp1/a/zarr.json", "lab/exp1/zarr.json"]);
    let (_, token) = site.token(&["write:/"]);
    assert_eq!(site.send(&token, Method::PUT, "/node/other/a", group).await.status, StatusCode::CREATED);
    assert!(site.server.value("other/zarr.json").await.is_some());
}

#[tokio::test]
async fn consolidated_metadata_above_the_prefix_is_kept_current() {
    let site = ServerWithTokens::closed();
    let group = |consolidated: Value| {
        let mut group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        if !consolidated.is_null() {
            group["consolidated_metadata"] = consolidated;
        }
        group.to_string()
    };
    let child = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let consolidated = json!({"kind": "inline", "must_understand": false, "metadata": {"exp1": child}});
    let put = async |key: &str, text: String| {
        let key = store::Key::parse(key).unwrap();
        site.server.store.set(&key, text.into_bytes().into(), store::Precondition::none()).await.unwrap();
    };
    put("lab/zarr.json", group(consolidated)).await;
    put("lab/exp1/zarr.json", group(Value::Null)).await;
    let (_, token) = site.token(&["write:lab/exp1/"]);
    let patch = json!({"attributes": {"a": 1}});
    assert_eq!(site.send(&token, Method::PATCH, "/node/lab/exp1", patch).await.status, StatusCode::OK);
    let above: Value = serde_json::from_slice(&site.server.value("lab/zarr.json").await.unwrap()).unwrap();
    assert_eq!(above["consolidated_metadata"]["metadata"]["exp1"]["attributes"], json!({"a": 1}));
    site.get(&token, "/node/lab").await.problem(ProblemType::Forbidden);
}

#[tokio::test]
async fn cursors_belong_to_their_caller() {
    let site = ServerWithTokens::closed();
    for key in [&b"1"[..]; 3].iter().enumerate().map(|(number, _)| ["lab/a", "lab/b", "lab/c"][number]) {
        site.server.set(key, b"1").await;
    }
    for node in ["lab/x", "lab/y", "lab/z"] {
        v3(&site.server, node, json!("uint8"), &[1], &[1], json!(0)).await;
    }
    site.server.set("lab/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let (_, one) = site.token(&["read:lab/"]);
    let (_, two) = site.token(&["read:lab/"]);
    for path in ["/store/lab/?list=keys&limit=1", "/store/lab/?limit=1", "/node/lab?limit=1"] {
        let first = site.get(&one, path).await;
        let cursor = match first.header("zarr-cursor") {
            "" => first.json()["cursor"].as_str().unwrap().to_owned(),
            cursor => cursor.to_owned(),
        };
        let next = format!("{path}&cursor={cursor}");
        assert_eq!(site.get(&one, &next).await.status, StatusCode::OK, "{path}");
        site.get(&two, &next).await.problem(ProblemType::InvalidCursor);
        let bare = format!("{path}&cursor={}", cursor.rsplit_once('.').unwrap().0);
        site.get(&one, &bare).await.problem(ProblemType::InvalidCursor);
    }
}

/// The ids on a page of tokens or share links, and its cursor.
async fn page(site: &ServerWithTokens, token: &str, path: &str) -> (Vec<String>, Option<String>) {
    let answer = site.get(token, path).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
    let answer = answer.json();
    let entries = answer["tokens"].as_array().or_else(|| answer["shares"].as_array()).unwrap();
    let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
    (ids, answer["cursor"].as_str().map(str::to_owned))
}

/// The ids on each page of so many.
async fn pages(site: &ServerWithTokens, token: &str, path: &str, limit: usize) -> Vec<Vec<String>> {
    let (first, mut cursor) = page(site, token, &format!("{path}?limit={limit}")).await;
    let mut pages = vec![first];
    while let Some(last) = cursor {
        let (ids, next) = page(site, token, &format!("{path}?limit={limit}&cursor={last}")).await;
        pages.push(ids);
        cursor = next;
    }
    pages
}

#[tokio::test]
async fn pages_of_tokens_and_links_are_one_listing() {
    let site = ServerWithTokens::closed();
    let ((root_id, root), (lab_id, lab)) = (site.token(&["admin:/"]), site.token(&["admin:lab/"]));
    let ((one, _), (other, _)) = (site.token(&["read:lab/exp1/"]), site.token(&["read:other/"]));
    site.copy("tokens", one, 1..1249);
    site.copy("tokens", other, 1249..2497);
    let (link, _) = create_link(&site.directory, NewLink { maker: Some(lab_id), ..new_link("lab/") });
    site.copy("links", link, 1..2500);
    for (caller, path, count) in
        [(&root, "/token", 2500), (&lab, "/token", 1250), (&root, "/share", 2500), (&lab, "/share", 2500)]
    {
        let (all, cursor) = page(&site, caller, &format!("{path}?limit=10000")).await;
        assert!((all.len(), cursor) == (count, None) && all.is_sorted(), "{path}");
        for limit in [100, 999, count / 2, count - 1] {
            let pages = pages(&site, caller, path, limit).await;
            let lens: Vec<_> = pages.iter().map(Vec::len).collect();
            let (last, full) = lens.split_last().unwrap();
            assert!(full.iter().all(|len| *len == limit) && (1..=limit).contains(last), "{path} {limit}: {lens:?}");
            assert_eq!(pages.concat(), all, "{path} {limit}");
        }
        let (default, _) = page(&site, caller, path).await;
        assert_eq!(default, all[..1000], "{path}");
    }
    let (of_lab, _) = page(&site, &lab, "/token?limit=10000").await;
    assert!([root_id, other].iter().all(|id| !of_lab.contains(&id.to_string())));
    // Changes between two pages, of which the first one ends with a token that is revoked.
    let (first, cursor) = page(&site, &root, "/token?limit=1200").await;
    site.directory.revoke(first.last().unwrap().parse().unwrap()).unwrap();
    let (_, made) = site.token(&["admin:/"]);
    let (rest, _) = page(&site, &root, &format!("/token?limit=10000&cursor={}", cursor.unwrap())).await;
    let (all, _) = page(&site, &made, "/token?limit=10000").await;
    let expected: Vec<_> = all.into_iter().filter(|id| id > first.last().unwrap()).collect();
    assert_eq!(rest, expected);
}

#[tokio::test]
async fn pages_of_long_grants_end_early() {
    let site = ServerWithTokens::closed();
    let (_, root) = site.token(&["admin:/"]);
    let prefixes: Vec<_> = (0..10).map(|number| format!("read:{number}/{}/", "\"".repeat(700))).collect();
    let (long, _) = create_token(&site.directory, new_token(&prefixes));
    site.copy("tokens", long, 1..200);
    let (all, lens) = {
        let pages = pages(&site, &root, "/token", 150).await;
        (pages.concat(), pages.iter().map(Vec::len).collect::<Vec<_>>())
    };
    assert!(all.len() == 201 && all.is_sorted() && lens.len() == 6, "{lens:?}");
    let answer = site.get(&root, "/token?limit=10000").await;
    assert!(answer.body.len() < 600 << 10, "{}", answer.body.len());
}

#[tokio::test]
async fn page_holds_memory_until_it_is_sent() {
    let site = ServerWithTokens::closed();
    let (id, root) = site.token(&["admin:/"]);
    site.copy("tokens", id, 1..500);
    let taken = || site.app.arrays().memory().usage().taken;
    assert_eq!(taken(), 0);
    let request = Request::get("/token").header("host", "localhost:8000").header("authorization", &root);
    let answer = site.server.send_unchecked(request.body(Body::empty()).unwrap()).await;
    let len: u64 = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
    assert!(len > 50_000 && (len..len + 2048).contains(&taken()), "{len} {}", taken());
    drop(answer);
    assert_eq!(taken(), 0);
}

#[tokio::test]
async fn invalid_pages_of_tokens_and_links_are_rejected() {
    let site = ServerWithTokens::closed();
    let (id, one) = site.token(&["admin:/"]);
    let (_, two) = site.token(&["admin:/"]);
    let (link, _) = create_link(&site.directory, new_link("lab/"));
    site.copy("links", link, 1..3);
    for path in ["/token", "/share"] {
        for (query, problem) in [
            ("limit=0", ProblemType::InvalidParameter),
            ("limit=10001", ProblemType::InvalidParameter),
            ("limit=x", ProblemType::InvalidParameter),
            ("limit=1&limit=1", ProblemType::DuplicateParameter),
            ("cursor=%zz", ProblemType::InvalidParameter),
            ("cursor=", ProblemType::InvalidCursor),
            ("cursor=x", ProblemType::InvalidCursor),
            (&format!("cursor={id}"), ProblemType::InvalidCursor),
            (&format!("cursor=.{id}"), ProblemType::InvalidCursor),
            (&format!("cursor=x.{id}"), ProblemType::InvalidCursor),
            ("list=keys", ProblemType::UnknownParameter),
        ] {
            site.get(&one, &format!("{path}?{query}")).await.problem(problem);
        }
        let (_, cursor) = page(&site, &one, &format!("{path}?limit=1")).await;
        let next = format!("{path}?limit=1&cursor={}", cursor.unwrap());
        assert_eq!(page(&site, &one, &next).await.0.len(), 1);
        site.get(&two, &next).await.problem(ProblemType::InvalidCursor);
    }
}

#[tokio::test]
async fn listing_above_shows_only_the_way() {
    let site = ServerWithTokens::closed();
    for key in ["a/k", "lab/exp1/k", "lab/secret/k", "lab/k", "public/k"] {
        site.server.set(key, b"1").await;
    }
    let (_, token) = site.token(&["read:lab/exp1/", "write:missing/x/", "read:public/"]);
    let prefixes = async |path: &str| {
        let listing = site.get(&token, path).await;
        assert_eq!(listing.status, StatusCode::OK, "{path}");
        let listing = listing.json();
        (listing["prefixes"].clone(), listing["keys"].clone())
    };
    assert_eq!(prefixes("/store/").await, (json!(["lab/", "missing/", "public/"]), json!([])));
    assert_eq!(prefixes("/store/lab/").await, (json!(["lab/exp1/"]), json!([])));
    assert_eq!(prefixes("/store/missing/").await, (json!(["missing/x/"]), json!([])));
    assert_eq!(prefixes("/store/public/").await, (json!([]), json!(["public/k"])));
    let html = site.server.get("/store/", &[("authorization", &token), ("accept", "text/html")]).await;
    assert!(html.text().contains("href=\"lab/\"") && !html.text().contains("href=\"a/\""), "{}", html.text());
    for path in ["/store/?list=keys", "/store/lab/?list=keys", "/store/a/", "/store/lab/secret/", "/node/", "/node/lab"]
    {
        site.get(&token, path).await.problem(ProblemType::Forbidden);
    }
}

#[tokio::test]
async fn pages_change_data_with_a_bearer_token_only() {
    let site = ServerWithTokens::closed();
    let (_, bearer) = site.token(&["write:/"]);
    let secret = bearer.strip_prefix("Bearer ").unwrap();
    let basic = format!("Basic {}", STANDARD.encode(format!("u:{secret}")));
    let put = async |authorization: &str, headers: &[(&'static str, &'static str)]| {
        let mut headers = headers.to_vec();
        headers.push(("authorization", authorization));
        site.server.request(Method::PUT, "/store/k", &headers, "1").await
    };
    let page = [("origin", "https://other.example"), ("sec-fetch-site", "cross-site")];
    assert!(put(&bearer, &page).await.status.is_success());
    put(&basic, &page).await.problem(ProblemType::ForbiddenOrigin);
    put(&basic, &[("sec-fetch-site", "cross-site")]).await.problem(ProblemType::ForbiddenOrigin);
    assert!(put(&basic, &[]).await.status.is_success());
    assert!(put(&basic, &[("sec-fetch-site", "none")]).await.status.is_success());
    let preflight = async |asked: &str| {
        let headers = [
            ("origin", "https://other.example"),
            ("access-control-request-method", "PUT"),
            ("access-control-request-headers", asked),
        ];
        let answer = site.server.request(Method::OPTIONS, "/store/k", &headers, "").await;
        answer.header("access-control-allow-methods").contains("PUT")
    };
    assert!(preflight("content-type, Authorization").await);
    assert!(!preflight("content-type").await);
}

#[tokio::test]
async fn unreadable_directory_denies_and_is_reported() {
    let site = ServerWithTokens::new(AnonymousAccess::Granted(grants(&["read:public/"])));
    site.server.set("public/k", b"1").await;
    let (_, token) = site.token(&["admin:/"]);
    assert_eq!(site.server.get("/readyz", &[]).await.status, StatusCode::OK);
    std::fs::remove_dir_all(site.directory.path()).unwrap();
    site.directory.reload_if_changed();
    site.server.get("/readyz", &[]).await.problem(ProblemType::AccessUnavailable);
    site.get(&token, "/store/public/k").await.problem(ProblemType::AccessUnavailable);
    site.server.get("/store/k", &[]).await.problem(ProblemType::AccessUnavailable);
    assert_eq!(site.server.get("/store/public/k", &[]).await.status, StatusCode::OK);
    assert_eq!(site.server.get("/healthz", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn two_servers_share_a_directory() {
    let site = ServerWithTokens::closed();
    let other = Arc::new(AccessDirectory::open(site.directory.path()).unwrap());
    let second = closed_server_over(&other, site.server.store.clone());
    site.server.set("k", b"1").await;
    let (id, token) = site.token(&["read:/"]);
    other.reload_if_changed();
    let headers = [("authorization", token.as_str())];
    assert_eq!(second.get("/store/k", &headers).await.status, StatusCode::OK);
    site.directory.revoke(id).unwrap();
    site.server.get("/store/k", &headers).await.problem(ProblemType::Unauthorized);
    other.reload_if_changed();
    second.get("/store/k", &headers).await.problem(ProblemType::Unauthorized);
}
