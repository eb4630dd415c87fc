//! A server of several stores, mounted below names.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_tests::{
    problem::assert_problem,
    python::python_with_clients,
    sample::Sample,
    server::{Launch, Server},
    site::Site,
};
use zarrd_wire::{health::Readiness, problem::ProblemType};

async fn json(server: &Server, path: &str) -> Value {
    serde_json::from_slice(&server.answer(path).await.1).unwrap()
}

#[tokio::test]
async fn mounted_stores_are_served_like_one() {
    let Some(python) = python_with_clients() else { return };
    let sample = Sample::of(&python);
    let Some(site) = Site::start(&sample.lab()) else { return };
    let embedded = sample.clone().serve();
    let store = tempfile::tempdir().unwrap();
    let launch = Launch::sled(store.path()).arg("--mount").arg(format!("lab=dir:{}", sample.lab().display()));
    let server = launch.arg("--mount").arg(format!("web={}", site.url("/"))).start();
    for mount in ["lab/", "web/"] {
        embedded.assert_served_by(&server, mount).await;
    }
    let tree = "/node/lab?depth=all";
    assert!(server.answer(tree).await == embedded.server.answer(tree).await);

    let put = server.request(Method::PUT, "/store/own/k").body("1").send().await.unwrap();
    assert_eq!(put.status(), StatusCode::CREATED);
    assert_eq!(json(&server, "/store/").await["prefixes"], json!(["lab/", "own/", "web/"]));
    assert_eq!(json(&server, "/store/lab/?list=keys&limit=5").await["keys"].as_array().unwrap().len(), 5);
    for (method, path) in
        [(Method::PUT, "/store/lab/v"), (Method::DELETE, "/store/web/v"), (Method::DELETE, "/node/lab")]
    {
        assert_problem(server.request(method, path).body("2").send().await.unwrap(), ProblemType::Unsupported).await;
    }
    assert_problem(server.get("/store/web/").await, ProblemType::Unsupported).await;
    let ready: Readiness = serde_json::from_slice(&server.answer("/readyz").await.1).unwrap();
    let found: Vec<_> = ready.guarantees.iter().map(|of| (of.name.as_deref(), &*of.reads, &*of.listing)).collect();
    assert_eq!(found, [(None, "commit", "sorted"), (Some("lab"), "key", "sorted"), (Some("web"), "key", "none")]);
    assert!(ready.writable);
}

#[test]
fn mounts_with_bad_names_or_stores_are_not_served() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let to = format!("dir:{}", dir.path().display());
    for (mounts, reason) in [
        (vec![format!("a/b={to}")], "without `/`"),
        (vec![format!("={to}")], "at least one character"),
        (vec![format!("..={to}")], "`.` or `..`"),
        (vec![format!(".zattrs={to}")], "begin with a dot"),
        (vec![to.clone()], "NAME=STORE"),
        (vec![format!("a={to}"), format!("a={to}")], "--mount names a twice"),
        (vec!["a=memory:".to_owned()], "nothing to read"),
        (vec![format!("a={to}/none")], "could not open the directory"),
        (vec![format!("a=sled:{}/none", dir.path().display())], "no store at"),
    ] {
        let launch = mounts.iter().fold(Launch::sled(store.path()), |launch, mount| launch.arg("--mount").arg(mount));
        let ended = launch.start_expecting_failure();
        assert!(ended.code != Some(0) && ended.stderr.contains(reason), "{mounts:?}: {ended:?}");
    }
}
