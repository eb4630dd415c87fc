//! Cross-origin web pages can read but not write; requests with a rebound host name are rejected.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::Response;
use zarrd_tests::{
    problem::assert_problem,
    server::{Launch, Server},
};
use zarrd_wire::problem::ProblemType;

const UNSAFE: [Method; 4] = [Method::PUT, Method::POST, Method::PATCH, Method::DELETE];

async fn send(server: &Server, method: Method, path: &str, name: header::HeaderName, value: &str) -> Response {
    let headers = HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())]);
    let request = server.request(method.clone(), path).headers(headers);
    let request = if UNSAFE.contains(&method) { request.body("evil") } else { request };
    request.send().await.unwrap()
}

async fn set(server: &Server) {
    let answer = server.put("/store/a/b", "good").await;
    assert_eq!(answer.status(), StatusCode::CREATED);
}

async fn is_as_before(server: &Server) {
    assert_eq!(server.get("/store/a/b").await.text().await.unwrap(), "good");
    assert_eq!(server.get("/store/new").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn cross_origin_page_can_read_but_not_write() {
    let server = Launch::of("memory:").start();
    set(&server).await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", &server.url("")] {
        for path in ["/store/a/b", "/store/new", "/store/a/", "/store/?confirm=all"] {
            for method in UNSAFE {
                let refusal = match method {
                    Method::PUT | Method::DELETE => ProblemType::ForbiddenOrigin,
                    // No origin can use this method.
                    _ => ProblemType::MethodNotAllowed,
                };
                assert_problem(send(&server, method, path, header::ORIGIN, origin).await, refusal).await;
            }
        }
        let answer = send(&server, Method::GET, "/store/a/b", header::ORIGIN, origin).await;
        assert_eq!(answer.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.text().await.unwrap(), "good");
    }
    is_as_before(&server).await;
}

#[tokio::test]
async fn allowed_origin_can_write() {
    let server = Launch::of("memory:").arg("--cors-origin").arg("https://viewer.example").start();
    let answer = send(&server, Method::PUT, "/store/new", header::ORIGIN, "https://viewer.example").await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let answer = send(&server, Method::PUT, "/store/new", header::ORIGIN, "https://evil.example").await;
    assert_problem(answer, ProblemType::ForbiddenOrigin).await;
}

#[tokio::test]
async fn dns_rebinding_is_rejected() {
    let server = Launch::of("memory:").start();
    set(&server).await;
    for host in ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example"] {
        for method in [&[Method::GET][..], &UNSAFE].concat() {
            let answer = send(&server, method, "/store/a/b", header::HOST, host).await;
            assert_problem(answer, ProblemType::ForbiddenHost).await;
        }
    }
    let answer = send(&server, Method::GET, "/store/a/b", header::HOST, "localhost:8000").await;
    assert_eq!(answer.status(), StatusCode::OK);
    is_as_before(&server).await;
}
