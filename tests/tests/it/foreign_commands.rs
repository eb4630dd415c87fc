//! Commands that read directories and buckets that other programs write.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::Value;
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer, SECRET},
    python::python_with_clients,
    sample::{FILES, Sample, files},
    server::{Ended, zarrd_with, zarrd_with_environment},
};

/// The files of the sample, in a store, a directory and a bucket.
struct Kinds {
    sample: Sample,
    bucket: BucketServer,
    store: tempfile::TempDir,
}

impl Kinds {
    /// `None` if the clients that write the sample are not available.
    fn new() -> Option<Self> {
        let python = python_with_clients()?;
        let sample = Sample::of(&python);
        let bucket = BucketServer::start(&python, &sample.lab());
        let store = tempfile::tempdir().unwrap();
        let kinds = Self { sample, bucket, store };
        kinds.succeeds(&["import", kinds.sample.lab().to_str().unwrap(), "", "--store", &kinds.embedded()]);
        Some(kinds)
    }

    fn embedded(&self) -> String {
        format!("sled:{}", self.store.path().join("store").display())
    }

    fn foreign(&self) -> [String; 2] {
        [format!("dir:{}", self.sample.lab().display()), "s3://bucket".to_owned()]
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        zarrd_with_environment(self.bucket.environment(ACCESS_KEY), arguments)
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        ended.stdout
    }
}

/// The last line on stdout.
fn summary(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

/// The nodes in lines of JSON, without versions, which differ between stores.
fn nodes(stdout: &str) -> Vec<Value> {
    let node = |line| {
        let mut node: Value = serde_json::from_str(line).unwrap();
        node.as_object_mut().unwrap().remove("version");
        node
    };
    stdout.lines().map(node).collect()
}

#[test]
fn nodes_are_shown_as_those_of_a_store() {
    let Some(kinds) = Kinds::new() else { return };
    let embedded = kinds.embedded();
    for store in kinds.foreign() {
        for command in [&["ls", "-l"][..], &["tree"], &["tree", "--json"], &["ls", "--json"]] {
            let [found, expected] =
                [&store, &embedded].map(|store| kinds.succeeds(&[command, &["--store", store]].concat()));
            assert_eq!(found, expected, "{store} {command:?}");
        }
    }
    let tree = nodes(&kinds.succeeds(&["tree", "--json", "--store", &embedded]));
    let mut shown = 0;
    for node in tree.iter().step_by(5) {
        let path = node["path"].as_str().unwrap();
        let [expected, directory, bucket] = [&embedded, &kinds.foreign()[0], &kinds.foreign()[1]]
            .map(|store| nodes(&kinds.succeeds(&["info", "--json", path, "--store", store])));
        assert_eq!(directory, expected, "{path}");
        assert_eq!(bucket, expected, "{path}");
        shown += 1;
    }
    assert_eq!(shown, 11);
}

#[test]
fn exports_and_imports_have_the_same_bytes() {
    let Some(kinds) = Kinds::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let expected = kinds.sample.values();
    for (number, store) in kinds.foreign().into_iter().enumerate() {
        let exported = dir.path().join(format!("exported-{number}"));
        let stdout = kinds.succeeds(&["export", "", exported.to_str().unwrap(), "--store", &store]);
        assert_eq!(summary(&stdout)["keys"], FILES, "{stdout}");
        assert!(files(&exported) == expected, "{store}");
        let imported = format!("sled:{}", dir.path().join(format!("imported-{number}")).display());
        let stdout = kinds.succeeds(&["import", &store, "lab", "--store", &imported]);
        assert_eq!(summary(&stdout)["keys"], FILES, "{stdout}");
        let again = dir.path().join(format!("again-{number}"));
        kinds.succeeds(&["export", "lab", again.to_str().unwrap(), "--store", &imported]);
        assert!(files(&again) == expected, "{store}");
    }
}

#[test]
fn a_prefix_of_a_bucket_is_a_source() {
    let Some(kinds) = Kinds::new() else { return };
    let (first, _) = kinds.sample.values().into_iter().find(|(key, _)| key.contains('/')).unwrap();
    let (prefix, _) = first.split_once('/').unwrap();
    let dir = tempfile::tempdir().unwrap();
    let [whole, part] = ["whole", "part"].map(|name| dir.path().join(name));
    kinds.succeeds(&["export", prefix, whole.to_str().unwrap(), "--store", "s3://bucket"]);
    kinds.succeeds(&["export", "", part.to_str().unwrap(), "--store", &format!("s3://bucket/{prefix}")]);
    let found = files(&part);
    assert!(!found.is_empty() && found == files(&whole));
    assert!(found == files(&kinds.sample.lab().join(prefix)));
}

#[test]
fn every_value_is_checked() {
    let Some(kinds) = Kinds::new() else { return };
    for store in kinds.foreign() {
        let stdout = kinds.succeeds(&["check", "--store", &store]);
        let summary = summary(&stdout);
        let bytes: usize = kinds.sample.values().values().map(Vec::len).sum();
        assert_eq!((&summary["keys"], &summary["bytes"]), (&FILES.into(), &bytes.into()), "{summary}");
    }
}

/// Documents of two dialects at one path that other programs have changed are reported by `check`, which reads whatever a
/// server would have to ask for.
#[test]
fn documents_of_two_dialects_that_differ_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("files");
    let v2 = |shape: u64| {
        format!(
            r#"{{"zarr_format": 2, "shape": [{shape}], "chunks": [2], "dtype": "|u1", "compressor": null,
            "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "."}}"#
        )
    };
    let v3 = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "attributes": {}}"#;
    for (name, shape) in [("lab/same", 4), ("lab/grown", 6), ("only", 5)] {
        let at = files.join(name);
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join(".zarray"), v2(shape)).unwrap();
        if name != "only" {
            fs::write(at.join("zarr.json"), v3).unwrap();
        }
    }
    let foreign = format!("dir:{}", files.display());
    let own = dir.path().join("own").display().to_string();
    let imported = zarrd_with(["import", files.to_str().unwrap(), "", "--store", &own]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    for store in [&foreign, &own] {
        let ended = zarrd_with(["check", "--store", store]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("differ")).collect();
        assert_eq!(found.len(), 1, "{store}: {}", ended.stderr);
        assert!(found[0].contains("/lab/grown: shape"), "{store}: {}", ended.stderr);
    }
}

#[test]
fn a_value_that_cannot_be_read_whole_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["good", "restless"] {
        fs::write(dir.path().join(name), "value").unwrap();
    }
    let stopped = Arc::new(AtomicBool::new(false));
    let (path, stop) = (dir.path().join("restless"), Arc::clone(&stopped));
    let writer = thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            fs::write(&path, vec![1; 1 << 16]).unwrap();
        }
    });
    let ended = zarrd_with(["check", "--store", &format!("dir:{}", dir.path().display())]);
    stopped.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("cannot be read: \"restless\""), "{}", ended.stderr);
    assert!(!ended.stderr.contains("good"), "{}", ended.stderr);
}

#[test]
fn commands_that_change_a_store_refuse_those_of_other_programs() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("dir:{}", dir.path().display());
    let source = dir.path().to_str().unwrap();
    for arguments in [
        &["import", source, "--store", &store][..],
        &["compact", &store],
        &["copy", &store, "sled:/nowhere"],
        &["copy", "sled:/nowhere", &store],
    ] {
        let ended = zarrd_with(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains("which other programs write"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_store_is_not_imported_into_itself() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let [outer, inner] = [dir.path(), &store].map(|path: &Path| format!("dir:{}", path.display()));
    let target = format!("sled:{}", store.display());
    fs::create_dir_all(&store).unwrap();
    for source in [&outer, &inner] {
        let ended = zarrd_with(["import", source, "--store", &target]);
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0, "{ended:?}");
    }
}

#[test]
fn errors_of_buckets_have_no_credentials() {
    let Some(kinds) = Kinds::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let exported = dir.path().join("exported");
    let imported = format!("sled:{}", dir.path().join("imported").display());
    for (arguments, access_key) in [
        (&["tree", "--store", "s3://bucket"][..], "AKIAWRONG"),
        (&["check", "--store", "s3://bucket"], "AKIAWRONG"),
        (&["ls", "--store", "s3://missing"], ACCESS_KEY),
        (&["export", "", exported.to_str().unwrap(), "--store", "s3://missing"], ACCESS_KEY),
        (&["import", "s3://missing", "--store", &imported], ACCESS_KEY),
    ] {
        let ended = zarrd_with_environment(kinds.bucket.environment(access_key), arguments);
        assert!(ended.code.is_some_and(|code| code != 0), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains("s3://"), "{arguments:?}: {}", ended.stderr);
        for secret in [SECRET, access_key, "Signature"] {
            assert!(!ended.stderr.contains(secret), "{arguments:?}: {}", ended.stderr);
        }
    }
}
