//! Requests for and next to nodes whose documents are broken.

use std::collections::BTreeSet;

use crate::common::{
    TestResponse, TestServer,
    arrays::put,
    nodes::{v2_array, v3_array},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::{node::Source, problem::ProblemType};

const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");

/// A group with a readable array, `good`, and a broken node, `bad`.
#[derive(Clone, Copy, Debug)]
struct BrokenLocation {
    group: &'static str,
    dialect: &'static str,
    /// The key prefixes of the group's members and of their chunks.
    keys: [&'static str; 2],
    /// The documents of the group and its ancestors.
    documents: &'static [(&'static str, &'static str)],
}

const V2_GROUP: &str = r#"{"zarr_format": 2}"#;
const V3_GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;
const ENTRY: &str = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": [],
    "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json"}"#;
const DRAFT_GROUP: &str = r#"{"extensions": [], "attributes": {}}"#;

const LOCATIONS: &[BrokenLocation] = &[
    BrokenLocation { group: "/", dialect: "v3", keys: ["", ""], documents: &[] },
    BrokenLocation { group: "/", dialect: "v2", keys: ["", ""], documents: &[(".zgroup", V2_GROUP)] },
    BrokenLocation { group: "/lab/in", dialect: "v3", keys: ["lab/in/", "lab/in/"], documents: &[] },
    BrokenLocation { group: "/lab/in", dialect: "v2", keys: ["lab/in/", "lab/in/"], documents: &[] },
    BrokenLocation {
        group: "/lab/in",
        dialect: "v3",
        keys: ["lab/in/", "lab/in/"],
        documents: &[("lab/in/zarr.json", V3_GROUP)],
    },
    BrokenLocation {
        group: "/lab/in",
        dialect: "v2",
        keys: ["lab/in/", "lab/in/"],
        documents: &[("lab/in/.zgroup", V2_GROUP)],
    },
    BrokenLocation {
        group: "/d/in",
        dialect: "draft",
        keys: ["d/meta/root/in/", "d/data/root/in/"],
        documents: &[("d/zarr.json", ENTRY), ("d/meta/root.group.json", DRAFT_GROUP)],
    },
    BrokenLocation {
        group: "/d/in",
        dialect: "draft",
        keys: ["d/meta/root/in/", "d/data/root/in/"],
        documents: &[("d/zarr.json", ENTRY), ("d/meta/root/in.group.json", DRAFT_GROUP)],
    },
];

/// The documents of `bad`, each with its faults.
fn faults(dialect: &str) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let without = |mut document: Value, name: &str| {
        document.as_object_mut().unwrap().remove(name);
        document.to_string().into_bytes()
    };
    let broken = |invalid: Vec<u8>| {
        let texts: [&[u8]; 4] = [b"", b"{", b"[1]", b"{\"a\": \"\xff\"}"];
        texts.into_iter().map(<[u8]>::to_vec).chain([invalid]).collect()
    };
    match dialect {
        "v2" => vec![
            ("bad/.zarray", broken(without(v2_array("|u1", &[2], &[2]), "shape"))),
            ("bad/.zgroup", broken(br#"{"zarr_format": 7}"#.to_vec())),
        ],
        "v3" => vec![("bad/zarr.json", broken(without(v3_array("uint8", &[2], &[2]), "shape")))],
        _ => vec![
            ("bad.array.json", broken(without(draft_array(), "shape"))),
            ("bad.group.json", broken(br#"{"extensions": 3, "attributes": {}}"#.to_vec())),
        ],
    }
}

fn draft_array() -> Value {
    json!({
        "shape": [2], "data_type": "|u1", "fill_value": 0, "chunk_memory_layout": "C", "extensions": [], "attributes": {},
        "chunk_grid": {"type": "regular", "separator": "/", "chunk_shape": [2]},
    })
}

/// A fault at a location.
#[derive(Clone, Debug)]
struct Case {
    location: BrokenLocation,
    /// The key and content of the broken document.
    key: String,
    text: Vec<u8>,
}

impl Case {
    fn all() -> Vec<Self> {
        let of = |location: &BrokenLocation| {
            let location = *location;
            let named = faults(location.dialect).into_iter();
            let cases = named.flat_map(|(name, texts)| texts.into_iter().map(move |text| (name, text)));
            cases.map(move |(name, text)| Self { location, key: format!("{}{name}", location.keys[0]), text })
        };
        LOCATIONS.iter().flat_map(of).collect()
    }

    async fn server(&self) -> TestServer {
        let server = TestServer::new();
        for (key, document) in self.location.documents {
            put(&server, key, document.as_bytes().to_vec()).await;
        }
        let [meta, data] = self.location.keys;
        let (name, chunk, document) = match self.location.dialect {
            "v2" => ("good/.zarray", "good/0", {
                let mut document = v2_array("|u1", &[2], &[2]);
                document.as_object_mut().unwrap().remove("attributes");
                document
            }),
            "v3" => ("good/zarr.json", "good/c/0", v3_array("uint8", &[2], &[2])),
            _ => ("good.array.json", "good/c0", draft_array()),
        };
        put(&server, &format!("{meta}{name}"), document.to_string().into_bytes()).await;
        put(&server, &format!("{data}{chunk}"), vec![5, 6]).await;
        put(&server, &self.key, self.text.clone()).await;
        server
    }

    fn group(&self, query: &str) -> String {
        format!("/node{}{query}", self.location.group)
    }

    fn child(&self, surface: &str, name: &str) -> String {
        format!("/{surface}{}/{name}", self.location.group.trim_end_matches('/'))
    }

    fn bad(&self) -> String {
        format!("{}/bad", self.location.group.trim_end_matches('/'))
    }

    #[track_caller]
    fn check(&self, answer: &TestResponse, status: StatusCode, what: &str) {
        assert_eq!(answer.status, status, "{what}: {self:?}\n{answer:?}");
    }
}

#[tokio::test]
async fn siblings_of_a_broken_node_are_described() {
    for case in Case::all() {
        let server = case.server().await;
        let none = server.get(&case.group("?depth=0"), &[]).await;
        case.check(&none, StatusCode::OK, "depth=0");
        assert_eq!(none.header("zarr-broken"), "", "{case:?}");
        for query in ["?depth=1", "?depth=2", "?depth=all", "?as=v3", "?as=v2&depth=all", "?limit=100"] {
            let answer = server.get(&case.group(query), &[]).await;
            case.check(&answer, StatusCode::OK, query);
            assert_eq!(answer.header("zarr-broken"), "1", "{query} {case:?}");
            let members: Vec<String> = answer.json()["members"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(members, ["good"], "{query} {case:?}");
            let head = server.head(&case.group(query), &[]).await;
            assert_eq!(head.header("zarr-broken"), "1", "{query} {case:?}");
        }
        let flat = server.get(&case.group("?depth=all&flat"), &[]).await;
        assert_eq!(flat.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["", "/good"], "{case:?}");
        for above in ["/node/?depth=all", "/node/?depth=all&as=v3", "/node/?depth=1"] {
            let answer = server.get(above, &[]).await;
            case.check(&answer, StatusCode::OK, above);
        }
    }
}

#[tokio::test]
async fn broken_nodes_are_reported_with_key_and_reason() {
    for case in Case::all() {
        let server = case.server().await;
        for query in
            ["?include=source", "?include=source&depth=all", "?include=source&as=v2", "?include=source&limit=9"]
        {
            let answer = server.get(&case.group(query), &[]).await;
            case.check(&answer, StatusCode::OK, query);
            let source: Source = serde_json::from_slice(&answer.body).unwrap();
            let [broken] = &source.broken[..] else { panic!("{query} {case:?}: {source:?}") };
            assert_eq!((broken.path.as_str(), broken.problem.key.as_str()), (case.bad().as_str(), case.key.as_str()));
            assert_eq!(broken.dialect.name(), case.location.dialect);
            assert!((5..=200).contains(&broken.problem.reason.len()), "{broken:?}");
            assert!(source.other_dialects.is_empty(), "{source:?}");
        }
        // Requests for the broken node itself name its key.
        for path in [case.child("node", "bad"), case.child("array", "bad"), case.child("node", "bad?as=v3")] {
            let problem = server.get(&path, &[]).await.problem(ProblemType::InvalidMetadata);
            assert_eq!(problem.members.key.as_deref(), Some(case.key.as_str()), "{path} {case:?}");
        }
    }
}

#[tokio::test]
async fn broken_nodes_are_on_one_page() {
    for case in Case::all() {
        let server = case.server().await;
        let (mut target, mut broken, mut names) = (case.group("?limit=1"), 0, BTreeSet::new());
        loop {
            let answer = server.get(&target, &[]).await;
            case.check(&answer, StatusCode::OK, &target);
            broken += answer.header("zarr-broken").parse::<u32>().unwrap_or_default();
            names.extend(answer.json()["members"].as_object().unwrap().keys().cloned());
            let cursor = answer.header("zarr-cursor");
            if cursor.is_empty() {
                break;
            }
            target = case.group(&format!("?limit=1&cursor={cursor}"));
        }
        assert_eq!((broken, names), (1, BTreeSet::from(["good".to_owned()])), "{case:?}");
    }
}

#[tokio::test]
async fn broken_node_is_a_difference() {
    for case in Case::all() {
        let server = case.server().await;
        let zom = server.get(&case.group("?depth=all"), &[]).await.json();
        let dialect = format!("dialect={}", case.location.dialect);
        let report = server.json(Method::POST, &case.group(&format!("?validate&{dialect}")), &zom).await;
        case.check(&report, StatusCode::OK, "validate");
        let report = report.json();
        assert_eq!(report["unchanged"], false, "{case:?}");
        let differences = report["differences"].as_array().unwrap();
        assert_eq!(differences.len(), 1, "{report}");
        assert_eq!(differences[0]["pointer"], "/members/bad");
        assert_eq!(differences[0]["actual"]["problem"]["key"], case.key);
        // A node created in its place is a different one.
        let mut declared = zom.clone();
        declared["members"]["bad"] = zom["members"]["good"].clone();
        let report = server.json(Method::POST, &case.group(&format!("?validate&{dialect}")), &declared).await.json();
        assert_eq!(report["differences"][0]["pointer"], "/members/bad", "{case:?}");
        assert_eq!(report["differences"][0]["expected"], zom["members"]["good"]);
        assert_eq!(report["differences"][0]["actual"]["problem"]["key"], case.key);
        for body in [&zom, &declared] {
            let refused = server.json(Method::PUT, &case.group(&format!("?{dialect}")), body).await;
            refused.problem(ProblemType::NodeConflict);
        }
        assert_eq!(server.value(&case.key).await.unwrap(), case.text, "{case:?}");
    }
}

#[tokio::test]
async fn broken_node_is_replaced_and_erased() {
    for case in Case::all() {
        let (dialect, key) = (format!("dialect={}", case.location.dialect), case.key.as_str());
        let server = case.server().await;
        let zom = server.get(&case.group("?depth=all"), &[]).await.json();
        let answer = server.json(Method::PUT, &case.group(&format!("?overwrite&{dialect}")), &zom).await;
        case.check(&answer, StatusCode::OK, "replace of the group");
        assert_eq!((answer.header("zarr-broken"), server.value(key).await), ("", None), "{case:?}");
        assert_eq!(server.get(&case.child("array", "good"), &[]).await.json(), json!([5, 6]), "{case:?}");

        let server = case.server().await;
        let bad = case.child("node", "bad");
        let good = &zom["members"]["good"];
        let refused = server.json(Method::PUT, &format!("{bad}?{dialect}"), good).await;
        refused.problem(ProblemType::NodeConflict);
        let answer = server.json(Method::PUT, &format!("{bad}?overwrite&{dialect}"), good).await;
        case.check(&answer, StatusCode::OK, "replace of the node");
        assert_eq!(server.get(&bad, &[]).await.json(), *good, "{case:?}");

        for query in ["", &format!("?{dialect}")] {
            let server = case.server().await;
            let answer = server.delete(&format!("{bad}{query}"), &[]).await;
            case.check(&answer, StatusCode::OK, "erasing the node");
            assert_eq!(server.value(key).await, None, "{case:?}");
            assert_eq!(server.get(&case.child("array", "good"), &[]).await.json(), json!([5, 6]), "{case:?}");
        }

        let server = case.server().await;
        let answer = server.delete(&case.group("?confirm=all"), &[]).await;
        case.check(&answer, StatusCode::OK, "erasing the group");
        assert_eq!(server.value(key).await, None, "{case:?}");
    }
}

#[tokio::test]
async fn conversion_reports_broken_nodes_as_losses() {
    for case in Case::all().into_iter().filter(|case| case.location.group != "/") {
        let other = if case.location.dialect == "v2" { "v3" } else { "v2" };
        let mut targets = vec![format!("?convert={other}&target=/copy")];
        if case.location.dialect == "v2" {
            targets.push(format!("?convert={other}"));
        }
        for query in targets {
            let server = case.server().await;
            let report = server.request(Method::POST, &case.group(&query), &[], "").await;
            case.check(&report, StatusCode::OK, &query);
            let losses = report.json()["losses"].clone();
            let lost = losses.as_array().unwrap().iter().find(|loss| loss["path"] == case.bad());
            assert!(lost.unwrap()["property"].as_str().unwrap().contains(&case.key), "{losses}");
            let at = if query.contains("target=") { "/copy" } else { case.location.group };
            let good = server.get(&format!("/array{at}/good?dialect={other}"), &[]).await;
            assert_eq!(good.json(), json!([5, 6]), "{query} {case:?}");
            assert_eq!(server.value(&case.key).await.unwrap(), case.text, "{case:?}");
        }
    }
}

#[tokio::test]
async fn siblings_of_a_broken_node_are_changed() {
    for case in Case::all() {
        let server = case.server().await;
        let dialect = format!("dialect={}", case.location.dialect);
        let good = case.child("array", "good");
        case.check(&server.get(&good, &[]).await, StatusCode::OK, "reading");
        case.check(&server.put(&format!("{good}?select=0"), &[OCTETS], "\x07").await, StatusCode::OK, "writing");
        let appended = server.request(Method::POST, &format!("{good}?append=0"), &[OCTETS], "\x08").await;
        case.check(&appended, StatusCode::OK, "appending");
        assert_eq!(server.get(&good, &[]).await.json(), json!([7, 6, 8]));
        let attributes = json!({"attributes": {"n": 1}});
        let headers = [("content-type", "application/merge-patch+json")];
        for path in [case.child("node", "good"), case.group("")] {
            let patched = server.request(Method::PATCH, &path, &headers, attributes.to_string()).await;
            case.check(&patched, StatusCode::OK, &path);
        }
        let refused = server.request(Method::PATCH, &case.child("node", "bad"), &headers, attributes.to_string()).await;
        refused.problem(ProblemType::InvalidMetadata);
        let zom = server.get(&case.child("node", "good"), &[]).await.json();
        let created = server.json(Method::PUT, &format!("{}?{dialect}", case.child("node", "new/deep")), &zom).await;
        case.check(&created, StatusCode::CREATED, "declaring beside it");
        let erased = server.delete(&case.child("node", "good"), &[]).await;
        case.check(&erased, StatusCode::OK, "erasing beside it");
        assert_eq!(server.value(&case.key).await.unwrap(), case.text, "{case:?}");
    }
}

/// Texts that are not valid documents.
const INVALID_DOCUMENTS: [&[u8]; 4] = [b"", b"{", b"[1]", b"{\"a\": \"\xff\"}"];

#[tokio::test]
async fn elements_are_read_despite_broken_attributes() {
    for text in INVALID_DOCUMENTS {
        let location = LOCATIONS[5];
        let case = Case { location, key: "lab/in/good/.zattrs".to_owned(), text: text.to_vec() };
        let server = case.server().await;
        let good = case.child("array", "good");
        // The consolidated copy keeps the previous attributes.
        let copies = json!({"zarr_consolidated_format": 1, "metadata": {"good/.zattrs": {"n": 1}}});
        put(&server, "lab/in/.zmetadata", copies.to_string().into_bytes()).await;
        assert_eq!(server.get(&good, &[]).await.json(), json!([5, 6]));
        case.check(&server.put(&format!("{good}?select=0"), &[OCTETS], "\x07").await, StatusCode::OK, "writing");
        let appended = server.request(Method::POST, &format!("{good}?append=0"), &[OCTETS], "\x08").await;
        case.check(&appended, StatusCode::OK, "appending");
        assert_eq!(server.get(&good, &[]).await.json(), json!([7, 6, 8]));
        assert_eq!(server.value(&case.key).await.unwrap(), text);
        let copies: Value = serde_json::from_slice(&server.value("lab/in/.zmetadata").await.unwrap()).unwrap();
        assert_eq!(copies["metadata"]["good/.zattrs"], json!({"n": 1}), "{copies}");
        assert_eq!(copies["metadata"]["good/.zarray"]["shape"], json!([3]), "{copies}");

        let node = case.child("node", "good");
        let headers = [("content-type", "application/merge-patch+json")];
        for answer in [
            server.get(&node, &[]).await,
            server.request(Method::PATCH, &node, &headers, r#"{"attributes": {"n": 1}}"#).await,
            server.request(Method::PATCH, &node, &headers, r#"{"shape": [1]}"#).await,
        ] {
            let problem = answer.problem(ProblemType::InvalidMetadata);
            assert_eq!(problem.members.key.as_deref(), Some("lab/in/good/.zattrs"));
        }
        let group = server.get(&case.group("?include=source"), &[]).await;
        let source: Source = serde_json::from_slice(&group.body).unwrap();
        assert_eq!(source.broken[0].problem.key, case.key);
        assert_eq!(server.get(&good, &[]).await.json(), json!([7, 6, 8]), "a refused patch changed something");

        // Broken attributes of a group make it a broken node.
        let server = TestServer::new();
        put(&server, "g/.zgroup", V2_GROUP.into()).await;
        put(&server, "g/.zattrs", text.to_vec()).await;
        let problem = server.get("/node/g", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some("g/.zattrs"));
        assert_eq!(server.get("/node", &[]).await.header("zarr-broken"), "1");
        case.check(&server.delete("/node/g", &[]).await, StatusCode::OK, "erasing");
        assert_eq!(server.keys().await, [""; 0]);
    }
}
