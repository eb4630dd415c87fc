//! `PROPFIND` and `MKCOL`.

use std::sync::Arc;

use http::{Method, StatusCode};
use zarrd_server::{AnonymousAccess, Settings};
use zarrd_store::{Key, MemoryStore, Precondition, WriteableStore};
use zarrd_wire::{dav, problem::ProblemType};

use super::{filled, hrefs, mkcol, options, property, propfind, set_many, sorted_hrefs};
use crate::common::{
    TestServer,
    contract::BASE_PATH,
    tokens::{ServerWithTokens, create_link, grants, new_link},
};

#[tokio::test]
async fn values_have_the_properties_that_get_shows() {
    let server = filled().await;
    for depth in ["0", "1", "infinity"] {
        let found = propfind(&server, "/store/lab/zarr.json", depth).await;
        assert_eq!(hrefs(&found), ["/store/lab/zarr.json"], "{depth}");
        let head = server.head("/store/lab/zarr.json", &[]).await;
        for (name, header) in [
            ("getetag", "etag"),
            ("getcontentlength", "content-length"),
            ("getlastmodified", "last-modified"),
            ("getcontenttype", "content-type"),
        ] {
            assert_eq!(property(&found, name), head.header(header), "{name}");
        }
        assert!(found.text().contains("<D:resourcetype/>"), "{found:?}");
        assert_eq!(found.text().matches("<D:propstat>").count(), 1);
        assert_eq!(found.text().matches("HTTP/1.1 200 OK").count(), 1);
    }
}

#[tokio::test]
async fn depth_chooses_what_is_described() {
    let server = filled().await;
    let all = [
        "/store/",
        "/store/a",
        "/store/lab-2/",
        "/store/lab-2/%C3%BC",
        "/store/lab/",
        "/store/lab/x/",
        "/store/lab/x/c/",
        "/store/lab/x/c/0",
        "/store/lab/x/zarr.json",
        "/store/lab/zarr.json",
        "/store/z",
    ];
    for (path, depth, expected) in [
        ("/store/", "0", &all[..1]),
        ("/store/", "infinity", &all),
        ("/store/lab", "infinity", &all[4..10]),
        ("/store/lab/", "0", &all[4..5]),
        ("/store/lab%2F", "1", &["/store/lab/", "/store/lab/x/", "/store/lab/zarr.json"]),
        ("/store/", "1", &["/store/", "/store/a", "/store/lab-2/", "/store/lab/", "/store/z"]),
    ] {
        let found = propfind(&server, path, depth).await;
        assert_eq!(sorted_hrefs(&found), expected, "{path} {depth}");
        let collections = expected.iter().filter(|href| href.ends_with('/')).count();
        assert_eq!(found.text().matches("<D:collection/>").count(), collections, "{path} {depth}");
        assert_eq!(found.text().matches("<D:getlastmodified>").count(), expected.len(), "{path} {depth}");
    }
    let without = server.request(dav::propfind(), "/store/", &[], "").await;
    assert_eq!(sorted_hrefs(&without), all, "the default is infinity");
    assert_eq!(server.request(dav::propfind(), "/store", &[], "").await.header("location"), "store/");
}

#[tokio::test]
async fn names_without_a_slash_are_values_first() {
    let server = filled().await;
    server.set("lab", b"value").await;
    assert_eq!(hrefs(&propfind(&server, "/store/lab", "1").await), ["/store/lab"]);
    assert_eq!(hrefs(&propfind(&server, "/store/lab/", "0").await), ["/store/lab/"]);
    let root = sorted_hrefs(&propfind(&server, "/store/", "1").await);
    assert!(root.contains(&"/store/lab".to_owned()) && root.contains(&"/store/lab/".to_owned()), "{root:?}");
}

#[tokio::test]
async fn names_without_a_value_or_a_key_below_are_not_found() {
    let server = TestServer::new();
    for path in ["/store/none", "/store/none/"] {
        for depth in ["0", "1", "infinity"] {
            propfind(&server, path, depth).await.problem(ProblemType::NoSuchKey);
        }
    }
    for depth in ["0", "1", "infinity"] {
        assert_eq!(hrefs(&propfind(&server, "/store/", depth).await), ["/store/"], "the root always exists");
    }
}

#[tokio::test]
async fn requested_properties_that_do_not_exist_are_not_found() {
    let server = filled().await;
    let body = "<propfind xmlns='DAV:'><prop><getetag/><s xmlns='urn:&lt;x&gt;'/></prop></propfind>";
    let found = server.request(dav::propfind(), "/store/a", &[("depth", "0")], body).await;
    assert_eq!(hrefs(&found), ["/store/a"]);
    let text = found.text();
    assert!(text.contains("<x:s xmlns:x=\"urn:&lt;x&gt;\"/></D:prop><D:status>HTTP/1.1 404 Not Found"), "{text}");
    assert!(text.contains("</D:getetag></D:prop><D:status>HTTP/1.1 200 OK") && !text.contains("getlast"), "{text}");
    let body = "<propfind xmlns='DAV:'><propname/></propfind>";
    let found = server.request(dav::propfind(), "/store/", &[("depth", "infinity")], body).await;
    assert_eq!(hrefs(&found).len(), 11);
    assert!(found.text().contains("<D:getcontentlength/>") && !found.text().contains("<D:collection/>"), "{found:?}");
}

#[tokio::test]
async fn invalid_requests_for_properties_are_rejected() {
    let server = filled().await;
    for depth in ["", "2", "-1", "infinite", "1,noroot"] {
        let problem = propfind(&server, "/store/", depth).await.problem(ProblemType::InvalidHeader);
        assert_eq!(problem.members.header.as_deref(), Some("Depth"), "{depth:?}");
    }
    let bomb = "<!DOCTYPE p [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]><propfind xmlns='DAV:'>\
         <prop>&b;</prop></propfind>";
    let deep = format!("<propfind xmlns='DAV:'>{}", "<prop>".repeat(1000));
    let many =
        format!("<propfind xmlns='DAV:'><prop>{}</prop></propfind>", "<a/>".repeat(1000).replace("<a/>", "<a/><b/>"));
    for body in ["x", "<propfind/>", "<propfind xmlns='DAV:'>", bomb, &deep] {
        server.request(dav::propfind(), "/store/a", &[], body.to_owned()).await.problem(ProblemType::InvalidBody);
    }
    assert_eq!(server.request(dav::propfind(), "/store/a", &[], many).await.status, StatusCode::MULTI_STATUS);
    let names: String = (0..65).map(|number| format!("<a{number}/>")).collect();
    let many = format!("<propfind xmlns='DAV:'><prop>{names}</prop></propfind>");
    server.request(dav::propfind(), "/store/a", &[], many).await.problem(ProblemType::InvalidBody);
    let large = " ".repeat((16 << 10) + 1);
    let problem = server.request(dav::propfind(), "/store/a", &[], large).await.problem(ProblemType::BodyTooLarge);
    assert_eq!(problem.members.limit, Some(16 << 10));
    for bad in ["/store/a/../b", "/store//a", "/store/%00"] {
        propfind(&server, bad, "0").await.problem(ProblemType::InvalidKey);
    }
}

#[tokio::test]
async fn each_resource_of_many_pages_is_described_once() {
    let store = MemoryStore::new();
    set_many(&store, (0..3000).map(|number| format!("{}/{}/{number:04}", number / 1000, number / 7))).await;
    let server = TestServer::over(Arc::new(store), Settings::default());
    let found = sorted_hrefs(&propfind(&server, "/store/", "infinity").await);
    let mut expected = vec!["/store/".to_owned()];
    for number in 0..3000 {
        let outer = format!("/store/{}/", number / 1000);
        let inner = format!("{outer}{}/", number / 7);
        expected.extend([format!("{inner}{number:04}"), inner, outer]);
    }
    expected.sort();
    expected.dedup();
    assert_eq!(found, expected);
    let below = sorted_hrefs(&propfind(&server, "/store/1/", "1").await);
    assert_eq!(below.len(), 145, "{below:?}");
}

#[tokio::test]
async fn more_than_a_hundred_thousand_resources_need_a_finite_depth() {
    let store = MemoryStore::new();
    set_many(&store, (0..99_999).map(|number| format!("d/{number:06}"))).await;
    let server = TestServer::over(Arc::new(store.clone()), Settings::default());
    let refused = propfind(&server, "/store/", "infinity").await;
    assert_eq!(
        (refused.status, refused.header("content-type")),
        (StatusCode::FORBIDDEN, "application/xml; charset=utf-8")
    );
    assert!(refused.text().contains("<D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>"), "{refused:?}");
    // With the collection itself there are as many as there may be.
    assert_eq!(hrefs(&propfind(&server, "/store/d/", "infinity").await).len(), 100_000);
    let key = Key::parse("d/x").unwrap();
    store.set(&key, "1".into(), Precondition::none()).await.unwrap();
    assert_eq!(propfind(&server, "/store/d/", "infinity").await.status, StatusCode::FORBIDDEN);
    assert_eq!(hrefs(&propfind(&server, "/store/d/", "1").await).len(), 100_001);
}

#[tokio::test]
async fn callers_see_the_way_to_what_they_may_read() {
    let sites = ServerWithTokens::closed();
    for key in ["lab/x", "lab/x/a", "lab/y/a", "other/a"] {
        sites.server.set(key, b"1").await;
    }
    let (_, token) = sites.token(&["read:lab/x/"]);
    let request = |path: &'static str, depth: &'static str| {
        let headers = [("depth", depth), ("authorization", token.as_str())];
        let server = &sites.server;
        async move { server.request(dav::propfind(), path, &headers, "").await }
    };
    assert_eq!(hrefs(&request("/store/", "1").await), ["/store/", "/store/lab/"]);
    assert_eq!(hrefs(&request("/store/lab", "1").await), ["/store/lab/", "/store/lab/x/"]);
    assert_eq!(hrefs(&request("/store/lab/", "0").await), ["/store/lab/"]);
    // The key of this name is not below the prefix.
    assert_eq!(sorted_hrefs(&request("/store/lab/x", "1").await), ["/store/lab/x/", "/store/lab/x/a"]);
    for (path, depth) in [("/store/", "infinity"), ("/store/lab/", ""), ("/store/lab/y/", "0"), ("/store/other/a", "0")]
    {
        request(path, depth).await.problem(ProblemType::Forbidden);
    }
}

#[tokio::test]
async fn urls_begin_like_those_of_the_client() {
    let sites = ServerWithTokens::with(
        AnonymousAccess::Granted(grants(&["write:/"])),
        Settings { base_path: BASE_PATH.parse().unwrap(), ..Settings::default() },
    );
    sites.server.set("lab/a", b"1").await;
    let found = propfind(&sites.server, &format!("{BASE_PATH}/store/lab/"), "1").await;
    assert_eq!(hrefs(&found), [format!("{BASE_PATH}/store/lab/"), format!("{BASE_PATH}/store/lab/a")]);
    let (_, link) = create_link(&sites.directory, new_link("lab/"));
    let found = propfind(&sites.server, &format!("/s/{link}/store/lab/a"), "0").await;
    assert_eq!(hrefs(&found), [format!("{BASE_PATH}/s/{link}/store/lab/a")]);
    let copied = super::copy(&sites.server, "/store/lab/a", &format!("{BASE_PATH}/store/lab/b")).await;
    assert_eq!(copied.status, StatusCode::CREATED);
    let denied = super::copy(&sites.server, &format!("/s/{link}/store/lab/a"), "/store/lab/c").await;
    denied.problem(ProblemType::Forbidden);
}

#[tokio::test]
async fn snapshots_have_the_properties_of_their_commit() {
    let server = filled().await;
    let id =
        server.request(Method::POST, "/snapshot?prefix=lab/", &[], "").await.json()["id"].as_str().unwrap().to_owned();
    server.set("lab/later", b"1").await;
    server.delete("/store/lab/zarr.json", &[]).await;
    let found = sorted_hrefs(&propfind(&server, &format!("/store/lab/?snapshot={id}"), "1").await);
    assert_eq!(found, ["/store/lab/", "/store/lab/x/", "/store/lab/zarr.json"]);
    propfind(&server, "/store/lab/?snapshot=0", "1").await.problem(ProblemType::SnapshotExpired);
}

#[tokio::test]
async fn options_show_the_class_and_the_methods() {
    let server = filled().await;
    let common = "GET, HEAD, DELETE, PROPFIND, PROPPATCH, COPY";
    for (path, allow) in [
        ("/store/a", "GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS".to_owned()),
        ("/store/lab/", format!("{common}, MOVE, MKCOL, OPTIONS")),
        ("/store/", format!("{common}, OPTIONS")),
    ] {
        let answer = server.request(options(), path, &[], "").await;
        assert_eq!((answer.header("allow"), answer.header("dav")), (allow.as_str(), "1"), "{path}");
    }
    assert_eq!(server.request(options(), "/node/a", &[], "").await.header("dav"), "");
    for method in ["LOCK", "UNLOCK"] {
        let answer = server.request(method.parse().unwrap(), "/store/a", &[], "").await;
        answer.problem(ProblemType::MethodNotAllowed);
    }
}

#[tokio::test]
async fn prefixes_are_erased_with_everything_below() {
    let server = filled().await;
    for depth in ["0", "1", "x"] {
        server.delete("/store/lab/", &[("depth", depth)]).await.problem(ProblemType::InvalidHeader);
    }
    assert_eq!(server.keys().await.len(), 6);
    assert_eq!(server.delete("/store/lab/", &[("depth", "infinity")]).await.status, StatusCode::OK);
    assert_eq!(server.keys().await, ["a", "lab-2/ü", "z"]);
}

#[tokio::test]
async fn collections_are_made_by_their_keys() {
    let server = filled().await;
    for path in ["/store/new", "/store/new/", "/store/new/deep/er/", "/store/lab/y"] {
        let made = mkcol(&server, path).await;
        assert_eq!((made.status, &made.body[..]), (StatusCode::CREATED, &b""[..]), "{path}");
    }
    propfind(&server, "/store/new/", "0").await.problem(ProblemType::NoSuchKey);
    for path in ["/store/lab", "/store/lab/", "/store/lab/x/c", "/store/a", "/store/a/"] {
        let problem = mkcol(&server, path).await.problem(ProblemType::MethodNotAllowed);
        assert!(problem.members.allow.contains(&"PROPFIND".to_owned()), "{path}");
    }
    mkcol(&server, "/store/").await.problem(ProblemType::MethodNotAllowed);
    let with_body = server.request(dav::mkcol(), "/store/new", &[], "<a/>").await;
    with_body.problem(ProblemType::UnsupportedMediaType);
    assert_eq!(server.keys().await.len(), 6);
}
