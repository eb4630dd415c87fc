//! `zarrd info`: shows a node's metadata.

mod stored;
mod text;

use futures::TryFutureExt;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use zarrd_client::{BrokenNode, Dialect, LinkTarget, NodeInfo, NodePath, zom};
use zarrd_meta::{ArrayModel, extensions::Extension, json::Json, relation::DialectRelation};

use self::stored::{ConsolidatedMetadata, StoredChunks};
use crate::{
    config::{NodeConfig, OutputFormat},
    error::Error,
    hierarchy::{DocumentProblem, Hierarchy, NodeReadError, NodeSummary, array_model},
    signals::{HangUp, Signals},
    ui::Output,
};

/// The output for a node.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    summary: NodeSummary,
    /// Version of the node's own documents.
    version: Option<String>,
    /// True for a group without a document, which exists because it has descendants.
    implicit: bool,
    /// Other dialects of which a node exists at the path.
    also_as: Vec<&'static str>,
    /// What differs between the documents of v2 and v3.
    #[serde(skip_serializing_if = "Option::is_none")]
    dialects_differ: Option<&'static str>,
    attributes: Json,
    extensions: Vec<Value>,
    /// Nodes to which extensions of a group refer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkReport>,
    /// Information that `document` cannot represent, since it has another format than the stored one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossReport>,
    #[serde(flatten)]
    details: NodeDetails,
    /// The metadata document of the node.
    document: Json,
}

/// The part of the output that depends on the kind of the node.
#[derive(Serialize)]
#[serde(untagged)]
enum NodeDetails {
    Array(Box<ArrayReport>),
    Group(GroupReport),
}

#[derive(Serialize)]
struct ArrayReport {
    fill_value: Option<Value>,
    dimension_names: Vec<Option<String>>,
    /// Offset of a view in the stored array.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Vec<u64>>,
    /// The codecs with their configurations, in the order of encoding.
    pipeline: Vec<Value>,
    /// Size of all elements in bytes, if each has the same size.
    bytes: Option<u64>,
    /// Number of chunks within the shape; of shards in a sharded array.
    num_chunks: Option<u64>,
    /// `None` if the keys of the chunks are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<StoredChunks>,
}

#[derive(Serialize)]
struct GroupReport {
    arrays: u64,
    groups: u64,
    /// Number of members of another dialect.
    other_dialects: u64,
    /// Members with an invalid document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BrokenReport>,
    /// True if the group has consolidated metadata.
    consolidated: bool,
    /// Paths of nodes that exist only in consolidated metadata.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_consolidated: Vec<String>,
    /// True if there may be more such nodes.
    #[serde(skip)]
    only_consolidated_truncated: bool,
}

#[derive(Serialize)]
struct BrokenReport {
    path: String,
    #[serde(flatten)]
    problem: DocumentProblem,
}

#[derive(Serialize)]
struct LinkReport {
    extension: String,
    pointer: String,
    path: String,
    #[serde(serialize_with = "name_of")]
    resolved: LinkTarget,
}

fn name_of<S: Serializer>(target: &LinkTarget, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(target.name())
}

#[derive(Serialize)]
struct LossReport {
    path: String,
    pointer: String,
    property: String,
}

/// Runs the command.
pub(super) async fn run(config: NodeConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.endpoint)).await?;
    let result = signals.unless_stopped(show(&hierarchy, &config)).await;
    result.and(signals.finish(hierarchy.close().err_into()).await)
}

async fn show(hierarchy: &Hierarchy, config: &NodeConfig) -> Result<(), Error> {
    let report = Report::read(hierarchy, config).await?;
    let mut output = Output::default();
    match config.format {
        OutputFormat::Json => output.json(&report)?,
        OutputFormat::Text => report.lines().iter().try_for_each(|line| output.line(line))?,
    }
    Ok(output.finish()?)
}

impl Report {
    async fn read(hierarchy: &Hierarchy, config: &NodeConfig) -> Result<Self, Error> {
        let node = hierarchy.node(&config.path, config.dialect, 1).await?;
        let also_as = also_as(hierarchy, &node.path, node.dialect).await?;
        let NodeInfo { path, dialect, implicit, version, relation, zom, other_dialects, broken, losses, links } = node;
        let summary = NodeSummary::new(&path, dialect, zom.format, &zom.root);
        let (document, details, extensions) = match zom.root {
            zom::Node::Array(document) => {
                let model = array_model(zom.format, &document);
                let stored = StoredChunks::count(hierarchy, &path, dialect, model.as_ref()).await?;
                let extensions = extensions(model.as_ref(), &document);
                (document.clone(), NodeDetails::Array(Box::new(ArrayReport::new(model, &document, stored))), extensions)
            }
            zom::Node::Group(group) => {
                let consolidated = stored::consolidated_metadata(hierarchy, &path, dialect).await?;
                let details = GroupReport::new(&group, other_dialects.len(), broken, consolidated);
                let extensions = extensions(None, &group.document);
                (group.document, NodeDetails::Group(details), extensions)
            }
        };
        Ok(Self {
            summary,
            version: version.map(|version| version.to_string()),
            implicit,
            also_as,
            dialects_differ: relation.filter(|relation| *relation != DialectRelation::Same).map(DialectRelation::name),
            attributes: document.get("attributes").filter(Json::is_object).unwrap_or_default(),
            extensions,
            links: links
                .into_iter()
                .map(|(link, target)| LinkReport {
                    extension: link.extension,
                    pointer: link.pointer,
                    path: link.path,
                    resolved: target,
                })
                .collect(),
            losses: losses
                .into_iter()
                .map(|(path, loss)| LossReport {
                    path: path.to_string(),
                    pointer: loss.pointer,
                    property: loss.property,
                })
                .collect(),
            details,
            document,
        })
    }
}

impl ArrayReport {
    fn new(model: Option<ArrayModel>, document: &Json, stored: Option<StoredChunks>) -> Self {
        let fill_value = document.get("fill_value").and_then(|fill_value| fill_value.to_value().ok());
        let Some(model) = model else {
            return Self {
                fill_value,
                dimension_names: Vec::new(),
                origin: None,
                pipeline: values(document, "codecs"),
                bytes: None,
                num_chunks: None,
                stored,
            };
        };
        let elements = model.view_shape().iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
        let size = match model.data_type.layout() {
            zarrd_meta::data_type::Layout::Fixed(layout) => u64::try_from(layout.size).ok(),
            zarrd_meta::data_type::Layout::Variable => None,
        };
        let dimensions = model.grid.dimensions().iter().zip(&model.shape);
        Self {
            fill_value,
            bytes: elements.zip(size).and_then(|(elements, size)| elements.checked_mul(size)),
            num_chunks: dimensions.map(|(grid, &extent)| grid.num_chunks(extent)).try_fold(1_u64, u64::checked_mul),
            pipeline: model
                .codecs
                .iter()
                .map(|codec| json!({"name": codec.name, "configuration": codec.configuration}))
                .collect(),
            origin: model.view_offset.iter().any(|&offset| offset != 0).then_some(model.view_offset),
            dimension_names: model.dimension_names,
            stored,
        }
    }
}

impl GroupReport {
    fn new(
        group: &zom::Group,
        other_dialects: usize,
        broken: Vec<BrokenNode>,
        consolidated: ConsolidatedMetadata,
    ) -> Self {
        let is_array = |node: &&zom::Node| matches!(node, zom::Node::Array(_));
        let members = || group.members.iter().flatten().map(|(_, node)| node);
        let (total, arrays) = (members().count() as u64, members().filter(is_array).count() as u64);
        let broken = broken.into_iter().map(|BrokenNode { path, key, reason, .. }| BrokenReport {
            path: path.to_string(),
            problem: DocumentProblem { key: key.to_string(), reason },
        });
        Self {
            arrays,
            groups: total - arrays,
            other_dialects: other_dialects as u64,
            broken: broken.collect(),
            consolidated: consolidated.exists,
            only_consolidated: consolidated.missing_nodes,
            only_consolidated_truncated: consolidated.truncated,
        }
    }
}

/// The extensions in the document, or those parsed from elsewhere in it.
fn extensions(model: Option<&ArrayModel>, document: &Json) -> Vec<Value> {
    let listed = values(document, "extensions");
    match model {
        Some(model) if listed.is_empty() => model.extensions.iter().map(extension).collect(),
        _ => listed,
    }
}

/// The items of a member that is a JSON array.
fn values(document: &Json, name: &str) -> Vec<Value> {
    let list = document.get(name);
    list.map(|list| list.items().filter_map(|item| item.to_value().ok()).collect()).unwrap_or_default()
}

fn extension(extension: &Extension) -> Value {
    json!({
        "name": extension.name,
        "configuration": extension.configuration,
        "must_understand": extension.must_understand,
    })
}

/// Other dialects of which a node with a document exists at the path.
async fn also_as(hierarchy: &Hierarchy, path: &NodePath, own: Dialect) -> Result<Vec<&'static str>, Error> {
    let mut dialects = Vec::new();
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != own) {
        match hierarchy.node(path, Some(dialect), 0).await {
            Ok(node) if !node.implicit => dialects.push(dialect.name()),
            Ok(_) | Err(NodeReadError::NotFound { .. }) => {}
            // A node with an invalid document is left out; other errors are returned.
            Err(error) => drop(error.into_broken(path, dialect)?),
        }
    }
    Ok(dialects)
}
