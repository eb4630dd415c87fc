//! A folder that is opened for writing, with an engine over it.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use zarrd_array::{Arrays, CreateOptions, ElementSource, Hierarchies, NodeError, Options, WriteError};
use zarrd_meta::{NodePath, selection::Selection, zom::Zom};
use zarrd_store::{Keyed, Precondition, ServedStore};
use zarrd_store_dir::{DirStore, WriteOptions};

/// The number of elements of a chunk, of four bytes each: a chunk has several sectors.
pub(super) const CHUNK: u64 = 1024;

/// The number of chunks of an array.
pub(super) const CHUNKS: u64 = 4;

/// An open folder.
pub(super) struct Engine {
    pub(super) store: DirStore,
    arrays: Arrays,
    nodes: Hierarchies,
}

impl Engine {
    /// Opens a folder, which exists.
    pub(super) async fn open(folder: &Path) -> Result<Self, String> {
        let options = zarrd_store_dir::Options::new("dir:crash-states").writes(WriteOptions::default());
        let store = DirStore::open(folder, options).await.map_err(|error| format!("opening: {error:?}"))?;
        let served = ServedStore::key_by_key(Arc::new(Keyed::new(store.clone(), store.guarantees())));
        let arrays = Arrays::new(served, Options::default());
        Ok(Self { store, nodes: arrays.hierarchies(), arrays })
    }

    /// Declares a tree: a group with an array, and with a group of another array.
    pub(super) async fn declare(&self, name: &str) -> Result<(), NodeError> {
        let group =
            |members: Value| json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members});
        let tree = group(json!({"x": array(), "g": group(json!({"y": array()}))}));
        let zom = Arc::new(Zom::parse(tree.to_string()).expect("a tree"));
        self.nodes.create(&path(name), zom, &CreateOptions::default()).await.map(drop)
    }

    /// Erases a tree.
    pub(super) async fn erase(&self, name: &str) -> Result<(), NodeError> {
        self.nodes.erase(&path(name), None, &Precondition::none()).await.map(drop)
    }

    /// Sets the elements from a position of an array on.
    pub(super) async fn write(&self, array: &str, start: u64, elements: &[u32]) -> Result<(), WriteError> {
        let end = start + elements.len() as u64;
        let selection = Selection::parse(&format!("{start}:{end}")).expect("a selection");
        let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        let source = ElementSource::Fixed(Box::pin(futures::stream::iter([Ok(bytes.into())])));
        let write = self.arrays.write(&path(array), None, &selection, Precondition::none()).await?;
        write.execute(source).await.map(drop)
    }
}

fn path(name: &str) -> NodePath {
    NodePath::parse(&format!("/{name}")).expect("a path")
}

/// The document of an array, whose chunks are their elements.
fn array() -> Value {
    let endian = json!({"endian": "little"});
    json!({"zarr_format": 3, "node_type": "array", "shape": [CHUNK * CHUNKS], "data_type": "uint32", "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": endian}], "attributes": {}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK]}}})
}
