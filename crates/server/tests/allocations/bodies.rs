//! Odd JSON bodies of about 1 MiB, for every kind of body.

use http::Method;

use crate::{Bound, Case, common::nodes::v3_array};

const SIZE: usize = 1 << 20;

/// Bounds for bodies of 1 MiB.
#[rustfmt::skip]
pub(crate) const BOUNDS: &[Bound] = &[
    ("PUT attributes", "zeros", 201, 11_026_000, 570),
    ("PUT members", "zeros", 400, 1_588_000, 200),
    ("PUT no node", "zeros", 400, 1_587_000, 100),
    ("PATCH attributes", "zeros", 200, 6_307_000, 610),
    ("PATCH shape", "zeros", 400, 1_606_000, 110),
    ("validate", "zeros", 200, 6_302_000, 410),
    ("POST select", "zeros", 400, 1_596_000, 120),
    ("POST points", "zeros", 400, 1_583_000, 110),
    ("POST stack", "zeros", 400, 1_583_000, 110),
    ("PUT elements", "zeros", 400, 1_590_000, 440),
    ("append", "zeros", 400, 1_591_000, 420),
    ("PUT attributes", "lists", 201, 11_026_000, 570),
    ("PUT members", "lists", 400, 1_588_000, 200),
    ("PUT no node", "lists", 400, 1_587_000, 100),
    ("PATCH attributes", "lists", 200, 6_306_000, 610),
    ("PATCH shape", "lists", 400, 1_605_000, 110),
    ("validate", "lists", 200, 6_303_000, 410),
    ("POST select", "lists", 400, 1_597_000, 120),
    ("POST points", "lists", 400, 29_895_000, 450),
    ("POST stack", "lists", 400, 5_122_000, 130),
    ("PUT elements", "lists", 400, 1_590_000, 440),
    ("append", "lists", 400, 1_591_000, 420),
    ("PUT attributes", "pairs", 201, 11_026_000, 570),
    ("PUT members", "pairs", 400, 1_588_000, 200),
    ("PUT no node", "pairs", 400, 1_587_000, 100),
    ("PATCH attributes", "pairs", 200, 6_306_000, 610),
    ("PATCH shape", "pairs", 400, 1_606_000, 110),
    ("validate", "pairs", 200, 6_303_000, 410),
    ("POST select", "pairs", 400, 1_600_000, 220),
    ("POST points", "pairs", 200, 74_463_000, 3_409_000),
    ("POST stack", "pairs", 400, 22_817_000, 98_440),
    ("PUT elements", "pairs", 400, 1_590_000, 440),
    ("append", "pairs", 400, 1_591_000, 420),
    ("PUT attributes", "objects", 201, 11_027_000, 570),
    ("PUT members", "objects", 400, 1_588_000, 200),
    ("PUT no node", "objects", 400, 1_587_000, 100),
    ("PATCH attributes", "objects", 200, 6_307_000, 610),
    ("PATCH shape", "objects", 400, 1_605_000, 110),
    ("validate", "objects", 200, 6_302_000, 410),
    ("POST select", "objects", 400, 1_597_000, 120),
    ("POST points", "objects", 400, 1_583_000, 110),
    ("POST stack", "objects", 400, 1_583_000, 110),
    ("PUT elements", "objects", 400, 1_590_000, 440),
    ("append", "objects", 400, 1_591_000, 420),
    ("PUT attributes", "members", 201, 11_026_000, 570),
    ("PUT members", "members", 400, 1_588_000, 200),
    ("PUT no node", "members", 400, 1_587_000, 100),
    ("PATCH attributes", "members", 200, 6_306_000, 610),
    ("PATCH shape", "members", 400, 1_605_000, 110),
    ("validate", "members", 200, 6_302_000, 410),
    ("POST select", "members", 400, 1_583_000, 110),
    ("POST points", "members", 400, 1_583_000, 110),
    ("POST stack", "members", 400, 1_583_000, 110),
    ("PUT elements", "members", 400, 1_590_000, 440),
    ("append", "members", 400, 1_591_000, 420),
    ("PUT attributes", "strings", 201, 11_027_000, 570),
    ("PUT members", "strings", 400, 1_588_000, 200),
    ("PUT no node", "strings", 400, 1_587_000, 100),
    ("PATCH attributes", "strings", 200, 6_307_000, 610),
    ("PATCH shape", "strings", 400, 1_605_000, 110),
    ("validate", "strings", 200, 6_303_000, 410),
    ("POST select", "strings", 400, 1_583_000, 110),
    ("POST points", "strings", 400, 1_583_000, 110),
    ("POST stack", "strings", 400, 5_122_000, 130),
    ("PUT elements", "strings", 400, 1_590_000, 440),
    ("append", "strings", 400, 1_591_000, 420),
    ("PUT attributes", "wide", 201, 14_172_000, 580),
    ("PUT members", "wide", 400, 25_180_000, 230),
    ("PUT no node", "wide", 400, 1_587_000, 110),
    ("PATCH attributes", "wide", 200, 10_376_000, 157_800),
    ("PATCH shape", "wide", 400, 1_586_000, 100),
    ("validate", "wide", 200, 6_302_000, 157_690),
    ("POST select", "wide", 400, 1_583_000, 100),
    ("POST points", "wide", 400, 1_583_000, 100),
    ("POST stack", "wide", 400, 1_583_000, 100),
    ("PUT elements", "wide", 400, 30_626_000, 139_810),
    ("append", "wide", 400, 30_627_000, 139_790),
    ("PUT attributes", "groups", 400, 1_587_000, 100),
    ("PUT members", "groups", 400, 1_587_000, 100),
    ("PUT no node", "groups", 400, 1_587_000, 100),
    ("PATCH attributes", "groups", 400, 1_585_000, 90),
    ("PATCH shape", "groups", 400, 1_585_000, 90),
    ("validate", "groups", 400, 1_584_000, 100),
    ("POST select", "groups", 400, 1_583_000, 90),
    ("POST points", "groups", 400, 1_583_000, 90),
    ("POST stack", "groups", 400, 1_583_000, 90),
    ("PUT elements", "groups", 400, 20_292_000, 211_060),
    ("append", "groups", 400, 20_293_000, 211_040),
    ("PUT attributes", "deep lists", 201, 11_025_000, 580),
    ("PUT members", "deep lists", 400, 1_588_000, 200),
    ("PUT no node", "deep lists", 400, 1_587_000, 100),
    ("PATCH attributes", "deep lists", 400, 1_585_000, 100),
    ("PATCH shape", "deep lists", 400, 1_585_000, 100),
    ("validate", "deep lists", 200, 6_305_000, 410),
    ("POST select", "deep lists", 400, 1_583_000, 150),
    ("POST points", "deep lists", 400, 1_583_000, 150),
    ("POST stack", "deep lists", 400, 1_583_000, 160),
    ("PUT elements", "deep lists", 400, 1_632_000, 590),
    ("append", "deep lists", 400, 1_633_000, 580),
    ("PUT attributes", "deep objects", 201, 11_023_000, 580),
    ("PUT members", "deep objects", 400, 1_588_000, 200),
    ("PUT no node", "deep objects", 400, 1_587_000, 100),
    ("PATCH attributes", "deep objects", 400, 1_585_000, 100),
    ("PATCH shape", "deep objects", 400, 1_585_000, 100),
    ("validate", "deep objects", 200, 6_305_000, 410),
    ("POST select", "deep objects", 400, 1_583_000, 140),
    ("POST points", "deep objects", 400, 1_583_000, 130),
    ("POST stack", "deep objects", 400, 1_583_000, 130),
    ("PUT elements", "deep objects", 400, 1_590_000, 440),
    ("append", "deep objects", 400, 1_590_000, 490),
    ("PUT attributes", "digits", 201, 7_956_000, 580),
    ("PUT members", "digits", 400, 1_587_000, 200),
    ("PUT no node", "digits", 400, 1_586_000, 100),
    ("PATCH attributes", "digits", 200, 6_303_000, 610),
    ("PATCH shape", "digits", 400, 1_605_000, 790),
    ("validate", "digits", 200, 3_160_000, 16_050),
    ("POST select", "digits", 400, 1_583_000, 110),
    ("POST points", "digits", 400, 1_582_000, 110),
    ("POST stack", "digits", 400, 1_582_000, 110),
    ("PUT elements", "digits", 400, 1_592_000, 450),
    ("append", "digits", 400, 1_593_000, 430),
    ("PUT attributes", "one string", 201, 7_885_000, 580),
    ("PUT members", "one string", 400, 1_588_000, 200),
    ("PUT no node", "one string", 400, 1_587_000, 100),
    ("PATCH attributes", "one string", 200, 6_306_000, 610),
    ("PATCH shape", "one string", 400, 3_158_000, 100),
    ("validate", "one string", 200, 7_875_000, 390),
    ("POST select", "one string", 400, 3_156_000, 100),
    ("POST points", "one string", 400, 1_583_000, 100),
    ("POST stack", "one string", 400, 1_583_000, 100),
    ("PUT elements", "one string", 400, 3_163_000, 440),
    ("append", "one string", 400, 3_163_000, 430),
    ("PUT attributes", "escapes", 201, 7_885_000, 580),
    ("PUT members", "escapes", 400, 1_589_000, 200),
    ("PUT no node", "escapes", 400, 1_587_000, 100),
    ("PATCH attributes", "escapes", 200, 6_306_000, 610),
    ("PATCH shape", "escapes", 400, 2_241_000, 120),
    ("validate", "escapes", 200, 3_161_000, 420),
    ("POST select", "escapes", 400, 2_238_000, 130),
    ("POST points", "escapes", 400, 1_583_000, 100),
    ("POST stack", "escapes", 400, 1_583_000, 100),
    ("PUT elements", "escapes", 400, 2_246_000, 470),
    ("append", "escapes", 400, 2_246_000, 450),
    ("PUT attributes", "blanks", 201, 3_166_000, 570),
    ("PUT members", "blanks", 400, 1_588_000, 200),
    ("PUT no node", "blanks", 400, 1_587_000, 100),
    ("PATCH attributes", "blanks", 200, 3_161_000, 600),
    ("PATCH shape", "blanks", 400, 1_585_000, 420),
    ("validate", "blanks", 200, 3_161_000, 390),
    ("POST select", "blanks", 200, 1_583_000, 570),
    ("POST points", "blanks", 200, 1_583_000, 450),
    ("POST stack", "blanks", 400, 1_583_000, 100),
    ("PUT elements", "blanks", 400, 1_590_000, 430),
    ("append", "blanks", 200, 1_591_000, 430),
];

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
