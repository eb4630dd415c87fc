//! Declarations of trees with as many nodes as 1 MiB of JSON can have, which take the most memory of all bodies for their
//! size. A body may have 4 MiB; memory and allocations are roughly proportional.

use http::Method;

use crate::{Bound, Case};

const SIZE: usize = 1 << 20;
/// The groups of a branch, nested.
const LEVELS: usize = 40;

/// Bounds for trees of as many nodes as fit, about 1.05 times the measured bytes. They include what the store in memory
/// retains, some 200 bytes for each document, which the embedded store has on disk, and for each node the condition that
/// the other one of v2 and v3 has no document at its path.
pub(crate) const BOUNDS: &[Bound] = &[
    ("PUT tree", "wide groups", 201, 25_500_000, 947_790),
    ("PUT tree", "wide groups over equal ones", 200, 14_700_000, 1_280_000),
    ("PUT tree", "wide groups over different ones", 200, 28_500_000, 2_196_940),
    ("PUT tree", "wide groups over a thousand", 200, 24_600_000, 995_460),
    ("PUT tree", "wide groups over a thousand in another order", 200, 26_800_000, 1_003_880),
    ("PUT tree", "nested groups", 201, 23_700_000, 980_900),
    ("PUT tree", "attributes", 201, 19_100_000, 709_830),
    ("PUT tree", "attributes of v2", 201, 27_000_000, 2_189_090),
];

/// Each kind of tree.
pub(crate) fn cases() -> Vec<Case> {
    let open = r#"{"zarr_format":3,"node_type":"group","members":{"a":"#.repeat(LEVELS);
    let close = "}}".repeat(LEVELS);
    let v3 = |members: String| format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{members}}}}}"#);
    let v2 = |members: String| format!(r#"{{"zarr_format":2,"members":{{{members}}}}}"#);
    let group = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
    let groups = || v3(members(|_| r#"{"zarr_format":3,"node_type":"group"}"#.to_owned()));
    let over = |of, stored: &str, nodes: Option<usize>, target: &str| {
        let body = groups();
        let nodes = nodes.unwrap_or_else(|| body.matches("node_type").count() - 1);
        let keys = (0..nodes).map(|number| format!("new/{number}/zarr.json")).chain(["new/zarr.json".to_owned()]);
        let keys = keys.map(|key| (key, stored.as_bytes().to_vec())).collect();
        Case { keys, target: target.to_owned(), ..case(of, body) }
    };
    let reordered = r#"{"attributes":{},"node_type":"group","zarr_format":3}"#;
    let different = r#"{"zarr_format":3,"node_type":"group","attributes":{"a":1}}"#;
    vec![
        case("wide groups", groups()),
        over("wide groups over equal ones", group, None, "/node/new"),
        over("wide groups over different ones", different, None, "/node/new?overwrite"),
        over("wide groups over a thousand", group, Some(1000), "/node/new?overwrite"),
        over("wide groups over a thousand in another order", reordered, Some(1000), "/node/new?overwrite"),
        case("nested groups", v3(members(|_| format!(r#"{open}{{"zarr_format":3,"node_type":"group"}}{close}"#)))),
        case(
            "attributes",
            v3(members(|number| format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"":{number}}}}}"#))),
        ),
        case("attributes of v2", v2(members(|number| format!(r#"{{"zarr_format":2,"attributes":{{"":{number}}}}}"#)))),
    ]
}

fn case(of: &'static str, body: String) -> Case {
    let (target, body) = ("/node/new".to_owned(), body.into_bytes());
    Case {
        operation: "PUT tree",
        of,
        keys: Vec::new(),
        method: Method::PUT,
        target,
        media_type: "application/json",
        body,
    }
}

/// As many members as fit.
fn members(node: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let next = format!(r#""{number}":{}"#, node(number));
        if text.len() + next.len() + 1 > SIZE {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&next);
    }
    text
}
