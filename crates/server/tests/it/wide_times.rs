//! Times that datetime64[ns] cannot represent.

use http::StatusCode;
use serde_json::json;
use zarrd_wire::problem::ProblemType;

use crate::{
    common::{TestResponse, TestServer},
    labels::{create, document},
};

async fn get(server: &TestServer, target: &str) -> TestResponse {
    server.get(&format!("/array/{target}"), &[]).await
}

/// One rule for times that datetime64[ns] does not have, wherever they are decoded: the selected times decide.
#[tokio::test]
async fn times_outside_of_datetime64_are_texts() {
    let server = TestServer::new();
    let early = json!({"units": "days since 1500-01-01", "calendar": "proleptic_gregorian"});
    let late = json!({"units": "days since 2000-01-01", "_FillValue": -1});
    let julian = json!({"units": "days since 1582-10-03"});
    let few = json!({"units": "seconds since 1970-01-01"});
    for (path, data_type, attributes, days) in [
        ("early", "int32", early, json!([0, 1, 200_000])),
        ("late", "int64", late, json!([0, -1, 1_000_000])),
        ("julian", "float64", julian, json!([0.5, 1, 20])),
        ("few", "int32", few, json!([0, 1, 2])),
        // The fill value alone would be out of range.
        ("filled", "int64", json!({"units": "days since 1500-01-01"}), json!([100_000, 110_000, 120_000])),
    ] {
        create(&server, path, &document(data_type, &[3], &[path], attributes), &days).await;
    }
    for (query, expected) in [
        ("early?decode=cf", json!(["1500-01-01T00:00:00", "1500-01-02T00:00:00", "2047-08-01T00:00:00"])),
        ("early?labels=early", json!(["1500-01-01T00:00:00", "1500-01-02T00:00:00", "2047-08-01T00:00:00"])),
        ("early?decode=cf&sel.early=1500-01", json!(["1500-01-01T00:00:00", "1500-01-02T00:00:00"])),
        ("early?decode=cf&select=2", json!("2047-08-01T00:00:00")),
        ("early?decode=cf&reduce=min", json!("1500-01-01T00:00:00")),
        ("early?decode=cf&reduce=first,max", json!(["1500-01-01T00:00:00", "2047-08-01T00:00:00"])),
        ("early?decode=cf&reduce=argmax", json!(2)),
        ("late?decode=cf", json!(["2000-01-01T00:00:00", "NaT", "4737-11-28T00:00:00"])),
        ("late?decode=cf&reduce=nanmax", json!("4737-11-28T00:00:00")),
        ("late?decode=cf&select=:2", json!(["2000-01-01T00:00:00", "NaT"])),
        ("julian?decode=cf", json!(["1582-10-03T12:00:00", "1582-10-04T00:00:00", "1582-11-02T00:00:00"])),
        ("julian?labels=julian&isel.julian=2", json!("1582-11-02T00:00:00")),
        ("filled?decode=cf&reduce=max", json!("1828-07-29T00:00:00")),
        ("few?decode=cf", json!(["1970-01-01T00:00:00", "1970-01-01T00:00:01", "1970-01-01T00:00:02"])),
    ] {
        let answer = get(&server, query).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!(answer.json(), expected, "{query}");
    }
    let types = [("early", "string"), ("late", "string"), ("julian", "string"), ("few", "numpy.datetime64")];
    for (path, data_type) in types {
        let answer = server.get(&format!("/array/{path}?decode=cf&format=json"), &[]).await;
        let found = answer.header("zarr-data-type");
        assert!(found.contains(data_type), "{path}: {found}");
        let head = server.head(&format!("/array/{path}?decode=cf&format=json"), &[]).await;
        assert_eq!(head.header("zarr-data-type"), found, "{path}");
    }
    for format in ["raw", "npy"] {
        for query in ["early?decode=cf", "late?decode=cf&reduce=nanmin,nanmax"] {
            let problem =
                get(&server, &format!("{query}&format={format}")).await.problem(ProblemType::UnsuitableFormat);
            assert_eq!(problem.members.known.unwrap(), ["json", "csv", "xarray"], "{query} {format}");
        }
        assert_eq!(get(&server, &format!("late?decode=cf&select=:2&format={format}")).await.status, StatusCode::OK);
    }
    let csv = get(&server, "early?decode=cf&format=csv&header=labels").await;
    assert!(csv.text().contains("1500-01-02T00:00:00,1500-01-02T00:00:00"), "{}", csv.text());
    let xarray = get(&server, "early?decode=cf&format=xarray").await.json();
    assert_eq!(xarray["data"][0], "1500-01-01T00:00:00");
    assert_eq!(xarray["coords"]["early"]["data"][1], "1500-01-02T00:00:00");
}
