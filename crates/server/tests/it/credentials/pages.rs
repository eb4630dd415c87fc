//! Listings of tokens and share links in pages, and cursors.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::json;
use zarrd_access::NewLink;
use zarrd_wire::problem::ProblemType;

use crate::common::{
    arrays::v3,
    tokens::{ServerWithTokens, create_link, create_token, new_link, new_token},
};

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
