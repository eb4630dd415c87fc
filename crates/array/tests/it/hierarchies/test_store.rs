//! A store with its hierarchies and arrays, and documents for tests.

use std::sync::Arc;

use futures::TryStreamExt;
use serde_json::{Value, json};
use zarrd_array::{
    Arrays, ConversionReport, ConvertOptions, CreateOptions, CreateOutcome, Depth, ExistingDocuments, Hierarchies,
    IfExists, LossPolicy, NodeError, NodeInfo, Options,
};
use zarrd_meta::{Dialect, NodePath, documents::NodePatch, zom::Zom};
use zarrd_store::{Key, MemoryStore, Precondition, Prefix, TransactionalStore};

pub(crate) struct TestStore {
    pub(crate) inner: Arc<dyn TransactionalStore>,
    pub(crate) nodes: Hierarchies,
    pub(crate) arrays: Arrays,
}

pub(crate) fn path(text: &str) -> NodePath {
    NodePath::parse(text).unwrap()
}

pub(crate) fn zom(document: &Value) -> Zom {
    Zom::parse(document.to_string()).unwrap()
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryStore::new()))
    }

    pub(crate) fn on(inner: Arc<dyn TransactionalStore>) -> Self {
        let arrays = Arrays::new(inner.clone(), Options::default());
        Self { nodes: arrays.hierarchies(), arrays, inner }
    }

    pub(crate) async fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value: Vec<u8> = value.into();
        self.inner.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    pub(crate) async fn json(&self, key: &str, document: &Value) {
        self.set(key, document.to_string()).await;
    }

    /// All keys, in order.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let all = zarrd_store::list_all(&*self.inner, &Prefix::root());
        all.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap()
    }

    /// The value of a key.
    pub(crate) async fn stored(&self, key: &str) -> Vec<u8> {
        let value = self.inner.get(&Key::parse(key).unwrap(), None).await.unwrap();
        value.unwrap_or_else(|| panic!("{key} exists")).bytes().await.unwrap().to_vec()
    }

    pub(crate) async fn erase_key(&self, key: &str) {
        self.inner.erase(&Key::parse(key).unwrap(), Precondition::none()).await.unwrap();
    }

    pub(crate) async fn document(&self, key: &str) -> Value {
        let value = self.inner.get(&Key::parse(key).unwrap(), None).await.unwrap();
        serde_json::from_slice(&value.unwrap_or_else(|| panic!("{key} exists")).bytes().await.unwrap()).unwrap()
    }

    pub(crate) async fn node(&self, at: &str, depth: Depth) -> Result<NodeInfo, NodeError> {
        self.nodes.node(&path(at), None, depth, None).await.map(|node| node.info)
    }

    /// The complete hierarchy at a path as JSON.
    pub(crate) async fn all(&self, at: &str) -> Value {
        self.node(at, Depth::All).await.unwrap().zom.to_text().to_value().unwrap()
    }

    pub(crate) async fn declare(&self, at: &str, document: &Value) -> Result<CreateOutcome, NodeError> {
        self.nodes.create(&path(at), Arc::new(zom(document)), &CreateOptions::default()).await
    }

    pub(crate) async fn declare_as(
        &self,
        at: &str,
        document: &Value,
        dialect: Dialect,
    ) -> Result<CreateOutcome, NodeError> {
        let declaration = CreateOptions { dialect: Some(dialect), ..CreateOptions::default() };
        self.nodes.create(&path(at), Arc::new(zom(document)), &declaration).await
    }

    pub(crate) async fn replace(&self, at: &str, document: &Value) -> Result<CreateOutcome, NodeError> {
        let declaration = CreateOptions { if_exists: IfExists::Replace, ..CreateOptions::default() };
        self.nodes.create(&path(at), Arc::new(zom(document)), &declaration).await
    }

    pub(crate) async fn patch(&self, at: &str, patch: &Value) -> Result<NodeInfo, NodeError> {
        let changes = NodePatch::parse(patch.to_string()).unwrap();
        self.nodes.patch(&path(at), None, &changes, &Precondition::none()).await.map(|node| node.info)
    }

    pub(crate) async fn erase(&self, at: &str) -> Result<u64, NodeError> {
        let erased = self.nodes.erase(&path(at), None, &Precondition::none()).await?;
        assert!(erased.exact);
        Ok(erased.count)
    }

    pub(crate) async fn convert(&self, at: &str, to: Dialect) -> Result<ConversionReport, NodeError> {
        let conversion =
            ConvertOptions { dialect: to, target: None, losses: LossPolicy::Allow, existing: ExistingDocuments::Keep };
        self.nodes.convert(&path(at), None, &conversion).await
    }
}

pub(crate) fn v3_array(shape: &[u64]) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": vec![2; shape.len()]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [{"name": "bytes"}],
        "attributes": {}})
}

pub(crate) fn v3_group(members: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

pub(crate) fn v2_array(shape: &[u64]) -> Value {
    json!({"zarr_format": 2, "shape": shape, "chunks": vec![2; shape.len()], "dtype": "|u1", "fill_value": 0,
        "order": "C", "filters": null, "compressor": null, "dimension_separator": ".", "attributes": {}})
}

pub(crate) fn v2_group(members: &Value) -> Value {
    json!({"zarr_format": 2, "attributes": {}, "members": members})
}

const DRAFT: &str = "https://purl.org/zarr/spec/protocol/core/3.0";

pub(crate) fn entry_point() -> Value {
    json!({"zarr_format": DRAFT, "metadata_encoding": DRAFT, "metadata_key_suffix": ".json", "extensions": []})
}

pub(crate) fn draft_array(shape: &[u64]) -> Value {
    json!({"shape": shape, "data_type": "u1", "chunk_grid": {"type": "regular", "chunk_shape": vec![2; shape.len()],
        "separator": "/"}, "chunk_memory_layout": "C", "fill_value": 0, "extensions": [], "attributes": {}})
}
