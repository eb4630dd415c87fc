//! `ls`, `tree` and `info` with broken nodes.

use serde_json::{Value, json};

use crate::runner::TestDir;

const GROUP: &str = r#"{"zarr_format": 2}"#;
const OTHER: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;

/// Imports a v2 group with an array, three broken nodes, a v3 group with a broken node, and stale consolidated
/// metadata.
fn import_broken_nodes(dir: &TestDir) {
    let array = json!({"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|u1", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null});
    dir.write("lab/.zgroup", GROUP);
    dir.write("lab/good/.zarray", array.to_string());
    dir.write("lab/empty/.zarray", "");
    dir.write("lab/list/.zgroup", "[1]");
    dir.write("lab/notes/.zgroup", GROUP);
    dir.write("lab/notes/.zattrs", "{");
    dir.write("lab/new/zarr.json", OTHER);
    dir.write("lab/new/torn/zarr.json", "{\"zarr_format\": 3");
    let mut metadata = json!({"good/.zarray": array, "empty/.zarray": array, ".zgroup": {"zarr_format": 2}});
    for missing in ["gone", "a/b"] {
        metadata[format!("{missing}/.zarray")] = array.clone();
        metadata[format!("{missing}/.zattrs")] = json!({});
    }
    let copies = json!({"zarr_consolidated_format": 1, "metadata": metadata});
    dir.write("lab/.zmetadata", copies.to_string());
    dir.succeeds(&["import", "lab", "lab", "--store", "sled:data"]);
}

fn check_output(dir: &TestDir, at: &[&str]) {
    let output = |args: &[&str]| dir.succeeds(&[args, at].concat()).stdout;
    let files = output(&["tree", "lab"]);
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
    let lines: Vec<&str> = files.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{files}");
    for (line, expected) in lines.iter().zip(expected).skip(1) {
        assert!(line.starts_with(expected), "{files}");
    }
    let root = output(&["tree"]);
    assert!(root.contains("3 groups, 1 array, 4 broken"), "{root}");

    let ls = output(&["ls", "lab"]);
    let marked = ls.lines().filter(|line| line.contains("broken") && line.contains("BROKEN lab/"));
    assert_eq!(marked.count(), 3, "{ls}");
    let json = output(&["ls", "lab", "--json"]);
    let nodes: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(nodes.len(), 5, "{json}");
    assert_eq!((&nodes[0]["kind"], &nodes[0]["problem"]["key"]), (&json!("broken"), &json!("lab/empty/.zarray")));
    assert_eq!((&nodes[1]["kind"], nodes[1].get("problem")), (&json!("array"), None));

    let info = output(&["info", "lab"]);
    assert!(info.contains("only in consolidated metadata: gone, a/b\n"), "{info}");
    assert!(info.contains("broken        /lab/empty lab/empty/.zarray: the document is not JSON"), "{info}");
    for (node, key) in [("lab/empty", "lab/empty/.zarray"), ("lab/notes", "lab/notes/.zattrs")] {
        for command in ["ls", "tree", "info"] {
            dir.fails(&[&[command, node], at].concat(), 1, &[key]);
        }
    }
}

#[test]
fn broken_nodes_are_marked_locally_and_through_a_server() {
    let dir = TestDir::new();
    import_broken_nodes(&dir);
    check_output(&dir, &["--store", "sled:data"]);
    let server = dir.serve(&["--store", "sled:data"]);
    check_output(&dir, &["--server", &server.url()]);
    server.stop();
}

#[test]
fn list_of_nodes_only_in_consolidated_metadata_is_truncated() {
    let dir = TestDir::new();
    dir.write("g/zarr.json", {
        let nodes: Vec<(String, Value)> =
            (0..50).map(|number| (format!("n{number:02}"), json!({"zarr_format": 3, "node_type": "group"}))).collect();
        let metadata: Value = nodes.into_iter().collect::<serde_json::Map<_, _>>().into();
        let copies = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": copies}).to_string()
    });
    dir.succeeds(&["import", "g", "g", "--store", "sled:data"]);
    let info = dir.succeeds(&["info", "g", "--store", "sled:data"]).stdout;
    assert!(info.contains("only in consolidated metadata: n00, n01,") && info.contains("n19, and more\n"), "{info}");
    assert!(!info.contains("n20"), "{info}");
    let info = dir.succeeds(&["info", "g", "--store", "sled:data", "--json"]).summary();
    assert_eq!(info["only_consolidated"].as_array().unwrap().len(), 20, "{info}");
}
