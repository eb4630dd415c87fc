//! The access log and the audit log of a running server.

use std::{fs, sync::Arc, time::Duration};

use crate::common::RunningServer;
use async_trait::async_trait;
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;
use zarrd_access::{AccessDirectory, NewToken};
use zarrd_server::{
    AccessLog, AccessPolicy, AuditLog, Limits, LogOutput, RequestLogOptions, RequestLogs, Right, Settings,
};
use zarrd_store::{Key, MemoryStore, Operation, Precondition, StoreError, StoreWrapper, TransactionalStore};

const END: &str = "\r\n\r\n";
const SECRET: &str = "c2VjcmV0LXRva2Vu";

/// A server with both logs in files.
struct LoggedServer {
    server: RunningServer,
    logs: RequestLogs,
    dir: TempDir,
}

/// The lines of both logs.
struct Lines {
    access: Vec<Value>,
    audit: Vec<Value>,
    text: String,
}

impl LoggedServer {
    async fn start(level: AccessLog, settings: Settings) -> Self {
        Self::over(Arc::new(MemoryStore::new()), level, settings).await
    }

    async fn over(store: Arc<dyn TransactionalStore>, level: AccessLog, settings: Settings) -> Self {
        let dir = TempDir::new().unwrap();
        let options = RequestLogOptions {
            access: level,
            access_output: LogOutput::File(dir.path().join("access")),
            audit: AuditLog::On,
            audit_output: LogOutput::File(dir.path().join("audit")),
        };
        let logs = RequestLogs::open(&options).unwrap();
        let server = RunningServer::with_logs(store, settings, logs.clone()).await;
        Self { server, logs, dir }
    }

    /// Sends a request without a body.
    async fn send(&self, method: &str, target: &str, headers: &str) -> String {
        self.server
            .exchange(&format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
            .await
    }

    /// Waits for a number of lines in the access log.
    async fn wait_for(&self, lines: usize) {
        for _ in 0..500 {
            if fs::read_to_string(self.dir.path().join("access")).unwrap().lines().count() >= lines {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("there are not {lines} lines");
    }

    /// Stops the server, and returns its lines.
    async fn stop(self) -> Lines {
        let Self { mut server, logs, dir } = self;
        server.stop();
        server.stopped().await.unwrap();
        logs.close();
        // A log that is off has no file.
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        let parse = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (access, audit) = (read("access"), read("audit"));
        Lines { access: parse(&access), audit: parse(&audit), text: access + &audit }
    }
}

/// The members of each line with these names.
fn members(lines: &[Value], names: &[&str]) -> Vec<Value> {
    lines.iter().map(|line| names.iter().map(|name| line[name].clone()).collect()).collect()
}

/// A store that panics on the key `panic`, and never responds on the key `hang`.
struct OddStore(MemoryStore);

#[async_trait]
impl StoreWrapper for OddStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation.key().map(|key| key.to_string()).as_deref() {
            Some("panic") => panic!("on purpose"),
            Some("hang") => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn every_request_has_one_line() {
    let logged = LoggedServer::over(Arc::new(OddStore(MemoryStore::new())), AccessLog::All, Settings::default()).await;
    logged.server.store.set(&Key::parse("v").unwrap(), "hello".into(), Precondition::none()).await.unwrap();
    for (method, target) in [
        ("GET", "/store/v"),
        ("HEAD", "/store/v"),
        ("OPTIONS", "/store/v"),
        ("GET", "/store/absent"),
        ("GET", "/nowhere"),
        ("BREW", "/node/a"),
        ("GET", "/node/a?list"),
        ("GET", "/store/panic"),
        ("GET", "/healthz"),
        ("DELETE", "/store/v"),
    ] {
        logged.send(method, target, "").await;
    }
    let lines = logged.stop().await;
    let names = ["method", "path", "query", "route", "status", "problem", "sent", "aborted"];
    let mut found = members(&lines.access, &names);
    // Bodies of problems and of /healthz have other lengths with each version.
    for (line, status) in found.iter_mut().zip(&lines.access) {
        if status["problem"].is_string() || status["path"] == "/healthz" {
            assert!(line[6].as_u64().unwrap() > 10, "{line}");
            line[6] = Value::Null;
        }
    }
    let expected = [
        json!(["GET", "/store/v", null, "/store/{key}", 200, null, 5, false]),
        json!(["HEAD", "/store/v", null, "/store/{key}", 200, null, 0, false]),
        json!(["OPTIONS", "/store/v", null, "/store/{key}", 204, null, 0, false]),
        json!(["GET", "/store/absent", null, "/store/{key}", 404, "no-such-key", null, false]),
        json!(["GET", "/nowhere", null, null, 404, "not-found", null, false]),
        json!(["BREW", "/node/a", null, "/node/{path}", 405, "method-not-allowed", null, false]),
        json!(["GET", "/node/a", "list", "/node/{path}", 400, "unknown-parameter", null, false]),
        json!(["GET", "/store/panic", null, "/store/{key}", 500, "internal", null, false]),
        json!(["GET", "/healthz", null, "/healthz", 200, null, null, false]),
        json!(["DELETE", "/store/v", null, "/store/{key}", 204, null, 0, false]),
    ];
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[tokio::test]
async fn line_describes_the_request() {
    let settings = Settings { proxies: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() };
    let logged = LoggedServer::start(AccessLog::All, settings).await;
    let headers = "X-Request-Id: my-id\r\nUser-Agent: zarr-client/1 \"x\"\r\nX-Forwarded-For: 2001:db8::7\r\n";
    let body = "Content-Length: 5\r\n\r\nhello";
    let request = format!("PUT /store/a%20b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}{body}");
    logged.server.exchange(&request).await;
    let line = logged.stop().await.access.remove(0);
    let expected =
        json!(["my-id", "2001:db8::7", null, "/store/a%20b", 5, 0, "zarr-client/1 \"x\"", "HTTP/1.1", false]);
    let names = ["request_id", "client", "principal", "path", "received", "sent", "user_agent", "version", "tls"];
    assert_eq!(members(std::slice::from_ref(&line), &names), [expected]);
    let time = line["time"].as_str().unwrap();
    let age = zarrd_wire::time::parse_rfc3339(time).unwrap().elapsed().unwrap();
    assert!(age < Duration::from_secs(60) && time.len() == "2026-11-21T06:28:08.123Z".len(), "{time}");
    assert!((0.001..60_000.0).contains(&line["duration_ms"].as_f64().unwrap()), "{line}");
}

#[tokio::test]
async fn client_that_leaves_aborts_the_response() {
    let logged =
        LoggedServer::over(Arc::new(OddStore(MemoryStore::new())), AccessLog::Errors, Settings::default()).await;
    let large = vec![0_u8; 64 << 20];
    logged.server.store.set(&Key::parse("large").unwrap(), large.into(), Precondition::none()).await.unwrap();
    let mut raw = logged.server.connect().await;
    raw.send("GET /store/large HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    raw.until(END).await;
    drop(raw);
    logged.wait_for(1).await;
    for method in ["GET", "DELETE"] {
        let mut raw = logged.server.connect().await;
        raw.send(&format!("{method} /store/hang HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        sleep(Duration::from_millis(50)).await;
        drop(raw);
    }
    logged.wait_for(3).await;
    let lines = logged.stop().await;
    assert!(lines.access[0]["sent"].as_u64().unwrap() < 64 << 20);
    let mut found = members(&lines.access, &["method", "path", "status", "aborted"]);
    found[1..].sort_by_key(|line| line[0].to_string());
    let expected = [
        json!(["GET", "/store/large", 200, true]),
        json!(["DELETE", "/store/hang", null, true]),
        json!(["GET", "/store/hang", null, true]),
    ];
    assert_eq!(found, expected);
    let audited = members(&lines.audit, &["operation", "path", "status", "outcome"]);
    assert_eq!(audited, [json!(["DELETE /store/{key}", "/store/hang", null, "unknown"])]);
}

#[tokio::test]
async fn complete_downloads_are_no_errors() {
    let logged = LoggedServer::start(AccessLog::Errors, Settings::default()).await;
    for (name, size) in [("empty", 0), ("small", 10), ("large", 8 << 20)] {
        let (key, bytes) = (Key::parse(name).unwrap(), vec![b'a'; size]);
        logged.server.store.set(&key, bytes.into(), Precondition::none()).await.unwrap();
        let answer = logged.send("GET", &format!("/store/{name}"), "").await;
        assert!(answer.len() > size, "{}", answer.len());
        logged.send("HEAD", &format!("/store/{name}"), "").await;
    }
    logged.send("GET", "/store/?list=keys", "").await;
    logged.send("HEAD", "/store/?list=keys", "").await;
    logged.send("GET", "/store/absent", "").await;
    let lines = logged.stop().await;
    assert_eq!(members(&lines.access, &["path", "status"]), [json!(["/store/absent", 404])]);
    assert_eq!(lines.audit, [Value::Null; 0]);
}

#[tokio::test]
async fn sent_bytes_and_duration_extend_to_the_last_byte() {
    let logged = LoggedServer::start(AccessLog::All, Settings::default()).await;
    let large = vec![b'a'; 32 << 20];
    logged.server.store.set(&Key::parse("large").unwrap(), large.into(), Precondition::none()).await.unwrap();
    let mut raw = logged.server.connect().await;
    raw.send("GET /store/large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    raw.rest().await;
    let line = logged.stop().await.access.remove(0);
    assert_eq!(line["sent"], 32 << 20);
    assert!(line["duration_ms"].as_f64().unwrap() >= 190.0, "{line}");
}

#[tokio::test]
async fn rejected_connections_have_lines() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let logged = LoggedServer::start(AccessLog::Errors, Settings { limits, ..Settings::default() }).await;
    let mut busy = logged.server.connect().await;
    busy.send("PUT /store/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n").await;
    busy.until(END).await;
    logged.send("GET", "/store/v", "").await;
    logged.send("GET", "/healthz", "").await;
    busy.send("hi").await;
    busy.until(END).await;
    drop(busy);
    let lines = logged.stop().await;
    let found = members(&lines.access, &["client", "path", "route", "status", "problem", "aborted"]);
    assert_eq!(found, [json!(["127.0.0.1", "/store/v", "/store/{key}", 503, "busy", false])]);
}

#[tokio::test]
async fn malformed_heads_have_lines() {
    let logged = LoggedServer::start(AccessLog::Errors, Settings::default()).await;
    let requests = [
        ("GET /\u{1} HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("nonsense\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)), 431),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(66_000)), 414),
    ];
    for (request, status) in &requests {
        let mut raw = logged.server.connect().await;
        raw.send(request).await;
        let answer = raw.until(END).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    logged.wait_for(requests.len()).await;
    let lines = logged.stop().await;
    let found = members(&lines.access, &["client", "method", "path", "status", "aborted"]);
    let expected = requests.map(|(_, status)| json!(["127.0.0.1", null, null, status, false]));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn changes_and_denials_are_audited() {
    let logged = LoggedServer::start(AccessLog::Off, Settings::default()).await;
    let put = |target: &str, headers: &str, body: &str| {
        let length = body.len();
        format!(
            "PUT {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let answer = logged.server.exchange(&put("/store/v", "X-Request-Id: first\r\n", "hello")).await;
    let etag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    logged.server.exchange(&put("/node/g", "", r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#)).await;
    logged.server.exchange(&put("/store/v", "If-None-Match: *\r\n", "again")).await;
    logged.send("GET", "/store/v", "").await;
    logged.send("POST", "/node/g?validate", "").await;
    logged.send("DELETE", "/store/?confirm=all", "Origin: https://evil.example\r\n").await;
    logged.send("DELETE", "/store/g/", "").await;
    let lines = logged.stop().await;
    assert_eq!(lines.access, [Value::Null; 0]);
    let found = members(&lines.audit, &["operation", "path", "query", "status", "problem", "outcome"]);
    assert_eq!((&lines.audit[0]["request_id"], &lines.audit[0]["client"]), (&"first".into(), &"127.0.0.1".into()));
    assert_eq!(lines.audit[0]["etag"], etag);
    let expected = [
        json!(["PUT /store/{key}", "/store/v", null, 201, null, "performed"]),
        json!(["PUT /node/{path}", "/node/g", null, 201, null, "performed"]),
        json!(["DELETE /store/", "/store/", "confirm=all", 403, "forbidden-origin", "denied"]),
        json!(["DELETE /store/{prefix}/", "/store/g/", null, 200, null, "performed"]),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn denial_by_missing_rights_is_audited() {
    let logged = LoggedServer::start(
        AccessLog::Off,
        Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() },
    )
    .await;
    logged.send("POST", "/node/a?convert&into=v3", "").await;
    let request = "GET /store/v HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    logged.server.exchange(request).await;
    let lines = logged.stop().await;
    let expected = [
        json!(["POST /node/{path}?convert", 401, "unauthorized", "denied"]),
        json!(["GET /store/{key}", 403, "forbidden-host", "denied"]),
    ];
    assert_eq!(members(&lines.audit, &["operation", "status", "problem", "outcome"]), expected);
}

#[tokio::test]
async fn changes_of_tokens_and_links_are_described() {
    let access_dir = TempDir::new().unwrap();
    let directory = Arc::new(AccessDirectory::open(access_dir.path()).unwrap());
    let grants = "admin:lab/".parse::<zarrd_access::Grant>().unwrap().into();
    let new = NewToken { name: "Ada".to_owned(), grants, expires: None, maker: None };
    let (admin, token) = directory.create(new).unwrap();
    let access = AccessPolicy { directory: directory.into(), ..AccessPolicy::anonymous(Right::Read) };
    let logged = LoggedServer::start(AccessLog::Off, Settings { access, ..Settings::default() }).await;
    let authorization = format!("Authorization: Bearer {}\r\n", token.expose());
    let made = async |target: &str, body: Value| {
        let body = body.to_string();
        let headers = format!("{authorization}Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let head = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        let answer = logged.server.exchange(&(head + &body)).await;
        let json: Value = serde_json::from_str(answer.split_once(END).unwrap().1).unwrap();
        json["id"].as_str().unwrap_or_default().to_owned()
    };
    let (grants, expires) = (json!(["read:lab/a/", "write:lab/b/"]), "2999-01-31T12:00:00Z");
    let new =
        made("/token", json!({"name": format!("for {}", token.expose().get(..90).unwrap()), "allow": grants})).await;
    let link = made("/share", json!({"name": "x", "prefix": "lab/a/", "expires": expires})).await;
    made("/token", json!({"name": "too much", "allow": ["read:/"]})).await;
    logged.send("DELETE", &format!("/token/{new}"), &authorization).await;
    logged.send("DELETE", &format!("/share/{link}"), &authorization).await;
    let lines = logged.stop().await;
    let (new, link) = (format!("token:{new}"), format!("link:{link}"));
    let (none, expires) = (Value::Null, lines.audit[1]["expires"].clone());
    assert!(expires.as_str().unwrap().starts_with("2999-01-31T12:00:00"), "{expires}");
    let expected = [
        json!(["POST /token", "performed", new, "for …", grants, none]),
        json!(["POST /share", "performed", link, "x", ["read:lab/a/"], expires]),
        json!(["POST /token", "denied", none, none, none, none]),
        json!(["DELETE /token/{id}", "performed", new, "for …", grants, none]),
        json!(["DELETE /share/{id}", "performed", link, "x", ["read:lab/a/"], expires]),
    ];
    let names = ["operation", "outcome", "credential", "name", "allow", "expires"];
    assert_eq!(members(&lines.audit, &names), expected);
    assert!(lines.audit.iter().all(|line| line["principal"] == format!("token:{}", admin.id)));
}

#[tokio::test]
async fn secrets_are_not_logged() {
    let logged = LoggedServer::start(AccessLog::All, Settings::default()).await;
    let headers =
        format!("Authorization: Bearer {SECRET}\r\nCookie: {SECRET}\r\nX-Api-Key: {SECRET}\r\nReferer: {SECRET}\r\n");
    let targets = [
        format!("/s/{SECRET}"),
        format!("/s/{SECRET}/a/b?x=1"),
        format!("/%73/{SECRET}/a"),
        format!("/store/v?token={SECRET}"),
        format!("/store/v?a=1&access_token={SECRET}&b=2"),
        format!("/store/v?%73ig={SECRET}"),
        format!("/store/v?KEY={SECRET}"),
        "/store/v".to_owned(),
    ];
    for target in &targets {
        for method in ["GET", "DELETE"] {
            logged.send(method, target, &headers).await;
        }
        logged.send("DELETE", target, &(headers.clone() + "Origin: https://evil.example\r\n")).await;
    }
    let lines = logged.stop().await;
    assert_eq!(lines.access.len(), 3 * targets.len());
    assert!(!lines.audit.is_empty());
    assert!(!lines.text.contains(SECRET), "{}", lines.text);
    assert_eq!(members(&lines.access[3..4], &["path", "query"]), [json!(["/s/…/a/b", "x=1"])]);
    assert_eq!(members(&lines.access[12..13], &["path", "query"]), [json!(["/store/v", "a=1&access_token=…&b=2"])]);
}

#[tokio::test]
async fn hostile_headers_stay_within_their_line() {
    let logged = LoggedServer::start(AccessLog::All, Settings::default()).await;
    let mut raw = logged.server.connect().await;
    let agent = b"\"} {\"x\":\"\t\xff\xc2\x9b2J\xe2\x80\xa8";
    let request = [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUser-Agent: ".as_slice(), agent];
    tokio::io::AsyncWriteExt::write_all(&mut raw.0, &[request.concat().as_slice(), b"\r\n\r\n"].concat())
        .await
        .unwrap();
    assert!(raw.rest().await.starts_with("HTTP/1.1 200 "));
    let long = format!("User-Agent: {}\r\nX-Request-Id: {}\r\n", "y".repeat(5_000), "z".repeat(100));
    logged.send(&"M".repeat(500), &format!("/{}?{}", "p".repeat(9_000), "q".repeat(9_000)), &long).await;
    let lines = logged.stop().await;
    assert!(lines.text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{}", lines.text);
    assert_eq!(lines.access[0]["user_agent"], "\"} {\"x\":\"\t\u{fffd}\u{9b}2J\u{2028}");
    assert_eq!(lines.access.len(), 2);
    assert!(lines.text.lines().all(|line| line.len() < 6_000), "{}", lines.text);
}

#[tokio::test]
async fn full_disk_fails_no_request_and_is_counted() {
    let full = || LogOutput::File("/dev/full".into());
    let options =
        RequestLogOptions { access: AccessLog::All, access_output: full(), audit: AuditLog::On, audit_output: full() };
    let logs = RequestLogs::open(&options).unwrap();
    let store = Arc::new(MemoryStore::new());
    let server = RunningServer::with_logs(store, Settings::default(), logs.clone()).await;
    for number in 0..20 {
        let request = format!("DELETE /store/{number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = server.exchange(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {} ", StatusCode::NO_CONTENT.as_u16())), "{answer}");
    }
    let dropped = |metrics: &str, log: &str| {
        let name = format!("zarrd_log_lines_dropped_total{{log=\"{log}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap()
    };
    for _ in 0..500 {
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let metrics = server.exchange(request).await;
        if dropped(&metrics, "access") >= 20 && dropped(&metrics, "audit") == 20 {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the dropped lines are not counted");
}
