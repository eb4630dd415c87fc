//! Odd JSON bodies of about 1 MiB, for every kind of body.

use http::Method;

use crate::{Case, common::nodes::v3_array};

const SIZE: usize = 1 << 20;

/// Each kind of body in each form.
pub(crate) fn cases() -> Vec<Case> {
    forms().into_iter().flat_map(|(name, text)| kinds(&text).map(|kind| case(name, kind))).collect()
}

struct Kind {
    operation: &'static str,
    method: Method,
    target: &'static str,
    body: String,
}

fn kinds(text: &str) -> [Kind; 11] {
    let kind = |operation, method, target, body| Kind { operation, method, target, body };
    let attributes = format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"a":{text}}}}}"#);
    let members = format!(r#"{{"zarr_format":3,"node_type":"group","members":{{"a":{text}}}}}"#);
    [
        kind("PUT attributes", Method::PUT, "/node/new", attributes.clone()),
        kind("PUT members", Method::PUT, "/node/new", members),
        kind("PUT no node", Method::PUT, "/node/new", text.to_owned()),
        kind("PATCH attributes", Method::PATCH, "/node/g", format!(r#"{{"attributes":{{"a":{text}}}}}"#)),
        kind("PATCH shape", Method::PATCH, "/node/a", format!(r#"{{"shape":{text}}}"#)),
        kind("validate", Method::POST, "/node/g?validate", attributes),
        kind("POST select", Method::POST, "/array/a?read", format!(r#"{{"select":{text}}}"#)),
        kind("POST points", Method::POST, "/array/a?read", format!(r#"{{"points":{text}}}"#)),
        kind("POST stack", Method::POST, "/array/a?read", format!(r#"{{"stack":{text}}}"#)),
        kind("PUT elements", Method::PUT, "/array/a", text.to_owned()),
        kind("append", Method::POST, "/array/a?append=0", text.to_owned()),
    ]
}

fn case(of: &'static str, Kind { operation, method, target, body }: Kind) -> Case {
    let keys = vec![
        ("g/zarr.json".to_owned(), br#"{"zarr_format":3,"node_type":"group","attributes":{}}"#.to_vec()),
        ("a/zarr.json".to_owned(), v3_array("uint8", &[64, 64], &[64, 64]).to_string().into_bytes()),
    ];
    let body = body.into_bytes();
    Case { operation, of, keys, method, target: target.to_owned(), media_type: "application/json", body }
}

fn forms() -> Vec<(&'static str, String)> {
    let list = |entry: &str| format!("[{}]", vec![entry; SIZE / (entry.len() + 1)].join(","));
    let numbered = |entry: fn(usize) -> String| {
        let entries: Vec<String> = (0..SIZE / 10).map(entry).collect();
        format!("{{{}}}", entries.join(","))
    };
    let levels = |open: &str, close: &str| [open.repeat(100), "0".to_owned(), close.repeat(100)].concat();
    vec![
        ("zeros", list("0")),
        ("lists", list("[]")),
        ("pairs", list("[0,0]")),
        ("objects", list("{}")),
        ("members", list(r#"{"":0}"#)),
        ("strings", list(r#""""#)),
        ("wide", numbered(|number| format!(r#""{number:05x}":0"#))),
        (
            "groups",
            numbered(|number| format!(r#""{number:x}":{{"zarr_format":3,"node_type":"group"}}"#))
                .split_at(SIZE)
                .0
                .rsplit_once(",\"")
                .unwrap()
                .0
                .to_owned()
                + "}",
        ),
        ("deep lists", list(&levels("[", "]"))),
        ("deep objects", list(&levels(r#"{"":"#, "}"))),
        ("digits", list(&format!("0.{}", "1234567890".repeat(70)))),
        ("one string", format!(r#""{}""#, "x".repeat(SIZE))),
        ("escapes", format!(r#""{}""#, r"\u0041".repeat(SIZE / 6))),
        ("blanks", format!("[{}]", " ".repeat(SIZE))),
    ]
}
