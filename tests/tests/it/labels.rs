//! Selections by names and labels, decoded elements, and answers with labels are those of xarray.

use zarrd_tests::{python::python, server::Launch, skip::note};

/// Stores by xarray in v2 and v3: descending, repeated and missing coordinates, packed integers, times in several
/// calendars, odd names, and coordinates of a group above.
#[test]
fn answers_by_label_are_those_of_xarray() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    python.run("labels.py", &["write", path]);
    let server = Launch::of(format_args!("dir:{path}")).start();
    let output = python.run("labels.py", &["compare", path, &server.url("")]);
    note(output.trim_end());
    assert_eq!(output.lines().last(), Some("246 answers are those of xarray, 570 faults were noticed"));
}
