//! Summaries of nodes, for one line of output.

use serde::Serialize;
use serde_json::Value;
use zarrd_client::{BrokenNode, Dialect, NodePath, zom};
use zarrd_meta::{
    ArrayModel,
    documents::{v2, v3, write::StoredNode},
    grid::DimensionGrid,
    json::Json,
};

use super::format::tuple;

/// Name of the sharding codec.
const SHARDING: &str = "sharding_indexed";

/// A summary of a node.
#[derive(Debug, Serialize)]
pub(crate) struct NodeSummary {
    /// Path of the node.
    pub(crate) path: String,
    /// Kind of the node.
    pub(crate) kind: NodeKind,
    /// Dialect of the node.
    pub(crate) dialect: &'static str,
    /// Properties of an array.
    #[serde(flatten)]
    pub(crate) array: Option<ArraySummary>,
    /// The invalid document of a broken node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<DocumentProblem>,
    /// True if the node is named by its path, since its parents are not shown.
    #[serde(skip)]
    pub(crate) by_path: bool,
}

/// An invalid document.
#[derive(Debug, Serialize)]
pub(crate) struct DocumentProblem {
    /// Key of the document.
    pub(crate) key: String,
    /// Reason why it is invalid.
    pub(crate) reason: String,
}

/// A summary of an array. Members of its document that cannot be parsed are left out.
#[derive(Debug, Serialize)]
pub(crate) struct ArraySummary {
    /// Shape of the array.
    pub(crate) shape: Vec<u64>,
    /// Name of the data type.
    pub(crate) data_type: String,
    /// Shape of the chunks: for each dimension a length, or a list of lengths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chunks: Vec<Value>,
    /// Shape of the shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shards: Option<Vec<Value>>,
    /// Names of the codecs.
    pub(crate) codecs: Vec<String>,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeKind {
    /// An array.
    Array,
    /// A group.
    Group,
    /// A node with an invalid document.
    Broken,
    /// A prefix without a node.
    Prefix,
}

impl NodeSummary {
    /// Summarizes a node.
    pub(crate) fn new(path: &NodePath, dialect: Dialect, format: zom::ZomFormat, node: &zom::Node) -> Self {
        let (kind, array) = match node {
            zom::Node::Array(document) => (NodeKind::Array, Some(ArraySummary::new(format, document))),
            zom::Node::Group(_) => (NodeKind::Group, None),
        };
        Self { path: path.to_string(), kind, dialect: dialect.name(), array, problem: None, by_path: false }
    }

    /// The same for a node that is listed without its parents: by its path.
    pub(crate) fn granted(self) -> Self {
        Self { by_path: true, ..self }
    }

    /// Summarizes a prefix without a node.
    pub(crate) fn prefix(path: &NodePath) -> Self {
        let path = path.to_string();
        Self { path, kind: NodeKind::Prefix, dialect: "", array: None, problem: None, by_path: true }
    }

    /// Summarizes a broken node.
    pub(crate) fn broken(BrokenNode { path, dialect, key, reason }: BrokenNode) -> Self {
        let problem = Some(DocumentProblem { key: key.to_string(), reason });
        Self {
            path: path.to_string(),
            kind: NodeKind::Broken,
            dialect: dialect.name(),
            array: None,
            problem,
            by_path: false,
        }
    }

    /// The problem of a broken node: the key of the invalid document and the reason.
    pub(crate) fn problem_text(&self) -> Option<String> {
        self.problem.as_ref().map(|problem| format!("BROKEN {}: {}", problem.key, problem.reason))
    }

    /// The last segment of the path, with a trailing `/` for groups; `/` for the root.
    pub(crate) fn name(&self) -> String {
        let name = match self.by_path {
            true => self.path.trim_start_matches('/'),
            false => self.path.rsplit('/').next().unwrap_or_default(),
        };
        match self.kind {
            NodeKind::Array | NodeKind::Broken => name.to_owned(),
            NodeKind::Group | NodeKind::Prefix => format!("{name}/"),
        }
    }
}

impl ArraySummary {
    fn new(format: zom::ZomFormat, document: &Json) -> Self {
        let Some(model) = array_model(format, document) else { return Self::from_unsupported(document) };
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

    /// Summarizes an array whose document cannot be parsed completely, for example because of an unknown codec.
    fn from_unsupported(document: &Json) -> Self {
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

    /// The shapes of chunks and shards, as text.
    pub(crate) fn chunking(&self) -> String {
        match &self.shards {
            Some(shards) => format!("{} in shards of {}", tuple(&self.chunks), tuple(shards)),
            None if self.chunks.is_empty() && !self.shape.is_empty() => String::new(),
            None => tuple(&self.chunks),
        }
    }
}

/// Parses the document of an array; `None` if that fails.
pub(crate) fn array_model(format: zom::ZomFormat, document: &Json) -> Option<ArrayModel> {
    let StoredNode { document, attributes } = StoredNode::from_node_document(format.dialect(), document);
    match format {
        zom::ZomFormat::V2 => v2::read_array(document, attributes.unwrap_or_default()).ok(),
        zom::ZomFormat::V3 => match v3::read(document).ok()? {
            v3::Node::Array(model) => Some(*model),
            v3::Node::Group(_) => None,
        },
    }
}

/// The length of all chunks of a dimension, or a list of their lengths.
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

    fn array_summary(format: zom::ZomFormat, document: Value) -> NodeSummary {
        let node = zom::Node::Array(Json::compact(&document));
        NodeSummary::new(&NodePath::parse("/lab/mice").unwrap(), format.dialect(), format, &node)
    }

    #[test]
    fn arrays_of_both_versions_are_summarized() {
        let v3 = array_summary(
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
        let v2 = array_summary(
            zom::ZomFormat::V2,
            json!({"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": ">i2", "compressor": null, "fill_value": 0,
                "filters": null, "order": "C", "attributes": {"a": 1}}),
        );
        let array = v2.array.unwrap();
        assert_eq!((array.data_type.as_str(), array.chunking().as_str()), ("int16", "(2,)"));
    }

    #[test]
    fn unsupported_arrays_are_summarized() {
        let unsupported = array_summary(
            zom::ZomFormat::V3,
            json!({"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": {"name": "odd"}, "codecs": ["odder", 1]}),
        );
        let array = unsupported.array.unwrap();
        assert_eq!((array.shape, array.data_type, array.codecs), (vec![5], "odd".into(), vec!["odder".to_owned()]));
        assert_eq!(array.chunks, [] as [Value; 0]);
    }

    #[test]
    fn names_of_groups_end_in_a_slash() {
        let group = zom::Node::Group(zom::Group::default());
        let name =
            |path| NodeSummary::new(&NodePath::parse(path).unwrap(), Dialect::V2, zom::ZomFormat::V2, &group).name();
        assert_eq!((name("/"), name("/a/b")), ("/".into(), "b/".into()));
    }
}
