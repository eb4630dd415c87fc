//! Tokens and share links: management, challenges, and what lies outside of a caller's prefix.

mod lost_rights;
mod pages;

use std::sync::Arc;

use crate::common::{
    TestResponse, TestServer,
    tokens::{ServerWithTokens, closed_server_over, create_token, grants, in_an_hour, new_token},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_access::AccessDirectory;
use zarrd_server::{AccessPolicy, AnonymousAccess, DirectorySlot, Settings};
use zarrd_wire::{
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

#[tokio::test]
async fn server_without_directory_refuses_tokens() {
    let server = TestServer::new();
    server.get("/store/", &[("authorization", "Bearer zarrd_1_a_b")]).await.problem(ProblemType::Unauthorized);
    server.get("/s/zarrd/store/", &[]).await.problem(ProblemType::Unauthorized);
    assert_eq!(server.get("/store/", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn token_of_another_server_counts_at_once() {
    let site = ServerWithTokens::closed();
    site.server.set("a", b"1").await;
    // The directory is not watched here.
    let other = AccessDirectory::open(site.dir.path()).unwrap();
    for _ in 0..3 {
        let (_, token) = create_token(&other, new_token(&["read:/"]));
        assert_eq!(site.get(&format!("Bearer {token}"), "/store/a").await.status, StatusCode::OK);
    }
    other.rotate().unwrap();
    let (_, token) = create_token(&other, new_token(&["read:/"]));
    assert_eq!(site.get(&format!("Bearer {token}"), "/store/a").await.status, StatusCode::OK);
    site.get("Bearer zarrd_1_a_b", "/store/a").await.problem(ProblemType::Unauthorized);
}

#[tokio::test]
async fn directory_that_comes_to_exist_is_opened_for_the_first_token() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access");
    let slot = DirectorySlot::default();
    let opened = path.clone();
    slot.set_opener(move |slot| {
        if let Ok(directory) = AccessDirectory::open_existing(&opened) {
            slot.set(Arc::new(directory));
        }
    });
    let access = AccessPolicy { directory: slot, ..AccessPolicy::default() };
    let server = TestServer::with(Settings { access, ..Settings::default() });
    let ask = async |token: &str| server.get("/store/", &[("authorization", &format!("Bearer {token}"))]).await;
    ask("zarrd_1_a_b").await.problem(ProblemType::Unauthorized);
    let (_, token) = create_token(&AccessDirectory::open(path).unwrap(), new_token(&["read:/"]));
    assert_eq!(ask(&token).await.status, StatusCode::OK);
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
        let key = zarrd_store::Key::parse(key).unwrap();
        site.server.store.set(&key, text.into_bytes().into(), zarrd_store::Precondition::none()).await.unwrap();
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
