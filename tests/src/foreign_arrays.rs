//! Arrays that other libraries write in every way they can: read through `/array`, recreated and rewritten through the
//! server, and read by these libraries again.
//!
//! Each function compares every element, and its counts with those of `tests/data/foreign_arrays.json`.
//!
//! # Panics
//!
//! If anything differs. Functions return early where Python or Node is missing, see [`skip`](crate::skip).

use serde_json::{Value, json};

use crate::{
    node::node,
    originals::{Extent, Originals},
    python::{Python, python, python_with_zarr_2},
    replica::{Hierarchy, ReplicatedHierarchy},
    skip::note,
    slices::ServedArrays,
};

/// The expected counts of an extent: arrays that were stored and read, and rejected ones by reason, by original writer.
struct Counts(Value);

impl Counts {
    fn of(originals: &str, extent: Extent) -> Self {
        let counts: Value =
            serde_json::from_str(include_str!("../data/foreign_arrays.json")).expect("the counts are JSON");
        let extent = match extent {
            Extent::All => "all",
            Extent::Sample => "sample",
        };
        Self(counts[extent][originals].clone())
    }

    /// The expected report.
    fn expected(&self, of: &str) -> &Value {
        &self.0[of]
    }

    /// Compares a report with the expected counts.
    fn check(&self, of: &str, report: &Value) {
        assert!(!self.0[of].is_null(), "{of} is not expected: {report}");
        assert_eq!(*report, self.0[of], "{of}");
    }

    fn check_written(&self, originals: &Originals) {
        self.check("written", &json!(originals.output));
    }

    fn check_slices(&self, python: &Python, originals: &Originals) {
        let compared = ServedArrays::of(originals).compare(python, 1);
        self.check("slices", &json!({"arrays": compared.arrays, "answers": compared.answers}));
    }
}

/// Compares slices of the arrays of zarr-python 3, tensorstore, or zarr-python 2 with what their writer reads back.
pub mod slices {
    use super::{Counts, Extent, Originals, python, python_with_zarr_2};

    /// Arrays of zarr-python 3.
    pub fn of_zarr_python_3(extent: Extent) {
        let Some(python) = python() else { return };
        Counts::of("zarr-python 3", extent).check_slices(&python, &Originals::by(&python, "write_zarr3.py", extent));
    }

    /// Arrays of zarr-python 2, of v2 and the draft.
    pub fn of_zarr_python_2(extent: Extent) {
        let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
        Counts::of("zarr-python 2", extent).check_slices(&python, &Originals::by(&old, "write_zarr2.py", extent));
    }

    /// Arrays of tensorstore.
    pub fn of_tensorstore(extent: Extent) {
        let Some(python) = python() else { return };
        Counts::of("tensorstore", extent)
            .check_slices(&python, &Originals::by(&python, "write_tensorstore.py", extent));
    }
}

/// Rewrites arrays through the server and lets libraries read the result.
pub mod rewritten {
    use super::{Counts, Extent, Hierarchy, Originals, ReplicatedHierarchy, node, python, python_with_zarr_2};

    /// Arrays of zarr-python 3, read by itself, tensorstore and zarrita.
    pub fn of_zarr_python_3(extent: Extent) {
        let Some(python) = python() else { return };
        let originals = Originals::by(&python, "write_zarr3.py", extent);
        let counts = Counts::of("zarr-python 3", extent);
        counts.check_written(&originals);
        let mirrored = ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect);
        counts.check("mirrored", &mirrored.report);
        counts.check("stored", &mirrored.compare_stored(&python, &mirrored.exported(&["v2", "v3"])));
        counts.check("zarr-python 3", &mirrored.read_by(&python, "zarr"));
        counts.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));
        let Some(node) = node() else { return };
        counts.check("zarrita", &mirrored.read_by_zarrita(&node));
    }

    /// Arrays of zarr-python 2 in v2, read by itself and tensorstore, also after a conversion to v3.
    pub fn of_zarr_python_2(extent: Extent) {
        let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
        let originals = Originals::by(&old, "write_zarr2.py", extent);
        let counts = Counts::of("zarr-python 2", extent);
        counts.check_written(&originals);
        let mirrored = ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect);
        counts.check("mirrored", &mirrored.report);
        let exported = mirrored.exported(&["v2"]);
        counts.check("stored", &mirrored.compare_stored(&python, &exported));
        counts.check("zarr-python 2", &mirrored.read_from(&exported, &old));
        counts.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));

        // The same chunks with v3 documents.
        let converted = mirrored.converted(&python);
        counts.check("converted", &converted.report);
        counts.check("converted, zarr-python 3", &converted.read_by(&python, "zarr"));
        counts.check("converted, tensorstore", &converted.read_by(&python, "tensorstore"));
    }

    /// Arrays of zarr-python 2 in the draft, read by itself, and by zarr-python 3 after a conversion.
    pub fn of_the_draft(extent: Extent) {
        let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
        let originals = Originals::by(&old, "write_zarr2.py", extent);
        let counts = Counts::of("draft", extent);
        let mirrored = ReplicatedHierarchy::of(&python, &originals, Hierarchy::Draft);
        counts.check("mirrored", &mirrored.report);
        let exported = mirrored.exported(&["draft"]);
        counts.check("stored", &mirrored.compare_stored(&python, &exported));
        counts.check("zarr-python 2", &mirrored.read_from(&exported, &old));
        let converted = mirrored.converted(&python);
        counts.check("converted", &converted.report);
        counts.check("converted, zarr-python 3", &converted.read_by(&python, "zarr"));
    }

    /// Arrays of tensorstore, read by itself and zarrita.
    pub fn of_tensorstore(extent: Extent) {
        let Some(python) = python() else { return };
        let originals = Originals::by(&python, "write_tensorstore.py", extent);
        let counts = Counts::of("tensorstore", extent);
        counts.check_written(&originals);
        let mirrored = ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect);
        counts.check("mirrored", &mirrored.report);
        counts.check("stored", &mirrored.compare_stored(&python, &mirrored.exported(&["v2", "v3"])));
        counts.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));
        let Some(node) = node() else { return };
        counts.check("zarrita", &mirrored.read_by_zarrita(&node));
    }
}

/// Writes arrays where other programs have their data, patches, grows and erases them there, and lets libraries read what is
/// stored.
pub mod in_place {
    use http::Method;
    use tokio::runtime::Builder;

    use super::{Counts, Extent, Originals, Python, ReplicatedHierarchy, Value, python, python_with_zarr_2};
    use crate::{bucket::S3, server::Launch};

    /// Arrays of zarr-python 3, read by itself and tensorstore.
    pub fn of_zarr_python_3(extent: Extent) {
        let Some(python) = python() else { return };
        let originals = Originals::by(&python, "write_zarr3.py", extent);
        let readers = [("zarr-python 3", &python, "zarr"), ("tensorstore", &python, "tensorstore")];
        of(&python, &originals, "zarr-python 3", extent, &readers);
    }

    /// Arrays of zarr-python 2 in v2, read by itself and tensorstore.
    pub fn of_zarr_python_2(extent: Extent) {
        let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
        let originals = Originals::by(&old, "write_zarr2.py", extent);
        let readers = [("zarr-python 2", &old, "zarr"), ("tensorstore", &python, "tensorstore")];
        of(&python, &originals, "zarr-python 2", extent, &readers);
    }

    /// Arrays of tensorstore, read by itself.
    pub fn of_tensorstore(extent: Extent) {
        let Some(python) = python() else { return };
        let originals = Originals::by(&python, "write_tensorstore.py", extent);
        of(&python, &originals, "tensorstore", extent, &[("tensorstore", &python, "tensorstore")]);
    }

    /// Does it in a folder, which the readers open, and in a bucket, of which the readers open a copy.
    fn of(python: &Python, originals: &Originals, writer: &str, extent: Extent, readers: &[(&str, &Python, &str)]) {
        let counts = Counts::of(writer, extent);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        runtime.block_on(async {
            in_a_folder(python, originals, &counts, readers).await;
            in_a_bucket(python, originals, &counts, readers).await;
        });
    }

    async fn in_a_folder(python: &Python, originals: &Originals, counts: &Counts, readers: &[(&str, &Python, &str)]) {
        let folder = tempfile::tempdir().expect("a directory can be made");
        let server = Launch::of(format_args!("dir:{}?writes=yes", folder.path().display())).start();
        let mirrored = ReplicatedHierarchy::in_place(python, originals, server, &[]);
        counts.check("mirrored", &mirrored.report);
        for (of, reader, library) in readers {
            counts.check(of, &mirrored.read_in(folder.path(), reader, library));
        }
        mirrored.reshape(python);
        for (of, reader, library) in readers {
            counts.check(of, &mirrored.read_in(folder.path(), reader, library));
        }
        erase(&mirrored).await;
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder can be listed").collect();
        assert!(left.is_empty(), "{left:?}");
    }

    async fn in_a_bucket(python: &Python, originals: &Originals, counts: &Counts, readers: &[(&str, &Python, &str)]) {
        let mut bucket = Launch::of("memory:").arg("--s3-listen").arg("127.0.0.1:0").start();
        let endpoint = format!("http://{}", bucket.next_address());
        let made = bucket.request(Method::PUT, "/store/lab/made").body("a bucket").send().await.expect("an answer");
        assert!(made.status().is_success(), "{made:?}");
        let s3 = S3 { endpoint, access_key: "zarrd".to_owned(), secret: "zarrd".to_owned() };
        let server = s3.launch("s3://lab/data?writes=yes&recheck=0").start();
        // Appends are not possible there.
        let mirrored = ReplicatedHierarchy::in_place(python, originals, server, &["whole"]);
        let arrays = |report: &Value| report["arrays"].clone();
        assert_eq!(arrays(&mirrored.report), arrays(counts.expected("mirrored")));
        mirrored.reshape(python);
        // zarr-python 2 writes no v3.
        let exported = mirrored.exported(if mirrored.has("v3").await { &["v2", "v3"] } else { &["v2"] });
        for (of, reader, library) in readers {
            counts.check(of, &mirrored.read_in(exported.path(), reader, library));
        }
        erase(&mirrored).await;
        let left = bucket.get("/store/lab/?list=keys").await.text().await.expect("a listing");
        assert!(!left.contains("lab/data/"), "{left}");
    }

    /// Erases all arrays, by the two hierarchies of them, of which one may not exist.
    async fn erase(mirrored: &ReplicatedHierarchy) {
        for path in ["/node/v2", "/node/v3"] {
            let erased = mirrored.server().request(Method::DELETE, path).send().await.expect("an answer");
            let status = erased.status();
            assert!(status.is_success() || status == 404, "{path}: {status} {:?}", erased.text().await);
        }
    }
}

/// Patches documents of generated hierarchies: every byte that a patch does not name is preserved.
pub fn patch_documents(extent: Extent) {
    // Each of the two libraries writes so many hierarchies, with nine documents on average.
    let (hierarchies, minimum) = match extent {
        Extent::All => ("120", 2000),
        Extent::Sample => ("16", 250),
    };
    let (Some(newest), Some(zarr_2)) = (python(), python_with_zarr_2()) else { return };
    let written = tempfile::tempdir().expect("a temporary directory");
    let dir = written.path().to_str().expect("temporary directories have plain names");
    zarr_2.run("documents/write_zarr2.py", &[dir, hierarchies]);
    newest.run("documents/write_zarr3.py", &[dir, hierarchies]);
    let server = crate::server::Launch::of("memory:").start();
    let output = newest.run("documents/check.py", &[&server.url(""), dir]);
    note(output.trim_end());
    let documents = output.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
    assert!(documents >= Some(minimum), "{documents:?}");
}
