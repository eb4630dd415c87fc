//! Levels and channels of images of OME-Zarr.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

use crate::{array_read::pixels, common::TestServer};

/// An image of three channels and two levels: 0 of 1 × 3 × 2 × 2 (t, c, y, x), and `coarse/1` of 1 × 3 × 1 × 1.
async fn image(server: &TestServer, path: &str, version: &str, channels: Value) {
    let axes = json!([{"name": "t", "type": "time"}, {"name": "c", "type": "channel"},
        {"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space", "unit": "micrometer"}]);
    let level = |path: &str, scale: f64| json!({"path": path, "coordinateTransformations": [{"type": "scale", "scale": [1, 1, scale, scale]}]});
    let members = json!({
        "multiscales": [{"axes": axes, "datasets": [level("0", 0.5), level("coarse/1", 1.0)]}],
        "omero": {"channels": channels},
    });
    let is_v2 = version == "0.4";
    let attributes = if is_v2 { members } else { json!({"ome": members}) };
    let array = |extent: u64| match is_v2 {
        true => json!({"zarr_format": 2, "shape": [1, 3, extent, extent], "chunks": [1, 1, 2, 2], "dtype": "<u2"}),
        false => {
            json!({"zarr_format": 3, "node_type": "array", "shape": [1, 3, extent, extent], "data_type": "uint16"})
        }
    };
    let group = |attributes: Value, members: Value| match is_v2 {
        true => json!({"zarr_format": 2, "attributes": attributes, "members": members}),
        false => json!({"zarr_format": 3, "node_type": "group", "attributes": attributes, "members": members}),
    };
    let coarse = group(json!({}), json!({"1": array(1)}));
    let document = group(attributes, json!({"0": array(2), "coarse": coarse}));
    let created = server.json(Method::PUT, &format!("/node/{path}"), &document).await;
    assert!(created.status.is_success(), "{}", created.text());
    for (level, elements) in [
        ("0", json!([[[[0, 50], [100, 200]], [[10, 20], [30, 40]], [[0, 0], [7, 7]]]])),
        ("coarse/1", json!([[[[5]], [[6]], [[7]]]])),
    ] {
        let header = [("content-type", "application/json")];
        let written = server.put(&format!("/array/{path}/{level}"), &header, elements.to_string()).await;
        assert!(written.status.is_success(), "{}", written.text());
    }
}

fn channels() -> Value {
    json!([
        {"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 100, "min": 0, "max": 65535}, "active": true},
        {"label": "GFP", "color": "00FF00", "window": {"start": 20, "end": 40}, "active": true},
        {"label": "off", "color": "FF0000", "active": false},
    ])
}

#[tokio::test]
async fn levels_are_read_by_their_number() {
    let server = TestServer::new();
    for (path, version) in [("v2", "0.4"), ("lab/v3", "0.5")] {
        image(&server, path, version, channels()).await;
        for (query, expected) in [
            ("level=1", json!([[[[5]], [[6]], [[7]]]])),
            ("level=0&select=0,1", json!([[10, 20], [30, 40]])),
            ("level=0&select=0,0&reduce=max", json!(200)),
            ("level=1&isel.1=2&isel.2=0", json!([[7]])),
            // The axes name the dimensions.
            ("level=0&isel.t=0&isel.c=1&isel.y=0", json!([10, 20])),
            ("level=0&isel.t=0&reduce=max&axis=y,x", json!([200, 40, 7])),
            ("level=0&isel.t=0&isel.c=0&reduce=max&coarsen.x=2", json!([[50], [200]])),
        ] {
            let answer = server.get(&format!("/array/{path}?{query}"), &[]).await;
            assert_eq!((answer.status, answer.json()), (StatusCode::OK, expected), "{path} {query}");
        }
        let body = json!({"select": "0,1,0,0"}).to_string();
        let header = [("content-type", "application/json")];
        let posted = server.request(Method::POST, &format!("/array/{path}?read&level=0"), &header, body).await;
        assert_eq!(posted.json(), json!(10));
        let stats = server.get(&format!("/array/{path}?level=1&stats"), &[]).await.json();
        assert_eq!(stats["max"], json!(7), "{stats}");
        for query in ["level=2", "level=-1", "level=x", "level="] {
            let problem =
                server.get(&format!("/array/{path}?{query}"), &[]).await.problem(ProblemType::InvalidParameter);
            assert_eq!(problem.members.parameter.as_deref(), Some("level"), "{query}");
        }
        server.get(&format!("/array/{path}/0?level=0"), &[]).await.problem(ProblemType::InvalidParameter);
        server.get(&format!("/array/{path}"), &[]).await.problem(ProblemType::NotAnArray);
    }
    server.get("/array/none?level=0", &[]).await.problem(ProblemType::InvalidParameter);
    server.get("/array/lab?level=0", &[]).await.problem(ProblemType::InvalidParameter);
}

#[tokio::test]
async fn levels_are_selected_by_their_coordinates() {
    let server = TestServer::new();
    for (path, version) in [("v2", "0.4"), ("lab/v3", "0.5")] {
        image(&server, path, version, channels()).await;
        for (at, query, expected) in [
            ("", "level=0&isel.t=0&isel.c=0&sel.y=0.5&sel.x=0", json!(100)),
            ("", "level=0&isel.t=0&isel.c=1&sel.y=0.3..&sel.x=..9", json!([[30, 40]])),
            ("", "level=0&isel.t=0&isel.c=1&sel.y=0.2~&sel.x=7~", json!(20)),
            ("", "level=1&isel.t=0&isel.c=0&sel.y=3~", json!([5])),
            // At the level itself.
            ("/0", "isel.t=0&isel.c=1&sel.y=0.5..0.5&sel.x=(0.5,0)", json!([[40, 30]])),
            ("/0", "isel.t=0&isel.c=1&sel.2=0.5&sel.3=0.5", json!(40)),
            ("/coarse/1", "isel.t=0&isel.c=2&sel.y=0&sel.x=0", json!(7)),
        ] {
            let answer = server.get(&format!("/array/{path}{at}?{query}"), &[]).await;
            assert_eq!((answer.status, answer.json()), (StatusCode::OK, expected), "{path}{at} {query}");
        }
        let target = format!("/array/{path}?level=0&isel.t=0&isel.c=0&sel.y=");
        let missing = server.get(&format!("{target}0.4"), &[]).await.problem(ProblemType::LabelNotFound);
        assert_eq!(missing.members.nearest, Some(json!(0.5)));
        // Channels and other names have no coordinates.
        server.get(&format!("/array/{path}/0?sel.c=0"), &[]).await.problem(ProblemType::NoCoordinate);
        server.get(&format!("/array/{path}/0?sel.q=0"), &[]).await.problem(ProblemType::UnknownDimension);
        server
            .get(&format!("/array/{path}?level=1&sel.y=0~&sel.2=0"), &[])
            .await
            .problem(ProblemType::DimensionRepeated);
        let header = [("content-type", "application/json")];
        let written = server.put(&format!("/array/{path}/0?isel.t=0&isel.c=0&sel.y=0.5&sel.x=0.5"), &header, "9").await;
        assert!(written.status.is_success(), "{}", written.text());
        let read = server.get(&format!("/array/{path}/0?select=0,0,1,1"), &[]).await;
        assert_eq!(read.json(), json!(9));
    }
}

#[tokio::test]
async fn selections_by_coordinates_follow_the_transformations() {
    let server = TestServer::new();
    image(&server, "i", "0.4", channels()).await;
    let target = "/array/i?level=0&isel.t=0&isel.c=0&isel.y=0&sel.x=10";
    server.get(target, &[]).await.problem(ProblemType::LabelNotFound);
    for (transformations, expected) in [
        (json!([{"type": "scale", "scale": [1, 1, 1, 10]}]), Some(50)),
        (
            json!([{"type": "scale", "scale": [1, 1, 1, 2]}, {"type": "translation", "translation": [0, 0, 0, 10]}]),
            Some(0),
        ),
        (
            json!([{"type": "scale", "scale": [1, 1, 1, -5]}, {"type": "translation", "translation": [0, 0, 0, 15]}]),
            Some(50),
        ),
        (json!([{"type": "scale", "scale": [1, 1, 1, 0]}]), None),
        (json!([{"type": "scale", "scale": ["1", 1, 1]}]), None),
        (json!([{"type": "scale", "path": "elsewhere"}]), None),
        (json!(7), None),
    ] {
        let scales = json!([{"axes": ["t", "c", "y", "x"],
            "datasets": [{"path": "0", "coordinateTransformations": transformations}]}]);
        let patch = json!({"attributes": {"multiscales": scales}}).to_string();
        let header = [("content-type", "application/merge-patch+json")];
        assert!(server.request(Method::PATCH, "/node/i", &header, patch).await.status.is_success());
        let answer = server.get(target, &[]).await;
        match expected {
            Some(expected) => assert_eq!(answer.json(), json!(expected), "{transformations}"),
            None => drop(answer.problem(ProblemType::NoCoordinate)),
        }
    }
    let header = [("content-type", "application/octet-stream")];
    assert!(server.put("/store/i/.zattrs", &header, "{").await.status.is_success());
    server.get("/array/i/0?sel.3=0", &[]).await.problem(ProblemType::NoCoordinate);
    server.get("/array/i/0?isel.x=0", &[]).await.problem(ProblemType::UnknownDimension);
}

#[tokio::test]
async fn node_says_what_the_image_is() {
    let server = TestServer::new();
    for (path, version) in [("v2", "0.4"), ("lab/v3", "0.5")] {
        image(&server, path, version, channels()).await;
        let source = server.get(&format!("/node/{path}?include=source&depth=0"), &[]).await.json();
        let image = &source["image"];
        assert_eq!(image["axes"][2], json!({"name": "y", "type": "space", "unit": "micrometer"}));
        assert_eq!(image["levels"][1], json!({"path": "coarse/1", "scale": [1.0, 1.0, 1.0, 1.0], "translation": []}));
        let dapi = json!({"label": "DAPI", "color": "0000ff", "window": [0.0, 100.0], "active": true});
        assert_eq!((&image["channels"][0], &image["channels"][2]["window"]), (&dapi, &Value::Null));
    }
    let source = server.get("/node/lab?include=source&depth=0", &[]).await.json();
    assert_eq!(source.get("image"), None);
}

#[tokio::test]
async fn colours_of_channels_are_added() {
    let server = TestServer::new();
    for (path, version) in [("v2", "0.4"), ("lab/v3", "0.5")] {
        image(&server, path, version, channels()).await;
        // Blue from 0 to 100, and green from 20 to 40.
        let two = vec![0, 0, 0, 0, 0, 128, 0, 128, 255, 0, 255, 255];
        let red = vec![0, 0, 0, 0, 0, 0, 255, 0, 0, 255, 0, 0];
        for (at, query, expected) in [
            ("", "channels=active&isel.t=0", two.clone()),
            ("", "channels=0,1&level=0&select=0", two.clone()),
            ("/0", "channels=active&select=0", two),
            ("", "channels=2&select=0", red),
            // Without a window, a channel of one value is black.
            ("", "channels=1,2&select=0,:,1:,:", vec![0, 128, 0, 0, 255, 0]),
        ] {
            let target = format!("/array/{path}{at}?format=png&{query}");
            let answer = server.get(&target, &[]).await;
            assert_eq!(answer.status, StatusCode::OK, "{target}: {}", answer.text());
            assert_eq!(pixels(&answer.body).2, expected, "{target}");
        }
    }
    let target = "/array/v2?format=png&channels=active&isel.0=0";
    let before = server.get(target, &[]).await;
    let mut other = channels();
    other[0]["color"] = json!("FFFFFF");
    let omero = json!({"attributes": {"omero": {"channels": other}}});
    let patched = server
        .request(Method::PATCH, "/node/v2", &[("content-type", "application/merge-patch+json")], omero.to_string())
        .await;
    assert!(patched.status.is_success(), "{}", patched.text());
    let after = server.get(target, &[]).await;
    assert_ne!(after.header("etag"), before.header("etag"), "the colours are part of the version");
}

#[tokio::test]
async fn channels_need_neither_windows_nor_an_image() {
    let server = TestServer::new();
    image(&server, "plain", "0.5", json!([])).await;
    let answer = server.get("/array/plain?format=png&channels=active&select=0", &[]).await;
    // Red to 200, green from 10 to 40, blue to 7.
    let expected = vec![0, 0, 0, 64, 85, 0, 128, 170, 255, 255, 255, 255];
    assert_eq!(pixels(&answer.body).2, expected);
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [1, 1, 2], "data_type": "float32",
        "fill_value": "NaN", "dimension_names": ["channel", "y", "x"]});
    server.json(Method::PUT, "/node/alone", &document).await;
    let empty = server.get("/array/alone?format=png&channels=0", &[]).await;
    assert_eq!(pixels(&empty.body).2, [0; 6], "NaN adds nothing");
    server.put("/array/alone", &[("content-type", "application/json")], "[[[3, 3]]]").await;
    let constant = server.get("/array/alone?format=png&channels=0", &[]).await;
    assert_eq!(pixels(&constant.body).2, [0; 6]);
}

#[tokio::test]
async fn hundreds_of_channels_without_windows_are_drawn_within_bounds() {
    let server = TestServer::new();
    let array = json!({"zarr_format": 3, "node_type": "array", "shape": [200, 2, 2], "data_type": "uint16"});
    let attributes = json!({"ome": {
        "multiscales": [{"axes": [{"name": "c", "type": "channel"}, "y", "x"], "datasets": [{"path": "0"}]}],
        "omero": {"channels": vec![json!({"window": {}}); 200]},
    }});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes, "members": {"0": array}});
    server.json(Method::PUT, "/node/i", &group).await;
    let elements: Vec<u16> = (0..800).map(|at| at % 4).collect();
    let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    let header = [("content-type", "application/octet-stream")];
    assert!(server.put("/array/i/0", &header, bytes).await.status.is_success());
    // The first 128 are active, each from 0 to 3: the colours are as bright as they can be.
    let active = server.get("/array/i?format=png&channels=active", &[]).await;
    assert_eq!(pixels(&active.body).2, [[0; 3], [255; 3], [255; 3], [255; 3]].concat());
    let last = server.get("/array/i?format=png&channels=199", &[]).await;
    assert_eq!(pixels(&last.body).2, [[0, 0, 0], [0, 85, 0], [0, 170, 0], [0, 255, 0]].concat());
    let source = server.get("/node/i?include=source&depth=0", &[]).await.json();
    assert_eq!(source["image"]["channels"].as_array().map(Vec::len), Some(200));
    server.get("/array/i?format=png&channels=200", &[]).await.problem(ProblemType::IndexOutOfBounds);
}

#[tokio::test]
async fn impossible_channels_are_rejected() {
    let server = TestServer::new();
    image(&server, "i", "0.5", channels()).await;
    let many = (0..129).map(|index| index.to_string()).collect::<Vec<_>>().join(",");
    for (query, parameter) in [
        (format!("format=png&channels={many}"), "channels"),
        ("format=png&channels=".to_owned(), "channels"),
        ("format=png&channels=-1".to_owned(), "channels"),
        ("format=png&channels=all".to_owned(), "channels"),
        ("format=json&channels=0".to_owned(), "channels"),
        ("format=png&channels=0&cmap=magma".to_owned(), "cmap"),
        ("format=png&channels=0&rgb".to_owned(), "rgb"),
        // There are two times.
        ("format=png&channels=0".to_owned(), "channels"),
    ] {
        let problem = server.get(&format!("/array/i?{query}"), &[]).await.problem(ProblemType::InvalidParameter);
        assert_eq!(problem.members.parameter.as_deref(), Some(parameter), "{query}");
    }
    server.get("/array/i?format=png&channels=3&select=0", &[]).await.problem(ProblemType::IndexOutOfBounds);
    server.get("/array/i?format=png&channels=0&select=0,:,0", &[]).await.problem(ProblemType::UnsuitableFormat);
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [2, 2], "data_type": "uint8"});
    server.json(Method::PUT, "/node/flat", &document).await;
    server.get("/array/flat?format=png&channels=0", &[]).await.problem(ProblemType::InvalidParameter);
}
