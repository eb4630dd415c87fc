//! A server of the files that a web server has.

use std::fs;

use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use zarrd_tests::{
    problem::assert_problem,
    python::python_with_clients,
    sample::Sample,
    server::{Launch, Server},
    site::Site,
};
use zarrd_wire::{health::Readiness, listing::KeyListing, problem::ProblemType, routes::encode};

/// The number of its groups with consolidated metadata.
const CONSOLIDATED: usize = 2;

/// The groups of the sample that have consolidated metadata.
fn consolidated(sample: &Sample) -> Vec<String> {
    let is_consolidated = |key: &str, bytes: &[u8]| match key.rsplit('/').next() {
        Some(".zmetadata") => true,
        Some("zarr.json") => serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|document| document["consolidated_metadata"]["metadata"].is_object()),
        _ => false,
    };
    let groups = sample.values().into_iter().filter(|(key, bytes)| is_consolidated(key, bytes));
    groups.filter_map(|(key, _)| Some(key.rsplit_once('/')?.0.to_owned())).collect()
}

#[tokio::test]
async fn web_servers_and_other_zarrds_are_served_like_a_store() {
    let Some(python) = python_with_clients() else { return };
    let sample = Sample::of(&python);
    let Some(site) = Site::start(&sample.lab()) else { return };
    let embedded = sample.clone().serve();
    let foreign = [site.url("/"), embedded.url("/store/lab")].map(|url| Launch::of(url).start());
    for server in &foreign {
        embedded.assert_served_by(server, "").await;
    }
    let groups = consolidated(&sample);
    assert_eq!(groups.len(), CONSOLIDATED);
    for server in &foreign {
        for group in &groups {
            let path = encode(group).to_string();
            let found = server.answer(&format!("/node/{path}?depth=all")).await;
            assert_eq!(found.0, StatusCode::OK, "{path}");
            assert!(found == embedded.server.answer(&format!("/node/lab/{path}?depth=all")).await, "{path}");
        }
        assert_problem(server.get("/store/none").await, ProblemType::NoSuchKey).await;
        assert_problem(server.get("/node/none").await, ProblemType::NoSuchNode).await;
    }
    let [site, zarrd] = &foreign;
    assert_problem(site.get("/store/").await, ProblemType::Unsupported).await;
    // Another zarrd is recognized and listed.
    let listed = zarrd.get("/store/?list=keys&limit=3").await.json::<KeyListing>().await.unwrap();
    let original = embedded.server.get("/store/lab/?list=keys&limit=3").await.json::<KeyListing>().await.unwrap();
    let below: Vec<_> = original.keys.iter().filter_map(|key| key.strip_prefix("lab/")).collect();
    assert_eq!((listed.keys.iter().map(String::as_str).collect::<Vec<_>>(), below.len()), (below, 3));
    // Other members have paths, which differ.
    let members = async |server: &Server, path: &str| {
        let tree = server.get(path).await.json::<serde_json::Value>().await.unwrap();
        tree["members"].as_object().unwrap().clone()
    };
    assert_eq!(members(zarrd, "/node/?depth=all").await, members(&embedded.server, "/node/lab?depth=all").await);
}

#[tokio::test]
async fn files_that_change_are_served_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v");
    fs::write(&path, "one").unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    let Some(site) = Site::start(dir.path()) else { return };
    let [one, other] = [(); 2].map(|()| Launch::of(site.url("/")).start());
    let first = one.get("/store/v").await.headers()[ETAG].clone();
    assert_eq!(other.get("/store/v").await.headers()[ETAG], first, "servers of one site agree");
    let again = || one.request(Method::GET, "/store/v").header(IF_NONE_MATCH, first.clone()).send();
    assert_eq!(again().await.unwrap().status(), StatusCode::NOT_MODIFIED);
    fs::write(&path, "three").unwrap();
    assert_eq!(again().await.unwrap().bytes().await.unwrap(), "three");
    fs::remove_file(&path).unwrap();
    assert_eq!(again().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_problem(one.get("/store/d").await, ProblemType::NoSuchKey).await;
    for (method, path) in [(Method::PUT, "/store/v"), (Method::DELETE, "/store/v"), (Method::DELETE, "/node/a")] {
        let rejected = one.request(method, path).body("2").send().await.unwrap();
        assert_problem(rejected, ProblemType::Unsupported).await;
    }
}

#[test]
fn web_servers_that_cannot_be_read_are_not_served() {
    for (url, reason) in [
        ("http://ada:secret@127.0.0.1:1/", "no credentials"),
        ("http://127.0.0.1:1/?token=secret", "versions=last-modified"),
    ] {
        let ended = Launch::of(url).start_expecting_failure();
        assert!(ended.stderr.contains(reason), "{ended:?}");
    }
}

#[tokio::test]
async fn servers_start_although_a_web_server_does_not_answer() {
    let server = Launch::of("memory:").arg("--mount").arg("web=http://127.0.0.1:1/lab").start();
    let ready = server.get("/readyz").await.json::<Readiness>().await.unwrap();
    let reachable: Vec<_> = ready.guarantees.iter().map(|of| (of.name.as_deref(), of.reachable)).collect();
    assert_eq!(reachable, [(None, None), (Some("web"), Some(false))]);
    assert_problem(server.get("/store/web/zarr.json").await, ProblemType::StoreUnavailable).await;
    let root = Launch::of("http://127.0.0.1:1/lab").start();
    // The attempts of a request end before or after readiness stops waiting: their delays are random.
    let answer = root.get("/readyz").await;
    let problem = match answer.status() {
        StatusCode::GATEWAY_TIMEOUT => ProblemType::StoreTimeout,
        _ => ProblemType::StoreUnavailable,
    };
    assert_problem(answer, problem).await;
    assert_eq!(root.get("/healthz").await.status(), StatusCode::OK);
}
