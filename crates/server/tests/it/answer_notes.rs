//! Headers of elements that are not what a reader might take them for.

use http::StatusCode;
use serde_json::json;

use crate::{
    common::TestServer,
    labels::{create, document, get, server},
};

#[tokio::test]
async fn picture_with_the_south_at_the_top_says_so() {
    let server = TestServer::new();
    let field = document("float32", &[3, 2], &["lat", "lon"], json!({}));
    let elements = json!([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
    let north = json!({"units": "degrees_north"});
    for (group, latitudes, attributes) in [
        ("up", json!([-10.0, 0.0, 10.0]), north.clone()),
        ("down", json!([10.0, 0.0, -10.0]), north),
        ("map", json!([100.0, 200.0, 300.0]), json!({"standard_name": "projection_y_coordinate"})),
        ("depth", json!([1.0, 2.0, 3.0]), json!({"units": "m"})),
    ] {
        create(&server, &format!("{group}/lat"), &document("float32", &[3], &["lat"], attributes), &latitudes).await;
        create(&server, &format!("{group}/t"), &field, &elements).await;
    }
    create(&server, "none/t", &field, &elements).await;
    for (target, rows) in [
        ("up/t", Some("\"lat\"")),
        ("up/t?isel.lat=::-1", None),
        ("up/t?select=2:0:-1", None),
        ("up/t?select=0:3:2", Some("\"lat\"")),
        ("up/t?isel.lat=(2,0)", None),
        ("up/t?select=1:2", None),
        ("up/t?sel.lat=-10..0", Some("\"lat\"")),
        ("up/t?coarsen.lon=2&reduce=mean", Some("\"lat\"")),
        ("map/t", Some("\"lat\"")),
        ("down/t", None),
        ("down/t?select=::-1", Some("\"lat\"")),
        ("depth/t", None),
        ("none/t", None),
    ] {
        let joint = if target.contains('?') { '&' } else { '?' };
        let picture = get(&server, &format!("{target}{joint}format=png")).await;
        assert_eq!(picture.status, StatusCode::OK, "{target}: {}", picture.text());
        assert_eq!(picture.headers.get("zarr-northward-rows").map(|rows| rows.to_str().unwrap()), rows, "{target}");
    }
    assert!(!get(&server, "up/t").await.headers.contains_key("zarr-northward-rows"));
}

#[tokio::test]
async fn elements_that_need_decoding_say_so() {
    let server = server().await;
    for (target, undecoded) in [
        ("lab/t", Some("cf")),
        ("lab/t?format=raw&select=0", Some("cf")),
        ("lab/t?format=csv&header=labels", Some("cf")),
        ("lab/t?decode=cf", None),
        ("lab/t?decode=none", None),
        ("lab/t?reduce=mean&decode=cf", None),
        ("lab/lat", None),
        ("lab/time", None),
    ] {
        let answer = get(&server, target).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {}", answer.text());
        assert_eq!(answer.headers.get("zarr-undecoded").map(|cf| cf.to_str().unwrap()), undecoded, "{target}");
    }
}
