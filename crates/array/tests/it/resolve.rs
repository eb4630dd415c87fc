//! Resolution of nodes of each dialect, and the errors of unreadable ones.

use std::sync::Arc;

use futures::StreamExt;
use serde_json::{Value, json};
use zarrd_array::{ArrayError, Arrays, Options};
use zarrd_codec::Elements;
use zarrd_meta::{
    Dialect, NodePath,
    documents::DocumentError,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{Key, MemoryStore, Precondition, WriteableStore};

struct Lab {
    store: Arc<MemoryStore>,
    arrays: Arrays,
}

impl Lab {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self { arrays: Arrays::new(store.clone(), options), store }
    }

    async fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value: Vec<u8> = value.into();
        self.store.set(&Key::parse(key).unwrap(), value.into(), Precondition::default()).await.unwrap();
    }

    async fn json(&self, key: &str, document: &Value) {
        self.set(key, document.to_string()).await;
    }

    async fn erase(&self, key: &str) {
        self.store.erase(&Key::parse(key).unwrap(), Precondition::default()).await.unwrap();
    }

    /// The elements as bytes, and the shape.
    async fn read(
        &self,
        path: &str,
        dialect: Option<Dialect>,
        select: &str,
    ) -> Result<(Vec<u8>, Vec<u64>), ArrayError> {
        let request = ReadRequest::Select(Selection::parse(select).unwrap());
        let path = NodePath::parse(path).unwrap();
        let reading = self.arrays.read(&path, dialect, &request, 1 << 20).await?;
        let shape = reading.shape().to_vec();
        let mut all = Vec::new();
        let mut parts = Box::pin(reading.into_stream());
        while let Some(part) = parts.next().await {
            match part? {
                Elements::Fixed(bytes) => all.extend_from_slice(&bytes),
                Elements::Variable(elements) => elements.iter().for_each(|element| all.extend_from_slice(element)),
            }
        }
        Ok((all, shape))
    }

    async fn all(&self, path: &str) -> Vec<u8> {
        self.read(path, None, "").await.unwrap().0
    }

    async fn rejected(&self, path: &str) -> ArrayError {
        self.read(path, None, "").await.unwrap_err()
    }
}

fn v3(shape: &[u64], fill: u8) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": vec![2; shape.len()]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]})
}

fn v2(shape: &[u64], fill: u8) -> Value {
    json!({"zarr_format": 2, "shape": shape, "chunks": vec![2; shape.len()], "dtype": "|u1", "fill_value": fill,
        "order": "C", "filters": null, "compressor": null})
}

const DRAFT: &str = "https://purl.org/zarr/spec/protocol/core/3.0";

fn entry_point(suffix: &str) -> Value {
    json!({"zarr_format": DRAFT, "metadata_encoding": DRAFT, "metadata_key_suffix": suffix, "extensions": []})
}

fn draft(shape: &[u64], fill: u8) -> Value {
    json!({"shape": shape, "data_type": "u1", "chunk_grid": {"type": "regular", "chunk_shape": vec![2; shape.len()]},
        "chunk_memory_layout": "C", "fill_value": fill, "extensions": [], "attributes": {}})
}

#[tokio::test]
async fn v3_precedes_v2_precedes_draft() {
    let lab = Lab::new();
    lab.json("zarr.json", &entry_point(".json")).await;
    lab.json("meta/root/a/x.array.json", &draft(&[3], 1)).await;
    assert_eq!(lab.all("/a/x").await, [1, 1, 1]);
    lab.json("a/x/.zarray", &v2(&[3], 2)).await;
    assert_eq!(lab.all("/a/x").await, [2, 2, 2], "v2 precedes the draft");
    lab.json("a/x/zarr.json", &v3(&[3], 3)).await;
    assert_eq!(lab.all("/a/x").await, [3, 3, 3], "v3 precedes both");
    for (dialect, fill) in [(Dialect::Draft, 1), (Dialect::V2, 2), (Dialect::V3, 3)] {
        assert_eq!(lab.read("/a/x", Some(dialect), "0").await.unwrap(), (vec![fill], vec![]));
    }
    lab.erase("a/x/zarr.json").await;
    assert_eq!(lab.all("/a/x").await, [2, 2, 2], "a cached node is validated");
    lab.json("a/x/.zarray", &v2(&[1], 9)).await;
    assert_eq!(lab.all("/a/x").await, [9], "as is a changed document");
}

#[tokio::test]
async fn chunks_of_every_dialect_are_read() {
    let lab = Lab::new();
    lab.json("n/zarr.json", &v3(&[3, 2], 0)).await;
    lab.set("n/c/0/0", [1, 2, 3, 4]).await;
    lab.set("n/c/1/0", [5, 6, 99, 99]).await;
    assert_eq!(lab.all("/n").await, [1, 2, 3, 4, 5, 6]);
    lab.json("o/.zarray", &v2(&[3, 2], 0)).await;
    lab.set("o/1.0", [5, 6, 99, 99]).await;
    assert_eq!(lab.all("/o").await, [0, 0, 0, 0, 5, 6]);
    lab.json("d/zarr.json", &entry_point(".json")).await;
    lab.json("d/meta/root/g/p.array.json", &draft(&[3, 2], 7)).await;
    lab.set("d/data/root/g/p/c0/0", [1, 2, 3, 4]).await;
    assert_eq!(lab.all("/d/g/p").await, [1, 2, 3, 4, 7, 7]);
    assert_eq!(lab.read("/d/g/p", None, "::-2, 1").await.unwrap(), (vec![7, 2], vec![2]));
}

/// Draft, "Entry point metadata": `metadata_key_suffix` is the suffix of metadata keys; "Metadata keys": the root's
/// keys are `meta/root.array` and so on.
#[tokio::test]
async fn draft_root_array_uses_its_metadata_key_suffix() {
    let lab = Lab::new();
    lab.json("r/zarr.json", &entry_point(".zmeta")).await;
    lab.json("r/meta/root.array.zmeta", &draft(&[3], 4)).await;
    lab.set("r/data/root/c1", [8, 0]).await;
    assert_eq!(lab.all("/r").await, [4, 4, 8]);
    lab.json("r/meta/root/x.array.json", &draft(&[3], 4)).await;
    assert!(matches!(lab.rejected("/r/x").await, ArrayError::NoSuchNode { .. }), "that is another suffix");
}

/// Draft, "Chunk grids": a 0-dimensional array has the one chunk `c`; zarr-python 2.x wrote `c0`.
#[tokio::test]
async fn draft_scalar_chunk_is_read_from_either_key() {
    let lab = Lab::new();
    lab.json("zarr.json", &entry_point(".json")).await;
    for (name, chunk) in [("a", "c"), ("b", "c0")] {
        lab.json(&format!("meta/root/{name}.array.json"), &draft(&[], 4)).await;
        assert_eq!(lab.all(name).await, [4]);
        lab.set(&format!("data/root/{name}/{chunk}"), [5]).await;
        assert_eq!(lab.all(name).await, [5]);
    }
    lab.set("data/root/b/c", [6]).await;
    assert_eq!(lab.all("b").await, [6], "the specified key takes precedence");
}

/// Draft, "Implicit groups": a path with descendant nodes is a group.
#[tokio::test]
async fn draft_path_with_descendants_is_a_group() {
    let lab = Lab::new();
    lab.json("zarr.json", &entry_point(".json")).await;
    lab.json("meta/root/a/b/c.array.json", &draft(&[1], 4)).await;
    lab.json("meta/root/e.group.json", &json!({"extensions": [], "attributes": {}})).await;
    for group in ["/", "/a", "/a/b", "/e"] {
        assert!(matches!(lab.rejected(group).await, ArrayError::NotAnArray { .. }), "{group}");
    }
    for nothing in ["/a/b/d", "/a/b/c/d", "/ab", "/x"] {
        assert!(matches!(lab.rejected(nothing).await, ArrayError::NoSuchNode { .. }), "{nothing}");
    }
}

/// Draft, "Entry point metadata": an unknown encoding, or an extension that must be understood, prevents reading; other
/// extensions are ignored.
#[tokio::test]
async fn unknown_draft_extensions_prevent_opening() {
    let lab = Lab::new();
    lab.json("meta/root/x.array.json", &draft(&[1], 4)).await;
    let mut entry = entry_point(".json");
    entry["metadata_encoding"] = json!("https://example.org/cbor");
    lab.json("zarr.json", &entry).await;
    let ArrayError::Document { key, source } = lab.rejected("/x").await else { panic!("the read succeeded") };
    assert_eq!(key.as_str(), "zarr.json");
    assert!(source.to_string().contains("https://example.org/cbor"), "{source}");
    for (must_understand, opens) in [(true, false), (false, true)] {
        let mut entry = entry_point(".json");
        entry["extensions"] =
            json!([{"extension": "https://example.org/new", "must_understand": must_understand, "configuration": {}}]);
        lab.json("zarr.json", &entry).await;
        match lab.read("/x", None, "").await {
            Ok((elements, _)) => assert!(opens && elements == [4]),
            Err(error) => {
                assert!(!opens);
                let source = std::error::Error::source(&error).unwrap().to_string();
                assert!(source.contains("https://example.org/new"), "{source}");
            }
        }
    }
}

#[tokio::test]
async fn nearest_entry_point_applies() {
    let lab = Lab::new();
    lab.json("zarr.json", &entry_point(".json")).await;
    lab.json("meta/root/in/x.array.json", &draft(&[1], 1)).await;
    assert_eq!(lab.all("/in/x").await, [1]);
    lab.json("in/zarr.json", &entry_point(".json")).await;
    lab.json("in/meta/root/x.array.json", &draft(&[1], 2)).await;
    assert_eq!(lab.all("/in/x").await, [2]);
}

#[tokio::test]
async fn groups_and_missing_nodes_are_not_arrays() {
    let lab = Lab::new();
    lab.json("g/zarr.json", &json!({"zarr_format": 3, "node_type": "group"})).await;
    lab.json("h/.zgroup", &json!({"zarr_format": 2})).await;
    for group in ["/g", "/h"] {
        assert!(matches!(lab.rejected(group).await, ArrayError::NotAnArray { .. }), "{group}");
    }
    for nothing in ["/", "/x", &format!("/{}", "x/".repeat(500))] {
        assert!(matches!(lab.rejected(nothing).await, ArrayError::NoSuchNode { .. }), "{nothing}");
    }
    lab.set("b/zarr.json", "{").await;
    assert!(matches!(lab.rejected("/b").await, ArrayError::Document { source: DocumentError::NotJson(_), .. }));
}

#[tokio::test]
async fn too_large_selections_are_rejected() {
    let lab = Lab::with(Options { max_chunks: 100, ..Options::default() });
    lab.json("big/zarr.json", &v3(&[1 << 40, 1 << 40], 0)).await;
    let ArrayError::SelectionTooLarge { size, limit, smaller } = lab.rejected("/big").await else {
        panic!("the read succeeded")
    };
    assert_eq!((size, limit), (1 << 80, 1 << 20));
    assert_eq!(smaller.unwrap().to_string(), "0:1,0:1048576");
    let many = lab.read("/big", None, "5, :1000").await.unwrap_err();
    assert!(matches!(many, ArrayError::TooManyChunks { chunks: 500, limit: 100 }), "{many}");
    assert_eq!(lab.read("/big", None, "-1, -200:").await.unwrap().0, [0; 200]);
    let list = format!("({})", vec!["0"; 5000].join(","));
    let many = lab.read("/big", None, &format!("{list},{list}")).await.unwrap_err();
    assert!(matches!(many, ArrayError::SelectionTooLarge { size: 25_000_000, .. }), "{many}");
}

#[tokio::test]
async fn malformed_chunks_are_rejected() {
    let lab = Lab::with(Options { max_memory: 1 << 20, ..Options::default() });
    lab.json("a/zarr.json", &v3(&[4], 0)).await;
    for malformed in [vec![], vec![1], vec![1, 2, 3]] {
        lab.set("a/c/0", malformed).await;
        let ArrayError::Chunk { key, source } = lab.rejected("/a").await else { panic!("the read succeeded") };
        assert_eq!((key.as_str(), source.codec()), ("a/c/0", "bytes"));
    }
    let mut huge = v3(&[4], 0);
    huge["chunk_grid"]["configuration"]["chunk_shape"] = json!([1 << 30]);
    huge["codecs"] = json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]);
    lab.json("h/zarr.json", &huge).await;
    assert_eq!(lab.all("/h").await, [0; 4], "a missing chunk is never decoded");
    lab.set("h/c/0", [0; 100]).await;
    let rejected = lab.rejected("/h").await;
    assert!(matches!(rejected, ArrayError::ChunkTooLarge { limit: 524_288, .. }), "{rejected}");
    let ArrayError::ChunkTooLarge { size, .. } = rejected else { panic!() };
    assert!(
        rejected.to_string().ends_with(&format!("set `--max-memory` to {} bytes, or use smaller chunks", 2 * size))
    );
    huge["codecs"] = json!([{"name": "bytes"}, {"name": "nonsense"}]);
    lab.json("h/zarr.json", &huge).await;
    let ArrayError::Chain { source, .. } = lab.rejected("/h").await else { panic!("the read succeeded") };
    assert!(source.to_string().contains("nonsense"));
}

#[tokio::test]
async fn fingerprint_changes_with_every_visible_change() {
    let lab = Lab::new();
    lab.json("a/zarr.json", &v3(&[4, 4], 0)).await;
    lab.set("a/c/0/0", [1, 2, 3, 4]).await;
    let fingerprint = async |select: &str| {
        let request = ReadRequest::Select(Selection::parse(select).unwrap());
        let path = NodePath::parse("/a").unwrap();
        lab.arrays.read(&path, None, &request, 1 << 20).await.unwrap().fingerprint().unwrap()
    };
    let (before, other) = (fingerprint("0").await, fingerprint("3").await);
    assert_eq!(before, fingerprint("0,:").await, "the same elements");
    assert_ne!(before, other);
    assert_ne!(before, fingerprint("0:1").await, "another shape");
    lab.set("a/c/0/1", [1, 2, 3, 4]).await;
    assert_ne!(before, fingerprint("0").await, "a missing chunk was added");
    assert_eq!(other, fingerprint("3").await, "another chunk's change");
    lab.json("a/zarr.json", &v3(&[4, 4], 1)).await;
    assert_ne!(other, fingerprint("3").await, "another fill value");
}
