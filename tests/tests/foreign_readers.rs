//! What was created through `/node` and written through `/array` is what other Zarr libraries read, in every dialect, of every data type, with every codec.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use zarrd_tests::{
    mirror::{Hierarchy, Mirrored},
    node::node,
    python::{python, python_with_zarr_2},
    server::Launch,
    skip::say,
};

#[test]
fn all_that_zarr_python_3_can_create() {
    let Some(python) = python() else { return };
    let mirrored = Mirrored::of(&python, &python, "write_zarr3.py", Hierarchy::Own);
    assert!(mirrored.arrays > 2500 && mirrored.refused == 0, "{mirrored:?}");
    let read = mirrored.read_by(&python, "zarr");
    // It has no name for the raw bits of the specification, which were written by hand.
    assert_eq!((read.compared, read.unread), (mirrored.arrays - 3, 3));
    assert!(mirrored.read_by(&python, "tensorstore").compared > 600);
    let Some(node) = node() else { return };
    assert!(mirrored.read_by_zarrita(&node).compared > 600);
}

#[test]
fn all_that_zarr_python_2_can_create() {
    let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
    let mirrored = Mirrored::of(&python, &old, "write_zarr2.py", Hierarchy::Own);
    assert!(mirrored.arrays > 2000 && mirrored.refused == 0, "{mirrored:?}");
    let read = mirrored.exported_and_read_by(&old);
    assert_eq!((read.compared, read.unread), (mirrored.arrays, 0));
    assert!(mirrored.read_by(&python, "tensorstore").compared > 400);

    // The same chunks with documents of v3. NumPy refuses to add up times that go beyond what they can be.
    let converted = mirrored.converted(&python);
    assert!(converted.arrays > 2000 && converted.refused < 250, "{converted:?}");
    let read = converted.read_by(&python, "zarr");
    assert_eq!((read.compared, read.unread), (converted.arrays - 12, 12));
    assert!(converted.read_by(&python, "tensorstore").compared > 400);
}

#[test]
fn what_zarr_python_2_can_create_in_the_draft() {
    let (Some(python), Some(old)) = (python(), python_with_zarr_2()) else { return };
    let mirrored = Mirrored::of(&python, &old, "write_zarr2.py", Hierarchy::Draft);
    // What v3 has no data types or codecs for cannot be said by its model, which is the draft's too.
    assert!(mirrored.arrays > 2000 && mirrored.refused < 250, "{mirrored:?}");
    let read = mirrored.exported_and_read_by(&old);
    // Of times it reads in the draft only those whose unit has no multiplier.
    assert_eq!((read.compared, read.unread), (mirrored.arrays - 142, 142));
    let converted = mirrored.converted(&python);
    assert_eq!(converted.refused, 0, "{converted:?}");
    let read = converted.read_by(&python, "zarr");
    assert_eq!((read.compared, read.unread), (converted.arrays - 12, 12));
}

#[test]
fn all_that_tensorstore_can_create() {
    let Some(python) = python() else { return };
    let mirrored = Mirrored::of(&python, &python, "write_tensorstore.py", Hierarchy::Own);
    assert!(mirrored.arrays > 800 && mirrored.refused == 0, "{mirrored:?}");
    assert_eq!(mirrored.read_by(&python, "tensorstore").compared, mirrored.arrays);
    let Some(node) = node() else { return };
    assert!(mirrored.read_by_zarrita(&node).compared > 500);
}

/// The hierarchies of zarr-python's users, declared once more and written once more; the readers are those that read the originals.
#[test]
fn hierarchies_of_zarr_python_are_declared_and_written_once_more() {
    let Some(python) = python() else { return };
    let [store, elements, copied] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [elements, copied] = [&elements, &copied].map(|dir| dir.path().to_str().unwrap());
    let server = Launch::sled(store.path()).start();
    let url = server.url("");
    python.run("write_zarr_python.py", &[&server.url("/store/lab"), elements]);
    // It adds an attribute that it finds again in the copy.
    say(python.run("writes/rewrite.py", &[&url, "lab", "copy", elements, copied]).trim_end());
    say(python.run("read_zarr_python.py", &[&server.url("/store/copy"), copied]).trim_end());
    say(python.run("read_tensorstore.py", &[copied]).trim_end());
    let Some(node) = node() else { return };
    for arguments in [&[copied][..], &[copied, "suffix"]] {
        let said = node.run("read_zarrita.mjs", arguments);
        say(said.trim_end());
        assert!(said.contains("6 of them sharded"), "{said}");
    }
}

#[test]
fn models_of_pydantic_zarr_go_there_and_back() {
    let Some(python) = python() else { return };
    let server = Launch::of("memory:").start();
    say(python.run("writes/pydantic_models.py", &[&server.url("")]).trim_end());
}

#[test]
fn the_examples_of_zep_6_create_what_they_say() {
    let Some(python) = python() else { return };
    let server = Launch::of("memory:").start();
    say(python.run("writes/zep6.py", &[&server.url("")]).trim_end());
}

#[test]
fn datasets_of_xarray_grow_and_nobody_sees_a_shape_without_its_data() {
    let Some(python) = python() else { return };
    let store = tempfile::tempdir().unwrap();
    let server = Launch::sled(store.path()).start();
    say(python.run("writes/xarray_append.py", &[&server.url(""), "200"]).trim_end());
}
