//! `If`, `If-Match` and `If-None-Match`.

use http::{Method, StatusCode};
use zarrd_wire::{dav, problem::ProblemType};

use super::{filled, values};

#[tokio::test]
async fn states_are_conditions_of_changes() {
    let server = filled().await;
    let tag = server.head("/store/a", &[]).await.header("etag").to_owned();
    let other = server.head("/store/z", &[]).await.header("etag").to_owned();
    for (header, holds) in [
        (format!("([{tag}])"), true),
        (format!("([{other}])"), false),
        (format!("([{other}]) (Not [{other}])"), true),
        (format!("(<urn:uuid:lock>) ([{tag}])"), true),
        (format!("(<urn:uuid:lock> [{tag}])"), false),
        ("(Not <DAV:no-lock>)".to_owned(), true),
        (format!("</store/a> ([{tag}])"), true),
        (format!("<http://localhost:8000/store/a> ([{tag}])"), true),
        // Of other resources nothing is known.
        (format!("</store/z> ([{other}])"), false),
        (format!("</store/z> (Not [{other}])"), false),
        (format!("<http://other/store/a> ([{tag}])"), false),
    ] {
        let before = values(&server).await;
        let copied = server.request(dav::copy(), "/store/a", &[("if", &header), ("destination", "/store/b")], "").await;
        let made = server.request(dav::mkcol(), "/store/a", &[("if", &header)], "").await;
        if holds {
            assert_eq!(copied.status, StatusCode::CREATED, "{header}");
            made.problem(ProblemType::MethodNotAllowed);
            server.delete("/store/b", &[]).await;
        } else {
            copied.problem(ProblemType::PreconditionFailed);
            made.problem(ProblemType::PreconditionFailed);
            server.put("/store/a", &[("if", &header)], "x").await.problem(ProblemType::PreconditionFailed);
            server.delete("/store/a", &[("if", &header)]).await.problem(ProblemType::PreconditionFailed);
            assert_eq!(values(&server).await, before);
        }
    }
    let invalid = server.put("/store/a", &[("if", "([a])")], "x").await.problem(ProblemType::InvalidHeader);
    assert_eq!(invalid.members.header.as_deref(), Some("If"));
    let held = server.put("/store/a", &[("if", &format!("([{tag}])"))], "x").await;
    assert_eq!(held.status, StatusCode::NO_CONTENT);
    assert_eq!(server.delete("/store/none", &[("if", &format!("(Not [{tag}])"))]).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn prefixes_have_no_version_that_a_state_could_match() {
    let server = filled().await;
    let tag = server.head("/store/lab/zarr.json", &[]).await.header("etag").to_owned();
    let requests = [(dav::copy(), "/store/lab/"), (dav::move_(), "/store/lab"), (Method::DELETE, "/store/lab/")];
    for (method, path) in requests.clone() {
        for header in [format!("([{tag}])"), "(<urn:uuid:lock>)".to_owned(), format!("</store/a> (Not [{tag}])")] {
            let headers = [("if", header.as_str()), ("destination", "/store/new/")];
            let refused = server.request(method.clone(), path, &headers, "").await;
            refused.problem(ProblemType::PreconditionFailed);
        }
    }
    assert_eq!(server.keys().await.len(), 6);
    for (method, path) in requests {
        let headers = [("if", "(Not <DAV:no-lock>)"), ("destination", "/store/new/")];
        assert!(server.request(method, path, &headers, "").await.status.is_success());
        server.set("lab/again", b"1").await;
    }
}

#[tokio::test]
async fn the_destination_may_be_a_condition() {
    let server = filled().await;
    let tag = server.head("/store/z", &[]).await.header("etag").to_owned();
    let wrong = server.head("/store/a", &[]).await.header("etag").to_owned();
    for (tag, holds) in [(wrong, false), (tag, true)] {
        let headers = [("if", format!("</store/z> ([{tag}])")), ("destination", "/store/z".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let moved = server.request(dav::move_(), "/store/a", &headers, "").await;
        match holds {
            true => assert_eq!(moved.status, StatusCode::NO_CONTENT),
            false => drop(moved.problem(ProblemType::PreconditionFailed)),
        }
    }
    assert_eq!(server.value("z").await.as_deref(), Some(&b"a"[..]));
}

#[tokio::test]
async fn tags_are_those_of_the_source() {
    let server = filled().await;
    let tag = server.head("/store/a", &[]).await.header("etag").to_owned();
    let request = |method: Method, path: &'static str, name: &'static str, value: String| {
        let server = &server;
        async move { server.request(method, path, &[("destination", "/store/b"), (name, value.as_str())], "").await }
    };
    for (name, value) in
        [("if-match", "\"x\"".to_owned()), ("if-none-match", tag.clone()), ("if-none-match", "*".to_owned())]
    {
        for method in [dav::copy(), dav::move_()] {
            request(method, "/store/a", name, value.clone()).await.problem(ProblemType::PreconditionFailed);
        }
    }
    let date = "Sat, 21 Nov 2020 06:28:08 GMT".to_owned();
    request(dav::copy(), "/store/a", "if-unmodified-since", date).await.problem(ProblemType::PreconditionFailed);
    request(dav::move_(), "/store/lab/", "if-match", "*".to_owned()).await.problem(ProblemType::InvalidHeader);
    assert_eq!(server.keys().await.len(), 6);
    assert_eq!(request(dav::move_(), "/store/a", "if-match", tag).await.status, StatusCode::CREATED);
}
