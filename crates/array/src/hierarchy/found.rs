//! From what a walk found to what is told of it.

use std::sync::Arc;

use meta::{
    ArrayModel, Dialect, NodePath,
    convert::{self, Chunks, Converted, Loss},
    documents::{
        DocumentError, GroupModel, draft, v2, v3,
        write::{StoredNode, without_copies},
    },
    extensions::Link,
    json::Json,
    zom::{Group, Members, Node, Version, Zom, completed},
};

use super::{
    FoundNode, Linked, NodeError,
    walk::{Branch, Form, Walk},
};
use crate::{
    ArrayError,
    broken::{Broken, BrokenNode, read_v3},
    find::{Sight, wrong},
    share::Permit,
    shared::Shared,
};

/// How many links of one group are looked at.
const MAX_LINKS: usize = 1024;

/// How many small nodes are told where the request is.
const FEW: usize = 256;

/// What a ZOM does not say of the nodes that were found.
#[derive(Debug, Default)]
pub(super) struct Untold {
    /// What its dialect does not have, with the path of the node.
    pub(super) losses: Vec<(NodePath, Loss)>,
    /// The nodes that are left out.
    pub(super) broken: Vec<BrokenNode>,
}

/// The model of a node.
pub(super) enum Model {
    Array(Box<ArrayModel>),
    Group(GroupModel),
}

impl Model {
    /// Reads the documents of a node of a dialect; of the draft, those of the node `below` the hierarchy's root.
    pub(super) fn read(dialect: Dialect, form: Form, stored: &StoredNode, below: &str) -> Result<Self, DocumentError> {
        let array = |model| Self::Array(Box::new(model));
        let document = stored.document.clone();
        let attributes = || stored.attributes.clone().unwrap_or_default();
        match (dialect, form) {
            (Dialect::V3, _) => read_v3(document).map(|node| match node {
                v3::Node::Array(model) => Self::Array(model),
                v3::Node::Group(model) => Self::Group(model),
            }),
            (Dialect::Draft, Form::Array) => draft::read_array(document, below).map(array),
            (Dialect::Draft, Form::Group) => draft::read_group(document).map(Self::Group),
            (Dialect::V2, Form::Array) => v2::read_array(document, attributes()).map(array),
            (Dialect::V2, Form::Group) => v2::read_group(document, attributes()).map(Self::Group),
        }
    }

    /// Its document in another dialect.
    pub(super) fn convert(&self, path: &NodePath, to: Dialect, chunks: Chunks) -> Result<Converted, NodeError> {
        match self {
            Self::Array(model) => convert::array(model, to, chunks)
                .map_err(|source| NodeError::Inconvertible { path: path.clone(), source }),
            Self::Group(model) => Ok(convert::group(model, to)),
        }
    }
}

/// The model of a node that was found.
pub(super) fn model_of(branch: &Branch) -> Result<Model, NodeError> {
    if let Some(broken) = &branch.broken {
        return Err(ArrayError::Broken(broken.clone()).into());
    }
    let below = branch.root.as_ref().and_then(|root| branch.path.below(&root.path)).unwrap_or_default();
    Model::read(branch.dialect, branch.form, &branch.stored, below).map_err(|source| match branch.own.0.first() {
        Some((key, _)) => wrong(key, source).into(),
        None => ArrayError::NoSuchNode { path: branch.path.clone() }.into(),
    })
}

/// What is told of a node; with `mapped` all by the model of that dialect.
pub(super) async fn found(shared: &Shared, walk: Walk, mapped: Option<Dialect>) -> Result<FoundNode, NodeError> {
    let Walk { top, other, memory, .. } = walk;
    let links = links(shared, &top).await?;
    let (path, dialect, implicit) = (top.path.clone(), top.dialect, top.is_implicit());
    let version = (!implicit).then(|| top.own.version());
    let as_version = Version::of(mapped.unwrap_or(dialect));
    let few = memory.is_empty() && top.all().len() <= FEW;
    let tell = move || {
        let mut untold = Untold::default();
        let root = told(top, as_version, &mut untold)?;
        Ok::<_, NodeError>((Zom { version: as_version, root }, untold))
    };
    let (zom, Untold { losses, broken }) = match few {
        true => tell()?,
        false => shared.on_documents(memory.iter().map(Permit::bytes).fold(0, u64::saturating_add), tell).await??,
    };
    let memory = Arc::new(memory);
    Ok(FoundNode { path, dialect, implicit, version, zom, other, broken, losses, links, memory })
}

/// A node by a model, with what that does not say. Broken members are left out.
pub(super) fn told(mut branch: Branch, version: Version, untold: &mut Untold) -> Result<Node, NodeError> {
    let document = shown(&mut branch, version, &mut untold.losses)?;
    if branch.form == Form::Array {
        return Ok(Node::Array(document));
    }
    let Some(members) = branch.members else { return Ok(Node::Group(Group { document, members: None })) };
    let mut readable = Vec::new();
    for (name, member) in members {
        let (path, dialect) = (member.path.clone(), member.dialect);
        match told_member(member, version, untold)? {
            Ok(node) => readable.push((name, node)),
            Err(problem) => untold.broken.push(BrokenNode { path, dialect, problem }),
        }
    }
    Ok(Node::Group(Group { document, members: Some(readable.into_iter().collect::<Members<_>>()) }))
}

/// A member by a model, or why it is left out.
fn told_member(member: Branch, version: Version, untold: &mut Untold) -> Result<Result<Node, Broken>, NodeError> {
    if let Some(broken) = member.broken {
        return Ok(Err(broken));
    }
    match told(member, version, untold) {
        Ok(node) => Ok(Ok(node)),
        Err(NodeError::Array(ArrayError::Document { key, source })) => Ok(Err(Broken::new(&key, &source))),
        Err(error) => Err(error),
    }
}

/// A node's document by a model, taken out of the node where it is of that model.
fn shown(branch: &mut Branch, version: Version, losses: &mut Vec<(NodePath, Loss)>) -> Result<Json, NodeError> {
    let to = version.dialect();
    if branch.dialect == to {
        let document = std::mem::take(&mut branch.stored).node_document(to);
        return Ok(match (branch.form, to) {
            (Form::Group, Dialect::V3) => completed(&without_copies(&document)),
            _ => completed(&document),
        });
    }
    // The chunks of v2 have names that v3 has too.
    let chunks = if branch.dialect == Dialect::V2 { Chunks::Kept } else { Chunks::Moved };
    let Converted { document, losses: lost } = model_of(branch)?.convert(&branch.path, to, chunks)?;
    losses.extend(lost.into_iter().map(|loss| (branch.path.clone(), loss)));
    Ok(document)
}

/// The arrays that extensions of a group name.
async fn links(shared: &Shared, top: &Branch) -> Result<Vec<(Link, Linked)>, NodeError> {
    if top.form == Form::Array || top.is_implicit() || top.stored.document.get("extensions").is_none() {
        return Ok(Vec::new());
    }
    let Model::Group(model) = model_of(top)? else { return Ok(Vec::new()) };
    let mut links = Vec::new();
    for link in model.links().into_iter().take(MAX_LINKS) {
        let path = NodePath::parse(&format!("{}{}", top.path.key_prefix(), link.path));
        let linked = match path {
            Err(_) => Linked::Missing,
            Ok(path) => match shared.see(&path, None).await {
                Ok(Some(Sight::Array(_))) => Linked::Array,
                Ok(_) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Linked::Missing,
                Err(ArrayError::NoSuchNode { .. }) => Linked::Missing,
                Err(error) => return Err(error.into()),
            },
        };
        links.push((link, linked));
    }
    Ok(links)
}
