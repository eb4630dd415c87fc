//! Hierarchies as printed by the program, through a server and from the store itself.

use serde_json::{Value, json};
use tempfile::TempDir;
use zarrd_client::{ArrayClient, BaseUrl, CreateOptions, Dialect, NodeClient, NodePath, Zom, select};
use zarrd_store::{Key, Precondition, WriteableStore};
use zarrd_tests::server::{Ended, Launch, Server, zarrd_with};

fn path(text: &str) -> NodePath {
    NodePath::parse(text).unwrap()
}

fn array(shape: &[u64], chunks: &[u64]) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "fill_value": 0.0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip",
        "configuration": {"level": 1}}],
    })
}

fn group(members: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "members": members})
}

/// `/lab`: arrays of v3 with three of four chunks stored, a group that contains only groups, and hierarchies of v2 and
/// of the draft.
async fn fill(server: &Server) {
    let nodes = NodeClient::new(BaseUrl::parse(&server.url("")).unwrap()).unwrap();
    let declare = async |at: &str, dialect: Dialect, zom: Value| {
        let zom = Zom::parse(zom.to_string()).unwrap();
        nodes.with_dialect(dialect).create(&path(at), &zom, &CreateOptions::default()).await.unwrap();
    };
    let mut mice = array(&[20, 20], &[10, 10]);
    mice["attributes"] = json!({"unit": "mV", "odd\u{1b}": 1});
    mice["dimension_names"] = json!(["y", "x"]);
    declare("lab", Dialect::V3, group(json!({"mice": mice, "deep": group(json!({"deeper": group(json!({}))}))}))).await;
    let old = json!({"zarr_format": 2, "attributes": {}, "members": {"x": {
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">i2", "compressor": null, "fill_value": 0,
        "filters": null,
        "order": "C", "attributes": {},
    }}});
    declare("lab/old", Dialect::V2, old).await;
    declare("lab/draft", Dialect::Draft, group(json!({"d": array(&[2], &[1])}))).await;
    let arrays = ArrayClient::new(BaseUrl::parse(&server.url("")).unwrap()).unwrap();
    for (at, selection) in
        [("lab/mice", select![0..10, ..]), ("lab/mice", select![15, 15]), ("lab/draft/d", select![0])]
    {
        arrays.write(&path(at), selection, json!(1), Precondition::none()).await.unwrap();
    }
}

/// The output of commands through a server and on the store itself, which must be equal.
struct Both {
    dir: TempDir,
    lines: Vec<(Vec<&'static str>, Ended)>,
}

impl Both {
    /// Runs the commands through a running server.
    async fn begin(commands: &[&'static [&'static str]]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Launch::sled(&dir.path().join("store")).start();
        fill(&server).await;
        let url = server.url("");
        let lines = commands.iter().map(|command| {
            let output = zarrd_with(command.iter().copied().chain(["--server", &url]));
            (command.to_vec(), output)
        });
        let lines = lines.collect();
        server.stop();
        Self { dir, lines }
    }

    /// Runs the commands on the store itself; returns the output of each.
    fn end(self) -> Vec<String> {
        let store = format!("sled:{}", self.dir.path().join("store").display());
        let same = |(command, remote): (Vec<&str>, Ended)| {
            let local = zarrd_with(command.iter().copied().chain(["--store", &store]));
            assert_eq!((local.code, &local.stderr), (remote.code, &remote.stderr), "{command:?}");
            assert_eq!(local.stdout, remote.stdout, "{command:?}");
            assert_eq!(local.code, Some(0), "{command:?}: {local:?}");
            local.stdout
        };
        self.lines.into_iter().map(same).collect()
    }
}

fn lines_of_json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn groups_are_listed_and_shown_as_trees() {
    let both = Both::begin(&[
        &["ls", "lab"],
        &["ls", "-l", "/lab/"],
        &["ls", "--json", "lab"],
        &["ls", "lab/mice"],
        &["tree"],
        &["tree", "--depth", "1", "lab"],
        &["tree", "--depth", "0", "lab"],
        &["tree", "--json", "lab"],
    ]);
    let output = both.await.end();
    let [short, long, json, one, tree, shallow, bare, tree_json] = &output[..] else { panic!("{output:?}") };
    let listed = "deep/   group\ndraft/  group\nmice    array  (20, 20)  float32\nold/    group\n";
    assert_eq!(short, listed);
    let mice = "mice    array  (20, 20)  float32  v3       (10, 10)  bytes, gzip";
    assert!(long.starts_with("name    kind   shape     type     dialect  chunks    codecs\n"), "{long}");
    assert!(long.lines().any(|line| line == mice), "{long}");
    let json = lines_of_json(json);
    assert_eq!(json[2]["shape"], json!([20, 20]));
    let dialects: Vec<_> = json.iter().map(|node| node["dialect"].as_str().unwrap()).collect();
    assert_eq!(dialects, ["v3", "draft", "v3", "v2"]);
    assert_eq!(one, "mice  array  (20, 20)  float32\n");
    let expected = "\
/  [v3]
└── lab/
    ├── deep/
    │   └── deeper/
    ├── draft/  [draft]
    │   └── d  (2,) float32
    ├── mice  (20, 20) float32
    └── old/  [v2]
        └── x  (4,) int16

6 groups, 3 arrays
";
    assert_eq!(tree, expected);
    let expected = "\
/lab  [v3]
├── deep/
├── draft/  [draft]
├── mice  (20, 20) float32
└── old/  [v2]

4 groups, 1 array
";
    assert_eq!(shallow, expected);
    assert_eq!(bare, "/lab  [v3]\n\n1 group, 0 arrays\n");
    let paths = lines_of_json(tree_json);
    let paths: Vec<_> = paths.iter().map(|node| node["path"].as_str().unwrap()).collect();
    let expected =
        ["/lab", "/lab/deep", "/lab/deep/deeper", "/lab/draft", "/lab/draft/d", "/lab/mice", "/lab/old", "/lab/old/x"];
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn info_shows_all_metadata_of_a_node() {
    let both = Both::begin(&[
        &["info", "lab/mice"],
        &["info", "--json", "lab/mice"],
        &["info", "lab"],
        &["info", "lab/draft/d"],
        &["info", "--json", "lab/old"],
    ]);
    let output = both.await.end();
    let [text, json, group, draft, old] = &output[..] else { panic!("{output:?}") };
    for line in [
        "kind          array",
        "shape         (20, 20)",
        "dimensions    y, x",
        "data type     float32",
        "fill value    0.0",
        "size          1.56 KiB",
        "chunks        (10, 10)",
        "codecs        bytes (endian: \"little\")",
        "              gzip (level: 1)",
    ] {
        assert!(text.lines().any(|output| output == line), "{line}: {text}");
    }
    assert!(text.contains("stored        3 chunks of 4, "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["stored"]["chunks"], 3);
    assert_eq!((&json["num_chunks"], &json["bytes"]), (&json!(4), &json!(1600)));
    assert_eq!(json["document"]["attributes"]["unit"], "mV");
    assert!(group.contains("members       1 group, 1 array, 2 of other dialects\n"), "{group}");
    assert!(draft.contains("dialect       draft\n") && draft.contains("stored        1 chunk of 2, "), "{draft}");
    let old: Value = serde_json::from_str(old).unwrap();
    assert_eq!((&old["dialect"], &old["arrays"], &old["consolidated"]), (&json!("v2"), &json!(1), &json!(false)));
}

/// As zarr-python's `nchunks_initialized`, which looks up the keys of the grid.
#[tokio::test]
async fn only_chunks_are_counted() {
    let server = Launch::of("memory:").start();
    let store = server.store();
    let set = async |key: &str, value: Value| {
        let content = value.to_string().into_bytes().into();
        store.set(&Key::parse(key).unwrap(), content, Precondition::none()).await.unwrap();
    };
    let v3 = |name: &str, separator: &str, shape: &[u64]| {
        let mut document = array(shape, &vec![10; shape.len()]);
        document["chunk_key_encoding"] = json!({"name": name, "configuration": {"separator": separator}});
        document
    };
    let v2 = |separator: &str, shape: &[u64]| {
        json!({"zarr_format": 2, "shape": shape, "chunks": vec![10; shape.len()], "dtype": "|u1", "compressor": null,
            "fill_value": 0,
            "filters": null, "order": "C", "dimension_separator": separator})
    };
    let entry = json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": [],
        "metadata_key_suffix": ".json",
        "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0"});
    set("draft/zarr.json", entry).await;
    let draft = json!({"shape": [20, 15], "data_type": "|u1", "fill_value": 0, "attributes": {},
        "chunk_memory_layout": "C", "extensions": [],
        "chunk_grid": {"type": "regular", "chunk_shape": [10, 10], "separator": "."}});
    let stray = [
        "note.txt",
        "c/0",
        "c/0/0/0",
        "c/00/1",
        "c/0/0.tmp",
        "below/c/0/0",
        "0.0.0",
        "c.0",
        "c/2/0",
        "c/0/2",
        "0.2",
        "1/2",
    ];
    // An array of 20 by 15 elements has two by two chunks; a scalar has one.
    for (at, document, prefix, chunks) in [
        ("nested", ("zarr.json", v3("default", "/", &[20, 15])), "nested/", &["c/0/0", "c/1/1"][..]),
        ("flat", ("zarr.json", v3("default", ".", &[20, 15])), "flat/", &["c.0.0"]),
        ("old-flat", (".zarray", v2(".", &[20, 15])), "old-flat/", &["0.0", "0.1", "1.1"]),
        ("old-nested", (".zarray", v2("/", &[20, 15])), "old-nested/", &["0/1"]),
        ("scalar", ("zarr.json", v3("default", "/", &[])), "scalar/", &["c"]),
        ("old-scalar", (".zarray", v2(".", &[])), "old-scalar/", &["0"]),
        ("draft/d", ("../meta/root/d.array.json", draft), "draft/data/root/d/", &["c0.0", "c1.1"]),
    ] {
        let (name, document) = document;
        let key = name.strip_prefix("../").map_or_else(|| format!("{at}/{name}"), |key| format!("draft/{key}"));
        set(&key, document).await;
        set(&format!("{prefix}below/zarr.json"), array(&[20, 15], &[10, 10])).await;
        for name in stray.iter().chain(chunks) {
            set(&format!("{prefix}{name}"), json!("value")).await;
        }
        let output = zarrd_with(["info", "--json", "--url", &server.url(""), at]);
        let output: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(
            (&output["stored"]["chunks"], &output["stored"]["bytes"]),
            (&json!(chunks.len()), &json!(7 * chunks.len())),
            "{at}"
        );
    }
}

#[tokio::test]
async fn consolidated_and_counterpart_documents_are_listed() {
    let server = Launch::of("memory:").start();
    fill(&server).await;
    let store = server.store();
    let set = async |key: &str, value: Value| {
        store
            .set(&Key::parse(key).unwrap(), value.to_string().into_bytes().into(), Precondition::none())
            .await
            .unwrap();
    };
    set("lab/old/.zmetadata", json!({"zarr_consolidated_format": 1, "metadata": {}})).await;
    let url = server.url("");
    let info = |at| {
        let output = zarrd_with(["info", "--json", "--url", &url, at]);
        serde_json::from_str::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    assert_eq!(info("lab/old")["consolidated"], true);
    assert_eq!(info("lab")["consolidated"], false);
    set(
        "lab/zarr.json",
        json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
            "kind": "inline", "must_understand": false, "metadata": {},
        }}),
    )
    .await;
    assert_eq!(info("lab")["consolidated"], true);
    let counterpart = array(&[4], &[2]);
    set("lab/old/x/zarr.json", counterpart).await;
    let both = info("lab/old/x");
    assert_eq!((&both["dialect"], &both["also_as"]), (&json!("v3"), &json!(["v2"])));
    assert_eq!(both["dialects_differ"], "independent");
    let output = zarrd_with(["info", "--json", "--server", &url, "--dialect", "v2", "lab/old/x"]);
    assert_eq!(serde_json::from_str::<Value>(&output.stdout).unwrap()["dialect"], "v2");
}

#[tokio::test]
async fn unreadable_nodes_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("sled:{}", dir.path().display());
    let server = Launch::of(&store).start();
    fill(&server).await;
    let url = server.url("");
    for command in ["ls", "tree", "info"] {
        let locked = zarrd_with([command, "--store", &store]);
        assert_eq!(locked.code, Some(4), "{locked:?}");
        assert!(locked.stderr.contains(&server.pid().to_string()) && locked.stderr.contains("--server"), "{locked:?}");
        let missing = zarrd_with([command, "--server", &url, "lab/none"]);
        assert_eq!((missing.code, missing.stderr.as_str()), (Some(1), "zarrd: no node exists at /lab/none\n"));
        let invalid = zarrd_with([command, "--server", &url, "lab//none"]);
        assert_eq!(invalid.code, Some(2), "{invalid:?}");
        let invalid = zarrd_with([command, "--server", &url, "--dialect", "v4"]);
        assert_eq!(invalid.code, Some(2), "{invalid:?}");
    }
    server.stop();
    let unreachable = zarrd_with(["ls", "--server", "http://127.0.0.1:1"]);
    assert_eq!(unreachable.code, Some(1), "{unreachable:?}");
    assert!(unreachable.stderr.contains("could not be sent"), "{unreachable:?}");
    let memory = zarrd_with(["ls", "--store", "memory:"]);
    assert_eq!(memory.code, Some(2), "{memory:?}");
}

#[tokio::test]
async fn empty_chunks_are_stored_on_request() {
    for (launch, stored) in [
        (Launch::of("memory:"), 0),
        (Launch::of("memory:").arg("--write-empty-chunks"), 1),
        (Launch::of("memory:").env("ZARRD_WRITE_EMPTY_CHUNKS", "true"), 1),
    ] {
        let server = launch.start();
        let arrays = ArrayClient::new(BaseUrl::parse(&server.url("")).unwrap()).unwrap();
        let zom = Zom::parse(array(&[2], &[2]).to_string()).unwrap();
        arrays.nodes().create(&path("a"), &zom, &CreateOptions::default()).await.unwrap();
        let report = arrays.write(&path("a"), select![], &[0.0_f32, 0.0], Precondition::none()).await.unwrap();
        assert_eq!((report.chunks_written, report.chunks_erased), (stored, 1 - stored));
    }
}
