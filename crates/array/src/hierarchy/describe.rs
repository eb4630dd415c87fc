//! Describing nodes: from the documents of a walk to the Zarr Object Model.

use std::sync::Arc;

use meta::{
    Dialect, NodePath,
    convert::{ChunkKeyPolicy, Converted, Loss},
    documents::write::strip_consolidated,
    extensions::Link,
    json::Json,
    zom::{Group, Members, Node, Zom, ZomFormat, with_attributes},
};
use operations::{BrokenNode, LinkTarget, NodeInfo};
use store::until_unchanged;

use super::{options::DescribedNode, walk::walker::Walk};
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

/// The number of small nodes up to which a description is made on the request's own thread.
const INLINE_NODES: usize = 256;

/// The work of copying a described node, expressed as the size of a document in bytes.
const CLONE_WORK: u64 = 256;

/// The properties and nodes that a ZOM cannot represent.
#[derive(Debug, Default)]
pub(crate) struct Unrepresented {
    /// Properties that its dialect does not have, with the path of their node.
    pub(crate) losses: Vec<(NodePath, Loss)>,
    /// Broken nodes, which are left out.
    pub(crate) broken: Vec<BrokenNode>,
}

/// A tree that was just created, where nothing existed before.
pub(crate) struct CreatedTree {
    /// The topmost node, without its members.
    pub(crate) top: NodeTree,
    description: CreatedDescription,
}

/// The description of a created tree.
enum CreatedDescription {
    /// As it was declared.
    Declared(Arc<Zom>),
    /// In the model of its dialect, which is another one than that of its declaration.
    Converted(Zom, Unrepresented),
}

impl CreatedTree {
    /// The tree that was planned for a declaration. Takes little more memory than the declaration.
    pub(crate) fn new(planned: NodeTree, declared: Arc<Zom>) -> Result<Self, NodeError> {
        let format = ZomFormat::for_dialect(planned.dialect);
        let top = planned.without_members();
        if planned.dialect == declared.format.dialect() {
            return Ok(Self { top, description: CreatedDescription::Declared(declared) });
        }
        let mut unrepresented = Unrepresented::default();
        let mut root = to_zom(&planned, format, &mut unrepresented)?;
        nothing_else(&mut root);
        Ok(Self { top, description: CreatedDescription::Converted(Zom { format, root }, unrepresented) })
    }
}

/// Describes a tree that was just created.
pub(crate) async fn describe_created(context: &Context, created: CreatedTree) -> Result<DescribedNode, NodeError> {
    let CreatedTree { top, description } = created;
    let links = links(context, &top).await?;
    let (zom, Unrepresented { losses, broken }) = match description {
        CreatedDescription::Converted(zom, unrepresented) => (zom, unrepresented),
        CreatedDescription::Declared(declared) => {
            let bytes = (declared.len() as u64).saturating_mul(CLONE_WORK);
            let copy = move || {
                let mut zom = Zom::clone(&declared);
                nothing_else(&mut zom.root);
                zom
            };
            (context.run_on_documents(bytes, copy).await?, Unrepresented::default())
        }
    };
    let NodeTree { path, dialect, own, .. } = top;
    let (version, other_dialects) = (Some(own.version()), Vec::new());
    let info = NodeInfo { path, dialect, implicit: false, version, zom, other_dialects, broken, losses, links };
    Ok(DescribedNode { info, memory: Arc::default() })
}

/// Marks groups without members in a ZOM as having none.
fn nothing_else(node: &mut Node) {
    if let Node::Group(group) = node {
        group.members.get_or_insert_default().values_mut().for_each(nothing_else);
    }
}

/// Describes a node; with `mapped` in the model of that dialect.
pub(crate) async fn describe(
    context: &Context,
    walk: Walk,
    mapped: Option<Dialect>,
) -> Result<DescribedNode, NodeError> {
    let Walk { top, other, memory, .. } = walk;
    let links = links(context, &top).await?;
    let (path, dialect, implicit) = (top.path.clone(), top.dialect, top.is_implicit());
    let version = (!implicit).then(|| top.own.version());
    let as_version = ZomFormat::for_dialect(mapped.unwrap_or(dialect));
    let is_small = memory.is_empty() && top.all().len() <= INLINE_NODES;
    let build = move || {
        let mut unrepresented = Unrepresented::default();
        let root = to_zom(&top, as_version, &mut unrepresented)?;
        Ok::<_, NodeError>((Zom { format: as_version, root }, unrepresented))
    };
    let (zom, Unrepresented { losses, broken }) = match is_small {
        true => build()?,
        false => {
            context.run_on_documents(memory.iter().map(Permit::bytes).fold(0, u64::saturating_add), build).await??
        }
    };
    let memory = Arc::new(memory);
    let info = NodeInfo { path, dialect, implicit, version, zom, other_dialects: other, broken, losses, links };
    Ok(DescribedNode { info, memory })
}

/// A node in a dialect's model, with what it cannot represent. Broken members are left out.
pub(crate) fn to_zom(
    branch: &NodeTree,
    version: ZomFormat,
    unrepresented: &mut Unrepresented,
) -> Result<Node, NodeError> {
    let document = without_consolidated(branch, version, &mut unrepresented.losses)?;
    if branch.kind == NodeKind::Array {
        return Ok(Node::Array(document));
    }
    let Some(members) = &branch.members else { return Ok(Node::Group(Group { document, members: None })) };
    let mut readable = Members::with_capacity(members.len());
    for (name, member) in members {
        let (path, dialect) = (member.path.clone(), member.dialect);
        match member_to_zom(member, version, unrepresented)? {
            Ok(node) => drop(readable.insert(name.clone(), node)),
            Err(problem) => unrepresented.broken.push(problem.at(path, dialect)),
        }
    }
    Ok(Node::Group(Group { document, members: Some(readable) }))
}

/// A node in a dialect's model, without its members.
pub(crate) fn node_alone(branch: &NodeTree, version: ZomFormat) -> Result<Node, NodeError> {
    let document = without_consolidated(branch, version, &mut Vec::new())?;
    Ok(match branch.kind {
        NodeKind::Array => Node::Array(document),
        NodeKind::Group => Node::Group(Group { document, members: None }),
    })
}

/// A member in a dialect's model, or the reason why it is left out.
fn member_to_zom(
    member: &NodeTree,
    version: ZomFormat,
    unrepresented: &mut Unrepresented,
) -> Result<Result<Node, Broken>, NodeError> {
    if let Some(broken) = &member.broken {
        return Ok(Err(Broken::clone(broken)));
    }
    match to_zom(member, version, unrepresented) {
        Ok(node) => Ok(Ok(node)),
        Err(NodeError::Array(ArrayError::Document { key, source })) => Ok(Err(Broken::new(&key, &source))),
        Err(error) => Err(error),
    }
}

/// The document of a node in a dialect's model.
fn without_consolidated(
    branch: &NodeTree,
    version: ZomFormat,
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
    let chunks = if branch.dialect == Dialect::V2 { ChunkKeyPolicy::Preserve } else { ChunkKeyPolicy::Preferred };
    let Converted { document, losses: lost } = read_model(branch)?.convert(&branch.path, to, chunks)?;
    losses.extend(lost.into_iter().map(|loss| (branch.path.clone(), loss)));
    Ok(document)
}

/// The arrays that extensions of a group link to.
async fn links(context: &Context, top: &NodeTree) -> Result<Vec<(Link, LinkTarget)>, NodeError> {
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
