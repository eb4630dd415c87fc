//! A server of a directory that other programs write.

use std::{fs, os::unix::fs::symlink, path::Path};

use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use zarrd_tests::{
    problem::assert_problem,
    server::{Launch, zarrd_with},
};
use zarrd_wire::problem::ProblemType;

const ARRAY: &str = r#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"uint8",
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},
"fill_value":0,"codecs":[{"name":"bytes"}]}"#;

/// Writes a value as zarr-python does.
fn replace(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let temporary = path.with_extension("0f5c0b7e5d1f4c1d8f3f5a0c2e9b7a61.partial");
    fs::write(&temporary, bytes).unwrap();
    fs::rename(&temporary, path).unwrap();
}

fn launch(dir: &Path) -> Launch {
    Launch::of(format_args!("dir:{}", dir.display()))
}

#[tokio::test]
async fn a_directory_is_served_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    replace(&dir.path().join("a/zarr.json"), ARRAY.as_bytes());
    replace(&dir.path().join("a/c/0"), &[1, 2]);
    fs::write(dir.path().join("a/c/1.0f5c.partial"), [7, 7]).unwrap();
    let server = launch(dir.path()).start();
    assert_eq!(
        server.get("/array/a?format=json").await.text().await.unwrap().replace(char::is_whitespace, ""),
        "[1,2,0,0]"
    );
    replace(&dir.path().join("a/c/1"), &[3, 4]);
    assert_eq!(
        server.get("/array/a?format=json").await.text().await.unwrap().replace(char::is_whitespace, ""),
        "[1,2,3,4]"
    );

    let value = server.get("/store/a/c/1").await;
    let tag = value.headers()[ETAG].clone();
    assert_eq!(value.bytes().await.unwrap(), [3, 4][..]);
    let again = |tag| server.request(Method::GET, "/store/a/c/1").header(IF_NONE_MATCH, tag).send();
    assert_eq!(again(&tag).await.unwrap().status(), StatusCode::NOT_MODIFIED);
    replace(&dir.path().join("a/c/1"), &[5, 6]);
    assert_eq!(again(&tag).await.unwrap().bytes().await.unwrap(), [5, 6][..]);

    let listed: serde_json::Value =
        serde_json::from_slice(&server.get("/store/a/?list=keys").await.bytes().await.unwrap()).unwrap();
    assert_eq!(listed["keys"], serde_json::json!(["a/c/0", "a/c/1", "a/zarr.json"]));
    for (method, path) in [(Method::PUT, "/store/v"), (Method::DELETE, "/store/a/c/0"), (Method::DELETE, "/node/a")] {
        let rejected = server.request(method, path).body("2").send().await.unwrap();
        assert_problem(rejected, ProblemType::Unsupported).await;
    }
    server.stop();
    assert!(!dir.path().join("access").exists());
}

#[tokio::test]
async fn links_out_of_the_directory_are_an_option_of_the_store() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("v"), "outside").unwrap();
    symlink(outside.path().join("v"), dir.path().join("v")).unwrap();
    let server = launch(dir.path()).start();
    assert_problem(server.get("/store/v").await, ProblemType::StoreFailed).await;
    server.stop();
    let server = Launch::of(format_args!("dir:{}?symlinks=follow", dir.path().display())).start();
    assert_eq!(server.get("/store/v").await.text().await.unwrap(), "outside");
}

#[test]
fn only_a_directory_can_be_served_and_no_command_changes_it() {
    let dir = tempfile::tempdir().unwrap();
    let missing = launch(&dir.path().join("none")).start_expecting_failure();
    assert!(missing.stderr.contains("could not open the directory"), "{missing:?}");
    let store = format!("dir:{}", dir.path().display());
    let other = format!("sled:{}", dir.path().join("new").display());
    for arguments in [vec!["compact", &*store], vec!["copy", &store, &other], vec!["copy", &other, &store]] {
        let rejected = zarrd_with(arguments);
        assert!(rejected.code != Some(0) && rejected.stderr.contains("other programs write"), "{rejected:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn tokens_of_a_public_server_need_a_directory_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let public = launch(dir.path()).arg("--behind-proxy").arg("10.0.0.0/8").start_expecting_failure();
    assert!(public.stderr.contains("--access DIR"), "{public:?}");
}
