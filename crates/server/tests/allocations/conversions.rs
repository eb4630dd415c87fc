//! Conversions of trees of many nodes, in place and to another path.

use http::Method;

use crate::{Bound, Case};

/// The nodes of a tree, a fifth of those that one body can declare; memory and allocations are roughly proportional.
const NODES: usize = 20_000;

/// Bounds for conversions, about 1.05 times the measured bytes. They include what the store in memory retains, some 200
/// bytes for each document, and its own work on a commit.
pub(crate) const BOUNDS: &[Bound] = &[
    ("convert in place", "groups of v3", 200, 24_900_000, 1_350_280),
    ("convert in place", "groups of v2", 200, 18_100_000, 1_320_000),
    ("convert in place", "groups of v2 with attributes", 200, 18_700_000, 1_400_000),
    ("convert in place", "groups below consolidated metadata", 200, 18_100_000, 1_320_000),
    ("copy", "groups of v3", 200, 20_400_000, 1_266_650),
    ("copy", "groups of v3 to the draft", 200, 11_800_000, 1_480_000),
    ("copy", "groups of v2 with attributes", 200, 20_700_000, 1_499_740),
];

/// Each kind of conversion.
pub(crate) fn cases() -> Vec<Case> {
    let v3 = || keys(&[("zarr.json", r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#)]);
    let v2 = || keys(&[(".zgroup", r#"{"zarr_format":2}"#)]);
    let with_attributes = || keys(&[(".zgroup", r#"{"zarr_format":2}"#), (".zattrs", r#"{"a":1}"#)]);
    let in_place = |of, keys, to| case("convert in place", of, keys, format!("/node/g?convert={to}"));
    let copy = |of, keys, to| case("copy", of, keys, format!("/node/g?convert={to}&target=/copy"));
    let consolidated = r#"{"zarr_consolidated_format":1,"metadata":{}}"#;
    let mut below_consolidated = v2();
    below_consolidated.push(("g/7/.zmetadata".to_owned(), consolidated.as_bytes().to_vec()));
    vec![
        in_place("groups of v3", v3(), "v2"),
        in_place("groups of v2", v2(), "v3"),
        in_place("groups of v2 with attributes", with_attributes(), "v3"),
        in_place("groups below consolidated metadata", below_consolidated, "v3"),
        copy("groups of v3", v3(), "v3"),
        copy("groups of v3 to the draft", v3(), "draft"),
        copy("groups of v2 with attributes", with_attributes(), "v3"),
    ]
}

/// The keys of a group of groups, each with these documents.
fn keys(documents: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let document = |at: &str, (name, text): &(&str, &str)| (format!("{at}/{name}"), text.as_bytes().to_vec());
    let groups = (0..NODES).map(|number| format!("g/{number}")).chain(["g".to_owned()]);
    groups.flat_map(|at| documents.iter().map(move |it| document(&at, it)).collect::<Vec<_>>()).collect()
}

fn case(operation: &'static str, of: &'static str, keys: Vec<(String, Vec<u8>)>, target: String) -> Case {
    Case { operation, of, keys, method: Method::POST, target, media_type: "application/json", body: Vec::new() }
}
