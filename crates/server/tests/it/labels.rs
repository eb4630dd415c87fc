//! Selection by names and labels: what the store has at the moment of the answer, rights on coordinates, and limits.

use crate::common::{TestResponse, TestServer, tokens::ServerWithTokens};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::{Limits, Settings};
use zarrd_wire::problem::ProblemType;

/// The document of an array over named dimensions.
pub(crate) fn document(data_type: &str, shape: &[u64], names: &[&str], attributes: Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "dimension_names": names, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape.iter().map(|extent| (*extent).clamp(1, 4)).collect::<Vec<_>>()}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [{"name": "bytes"}],
        "attributes": attributes,
    })
}

pub(crate) async fn create(server: &TestServer, path: &str, document: &Value, elements: &Value) {
    let created = server.json(Method::PUT, &format!("/node/{path}"), document).await;
    assert!(created.status.is_success(), "{path}: {}", created.text());
    write(server, path, elements).await;
}

async fn write(server: &TestServer, path: &str, elements: &Value) {
    let body = elements.to_string();
    let written = server.put(&format!("/array/{path}"), &[("content-type", "application/json")], body).await;
    assert!(written.status.is_success(), "{path}: {}", written.text());
}

/// `lab/t` over `time` and `lat`, with descending latitudes and daily times; `lab/u` over `none`, without a coordinate.
async fn fill(server: &TestServer) {
    let times = json!({"units": "days since 2020-01-30"});
    create(server, "lab/time", &document("int16", &[4], &["time"], times), &json!([0, 1, 2, 3])).await;
    create(server, "lab/lat", &document("float32", &[3], &["lat"], json!({})), &json!([60.5, 50.1, 40.5])).await;
    let packed = json!({"scale_factor": 0.5, "_FillValue": -1});
    let elements = json!([[0, 1, 2], [3, 4, 5], [6, -1, 8], [9, 10, 11]]);
    create(server, "lab/t", &document("int16", &[4, 3], &["time", "lat"], packed), &elements).await;
    create(server, "lab/u", &document("int16", &[2], &["none"], json!({})), &json!([1, 2])).await;
}

pub(crate) async fn server() -> TestServer {
    let server = TestServer::new();
    fill(&server).await;
    server
}

pub(crate) async fn get(server: &TestServer, path: &str) -> TestResponse {
    server.get(&format!("/array/{path}"), &[]).await
}

#[tokio::test]
async fn names_and_labels_select() {
    let server = server().await;
    for (query, elements, selected) in [
        ("sel.lat=50.1", json!([1, 4, -1, 10]), r#"{"lat":1}"#),
        ("sel.time=2020-02&isel.lat=0", json!([6, 9]), r#"{"time":"2:4","lat":0}"#),
        ("sel.time=2020-01-31&isel.1=::2", json!([[3, 5]]), r#"{"time":"1:2","lat":"::2"}"#),
        ("sel.lat=41..51&sel.time=-P1D..", json!([[-1], [10]]), r#"{"time":"2:4","lat":"1:2"}"#),
        ("sel.lat=(40.5,60~)&isel.time=0", json!([2, 0]), r#"{"time":0,"lat":"(2,0)"}"#),
        ("sel.time=2020-02-01T05:00:00+05:00&decode=cf", json!([3.0, "NaN", 4.0]), r#"{"time":2}"#),
        ("sel.time=2020-02-01T00:00:00%2B00:00&isel.lat=0", json!(6), r#"{"time":2,"lat":0}"#),
        ("sel.time=2020-01-31T11:59~&labels=time", json!("2020-01-31T00:00:00"), r#"{"time":1}"#),
        ("labels=lat&isel.lat=::-2", json!([40.5, 60.5]), r#"{"lat":"::-2"}"#),
    ] {
        let answer = get(&server, &format!("lab/t?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!((answer.json(), answer.header("zarr-selected")), (elements, selected), "{query}");
        let head = server.head(&format!("/array/lab/t?{query}"), &[]).await;
        assert_eq!((head.header("zarr-selected"), head.header("etag")), (selected, answer.header("etag")), "{query}");
    }
    let body = json!({"sel": {"lat": [40.5, "60~"]}, "isel": {"time": {"start": 2}}});
    assert_eq!(server.json(Method::POST, "/array/lab/t?read", &body).await.json(), json!([[8, 6], [11, 9]]));
    let both = server.json(Method::POST, "/array/lab/t?read&sel.lat=50.1", &json!({"isel": {"time": 0}})).await;
    assert_eq!(both.json(), json!(1));
    let query = server.json(Method::POST, "/array/lab/t?read&sel.lat=50.1&isel.time=-1", &json!({})).await;
    assert_eq!(query.json(), json!(10));
}

#[tokio::test]
async fn kept_dimensions_have_a_place_and_no_labels() {
    let server = server().await;
    let answer = get(&server, "lab/t?reduce=count&axis=time&keepdims&decode=cf&format=xarray").await.json();
    assert_eq!(answer["dims"], json!(["time", "lat"]));
    assert_eq!(answer["coords"].as_object().unwrap().keys().collect::<Vec<_>>(), ["lat"]);
    assert_eq!(answer["coords"]["lat"]["dims"], json!(["lat"]));
    let answer = get(&server, "lab/t?reduce=count&axis=time&keepdims&decode=cf&format=csv&header=labels").await;
    assert_eq!(answer.text(), "time,60.5,50.1,40.5\r\n0,4,3,4\r\n");
    let both = get(&server, "lab/t?reduce=count,max&axis=time&keepdims&decode=cf&format=xarray").await.json();
    assert_eq!(both["dims"], json!(["function", "time", "lat"]));
    assert_eq!(both["coords"]["lat"]["dims"], json!(["lat"]));
}

#[tokio::test]
async fn rows_and_columns_without_labels_are_called_by_their_indices() {
    let server = server().await;
    let csv =
        async |query: &str| get(&server, &format!("lab/{query}&format=csv&header=labels")).await.text().to_owned();
    assert_eq!(csv("u?isel.none=1:").await, "none,u\r\n1,2\r\n");
    assert_eq!(csv("u?isel.none=::-1").await, "none,u\r\n1,2\r\n0,1\r\n");
    assert_eq!(csv("u?reduce=sum&coarsen.none=1&isel.none=1:").await, "none,u\r\n0,2\r\n");
    let times = "2020-01-30T00:00:00\r\n2020-01-31T00:00:00\r\n";
    assert_eq!(csv("t?isel.time=:2&isel.lat=0:0").await, format!("time\r\n{times}"));
    // A dimension of the array is not mistaken for that of the functions.
    create(&server, "lab/f", &document("int8", &[2, 2], &["function", "x"], json!({})), &json!([[1, 2], [3, 4]])).await;
    let found = get(&server, "lab/f?reduce=sum,max&axis=x&format=xarray").await.json();
    assert_eq!(found["dims"], json!(["_function", "function"]));
    assert_eq!(get(&server, "lab/f?reduce=sum,max&axis=x&labels=_function").await.json(), json!(["sum", "max"]));
}

#[tokio::test]
async fn answers_follow_their_coordinate() {
    let server = server().await;
    let path = "/array/lab/t?sel.lat=50.1&isel.time=0";
    let before = server.get(path, &[]).await;
    assert_eq!(before.json(), json!(1));
    let tag = before.header("etag").to_owned();
    assert_eq!(server.get(path, &[("if-none-match", &tag)]).await.status, StatusCode::NOT_MODIFIED);
    // The same index under another label, then another index: the coordinate is part of the answer both times.
    write(&server, "lab/lat", &json!([61, 50.1, 40.5])).await;
    let same = server.get(path, &[("if-none-match", &tag)]).await;
    assert_eq!((same.status, same.json()), (StatusCode::OK, json!(1)));
    assert_ne!(same.header("etag"), tag);
    write(&server, "lab/lat", &json!([50.1, 60, 40.5])).await;
    assert_eq!(server.get(path, &[("if-none-match", same.header("etag"))]).await.json(), json!(0));
    let formats = ["json", "xarray", "csv&header=labels", "csv&header=true"];
    let mut tags = Vec::new();
    for format in formats {
        tags.push(get(&server, &format!("lab/t?isel.time=0&format={format}")).await.header("etag").to_owned());
    }
    tags.push(get(&server, "lab/t?isel.time=0&decode=cf").await.header("etag").to_owned());
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), formats.len() + 1);
}

#[tokio::test]
async fn coordinates_need_the_right_to_read_them() {
    let closed = ServerWithTokens::closed();
    fill(&TestServer::over(closed.server.store.clone(), Settings::default())).await;
    let (_, whole) = closed.token(&["read:lab/"]);
    let (_, array) = closed.token(&["read:lab/t/"]);
    let (_, both) = closed.token(&["read:lab/t/", "read:lab/lat/"]);
    for (token, query, kind) in [
        (&whole, "sel.lat=50.1", None),
        (&array, "isel.lat=0", None),
        (&array, "sel.lat=50.1", Some(ProblemType::NoCoordinate)),
        (&both, "sel.lat=50.1", None),
        (&both, "sel.time=2020", Some(ProblemType::NoCoordinate)),
        (&array, "labels=lat", Some(ProblemType::NoCoordinate)),
    ] {
        let answer = closed.get(token, &format!("/array/lab/t?{query}")).await;
        match kind {
            None => assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text()),
            Some(kind) => {
                let problem = answer.problem(kind);
                // The same words as without a coordinate.
                let none = get(&server().await, "lab/u?sel.none=1").await.problem(ProblemType::NoCoordinate);
                let name = problem.members.name.clone().unwrap();
                assert_eq!(problem.detail, none.detail.replace("none", &name));
            }
        }
    }
    // Labels that cannot be read are left out.
    let answer = closed.get(&both, "/array/lab/t?format=xarray&isel.time=0").await.json();
    let coordinates: Vec<_> = answer["coords"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(coordinates, ["lat"]);
}

#[tokio::test]
async fn hostile_labels_are_refused() {
    let server = server().await;
    let many = |label: &str, count: usize| vec![label; count].join(",");
    let body = |labels: String| format!(r#"{{"sel":{{"lat":"({labels})"}}}}"#);
    for (body, kind) in [
        (body(many("40.5", 1 << 16)), None),
        (body(many("40.5", (1 << 16) + 1)), Some(ProblemType::InvalidLabel)),
        (format!(r#"{{"sel":{{"lat":"{}"}}}}"#, "9".repeat(1 << 20)), Some(ProblemType::InvalidLabel)),
        (format!(r#"{{"sel":{{"lat":"{}"}}}}"#, "9".repeat((1 << 20) + 1)), Some(ProblemType::InvalidLabel)),
        (format!(r#"{{"sel":{{"lat":[{}]}}}}"#, many("1", 100_000)), Some(ProblemType::InvalidLabel)),
        (format!(r#"{{"sel":{{{}}}}}"#, many(r#""x":1"#, 65)), Some(ProblemType::InvalidSelection)),
        (r#"{"sel":[1]}"#.to_owned(), Some(ProblemType::InvalidSelection)),
        (r#"{"sel":{"lat":null}}"#.to_owned(), Some(ProblemType::InvalidLabel)),
        (r#"{"sel":{},"points":[]}"#.to_owned(), Some(ProblemType::SelectionConflict)),
        (r#"{"sel":{},"sol":{}}"#.to_owned(), Some(ProblemType::InvalidSelection)),
        (r#"{"isel":{"lat":"..."}}"#.to_owned(), Some(ProblemType::InvalidSelection)),
    ] {
        let answer = server
            .request(
                Method::POST,
                "/array/lab/t?read&format=raw",
                &[("content-type", "application/json")],
                body.clone(),
            )
            .await;
        match kind {
            None => assert_eq!(answer.status, StatusCode::OK),
            Some(kind) => drop(answer.problem(kind)),
        }
    }
    let repeated = vec!["isel.lat=0"; 65].join("&");
    get(&server, &format!("lab/t?{repeated}")).await.problem(ProblemType::InvalidParameter);
    get(&server, "lab/t?isel.lat=0&isel.lat=1").await.problem(ProblemType::DimensionRepeated);
}

#[tokio::test]
async fn huge_coordinates_are_refused_before_they_are_read() {
    let server = TestServer::new();
    let extent = 1_000_000_000_000_u64;
    for (path, names) in [("x", ["x"]), ("data", ["x"])] {
        let document = document("float64", &[extent], &names, json!({}));
        assert!(server.json(Method::PUT, &format!("/node/{path}"), &document).await.status.is_success());
    }
    for query in ["sel.x=1", "sel.x=1..2", "isel.x=0&format=xarray"] {
        get(&server, &format!("data?{query}")).await.problem(ProblemType::SelectionTooLarge);
    }
    assert_eq!(get(&server, "data?isel.x=0").await.json(), json!(0.0));
    assert_eq!(get(&server, "data?isel.x=5&labels=x").await.json(), json!(0.0));
}

#[tokio::test]
async fn undecodable_attributes_are_told() {
    let server = TestServer::new();
    for (path, attributes, kind) in [
        ("scale", json!({"scale_factor": "2"}), ProblemType::InvalidMetadata),
        ("units", json!({"units": "days since yesterday"}), ProblemType::InvalidMetadata),
        (
            "calendar",
            json!({"units": "days since 2000-01-01", "calendar": "martian"}),
            ProblemType::UnsupportedCalendar,
        ),
    ] {
        create(&server, path, &document("int16", &[2], &[path], attributes), &json!([1, 2])).await;
        assert_eq!(get(&server, path).await.json(), json!([1, 2]), "{path}");
        get(&server, &format!("{path}?decode=cf")).await.problem(kind);
    }
}

#[tokio::test]
async fn labels_of_windows_are_means() {
    let server = server().await;
    for (query, labels) in [
        ("labels=lat&reduce=max&axis=time&decode=none", json!([60.5, 50.1, 40.5])),
        ("labels=lat&reduce=max&coarsen.lat=2&decode=none&isel.lat=0:1", json!([60.5])),
        ("labels=time&reduce=mean&coarsen.time=2&decode=cf", json!(["2020-01-30T12:00:00", "2020-02-01T12:00:00"])),
        ("labels=function&reduce=min,nanmax&axis=time&decode=none", json!(["min", "nanmax"])),
        ("labels=function&reduce=min,nanmax&sel.lat=50.1&decode=none", json!(["min", "nanmax"])),
    ] {
        let answer = get(&server, &format!("lab/t?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!(answer.json(), labels, "{query}");
    }
    get(&server, "lab/t?labels=lat&reduce=max&axis=lat&decode=cf").await.problem(ProblemType::UnknownDimension);
    get(&server, "lab/t?labels=lat&reduce=max&decode=cf").await.problem(ProblemType::UnknownDimension);
    get(&server, "lab/t?labels=function&reduce=max&decode=cf").await.problem(ProblemType::UnknownDimension);
    let query = "reduce=min,max&axis=lat&coarsen.time=2&decode=cf&format=xarray";
    let answer = get(&server, &format!("lab/t?{query}")).await.json();
    assert_eq!(answer["dims"], json!(["function", "time"]));
    assert_eq!(answer["coords"]["function"]["data"], json!(["min", "max"]));
    assert_eq!(answer["coords"]["time"]["data"], json!(["2020-01-30T12:00:00", "2020-02-01T12:00:00"]));
    let csv = get(&server, "lab/t?reduce=count&axis=lat&decode=cf&format=csv&header=labels").await;
    let times = ["2020-01-30", "2020-01-31", "2020-02-01", "2020-02-02"].map(|day| format!("{day}T00:00:00"));
    let [first, second, third, fourth] = times;
    assert_eq!(csv.text(), format!("time,t\r\n{first},3\r\n{second},3\r\n{third},2\r\n{fourth},3\r\n"));
}

/// Of a large coordinate only those labels are read that are answered, unless they are most.
#[tokio::test]
async fn labels_of_large_coordinates_are_those_of_all() {
    const COUNT: u64 = 1_200_000;
    let server = TestServer::new();
    let mut numbers = document("float64", &[COUNT], &["x"], json!({}));
    numbers["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    numbers["chunk_grid"]["configuration"]["chunk_shape"] = json!([10_000]);
    assert!(server.json(Method::PUT, "/node/lab/x", &numbers).await.status.is_success());
    let labels: Vec<u8> = (0..COUNT).flat_map(|at| (at as f64 / 2.0).to_le_bytes()).collect();
    let written = server.put("/array/lab/x", &[("content-type", "application/octet-stream")], labels.clone()).await;
    assert!(written.status.is_success(), "{}", written.text());
    let mut texts = document("string", &[60], &["y"], json!({}));
    texts["fill_value"] = json!("");
    texts["codecs"] = json!([{"name": "vlen-utf8"}]);
    texts["chunk_grid"]["configuration"]["chunk_shape"] = json!([1]);
    let text = |at: u64| format!("{at}{}", "x".repeat(200_000));
    create(&server, "lab/y", &texts, &(0..60).map(text).collect()).await;
    let mut elements = document("int8", &[COUNT, 60], &["x", "y"], json!({}));
    elements["chunk_grid"]["configuration"]["chunk_shape"] = json!([100_000, 60]);
    assert!(server.json(Method::PUT, "/node/lab/t", &elements).await.status.is_success());
    for (query, labels) in [
        ("isel.x=5&isel.y=0", json!(2.5)),
        ("isel.x=(7,1199999,3,7)&isel.y=0", json!([3.5, 599_999.5, 1.5, 3.5])),
        ("isel.x=10:1000:300&isel.y=0", json!([5.0, 155.0, 305.0, 455.0])),
        ("isel.x=::-500000&isel.y=0", json!([599_999.5, 349_999.5, 99_999.5])),
        ("isel.x=1:8&isel.y=0&reduce=max&coarsen.x=3&edge=trim", json!([1.0, 2.5])),
        ("isel.x=0:0&isel.y=0", json!([])),
    ] {
        let answer = get(&server, &format!("lab/t?{query}&format=xarray")).await;
        assert_eq!(answer.json()["coords"]["x"]["data"], labels, "{query}");
    }
    let all = get(&server, "lab/t?isel.y=0&isel.x=1:&format=xarray").await.json();
    let all = all["coords"]["x"]["data"].as_array().unwrap();
    assert!(
        all.len() as u64 == COUNT - 1 && all.iter().zip(1..).all(|(label, at)| *label == json!(f64::from(at) / 2.0))
    );
    for (query, wanted) in [("isel.y=59", json!(text(59))), ("isel.y=(3,0,3)", json!([text(3), text(0), text(3)]))] {
        let answer = get(&server, &format!("lab/t?isel.x=0&{query}&format=xarray")).await;
        assert!(answer.json()["coords"]["y"]["data"] == wanted, "{query}");
    }
    let csv = get(&server, "lab/t?isel.x=(9,8)&isel.y=0&format=csv&header=labels").await;
    assert_eq!(csv.text(), "x,t\r\n4.5,0\r\n4.0,0\r\n");
    // The labels are part of the answer.
    let path = "/array/lab/t?isel.x=5&isel.y=0&format=xarray";
    let before = server.get(path, &[]).await;
    let other = server.put("/array/lab/x?select=5", &[("content-type", "application/json")], "7".to_owned()).await;
    assert!(other.status.is_success(), "{}", other.text());
    assert_ne!(server.get(path, &[]).await.header("etag"), before.header("etag"));
}

/// Windows have the mean of the labels that they have, as with xarray, in each form of an answer.
#[tokio::test]
async fn missing_labels_are_left_out_of_means() {
    let server = TestServer::new();
    let labels = [
        ("x", "float64", json!({}), json!(["NaN", 1.0, "NaN", "NaN", 4.0]), json!([1.0, "NaN", 4.0])),
        (
            "y",
            "int32",
            json!({"units": "days since 2000-01-01", "missing_value": 7}),
            json!([7, 1, 7, 7, 4]),
            json!(["2000-01-02T00:00:00", "NaT", "2000-01-05T00:00:00"]),
        ),
        (
            "z",
            "int32",
            json!({"units": "days since 2000-02-29", "calendar": "360_day", "missing_value": 7}),
            json!([0, 1, 7, 7, 2]),
            json!(["2000-02-29T12:00:00", "NaT", "2000-03-01T00:00:00"]),
        ),
        ("w", "int32", json!({}), json!([3, 4, 5, 6, 7]), json!([3.5, 5.5, 7.0])),
    ];
    for (name, data_type, attributes, stored, means) in labels {
        create(&server, name, &document(data_type, &[5], &[name], attributes), &stored).await;
        let path = format!("of_{name}");
        create(&server, &path, &document("int8", &[5], &[name], json!({})), &json!([1, 2, 3, 4, 5])).await;
        let query = format!("{path}?coarsen.{name}=2&reduce=max");
        assert_eq!(get(&server, &format!("{query}&labels={name}")).await.json(), means, "{name}");
        let answer = get(&server, &format!("{query}&format=xarray")).await.json();
        assert_eq!(answer["coords"][name]["data"], means, "{name}");
        // Windows of one element have its label, but one that is cut to a single element has the mean's type.
        let one = get(&server, &format!("{path}?coarsen.{name}=1&reduce=max&format=xarray")).await.json();
        let labels = get(&server, &format!("{path}?labels={name}")).await;
        assert_eq!(one["coords"][name]["data"], labels.json(), "{name}");
        assert_eq!(
            get(&server, &format!("{path}?coarsen.{name}=1&reduce=max&labels={name}")).await.json(),
            labels.json()
        );
        let cut = format!("{path}?isel.{name}=4:&coarsen.{name}=2&reduce=max");
        let (text, labels) =
            (get(&server, &format!("{cut}&format=xarray")).await, get(&server, &format!("{cut}&labels={name}")).await);
        assert_eq!(text.json()["coords"][name]["data"], labels.json(), "{name}");
    }
}

/// Answers do not depend on coordinates beyond the caller's rights: neither on their existence nor on their labels.
#[tokio::test]
async fn unreadable_coordinates_change_no_answer() {
    let closed = ServerWithTokens::closed();
    let writer = TestServer::over(closed.server.store.clone(), Settings::default());
    let elements = json!([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]);
    let array = document("int16", &[4, 3], &["time", "lat"], json!({}));
    create(&writer, "lab/exp/sub/t", &array, &elements).await;
    let (_, token) = closed.token(&["read:lab/exp/sub/"]);
    let queries = [
        "sel.lat=50.1",
        "sel.time=2020-01-31..",
        "sel.lat=nonsense",
        "sel.nothing=1",
        "labels=lat",
        "labels=time&coarsen.time=2&reduce=mean",
        "format=xarray",
        "format=csv&header=labels",
        "coarsen.lat=2&reduce=mean&format=xarray",
        "sel.lat=50.1&stats",
        "sel.lat=50.1&chunks",
        "isel.lat=0",
        "reduce=mean",
    ];
    let answers = async || {
        let mut all = Vec::new();
        for query in queries {
            let answer = closed.get(&token, &format!("/array/lab/exp/sub/t?{query}")).await;
            let mut headers = answer.headers.clone();
            for name in ["date", "x-request-id", "server-timing"] {
                headers.remove(name);
            }
            let mut body = answer.body.to_vec();
            if let Ok(Value::Object(mut problem)) = serde_json::from_slice(&body) {
                problem.remove("request");
                headers.remove("content-length");
                body = Value::Object(problem).to_string().into_bytes();
            }
            all.push((query, answer.status, headers, String::from_utf8_lossy(&body).into_owned()));
        }
        all
    };
    let without = answers().await;
    assert_eq!(without.iter().filter(|(_, status, ..)| *status == StatusCode::OK).count(), 5);
    for group in ["lab/exp", "lab"] {
        for (name, extent) in [("time", 4_u64), ("lat", 3), ("nothing", 3)] {
            let labels = document("float32", &[extent], &[name], json!({}));
            create(&writer, &format!("{group}/{name}"), &labels, &json!((0..extent).collect::<Vec<_>>())).await;
        }
        for (after, before) in answers().await.iter().zip(&without) {
            assert_eq!(after, before, "{group}");
        }
    }
    // Those below are used.
    let labels = document("float32", &[3], &["lat"], json!({}));
    create(&writer, "lab/exp/sub/lat", &labels, &json!([60.5, 50.1, 40.5])).await;
    let below = closed.get(&token, "/array/lab/exp/sub/t?sel.lat=50.1").await;
    assert_eq!(below.json(), json!([1, 4, 7, 10]));
}

#[tokio::test]
async fn labels_beyond_the_limit_of_text_name_its_flag() {
    let limits = Limits { text_selection: 8, ..Limits::default() };
    let server = TestServer::over(server().await.store.clone(), Settings { limits, ..Settings::default() });
    for query in ["labels=lat", "labels=lat&format=npy", "labels=lat&isel.lat=::-1&format=csv"] {
        let problem = get(&server, &format!("lab/t?{query}")).await.problem(ProblemType::SelectionTooLarge);
        assert_eq!((problem.members.size, problem.members.limit), (Some(12), Some(8)), "{query}");
        assert!(problem.detail.contains("--max-text-selection"), "{}", problem.detail);
    }
    assert_eq!(get(&server, "lab/t?labels=lat&isel.lat=:2&format=npy").await.status, StatusCode::OK);
}

/// A date is an interval, so its dimension stays; formats that have no room for it drop it if one day is in it.
#[tokio::test]
async fn single_date_gives_a_picture_or_a_table() {
    let server = server().await;
    let elements =
        json!([[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [1, 2]], [[3, 4], [5, 6], [7, 8]], [[9, 1], [2, 3], [4, 5]]]);
    create(&server, "lab/c", &document("int16", &[4, 3, 2], &["time", "lat", "x"], json!({})), &elements).await;
    let table = get(&server, "lab/c?sel.time=2020-01-31&format=csv&header=false").await;
    assert_eq!((table.status, table.text()), (StatusCode::OK, "6,7\r\n8,9\r\n1,2\r\n"));
    assert_eq!((table.header("zarr-shape"), table.header("zarr-selected")), ("3,2", r#"{"time":"1:2"}"#));
    let picture = get(&server, "lab/c?sel.time=2020-01-31&format=png&min=0&max=9").await;
    assert_eq!((picture.status, picture.header("zarr-shape")), (StatusCode::OK, "3,2"), "{:?}", picture.body);
    // JSON has room, a table of two dimensions is as it was, and other selections are the caller's own.
    assert_eq!(get(&server, "lab/c?sel.time=2020-01-31").await.header("zarr-shape"), "1,3,2");
    assert_eq!(get(&server, "lab/t?sel.time=2020-01-31&format=csv").await.header("zarr-shape"), "1,3");
    for query in ["sel.time=2020-02", "isel.time=1:2", "sel.time=2020-01-31..2020-01-31"] {
        get(&server, &format!("lab/c?{query}&format=csv")).await.problem(ProblemType::UnsuitableFormat);
    }
    let misspelt = get(&server, "lab/c?sel.tme=2020-01-31").await.problem(ProblemType::UnknownDimension);
    assert!(misspelt.detail.ends_with("did you mean \"time\"?"), "{}", misspelt.detail);
    let day = get(&server, "lab/t?sel.time=2020-01-31Z&isel.lat=0").await;
    assert_eq!(day.json(), json!([3]));
}
