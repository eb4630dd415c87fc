//! Import, export, copy and check.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use zarrd_store::{
    Change, IntentId, Key, KeyCount, Payload, Precondition, Prefix, ReadableStore, TransactionalStore, WriteableStore,
};
use zarrd_store_local::{IndexKind, LocalStore, Options};

use crate::{
    files::{self, files},
    runner::{TestDir, text},
};

#[test]
fn sample_store_is_imported_and_exported_unchanged() {
    for store in ["sled:data", "redb:data"] {
        let dir = TestDir::new();
        let sample = files::unpack_sample(&dir);
        let finished = dir.succeeds(&["import", text(&sample), "lab/sample.zr3", "--store", store]);
        let expected = files(&sample);
        assert_eq!(finished.summary()["keys"], expected.len());
        assert_eq!(finished.summary()["ok"], true);
        dir.succeeds(&["export", "lab/sample.zr3", "out", "--store", store]);
        assert_eq!(files(&dir.path("out")), expected);
        let checked = dir.succeeds(&["check", "--store", store]);
        assert_eq!(checked.summary()["keys"], expected.len());
    }
}

#[test]
fn transfers_through_servers_preserve_all_files() {
    let dir = TestDir::new();
    let count = files::make(&dir, "tree");
    let (one, two) = (dir.serve(&["--store", "sled:one"]), dir.serve(&["--store", "redb:two"]));
    let finished = dir.succeeds(&["import", "--server", &one.url(), "tree", "a b/ü"]);
    assert_eq!(finished.summary()["keys"], count);
    let from = format!("{}/store/a%20b/%C3%BC/", one.url());
    dir.succeeds(&["import", "--server", &two.url(), &from, "taken/over"]);
    dir.succeeds(&["import", "--store", "sled:three", &from, ""]);
    let typo = format!("{}/store/typo", one.url());
    dir.fails(&["import", "--store", "sled:four", &typo], 1, &["no keys below typo/"]);
    assert!(!dir.path("four").exists());
    one.stop();
    dir.succeeds(&["export", "--server", &two.url(), "taken/over/", "out"]);
    two.stop();
    dir.succeeds(&["export", "", "out3", "--store", "sled:three"]);
    dir.succeeds(&["export", "taken", "out2", "--store", "redb:two"]);
    let expected = files(&dir.path("tree"));
    assert_eq!(expected.len(), count);
    assert_eq!(files(&dir.path("out")), expected);
    assert_eq!(files(&dir.path("out2/over")), expected);
    assert_eq!(files(&dir.path("out3")), expected);
}

#[test]
fn import_refuses_a_target_with_keys_unless_it_is_told_what_to_do() {
    let dir = TestDir::new();
    let count = files::make(&dir, "tree");
    dir.write("smaller/zarr.json", "{}");
    dir.write("smaller/array/0.0", "changed");
    let server = dir.serve(&["--store", "sled:served"]);
    for to in [&["--store", "sled:data"][..], &["--store", "redb:other"], &["--server", &server.url()]] {
        let run = |arguments: &[&str]| dir.succeeds(&[arguments, to].concat());
        let exported = |name: &str| {
            let out = format!("out-{}-{name}", to.concat().replace([':', '/'], "-"));
            run(&["export", "t", &out]);
            files(&dir.path(&out))
        };
        let tree = files(&dir.path("tree"));
        assert_eq!(run(&["import", "tree", "t"]).summary()["keys"], count);
        let refused = [&["import", "smaller", "t"][..], to].concat();
        dir.fails(&refused, 2, &["below t/", "--overwrite", "--merge"]);
        assert_eq!(exported("refused"), tree);
        run(&["import", "smaller", "t", "--merge"]);
        let merged = exported("merged");
        assert_eq!(
            merged.len(),
            files(&dir.path("smaller")).keys().chain(tree.keys()).collect::<std::collections::BTreeSet<_>>().len()
        );
        assert_eq!(merged[&PathBuf::from("array/0.0")], b"changed");
        // A source that cannot be imported leaves the target as it is.
        symlink(dir.path("tree"), dir.path("smaller/link")).unwrap();
        dir.fails(&[&["import", "smaller", "t", "--overwrite"][..], to].concat(), 1, &["\"link\""]);
        assert_eq!(exported("failed"), merged);
        fs::remove_file(dir.path("smaller/link")).unwrap();
        run(&["import", "smaller", "t", "--overwrite", "--jobs", "1"]);
        assert_eq!(exported("overwritten"), files(&dir.path("smaller")));
        // Nothing else was touched, and nothing remains.
        run(&["import", "tree", "u", "--overwrite"]);
        let all = format!("all-{}", to.concat().replace([':', '/'], "-"));
        run(&["export", "", &all]);
        assert_eq!(files(&dir.path(&all)).len(), files(&dir.path("smaller")).len() + count);
        dir.fails(&[&["import", "tree", "", "--overwrite"][..], to].concat(), 2, &["all of a store"]);
        dir.fails(&[&["import", "tree", ""][..], to].concat(), 2, &["below the root"]);
        dir.fails(&[&["import", "tree", "t", "--overwrite", "--merge"][..], to].concat(), 2, &["cannot be used with"]);
    }
}

#[test]
fn import_goes_below_the_name_of_its_source() {
    let dir = TestDir::new();
    dir.write("lab/era.zarr/zarr.json", "{}");
    dir.succeeds(&["import", "lab/era.zarr/"]);
    dir.fails(&["import", "lab/era.zarr"], 2, &["below era.zarr/"]);
    dir.succeeds(&["import", "lab/../lab"]);
    dir.succeeds(&["export", "", "out"]);
    let names: Vec<PathBuf> = files(&dir.path("out")).into_keys().collect();
    assert_eq!(names, ["era.zarr/zarr.json", "lab/era.zarr/zarr.json"].map(PathBuf::from));
    dir.fails(&["import", "/"], 2, &["name one"]);
}

#[test]
fn directories_of_zarrd_are_not_imported() {
    let dir = TestDir::new();
    dir.write("tree/zarr.json", "{}");
    dir.succeeds(&["import", "tree", "--store", "sled:one"]);
    dir.fails(&["import", "one", "--store", "sled:two"], 2, &["zarrd.json", "zarrd copy"]);
    dir.fails(&["import", "dir:one", "--store", "sled:two"], 2, &["zarrd.json"]);
    fs::remove_file(dir.path("one/zarrd.json")).unwrap();
    dir.fails(&["import", "one", "--store", "sled:two"], 2, &["remains of one"]);
    dir.succeeds(&["token", "create", "--name", "x", "--allow", "read:/", "--access", "access"]);
    dir.fails(&["import", "access", "--store", "sled:two"], 2, &["access directory"]);
    assert!(!dir.path("two").exists());
}

#[test]
fn invalid_keys_stop_the_import_unless_skipped() {
    use std::os::unix::ffi::OsStrExt;

    let dir = TestDir::new();
    dir.write("outside/secret", "not to be imported");
    dir.write("tree/good", "1");
    dir.write("tree/sub/line\nbreak", "2");
    fs::write(dir.path("tree").join(std::ffi::OsStr::from_bytes(b"\xff")), "3").unwrap();
    symlink(dir.path("outside"), dir.path("tree/link")).unwrap();
    symlink(dir.path("outside/secret"), dir.path("tree/sub/zarr.json")).unwrap();
    assert!(Command::new("mkfifo").arg(dir.path("tree/pipe")).status().unwrap().success());
    let names = ["\"sub/line\\nbreak\"", "\"\\xFF\"", "\"link\"", "\"sub/zarr.json\"", "\"pipe\"", "--skip-invalid"];
    let finished = dir.fails(&["import", "tree"], 1, &names);
    assert_eq!((finished.summary()["ok"].clone(), finished.summary()["skipped"].clone()), (false.into(), 5.into()));
    let empty = dir.succeeds(&["export", "", "empty"]);
    assert_eq!(empty.summary()["keys"], 0);

    let finished = dir.run(&["import", "tree", "", "--skip-invalid"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(names.iter().take(5).all(|name| finished.stderr.contains(name)), "{finished:?}");
    dir.succeeds(&["export", "", "out"]);
    assert_eq!(files(&dir.path("out")), [(PathBuf::from("good"), b"1".to_vec())].into());
}

#[test]
fn too_long_keys_fail_before_anything_is_written() {
    let dir = TestDir::new();
    dir.write("tree/good", "1");
    dir.write(&format!("tree/{}", "n".repeat(230)), "2");
    let prefix = vec!["p".repeat(200); 4].join("/");
    dir.fails(&["import", "tree", &prefix], 1, &["limit of 1024"]);
    dir.succeeds(&["import", "tree", &prefix, "--skip-invalid"]);
}

#[test]
fn store_is_not_imported_into_itself() {
    let dir = TestDir::new();
    dir.write("zarr.json", "{}");
    dir.fails(&["import", "."], 2, &["into itself"]);
    fs::create_dir(dir.path("data")).unwrap();
    symlink(dir.path("data"), dir.path("link")).unwrap();
    dir.fails(&["import", "data", "--store", "redb:link/store"], 2, &["into itself"]);
    dir.fails(&["import", "link/store", "--store", "redb:data"], 2, &["not a directory"]);
    assert!(!dir.path("data/store").exists() && !dir.path("zarrd-data").exists());
}

#[test]
fn import_of_a_file_names_the_command_of_the_python_package() {
    let dir = TestDir::new();
    for file in ["forecast.grib2", "x.NC"] {
        dir.write(file, "");
        let command = format!("`python -m zarrd import {file}`");
        dir.fails(&["import", file], 2, &["is not a directory; the Python package", &command]);
    }
    dir.write("x.zip", "");
    dir.fails(&["import", "x.zip"], 2, &["x.zip is not a directory\n"]);
    assert!(!dir.path("zarrd-data").exists());
}

#[test]
fn export_needs_a_new_or_empty_directory() {
    let dir = TestDir::new();
    dir.write("tree/zarr.json", "{}");
    dir.succeeds(&["import", "tree", ""]);
    dir.fails(&["export", "", "tree"], 2, &["not empty"]);
    dir.fails(&["export", "", "zarrd-data/out"], 2, &["part of the store"]);
    dir.fails(&["export", "typo", "out"], 1, &["no keys below typo/"]);
    assert!(!dir.path("out").exists());
    fs::create_dir(dir.path("out")).unwrap();
    dir.succeeds(&["export", "", "out"]);
    assert_eq!(files(&dir.path("out")), files(&dir.path("tree")));
    dir.fails(&["export", "", "out"], 2, &["not empty"]);
    dir.fails(&["import", "nowhere"], 2, &["nowhere"]);
}

#[tokio::test]
async fn colliding_keys_stop_the_export_unless_skipped() {
    let dir = TestDir::new();
    let server = dir.serve(&[]);
    let long = format!("x/{}", "n".repeat(256));
    for key in ["a", "a/b", "a/c/d", "a.b", "ab/c", &long] {
        let key = Key::parse(key).unwrap();
        server.store().set(&key, key.to_string().into(), Precondition::none()).await.unwrap();
    }
    server.stop();
    let named = ["\"a/b\"", "\"a/c/d\"", "\"a\" is a key too", "255 bytes"];
    dir.fails(&["export", "", "out"], 1, &named);
    assert!(files(&dir.path("out")).is_empty());
    fs::remove_dir_all(dir.path("out")).unwrap();
    dir.succeeds(&["export", "", "out", "--skip-invalid"]);
    let exported: Vec<PathBuf> = files(&dir.path("out")).into_keys().collect();
    assert_eq!(exported, ["a", "a.b", "ab/c"].map(PathBuf::from));
    // Below the prefix no keys collide.
    dir.succeeds(&["export", "a", "below"]);
    assert_eq!(files(&dir.path("below")).len(), 2);
}

#[tokio::test]
async fn corrupt_values_are_reported_and_not_exported() {
    let dir = TestDir::new();
    let count = files::make(&dir, "tree");
    dir.succeeds(&["import", "tree", ""]);
    let corrupted = files(&dir.path("zarrd-data/values"))
        .into_iter()
        .max_by_key(|(_, bytes)| bytes.len())
        .map(|(name, _)| dir.path("zarrd-data/values").join(name))
        .unwrap();
    let mut bytes = fs::read(&corrupted).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&corrupted, bytes).unwrap();

    let finished = dir.fails(&["check"], 5, &["\"array/1.1\"", "1 of 14 values"]);
    assert_eq!(finished.summary()["corrupt"], 1);
    let finished = dir.fails(&["export", "", "out"], 5, &["\"array/1.1\"", "damaged"]);
    assert_eq!(finished.summary()["keys"], count - 1);
    assert!(!dir.path("out/array/1.1").exists());
    assert_eq!(files(&dir.path("out")).len(), count - 1);
    dir.fails(&["copy", "sled:zarrd-data", "redb:new"], 5, &["\"array/1.1\"", "incomplete"]);

    fs::remove_file(&corrupted).unwrap();
    dir.fails(&["check"], 5, &["\"array/1.1\"", "missing"]);
    let server = dir.serve(&[]);
    server.store().erase(&Key::parse("array/1.1").unwrap(), Precondition::none()).await.unwrap();
    server.stop();
    dir.succeeds(&["check"]);
}

#[test]
fn a_copy_has_the_tokens_of_the_store_unless_it_is_to_be_without() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new();
    files::make(&dir, "tree");
    dir.succeeds(&["import", "tree", "t", "--store", "sled:old"]);
    dir.succeeds(&["token", "create", "--name", "reader", "--allow", "read:t/", "--store", "sled:old"]);
    let tokens = files(&dir.path("old/access"));
    assert!(!tokens.is_empty());
    dir.succeeds(&["copy", "sled:old", "redb:new"]);
    assert_eq!(files(&dir.path("new/access")), tokens);
    let mode = |path: &str| fs::metadata(dir.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("new/access"), mode("new/access/tokens")), (0o700, 0o700));
    for name in tokens.keys() {
        let name = format!("access/{}", name.display());
        assert_eq!(mode(&format!("new/{name}")), mode(&format!("old/{name}")), "{name}");
    }
    dir.succeeds(&["copy", "sled:old", "redb:open", "--without-access"]);
    assert!(!dir.path("open/access").exists());
}

#[tokio::test]
async fn what_was_interrupted_is_settled_in_a_copy_and_not_exported() {
    let dir = TestDir::new();
    let open = async |name: &str| LocalStore::open(&dir.path(name), Options::new(IndexKind::Sled)).await.unwrap();
    let store = open("old").await;
    let array = r#"{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"uint8",
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},"fill_value":0,"codecs":[{"name":"bytes"}],
        "chunk_key_encoding":{"name":"default"}}"#;
    for (key, value) in [("a/zarr.json", array), ("a/c/0", "0"), ("a/c/2", "2"), ("half/c/0", "0")] {
        let payload = Payload::from_bytes(value.as_bytes().to_vec());
        store.set(&Key::parse(key).unwrap(), payload, Precondition::none()).await.unwrap();
    }
    for operation in [
        r#"{"kind":"shrink","path":"/a","dialect":"v3"}"#,
        r#"{"kind":"copy","target":"/half","dialect":"v3","extent":["half/"]}"#,
    ] {
        let record = format!(r#"{{"version":1,"operation":{operation}}}"#).into();
        store.commit(vec![Change::AddIntent { id: IntentId::random(), record }]).await.unwrap();
    }
    store.close().await.unwrap();

    dir.fails(&["export", "", "out", "--store", "sled:old"], 1, &["2 operations", "interrupted", "zarrd compact"]);
    dir.succeeds(&["copy", "sled:old", "redb:new"]);
    dir.succeeds(&["export", "", "out", "--store", "redb:new"]);
    let names = |root: &str| files(&dir.path(root)).into_keys().collect::<Vec<_>>();
    assert_eq!(names("out"), [Path::new("a/c/0"), Path::new("a/zarr.json")]);
    // The store itself is as it was.
    let store = open("old").await;
    assert_eq!(store.intents().await.unwrap().len(), 2);
    store.close().await.unwrap();
    dir.succeeds(&["compact", "sled:old"]);
    dir.succeeds(&["export", "", "settled", "--store", "sled:old"]);
    assert_eq!(names("settled"), names("out"));
}

#[test]
fn interrupted_copy_is_resumed_unless_the_store_changed() {
    let dir = TestDir::new();
    for number in 0..40 {
        dir.write(&format!("tree/{number}"), vec![number; 20_000]);
    }
    dir.write("tree/zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#);
    dir.succeeds(&["import", "tree", "t", "--store", "sled:old"]);
    dir.write("old/access/key", "now");
    dir.write("new/access/revoked", "then");
    let values: Vec<PathBuf> =
        files(&dir.path("old/values")).into_keys().map(|name| dir.path("old/values").join(name)).collect();
    let whole = fs::read(&values[0]).unwrap();
    fs::write(&values[0], b"cut").unwrap();
    let arguments = ["copy", "sled:old", "redb:new", "--resume"];
    dir.fails(&arguments, 5, &["1 values were not transferred", "incomplete; --resume goes on"]);
    dir.fails(&["ls", "", "--store", "redb:new"], 3, &["incomplete", "resume"]);
    dir.fails(&["copy", "sled:old", "redb:new"], 2, &["not empty"]);
    fs::write(&values[0], whole).unwrap();
    let resumed = dir.succeeds(&arguments);
    let summary = resumed.summary();
    assert_eq!((summary["present"].as_u64(), summary["keys"].as_u64()), (Some(39), Some(2)), "{summary}");
    dir.succeeds(&["export", "t", "out", "--store", "redb:new"]);
    assert_eq!(files(&dir.path("out")), files(&dir.path("tree")));
    assert_eq!(files(&dir.path("new/access")).into_keys().collect::<Vec<_>>(), [Path::new("key")]);
    dir.fails(&arguments, 3, &["only a new store can be filled"]);

    fs::write(&values[0], b"cut").unwrap();
    dir.fails(&["copy", "sled:old", "sled:newer"], 5, &["incomplete"]);
    dir.succeeds(&["import", "tree", "more", "--store", "sled:old"]);
    dir.fails(
        &["copy", "sled:old", "sled:newer", "--resume"],
        3,
        &["before it was last opened for writing", "remove it"],
    );
}

#[tokio::test]
async fn copy_that_was_killed_is_resumed() {
    let dir = TestDir::new();
    for number in 0..300_u32 {
        dir.write(&format!("tree/{number}"), number.to_le_bytes().repeat(2_000));
    }
    dir.write("tree/half/c/0", "0");
    dir.succeeds(&["import", "tree", "t", "--store", "sled:old"]);
    let store = LocalStore::open(&dir.path("old"), Options::new(IndexKind::Sled)).await.unwrap();
    let record = r#"{"version":1,"operation":{"kind":"copy","target":"/t/half","dialect":"v3","extent":["t/half/"]}}"#;
    let record = record.into();
    store.commit(vec![Change::AddIntent { id: IntentId::random(), record }]).await.unwrap();
    store.close().await.unwrap();
    for delay in [1, 30, 60, 90, 120, 150] {
        let mut copying = dir.start(&["copy", "sled:old", "sled:new", "--resume", "--jobs", "1"]);
        std::thread::sleep(std::time::Duration::from_millis(delay));
        copying.kill().unwrap();
        copying.wait().unwrap();
    }
    match dir.run(&["copy", "sled:old", "sled:new", "--resume"]).code {
        0 => {}
        // The last one was complete before it was killed.
        code => assert_eq!((code, dir.path("new/incomplete").exists()), (3, false)),
    }
    dir.succeeds(&["check", "--store", "sled:new"]);
    dir.succeeds(&["export", "t", "out", "--store", "sled:new"]);
    let mut expected = files(&dir.path("tree"));
    expected.remove(Path::new("half/c/0"));
    assert_eq!(files(&dir.path("out")), expected);
}

#[tokio::test]
async fn copy_converts_the_index_and_keeps_the_values() {
    let dir = TestDir::new();
    let count = files::make(&dir, "tree");
    dir.succeeds(&["import", "tree", "t", "--store", "sled:old"]);
    let finished = dir.succeeds(&["copy", "sled:old", "redb:new"]);
    assert_eq!(finished.summary()["keys"], count);
    dir.fails(&["copy", "sled:old", "redb:new"], 2, &["not empty"]);
    dir.fails(&["copy", "sled:old", "redb:old/below"], 2, &["part of the store"]);
    dir.fails(&["copy", "sled:missing", "redb:newer"], 3, &["no store at sled:missing"]);
    assert!(!dir.path("newer").exists());
    dir.succeeds(&["export", "t", "out", "--store", "redb:new"]);
    assert_eq!(files(&dir.path("out")), files(&dir.path("tree")));
    let server = dir.serve(&["--store", "redb:new"]);
    let store = server.store();
    assert!(store.head(&Key::parse("t/.zgroup").unwrap()).await.unwrap().is_some());
    assert_eq!(store.erase_prefix(&Prefix::parse("t/").unwrap()).await.unwrap(), KeyCount::exact(count as u64));
}

/// The threads of a process: name and nice value. The allocator's, which starts before the program, is left out.
#[cfg(target_os = "linux")]
fn threads(pid: u32) -> Vec<(String, i32)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // One that ends meanwhile cannot be read.
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    let parsed = stats.map(|stat| {
        let (name, fields) = stat.split_once(" (").unwrap().1.rsplit_once(") ").unwrap();
        (name.to_owned(), fields.split(' ').nth(16).unwrap().parse().unwrap())
    });
    parsed.filter(|(name, _)| !name.starts_with("jemalloc")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_read_everything_have_a_lower_priority() {
    let own = threads(std::process::id()).into_iter().map(|(_, nice)| nice).max().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let dir = TestDir::new();
    for (args, expected) in
        [(["backup", "b"].as_slice(), (own + 5).min(19)), (&["export", "", "e"], (own + 5).min(19)), (&["ls", ""], own)]
    {
        let mut command = dir.start(&[args, &["--server", &url]].concat());
        let connection = silent.accept().unwrap();
        let threads = threads(command.id());
        command.kill().unwrap();
        command.wait().unwrap();
        drop(connection);
        let all = threads.len() > 1 && threads.iter().all(|&(_, nice)| nice == expected);
        assert!(all, "{args:?}: {threads:?}, own {own}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn server_answers_exports_at_a_lower_priority() {
    let dir = TestDir::new();
    files::make(&dir, "tree");
    let server = dir.serve(&["--store", "memory:"]);
    let has_background = || threads(server.pid()).iter().any(|(name, nice)| name == "zarrd-backgroun" && *nice >= 10);
    dir.succeeds(&["import", "tree", "t", "--server", &server.url()]);
    assert!(!has_background());
    dir.succeeds(&["export", "t", "e", "--server", &server.url()]);
    assert!(has_background());
}
