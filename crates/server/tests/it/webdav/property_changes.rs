//! `PROPPATCH`.

use http::{Method, StatusCode};
use zarrd_server::{AnonymousAccess, Settings};
use zarrd_wire::{dav, problem::ProblemType};

use super::{filled, hrefs, values};
use crate::common::{
    TestResponse, TestServer,
    contract::BASE_PATH,
    tokens::{ServerWithTokens, grants},
};

/// A body with these instructions.
fn update(instructions: &str) -> String {
    format!("<propertyupdate xmlns='DAV:'>{instructions}</propertyupdate>")
}

async fn proppatch(server: &TestServer, path: &str, instructions: &str) -> TestResponse {
    server.request(dav::proppatch(), path, &[], update(instructions)).await
}

#[tokio::test]
async fn each_property_is_refused_with_its_reason() {
    let server = filled().await;
    let before = values(&server).await;
    let instructions = "<set><prop><getetag>x</getetag><s xmlns='urn:&lt;x&gt;'>1</s></prop></set>\
         <remove><prop><none/><getcontentlength/></prop></remove>";
    let expected = "<D:propstat><D:prop><D:getetag/><D:getcontentlength/></D:prop><D:status>HTTP/1.1 403 Forbidden</D:status>\
         <D:error><D:cannot-modify-protected-property/></D:error></D:propstat>\
         <D:propstat><D:prop><x:s xmlns:x=\"urn:&lt;x&gt;\"/></D:prop><D:status>HTTP/1.1 403 Forbidden</D:status>\
         <D:responsedescription>Properties of clients are not stored</D:responsedescription></D:propstat>\
         <D:propstat><D:prop><D:none/></D:prop><D:status>HTTP/1.1 424 Failed Dependency</D:status></D:propstat>";
    for (path, href) in [
        ("/store/a", "/store/a"),
        ("/store/lab", "/store/lab/"),
        ("/store/lab/", "/store/lab/"),
        ("/store/lab-2/%C3%BC", "/store/lab-2/%C3%BC"),
        ("/store/", "/store/"),
    ] {
        let answer = proppatch(&server, path, instructions).await;
        assert_eq!(hrefs(&answer), [href]);
        assert!(answer.text().contains(&format!("</D:href>{expected}</D:response>")), "{answer:?}");
        let removed = proppatch(&server, path, "<remove><prop><none/></prop></remove>").await;
        assert_eq!(hrefs(&removed), [href]);
        let expected = "<D:none/></D:prop><D:status>HTTP/1.1 200 OK</D:status>";
        assert!(removed.text().contains(expected) && !removed.text().contains("403"), "{removed:?}");
    }
    assert_eq!(values(&server).await, before);
}

#[tokio::test]
async fn properties_of_what_does_not_exist_are_not_found() {
    let server = filled().await;
    for path in ["/store/none", "/store/none/", "/store/la"] {
        proppatch(&server, path, "<set><prop><a/></prop></set>").await.problem(ProblemType::NoSuchKey);
    }
    let empty = TestServer::new();
    assert_eq!(hrefs(&proppatch(&empty, "/store/", "<set><prop><a/></prop></set>").await), ["/store/"]);
    let none = server.request(dav::proppatch(), "/store", &[], update("<set/>")).await;
    none.problem(ProblemType::MethodNotAllowed);
}

#[tokio::test]
async fn invalid_changes_of_properties_are_rejected() {
    let server = filled().await;
    let deep = update(&format!("<set>{}", "<prop>".repeat(1000)));
    let names: String = (0..65).map(|number| format!("<a{number}/>")).collect();
    let many = update(&format!("<set><prop>{names}</prop></set>"));
    let bomb = format!("<!DOCTYPE p [<!ENTITY a 'aaaaaaaaaa'>]>{}", update("<set><prop><a>&a;</a></prop></set>"));
    let of_another_kind = "<propfind xmlns='DAV:'><allprop/></propfind>".to_owned();
    for body in [String::new(), "x".to_owned(), update(""), update("<set/>"), of_another_kind, deep, many, bomb] {
        server.request(dav::proppatch(), "/store/a", &[], body).await.problem(ProblemType::InvalidBody);
    }
    let large = " ".repeat((16 << 10) + 1);
    let problem = server.request(dav::proppatch(), "/store/a", &[], large).await.problem(ProblemType::BodyTooLarge);
    assert_eq!(problem.members.limit, Some(16 << 10));
    for bad in ["/store/a/../b", "/store//a", "/store/%00"] {
        proppatch(&server, bad, "<set><prop><a/></prop></set>").await.problem(ProblemType::InvalidKey);
    }
    let query = proppatch(&server, "/store/a?snapshot=0", "<set><prop><a/></prop></set>").await;
    query.problem(ProblemType::UnknownParameter);
}

#[tokio::test]
async fn changes_of_properties_have_conditions() {
    let server = filled().await;
    let tag = server.head("/store/a", &[]).await.header("etag").to_owned();
    let request = |path: &'static str, name: &'static str, value: String| {
        let (server, body) = (&server, update("<set><prop><a/></prop></set>"));
        async move { server.request(dav::proppatch(), path, &[(name, value.as_str())], body).await }
    };
    for (path, name, value) in [
        ("/store/a", "if-match", "\"x\"".to_owned()),
        ("/store/a", "if-none-match", tag.clone()),
        ("/store/a", "if", "([\"x\"])".to_owned()),
        ("/store/a", "if-unmodified-since", "Sat, 21 Nov 2020 06:28:08 GMT".to_owned()),
        ("/store/lab/", "if", format!("([{tag}])")),
    ] {
        request(path, name, value).await.problem(ProblemType::PreconditionFailed);
    }
    request("/store/lab", "if-match", "*".to_owned()).await.problem(ProblemType::InvalidHeader);
    for (path, name, value) in [
        ("/store/a", "if-match", tag.clone()),
        ("/store/a", "if", format!("([{tag}])")),
        ("/store/lab", "if", "(Not <DAV:no-lock>)".to_owned()),
    ] {
        assert_eq!(request(path, name, value).await.status, StatusCode::MULTI_STATUS, "{path} {name}");
    }
}

#[tokio::test]
async fn urls_are_below_the_base_path_and_need_the_right_to_write() {
    let settings = Settings { base_path: BASE_PATH.parse().unwrap(), ..Settings::default() };
    let site = ServerWithTokens::with(AnonymousAccess::Granted(grants(&["read:/"])), settings);
    site.server.set("lab/a", b"1").await;
    let body = update("<set><prop><a/></prop></set>");
    let path = format!("{BASE_PATH}/store/lab/a");
    let (_, reader) = site.token(&["read:/"]);
    let (_, writer) = site.token(&["write:lab/"]);
    let request = |token: &str| {
        let headers = [("authorization", token.to_owned())];
        let (server, path, body) = (&site.server, path.clone(), body.clone());
        async move {
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            server.request(dav::proppatch(), &path, &headers, body).await
        }
    };
    request(&reader).await.problem(ProblemType::Forbidden);
    assert_eq!(hrefs(&request(&writer).await), [path.as_str()]);
    site.server.request(dav::proppatch(), &path, &[], body.clone()).await.problem(ProblemType::Unauthorized);
    let options = site.server.request(Method::OPTIONS, &path, &[], "").await;
    assert!(options.header("allow").contains("PROPPATCH"), "{options:?}");
}
