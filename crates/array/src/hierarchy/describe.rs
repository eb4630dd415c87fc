//! Describing nodes: from the documents of a walk to the Zarr Object Model.

use std::sync::Arc;

use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    convert::{ArrayContext, ChunkPolicy, Converted, Loss},
    documents::write::{StoredNode, strip_consolidated},
    extensions::Link,
    json::Json,
    zom::{Group, Members, Node, Zom, ZomFormat, with_attributes},
};
use zarrd_operations::{BrokenNode, LinkTarget, NodeInfo};
use zarrd_store::until_unchanged;

use super::{array_contexts::has_named_arrays, options::DescribedNode, walk::walker::Walk};
use crate::{
    context::Context,
    error::ArrayError,
    memory::claim::Permit,
    metadata::{
        error::NodeError,
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree},
    },
    node::{broken::Broken, resolved::ResolvedNode},
};

/// The number of links of one group that are resolved.
const MAX_LINKS: usize = 1024;

/// The properties and nodes that a ZOM cannot represent.
#[derive(Debug, Default)]
pub(crate) struct Unrepresented {
    /// Properties that its dialect does not have, with the path of their node.
    pub(crate) losses: Vec<(NodePath, Loss)>,
    /// Broken nodes, which are left out.
    pub(crate) broken: Vec<BrokenNode>,
}

/// Describes a node; with `mapped` in the model of that dialect.
pub(crate) async fn describe(
    context: &Context,
    walk: Walk,
    mapped: Option<Dialect>,
) -> Result<DescribedNode, NodeError> {
    let Walk { top, other, relation, files, unlisted, memory } = walk;
    let links = links(context, &top).await?;
    let (path, dialect, implicit) = (top.path.clone(), top.dialect, top.is_implicit());
    let version = (!implicit).then(|| top.own.version());
    let as_version = ZomFormat::for_dialect(mapped.unwrap_or(dialect));
    let cost = Cost::of(Work::Tree, memory.iter().map(Permit::bytes).fold(0, u64::saturating_add));
    let build = move || {
        let mut unrepresented = Unrepresented::default();
        let root = into_zom(top, as_version, ChunkPolicy::Preferred, &mut unrepresented)?;
        Ok::<_, NodeError>((Zom { format: as_version, root }, unrepresented))
    };
    let (zom, Unrepresented { losses, broken }) = context.run(cost, build).await??;
    let memory = Arc::new(memory);
    let info =
        NodeInfo { path, dialect, implicit, version, relation, zom, other_dialects: other, broken, losses, links };
    Ok(DescribedNode { info, files, unlisted, memory })
}

/// A node in a dialect's model, with what it cannot represent. Broken members are left out. The memory of the tree is
/// released meanwhile.
pub(crate) fn into_zom(
    tree: NodeTree,
    format: ZomFormat,
    chunks: ChunkPolicy,
    unrepresented: &mut Unrepresented,
) -> Result<Node, NodeError> {
    let mut describer = Describer { format, chunks, unrepresented, last: None };
    let document = describer.document(&tree, ArrayContext::default())?;
    describer.node(tree, document)
}

/// Describes the nodes of a tree.
struct Describer<'a> {
    format: ZomFormat,
    chunks: ChunkPolicy,
    unrepresented: &'a mut Unrepresented,
    /// The last description without losses: most groups of a large tree have the same documents.
    last: Option<(Arc<StoredNode>, NodeKind, ArrayContext, Json)>,
}

impl Describer<'_> {
    /// The node with this document, and its members.
    fn node(&mut self, tree: NodeTree, document: Json) -> Result<Node, NodeError> {
        if tree.kind == NodeKind::Array {
            return Ok(Node::Array(document));
        }
        let is_in_named_group = tree.dialect != self.format.dialect() && has_named_arrays(&tree);
        let context = ArrayContext { is_in_named_group, ..ArrayContext::default() };
        let Some(members) = tree.members else { return Ok(Node::Group(Group { document, members: None })) };
        let mut readable = Members::with_capacity(members.len());
        for (name, member) in members {
            match self.member_document(&member, context)? {
                Ok(document) => drop(readable.insert(name, self.node(member, document)?)),
                Err(problem) => self.unrepresented.broken.push(problem.at(member.path, member.dialect)),
            }
        }
        Ok(Node::Group(Group { document, members: Some(readable) }))
    }

    /// The document of a member, or the reason why it is left out.
    fn member_document(&mut self, member: &NodeTree, context: ArrayContext) -> Result<Result<Json, Broken>, NodeError> {
        if let Some(broken) = &member.broken {
            return Ok(Err(Broken::clone(broken)));
        }
        match self.document(member, context) {
            Ok(document) => Ok(Ok(document)),
            Err(NodeError::Array(ArrayError::Document { key, source })) => Ok(Err(Broken::new(&key, &source))),
            Err(error) => Err(error),
        }
    }

    fn document(&mut self, node: &NodeTree, context: ArrayContext) -> Result<Json, NodeError> {
        if let Some((stored, kind, of, document)) = &self.last
            && Arc::ptr_eq(stored, &node.stored)
            && *kind == node.kind
            && *of == context
        {
            return Ok(document.clone());
        }
        let before = self.unrepresented.losses.len();
        let document = converted_document(node, (self.format, self.chunks), context, &mut self.unrepresented.losses)?;
        // The document of an array of the draft also depends on its path.
        let is_general = node.kind == NodeKind::Group || node.dialect != Dialect::Draft;
        let is_general = is_general && self.unrepresented.losses.len() == before;
        self.last = is_general.then(|| (node.stored.clone(), node.kind, context, document.clone()));
        Ok(document)
    }
}

/// A node in a dialect's model, without its members.
pub(crate) fn node_alone(branch: &NodeTree, version: ZomFormat) -> Result<Node, NodeError> {
    let document = without_consolidated(branch, version, &mut Vec::new())?;
    Ok(match branch.kind {
        NodeKind::Array => Node::Array(document),
        NodeKind::Group => Node::Group(Group { document, members: None }),
    })
}

/// The document of a node in a dialect's model.
pub(crate) fn without_consolidated(
    branch: &NodeTree,
    version: ZomFormat,
    losses: &mut Vec<(NodePath, Loss)>,
) -> Result<Json, NodeError> {
    converted_document(branch, (version, ChunkPolicy::Preferred), ArrayContext::default(), losses)
}

/// The document of a node with some context in a dialect's model.
fn converted_document(
    branch: &NodeTree,
    (version, chunks): (ZomFormat, ChunkPolicy),
    context: ArrayContext,
    losses: &mut Vec<(NodePath, Loss)>,
) -> Result<Json, NodeError> {
    let to = version.dialect();
    if branch.dialect == to {
        let document = branch.stored.node_document(to);
        return Ok(match (branch.kind, to) {
            (NodeKind::Group, Dialect::V3) => with_attributes(&strip_consolidated(&document)),
            _ => with_attributes(&document),
        });
    }
    // Chunk keys of v2 are valid in v3.
    let chunks = if branch.dialect == Dialect::V2 { ChunkPolicy::Preserve } else { chunks };
    let Converted { document, losses: lost } = read_model(branch)?.convert(&branch.path, to, chunks, context)?;
    losses.extend(lost.into_iter().map(|loss| (branch.path.clone(), loss)));
    Ok(document)
}

/// The arrays that extensions of a group link to.
pub(crate) async fn links(context: &Context, top: &NodeTree) -> Result<Vec<(Link, LinkTarget)>, NodeError> {
    if top.kind == NodeKind::Array || top.is_implicit() || top.stored.document.get("extensions").is_none() {
        return Ok(Vec::new());
    }
    let NodeModel::Group(model) = read_model(top)? else { return Ok(Vec::new()) };
    let mut links = Vec::new();
    for link in model.links().into_iter().take(MAX_LINKS) {
        let path = NodePath::parse(&format!("{}{}", top.path.key_prefix(), link.path));
        let linked = match path {
            Err(_) => LinkTarget::Missing,
            Ok(path) if !context.can_read(&path) => LinkTarget::Missing,
            Ok(path) => match until_unchanged(|| context.resolve_node(&path, None)).await {
                Ok(Some(ResolvedNode::Array(_))) => LinkTarget::Array,
                Ok(_) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => LinkTarget::Missing,
                Err(ArrayError::NoSuchNode { .. }) => LinkTarget::Missing,
                Err(error) => return Err(error.into()),
            },
        };
        links.push((link, linked));
    }
    Ok(links)
}
