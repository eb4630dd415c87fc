//! Python libraries that read over HTTP, each through a script that compares its results with the files.

use zarrd_tests::{
    python::{Python, python_with_clients, python_with_zarr_2},
    sample::{Sample, SampleServer},
    skip::note,
};

/// Runs a script whose output must end with this report, after the versions of the libraries.
fn compares(script: &str, report: &str) {
    let Some(python) = python_with_clients() else { return };
    compares_with(&python, &SampleServer::with(&python), script, report);
}

fn compares_with(python: &Python, sample_server: &SampleServer, script: &str, report: &str) {
    let found = sample_server.run(python, script);
    note(found.trim_end());
    assert!(found.trim_end().ends_with(report), "{found}");
}

#[test]
fn requests_and_httpx_read_selections_with_spaces_and_special_characters() {
    compares("read_queries.py", "compared 66 answers");
}

#[test]
fn pandas_reads_tables_from_urls() {
    compares("read_tables.py", "compared 52 tables");
}

#[test]
fn xarray_and_dask_read_with_and_without_consolidated_metadata() {
    compares("read_datasets.py", "compared 45 datasets and arrays, 6 not listed");
}

#[test]
fn ome_zarr_reads_multiscale_images() {
    compares("read_images.py", "compared 6 levels");
}

#[test]
fn obstore_reads_everything_except_listings() {
    compares("read_obstore.py", "compared 353 values and 11 arrays");
}

#[test]
fn netcdf_reads_a_file_but_no_zarr() {
    compares("read_netcdf.py", "compared 5 variables, 4 modes rejected");
}

#[test]
fn rasterio_reads_both_formats_but_no_shards() {
    compares("read_rasters.py", "compared 22 rasters");
}

#[test]
fn fsspec_lists_and_reads_all_values() {
    compares("list_fsspec.py", "listed 353 values and compared 10 arrays");
}

#[test]
fn tensorstore_reads_everything_except_listings() {
    compares("read_tensorstore.py", "compared 353 values and 8 arrays");
}

#[test]
fn zarr_python_2_reads_through_fsspec() {
    let (Some(writer), Some(reader)) = (python_with_clients(), python_with_zarr_2()) else { return };
    compares_with(&reader, &Sample::of(&writer).serve(), "read_zarr2.py", "compared 10 arrays");
}

#[test]
fn libraries_never_read_torn_chunks_during_writes() {
    let Some(python) = python_with_clients() else { return };
    let sample_server = SampleServer::with(&python);
    let writer = sample_server.start_writer();
    compares_with(&python, &sample_server, "read_changing.py", "5 libraries read whole chunks");
    assert!(writer.stop() > 5);
}
