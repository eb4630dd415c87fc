//! Missing values of datasets in conversions, as xarray reads them.

use zarrd_tests::{python::python, server::Launch, skip::note};

/// xarray reads each dataset as before, between v2 and v3, in place and copied, or the difference is named.
#[test]
fn xarray_reads_converted_datasets_as_before() {
    let Some(python) = python() else { return };
    let server = Launch::of("memory:").start();
    note(python.run("documents/converted_masks.py", &[&server.url("")]).trim_end());
}
