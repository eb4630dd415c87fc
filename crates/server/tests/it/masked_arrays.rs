//! Functions of arrays whose fill value means missing in xarray: v2 and the draft are refused as v3 with `_FillValue`.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

use crate::common::{TestResponse, TestServer, arrays, nodes::with};

/// What depends on decoding, and what does not.
const REFUSED: [&str; 13] = [
    "reduce=mean",
    "reduce=min,nanmax&axis=x",
    "reduce=count",
    "reduce=any&format=raw",
    "coarsen.x=2&reduce=max",
    "stats",
    "stats&quantiles=0.5",
    "stats&bins=3",
    "reduce=sum&axis=x&format=csv",
    "reduce=mean&coarsen.y=2&format=png",
    "format=png",
    "format=png&max=4&limits=robust",
    "format=json&thresholds",
];
const ALLOWED: [&str; 7] = [
    "",
    "format=xarray",
    "reduce=first",
    "reduce=mean&decode=none",
    "reduce=nanmean&decode=cf",
    "stats&decode=cf",
    "chunks",
];

fn v2(fill_value: &Value, attributes: &Value) -> Value {
    json!({"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "<i2", "fill_value": fill_value, "order": "C",
        "filters": null, "compressor": null, "attributes": attributes})
}

fn draft(fill_value: &Value, attributes: &Value) -> Value {
    json!({"shape": [2, 2], "data_type": "<i2", "chunk_grid": {"type": "regular", "chunk_shape": [2, 2], "separator": "/"},
        "chunk_memory_layout": "C", "fill_value": fill_value, "extensions": [], "attributes": attributes})
}

async fn get(server: &TestServer, path: &str) -> TestResponse {
    server.get(path, &[]).await
}

async fn assert_outcomes(server: &TestServer, path: &str, is_refused: bool) {
    for query in REFUSED {
        let answer = get(server, &format!("/array/{path}?{query}")).await;
        match is_refused {
            true => drop(answer.problem(ProblemType::DecodeUnspecified)),
            false => assert_eq!(answer.status, StatusCode::OK, "{path} {query}: {answer:?}"),
        }
    }
    for query in ALLOWED {
        let answer = get(server, &format!("/array/{path}?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} {query}: {answer:?}");
    }
}

#[tokio::test]
async fn functions_of_masked_arrays_need_decode() {
    let server = TestServer::new();
    let named = json!({"_ARRAY_DIMENSIONS": ["y", "x"]});
    for (name, fill_value, attributes, is_refused) in [
        ("low", json!(-9999), &named, true),
        ("zero", json!(0), &named, true),
        ("null", json!(null), &named, false),
        ("unnamed", json!(-9999), &json!({}), false),
    ] {
        let created = server.json(Method::PUT, &format!("/node/{name}"), &v2(&fill_value, attributes)).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        // Without names, dimensions have numbers.
        if !attributes.as_object().unwrap().is_empty() {
            assert_outcomes(&server, name, is_refused).await;
        }
        let mean = server.get(&format!("/array/{name}?reduce=mean"), &[]).await;
        assert_eq!(mean.status == StatusCode::OK, !is_refused, "{name}: {mean:?}");
        let source = server.get(&format!("/node/{name}?include=source"), &[]).await.json();
        let expected = if is_refused { json!([format!("/{name}")]) } else { json!([]) };
        assert_eq!(source["undecoded"], expected, "{name}");
        for query in ["include=source&limit=9", "include=source&flat"] {
            assert_eq!(server.get(&format!("/node/{name}?{query}"), &[]).await.json()["undecoded"], expected, "{name}");
        }
    }
    let from = |name: &str| format!("/node/{name}?convert=draft&target=/draft/{name}");
    for name in ["low", "zero"] {
        let converted = server.json(Method::POST, &from(name), &json!({})).await;
        assert_eq!(converted.status, StatusCode::OK, "{converted:?}");
        assert_outcomes(&server, &format!("draft/{name}"), true).await;
        let undecoded =
            server.get(&format!("/node/draft/{name}?include=source"), &[]).await.json()["undecoded"].clone();
        assert_eq!(undecoded, json!([format!("/draft/{name}")]));
    }
}

#[tokio::test]
async fn masked_arrays_of_the_draft_need_decode() {
    const CORE: &str = "https://purl.org/zarr/spec/protocol/core/3.0";
    let server = TestServer::new();
    let entry =
        json!({"zarr_format": CORE, "metadata_encoding": CORE, "metadata_key_suffix": ".json", "extensions": []});
    arrays::put(&server, "d/zarr.json", entry.to_string().into_bytes()).await;
    let named = json!({"_ARRAY_DIMENSIONS": ["y", "x"]});
    for (name, fill_value, is_refused) in [("a", json!(-1), true), ("b", json!(null), false)] {
        let document = draft(&fill_value, &named).to_string().into_bytes();
        arrays::put(&server, &format!("d/meta/root/{name}.array.json"), document).await;
        assert_outcomes(&server, &format!("d/{name}"), is_refused).await;
    }
}

/// A conversion with losses is rejected on request, in place and as a copy.
#[tokio::test]
async fn lossy_conversions_are_rejected_on_request() {
    let server = TestServer::new();
    let document = crate::common::nodes::v3_array("int16", &[4, 4], &[2, 2]);
    let document = with(document, "/dimension_names", json!(["y", "x"]));
    let document = with(document, "/attributes", json!({"_FillValue": -1}));
    server.json(Method::PUT, "/node/a", &document).await;
    for target in ["convert=draft&target=/b", "convert=v2&target=/b"] {
        let rejected = server.json(Method::POST, &format!("/node/a?{target}&allow_lossy=no"), &json!({})).await;
        let problem = rejected.problem(ProblemType::LossyConversion);
        assert_eq!(problem.members.losses.len(), 1);
        assert_eq!(problem.members.losses[0].pointer, "/attributes/_FillValue");
        server.get("/node/b", &[]).await.problem(ProblemType::NoSuchNode);
    }
    for allowed in ["", "&allow_lossy", "&allow_lossy=yes"] {
        let path = format!("/node/a?convert=v2&target=/b{}{allowed}", allowed.len());
        let report = server.json(Method::POST, &path, &json!({})).await.json();
        assert_eq!(report["losses"].as_array().unwrap().len(), 1, "{report}");
    }
}
