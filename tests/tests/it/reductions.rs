//! Reductions and statistics are those of NumPy, and sums, means and variances those of exact arithmetic.

use std::path::Path;

use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer},
    python::{python, python_with_clients, python_with_zarr_2},
    server::{Launch, Server, zarrd_with},
    skip::note,
};

/// Random reductions of random selections of arrays by zarr-python: of all number types, in v2 and v3, with shards and
/// missing chunks, NaN, infinities, and numbers of one magnitude and of all.
#[test]
fn reductions_are_those_of_numpy_and_of_exact_arithmetic() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    python.run("reductions.py", &[path, "-", "0", "7", "write"]);
    let server = Launch::of(format_args!("dir:{path}")).start();
    let output = python.run("reductions.py", &[path, &server.url(""), "2000", "11", "compare"]);
    note(output.trim_end());
    let counts: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    // Every other case is one of the refusals that the client expects.
    let names = ["equal", "statistics", "histograms", "sum-overflow", "downsampled"];
    let counts = names.map(|name| counts.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0));
    assert_eq!(counts, [1590, 429, 242, 4, 336]);
}

/// The same in the 2020 draft of v3, written by zarr-python 2, some with shards.
#[test]
fn reductions_of_the_draft_are_those_of_numpy() {
    let (Some(python), Some(writer)) = (python(), python_with_zarr_2()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let [elements, path] = ["elements", "draft"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    python.run("reductions.py", &[&elements, "-", "0", "7", "write"]);
    note(writer.run("reductions_draft.py", &[&elements, &path, "5"]).trim_end());
    let server = Launch::of(format_args!("dir:{path}")).start();
    let output = python.run("reductions.py", &[&path, &server.url(""), "600", "23", "compare"]);
    note(output.trim_end());
    let counts: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    let names = ["equal", "statistics", "histograms", "downsampled"];
    let counts = names.map(|name| counts.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0));
    assert_eq!(counts, [469, 130, 78, 94]);
}

/// A number that is off by five units in the last place, or by one, is noticed in every answer.
#[test]
fn planted_faults_are_noticed() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    python.run("reductions.py", &[path, "-", "0", "7", "write"]);
    let server = Launch::of(format_args!("dir:{path}")).start();
    let output = python.run("reductions.py", &[path, &server.url(""), "600", "5", "faults"]);
    note(output.trim_end());
    assert_eq!(output.lines().last(), Some(r#"{"statistics noticed": 125, "results noticed": 327}"#));
}

/// Packed numbers with missing elements, and times, by xarray in v2 and v3; windows with their coordinates.
#[test]
fn reductions_of_decoded_elements_are_those_of_xarray() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    python.run("decoded_reductions.py", &[path, "-", "0", "0", "write"]);
    let server = Launch::of(format_args!("dir:{path}")).start();
    let output = python.run("decoded_reductions.py", &[path, &server.url(""), "200", "1", "compare"]);
    note(output.trim_end());
    assert_eq!(output.lines().last(), Some(r#"{"refusals": 20, "reductions": 400, "windows": 400}"#));
}

/// Reductions of selections, by the data types that they are defined for.
const QUERIES: [(&str, bool); 10] = [
    ("reduce=sum", true),
    ("reduce=mean&axis=0,2", true),
    ("reduce=std&axis=1", true),
    ("reduce=nanvar&coarsen.0=4&coarsen.1=3&coarsen.2=2", true),
    ("reduce=nanmean&select=::-1,3:40:2,(5,1,1)&axis=2", true),
    ("reduce=first,sum&axis=1", true),
    ("reduce=min,nanmax&axis=0", false),
    ("reduce=argmin&axis=2", false),
    ("reduce=mean&coarsen.1=7&edge=trim&select=5", true),
    ("stats&bins=13&quantiles=0.1,0.5,0.77", false),
];

/// The same elements in four layouts, in directories, buckets and both embedded stores: each result has the same bits.
#[tokio::test]
async fn results_are_the_same_bits_in_every_layout_and_store() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (files, stores) = (dir.path().join("files"), dir.path().join("stores"));
    let path = files.to_str().unwrap();
    python.run("reductions.py", &[path, "-", "0", "3", "write-copies"]);
    let bucket = BucketServer::start(&python, &files);
    let servers: Vec<Server> = vec![
        Launch::of(format_args!("dir:{path}")).start(),
        bucket.launch(bucket.url, ACCESS_KEY).start(),
        imported("sled", path, &stores),
        imported("redb", path, &stores),
    ];
    let mut compared = 0_u32;
    for dtype in ["float16", "float32", "float64", "complex64", "int16"] {
        for (query, is_for_all) in QUERIES {
            if dtype == "complex64" && !is_for_all {
                continue;
            }
            let mut expected = None;
            for server in &servers {
                for copy in 0..4 {
                    let response = server.get(&format!("/array/{dtype}/{copy}?{query}")).await;
                    let status = response.status();
                    let found = response.bytes().await.unwrap();
                    assert_eq!(status, 200, "{dtype} {query}: {found:?}");
                    assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{dtype} {query} {copy}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 47 * 16);
}

/// A server of an embedded store into which the files of a directory were copied.
fn imported(index: &str, files: &str, stores: &Path) -> Server {
    let store = format!("{index}:{}", stores.join(index).display());
    let ended = zarrd_with(["import", files, "", "--store", &store]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    Launch::of(store).start()
}
