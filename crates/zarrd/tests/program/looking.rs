//! Looking at hierarchies with nodes that cannot be read.

use serde_json::{Value, json};

use crate::runner::Place;

const GROUP: &str = r#"{"zarr_format": 2}"#;
const OTHER: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;

/// A v2 group with an array, broken nodes of three kinds, a group of v3 with a broken node, and consolidated metadata of which most is gone.
fn broken(place: &Place) {
    let array = json!({"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|u1", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null});
    place.write("lab/.zgroup", GROUP);
    place.write("lab/good/.zarray", array.to_string());
    place.write("lab/empty/.zarray", "");
    place.write("lab/list/.zgroup", "[1]");
    place.write("lab/notes/.zgroup", GROUP);
    place.write("lab/notes/.zattrs", "{");
    place.write("lab/new/zarr.json", OTHER);
    place.write("lab/new/torn/zarr.json", "{\"zarr_format\": 3");
    let mut metadata = json!({"good/.zarray": array, "empty/.zarray": array, ".zgroup": {"zarr_format": 2}});
    for gone in ["gone", "a/b"] {
        metadata[format!("{gone}/.zarray")] = array.clone();
        metadata[format!("{gone}/.zattrs")] = json!({});
    }
    let copies = json!({"zarr_consolidated_format": 1, "metadata": metadata});
    place.write("lab/.zmetadata", copies.to_string());
    place.done(&["import", "lab", "lab", "--store", "sled:data"]);
}

fn look(place: &Place, at: &[&str]) {
    let done = |args: &[&str]| place.done(&[args, at].concat()).stdout;
    let tree = done(&["tree", "lab"]);
    let expected = [
        "/lab/  [v2]",
        "├── empty  BROKEN lab/empty/.zarray: the document is not JSON",
        "├── good  (3,) uint8",
        "├── list  BROKEN lab/list/.zgroup: the document is not an object",
        "├── new/  [v3]",
        "│   └── torn  BROKEN lab/new/torn/zarr.json: the document is not JSON",
        "└── notes  BROKEN lab/notes/.zattrs: the document is not JSON",
        "",
        "2 groups, 1 array, 4 broken",
    ];
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{tree}");
    for (line, expected) in lines.iter().zip(expected).skip(1) {
        assert!(line.starts_with(expected), "{tree}");
    }
    let root = done(&["tree"]);
    assert!(root.contains("3 groups, 1 array, 4 broken"), "{root}");

    let ls = done(&["ls", "lab"]);
    let marked = ls.lines().filter(|line| line.contains("broken") && line.contains("BROKEN lab/"));
    assert_eq!(marked.count(), 3, "{ls}");
    let json = done(&["ls", "lab", "--json"]);
    let cards: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cards.len(), 5, "{json}");
    assert_eq!((&cards[0]["kind"], &cards[0]["problem"]["key"]), (&json!("broken"), &json!("lab/empty/.zarray")));
    assert_eq!((&cards[1]["kind"], cards[1].get("problem")), (&json!("array"), None));

    let info = done(&["info", "lab"]);
    assert!(info.contains("only in consolidated metadata: gone, a/b\n"), "{info}");
    assert!(info.contains("broken        /lab/empty lab/empty/.zarray: the document is not JSON"), "{info}");
    for (node, key) in [("lab/empty", "lab/empty/.zarray"), ("lab/notes", "lab/notes/.zattrs")] {
        for command in ["ls", "tree", "info"] {
            place.fails(&[&[command, node], at].concat(), 1, &[key]);
        }
    }
}

#[test]
fn broken_nodes_are_marked() {
    let place = Place::new();
    broken(&place);
    look(&place, &["--store", "sled:data"]);
    let server = place.serve(&["--store", "sled:data"]);
    look(&place, &["--server", &server.url()]);
    server.stop();
}

#[test]
fn many_nodes_that_only_consolidated_metadata_have_are_told_in_part() {
    let place = Place::new();
    place.write("g/zarr.json", {
        let nodes: Vec<(String, Value)> =
            (0..50).map(|number| (format!("n{number:02}"), json!({"zarr_format": 3, "node_type": "group"}))).collect();
        let metadata: Value = nodes.into_iter().collect::<serde_json::Map<_, _>>().into();
        let copies = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": copies}).to_string()
    });
    place.done(&["import", "g", "g", "--store", "sled:data"]);
    let info = place.done(&["info", "g", "--store", "sled:data"]).stdout;
    assert!(info.contains("only in consolidated metadata: n00, n01,") && info.contains("n19, and more\n"), "{info}");
    assert!(!info.contains("n20"), "{info}");
    let info = place.done(&["info", "g", "--store", "sled:data", "--json"]).summary();
    assert_eq!(info["only_consolidated"].as_array().unwrap().len(), 20, "{info}");
}
