//! Agreement of `openapi.yaml`, the route table and the problem types.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{
    TestResponse, TestServer,
    contract::{CONTRACT, Contract, RequestInfo},
};
use http::Method;
use serde_json::Value;
use zarrd_meta::json::Json;
use zarrd_server::{ROUTES, Requirement, Safety};
use zarrd_wire::{
    listing::{DirListing, KeyListing},
    node::{ConvertReport, Source, ValidateReport, WriteAnswer},
    problem::{Problem, ProblemType},
};

fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn object(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value))
}

/// The operations of the document, of methods that OpenAPI does not know too: path, method and description.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let contract = Contract::parse(&document.to_string());
    let of_path = |(path, item): (&str, &Value)| {
        let all = contract.operations(item).into_iter();
        all.map(|(method, operation)| (path.to_owned(), method.to_owned(), operation.clone())).collect::<Vec<_>>()
    };
    object(&document["paths"]).flat_map(of_path).collect()
}

#[test]
fn routes_and_document_agree() {
    let document = document();
    let described: BTreeSet<_> =
        operations(&document).into_iter().map(|(path, method, _)| (path, method.to_uppercase())).collect();
    let routed: BTreeSet<_> = ROUTES
        .iter()
        .flat_map(|route| route.operations.iter().map(|operation| (route.template, &operation.method)))
        .map(|(template, method)| (template.to_owned(), method.to_string()))
        .collect();
    assert_eq!(described, routed);
}

#[test]
fn routes_are_the_templates_of_the_contract() {
    let routed: BTreeSet<_> = ROUTES.iter().map(|route| route.template).collect();
    assert_eq!(routed, zarrd_wire::routes::TEMPLATES.iter().copied().collect());
}

/// The roles in `security` of an operation, apart from anonymous access; the default is that of the document.
fn documented_roles(document: &Value, operation: &Value) -> BTreeSet<String> {
    let security = operation.get("security").unwrap_or(&document["security"]).as_array().unwrap();
    let roles = security.iter().flat_map(|scheme| object(scheme).flat_map(|(_, roles)| roles.as_array().unwrap()));
    roles.map(|role| role.as_str().unwrap().to_owned()).collect()
}

#[test]
fn rights_of_routes_and_document_agree() {
    let document = document();
    let documented: BTreeSet<_> = operations(&document)
        .into_iter()
        .map(|(path, method, operation)| (path, method.to_uppercase(), documented_roles(&document, &operation)))
        .collect();
    let roles = |requirement: Requirement| -> &[&str] {
        match requirement {
            Requirement::Nothing => &[],
            Requirement::Read | Requirement::List | Requirement::Metrics | Requirement::Snapshot => &["read"],
            Requirement::Properties => &["read"],
            Requirement::Write | Requirement::Move => &["write"],
            Requirement::Convert | Requirement::Copy => &["read", "write"],
            Requirement::Token => &["token"],
        }
    };
    let mut routed: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (route, operation) in ROUTES.iter().flat_map(|route| route.operations.iter().map(move |of| (route, of))) {
        let required = routed.entry((route.template.to_owned(), operation.method.to_string())).or_default();
        required.extend(roles(operation.requires).iter().map(|&role| role.to_owned()));
        // Operations that change the store, or need the right to, are unsafe; those that need the right to read are
        // safe.
        assert!(!operation.changes_store() || operation.safety == Safety::Unsafe, "{operation:?}");
        let reads = matches!(operation.requires, Requirement::Read | Requirement::List | Requirement::Metrics);
        assert!(!reads || operation.safety == Safety::Safe, "{operation:?}");
    }
    let routed: BTreeSet<_> = routed.into_iter().map(|((path, method), roles)| (path, method, roles)).collect();
    assert_eq!(documented, routed);
}

#[tokio::test]
async fn every_route_is_served() {
    let server = TestServer::new();
    for (path, method, _) in operations(&document()) {
        let path = path
            .replace("{id}", "00")
            .replace("{key}", "a/b")
            .replace("{prefix}", "a/b")
            .replace("{path}", "a/b")
            .replace("{version}", "v3");
        let method: Method = method.to_uppercase().parse().unwrap();
        let allowed = server.request(Method::OPTIONS, &path, &[], "").await;
        assert!(allowed.header("allow").split(", ").any(|allowed| allowed == method.as_str()), "{method} {allowed:?}");
        // At the root there is something for browsers only.
        let headers: &[_] = if path == "/" { &[("accept", "text/html")] } else { &[] };
        let path = path.replace("{file}", &zarrd_page::files()[0].name);
        let answer = server.request(method.clone(), &path, headers, "").await;
        if method == Method::HEAD {
            // HEAD has no problem document that names the reason.
            let get = server.get(&path, headers).await;
            assert_eq!((answer.status, &answer.body[..]), (get.status, &b""[..]), "{path}");
            continue;
        }
        let problem = Problem::from_json(&answer.body).map(|problem| problem.kind);
        let unrouted = [Some(ProblemType::NotFound), Some(ProblemType::MethodNotAllowed)];
        assert!(!unrouted.contains(&problem), "{path}: {answer:?}");
    }
}

#[test]
fn head_has_the_responses_of_get() {
    let document = document();
    let names = |value: &Value| object(value).map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>();
    let mut found = 0;
    for (path, item) in object(&document["paths"]).filter(|(_, item)| item.get("get").is_some()) {
        let (get, head) = (&item["get"]["responses"], &item["head"]["responses"]);
        // Only `GET` has ranges.
        let ranges = ["206", "416"].map(str::to_owned).into();
        let of_get: BTreeSet<_> = names(get).difference(&ranges).cloned().collect();
        let of_get_only: Vec<_> = of_get.difference(&names(head)).cloned().collect();
        assert_eq!(of_get_only, [""; 0], "{path}");
        assert!(names(head).is_subset(&names(get)), "{path}");
        for (status, response) in object(head) {
            let headers = |response: &Value| response.get("headers").map(names).unwrap_or_default();
            assert_eq!(headers(response), headers(&get[status]), "{path} {status}");
            assert!(response.get("content").is_none(), "{path} {status}: HEAD has no body");
            found += 1;
        }
    }
    assert_eq!(found, 124);
}

/// Removes parts of the document, and checks that responses are then reported as undocumented.
#[tokio::test]
async fn undocumented_responses_are_detected() {
    let server = TestServer::new();
    server.set("a/b", b"1").await;
    let yaml = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.yaml")).unwrap();
    let get = "/paths/~1store~1{key}/get/responses";
    let list = "/paths/~1store~1{prefix}~1/get/responses/200";
    for (path, place, member, reason) in [
        ("/store/a/b", get.to_owned(), "200", "the status is not documented"),
        ("/store/none", get.to_owned(), "404", "the status is not documented"),
        ("/store/a/b", format!("{get}/200/headers"), "ETag", "the header etag is not documented"),
        ("/store/a/b", format!("{get}/200/content"), "application/octet-stream", "the media type"),
        ("/store/a/b", format!("{get}/200"), "content", "a body is not documented"),
        ("/store/none", format!("{get}/404/content/application~1problem+json/examples"), "no-such-key", "no-such-key"),
        ("/store/a/", format!("{list}/content"), "application/json", "the media type"),
        ("/store/a/", "/components/schemas/DirListing/properties".to_owned(), "cursor", "cursor"),
        ("/nothing", "/components/responses".to_owned(), "NotFound", "the status is not documented"),
    ] {
        let answer = server.get(path, &[]).await;
        let mut changed = document();
        let parent = changed.pointer_mut(&place).and_then(Value::as_object_mut);
        assert!(parent.unwrap_or_else(|| panic!("{place}")).remove(member).is_some(), "{place} {member}");
        let noticed = check(&Contract::parse(&changed.to_string()), path, &answer);
        assert!(noticed.clone().is_err_and(|said| said.contains(reason)), "{path} {member}: {noticed:?}");
    }
    for (path, from, to, reason) in [
        ("/store/a/", "cursor: { type: [string, 'null']", "cursor: { type: [string, integer]", "oneOf"),
        ("/store/a/", "size: { type: integer", "size: { type: string", "oneOf"),
        (
            "/store/a/b",
            "schema: { type: string, enum: [no-cache, 'private, no-cache'] }",
            "schema: { type: string, const: no-store }",
            "Cache-Control",
        ),
    ] {
        let answer = server.get(path, &[]).await;
        assert!(yaml.contains(from), "{from}");
        let noticed = check(&Contract::parse(&yaml.replace(from, to)), path, &answer);
        assert!(noticed.clone().is_err_and(|said| said.contains(reason)), "{path} {to}: {noticed:?}");
    }
    let mut answer = server.get("/store/a/b", &[]).await;
    answer.headers.remove("zarr-modified");
    let noticed = check(&CONTRACT, "/store/a/b", &answer);
    assert_eq!(noticed, Err("the required header Zarr-Modified is missing".to_owned()));
}

fn check(contract: &Contract, path: &str, answer: &TestResponse) -> Result<(), String> {
    let asked = RequestInfo::new(&Method::GET, &path.parse().unwrap());
    contract.try_check(&asked, answer.status, &answer.headers, Some(&answer.body))
}

#[test]
fn every_problem_type_has_a_valid_example() {
    let document = document();
    let types = document["components"]["schemas"]["ProblemType"]["enum"].as_array().unwrap();
    assert_eq!(types.len(), ProblemType::ALL.len());
    for kind in ProblemType::ALL {
        assert!(types.contains(&Value::from(kind.uri())), "{kind:?}");
        let value = &document["components"]["examples"][kind.slug()]["value"];
        let example: Problem =
            serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        let plain = Problem::new(*kind);
        assert_eq!((example.kind, &example.title, example.status), (*kind, &plain.title, plain.status));
        assert_eq!(serde_json::to_value(&example).unwrap(), *value, "{kind:?} has a member that there is not");
    }
}

/// The problem types in the examples of a response, each of which has to have the response's status.
fn problems_of(status: Option<&str>, response: &Value) -> Vec<ProblemType> {
    let examples = &response["content"]["application/problem+json"]["examples"];
    let Some(examples) = examples.as_object() else { return Vec::new() };
    let kind = |(slug, example): (&String, &Value)| {
        let kind = *ProblemType::ALL.iter().find(|kind| kind.slug() == slug).unwrap_or_else(|| panic!("{slug}"));
        assert_eq!(example["$ref"], format!("#/components/examples/{slug}"));
        assert!(status.is_none_or(|status| kind.status().as_str() == status), "{slug} is not a {status:?}");
        kind
    };
    examples.iter().map(kind).collect()
}

#[test]
fn every_problem_type_is_documented() {
    let document = document();
    let mut found: Vec<_> =
        object(&document["components"]["responses"]).flat_map(|(_, response)| problems_of(None, response)).collect();
    for (_, _, operation) in operations(&document) {
        for (status, response) in object(&operation["responses"]) {
            found.extend(problems_of(Some(status), response));
        }
    }
    // Its body is XML.
    found.push(ProblemType::PropfindFiniteDepth);
    for kind in ProblemType::ALL {
        assert!(found.contains(kind), "no operation has {kind:?}");
    }
}

/// An operation that takes memory may exceed the caller's share.
#[test]
fn operations_that_take_memory_document_429() {
    let listings = [
        "listPrefix",
        "headListPrefix",
        "listRoot",
        "headListRoot",
        "listTokens",
        "headListTokens",
        "listShares",
        "headListShares",
        "takeSnapshot",
        "copy",
        "move",
    ];
    let mut found = 0;
    for (path, method, operation) in operations(&document()) {
        let id = operation["operationId"].as_str().unwrap();
        let takes = ["/array/{path}", "/node/{path}"].contains(&path.as_str()) || listings.contains(&id);
        let responses = &operation["responses"];
        assert_eq!(responses.get("429").is_some(), takes, "{id}");
        if takes && method != "head" {
            assert_eq!(problems_of(Some("429"), &responses["429"]), [ProblemType::TooManyRequests], "{id}");
        }
        if takes && !listings.contains(&id) && method != "head" {
            assert!(problems_of(Some("413"), &responses["413"]).contains(&ProblemType::TooMuchMemory), "{id}");
        }
        found += usize::from(takes);
    }
    assert_eq!(found, 24);
}

#[test]
fn every_reference_resolves() {
    fn walk(document: &Value, value: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                members.values().for_each(|member| walk(document, member));
            }
            Value::Array(elements) => elements.iter().for_each(|element| walk(document, element)),
            _ => {}
        }
    }
    let document = document();
    walk(&document, &document);
}

#[test]
fn listing_examples_parse() {
    let examples = &document()["components"]["examples"];
    let dir: DirListing = serde_json::from_value(examples["dir-listing"]["value"].clone()).unwrap();
    assert_eq!(dir.into_page().unwrap().prefixes.len(), 1);
    let keys: KeyListing = serde_json::from_value(examples["key-listing"]["value"].clone()).unwrap();
    assert_eq!(keys.into_page().unwrap().keys.len(), 2);
}

#[test]
fn node_examples_parse() {
    let examples = &document()["components"]["examples"];
    let value = |name: &str| examples[name]["value"].clone();
    for name in ["include-source", "include-files"] {
        let (source, node) = Source::of_answer(&Json::compact(&value(name))).unwrap();
        assert_eq!(Json::parse(source.with_node(&node).unwrap()).unwrap(), value(name));
    }
    let report: ValidateReport = serde_json::from_value(value("validate-report")).unwrap();
    assert_eq!(serde_json::to_value(report).unwrap(), value("validate-report"));
    let report: ConvertReport = serde_json::from_value(value("convert-report")).unwrap();
    assert_eq!(serde_json::to_value(report).unwrap(), value("convert-report"));
    let answer: WriteAnswer = serde_json::from_value(value("write-answer")).unwrap();
    assert_eq!(serde_json::to_value(answer).unwrap(), value("write-answer"));
}

#[tokio::test]
async fn document_is_served() {
    let served = TestServer::new().get("/openapi.yaml", &[]).await;
    assert_eq!(served.header("content-type"), "application/yaml");
    assert_eq!(serde_saphyr::from_str::<Value>(served.text()).unwrap(), document());
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}
