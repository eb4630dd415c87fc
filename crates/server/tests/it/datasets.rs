//! Appends to all arrays of a group over a dimension.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::body::Body;
use futures::stream;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::{ArrayOptions, Limits, Settings};
use zarrd_wire::problem::{Problem, ProblemType};

use crate::common::{
    TestResponse, TestServer,
    npz::{doubles, longs, npy, npz, singles},
};

const NPZ: [(&str, &str); 1] = [("content-type", "application/x-npz")];

fn array(shape: &[u64], data_type: &str, dims: &[&str], attributes: Value) -> Value {
    json!({"shape": shape, "dtype": data_type, "dimension_names": dims, "attributes": attributes})
}

/// A server with the group `w`: `time` and `rain` over time, with `extent` steps of the numbers 0, 1, …, `names` over
/// stations, and below it a group with an array over another `time`.
async fn weather(settings: Settings, extent: u64) -> TestServer {
    let server = TestServer::with(settings);
    let units = json!({"units": "hours since 2020-01-01", "calendar": "standard"});
    let zom = json!({"zarr_format": 3, "node_type": "group", "members": {
        "time": array(&[extent], "int64", &["time"], units),
        "rain": array(&[extent, 2], "float32", &["time", "station"], json!({})),
        "level": array(&[2, extent], "int16", &["station", "time"], json!({"scale_factor": 0.5, "_FillValue": -1})),
        "names": array(&[2], "string", &["station"], json!({})),
        "other": {"zarr_format": 3, "node_type": "group", "members": {"x": array(&[9], "int8", &["time"], json!({}))}},
    }});
    let created = server.json(Method::PUT, "/node/w", &zom).await;
    assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    let hours: Vec<i64> = (0..extent as i64).collect();
    assert_eq!(server.put("/array/w/time", &[], longs(&hours)).await.status, StatusCode::OK);
    server
}

/// The members of a dataset of some steps.
fn steps(times: &[i64]) -> Vec<(&'static str, Vec<u8>)> {
    let count = times.len() as u64;
    let rain: Vec<f32> = times.iter().flat_map(|time| [*time as f32, 0.5]).collect();
    let level: Vec<u8> = [1_i16, 2].iter().flat_map(|level| vec![level.to_le_bytes(); times.len()].concat()).collect();
    vec![
        ("time", npy("<i8", &[count], &longs(times))),
        ("rain", npy("<f4", &[count, 2], &singles(&rain))),
        ("level", npy("<i2", &[2, count], &level)),
    ]
}

async fn append(server: &TestServer, query: &str, body: impl Into<Body>) -> TestResponse {
    server.request(Method::POST, &format!("/node/w?append=time{query}"), &NPZ, body).await
}

/// The problem of a rejected append, after which nothing has changed.
async fn rejected(server: &TestServer, query: &str, body: impl Into<Body>, kind: ProblemType) -> Problem {
    let before = server.all().await;
    let answer = append(server, query, body).await;
    assert_eq!(server.all().await, before, "{answer:?}");
    answer.problem(kind)
}

async fn elements(server: &TestServer, path: &str) -> Value {
    server.get(path, &[]).await.json()
}

#[tokio::test]
async fn arrays_grow_together() {
    let server = weather(Settings::default(), 3).await;
    let answer = append(&server, "", npz(&steps(&[3, 4]))).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(
        answer.json(),
        json!({"dimension": "time", "before": 3, "after": 5, "chunks_written": 3, "chunks_erased": 0,
            "conflicts_retried": 0, "arrays": {"time": [5], "rain": [5, 2], "level": [2, 5]}})
    );
    assert_eq!(elements(&server, "/array/w/time").await, json!([0, 1, 2, 3, 4]));
    assert_eq!(elements(&server, "/array/w/rain?select=2:").await, json!([[0.0, 0.0], [3.0, 0.5], [4.0, 0.5]]));
    assert_eq!(elements(&server, "/array/w/level?select=:,2:").await, json!([[0, 1, 1], [0, 2, 2]]));
    assert_eq!(elements(&server, "/array/w/other/x").await.as_array().unwrap().len(), 9, "of another group");
    // In pieces, with the other media type, in another order, and nothing.
    let mut members = steps(&[5]);
    members.reverse();
    let pieces: Vec<_> = npz(&members).chunks(7).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    let zip = [("content-type", "application/zip")];
    let body = Body::from_stream(stream::iter(pieces));
    let answer = server.request(Method::POST, "/node/w?append=time", &zip, body).await;
    assert_eq!((answer.status, answer.json()["after"].clone()), (StatusCode::OK, json!(6)));
    let nothing = append(&server, "", npz(&steps(&[]))).await;
    assert_eq!((nothing.json()["before"].clone(), nothing.json()["after"].clone()), (json!(6), json!(6)));
}

const FORM: [(&str, &str); 1] = [("content-type", "multipart/form-data; boundary=XbX")];

/// A form with a part for each member, as curl makes it.
fn form(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let part = |(name, content): &(&str, Vec<u8>)| {
        let head = format!("--XbX\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}.npy\"\r\n");
        [head.as_bytes(), b"Content-Type: application/octet-stream\r\n\r\n", content, b"\r\n"].concat()
    };
    [members.iter().map(part).collect::<Vec<_>>().concat(), b"--XbX--\r\n".to_vec()].concat()
}

#[tokio::test]
async fn forms_are_appended() {
    let server = weather(Settings::default(), 3).await;
    let append = |body: Body| server.request(Method::POST, "/node/w?append=time", &FORM, body);
    let answer = append(form(&steps(&[3, 4])).into()).await;
    assert_eq!((answer.status, answer.json()["after"].clone()), (StatusCode::OK, json!(5)), "{answer:?}");
    let mut members = steps(&[5]);
    members.reverse();
    let pieces: Vec<_> = form(&members).chunks(7).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    assert_eq!(append(Body::from_stream(stream::iter(pieces))).await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/w/time").await, json!([0, 1, 2, 3, 4, 5]));
    assert_eq!(elements(&server, "/array/w/rain?select=3:").await, json!([[3.0, 0.5], [4.0, 0.5], [5.0, 0.5]]));
}

#[tokio::test]
async fn bad_forms_change_nothing() {
    let server = weather(Settings::default(), 3).await;
    let before = server.all().await;
    let all = steps(&[3]);
    let whole = form(&all);
    let unnamed = String::from_utf8_lossy(&form(&[("time", Vec::new())])).replace("; name=\"time\"", "").into_bytes();
    let twice = form(&[all.clone(), vec![all[0].clone()]].concat());
    let long = form(&[vec![("time", [all[0].1.clone(), vec![0; 8]].concat())], all[1..].to_vec()].concat());
    for (body, kind) in [
        (whole[..whole.len() - 5].to_vec(), ProblemType::InvalidBody),
        (whole[..whole.len() / 2].to_vec(), ProblemType::InvalidBody),
        (Vec::new(), ProblemType::InvalidBody),
        ([&whole[..], b"--XbX--\r\n"].concat(), ProblemType::InvalidBody),
        (unnamed, ProblemType::InvalidBody),
        (twice, ProblemType::InvalidBody),
        (long, ProblemType::BodyShapeMismatch),
        (form(&[("time", b"no file".to_vec())]), ProblemType::InvalidBody),
        (form(&[]), ProblemType::DatasetMismatch),
        (form(&all[1..]), ProblemType::DatasetMismatch),
        (form(&[all.clone(), vec![("snow", npy("<i8", &[1], &longs(&[1])))]].concat()), ProblemType::DatasetMismatch),
        (form(&steps(&[2])), ProblemType::DiscontinuousCoordinate),
    ] {
        let answer = server.request(Method::POST, "/node/w?append=time", &FORM, body).await;
        assert!(!answer.problem(kind).detail.is_empty());
    }
    let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
    for kind in ["multipart/form-data", "multipart/form-data; boundary=", &long] {
        let headers = [("content-type", kind)];
        let answer = server.request(Method::POST, "/node/w?append=time", &headers, whole.clone()).await;
        assert!(answer.problem(ProblemType::InvalidHeader).detail.contains("boundary"));
    }
    assert_eq!(server.all().await, before);
}

#[tokio::test]
async fn missing_and_unexpected_arrays_are_named() {
    let server = weather(Settings::default(), 3).await;
    let all = steps(&[3]);
    let problem = rejected(&server, "", npz(&all[1..2]), ProblemType::DatasetMismatch).await;
    assert_eq!(problem.members.missing, ["level", "time"]);
    assert!(problem.detail.contains("\"level\", \"time\""), "{problem:?}");
    for extra in ["snow", "names", "other", "other/x", ""] {
        let members = [all.clone(), vec![(extra, npy("<i8", &[1], &longs(&[1])))]].concat();
        let problem = rejected(&server, "", npz(&members), ProblemType::DatasetMismatch).await;
        assert_eq!(problem.members.unexpected, [extra], "{problem:?}");
    }
    let problem = rejected(&server, "", npz(&[]), ProblemType::DatasetMismatch).await;
    assert_eq!(problem.members.missing, ["level", "rain", "time"]);
    let twice = [all.clone(), vec![all[0].clone()]].concat();
    rejected(&server, "", npz(&twice), ProblemType::InvalidBody).await;
    let before = server.all().await;
    let unknown = server.request(Method::POST, "/node/w?append=tim", &NPZ, npz(&all)).await;
    let problem = unknown.problem(ProblemType::UnknownDimension);
    assert_eq!(problem.members.known.unwrap(), ["station", "time"]);
    assert!(problem.detail.contains("did you mean"), "{}", problem.detail);
    for (path, kind) in [
        ("/node/w/rain?append=time", ProblemType::NotAGroup),
        ("/node/none?append=time", ProblemType::NoSuchNode),
        ("/node/w?append", ProblemType::InvalidParameter),
        ("/node/w?append=time&select=0", ProblemType::UnknownParameter),
        ("/node/w?append=time&casting=no", ProblemType::InvalidParameter),
    ] {
        server.request(Method::POST, path, &NPZ, npz(&all)).await.problem(kind);
    }
    for headers in [&[][..], &[("content-type", "application/x-npy")]] {
        let answer = server.request(Method::POST, "/node/w?append=time", headers, npz(&all)).await;
        answer.problem(ProblemType::UnsupportedMediaType);
    }
    assert_eq!(server.all().await, before);
}

#[tokio::test]
async fn coordinates_have_to_continue() {
    let server = weather(Settings::default(), 3).await;
    for (times, element, label) in [
        (&[2][..], 0, "2020-01-01T02:00:00"),
        (&[0, 1, 2], 0, "2020-01-01T00:00:00"),
        (&[3, 3], 1, "2020-01-01T03:00:00"),
        (&[3, 5, 4], 2, "2020-01-01T04:00:00"),
    ] {
        let problem = rejected(&server, "", npz(&steps(times)), ProblemType::DiscontinuousCoordinate).await;
        assert_eq!(problem.members.element, Some(vec![element]), "{times:?}");
        assert_eq!(problem.members.label.as_deref(), Some(label), "{problem:?}");
        assert_eq!(problem.members.name.as_deref(), Some("time"));
        assert!(problem.detail.contains("\"time\"") && problem.detail.contains("it increases"), "{problem:?}");
    }
    // The same request twice.
    let body = npz(&steps(&[3]));
    assert_eq!(append(&server, "", body.clone()).await.status, StatusCode::OK);
    let problem = rejected(&server, "", body, ProblemType::DiscontinuousCoordinate).await;
    assert_eq!(problem.members.last, Some(json!("2020-01-01T03:00:00")));
}

#[tokio::test]
async fn lengths_shapes_and_types_have_to_fit() {
    let server = weather(Settings::default(), 3).await;
    let with = |changed: (&'static str, Vec<u8>)| {
        let others = steps(&[3]).into_iter().filter(|(name, _)| *name != changed.0);
        npz(&others.chain([changed.clone()]).collect::<Vec<_>>())
    };
    let longer = with(("rain", npy("<f4", &[2, 2], &singles(&[1.0; 4]))));
    let problem = rejected(&server, "", longer, ProblemType::DatasetMismatch).await;
    assert!(problem.detail.contains("2 steps of \"rain\"") || problem.detail.contains("2 of \"rain\""), "{problem:?}");
    for wrong in [
        npy("<f4", &[1, 3], &singles(&[1.0; 3])),
        npy("<f4", &[2, 1], &singles(&[1.0; 2])),
        npy("<c8", &[1, 2], &singles(&[1.0; 4])),
    ] {
        let problem = rejected(&server, "", with(("rain", wrong)), ProblemType::BodyShapeMismatch).await;
        assert_eq!(problem.members.array.as_deref(), Some("rain"));
        assert!(problem.detail.starts_with("rain: "), "{problem:?}");
    }
    // A row is one step.
    let row = with(("rain", npy("<f4", &[2], &singles(&[8.0, 9.0]))));
    assert_eq!(append(&server, "", row).await.json()["arrays"]["rain"], json!([4, 2]));
    assert_eq!(elements(&server, "/array/w/rain?select=3").await, json!([8.0, 9.0]));
    // Casting.
    let next = |rain| {
        let others = steps(&[4]).into_iter().filter(|(name, _)| *name != "rain");
        npz(&others.chain([("rain", rain)]).collect::<Vec<_>>())
    };
    let wide = npy("<f8", &[1, 2], &doubles(&[0.1, 1e300]));
    let problem = rejected(&server, "", next(wide), ProblemType::InvalidElement).await;
    assert_eq!((problem.members.element, problem.members.array.as_deref()), (Some(vec![0, 1]), Some("rain")));
    let narrow = npy("<f8", &[1, 2], &doubles(&[0.1, 2.0]));
    rejected(&server, "&casting=safe", next(narrow.clone()), ProblemType::BodyShapeMismatch).await;
    assert_eq!(append(&server, "", next(narrow)).await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/w/rain?select=4").await, json!([0.1, 2.0]));
    // Pickles, and files that end too early.
    let pickled = next(npy("|O", &[1, 2], b"\x80\x03]q\x00."));
    let problem = rejected(&server, "", pickled, ProblemType::InvalidBody).await;
    assert!(problem.detail.contains("pickled"), "{problem:?}");
    let whole = npz(&steps(&[5]));
    for len in [0, 10, 100, whole.len() / 2, whole.len() - 1] {
        rejected(&server, "", whole[..len].to_vec(), ProblemType::InvalidBody).await;
    }
    rejected(&server, "", [whole, vec![0]].concat(), ProblemType::InvalidBody).await;
}

#[tokio::test]
async fn decoded_datasets_are_packed() {
    let server = weather(Settings::default(), 1).await;
    // 2020-01-01T01:00 and 02:00.
    let seconds = longs(&[438_289 * 3600, 438_290 * 3600]);
    let members = [
        ("time", npy("<M8[s]", &[2], &seconds)),
        ("rain", npy("<f8", &[2, 2], &doubles(&[1.0, f64::NAN, 3.0, 4.0]))),
        ("level", npy("<f8", &[2, 2], &doubles(&[0.26, 1.24, f64::NAN, -7.5]))),
    ];
    assert_eq!(append(&server, "&decode=cf", npz(&members)).await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/w/time").await, json!([0, 1, 2]));
    assert_eq!(elements(&server, "/array/w/level?select=:,1:").await, json!([[1, 2], [-1, -15]]));
    assert_eq!(elements(&server, "/array/w/rain?select=1:").await, json!([[1.0, "NaN"], [3.0, 4.0]]));
    // Times are encoded in any case, and have to be whole hours.
    let mut members = steps(&[3]);
    members[0] = ("time", npy("<M8[s]", &[1], &longs(&[438_291 * 3600 + 1])));
    let problem = rejected(&server, "", npz(&members), ProblemType::InvalidElement).await;
    assert!(problem.detail.contains("2020-01-01T03:00:01") && problem.detail.contains("hours since"), "{problem:?}");
    members[0] = ("time", npy("<M8[s]", &[1], &longs(&[438_291 * 3600])));
    assert_eq!(append(&server, "", npz(&members)).await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/w/time?select=3").await, json!(3));
}

#[tokio::test]
async fn arrays_that_disagree_are_not_appended_to() {
    let server = weather(Settings::default(), 3).await;
    let patch = json!({"shape": [4, 2]});
    assert_eq!(server.json(Method::PATCH, "/node/w/rain", &patch).await.status, StatusCode::OK);
    let problem = rejected(&server, "", npz(&steps(&[3])), ProblemType::DatasetMismatch).await;
    assert!(problem.detail.contains("\"rain\" has 4 elements"), "{problem:?}");
}

#[tokio::test]
async fn consolidated_metadata_is_updated_once() {
    let server = TestServer::new();
    let zarray = |shape: Value| json!({"zarr_format": 2, "shape": shape, "dtype": "<i8"});
    let with = |zarray: Value, dims: Value| {
        let mut zarray = zarray;
        zarray["attributes"] = json!({"_ARRAY_DIMENSIONS": dims});
        zarray
    };
    let zom = json!({"zarr_format": 2, "members": {
        "time": with(zarray(json!([1])), json!(["time"])),
        "a": with(zarray(json!([1, 2])), json!(["time", "x"])),
    }});
    assert_eq!(server.json(Method::PUT, "/node/w", &zom).await.status, StatusCode::CREATED);
    let document = |key: &str| {
        let key = format!("w/{key}");
        let server = &server;
        async move { serde_json::from_slice::<Value>(&server.value(&key).await.unwrap()).unwrap() }
    };
    let metadata = json!({
        "time/.zarray": document("time/.zarray").await, "time/.zattrs": document("time/.zattrs").await,
        "a/.zarray": document("a/.zarray").await, "a/.zattrs": document("a/.zattrs").await, ".zgroup": {"zarr_format": 2},
    });
    let consolidated = json!({"zarr_consolidated_format": 1, "metadata": metadata}).to_string().into_bytes();
    server.set("w/.zmetadata", Box::leak(consolidated.into_boxed_slice())).await;
    let members = [("time", npy("<i8", &[2], &longs(&[5, 6]))), ("a", npy("<i8", &[2, 2], &longs(&[1, 2, 3, 4])))];
    let answer = append(&server, "", npz(&members)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let consolidated = document(".zmetadata").await;
    for array in ["time", "a"] {
        assert_eq!(consolidated["metadata"][format!("{array}/.zarray")], document(&format!("{array}/.zarray")).await);
    }
    assert_eq!(document("a/.zarray").await["shape"], json!([3, 2]));
}

#[tokio::test]
async fn large_datasets_take_bounded_memory() {
    let arrays =
        ArrayOptions { max_memory: 32 << 20, slab_memory: 2 << 20, cache_capacity: 0, ..ArrayOptions::default() };
    let limits = Limits { value: 64 << 20, ..Limits::default() };
    let server = weather(Settings { arrays, limits, ..Settings::default() }, 0).await;
    // 40 MiB, of which no more than the budget is in memory.
    let count = 2_000_000_u64;
    let members = [
        ("time", npy("<i8", &[count], &longs(&(0..count as i64).collect::<Vec<_>>()))),
        ("rain", npy("<f4", &[count, 2], &vec![1; count as usize * 8])),
        ("level", npy("<i2", &[2, count], &vec![1; count as usize * 4])),
    ];
    let answer = append(&server, "", npz(&members)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(elements(&server, "/array/w/time?select=-1").await, json!(count - 1));
    assert_eq!(elements(&server, "/array/w/level?select=-1,-1").await, json!(257));
    // The members have a limit, however well they are compressed.
    let small = Limits { value: 1 << 16, ..Limits::default() };
    let server = weather(Settings { limits: small, ..Settings::default() }, 1).await;
    let zeros = vec![0; 8 << 20];
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut deflate, &npy("<i8", &[1 << 20], &zeros)).unwrap();
    let bomb = deflated("time.npy", &deflate.finish().unwrap());
    assert!(bomb.len() < 1 << 16);
    rejected(&server, "", bomb, ProblemType::BodyTooLarge).await;
}

/// The beginning of an archive with a deflated member whose length follows it.
fn deflated(name: &str, content: &[u8]) -> Vec<u8> {
    let mut file = b"PK\x03\x04\x14\0\x08\0\x08\0".to_vec();
    file.extend([0; 16]);
    file.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    file.extend([0; 2]);
    [file, name.as_bytes().to_vec(), content.to_vec()].concat()
}

/// Several clients append, and readers never see sizes that disagree.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_never_show_unequal_extents() {
    const CLIENTS: i64 = 4;
    const STEPS: i64 = 40;
    let server = Arc::new(weather(Settings::default(), 0).await);
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (server, done) = (server.clone(), done.clone());
        tokio::spawn(async move {
            let mut seen = 0;
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let node = server.get("/node/w", &[]).await.json();
                let shape = |array: &str, axis: usize| node["members"][array]["shape"][axis].as_u64().unwrap();
                let extents = [shape("time", 0), shape("rain", 0), shape("level", 1)];
                assert!(extents.iter().all(|extent| *extent == extents[0]), "{extents:?}");
                assert!(extents[0] >= last);
                seen += u64::from(extents[0] > last);
                last = extents[0];
            }
            seen
        })
    };
    let client = |server: Arc<TestServer>| async move {
        let (mut appended, mut refused) = (0, 0);
        // Each client takes the next time that it sees; whoever is second is refused.
        while appended < STEPS / CLIENTS {
            let node = server.get("/node/w/time", &[]).await.json();
            let next = node["shape"][0].as_i64().unwrap();
            let answer = append(&server, "", npz(&steps(&[next]))).await;
            match answer.status {
                StatusCode::OK => appended += 1,
                _ => {
                    answer.problem(ProblemType::DiscontinuousCoordinate);
                    refused += 1;
                }
            }
        }
        refused
    };
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(client(server.clone()))).collect();
    let mut refused = 0;
    for client in clients {
        refused += client.await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.await.unwrap() > 0);
    let expected: Vec<i64> = (0..STEPS).collect();
    assert_eq!(elements(&server, "/array/w/time").await, json!(expected), "{refused} were refused");
    let rain: Vec<Value> = expected.iter().map(|time| json!([*time as f64, 0.5])).collect();
    assert_eq!(elements(&server, "/array/w/rain").await, json!(rain));
}
