//! Feeding a server from NumPy: appends to datasets, conversions of types, and packing.

use std::{fs, time::Duration};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_client::{AppendOptions, NodeClient, NodeError, NodePath};
use zarrd_tests::{
    python::python,
    server::{Launch, Server, zarrd_with},
    skip::note,
};

/// `numpy.savez` of `time=arange(3, "<i8")` and `rain=(arange(6, "<f4") / 2).reshape(3, 2)`, by NumPy 2.4.6.
const NPZ: &[u8] = include_bytes!("../../../crates/wire/src/elements/npz/testdata/deflated.npz");

/// Runs a mode of `datasets.py`; the counts that it prints.
fn run(mode: &str, cases: u32) -> Option<Value> {
    let python = python()?;
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let output = python.run("datasets.py", &[&server.url("/"), &cases.to_string(), "5", mode]);
    note(output.trim_end());
    Some(serde_json::from_str(output.lines().last().unwrap()).unwrap())
}

fn count(counts: &Value, name: &str) -> u64 {
    counts.get(name).and_then(Value::as_u64).unwrap_or(0)
}

#[test]
fn casts_are_those_of_numpy_or_are_refused() {
    let Some(counts) = run("cast", 600) else { return };
    let counts = ["equal", "not allowed", "not in range"].map(|name| count(&counts, name));
    assert!(counts.iter().all(|count| *count >= 50) && counts.iter().sum::<u64>() == 600, "{counts:?}");
}

#[test]
fn packed_elements_are_those_of_xarray() {
    let Some(counts) = run("pack", 150) else { return };
    assert_eq!(counts, json!({"numbers": 6000, "times": 3000}));
}

#[test]
fn datasets_of_numpy_grow_together() {
    let Some(counts) = run("append", 25) else { return };
    assert_eq!(counts, json!({"appended": 25, "equal": 4}));
}

/// A group with `time` and `rain` of no steps.
async fn declare(server: &Server) {
    let array =
        |shape: &[u64], dtype: &str, dims: &[&str]| json!({"shape": shape, "dtype": dtype, "dimension_names": dims});
    let zom = json!({"zarr_format": 3, "node_type": "group", "members": {
        "time": array(&[0], "int64", &["time"]), "rain": array(&[0, 2], "float32", &["time", "x"])}});
    let declared = server.request(Method::PUT, "/node/w").body(zom.to_string()).send().await.unwrap();
    assert_eq!(declared.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn client_and_command_append_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(&dir.path().join("store")).start();
    declare(&server).await;
    let nodes = NodeClient::new(server.url("").parse().unwrap()).unwrap();
    let group = NodePath::parse("/w").unwrap();
    let options = AppendOptions::default();
    let report = nodes.append(&group, "time", NPZ, &options).await.unwrap();
    assert_eq!((report.before, report.after, &report.arrays["rain"]), (0, 3, &vec![3, 2]));
    let error = nodes.append(&group, "time", NPZ, &options).await.unwrap_err();
    assert!(matches!(&error, NodeError::Discontinuous { dimension: Some(name), .. } if name == "time"), "{error:?}");
    let error = nodes.append(&group, "x", NPZ, &options).await.unwrap_err();
    assert!(matches!(&error, NodeError::DatasetMismatch { unexpected, .. } if unexpected == &["time"]), "{error:?}");

    let file = dir.path().join("day.npz");
    fs::write(&file, NPZ).unwrap();
    let (url, path) = (server.url(""), file.to_str().unwrap().to_owned());
    let arguments = ["append", url.as_str(), "w", path.as_str(), "--dim", "time"];
    let refused = zarrd_with(arguments);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("nothing was appended") && refused.stderr.contains("\"time\""), "{refused:?}");
    let erased = json!({"shape": [0]}).to_string();
    for (array, shape) in [("time", erased.as_str()), ("rain", r#"{"shape": [0, 2]}"#)] {
        let patch = server.request(Method::PATCH, &format!("/node/w/{array}"));
        let patched = patch.header("content-type", "application/json").body(shape.to_owned()).send().await.unwrap();
        assert_eq!(patched.status(), StatusCode::OK);
    }
    let appended = zarrd_with([&arguments[..], &["--json"]].concat());
    assert_eq!(appended.code, Some(0), "{appended:?}");
    let expected = json!({"dimension": "time", "before": 0, "after": 3, "arrays": {"rain": [3, 2], "time": [3]}});
    assert_eq!(serde_json::from_str::<Value>(&appended.stdout).unwrap(), expected);
    let missing = zarrd_with(["append", &url, "w", "none.npz", "--dim", "time"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("cannot read none.npz"), "{missing:?}");
    server.stop();
}

/// A server that is killed while it appends has all arrays of a dataset in one length afterwards.
#[tokio::test]
async fn kills_leave_whole_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let mut lengths = Vec::new();
    for round in 0..4_u64 {
        let server = Launch::sled(dir.path()).start();
        if round == 0 {
            declare(&server).await;
        }
        let found: Value = serde_json::from_slice(&server.answer("/node/w").await.1).unwrap();
        let extents = ["time", "rain"].map(|array| found["members"][array]["shape"][0].as_u64().unwrap());
        assert_eq!(extents[0], extents[1], "round {round}");
        lengths.push(extents[0]);
        let times = server.request(Method::GET, "/array/w/time").send().await.unwrap().text().await.unwrap();
        assert_eq!(serde_json::from_str::<Vec<u64>>(&times).unwrap(), (0..extents[0]).collect::<Vec<_>>());
        let mut next = extents[0];
        let deadline = tokio::time::Instant::now() + Duration::from_millis(300 + 70 * round);
        while tokio::time::Instant::now() < deadline {
            let body = dataset(next);
            let request =
                server.request(Method::POST, "/node/w?append=time").header("content-type", "application/x-npz");
            let sent = request.body(body).send().await.unwrap();
            assert_eq!(sent.status(), StatusCode::OK);
            next += 1;
        }
        let body = dataset(next);
        let request = server.request(Method::POST, "/node/w?append=time").header("content-type", "application/x-npz");
        let last = tokio::spawn(async move { request.body(body).send().await });
        tokio::time::sleep(Duration::from_micros(300 * round)).await;
        server.kill();
        let _ = last.await.unwrap();
        lengths.push(next);
    }
    note(format!("lengths: {lengths:?}"));
    assert!(lengths.windows(2).all(|pair| pair[1] >= pair[0]), "acknowledged steps stay: {lengths:?}");
}

/// The dataset of one step.
fn dataset(time: u64) -> Vec<u8> {
    let npy = |descr: &str, shape: &[u64], bytes: Vec<u8>| {
        [zarrd_wire::elements::npy::render_header(&format!("'{descr}'"), shape), bytes].concat()
    };
    let rain = [time as f32, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let members =
        [("time.npy", npy("<i8", &[1], time.to_le_bytes().to_vec())), ("rain.npy", npy("<f4", &[1, 2], rain))];
    stored_archive(&members)
}

/// A ZIP archive of stored members.
fn stored_archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        let start = u32::try_from(file.len()).unwrap().to_le_bytes();
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend([size, size].concat());
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0; 2]);
        file.extend([b"PK\x03\x04".as_slice(), &common, name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &common, &[0; 10], &start, name.as_bytes()].concat());
    }
    let [start, len] = [file.len(), directory.len()].map(|len| u32::try_from(len).unwrap().to_le_bytes());
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    [file, directory, b"PK\x05\x06\0\0\0\0".to_vec(), [count, count].concat(), [len, start].concat(), vec![0; 2]]
        .concat()
}
