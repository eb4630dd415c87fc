//! A folder that a server writes, and that is replaced, unmounted, filled or out of inodes meanwhile, or whose times are wrong.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant, SystemTime},
};

use http::{Method, StatusCode};
use reqwest::Response;
use serde_json::{Value, json};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    problem::assert_problem,
    server::{Launch, Server},
};
use zarrd_wire::problem::ProblemType;

fn serve(folder: &Path) -> Server {
    Launch::of(format_args!("dir:{}?writes=yes", folder.display())).start()
}

async fn put(server: &Server, path: &str, value: impl Into<reqwest::Body>) -> Response {
    server.request(Method::PUT, path).body(value).send().await.unwrap()
}

async fn send(server: &Server, method: Method, path: &str, body: Value) -> Response {
    server.request(method, path).json(&body).send().await.unwrap()
}

/// An array of one dimension, in chunks of a MiB.
fn array(chunks: u64) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [chunks << 20], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 20]}}})
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn nothing_is_changed_in_a_folder_that_took_the_place_of_the_served_one() {
    let above = tempfile::tempdir().unwrap();
    let (path, moved) = (above.path().join("data"), above.path().join("moved"));
    fs::create_dir(&path).unwrap();
    let server = serve(&path);
    assert_eq!(send(&server, Method::PUT, "/node/a", array(2)).await.status(), StatusCode::CREATED);
    assert_eq!(send(&server, Method::PUT, "/array/a", json!(1)).await.status(), StatusCode::OK);
    fs::rename(&path, &moved).unwrap();
    for replaced in [false, true] {
        if replaced {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("theirs"), "theirs").unwrap();
        }
        for (method, target) in [
            (Method::PUT, "/store/b"),
            (Method::DELETE, "/store/a/"),
            (Method::DELETE, "/store/theirs"),
            (Method::PUT, "/node/b"),
        ] {
            let answer = send(&server, method.clone(), target, array(1)).await;
            assert_problem(answer, ProblemType::StoreUnavailable).await;
        }
        let write = send(&server, Method::PUT, "/array/a?select=0:1", json!(2)).await;
        assert!(!write.status().is_success(), "{write:?}");
        let ready = server.get("/readyz").await;
        assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE, "{replaced}");
    }
    assert_eq!(names(&path), ["theirs"]);
    assert_eq!(names(&moved.join("a/c")), ["0", "1"]);
    fs::remove_dir_all(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    assert_eq!(send(&server, Method::PUT, "/array/a?select=0:1", json!(2)).await.status(), StatusCode::OK);
    assert_eq!(server.get("/readyz").await.status(), StatusCode::OK);
    server.stop();
}

#[tokio::test]
async fn nothing_is_changed_below_the_mount_point_of_a_folder_that_was_unmounted() {
    let Some(disk) = SmallDisk::mount(FileSystem::Ext4, 16) else { return };
    let folder = disk.path();
    let server = serve(&folder);
    assert_eq!(put(&server, "/store/a/b", "mounted").await.status(), StatusCode::CREATED);
    assert!(Command::new("umount").arg("--lazy").arg(&folder).status().unwrap().success());
    assert_problem(put(&server, "/store/a/b", "unmounted").await, ProblemType::StoreUnavailable).await;
    let erased = server.request(Method::DELETE, "/store/a/").send().await.unwrap();
    assert_problem(erased, ProblemType::StoreUnavailable).await;
    assert_eq!(server.get("/readyz").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(names(&folder), Vec::<String>::new());
    server.stop();
}

#[tokio::test]
async fn full_folder_refuses_writes_of_elements_and_takes_them_again_when_there_is_space() {
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 16) else { return };
    let folder = disk.path().join("data");
    fs::create_dir(&folder).unwrap();
    let server = serve(&folder);
    assert_eq!(send(&server, Method::PUT, "/node/a", array(6)).await.status(), StatusCode::CREATED);
    assert_eq!(send(&server, Method::PUT, "/array/a", json!(1)).await.status(), StatusCode::OK);
    // Each chunk is written beside its name: with space for three all of them find some if they come one after the other,
    // and without space for one none does.
    for (spare, refused) in [(3 << 20, false), (512 << 10, true)] {
        disk.fill(spare);
        let write = send(&server, Method::PUT, "/array/a?select=:", json!(2)).await;
        let (status, problem) = (write.status(), write.text().await.unwrap());
        let is_refused = status == StatusCode::INSUFFICIENT_STORAGE || problem.contains("partly-written");
        assert!(is_refused || !refused && status == StatusCode::OK, "{status} {problem}");
        let read = server.get("/array/a?format=raw").await;
        let elements = read.bytes().await.unwrap();
        for chunk in elements.chunks(1 << 20) {
            assert!(chunk.iter().all(|element| *element == chunk[0] && [1, 2].contains(element)), "a chunk is torn");
        }
    }
    // Until the temporary files of the writes that failed are gone, there is more to fill.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        disk.fill(0);
        let ready = server.get("/readyz").await.text().await.unwrap();
        if ready.contains("\"writable\":false") && ready.contains("out-of-space") {
            break;
        }
        assert!(Instant::now() < deadline, "{ready}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_problem(send(&server, Method::PUT, "/node/b", array(1)).await, ProblemType::OutOfSpace).await;
    assert_eq!(names(&folder), ["a"], "what could not be declared is gone");
    disk.remove_filler();
    assert_eq!(send(&server, Method::PUT, "/array/a?select=:", json!(3)).await.status(), StatusCode::OK);
    let elements = server.get("/array/a?format=raw").await.bytes().await.unwrap();
    assert!(elements.len() == 6 << 20 && elements.iter().all(|element| *element == 3));
    server.stop();
}

#[tokio::test]
async fn folder_without_inodes_refuses_new_values_and_frees_some_by_erasing() {
    for kind in [FileSystem::TmpfsOfFewInodes, FileSystem::Ext4OfFewInodes] {
        let Some(disk) = SmallDisk::mount(kind, 16) else { return };
        let folder = disk.path().join("data");
        fs::create_dir(&folder).unwrap();
        let server = serve(&folder);
        assert_eq!(put(&server, "/store/a/old", "old").await.status(), StatusCode::CREATED);
        disk.take_inodes();
        for path in ["/store/a/old", "/store/a/new", "/store/b/new"] {
            assert_problem(put(&server, path, "new").await, ProblemType::OutOfSpace).await;
        }
        let ready = server.get("/readyz").await.text().await.unwrap();
        assert!(ready.contains("\"writable\":false") && ready.contains("out-of-space"), "{ready}");
        assert_eq!(server.get("/store/a/old").await.text().await.unwrap(), "old");
        assert_eq!((names(&folder), names(&folder.join("a"))), (vec!["a".to_owned()], vec!["old".to_owned()]));
        let erased = server.request(Method::DELETE, "/store/a/old").send().await.unwrap();
        assert_eq!(erased.status(), StatusCode::NO_CONTENT, "{kind:?}");
        disk.give_back_inodes();
        assert_eq!(put(&server, "/store/b/new", "new").await.status(), StatusCode::CREATED);
        server.stop();
    }
}

#[tokio::test]
async fn files_of_the_future_and_of_the_past_are_read_replaced_and_young_until_their_time() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let small = |len: u64| {
        let mut array = array(1);
        (array["shape"], array["chunk_grid"]["configuration"]["chunk_shape"]) = (json!([len]), json!([4]));
        array
    };
    let modified = |name: &str, time: SystemTime| {
        let file = fs::File::options().write(true).open(dir.path().join(name)).unwrap();
        file.set_modified(time).unwrap();
    };
    let day = Duration::from_secs(86_400);
    assert_eq!(send(&server, Method::PUT, "/node/a", small(8)).await.status(), StatusCode::CREATED);
    assert_eq!(send(&server, Method::PUT, "/array/a", json!(1)).await.status(), StatusCode::OK);
    // The clock of the machine that wrote them is a day ahead, or behind.
    for (name, time) in [
        ("a/zarr.json", SystemTime::now() + day),
        ("a/c/0", SystemTime::now() + day),
        ("a/c/1", SystemTime::UNIX_EPOCH),
    ] {
        modified(name, time);
    }
    let read = || async { server.get("/array/a?format=json").await.text().await.unwrap() };
    assert_eq!(read().await, "[1,1,1,1,1,1,1,1]");
    assert_eq!(send(&server, Method::PUT, "/array/a?select=2:6", json!(2)).await.status(), StatusCode::OK);
    assert_eq!(read().await, "[1,1,2,2,2,2,1,1]");
    // A chunk outside of the shape may be one that another program is appending.
    fs::write(dir.path().join("a/c/2"), [9; 4]).unwrap();
    modified("a/c/2", SystemTime::now() + day);
    let grown = send(&server, Method::PATCH, "/node/a", json!({"shape": [12]})).await;
    assert_eq!(grown.status(), StatusCode::CONFLICT, "{}", grown.text().await.unwrap());
    fs::remove_file(dir.path().join("a/c/2")).unwrap();
    let grown = send(&server, Method::PATCH, "/node/a", json!({"shape": [12]})).await;
    assert_eq!(grown.status(), StatusCode::OK, "{}", grown.text().await.unwrap());
    assert_eq!(read().await, "[1,1,2,2,2,2,1,1,0,0,0,0]");
    server.stop();
}

#[tokio::test]
async fn names_that_are_taken_by_folders_or_files_are_conflicts_that_name_both() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("folder/below")).unwrap();
    fs::write(dir.path().join("folder/below/file"), "theirs").unwrap();
    fs::write(dir.path().join("file"), "theirs").unwrap();
    let server = serve(dir.path());
    for (target, keys) in [
        ("/store/file/below", ["file/below", "file"]),
        ("/store/folder/below", ["folder/below", "folder/below/"]),
        ("/node/file/array", ["file/array/zarr.json", "file"]),
    ] {
        let answer = send(&server, Method::PUT, target, array(1)).await;
        let problem = assert_problem(answer, ProblemType::NameConflict).await;
        assert_eq!(problem.members.keys, keys, "{target}");
    }
    // A chunk whose name is that of a folder.
    assert_eq!(send(&server, Method::PUT, "/node/a", array(2)).await.status(), StatusCode::CREATED);
    fs::create_dir_all(dir.path().join("a/c/1/0")).unwrap();
    fs::write(dir.path().join("a/c/1/0/file"), "theirs").unwrap();
    let answer = send(&server, Method::PUT, "/array/a?select=1048576:", json!(1)).await;
    let problem = assert_problem(answer, ProblemType::NameConflict).await;
    assert_eq!(problem.members.keys, ["a/c/1", "a/c/1/"]);
    server.stop();
}
