//! Reductions: results that are made in parts, and limits of memory, work and size.

use crate::common::{
    TestServer, arrays,
    nodes::{v3_array, with},
};
use http::{Method, StatusCode};
use serde_json::json;
use zarrd_server::Settings;
use zarrd_wire::problem::ProblemType;

/// A server whose reductions hold few groups at a time.
fn small() -> TestServer {
    let mut settings = Settings::default();
    settings.arrays.max_memory = 16 << 20;
    TestServer::with(settings)
}

/// Sets an array of 1,200 by 100 floats in chunks of 70 by 30, of which one in five is missing and the others have wide
/// sums, ties, NaN and negative zero.
async fn fill(server: &TestServer) {
    let document = with(v3_array("float64", &[1200, 100], &[70, 30]), "/fill_value", json!(2.5));
    arrays::put(server, "a/zarr.json", document.to_string().into_bytes()).await;
    for (number, (row, column)) in (0..18).flat_map(|row| (0..4).map(move |column| (row, column))).enumerate() {
        if number % 5 == 3 {
            continue;
        }
        let value = |at: usize| match (at * 7 + number * 13) % 101 {
            0 => f64::NAN,
            1..=9 => -0.0,
            10..=20 => 3.0,
            other => (other as f64 - 50.0) * 10_f64.powi((at % 7) as i32 - 3),
        };
        let chunk = (0..70 * 30).flat_map(|at| value(at).to_le_bytes()).collect();
        arrays::put(server, &format!("a/c/{row}/{column}"), chunk).await;
    }
}

#[tokio::test]
async fn results_that_are_made_in_parts_are_the_same() {
    let (whole, parts) = (TestServer::new(), small());
    fill(&whole).await;
    fill(&parts).await;
    // As one result, these would take more memory than the server has for one.
    let refused = parts.get("/array/a?reduce=mean,nanmean&coarsen.1=1&format=raw", &[]).await;
    refused.problem(ProblemType::TooMuchMemory);
    let windows = ["coarsen.1=1", "coarsen.0=1", "coarsen.0=2&coarsen.1=1", "coarsen.0=1&coarsen.1=3&edge=trim"];
    let selections = ["", "&select=::-1", "&select=3:1199,::-1", "&isel.0=1:1190:1", "&isel.1=(5,99,5,0,31,30)"];
    for (at, function) in
        ["sum", "mean", "nanstd", "var", "min", "nanmax", "first", "count", "any", "all"].into_iter().enumerate()
    {
        for window in windows {
            // Each function with some of the selections.
            for selection in selections.iter().skip(at % 3).step_by(3) {
                let target = format!("/array/a?reduce={function}&{window}{selection}&format=raw");
                let (one, other) = (whole.get(&target, &[]).await, parts.get(&target, &[]).await);
                assert!(one.status == StatusCode::OK && other.status == one.status, "{target}: {one:?} {other:?}");
                assert!(one.body == other.body, "{target}");
            }
        }
    }
}

#[tokio::test]
async fn fill_values_are_work_for_each_group() {
    let server = TestServer::new();
    let document = v3_array("float64", &[100_000, 1_000_000], &[1, 1_000_000]);
    arrays::put(&server, "a/zarr.json", document.to_string().into_bytes()).await;
    let refused = server.get("/array/a?reduce=mean&axis=0&format=raw", &[]).await.problem(ProblemType::WorkTooLarge);
    assert!(refused.detail.contains("--max-work"));
    let allowed = server.get("/array/a?reduce=mean", &[]).await;
    assert_eq!((allowed.status, allowed.text()), (StatusCode::OK, "0.0"), "one group");
}

#[tokio::test]
async fn decoded_answers_are_bounded_as_such() {
    let mut settings = Settings::default();
    settings.limits.selection = 1000;
    let server = TestServer::with(settings);
    let attributes = json!({"scale_factor": 0.1, "_FillValue": -1});
    let document = with(v3_array("int8", &[2000], &[100]), "/attributes", attributes);
    arrays::put(&server, "a/zarr.json", document.to_string().into_bytes()).await;
    let get = async |query: &str| server.get(&format!("/array/a?format=raw&{query}"), &[]).await;
    assert_eq!(get("select=:1000").await.status, StatusCode::OK);
    // Decoded, and cast, to float64.
    for (query, size, fits) in [
        ("select=:1000&decode=cf", 8000, "0:125"),
        ("select=:126&decode=cf", 1008, "0:63"),
        ("select=:126&astype=float64", 1008, "0:63"),
    ] {
        let refused = get(query).await.problem(ProblemType::SelectionTooLarge);
        assert!(refused.detail.contains("--max-selection"), "{query}");
        let members = refused.members;
        assert_eq!((members.size, members.limit), (Some(size), Some(1000)), "{query}");
        assert_eq!(members.smaller.as_deref(), Some(fits), "{query}");
    }
    assert_eq!(get("select=:125&decode=cf").await.status, StatusCode::OK);
    assert_eq!(get("select=:125&astype=float64").await.status, StatusCode::OK);
}

#[tokio::test]
async fn wide_sums_are_bounded_before_they_take_memory() {
    let server = TestServer::new();
    let document = v3_array("float64", &[25, 20_000], &[25, 20_000]);
    arrays::put(&server, "a/zarr.json", document.to_string().into_bytes()).await;
    let row = |row: i32| (0..20_000).flat_map(move |_| 2_f64.powi(row * 75 - 900).to_le_bytes());
    arrays::put(&server, "a/c/0/0", (0..25).flat_map(row).collect()).await;
    let refused = server.get("/array/a?reduce=sum&axis=0&format=raw", &[]).await.problem(ProblemType::TooMuchMemory);
    assert_eq!(refused.members.limit, Some(4 << 20));
    let allowed = server.get("/array/a?reduce=sum&axis=0&select=:,:1000&format=raw", &[]).await;
    assert_eq!((allowed.status, allowed.body.len()), (StatusCode::OK, 8000), "{}", allowed.text());
    // Fewer magnitudes take a few floats of each column.
    let few = server.get("/array/a?reduce=sum&axis=0&select=:15&format=raw", &[]).await;
    assert_eq!((few.status, few.body.len()), (StatusCode::OK, 160_000));
}

#[tokio::test]
async fn repeated_indices_are_work_for_each_element() {
    let server = TestServer::new();
    let document = v3_array("int8", &[100, 100], &[100, 100]);
    arrays::put(&server, "a/zarr.json", document.to_string().into_bytes()).await;
    arrays::put(&server, "a/c/0/0", vec![1; 10_000]).await;
    let sum = async |count: usize| {
        let list = vec!["7"; count].join(",");
        let body = json!({"select": format!("({list}),({list})")});
        server.json(Method::POST, "/array/a?read&reduce=sum", &body).await
    };
    assert_eq!(sum(600).await.json(), json!(360_000));
    sum(100_000).await.problem(ProblemType::WorkTooLarge);
}

/// Times of a calendar that NumPy does not have are texts, yet have an order, means, and missing ones.
#[tokio::test]
async fn times_of_calendars_are_reduced() {
    let server = TestServer::new();
    let units = json!({"units": "hours since 2000-02-28", "calendar": "noleap", "missing_value": -1});
    let document = with(with(v3_array("int16", &[2, 3], &[1, 2]), "/attributes", units), "/fill_value", json!(-1));
    arrays::put(&server, "t/zarr.json", document.to_string().into_bytes()).await;
    for (key, values) in [("0/0", [24_i16, 0]), ("1/0", [48, -1])] {
        arrays::put(&server, &format!("t/c/{key}"), values.into_iter().flat_map(i16::to_le_bytes).collect()).await;
    }
    for (query, expected) in [
        ("reduce=count", json!(3)),
        ("reduce=count&axis=1", json!([2, 1])),
        ("reduce=nanmin", json!("2000-02-28T00:00:00")),
        ("reduce=nanmax", json!("2000-03-02T00:00:00")),
        ("reduce=min", json!("NaT")),
        ("reduce=nanmean&axis=1", json!(["2000-02-28T12:00:00", "2000-03-02T00:00:00"])),
        (
            "reduce=nanmin,nanmax&axis=0&isel.1=:2",
            json!([["2000-03-01T00:00:00", "2000-02-28T00:00:00"], ["2000-03-02T00:00:00", "2000-02-28T00:00:00"]]),
        ),
        ("reduce=first&coarsen.1=2", json!([["2000-03-01T00:00:00", "NaT"], ["2000-03-02T00:00:00", "NaT"]])),
        ("reduce=nanargmax", json!(3)),
        ("reduce=argmax", json!(2)),
    ] {
        for _ in 0..2 {
            // The second answer is remembered.
            let answer = server.get(&format!("/array/t?decode=cf&{query}"), &[]).await;
            assert_eq!(answer.status, StatusCode::OK, "{query}: {answer:?}");
            assert_eq!(answer.json(), expected, "{query}");
        }
    }
    let binary = server.get("/array/t?decode=cf&reduce=nanmin&format=npy", &[]).await;
    binary.problem(ProblemType::UnsuitableFormat);
    let count = server.get("/array/t?decode=cf&reduce=count&format=raw", &[]).await;
    assert_eq!(count.body.as_ref(), 3_i64.to_le_bytes());
    for query in ["reduce=std", "reduce=sum", "stats", "reduce=nanmin&astype=float64"] {
        let answer = server.get(&format!("/array/t?decode=cf&{query}"), &[]).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
}
