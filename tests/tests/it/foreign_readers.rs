//! Arrays created through `/node` and written through `/array` are readable by other Zarr libraries, for every dialect,
//! data type and codec. `foreign-arrays` of the program `long` does the same with all arrays.

use zarrd_tests::{
    foreign_arrays::rewritten, node::node, originals::Extent, python::python, server::Launch, skip::note,
};

#[test]
fn zarr_python_3_reads_back_its_rewritten_arrays() {
    rewritten::of_zarr_python_3(Extent::Sample);
}

#[test]
fn zarr_python_2_reads_back_its_rewritten_arrays() {
    rewritten::of_zarr_python_2(Extent::Sample);
}

#[test]
fn zarr_python_2_reads_back_its_rewritten_draft_arrays() {
    rewritten::of_the_draft(Extent::Sample);
}

#[test]
fn tensorstore_reads_back_its_rewritten_arrays() {
    rewritten::of_tensorstore(Extent::Sample);
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
    note(python.run("writes/xarray_append.py", &[&server.url(""), "60"]).trim_end());
}
