//! Documents that cannot be read, and the requests around them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod common;

use std::collections::BTreeSet;

use common::{
    Answer, Site,
    arrays::put,
    nodes::{v2_array, v3_array},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use wire::{node::Source, problem::ProblemType};

const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");

/// A group with a readable array, `good`, and a node `bad` beside it.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: &'static str,
    dialect: &'static str,
    /// What the keys of the group's members begin with, and those of their chunks.
    keys: [&'static str; 2],
    /// The documents of the group and of those above it.
    documents: &'static [(&'static str, &'static str)],
}

const V2_GROUP: &str = r#"{"zarr_format": 2}"#;
const V3_GROUP: &str = r#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;
const ENTRY: &str = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": [],
    "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json"}"#;
const DRAFT_GROUP: &str = r#"{"extensions": [], "attributes": {}}"#;

const PLACES: &[Place] = &[
    Place { group: "/", dialect: "v3", keys: ["", ""], documents: &[] },
    Place { group: "/", dialect: "v2", keys: ["", ""], documents: &[(".zgroup", V2_GROUP)] },
    Place { group: "/lab/in", dialect: "v3", keys: ["lab/in/", "lab/in/"], documents: &[] },
    Place { group: "/lab/in", dialect: "v2", keys: ["lab/in/", "lab/in/"], documents: &[] },
    Place {
        group: "/lab/in",
        dialect: "v3",
        keys: ["lab/in/", "lab/in/"],
        documents: &[("lab/in/zarr.json", V3_GROUP)],
    },
    Place { group: "/lab/in", dialect: "v2", keys: ["lab/in/", "lab/in/"], documents: &[("lab/in/.zgroup", V2_GROUP)] },
    Place {
        group: "/d/in",
        dialect: "draft",
        keys: ["d/meta/root/in/", "d/data/root/in/"],
        documents: &[("d/zarr.json", ENTRY), ("d/meta/root.group.json", DRAFT_GROUP)],
    },
    Place {
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

/// A broken node somewhere.
#[derive(Clone, Debug)]
struct Case {
    place: Place,
    /// The document of `bad` that is broken, and what it is.
    key: String,
    text: Vec<u8>,
}

impl Case {
    fn all() -> Vec<Self> {
        let of = |place: &Place| {
            let place = *place;
            let named = faults(place.dialect).into_iter();
            let cases = named.flat_map(|(name, texts)| texts.into_iter().map(move |text| (name, text)));
            cases.map(move |(name, text)| Self { place, key: format!("{}{name}", place.keys[0]), text })
        };
        PLACES.iter().flat_map(of).collect()
    }

    async fn site(&self) -> Site {
        let site = Site::new();
        for (key, document) in self.place.documents {
            put(&site, key, document.as_bytes().to_vec()).await;
        }
        let [meta, data] = self.place.keys;
        let (name, chunk, document) = match self.place.dialect {
            "v2" => ("good/.zarray", "good/0", {
                let mut document = v2_array("|u1", &[2], &[2]);
                document.as_object_mut().unwrap().remove("attributes");
                document
            }),
            "v3" => ("good/zarr.json", "good/c/0", v3_array("uint8", &[2], &[2])),
            _ => ("good.array.json", "good/c0", draft_array()),
        };
        put(&site, &format!("{meta}{name}"), document.to_string().into_bytes()).await;
        put(&site, &format!("{data}{chunk}"), vec![5, 6]).await;
        put(&site, &self.key, self.text.clone()).await;
        site
    }

    fn group(&self, query: &str) -> String {
        format!("/node{}{query}", self.place.group)
    }

    fn child(&self, surface: &str, name: &str) -> String {
        format!("/{surface}{}/{name}", self.place.group.trim_end_matches('/'))
    }

    fn bad(&self) -> String {
        format!("{}/bad", self.place.group.trim_end_matches('/'))
    }

    #[track_caller]
    fn check(&self, answer: &Answer, status: StatusCode, what: &str) {
        assert_eq!(answer.status, status, "{what}: {self:?}\n{answer:?}");
    }
}

#[tokio::test]
async fn what_is_around_a_broken_node_is_told() {
    for case in Case::all() {
        let site = case.site().await;
        let none = site.get(&case.group("?depth=0"), &[]).await;
        case.check(&none, StatusCode::OK, "depth=0");
        assert_eq!(none.header("zarr-broken"), "", "{case:?}");
        for query in ["?depth=1", "?depth=2", "?depth=all", "?as=v3", "?as=v2&depth=all", "?limit=100"] {
            let answer = site.get(&case.group(query), &[]).await;
            case.check(&answer, StatusCode::OK, query);
            assert_eq!(answer.header("zarr-broken"), "1", "{query} {case:?}");
            let members: Vec<String> = answer.json()["members"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(members, ["good"], "{query} {case:?}");
            let head = site.head(&case.group(query), &[]).await;
            assert_eq!(head.header("zarr-broken"), "1", "{query} {case:?}");
        }
        let flat = site.get(&case.group("?depth=all&flat"), &[]).await;
        assert_eq!(flat.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["", "/good"], "{case:?}");
        for above in ["/node/?depth=all", "/node/?depth=all&as=v3", "/node/?depth=1"] {
            let answer = site.get(above, &[]).await;
            case.check(&answer, StatusCode::OK, above);
        }
    }
}

#[tokio::test]
async fn broken_nodes_are_named_with_key_and_reason() {
    for case in Case::all() {
        let site = case.site().await;
        for query in ["?include=source", "?with=origin&depth=all", "?include=source&as=v2", "?include=source&limit=9"] {
            let answer = site.get(&case.group(query), &[]).await;
            case.check(&answer, StatusCode::OK, query);
            let source: Source = serde_json::from_slice(&answer.body).unwrap();
            let [broken] = &source.broken[..] else { panic!("{query} {case:?}: {source:?}") };
            assert_eq!((broken.path.as_str(), broken.problem.key.as_str()), (case.bad().as_str(), case.key.as_str()));
            assert_eq!(broken.dialect.name(), case.place.dialect);
            assert!((5..=200).contains(&broken.problem.reason.len()), "{broken:?}");
            assert!(source.other.is_empty(), "{source:?}");
        }
        // Asked for itself, it is refused by its key.
        for path in [case.child("node", "bad"), case.child("array", "bad"), case.child("node", "bad?as=v3")] {
            let problem = site.get(&path, &[]).await.problem(ProblemType::InvalidMetadata);
            assert_eq!(problem.members.key.as_deref(), Some(case.key.as_str()), "{path} {case:?}");
        }
    }
}

#[tokio::test]
async fn pages_have_broken_nodes_once() {
    for case in Case::all() {
        let site = case.site().await;
        let (mut target, mut broken, mut names) = (case.group("?limit=1"), 0, BTreeSet::new());
        loop {
            let answer = site.get(&target, &[]).await;
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
async fn a_broken_node_is_a_difference() {
    for case in Case::all() {
        let site = case.site().await;
        let zom = site.get(&case.group("?depth=all"), &[]).await.json();
        let dialect = format!("dialect={}", case.place.dialect);
        let report = site.json(Method::POST, &case.group(&format!("?validate&{dialect}")), &zom).await;
        case.check(&report, StatusCode::OK, "validate");
        let report = report.json();
        assert_eq!(report["equal"], false, "{case:?}");
        let differences = report["differences"].as_array().unwrap();
        assert_eq!(differences.len(), 1, "{report}");
        assert_eq!(differences[0]["pointer"], "/members/bad");
        assert_eq!(differences[0]["found"]["problem"]["key"], case.key);
        // Something declared in its place is another node.
        let mut declared = zom.clone();
        declared["members"]["bad"] = zom["members"]["good"].clone();
        let report = site.json(Method::POST, &case.group(&format!("?validate&{dialect}")), &declared).await.json();
        assert_eq!(report["differences"][0]["pointer"], "/members/bad", "{case:?}");
        assert_eq!(report["differences"][0]["declared"], zom["members"]["good"]);
        assert_eq!(report["differences"][0]["found"]["problem"]["key"], case.key);
        for body in [&zom, &declared] {
            let refused = site.json(Method::PUT, &case.group(&format!("?{dialect}")), body).await;
            refused.problem(ProblemType::NodeDiffers);
        }
        assert_eq!(site.value(&case.key).await.unwrap(), case.text, "{case:?}");
    }
}

#[tokio::test]
async fn a_broken_node_can_be_replaced_and_erased() {
    for case in Case::all() {
        let (dialect, key) = (format!("dialect={}", case.place.dialect), case.key.as_str());
        let site = case.site().await;
        let zom = site.get(&case.group("?depth=all"), &[]).await.json();
        let answer = site.json(Method::PUT, &case.group(&format!("?overwrite&{dialect}")), &zom).await;
        case.check(&answer, StatusCode::OK, "replace of the group");
        assert_eq!((answer.header("zarr-broken"), site.value(key).await), ("", None), "{case:?}");
        assert_eq!(site.get(&case.child("array", "good"), &[]).await.json(), json!([5, 6]), "{case:?}");

        let site = case.site().await;
        let bad = case.child("node", "bad");
        let good = &zom["members"]["good"];
        let refused = site.json(Method::PUT, &format!("{bad}?{dialect}"), good).await;
        refused.problem(ProblemType::NodeDiffers);
        let answer = site.json(Method::PUT, &format!("{bad}?overwrite&{dialect}"), good).await;
        case.check(&answer, StatusCode::OK, "replace of the node");
        assert_eq!(site.get(&bad, &[]).await.json(), *good, "{case:?}");

        for query in ["", &format!("?{dialect}")] {
            let site = case.site().await;
            let answer = site.delete(&format!("{bad}{query}"), &[]).await;
            case.check(&answer, StatusCode::OK, "erasing the node");
            assert_eq!(site.value(key).await, None, "{case:?}");
            assert_eq!(site.get(&case.child("array", "good"), &[]).await.json(), json!([5, 6]), "{case:?}");
        }

        let site = case.site().await;
        let answer = site.delete(&case.group("?confirm=all"), &[]).await;
        case.check(&answer, StatusCode::OK, "erasing the group");
        assert_eq!(site.value(key).await, None, "{case:?}");
    }
}

#[tokio::test]
async fn a_conversion_leaves_broken_nodes_out_and_tells_them() {
    for case in Case::all().into_iter().filter(|case| case.place.group != "/") {
        let other = if case.place.dialect == "v2" { "v3" } else { "v2" };
        let mut targets = vec![format!("?convert={other}&to=/copy")];
        if case.place.dialect == "v2" {
            targets.push(format!("?convert={other}"));
        }
        for query in targets {
            let site = case.site().await;
            let report = site.ask(Method::POST, &case.group(&query), &[], "").await;
            case.check(&report, StatusCode::OK, &query);
            let losses = report.json()["losses"].clone();
            let lost = losses.as_array().unwrap().iter().find(|loss| loss["path"] == case.bad());
            assert!(lost.unwrap()["what"].as_str().unwrap().contains(&case.key), "{losses}");
            let at = if query.contains("to=") { "/copy" } else { case.place.group };
            let good = site.get(&format!("/array{at}/good?dialect={other}"), &[]).await;
            assert_eq!(good.json(), json!([5, 6]), "{query} {case:?}");
            assert_eq!(site.value(&case.key).await.unwrap(), case.text, "{case:?}");
        }
    }
}

#[tokio::test]
async fn what_is_beside_a_broken_node_can_be_changed() {
    for case in Case::all() {
        let site = case.site().await;
        let dialect = format!("dialect={}", case.place.dialect);
        let good = case.child("array", "good");
        case.check(&site.get(&good, &[]).await, StatusCode::OK, "reading");
        case.check(&site.put(&format!("{good}?select=0"), &[OCTETS], "\x07").await, StatusCode::OK, "writing");
        let appended = site.ask(Method::POST, &format!("{good}?append=0"), &[OCTETS], "\x08").await;
        case.check(&appended, StatusCode::OK, "appending");
        assert_eq!(site.get(&good, &[]).await.json(), json!([7, 6, 8]));
        let attributes = json!({"attributes": {"n": 1}});
        let headers = [("content-type", "application/merge-patch+json")];
        for path in [case.child("node", "good"), case.group("")] {
            let patched = site.ask(Method::PATCH, &path, &headers, attributes.to_string()).await;
            case.check(&patched, StatusCode::OK, &path);
        }
        let refused = site.ask(Method::PATCH, &case.child("node", "bad"), &headers, attributes.to_string()).await;
        refused.problem(ProblemType::InvalidMetadata);
        let zom = site.get(&case.child("node", "good"), &[]).await.json();
        let created = site.json(Method::PUT, &format!("{}?{dialect}", case.child("node", "new/deep")), &zom).await;
        case.check(&created, StatusCode::CREATED, "declaring beside it");
        let erased = site.delete(&case.child("node", "good"), &[]).await;
        case.check(&erased, StatusCode::OK, "erasing beside it");
        assert_eq!(site.value(&case.key).await.unwrap(), case.text, "{case:?}");
    }
}

/// The texts that are no document.
const NO_DOCUMENTS: [&[u8]; 4] = [b"", b"{", b"[1]", b"{\"a\": \"\xff\"}"];

#[tokio::test]
async fn elements_do_not_need_attributes() {
    for text in NO_DOCUMENTS {
        let place = PLACES[5];
        let case = Case { place, key: "lab/in/good/.zattrs".to_owned(), text: text.to_vec() };
        let site = case.site().await;
        let good = case.child("array", "good");
        // The copy has the attributes of before, which stay in it.
        let copies = json!({"zarr_consolidated_format": 1, "metadata": {"good/.zattrs": {"n": 1}}});
        put(&site, "lab/in/.zmetadata", copies.to_string().into_bytes()).await;
        assert_eq!(site.get(&good, &[]).await.json(), json!([5, 6]));
        case.check(&site.put(&format!("{good}?select=0"), &[OCTETS], "\x07").await, StatusCode::OK, "writing");
        let appended = site.ask(Method::POST, &format!("{good}?append=0"), &[OCTETS], "\x08").await;
        case.check(&appended, StatusCode::OK, "appending");
        assert_eq!(site.get(&good, &[]).await.json(), json!([7, 6, 8]));
        assert_eq!(site.value(&case.key).await.unwrap(), text);
        let copies: Value = serde_json::from_slice(&site.value("lab/in/.zmetadata").await.unwrap()).unwrap();
        assert_eq!(copies["metadata"]["good/.zattrs"], json!({"n": 1}), "{copies}");
        assert_eq!(copies["metadata"]["good/.zarray"]["shape"], json!([3]), "{copies}");

        let node = case.child("node", "good");
        let headers = [("content-type", "application/merge-patch+json")];
        for answer in [
            site.get(&node, &[]).await,
            site.ask(Method::PATCH, &node, &headers, r#"{"attributes": {"n": 1}}"#).await,
            site.ask(Method::PATCH, &node, &headers, r#"{"shape": [1]}"#).await,
        ] {
            let problem = answer.problem(ProblemType::InvalidMetadata);
            assert_eq!(problem.members.key.as_deref(), Some("lab/in/good/.zattrs"));
        }
        let group = site.get(&case.group("?include=source"), &[]).await;
        let source: Source = serde_json::from_slice(&group.body).unwrap();
        assert_eq!(source.broken[0].problem.key, case.key);
        assert_eq!(site.get(&good, &[]).await.json(), json!([7, 6, 8]), "a refused patch changed something");

        // Those of a group make it broken.
        let site = Site::new();
        put(&site, "g/.zgroup", V2_GROUP.into()).await;
        put(&site, "g/.zattrs", text.to_vec()).await;
        let problem = site.get("/node/g", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some("g/.zattrs"));
        assert_eq!(site.get("/node", &[]).await.header("zarr-broken"), "1");
        case.check(&site.delete("/node/g", &[]).await, StatusCode::OK, "erasing");
        assert_eq!(site.keys().await, [""; 0]);
    }
}

#[tokio::test]
async fn broken_documents_of_the_root() {
    for (key, text) in [("zarr.json", 0), (".zgroup", 0), ("zarr.json", 1), (".zgroup", 1), ("zarr.json", 2)] {
        let site = Site::new();
        put(&site, key, NO_DOCUMENTS[text].to_vec()).await;
        put(&site, "a/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        put(&site, "a/c/0", vec![5, 6]).await;
        let problem = site.get("/node/", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some(key));
        assert_eq!(site.get("/array/a", &[]).await.json(), json!([5, 6]));
        assert_eq!(site.get("/node/a", &[]).await.status, StatusCode::OK);
        let appended = site.ask(Method::POST, "/array/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let created = site.json(Method::PUT, "/node/b/c", &v3_array("uint8", &[2], &[2])).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(site.value(key).await.unwrap(), NO_DOCUMENTS[text]);
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        site.json(Method::PUT, "/node/?dialect=v3", &zom).await.problem(ProblemType::NodeDiffers);
        let replaced = site.json(Method::PUT, "/node/?overwrite&dialect=v3", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(site.keys().await, ["zarr.json"]);
    }
}

#[tokio::test]
async fn a_hierarchy_of_the_draft_without_a_readable_entry_point() {
    let without_suffix = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}"#;
    for text in NO_DOCUMENTS.into_iter().chain([without_suffix.as_bytes()]) {
        let site = Site::new();
        put(&site, "d/zarr.json", text.to_vec()).await;
        put(&site, "d/meta/root/x.array.json", draft_array().to_string().into_bytes()).await;
        put(&site, "v/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2", "?dialect=v2"] {
            let answer = site.get(&format!("/node/{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
        }
        let problem = site.get("/node/d", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some("d/zarr.json"));
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        for dialect in ["v3", "draft"] {
            let path = format!("/node/d?dialect={dialect}");
            site.json(Method::PUT, &path, &zom).await.problem(ProblemType::NodeDiffers);
        }
        let replaced = site.json(Method::PUT, "/node/d?overwrite&dialect=draft", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(site.get("/node/d", &[]).await.header("zarr-dialect"), "draft");
        put(&site, "d/zarr.json", text.to_vec()).await;
        assert_eq!(site.delete("/node/d", &[]).await.status, StatusCode::OK);
        assert_eq!(site.keys().await, ["v/zarr.json"]);
    }
}

#[tokio::test]
async fn broken_copies_block_nothing() {
    let copies = |value: Value| {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": value});
        ("zarr.json", group.to_string().into_bytes())
    };
    let broken_v3 = [json!(5), json!([]), json!({"kind": "inline", "metadata": 7}), json!({"metadata": {"a": 5}})];
    let broken_v2 = NO_DOCUMENTS.into_iter().chain([br#"{"metadata": 5}"#.as_slice(), b"{}"]);
    let v2 = broken_v2.map(|text| (".zmetadata", text.to_vec()));
    let headers = [("content-type", "application/merge-patch+json")];
    for (name, text) in broken_v3.into_iter().map(copies).chain(v2) {
        let site = Site::new();
        let (group, array, document, chunk) = match name {
            "zarr.json" => (None, "zarr.json", v3_array("uint8", &[2], &[2]), "g/a/c/0"),
            _ => (Some(V2_GROUP), ".zarray", v2_array("|u1", &[2], &[2]), "g/a/0"),
        };
        if let Some(group) = group {
            put(&site, "g/.zgroup", group.into()).await;
        }
        put(&site, &format!("g/{name}"), text.clone()).await;
        put(&site, &format!("g/a/{array}"), document.to_string().into_bytes()).await;
        put(&site, chunk, vec![5, 6]).await;
        let answer = site.get("/node/?depth=all", &[]).await;
        assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, ""), "{name} {answer:?}");
        assert!(answer.json()["members"]["g"]["members"]["a"].is_object(), "{answer:?}");
        let appended = site.ask(Method::POST, "/array/g/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let patched = site.ask(Method::PATCH, "/node/g/a", &headers, r#"{"attributes": {"n": 1}}"#).await;
        assert_eq!(patched.status, StatusCode::OK, "{patched:?}");
        let zom = site.get("/node/g/a", &[]).await.json();
        let created = site.json(Method::PUT, "/node/g/b", &zom).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(site.delete("/node/g/b", &[]).await.status, StatusCode::OK);
        assert_eq!(site.get("/array/g/a", &[]).await.json(), json!([5, 6, 8]));
        let now = site.value(&format!("g/{name}")).await.unwrap();
        if !String::from_utf8_lossy(&text).contains(r#""a":5"#) {
            assert_eq!(now, text, "{name} was changed");
        }
    }
}

#[tokio::test]
async fn members_of_other_dialects_are_counted() {
    let site = common::arrays::site().await;
    put(&site, "g/new/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    put(&site, "g/empty/zarr.json", Vec::new()).await;
    for query in ["", "?depth=all", "?limit=10", "?flat"] {
        let answer = site.get(&format!("/node/g{query}"), &[]).await;
        assert_eq!((answer.header("zarr-other-dialects"), answer.header("zarr-broken")), ("1", "1"), "{query}");
    }
    for query in ["?as=v2", "?as=v3", "?depth=0"] {
        assert_eq!(site.get(&format!("/node/g{query}"), &[]).await.header("zarr-other-dialects"), "", "{query}");
    }
    assert!(site.get("/node/g?as=v3", &[]).await.json()["members"]["new"].is_object());
    let source: Source = serde_json::from_slice(&site.get("/node/g?include=source", &[]).await.body).unwrap();
    assert_eq!((source.other[0].path.as_str(), source.broken[0].path.as_str()), ("/g/new", "/g/empty"));
}

/// Where one of two documents at a path is broken, the other one's node is there for whoever asks for it.
#[tokio::test]
async fn the_other_document_at_a_path() {
    let site = common::arrays::site().await;
    put(&site, "g/old/zarr.json", Vec::new()).await;
    assert_eq!(site.get("/node/g", &[]).await.json()["members"]["old"]["dtype"], ">i2");
    assert_eq!(site.get("/node/g?as=v3", &[]).await.json()["members"]["old"]["data_type"], "int16");
    assert_eq!(site.get("/array/g/old?dialect=v2", &[]).await.json(), json!([5, 6, 7]));
    site.get("/node/g/old", &[]).await.problem(ProblemType::InvalidMetadata);
    let report = site.ask(Method::POST, "/node/g?convert=v3", &[], "").await;
    let lost = report.json()["losses"].clone();
    assert!(lost.as_array().unwrap().iter().any(|loss| loss["path"] == "/g/old"), "{lost}");
}

/// What is not supported is not broken, but nothing can be made of it in another model.
#[tokio::test]
async fn what_is_not_supported_is_told_as_it_is() {
    let site = common::arrays::site().await;
    let mut unheard = v3_array("uint8", &[1], &[1]);
    unheard["extensions"] = json!(["example.unheard-of"]);
    put(&site, "h/x/zarr.json", unheard.to_string().into_bytes()).await;
    let answer = site.get("/node/h", &[]).await;
    assert_eq!((answer.header("zarr-broken"), &answer.json()["members"]["x"]), ("", &unheard));
    let answer = site.get("/node/h?as=v2", &[]).await;
    assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"));
    let problem = site.get("/node/h/x", &[]).await.problem(ProblemType::UnsupportedNode);
    assert_eq!(problem.members.key.as_deref(), Some("h/x/zarr.json"));
    site.json(Method::PUT, "/node/h/x", &v3_array("uint8", &[1], &[1])).await.problem(ProblemType::NodeDiffers);
    let replaced = site.json(Method::PUT, "/node/h/x?overwrite", &v3_array("uint8", &[1], &[1])).await;
    assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
}

/// A group of which nothing is known but that there is a broken node below it.
#[tokio::test]
async fn groups_that_have_broken_nodes_only() {
    for (key, dialect) in [("lab/in/bad/.zarray", "v2"), ("lab/in/bad/.zgroup", "v2"), ("lab/in/bad/zarr.json", "v3")] {
        let site = Site::new();
        put(&site, key, Vec::new()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2"] {
            let answer = site.get(&format!("/node/lab/in{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
            assert_eq!((answer.header("zarr-dialect"), &answer.json()["members"]), (dialect, &json!({})), "{query}");
            let above = site.get(&format!("/node/lab{query}"), &[]).await;
            assert!(above.json()["members"]["in"].is_object(), "{query} {above:?}");
        }
        assert_eq!(site.get("/node/?depth=all", &[]).await.header("zarr-broken"), "1");
        let read = site.get("/node/lab/in?dialect=draft", &[]).await;
        read.problem(ProblemType::NoSuchNode);
        // A node that can be read says more of the group, however deep it is.
        put(&site, "lab/in/deep/er/.zgroup", V2_GROUP.into()).await;
        assert_eq!(site.get("/node/lab/in", &[]).await.header("zarr-dialect"), "v2", "{key}");
        assert_eq!(site.delete("/node/lab", &[]).await.status, StatusCode::OK);
        assert_eq!(site.keys().await, [""; 0]);
    }
}
