//! Every operation on arrays of odd shapes.

mod bounds;

use http::Method;
use serde_json::{Value, json};

use crate::{
    Case,
    common::nodes::{v3_array, with},
};

pub(crate) use bounds::BOUNDS;

const LARGE: u64 = 1 << 62;

/// Each operation on each array.
pub(crate) fn cases() -> Vec<Case> {
    shapes()
        .into_iter()
        .flat_map(|shape| operations().into_iter().map(move |operation| case(&shape, operation)))
        .collect()
}

/// An array and its requests.
struct Shape {
    name: &'static str,
    document: Value,
    select: String,
    chunk: Option<(String, Vec<u8>)>,
    /// A JSON body with all selected elements.
    elements: Value,
}

struct Operation(&'static str, Method, &'static str, RequestBody);

#[derive(Clone, Copy)]
enum RequestBody {
    Nothing,
    Select,
    Points,
    Stack,
    Elements,
    Scalar,
    RawConnection,
    Document,
    Patch,
}

fn shapes() -> Vec<Shape> {
    let shape = |name, document: Value, select: &str, chunk, elements| Shape {
        name,
        document,
        select: select.to_owned(),
        chunk,
        elements,
    };
    let ones = |rank: usize| vec![1_u64; rank];
    let deep = [vec![LARGE], vec![1; 62], vec![4]].concat();
    vec![
        shape("nothing of some", v3_array("uint8", &[4, 4], &[2, 2]), "0:0,:", None, json!([])),
        shape("no rows", v3_array("uint8", &[0, 4], &[2, 2]), "", None, json!([])),
        shape("no columns", v3_array("uint8", &[1 << 40, 0], &[2, 2]), "0:0", None, json!([])),
        shape("2^62 rows", v3_array("uint8", &[LARGE, 4], &[1, 4]), "-1", None, json!([0, 0, 0, 0])),
        shape("2^62 by 2^62", v3_array("uint8", &[LARGE, LARGE], &ones(2)), "-1,-1", None, json!(0)),
        shape("a chunk of 2^40", v3_array("uint8", &[LARGE], &[1 << 40]), "5", None, json!(0)),
        shape(
            "1,000 chunks of one",
            v3_array("uint8", &[1000], &[1]),
            "",
            Some(("c/5".to_owned(), vec![7])),
            json!(vec![0; 1000]),
        ),
        shape("64 dimensions", v3_array("uint8", &deep, &ones(64)), &["0"; 64].join(","), None, json!(0)),
        shape("64 dimensions, nothing", v3_array("uint8", &deep, &ones(64)), "0:0", None, json!([])),
        shape("no dimension", v3_array("uint8", &[], &[]), "", Some(("c".to_owned(), vec![7])), json!(7)),
    ]
}

fn operations() -> Vec<Operation> {
    use RequestBody::{Document, Elements, Nothing, Patch, Points, RawConnection, Scalar, Select, Stack};
    vec![
        Operation("GET raw", Method::GET, "/array/a?SELECT&format=raw", Nothing),
        Operation("GET npy", Method::GET, "/array/a?SELECT&format=npy", Nothing),
        Operation("GET json", Method::GET, "/array/a?SELECT&format=json", Nothing),
        Operation("GET csv", Method::GET, "/array/a?SELECT&format=csv", Nothing),
        Operation("GET png", Method::GET, "/array/a?SELECT&format=png", Nothing),
        Operation("HEAD elements", Method::HEAD, "/array/a?SELECT&format=raw", Nothing),
        Operation("POST select", Method::POST, "/array/a?read&format=raw", Select),
        Operation("POST points", Method::POST, "/array/a?read&format=raw", Points),
        Operation("POST stack", Method::POST, "/array/a?read&format=raw", Stack),
        Operation("PUT elements", Method::PUT, "/array/a?SELECT", Elements),
        Operation("PUT scalar", Method::PUT, "/array/a?SELECT", Scalar),
        Operation("PUT raw", Method::PUT, "/array/a?SELECT", RawConnection),
        Operation("append list", Method::POST, "/array/a?append=0", Elements),
        Operation("append nothing", Method::POST, "/array/a?append=0", RawConnection),
        Operation("GET node", Method::GET, "/node/a?depth=all", Nothing),
        Operation("GET node as v2", Method::GET, "/node/a?as=v2&include=source", Nothing),
        Operation("HEAD node", Method::HEAD, "/node/a", Nothing),
        Operation("PUT node", Method::PUT, "/node/b", Document),
        Operation("replace node", Method::PUT, "/node/a?overwrite", Document),
        Operation("PATCH node", Method::PATCH, "/node/a", Patch),
        Operation("validate", Method::POST, "/node/a?validate", Document),
        Operation("convert", Method::POST, "/node/a?convert=v2", Nothing),
        Operation("copy", Method::POST, "/node/a?convert=draft&target=/b", Nothing),
        Operation("DELETE node", Method::DELETE, "/node/a", Nothing),
        Operation("GET key", Method::GET, "/store/a/zarr.json", Nothing),
        Operation("HEAD key", Method::HEAD, "/store/a/zarr.json", Nothing),
        Operation("PUT key", Method::PUT, "/store/a/zarr.json", Document),
        Operation("DELETE key", Method::DELETE, "/store/a/zarr.json", Nothing),
        Operation("list", Method::GET, "/store/a/", Nothing),
        Operation("list keys", Method::GET, "/store/a/?list=keys", Nothing),
        Operation("DELETE prefix", Method::DELETE, "/store/a/", Nothing),
    ]
}

fn case(shape: &Shape, Operation(operation, method, target, sent): Operation) -> Case {
    let json = "application/json";
    let rank = shape.document["shape"].as_array().unwrap().len();
    let body = match sent {
        RequestBody::Nothing | RequestBody::RawConnection => String::new(),
        RequestBody::Select => json!({"select": shape.select}).to_string(),
        RequestBody::Points => json!({"points": vec![vec![0; rank]; 100]}).to_string(),
        RequestBody::Stack => json!({"stack": vec![shape.select.clone(); 100]}).to_string(),
        RequestBody::Elements => shape.elements.to_string(),
        RequestBody::Scalar => "7".to_owned(),
        RequestBody::Document => with(shape.document.clone(), "/attributes", json!({"a": 1})).to_string(),
        RequestBody::Patch => json!({"attributes": {"a": 1}, "shape": vec![1; rank]}).to_string(),
    };
    let mut keys = vec![("a/zarr.json".to_owned(), shape.document.to_string().into_bytes())];
    keys.extend(shape.chunk.iter().map(|(key, value)| (format!("a/{key}"), value.clone())));
    Case {
        operation,
        of: shape.name,
        keys,
        method,
        target: target.replace("SELECT", &format!("select={}", shape.select)),
        media_type: if matches!(sent, RequestBody::RawConnection) { "application/octet-stream" } else { json },
        body: body.into_bytes(),
    }
}
