//! `zarrd info`: all that is known of a node.

mod stored;
mod text;

use client::{BrokenNode, Dialect, LinkTarget, NodeInfo, NodePath, zom};
use meta::{ArrayModel, extensions::Extension, json::Json};
use serde::Serialize;
use serde_json::{Value, json};

use self::stored::{Copies, Stored};
use crate::{
    config::{LookConfig, OutputForm},
    exit::Failure,
    hierarchy::{Card, Hierarchy, LookError, ProblemCard, array_model},
    signals::{HangUp, Signals},
    ui::Output,
};

/// What is told of a node.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    card: Card,
    /// Another one whenever the node's own documents are others.
    version: Option<String>,
    /// Whether it is a group because there are nodes below it, and for no other reason.
    implicit: bool,
    /// The other dialects in which there is a node at this path.
    also_as: Vec<&'static str>,
    attributes: Json,
    extensions: Vec<Value>,
    /// What the extensions of a group name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkReport>,
    /// What the document below does not say, since it is of another dialect than the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossReport>,
    #[serde(flatten)]
    of: KindReport,
    /// The node document.
    document: Json,
}

/// What is told of one kind of nodes only.
#[derive(Serialize)]
#[serde(untagged)]
enum KindReport {
    Array(Box<ArrayReport>),
    Group(GroupReport),
}

#[derive(Serialize)]
struct ArrayReport {
    fill_value: Option<Value>,
    dimension_names: Vec<Option<String>>,
    /// Where a view begins in what is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Vec<u64>>,
    /// The codecs with their configurations, in the order of encoding.
    pipeline: Vec<Value>,
    /// How many bytes all elements have, where each has the same size.
    bytes: Option<u64>,
    /// How many chunks there can be: in a sharded array, shards.
    num_chunks: Option<u64>,
    /// Nothing is told where nobody here knows which keys the chunks have.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<Stored>,
}

#[derive(Serialize)]
struct GroupReport {
    arrays: u64,
    groups: u64,
    /// How many members are of another dialect.
    other_dialects: u64,
    /// The members of which a document cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BrokenReport>,
    /// Whether there is consolidated metadata.
    consolidated: bool,
    /// The paths of nodes that only the consolidated metadata have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_consolidated: Vec<String>,
    /// Whether there may be more of these.
    #[serde(skip)]
    more_consolidated: bool,
}

#[derive(Serialize)]
struct BrokenReport {
    path: String,
    #[serde(flatten)]
    problem: ProblemCard,
}

#[derive(Serialize)]
struct LinkReport {
    extension: String,
    pointer: String,
    path: String,
    resolved: &'static str,
}

#[derive(Serialize)]
struct LossReport {
    path: String,
    pointer: String,
    property: String,
}

/// Tells.
pub(super) async fn run(config: LookConfig) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.place)).await?;
    let result = signals.unless_stopped(tell(&hierarchy, &config)).await;
    result.and(signals.finish(hierarchy.close()).await)
}

async fn tell(hierarchy: &Hierarchy, config: &LookConfig) -> Result<(), Failure> {
    let report = Report::of(hierarchy, config).await?;
    let mut output = Output::default();
    match config.form {
        OutputForm::Json => output.json(&report)?,
        OutputForm::Text => report.lines().iter().try_for_each(|line| output.line(line))?,
    }
    output.finish()
}

impl Report {
    async fn of(hierarchy: &Hierarchy, config: &LookConfig) -> Result<Self, Failure> {
        let found = hierarchy.look(&config.path, config.dialect, 1).await?;
        let also_as = also_as(hierarchy, &found.path, found.dialect).await?;
        let NodeInfo { path, dialect, implicit, version, zom, other_dialects, broken, losses, links } = found;
        let card = Card::of(&path, dialect, zom.format, &zom.root);
        let (document, of, extensions) = match zom.root {
            zom::Node::Array(document) => {
                let model = array_model(zom.format, &document);
                let stored = Stored::of(hierarchy, &path, dialect, model.as_ref()).await?;
                let extensions = extensions(model.as_ref(), &document);
                (document.clone(), KindReport::Array(Box::new(ArrayReport::of(model, &document, stored))), extensions)
            }
            zom::Node::Group(group) => {
                let copies = stored::copies(hierarchy, &path, dialect).await?;
                let of = GroupReport::of(&group, other_dialects.len(), broken, copies);
                let extensions = extensions(None, &group.document);
                (group.document, KindReport::Group(of), extensions)
            }
        };
        Ok(Self {
            card,
            version: version.map(|version| version.to_string()),
            implicit,
            also_as,
            attributes: document.get("attributes").filter(Json::is_object).unwrap_or_default(),
            extensions,
            links: links
                .into_iter()
                .map(|(link, target)| LinkReport {
                    extension: link.extension,
                    pointer: link.pointer,
                    path: link.path,
                    resolved: match target {
                        LinkTarget::Array => "array",
                        LinkTarget::Missing => "missing",
                    },
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
            of,
            document,
        })
    }
}

impl ArrayReport {
    fn of(model: Option<ArrayModel>, document: &Json, stored: Option<Stored>) -> Self {
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
        let elements = model.view_shape().iter().try_fold(1_u64, |all, &extent| all.checked_mul(extent));
        let size = match model.data_type.layout() {
            meta::data_type::Layout::Fixed(layout) => u64::try_from(layout.size).ok(),
            meta::data_type::Layout::Variable => None,
        };
        let pieces = model.grid.dimensions().iter().zip(&model.shape);
        Self {
            fill_value,
            bytes: elements.zip(size).and_then(|(elements, size)| elements.checked_mul(size)),
            num_chunks: pieces.map(|(grid, &extent)| grid.num_chunks(extent)).try_fold(1_u64, u64::checked_mul),
            pipeline: model
                .codecs
                .iter()
                .map(|codec| json!({"name": codec.name, "configuration": codec.configuration}))
                .collect(),
            origin: model.view_offset.iter().any(|&origin| origin != 0).then_some(model.view_offset),
            dimension_names: model.dimension_names,
            stored,
        }
    }
}

impl GroupReport {
    fn of(group: &zom::Group, others: usize, broken: Vec<BrokenNode>, copies: Copies) -> Self {
        let is_array = |node: &&zom::Node| matches!(node, zom::Node::Array(_));
        let members = || group.members.iter().flatten().map(|(_, node)| node);
        let (all, arrays) = (members().count() as u64, members().filter(is_array).count() as u64);
        let broken = broken.into_iter().map(|BrokenNode { path, key, reason, .. }| BrokenReport {
            path: path.to_string(),
            problem: ProblemCard { key: key.to_string(), reason },
        });
        Self {
            arrays,
            groups: all - arrays,
            other_dialects: others as u64,
            broken: broken.collect(),
            consolidated: copies.there,
            only_consolidated: copies.only,
            more_consolidated: copies.more,
        }
    }
}

/// The extensions as the document has them, or as they are read from one that has them elsewhere.
fn extensions(model: Option<&ArrayModel>, document: &Json) -> Vec<Value> {
    let listed = values(document, "extensions");
    match model {
        Some(model) if listed.is_empty() => model.extensions.iter().map(extension).collect(),
        _ => listed,
    }
}

/// The elements of a member that is an array.
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

/// The other dialects in which there is a node at the path for another reason than that there are nodes below it.
async fn also_as(hierarchy: &Hierarchy, path: &NodePath, shown: Dialect) -> Result<Vec<&'static str>, Failure> {
    let mut found = Vec::new();
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != shown) {
        match hierarchy.look(path, Some(dialect), 0).await {
            Ok(node) if !node.implicit => found.push(dialect.name()),
            Ok(_) | Err(LookError::Missing { .. }) => {}
            // What cannot be read there is no node.
            Err(error) => drop(error.into_broken(path, dialect)?),
        }
    }
    Ok(found)
}
