//! Pictures have the colours of matplotlib.

use zarrd_tests::{python::python_for_pictures, server::Launch, skip::note};

#[test]
fn color_maps_are_those_of_matplotlib() {
    let Some(python) = python_for_pictures() else { return };
    assert_eq!(python.run("pictures/color_maps.py", &[]).trim_end(), "4 colour maps of matplotlib; 0 differ");
}

/// Arrays of all number types, in each colour map, scale and kind of limits.
#[test]
fn pixels_are_those_of_matplotlib() {
    let Some(python) = python_for_pictures() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let output = python.run("pictures/compare_matplotlib.py", &[&server.url("")]);
    note(output.trim_end());
    let expected = "396 pictures: 0 of 660000 pixels differ by one level, and 31844 of 132000 grey ones";
    assert_eq!(output.trim_end(), expected);
    server.stop();
}
