//! What is told of a node in a line.

use client::{BrokenNode, Dialect, NodePath, zom};
use meta::{
    ArrayModel,
    documents::{v2, v3, write::StoredNode},
    grid::DimensionGrid,
    json::Json,
};
use serde::Serialize;
use serde_json::Value;

use super::text::tuple;

/// The codec that makes chunks shards.
const SHARDING: &str = "sharding_indexed";

/// What is told of a node in a line.
#[derive(Debug, Serialize)]
pub(crate) struct Card {
    /// Its path.
    pub(crate) path: String,
    /// What it is.
    pub(crate) kind: Kind,
    /// In which dialect it is stored.
    pub(crate) dialect: &'static str,
    /// What there is to say of an array.
    #[serde(flatten)]
    pub(crate) array: Option<ArrayCard>,
    /// The document of a broken node that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<ProblemCard>,
}

/// A document that cannot be read.
#[derive(Debug, Serialize)]
pub(crate) struct ProblemCard {
    /// Its key.
    pub(crate) key: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// What is told of an array in a line. What its document does not say in a way that is understood is not told.
#[derive(Debug, Serialize)]
pub(crate) struct ArrayCard {
    /// How many elements there are along each dimension.
    pub(crate) shape: Vec<u64>,
    /// The name of the data type.
    pub(crate) data_type: String,
    /// The shape of the chunks: a length for each dimension, or a list of lengths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chunks: Vec<Value>,
    /// The shape of the shards that they are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shards: Option<Vec<Value>>,
    /// The names of the codecs.
    pub(crate) codecs: Vec<String>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// An array.
    Array,
    /// A group.
    Group,
    /// A node of which a document cannot be read.
    Broken,
}

impl Card {
    /// What is told of the node at a path.
    pub(crate) fn of(path: &NodePath, dialect: Dialect, version: zom::ZomFormat, node: &zom::Node) -> Self {
        let (kind, array) = match node {
            zom::Node::Array(document) => (Kind::Array, Some(ArrayCard::of(version, document))),
            zom::Node::Group(_) => (Kind::Group, None),
        };
        Self { path: path.to_string(), kind, dialect: dialect.name(), array, problem: None }
    }

    /// What is told of a node that cannot be read.
    pub(crate) fn broken(BrokenNode { path, dialect, key, reason }: BrokenNode) -> Self {
        let problem = Some(ProblemCard { key: key.to_string(), reason });
        Self { path: path.to_string(), kind: Kind::Broken, dialect: dialect.name(), array: None, problem }
    }

    /// The mark of a broken node: which document it is, and what is wrong with it.
    pub(crate) fn mark(&self) -> Option<String> {
        self.problem.as_ref().map(|problem| format!("BROKEN {}: {}", problem.key, problem.reason))
    }

    /// The last part of the path, with a `/` behind that of a group; the root is `/`.
    pub(crate) fn name(&self) -> String {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        match self.kind {
            Kind::Array | Kind::Broken => name.to_owned(),
            Kind::Group => format!("{name}/"),
        }
    }
}

impl ArrayCard {
    fn of(version: zom::ZomFormat, document: &Json) -> Self {
        let Some(model) = array_model(version, document) else { return Self::of_strange(document) };
        let grid: Vec<Value> = model.grid.dimensions().iter().map(lengths).collect();
        let inner = model.codecs.iter().find(|codec| codec.name == SHARDING);
        let inner = inner.and_then(|sharding| sharding.configuration.get("chunk_shape")?.as_array().cloned());
        let (chunks, shards) = match inner {
            Some(inner) => (inner, Some(grid)),
            None => (grid, None),
        };
        let codecs = model.codecs.iter().map(|codec| codec.name.clone()).collect();
        Self { shape: model.view_shape(), data_type: model.data_type.name(), chunks, shards, codecs }
    }

    /// What can be told of an array that cannot be read here, for example since it has a codec that nobody knows.
    fn of_strange(document: &Json) -> Self {
        let named = |value: &Json| value.to_text().or_else(|| value.get("name")?.to_text());
        let extent = |extent: Json| extent.to_value().ok()?.as_u64();
        let shape = document.get("shape").map(|shape| shape.items().filter_map(extent).collect()).unwrap_or_default();
        let data_type = match document.get("data_type").or_else(|| document.get("dtype")) {
            Some(data_type) => named(&data_type).unwrap_or_else(|| data_type.as_str().to_owned()),
            None => String::new(),
        };
        let codecs = document.get("codecs");
        let codecs = codecs.map(|codecs| codecs.items().filter_map(|codec| named(&codec)).collect());
        Self { shape, data_type, chunks: Vec::new(), shards: None, codecs: codecs.unwrap_or_default() }
    }

    /// The shape of the chunks, and of the shards that they are in.
    pub(crate) fn chunking(&self) -> String {
        match &self.shards {
            Some(shards) => format!("{} in shards of {}", tuple(&self.chunks), tuple(shards)),
            None if self.chunks.is_empty() && !self.shape.is_empty() => String::new(),
            None => tuple(&self.chunks),
        }
    }
}

/// The model of an array whose node document this is; `None` where it cannot be read here.
pub(crate) fn array_model(version: zom::ZomFormat, document: &Json) -> Option<ArrayModel> {
    let StoredNode { document, attributes } = StoredNode::from_node_document(version.dialect(), document);
    match version {
        zom::ZomFormat::V2 => v2::read_array(document, attributes.unwrap_or_default()).ok(),
        zom::ZomFormat::V3 => match v3::read(document).ok()? {
            v3::Node::Array(model) => Some(*model),
            v3::Node::Group(_) => None,
        },
    }
}

/// The length of all pieces of a dimension, or a list of them.
fn lengths(dimension: &DimensionGrid) -> Value {
    match dimension {
        DimensionGrid::Regular { length } => Value::from(*length),
        DimensionGrid::Rectilinear { ends } => {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            ends.iter().zip(starts).map(|(end, start)| end.saturating_sub(start)).collect::<Vec<_>>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn card(version: zom::ZomFormat, document: Value) -> Card {
        let node = zom::Node::Array(Json::compact(&document));
        Card::of(&NodePath::parse("/lab/mice").unwrap(), version.dialect(), version, &node)
    }

    #[test]
    fn arrays_of_both_versions() {
        let v3 = card(
            zom::ZomFormat::V3,
            json!({
                "zarr_format": 3, "node_type": "array", "shape": [10, 8], "data_type": "float32", "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 8]}},
                "chunk_key_encoding": {"name": "default"},
                "codecs": [{"name": "sharding_indexed", "configuration": {
                    "chunk_shape": [2, 2], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                }}],
            }),
        );
        assert_eq!(
            serde_json::to_value(&v3).unwrap(),
            json!({"path": "/lab/mice", "kind": "array", "dialect": "v3", "shape": [10, 8], "data_type": "float32",
                "chunks": [2, 2], "shards": [4, 8], "codecs": ["sharding_indexed"]})
        );
        assert_eq!(v3.array.unwrap().chunking(), "(2, 2) in shards of (4, 8)");
        let v2 = card(
            zom::ZomFormat::V2,
            json!({"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": ">i2", "compressor": null, "fill_value": 0,
                "filters": null, "order": "C", "attributes": {"a": 1}}),
        );
        let array = v2.array.unwrap();
        assert_eq!((array.data_type.as_str(), array.chunking().as_str()), ("int16", "(2,)"));
    }

    #[test]
    fn arrays_that_nobody_here_reads() {
        let strange = card(
            zom::ZomFormat::V3,
            json!({"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": {"name": "odd"}, "codecs": ["odder", 1]}),
        );
        let array = strange.array.unwrap();
        assert_eq!((array.shape, array.data_type, array.codecs), (vec![5], "odd".into(), vec!["odder".to_owned()]));
        assert_eq!(array.chunks, [] as [Value; 0]);
    }

    #[test]
    fn names() {
        let group = zom::Node::Group(zom::Group::default());
        let name = |path| Card::of(&NodePath::parse(path).unwrap(), Dialect::V2, zom::ZomFormat::V2, &group).name();
        assert_eq!((name("/"), name("/a/b")), ("/".into(), "b/".into()));
    }
}
