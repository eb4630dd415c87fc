//! Arrays created through `/node` and written through `/array` are readable by other Zarr libraries, for every dialect,
//! data type and codec.

use serde_json::Value;
use zarrd_tests::{
    node::node,
    originals::Originals,
    python::{python, python_with_zarr_2},
    replica::{Hierarchy, ReplicatedHierarchy},
    server::Launch,
    skip::note,
};

/// The expected numbers of arrays that were stored and read, and of rejected ones by reason, by original writer.
fn pinned(originals: &str) -> Pins {
    let pins: Value = serde_json::from_str(include_str!("../../data/foreign_readers.json")).unwrap();
    Pins(pins[originals].clone())
}

struct Pins(Value);

impl Pins {
    /// Compares a script's report with the expected numbers.
    fn check(&self, of: &str, report: &Value) {
        assert!(self.0[of].is_object(), "{of} is not pinned: {report}");
        assert_eq!(*report, self.0[of], "{of}");
    }
}

#[test]
fn zarr_python_3_reads_back_its_rewritten_arrays() {
    let Some(python) = python() else { return };
    let originals = Originals::by(&python, "write_zarr3.py");
    assert_eq!(originals.output, "zarr-python 3.4.2 wrote 2885 arrays and rejected 157 combinations");
    let (mirrored, pins) =
        (ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect), pinned("zarr-python 3"));
    pins.check("mirrored", &mirrored.report);
    pins.check("stored", &mirrored.compare_stored(&python, &mirrored.exported(&["v2", "v3"])));
    pins.check("zarr-python 3", &mirrored.read_by(&python, "zarr"));
    pins.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));
    let Some(node) = node() else { return };
    pins.check("zarrita", &mirrored.read_by_zarrita(&node));
}

#[test]
fn zarr_python_2_reads_back_its_rewritten_arrays() {
    let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
    let originals = Originals::by(&old, "write_zarr2.py");
    assert_eq!(originals.output, "zarr-python 2.18.7 wrote 3420 arrays and rejected 298 combinations");
    let (mirrored, pins) =
        (ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect), pinned("zarr-python 2"));
    pins.check("mirrored", &mirrored.report);
    let exported = mirrored.exported(&["v2"]);
    pins.check("stored", &mirrored.compare_stored(&python, &exported));
    pins.check("zarr-python 2", &mirrored.read_from(&exported, &old));
    pins.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));

    // The same chunks with v3 documents.
    let converted = mirrored.converted(&python);
    pins.check("converted", &converted.report);
    pins.check("converted, zarr-python 3", &converted.read_by(&python, "zarr"));
    pins.check("converted, tensorstore", &converted.read_by(&python, "tensorstore"));
}

#[test]
fn zarr_python_2_reads_back_its_rewritten_draft_arrays() {
    let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
    let originals = Originals::by(&old, "write_zarr2.py");
    let (mirrored, pins) = (ReplicatedHierarchy::of(&python, &originals, Hierarchy::Draft), pinned("draft"));
    pins.check("mirrored", &mirrored.report);
    let exported = mirrored.exported(&["draft"]);
    pins.check("stored", &mirrored.compare_stored(&python, &exported));
    pins.check("zarr-python 2", &mirrored.read_from(&exported, &old));
    let converted = mirrored.converted(&python);
    pins.check("converted", &converted.report);
    pins.check("converted, zarr-python 3", &converted.read_by(&python, "zarr"));
}

#[test]
fn tensorstore_reads_back_its_rewritten_arrays() {
    let Some(python) = python() else { return };
    let originals = Originals::by(&python, "write_tensorstore.py");
    assert_eq!(originals.output, "tensorstore 0.1.86 wrote 844 arrays and rejected 6 combinations");
    let (mirrored, pins) = (ReplicatedHierarchy::of(&python, &originals, Hierarchy::PerDialect), pinned("tensorstore"));
    pins.check("mirrored", &mirrored.report);
    pins.check("stored", &mirrored.compare_stored(&python, &mirrored.exported(&["v2", "v3"])));
    pins.check("tensorstore", &mirrored.read_by(&python, "tensorstore"));
    let Some(node) = node() else { return };
    pins.check("zarrita", &mirrored.read_by_zarrita(&node));
}

/// Recreates and rewrites the hierarchies of zarr-python's users; the readers are those of the originals.
#[test]
fn zarr_python_reads_back_recreated_hierarchies() {
    let Some(python) = python() else { return };
    let [store, elements, copied] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [elements, copied] = [&elements, &copied].map(|dir| dir.path().to_str().unwrap());
    let server = Launch::sled(store.path()).start();
    let url = server.url("");
    python.run("write_zarr_python.py", &[&server.url("/store/lab"), elements]);
    // The script adds an attribute and expects it in the copy.
    note(python.run("writes/rewrite.py", &[&url, "lab", "copy", elements, copied]).trim_end());
    note(python.run("read_zarr_python.py", &[&server.url("/store/copy"), copied]).trim_end());
    note(python.run("read_tensorstore.py", &[copied]).trim_end());
    let Some(node) = node() else { return };
    for arguments in [&[copied][..], &[copied, "suffix"]] {
        let output = node.run("read_zarrita.mjs", arguments);
        note(output.trim_end());
        assert!(output.contains("6 of them sharded"), "{output}");
    }
}

#[test]
fn pydantic_zarr_models_round_trip() {
    let Some(python) = python() else { return };
    let server = Launch::of("memory:").start();
    note(python.run("writes/pydantic_models.py", &[&server.url("")]).trim_end());
}

#[test]
fn zep_6_examples_create_the_described_nodes() {
    let Some(python) = python() else { return };
    let server = Launch::of("memory:").start();
    note(python.run("writes/zep6.py", &[&server.url("")]).trim_end());
}

#[test]
fn xarray_append_never_exposes_a_shape_without_data() {
    let Some(python) = python() else { return };
    let store = tempfile::tempdir().unwrap();
    let server = Launch::sled(store.path()).start();
    note(python.run("writes/xarray_append.py", &[&server.url(""), "200"]).trim_end());
}
