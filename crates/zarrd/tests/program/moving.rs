//! Import, export, copy and check.

use std::{fs, os::unix::fs::symlink, path::PathBuf, process::Command};

use store::{Key, KeyCount, Precondition, Prefix, ReadableStore, WriteableStore};

use crate::{
    runner::{Place, text},
    tree::{self, files},
};

#[test]
fn the_sample_store_comes_out_as_it_went_in() {
    for store in ["sled:data", "redb:data"] {
        let place = Place::new();
        let sample = tree::unpack_sample(&place);
        let ran = place.done(&["import", text(&sample), "lab/sample.zr3", "--store", store]);
        let expected = files(&sample);
        assert_eq!(ran.summary()["keys"], expected.len());
        assert_eq!(ran.summary()["ok"], true);
        place.done(&["export", "lab/sample.zr3", "out", "--store", store]);
        assert_eq!(files(&place.path("out")), expected);
        let checked = place.done(&["check", "--store", store]);
        assert_eq!(checked.summary()["keys"], expected.len());
    }
}

#[test]
fn an_awkward_tree_goes_through_a_server_to_another_and_back() {
    let place = Place::new();
    let count = tree::make(&place, "tree");
    let (one, two) = (place.serve(&["--store", "sled:one"]), place.serve(&["--store", "redb:two"]));
    let ran = place.done(&["import", "--server", &one.url(), "tree", "a b/ü"]);
    assert_eq!(ran.summary()["keys"], count);
    let from = format!("{}/store/a%20b/%C3%BC/", one.url());
    place.done(&["import", "--server", &two.url(), &from, "taken/over"]);
    place.done(&["import", "--store", "sled:three", &from]);
    let typo = format!("{}/store/typo", one.url());
    place.fails(&["import", "--store", "sled:four", &typo], 1, &["no keys below typo/"]);
    assert!(!place.path("four").exists());
    one.stop();
    place.done(&["export", "--server", &two.url(), "taken/over/", "out"]);
    two.stop();
    place.done(&["export", "", "out3", "--store", "sled:three"]);
    place.done(&["export", "taken", "out2", "--store", "redb:two"]);
    let expected = files(&place.path("tree"));
    assert_eq!(expected.len(), count);
    assert_eq!(files(&place.path("out")), expected);
    assert_eq!(files(&place.path("out2/over")), expected);
    assert_eq!(files(&place.path("out3")), expected);
}

#[test]
fn an_import_can_be_repeated() {
    let place = Place::new();
    let count = tree::make(&place, "tree");
    place.done(&["import", "tree", "t"]);
    place.write("tree/array/0.0", "changed");
    let ran = place.done(&["import", "tree", "t", "--jobs", "1"]);
    assert_eq!(ran.summary()["keys"], count);
    place.done(&["export", "t", "out"]);
    assert_eq!(files(&place.path("out")), files(&place.path("tree")));
}

#[test]
fn what_cannot_be_a_key_is_named_and_stops_the_import_unless_it_is_skipped() {
    use std::os::unix::ffi::OsStrExt;

    let place = Place::new();
    place.write("outside/secret", "not to be imported");
    place.write("tree/good", "1");
    place.write("tree/sub/line\nbreak", "2");
    fs::write(place.path("tree").join(std::ffi::OsStr::from_bytes(b"\xff")), "3").unwrap();
    symlink(place.path("outside"), place.path("tree/link")).unwrap();
    symlink(place.path("outside/secret"), place.path("tree/sub/zarr.json")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("tree/pipe")).status().unwrap().success());
    let names = ["\"sub/line\\nbreak\"", "\"\\xFF\"", "\"link\"", "\"sub/zarr.json\"", "\"pipe\"", "--skip-invalid"];
    let ran = place.fails(&["import", "tree"], 1, &names);
    assert_eq!((ran.summary()["ok"].clone(), ran.summary()["skipped"].clone()), (false.into(), 5.into()));
    let empty = place.done(&["export", "", "empty"]);
    assert_eq!(empty.summary()["keys"], 0);

    let ran = place.run(&["import", "tree", "--skip-invalid"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(names.iter().take(5).all(|name| ran.stderr.contains(name)), "{ran:?}");
    place.done(&["export", "", "out"]);
    assert_eq!(files(&place.path("out")), [(PathBuf::from("good"), b"1".to_vec())].into());
}

#[test]
fn names_that_are_too_long_with_their_prefix_are_refused_before_anything_is_written() {
    let place = Place::new();
    place.write("tree/good", "1");
    place.write(&format!("tree/{}", "n".repeat(230)), "2");
    let prefix = vec!["p".repeat(200); 4].join("/");
    place.fails(&["import", "tree", &prefix], 1, &["at most 1024 bytes"]);
    place.done(&["import", "tree", &prefix, "--skip-invalid"]);
}

#[test]
fn a_store_is_not_moved_into_itself() {
    let place = Place::new();
    place.write("zarr.json", "{}");
    place.fails(&["import", "."], 2, &["into itself"]);
    fs::create_dir(place.path("data")).unwrap();
    symlink(place.path("data"), place.path("link")).unwrap();
    place.fails(&["import", "data", "--store", "redb:link/store"], 2, &["into itself"]);
    place.fails(&["import", "link/store", "--store", "redb:data"], 2, &["not a directory"]);
    assert!(!place.path("data/store").exists() && !place.path("zarrd-data").exists());
}

#[test]
fn an_export_needs_a_new_or_an_empty_directory_of_its_own() {
    let place = Place::new();
    place.write("tree/zarr.json", "{}");
    place.done(&["import", "tree"]);
    place.fails(&["export", "", "tree"], 2, &["not empty"]);
    place.fails(&["export", "", "zarrd-data/out"], 2, &["part of the store"]);
    place.fails(&["export", "typo", "out"], 1, &["no keys below typo/"]);
    assert!(!place.path("out").exists());
    fs::create_dir(place.path("out")).unwrap();
    place.done(&["export", "", "out"]);
    assert_eq!(files(&place.path("out")), files(&place.path("tree")));
    place.fails(&["export", "", "out"], 2, &["not empty"]);
    place.fails(&["import", "nowhere"], 2, &["nowhere"]);
}

#[tokio::test]
async fn keys_that_cannot_be_files_side_by_side_are_named() {
    let place = Place::new();
    let server = place.serve(&[]);
    let long = format!("x/{}", "n".repeat(256));
    for key in ["a", "a/b", "a/c/d", "a.b", "ab/c", &long] {
        let key = Key::parse(key).unwrap();
        server.store().set(&key, key.to_string().into(), Precondition::none()).await.unwrap();
    }
    server.stop();
    let named = ["\"a/b\"", "\"a/c/d\"", "\"a\" is a key too", "255 bytes"];
    place.fails(&["export", "", "out"], 1, &named);
    assert!(files(&place.path("out")).is_empty());
    fs::remove_dir_all(place.path("out")).unwrap();
    place.done(&["export", "", "out", "--skip-invalid"]);
    let there: Vec<PathBuf> = files(&place.path("out")).into_keys().collect();
    assert_eq!(there, ["a", "a.b", "ab/c"].map(PathBuf::from));
    // Below the prefix there is no collision.
    place.done(&["export", "a", "below"]);
    assert_eq!(files(&place.path("below")).len(), 2);
}

#[tokio::test]
async fn damage_is_found_named_and_never_exported() {
    let place = Place::new();
    let count = tree::make(&place, "tree");
    place.done(&["import", "tree"]);
    let victim = files(&place.path("zarrd-data/values"))
        .into_iter()
        .max_by_key(|(_, bytes)| bytes.len())
        .map(|(name, _)| place.path("zarrd-data/values").join(name))
        .unwrap();
    let mut bytes = fs::read(&victim).unwrap();
    bytes[1_000_000] ^= 1;
    fs::write(&victim, bytes).unwrap();

    let ran = place.fails(&["check"], 5, &["\"array/1.1\"", "1 of 14 values"]);
    assert_eq!(ran.summary()["corrupt"], 1);
    let ran = place.fails(&["export", "", "out"], 5, &["\"array/1.1\"", "damaged"]);
    assert_eq!(ran.summary()["keys"], count - 1);
    assert!(!place.path("out/array/1.1").exists());
    assert_eq!(files(&place.path("out")).len(), count - 1);
    place.fails(&["copy", "sled:zarrd-data", "redb:new"], 5, &["\"array/1.1\"", "incomplete"]);

    fs::remove_file(&victim).unwrap();
    place.fails(&["check"], 5, &["\"array/1.1\"", "missing"]);
    let server = place.serve(&[]);
    server.store().erase(&Key::parse("array/1.1").unwrap(), Precondition::none()).await.unwrap();
    server.stop();
    place.done(&["check"]);
}

#[tokio::test]
async fn a_copy_has_the_other_index_and_the_same_values() {
    let place = Place::new();
    let count = tree::make(&place, "tree");
    place.done(&["import", "tree", "t", "--store", "sled:old"]);
    let ran = place.done(&["copy", "sled:old", "redb:new"]);
    assert_eq!(ran.summary()["keys"], count);
    place.fails(&["copy", "sled:old", "redb:new"], 2, &["not empty"]);
    place.fails(&["copy", "sled:old", "redb:old/below"], 2, &["part of the store"]);
    place.fails(&["copy", "sled:missing", "redb:newer"], 3, &["no store at sled:missing"]);
    assert!(!place.path("newer").exists());
    place.done(&["export", "t", "out", "--store", "redb:new"]);
    assert_eq!(files(&place.path("out")), files(&place.path("tree")));
    let server = place.serve(&["--store", "redb:new"]);
    let store = server.store();
    assert!(store.head(&Key::parse("t/.zgroup").unwrap()).await.unwrap().is_some());
    assert_eq!(store.erase_prefix(&Prefix::parse("t/").unwrap()).await.unwrap(), KeyCount::exact(count as u64));
}
