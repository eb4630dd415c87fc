//! Conversions of trees of many nodes, in place and to another path.

use http::Method;

use crate::{Bound, Case};

/// The nodes of a tree: as many groups as 4 MiB of JSON can declare.
const NODES: usize = 20_000;

/// Bounds for conversions, about 1.05 times the measured bytes. They include what the store in memory retains, some 200
/// bytes for each document, and its own work on a commit.
pub(crate) const BOUNDS: &[Bound] = &[
    ("convert in place", "groups of v3", 200, 65_700_000, 5_300_000),
    ("convert in place", "groups of v2", 200, 80_600_000, 5_960_000),
    ("convert in place", "groups of v2 with attributes", 200, 83_500_000, 6_330_000),
    ("convert in place", "groups below consolidated metadata", 200, 80_600_000, 5_960_000),
    ("copy", "groups of v3", 200, 48_200_000, 5_290_000),
    ("copy", "groups of v3 to the draft", 200, 48_200_000, 7_100_000),
    ("copy", "groups of v2 with attributes", 200, 63_300_000, 6_350_000),
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
