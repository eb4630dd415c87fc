//! Arrays in which several dimensions have one name.

use http::StatusCode;
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

use crate::{
    common::TestServer,
    labels::{create, document, get},
};

/// Arrays in which both dimensions are called `x`: the coordinate `x` has the length of both dimensions of `lab/c`, and
/// of only the second dimension of `lab/d`. `lab/e` also has dimensions called `dim_1`.
async fn repeated_names() -> TestServer {
    let server = TestServer::new();
    create(&server, "lab/x", &document("int16", &[3], &["x"], json!({})), &json!([10, 20, 30])).await;
    let elements = json!([[0, 1, 2], [3, 4, 5], [6, 7, 8]]);
    create(&server, "lab/c", &document("int16", &[3, 3], &["x", "x"], json!({})), &elements).await;
    create(&server, "lab/d", &document("int16", &[2, 3], &["x", "x"], json!({})), &json!([[0, 1, 2], [3, 4, 5]])).await;
    let names = ["dim_1", "dim_1", "x", "x"];
    let elements = json!([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]]);
    create(&server, "lab/e", &document("int16", &[1, 1, 3, 3], &names, json!({})), &elements).await;
    server
}

#[tokio::test]
async fn numbers_mean_dimensions_whose_name_is_repeated() {
    let server = repeated_names().await;
    for (query, elements) in [
        ("c?sel.0=20&sel.1=30", json!(5)),
        ("c?sel.1=30", json!([2, 5, 8])),
        ("c?sel.x=20", json!([3, 4, 5])),
        ("c?sel.x=20&sel.1=10", json!(3)),
        ("c?isel.0=1&sel.1=15..", json!([4, 5])),
        ("c?labels=0&select=1:,:2", json!([20, 30])),
        ("c?labels=1&select=1:,:2", json!([10, 20])),
        ("c?labels=1&select=0,(2,0)", json!([30, 10])),
        ("c?labels=x&select=1:,:2", json!([20, 30])),
        ("d?sel.1=30", json!([2, 5])),
        ("d?labels=1", json!([10, 20, 30])),
        ("e?sel.2=20&sel.3=30", json!([[6]])),
    ] {
        let answer = get(&server, &format!("lab/{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!(answer.json(), elements, "{query}");
    }
    for query in ["d?sel.0=10", "d?sel.x=10", "d?labels=0"] {
        let answer = get(&server, &format!("lab/{query}")).await;
        assert!(answer.status.is_client_error(), "{query}: {}", answer.text());
    }
    let repeated = get(&server, "lab/c?sel.x=20&sel.0=10").await;
    repeated.problem(ProblemType::DimensionRepeated);
}

#[tokio::test]
async fn members_of_xarray_answers_are_unique() {
    let server = repeated_names().await;
    for (query, dims, coordinates) in [
        ("c", json!(["x", "dim_1"]), json!({"x": [10, 20, 30], "dim_1": [10, 20, 30]})),
        ("c?select=1:,:2", json!(["x", "dim_1"]), json!({"x": [20, 30], "dim_1": [10, 20]})),
        ("c?select=1", json!(["x"]), json!({"x": [10, 20, 30]})),
        ("c?select=1,2", json!([]), json!({"x": 20})),
        ("c?select=:,1", json!(["x"]), json!({"x": [10, 20, 30]})),
        ("c?reduce=sum&axis=0", json!(["x"]), json!({"x": [10, 20, 30]})),
        ("d", json!(["x", "dim_1"]), json!({"dim_1": [10, 20, 30]})),
        ("e", json!(["dim_1", "dim_1_", "x", "dim_3"]), json!({"x": [10, 20, 30], "dim_3": [10, 20, 30]})),
    ] {
        let separator = if query.contains('?') { '&' } else { '?' };
        let answer = get(&server, &format!("lab/{query}{separator}format=xarray")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        let (text, answer) = (answer.text(), answer.json());
        assert_eq!(answer["dims"], dims, "{query}");
        let members = answer["coords"].as_object().unwrap();
        let found: Value = members.iter().map(|(name, member)| (name.clone(), member["data"].clone())).collect();
        assert_eq!(found, coordinates, "{query}");
        for name in members.keys() {
            assert_eq!(text.matches(&format!("{name:?}:{{\"dims\"")).count(), 1, "{query}: {text}");
        }
    }
}
