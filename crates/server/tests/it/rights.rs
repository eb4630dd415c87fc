//! The table of rights: every kind of caller, every operation, and names inside, at the edge of and outside a prefix.
//!
//! Each answer is compared with a model that shares no code with the server: a caller is a list of prefixes, and a name
//! is decoded by hand.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use crate::common::{
    TestResponse, TestServer,
    arrays::{put, v3},
    contract::{CONTRACT, RequestInfo},
    read,
    tokens::{create_link, create_token, grants, new_link, new_token, policy},
};
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request, header::HOST};
use serde_json::json;
use zarrd_access::{AccessDirectory, NewLink, NewToken};
use zarrd_server::{AccessPolicy, AnonymousAccess, Operation, ROUTES, Requirement, Settings};
use zarrd_store::{MemoryStore, Operation as StoreOperation, Prefix, StoreError, StoreWrapper};
use zarrd_wire::{
    dav,
    problem::{Problem, ProblemType},
};

/// A store that counts its calls.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    calls: AtomicUsize,
}

#[async_trait]
impl StoreWrapper for CountingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, _: StoreOperation<'_>) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A server whose store counts its calls.
struct CountedServer {
    server: TestServer,
    store: Arc<CountingStore>,
}

impl CountedServer {
    fn new(access: AccessPolicy) -> Self {
        let store = Arc::new(CountingStore::default());
        Self { server: TestServer::over(store.clone(), Settings { access, ..Settings::default() }), store }
    }

    async fn fill(&self) {
        for node in ["lab/exp1", "lab/x", "lab2/x", "LAB/x", "lab"] {
            if node == "lab" {
                put(&self.server, "lab/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
                put(&self.server, "lab/value", b"1".to_vec()).await;
            } else {
                v3(&self.server, node, json!("uint8"), &[4], &[2], json!(0)).await;
            }
        }
    }

    /// Sends a request; returns the response and the number of calls to the store.
    async fn send(&self, request: &TestRequest, caller: &Caller) -> (TestResponse, usize) {
        let target = match &caller.credential {
            Credential::Link(link) => format!("/s/{link}{}", request.target),
            _ => request.target.clone(),
        };
        let mut http = Request::builder().method(&request.method).uri(&target).header(HOST, "localhost:8000");
        http = http.header("x-request-id", "r").header("content-type", "application/json");
        if let ("COPY" | "MOVE", Some(name)) = (request.method.as_str(), request.copy_to) {
            http = http.header("destination", format!("/store/{name}"));
        }
        if request.method == dav::propfind() {
            let depth = if request.target.contains("?depth=0") { "0" } else { "1" };
            http = http.header("depth", if request.lists_keys { "infinity" } else { depth });
        }
        match &caller.credential {
            Credential::None | Credential::Link(_) => {}
            Credential::Bearer(token) => http = http.header("authorization", format!("Bearer {token}")),
            Credential::Basic(token) => {
                http = http.header("authorization", format!("Basic {}", STANDARD.encode(format!("any:{token}"))));
            }
        }
        let request = http.body(request.body.into()).unwrap();
        let info = RequestInfo::new(request.method(), request.uri());
        let before = self.store.calls.load(Ordering::Relaxed);
        let answer = read(self.server.send_unchecked(request).await).await;
        CONTRACT.check(&info, answer.status, &answer.headers, Some(&answer.body));
        (answer, self.store.calls.load(Ordering::Relaxed) - before)
    }
}

/// A kind of caller.
#[derive(Clone)]
struct Caller {
    name: &'static str,
    credential: Credential,
    standing: Standing,
}

#[derive(Clone)]
enum Credential {
    None,
    Bearer(String),
    Basic(String),
    Link(String),
}

/// The rights that a caller has by construction.
#[derive(Clone, Copy)]
enum Standing {
    /// The credential is not accepted.
    Refused,
    /// No credential, with these rights.
    Anonymous(&'static [(&'static str, &'static str)]),
    /// A token with these rights.
    Token(&'static [(&'static str, &'static str)]),
    /// A share link of this prefix.
    Link(&'static str),
}

/// An operation on a name.
struct TestRequest {
    method: Method,
    target: String,
    body: &'static str,
    requires: Requirement,
    template: &'static str,
    /// The name in the path, as it is written there.
    name: &'static str,
    /// The target of a conversion, a copy or a move.
    copy_to: Option<&'static str>,
    /// True if keys at any depth are listed.
    lists_keys: bool,
}

/// The outcome that the model expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allowed,
    Invalid,
    Unauthorized,
    Forbidden,
}

const UPDATE: &str = "<propertyupdate xmlns='DAV:'><set><prop><getetag/></prop></set></propertyupdate>";
const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

const NAMES: [&str; 11] =
    ["lab/exp1", "lab/x", "lab", "lab2/x", "%6cab/x", "LAB/x", "lab/../x", "lab//x", "x", "la", "lab%2Fx"];

/// All operations with all names.
fn requests() -> Vec<TestRequest> {
    let mut all = Vec::new();
    for route in ROUTES.iter() {
        let named = route.template.contains("{key}")
            || route.template.contains("{prefix}")
            || route.template.contains("{path}")
            || route.template == "/snapshot";
        let names: &[&'static str] = if named { &NAMES } else { &[""] };
        for (operation, &name) in route.operations.iter().flat_map(|of| names.iter().map(move |name| (of, name))) {
            for (query, body, copy_to, lists_keys) in variants(route.template, operation) {
                let path = ["{key}", "{prefix}", "{path}"]
                    .iter()
                    .fold(route.template.to_owned(), |path, parameter| path.replace(parameter, name));
                let path = match route.template {
                    "/snapshot" => format!("{path}?prefix={name}/"),
                    _ => path,
                };
                let path = path.replace("{version}", "v3").replace("{id}", "00000000000000000000000000000000");
                all.push(TestRequest {
                    method: operation.method.clone(),
                    target: format!("{path}{query}"),
                    body,
                    requires: operation.requires,
                    template: route.template,
                    name,
                    copy_to,
                    lists_keys,
                });
            }
        }
    }
    all
}

type Variant = (&'static str, &'static str, Option<&'static str>, bool);

fn variants(template: &str, operation: &Operation) -> Vec<Variant> {
    match (template, operation.method.as_str(), operation.selected_by) {
        ("/node/{path}", "POST", Some("append")) => vec![("?append=x", "", None, false)],
        ("/node/{path}", "POST", Some(_)) => vec![
            ("?convert=v3", "", None, false),
            ("?convert=v2&target=/lab/copy", "", Some("lab/copy"), false),
            ("?convert=v2&target=/lab2/copy", "", Some("lab2/copy"), false),
        ],
        ("/node/{path}", "POST", None) => vec![("?validate", GROUP, None, false)],
        ("/node/{path}", "PUT", _) => vec![("", GROUP, None, false), ("?overwrite", GROUP, None, false)],
        ("/node/{path}", "PATCH", _) => vec![("", r#"{"attributes": {"a": 1}}"#, None, false)],
        ("/node/{path}", "GET", _) => {
            vec![("", "", None, false), ("?depth=0", "", None, false), ("?limit=1", "", None, false)]
        }
        ("/array/{path}", "GET" | "HEAD", Some(_)) => vec![("?chunks", "", None, false)],
        ("/array/{path}", "POST", Some(_)) => vec![("?append=0", "[7]", None, false)],
        ("/array/{path}", "POST", None) => vec![("?read", r#"{"select": ""}"#, None, false)],
        ("/array/{path}", "PUT", Some(_)) => vec![("?create&shape=1&dtype=uint8", "[7]", None, false)],
        ("/array/{path}", "PUT", None) => vec![("", "7", None, false)],
        ("/store/" | "/store/{prefix}/", "GET" | "HEAD", _) => {
            vec![("", "", None, false), ("?list=dir", "", None, false), ("?list=keys", "", None, true)]
        }
        ("/store/" | "/store/{prefix}/" | "/store/{key}", "PROPFIND", _) => {
            vec![("", "", None, false), ("?depth=0", "", None, false), ("", "", None, true)]
        }
        (_, "PROPPATCH", _) => vec![("", UPDATE, None, false)],
        (_, "COPY" | "MOVE", _) => {
            vec![("", "", None, false), ("", "", Some("lab/copy"), false), ("", "", Some("lab2/copy"), false)]
        }
        ("/store/", "DELETE", _) => vec![("?confirm=all", "", None, false)],
        ("/token", "POST", _) => vec![("", "{}", None, false)],
        ("/share", "POST", _) => vec![("", "{}", None, false)],
        _ => vec![("", "", None, false)],
    }
}

/// Decodes a name; `None` if the server has to reject it.
fn decoded(request: &TestRequest) -> Option<String> {
    let name = request.name.replace("%6c", "l").replace("%2F", "/");
    let name = if request.method.is_safe() { name.replace("//", "/") } else { name };
    let is_valid = !name.split('/').any(|segment| segment == "..") && !name.contains("//");
    is_valid.then_some(name)
}

/// The rights of the table, by hand: `right` on everything below `prefix`.
fn has(grants: &[(&str, &str)], right: &str, name: &str) -> bool {
    let level = |right: &str| ["read", "write", "admin"].iter().position(|known| *known == right);
    grants.iter().any(|(granted, prefix)| level(granted) >= level(right) && name.starts_with(prefix))
}

fn expected(request: &TestRequest, caller: &Caller) -> Outcome {
    let link_grant;
    let (grants, lacking): (&[(&str, &str)], _) = match caller.standing {
        Standing::Refused => return Outcome::Unauthorized,
        Standing::Anonymous(grants) => (grants, Outcome::Unauthorized),
        Standing::Token(grants) => (grants, Outcome::Forbidden),
        Standing::Link(prefix) => {
            link_grant = [("read", prefix)];
            (&link_grant, Outcome::Forbidden)
        }
    };
    let judged = |allowed: bool| if allowed { Outcome::Allowed } else { lacking };
    match request.requires {
        Requirement::Nothing => return Outcome::Allowed,
        Requirement::Metrics => return judged(has(grants, "read", "")),
        Requirement::Token => return judged(matches!(caller.standing, Standing::Token(_))),
        Requirement::Snapshot if matches!(caller.standing, Standing::Anonymous(_)) && !has(grants, "write", "") => {
            return lacking;
        }
        Requirement::Read | Requirement::Write | Requirement::List | Requirement::Convert | Requirement::Snapshot => {}
        Requirement::Properties | Requirement::Copy | Requirement::Move => {}
    }
    let Some(name) = decoded(request) else { return Outcome::Invalid };
    let is_key = request.template == "/store/{key}";
    // All keys of a node, or below a prefix, begin with its name and a slash.
    let name = if is_key || name.is_empty() { name } else { format!("{name}/") };
    match (request.requires, request.copy_to) {
        (Requirement::Write, _) | (Requirement::Convert, None) => judged(has(grants, "write", &name)),
        (Requirement::Convert, Some(copy_to)) => {
            judged(has(grants, "read", &name) && has(grants, "write", &format!("{copy_to}/")))
        }
        (Requirement::Copy | Requirement::Move, copy_to) => {
            let right = if request.requires == Requirement::Copy { "read" } else { "write" };
            // Without a destination the request is invalid, which is no question of rights.
            judged(has(grants, right, &name) && copy_to.is_none_or(|copy_to| has(grants, "write", copy_to)))
        }
        (Requirement::Properties, _) => {
            let below = if is_key { format!("{name}/") } else { name.clone() };
            let leads = !request.lists_keys && grants.iter().any(|(_, prefix)| prefix.starts_with(&below));
            judged(leads || has(grants, "read", &name) || has(grants, "read", &below))
        }
        (Requirement::List, _) if !request.lists_keys => {
            let leads = grants.iter().any(|(_, prefix)| prefix.starts_with(&name));
            judged(leads || has(grants, "read", &name))
        }
        _ => judged(has(grants, "read", &name)),
    }
}

/// The outcome of a response.
fn outcome(answer: &TestResponse) -> Outcome {
    let kind = Problem::from_json(&answer.body).map(|problem| problem.kind);
    match answer.status.as_u16() {
        401 => Outcome::Unauthorized,
        // Whoever may change both ends is told that they overlap.
        403 if kind == Some(ProblemType::OverlappingDestination) => Outcome::Allowed,
        403 => Outcome::Forbidden,
        400 if matches!(
            kind,
            None | Some(ProblemType::InvalidKey | ProblemType::InvalidPath | ProblemType::InvalidParameter)
        ) =>
        {
            Outcome::Invalid
        }
        _ => Outcome::Allowed,
    }
}

/// An access directory with callers of every kind.
struct Callers {
    _dir: tempfile::TempDir,
    directory: Arc<AccessDirectory>,
    callers: Vec<Caller>,
}

/// The grants of the model as texts.
fn texts(list: &[(&str, &str)]) -> Vec<String> {
    list.iter().map(|(right, prefix)| format!("{right}:{prefix}")).collect()
}

const TOKENS: [(&str, &[(&str, &str)]); 9] = [
    ("read all", &[("read", "")]),
    ("write all", &[("write", "")]),
    ("admin all", &[("admin", "")]),
    ("read lab", &[("read", "lab/")]),
    ("write lab", &[("write", "lab/")]),
    ("admin lab", &[("admin", "lab/")]),
    ("read lab, write exp1", &[("read", "lab/"), ("write", "lab/exp1/")]),
    ("write lab2", &[("write", "lab2/")]),
    ("read deep", &[("read", "lab/x/deep/")]),
];

impl Callers {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let directory = AccessDirectory::open(dir.path()).unwrap();
        let mut callers =
            vec![Caller { name: "nobody", credential: Credential::None, standing: Standing::Anonymous(&[]) }];
        let mut refused = |name, text: String, as_link: bool| {
            let credentials = match as_link {
                true => vec![Credential::Link(text)],
                false => vec![Credential::Bearer(text.clone()), Credential::Basic(text)],
            };
            let refused = credentials.into_iter();
            callers.extend(refused.map(|credential| Caller { name, credential, standing: Standing::Refused }));
        };
        // A token and a link of a key that is dropped.
        let admin = || new_token(&["admin:/"]);
        let (_, rotated) = create_token(&directory, admin());
        let (_, rotated_link) = create_link(&directory, new_link("lab/"));
        let old = directory.keys().unwrap()[0].id;
        directory.rotate().unwrap();
        directory.drop_key(old).unwrap();
        refused("rotated out", rotated, false);
        refused("link rotated out", rotated_link, true);
        let (id, revoked) = create_token(&directory, admin());
        let (_, orphaned) = create_link(&directory, NewLink { maker: Some(id), ..new_link("lab/") });
        directory.revoke(id).unwrap();
        refused("revoked", revoked, false);
        refused("link after its maker", orphaned, true);
        let (id, revoked) = create_link(&directory, new_link("lab/"));
        directory.revoke_link(id).unwrap();
        refused("link revoked", revoked, true);
        let (_, valid) = create_token(&directory, admin());
        let flipped = if valid.ends_with('0') { '1' } else { '0' };
        let (start, _) = valid.split_at(valid.len() - 1);
        refused("forged", format!("{start}{flipped}"), false);
        refused("truncated", start.to_owned(), false);
        refused("empty", String::new(), false);
        refused("token as a link", valid.clone(), true);
        let (_, valid_link) = create_link(&directory, new_link("lab/"));
        refused("link as a token", valid_link.clone(), false);
        let other_dir = tempfile::tempdir().unwrap();
        let other = AccessDirectory::open(other_dir.path()).unwrap();
        refused("wrong key", create_token(&other, admin()).1, false);
        // These expire before they are used.
        let soon = SystemTime::now() + Duration::from_millis(1500);
        refused("expired", create_token(&directory, NewToken { expires: Some(soon), ..admin() }).1, false);
        let link = NewLink { expires: soon, ..new_link("lab/") };
        refused("link expired", create_link(&directory, link).1, true);
        for (name, list) in TOKENS {
            let (_, secret) = create_token(&directory, new_token(&texts(list)));
            let standing = Standing::Token(list);
            callers.push(Caller { name, credential: Credential::Bearer(secret.clone()), standing });
            callers.push(Caller { name, credential: Credential::Basic(secret), standing });
        }
        callers.push(Caller {
            name: "link",
            credential: Credential::Link(valid_link),
            standing: Standing::Link("lab/"),
        });
        let (_, other) = create_link(&directory, new_link("lab2/"));
        callers.push(Caller {
            name: "other link",
            credential: Credential::Link(other),
            standing: Standing::Link("lab2/"),
        });
        Self { _dir: dir, directory: Arc::new(directory), callers }
    }

    fn policy(&self, anonymous: &[(&str, &str)]) -> AccessPolicy {
        policy(&self.directory, AnonymousAccess::Granted(grants(&texts(anonymous))))
    }
}

/// The parts of a response that must not depend on what exists.
fn visible(answer: &TestResponse) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut headers: Vec<_> = answer.headers.iter().map(header).collect();
    headers.sort();
    (answer.status.as_u16(), headers, answer.body.to_vec())
}

#[tokio::test]
async fn every_caller_has_exactly_the_rights_of_the_table() {
    let callers = Callers::new();
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let mut table = Table::default();
    table.fill(&callers, &[], &callers.callers).await;
    // A public prefix gives no right to a credential that is not accepted, and none to a token either.
    let public: &[(&str, &str)] = &[("read", "lab/"), ("write", "lab/inbox/")];
    let nobody = Caller { name: "public", credential: Credential::None, standing: Standing::Anonymous(public) };
    let others = callers.callers.iter().filter(|caller| ["revoked", "write lab2"].contains(&caller.name));
    let others: Vec<_> = others.cloned().chain([nobody]).collect();
    table.fill(&callers, public, &others).await;
    let Table { counts, holes } = table;
    assert!(holes.is_empty(), "{} holes: {:#?}", holes.len(), &holes[..holes.len().min(10)]);
    println!("cells of the table of rights: {counts:?}");
}

/// The cells of the table by their expected outcome, and those with another outcome.
#[derive(Default)]
struct Table {
    counts: BTreeMap<Outcome, usize>,
    holes: Vec<String>,
}

impl Table {
    /// Sends each request as each caller to a server with these anonymous rights.
    async fn fill(&mut self, callers: &Callers, anonymous: &[(&str, &str)], who: &[Caller]) {
        let (full, empty) =
            (CountedServer::new(callers.policy(anonymous)), CountedServer::new(callers.policy(anonymous)));
        for caller in who {
            full.server.store.erase_prefix(&Prefix::root()).await.unwrap();
            full.fill().await;
            for request in requests() {
                self.fill_cell(&full, &empty, caller, &request).await;
            }
        }
    }

    async fn fill_cell(&mut self, full: &CountedServer, empty: &CountedServer, caller: &Caller, request: &TestRequest) {
        let expected = expected(request, caller);
        *self.counts.entry(expected).or_default() += 1;
        let (answer, calls) = full.send(request, caller).await;
        let shown = format!("{} {} as {}", request.method, request.target, caller.name);
        let found = outcome(&answer);
        // A response to HEAD has no problem that says why it is 400.
        let is_head = request.method == Method::HEAD && answer.status == 400;
        if found != expected && !is_head {
            self.holes.push(format!("{shown}: {found:?} instead of {expected:?}: {answer:?}"));
        }
        if !matches!(expected, Outcome::Unauthorized | Outcome::Forbidden) {
            return;
        }
        if calls > 0 {
            self.holes.push(format!("{shown}: denied, with {calls} calls to the store"));
        }
        let (missing, _) = empty.send(request, caller).await;
        if visible(&missing) != visible(&answer) {
            self.holes.push(format!("{shown}: {answer:?} if it exists, {missing:?} if not"));
        }
    }
}
