//! Patches and comparisons of 1 MiB of attributes with as many members as fit, which take the most memory of all.

use http::Method;

use crate::{Bound, Case};

const SIZE: usize = 1 << 20;

/// Bounds for patches and comparisons of attributes of 1 MiB, about 1.1 times the measured bytes.
#[rustfmt::skip]
pub(crate) const BOUNDS: &[Bound] = &[
    ("PATCH node", "members", 200, 7_780_000, 123_500),
    ("PATCH node", "empty objects", 200, 7_430_000, 224_100),
    ("PATCH node", "escaped names", 200, 5_370_000, 384_900),
    ("PATCH node", "members in a list", 200, 4_630_000, 500),
    ("PATCH node", "members over as many", 200, 7_570_000, 335_900),
    ("PATCH node", "members in a list over others", 200, 7_830_000, 500),
    ("PATCH node", "members with a consolidated copy", 200, 11_170_000, 358_400),
    ("PATCH node", "members with a consolidated copy of v2", 200, 10_260_000, 481_400),
    ("validate", "members over as many", 200, 6_680_000, 123_300),
];

/// Each kind of patch.
pub(crate) fn cases() -> Vec<Case> {
    let wide = members(|number| format!(r#""{number:x}":0"#));
    let attributes = format!(r#"{{"attributes":{{"a":{wide}}}}}"#);
    let listed = format!(r#"{{"attributes":{{"a":[{wide}]}}}}"#);
    let empty = members(|number| format!(r#""{number:x}":{{}}"#));
    let nested = format!(r#"{{"attributes":{{"a":{empty}}}}}"#);
    let escaped = members(|number| format!(r#""\u0041{number:x}":0"#));
    let escaped = format!(r#"{{"attributes":{{"a":{escaped}}}}}"#);
    // Equal values in another order and another layout.
    let stored = |attributes: String| group(&attributes.replacen(':', " : ", 1));
    let consolidated = |attributes: &str| {
        let copy = group(attributes);
        format!(
            r#"{{"zarr_format":3,"node_type":"group","attributes":{{}},"consolidated_metadata":{{"kind":"inline","must_understand":false,"metadata":{{"g":{copy}}}}}}}"#
        )
    };
    let small = || vec![("g/zarr.json", group("{}"))];
    let same = || vec![("g/zarr.json", stored(format!(r#"{{"a":[{{"x":1,{}]}}"#, &wide.get(1..).unwrap())))];
    let copied = |attributes: &str| vec![("zarr.json", consolidated(attributes)), ("g/zarr.json", group("{}"))];
    let v2 = |attributes: &str| {
        let copies = format!(
            r#"{{"zarr_consolidated_format":1,"metadata":{{"g/.zgroup":{{"zarr_format":2}},"g/.zattrs":{attributes}}}}}"#
        );
        vec![
            (".zgroup", r#"{"zarr_format":2}"#.to_owned()),
            (".zmetadata", copies),
            ("g/.zgroup", r#"{"zarr_format":2}"#.to_owned()),
        ]
    };
    vec![
        case("members", small(), &attributes),
        case("empty objects", small(), &nested),
        case("escaped names", small(), &escaped),
        case("members in a list", small(), &listed),
        case("members over as many", vec![("g/zarr.json", group(&format!(r#"{{"a":{wide}}}"#)))], &nested),
        case("members in a list over others", same(), &listed),
        case("members with a consolidated copy", copied(&format!(r#"{{"a":{empty}}}"#)), &attributes),
        case("members with a consolidated copy of v2", v2(&format!(r#"{{"a":{empty}}}"#)), &attributes),
        Case {
            operation: "validate",
            target: "/node/g?validate".to_owned(),
            method: Method::POST,
            ..case("members over as many", same(), &group(&format!(r#"{{"a":[{wide}]}}"#)))
        },
    ]
}

fn group(attributes: &str) -> String {
    format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{attributes}}}"#)
}

fn case(of: &'static str, keys: Vec<(&str, String)>, body: &str) -> Case {
    Case {
        operation: "PATCH node",
        of,
        keys: keys.into_iter().map(|(key, value)| (key.to_owned(), value.into_bytes())).collect(),
        method: Method::PATCH,
        target: "/node/g".to_owned(),
        media_type: "application/json",
        body: body.as_bytes().to_vec(),
    }
}

/// An object of as many members as fit.
fn members(member: impl Fn(usize) -> String) -> String {
    let mut text = String::from("{");
    for number in 0.. {
        let next = member(number);
        if text.len() + next.len() + 1 > SIZE - 100 {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&next);
    }
    text.push('}');
    text
}
