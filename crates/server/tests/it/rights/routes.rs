//! The operations of the table of routes: of the API, and of WebDAV at the root of its listener.

use axum::body::Body;
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, Request, header::HOST};
use tower::ServiceExt;
use zarrd_server::{Operation, ROUTES, Requirement, Surface};
use zarrd_wire::{
    dav,
    problem::{Problem, ProblemType},
};

use super::{
    Cell, CountedServer, NAMES, Outcome,
    callers::{Caller, CallerKind, Credential},
    has,
};
use crate::common::{
    TestResponse,
    contract::{CONTRACT, RequestInfo},
    read,
};

/// An operation on a name.
pub(super) struct TestRequest {
    /// The listener.
    surface: Surface,
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

const UPDATE: &str = "<propertyupdate xmlns='DAV:'><set><prop><getetag/></prop></set></propertyupdate>";
const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

/// All operations with all names; WebDAV at the root of its listener as well.
pub(super) fn requests() -> Vec<TestRequest> {
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
                let target = format!("{path}{query}");
                let at_root = target.strip_prefix("/store").filter(|path| path.starts_with('/')).map(str::to_owned);
                let surfaces = [(Surface::Api, Some(target)), (Surface::Root, at_root)];
                for (surface, target) in surfaces.into_iter().filter_map(|(surface, target)| Some((surface, target?))) {
                    all.push(TestRequest {
                        surface,
                        method: operation.method.clone(),
                        target,
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

impl Cell for TestRequest {
    fn shown(&self) -> String {
        format!("{:?} {} {}", self.surface, self.method, self.target)
    }

    fn applies(&self, caller: &Caller) -> bool {
        // Share links begin paths of the API alone.
        self.surface == Surface::Api || !matches!(caller.credential, Credential::Link(_))
    }

    fn expected(&self, caller: &Caller) -> Outcome {
        let request = self;
        let link_grant;
        let (grants, lacking): (&[(&str, &str)], _) = match caller.kind {
            CallerKind::Refused => return Outcome::Unauthorized,
            CallerKind::Anonymous(grants) => (grants, Outcome::Unauthorized),
            CallerKind::Token(grants) => (grants, Outcome::Forbidden),
            CallerKind::Link(prefix) => {
                link_grant = [("read", prefix)];
                (&link_grant, Outcome::Forbidden)
            }
        };
        let decided = |allowed: bool| if allowed { Outcome::Allowed } else { lacking };
        match request.requires {
            Requirement::Nothing => return Outcome::Allowed,
            Requirement::Metrics => return decided(has(grants, "read", "")),
            Requirement::Token => return decided(matches!(caller.kind, CallerKind::Token(_))),
            Requirement::Snapshot if matches!(caller.kind, CallerKind::Anonymous(_)) && !has(grants, "write", "") => {
                return lacking;
            }
            Requirement::Read
            | Requirement::Write
            | Requirement::List
            | Requirement::Convert
            | Requirement::Snapshot => {}
            Requirement::Properties | Requirement::Copy | Requirement::Move => {}
        }
        let Some(name) = decoded(request) else { return Outcome::Invalid };
        let is_key = request.template == "/store/{key}";
        // All keys of a node, or below a prefix, begin with its name and a slash.
        let name = if is_key || name.is_empty() { name } else { format!("{name}/") };
        match (request.requires, request.copy_to) {
            (Requirement::Write, _) | (Requirement::Convert, None) => decided(has(grants, "write", &name)),
            (Requirement::Convert, Some(copy_to)) => {
                decided(has(grants, "read", &name) && has(grants, "write", &format!("{copy_to}/")))
            }
            (Requirement::Copy | Requirement::Move, copy_to) => {
                let right = if request.requires == Requirement::Copy { "read" } else { "write" };
                // Without a destination the request is invalid, which is no question of rights.
                decided(has(grants, right, &name) && copy_to.is_none_or(|copy_to| has(grants, "write", copy_to)))
            }
            (Requirement::Properties, _) => {
                let below = if is_key { format!("{name}/") } else { name.clone() };
                let leads = !request.lists_keys && grants.iter().any(|(_, prefix)| prefix.starts_with(&below));
                decided(leads || has(grants, "read", &name) || has(grants, "read", &below))
            }
            (Requirement::List, _) if !request.lists_keys => {
                let leads = grants.iter().any(|(_, prefix)| prefix.starts_with(&name));
                decided(leads || has(grants, "read", &name))
            }
            _ => decided(has(grants, "read", &name)),
        }
    }

    fn outcome(&self, answer: &TestResponse) -> Option<Outcome> {
        let kind = Problem::from_json(&answer.body).map(|problem| problem.kind);
        Some(match answer.status.as_u16() {
            401 => Outcome::Unauthorized,
            // Whoever may change both ends is told that they overlap.
            403 if kind == Some(ProblemType::OverlappingDestination) => Outcome::Allowed,
            403 => Outcome::Forbidden,
            // A response to HEAD has no problem that says why it is 400.
            400 if self.method == Method::HEAD => return None,
            400 if matches!(
                kind,
                None | Some(ProblemType::InvalidKey | ProblemType::InvalidPath | ProblemType::InvalidParameter)
            ) =>
            {
                Outcome::Invalid
            }
            _ => Outcome::Allowed,
        })
    }

    async fn send(&self, server: &CountedServer, caller: &Caller) -> TestResponse {
        let target = match &caller.credential {
            Credential::Link(link) => format!("/s/{link}{}", self.target),
            _ => self.target.clone(),
        };
        let mut http = Request::builder().method(&self.method).uri(&target).header(HOST, "localhost:8000");
        http = http.header("x-request-id", "r").header("content-type", "application/json");
        if let ("COPY" | "MOVE", Some(name)) = (self.method.as_str(), self.copy_to) {
            let base = if self.surface == Surface::Root { "" } else { "/store" };
            http = http.header("destination", format!("{base}/{name}"));
        }
        if self.method == dav::propfind() {
            let depth = if self.target.contains("?depth=0") { "0" } else { "1" };
            http = http.header("depth", if self.lists_keys { "infinity" } else { depth });
        }
        match &caller.credential {
            Credential::None | Credential::Link(_) => {}
            Credential::Bearer(token) => http = http.header("authorization", format!("Bearer {token}")),
            Credential::Basic(token) => {
                http = http.header("authorization", format!("Basic {}", STANDARD.encode(format!("any:{token}"))));
            }
        }
        let request = http.body(Body::from(self.body)).unwrap();
        let info = RequestInfo::new(request.method(), request.uri());
        let answer = read(server.router(self.surface).oneshot(request).await.unwrap()).await;
        // The contract has the paths of the API.
        if self.surface == Surface::Api {
            CONTRACT.check(&info, answer.status, &answer.headers, Some(&answer.body));
        }
        answer
    }
}
