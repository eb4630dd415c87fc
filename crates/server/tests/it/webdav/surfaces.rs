//! A listener at whose root the keys are.

use std::sync::Arc;

use http::{Method, Request, header::HOST};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use zarrd_server::{App, Limits, Settings, Surface, serve_surfaces, surface_router};
use zarrd_store::MemoryStore;
use zarrd_wire::{dav, problem::ProblemType};

use super::{app, hrefs, sorted_hrefs};
use crate::common::{TestResponse, TestServer, read, tokens::ServerWithTokens};

/// A server at whose root the keys are.
struct RootServer(TestServer);

impl RootServer {
    fn new() -> Self {
        let store = MemoryStore::new();
        Self::over(app(store.clone()), store)
    }

    fn over(app: App, store: MemoryStore) -> Self {
        Self(TestServer { router: surface_router(app, Surface::Root), store: Arc::new(store) })
    }

    /// Sends a request; the contract has other paths.
    async fn request(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &'static str) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost:8001");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(self.0.send_unchecked(request.body(body.into()).unwrap()).await).await
    }

    async fn status(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &'static str) -> u16 {
        self.request(method, path, headers, body).await.status.as_u16()
    }
}

#[tokio::test]
async fn paths_at_the_root_are_keys() {
    let server = RootServer::new();
    for key in ["/healthz", "/store/x", "/s/secret/x", "/node", "/lab/a%20b"] {
        assert_eq!(server.status(Method::PUT, key, &[], "1").await, 201, "{key}");
        assert_eq!(server.request(Method::GET, key, &[], "").await.text(), "1", "{key}");
    }
    assert_eq!(server.0.keys().await, ["healthz", "lab/a b", "node", "s/secret/x", "store/x"]);
    let found = server.request(dav::propfind(), "/", &[("depth", "infinity")], "").await;
    let expected =
        ["/", "/healthz", "/lab/", "/lab/a%20b", "/node", "/s/", "/s/secret/", "/s/secret/x", "/store/", "/store/x"];
    assert_eq!(sorted_hrefs(&found), expected);
    assert_eq!(hrefs(&server.request(dav::propfind(), "/lab", &[("depth", "0")], "").await), ["/lab/"]);
    let redirected = server.request(Method::GET, "/lab", &[], "").await;
    assert_eq!((redirected.status.as_u16(), redirected.header("location")), (301, "lab/"));
    let page = server.request(Method::GET, "/lab/", &[("accept", "text/html")], "").await;
    assert!(page.text().contains("<title>Index of /lab/</title>"), "{page:?}");
    for bad in ["//lab/x", "/lab//x", "/../x", "/lab/%2e%2e/x"] {
        assert_eq!(server.status(Method::PUT, bad, &[], "1").await, 400, "{bad}");
    }
    assert_eq!(server.status(Method::OPTIONS, "*", &[], "").await, 404);
}

#[tokio::test]
async fn clients_that_take_whole_paths_for_keys_list_at_the_root_only() {
    let server = RootServer::new();
    server.status(Method::PUT, "/lab/a", &[], "1").await;
    let agent = [("user-agent", "obstore/1 object_store/0.14.2"), ("depth", "1")];
    assert_eq!(hrefs(&server.request(dav::propfind(), "/lab", &agent, "").await), ["/lab/", "/lab/a"]);
    let api = super::filled().await;
    for path in ["/store/", "/store/lab", "/store/a"] {
        let problem = api.request(dav::propfind(), path, &agent, "").await.problem(ProblemType::MethodNotAllowed);
        assert!(problem.detail.contains("--dav-listen") && !problem.members.allow.contains(&"PROPFIND".to_owned()));
        assert!(problem.members.allow.contains(&"GET".to_owned()), "{problem:?}");
    }
}

#[tokio::test]
async fn destinations_at_the_root_are_keys() {
    let server = RootServer::new();
    server.status(Method::PUT, "/lab/a", &[], "1").await;
    for (destination, status) in [
        ("/lab/b", 201),
        ("http://localhost:8001/store/c?x", 201),
        ("http://localhost:8000/store/c", 502),
        ("lab/d", 400),
    ] {
        let found = server.status(dav::copy(), "/lab/a", &[("destination", destination)], "").await;
        assert_eq!(found, status, "{destination}");
    }
    assert_eq!(server.status(dav::move_(), "/lab/", &[("destination", "/new/")], "").await, 201);
    assert_eq!(server.0.keys().await, ["new/a", "new/b", "store/c"]);
}

#[tokio::test]
async fn rights_at_the_root_are_those_of_the_store() {
    let sites = ServerWithTokens::closed();
    sites.server.set("lab/a", b"1").await;
    let (_, token) = sites.token(&["read:lab/"]);
    let server = RootServer::over(sites.app.clone(), MemoryStore::new());
    let authorized: &[_] = &[("authorization", token.as_str()), ("depth", "1"), ("destination", "/lab/b")];
    for (method, path, anonymous, reader) in [
        (Method::GET, "/lab/a", 401, 200),
        (Method::GET, "/other", 401, 403),
        (dav::propfind(), "/lab/", 401, 207),
        (dav::propfind(), "/", 401, 207),
        (dav::copy(), "/lab/a", 401, 403),
        (Method::PUT, "/lab/a", 401, 403),
        (Method::DELETE, "/lab/", 401, 403),
        (dav::mkcol(), "/lab/c/", 401, 403),
    ] {
        assert_eq!(server.status(method.clone(), path, &[], "").await, anonymous, "{method} {path}");
        assert_eq!(server.status(method.clone(), path, authorized, "").await, reader, "{method} {path}");
    }
}

/// Sends a request on a new connection and reads until the server closes it.
async fn exchange(address: std::net::SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn listeners_share_a_store_and_the_limit_of_connections() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let app = App::new(Arc::new(MemoryStore::new()), Settings { limits, ..Settings::default() });
    let listeners = [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let [api, root] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let listeners = listeners.into_iter().zip([Surface::Api, Surface::Root]).collect();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve_surfaces(listeners, app, None, async { drop(stopped.await) }));
    let end = "Host: localhost\r\nConnection: close\r\n";
    let put = exchange(root, &format!("PUT /lab/a HTTP/1.1\r\n{end}Content-Length: 1\r\n\r\n7")).await;
    assert!(put.starts_with("HTTP/1.1 201 "), "{put}");
    let get = exchange(api, &format!("GET /store/lab/a HTTP/1.1\r\n{end}\r\n")).await;
    assert!(get.ends_with("\r\n\r\n7"), "{get}");
    let health = exchange(root, &format!("GET /healthz HTTP/1.1\r\n{end}\r\n")).await;
    assert!(health.starts_with("HTTP/1.1 404 "), "{health}");
    // Two requests in progress on one listener leave no connection to the other.
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(root).await.unwrap();
        stream
            .write_all(b"PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).await.unwrap();
        busy.push(stream);
    }
    let refused = exchange(api, &format!("GET /store/lab/a HTTP/1.1\r\n{end}\r\n")).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    drop(busy);
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    assert!(TcpStream::connect(root).await.is_err() && TcpStream::connect(api).await.is_err());
}

#[tokio::test]
async fn pages_of_other_origins_may_not_change_anything_at_the_root() {
    let server = RootServer::new();
    server.status(Method::PUT, "/a", &[], "1").await;
    let page = [("origin", "https://evil.example"), ("destination", "/b"), ("depth", "1")];
    for method in [dav::copy(), dav::move_(), dav::mkcol(), Method::PUT] {
        assert_eq!(server.status(method.clone(), "/a", &page, "").await, 403, "{method}");
    }
    assert_eq!(server.status(dav::propfind(), "/a", &page, "").await, 207);
}
