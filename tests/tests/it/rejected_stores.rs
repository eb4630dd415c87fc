//! Stores that do not open: the message states the reason, the exit code is the documented one, and nothing changes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use zarrd_tests::{
    server::{Launch, zarrd_with},
    skip::is_root,
};

/// A user that owns nothing.
const NOBODY: u32 = 65534;

fn launch(kind: &str, dir: &Path) -> Launch {
    Launch::of(format_args!("{kind}:{}", dir.display()))
}

/// Every file below a directory except the one that identifies the last process.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, Vec::new());
        } else if path.file_name().unwrap() != "lock" {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

/// Starts a server that must fail with a message that contains all of `texts`, without changing anything.
fn is_rejected(launch: &Launch, dir: &Path, texts: &[&str]) {
    let before = contents(dir);
    let rejected = launch.start_expecting_failure();
    assert_eq!(rejected.code, Some(3), "{rejected:?}");
    for text in texts {
        assert!(rejected.stderr.contains(text), "{text} is missing in {rejected:?}");
    }
    assert!(!rejected.stderr.contains("damaged"), "{rejected:?}");
    assert!(contents(dir) == before, "something was changed");
}

#[test]
fn store_of_a_newer_format_is_rejected_with_its_version() {
    for kind in ["sled", "redb"] {
        let dir = tempfile::tempdir().unwrap();
        launch(kind, dir.path()).start().stop();
        let path = dir.path().join("zarrd.json");
        let text = fs::read_to_string(&path).unwrap();
        let message = "has format 9, which this version does not know";
        fs::write(&path, text.replace("\"format\": 2", "\"format\": 9")).unwrap();
        is_rejected(&launch(kind, dir.path()), dir.path(), &[message]);
        // Other members of a later format are unknown.
        fs::write(&path, r#"{"format": 9, "index": {"kind": "other"}}"#).unwrap();
        is_rejected(&launch(kind, dir.path()), dir.path(), &[message]);
        fs::write(&path, text).unwrap();
        launch(kind, dir.path()).start().stop();
    }
}

#[test]
fn directory_with_foreign_files_is_untouched() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::write(dir.path().join("photos/1"), "one").unwrap();
    is_rejected(&launch("sled", dir.path()), dir.path(), &["is not empty and not a store"]);
    assert!(!dir.path().join("lock").exists());
    let listed = zarrd_with(["ls", "--store", &format!("redb:{}", dir.path().display())]);
    assert_eq!(listed.code, Some(3), "{listed:?}");
}

#[test]
fn store_with_another_index_names_it() {
    let dir = tempfile::tempdir().unwrap();
    launch("redb", dir.path()).start().stop();
    is_rejected(&launch("sled", dir.path()), dir.path(), &["has a redb index, not a sled one"]);
}

#[test]
fn store_of_another_user_is_rejected_at_its_first_file() {
    if !is_root("running as another user") {
        return;
    }
    for kind in ["sled", "redb"] {
        let above = tempfile::tempdir().unwrap();
        fs::set_permissions(above.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let dir = above.path().join("store");
        launch(kind, &dir).start().stop();
        let lock = format!("could not open {}: Permission denied", dir.join("lock").display());
        let as_nobody = launch(kind, &dir).user(NOBODY);
        is_rejected(&as_nobody, &dir, &[&lock]);
        // If only the lock is accessible, the next file decides.
        fs::set_permissions(dir.join("lock"), fs::Permissions::from_mode(0o666)).unwrap();
        is_rejected(&as_nobody, &dir, &[&dir.display().to_string(), "Permission denied"]);
        launch(kind, &dir).start().stop();
    }
}
