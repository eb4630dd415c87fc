//! Planning: from a ZOM to the documents of nodes in a dialect.

use std::sync::Arc;

use zarrd_meta::{
    Dialect, NodePath,
    convert::{ArrayContext, ChunkPolicy, Converted, Loss},
    documents::write::StoredNode,
    json::Json,
    names,
    zom::{Group, Members, Node, Zom, ZomFormat},
};
use zarrd_store::{Key, Prefix};

use super::{
    array_contexts::{ArrayContexts, has_dimension_names},
    describe::node_alone,
};
use crate::{
    error::ArrayError,
    metadata::{
        error::NodeError,
        keys,
        model::NodeModel,
        tree::{NodeKind, NodeTree, from_document},
    },
    node::{array::Array, keys::invalid_document, read_set::NodeVersions, resolved::DraftHierarchy},
};

/// The dialect of planned nodes, and the draft hierarchy that contains them.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) dialect: Dialect,
    pub(crate) root: Option<Arc<DraftHierarchy>>,
}

/// A planned tree. None of its documents is known to exist: those of the topmost node have their keys, but no versions,
/// and the other nodes not even these.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) top: NodeTree,
    /// Properties that the dialect cannot represent.
    pub(crate) losses: Vec<(NodePath, Loss)>,
}

impl Plan {
    /// Plans a tree at a path. Fails if the dialect has no such node, or if the result could not be opened.
    ///
    /// `contexts` are those of the arrays that it is a copy of.
    pub(crate) fn new(
        path: &NodePath,
        zom: &Zom,
        site: &Target,
        (chunks, contexts): (ChunkPolicy, &ArrayContexts),
    ) -> Result<Self, NodeError> {
        let mut planner = Planner {
            chunks,
            from: zom.format.dialect(),
            site,
            contexts,
            top: path,
            losses: Vec::new(),
            last: Arc::default(),
            planned: None,
        };
        let mut top = planner.branch(path, &zom.root, false)?;
        let losses = planner.losses;
        let keys = keys::document_keys(path, top.dialect, top.kind, top.root.as_ref())?;
        top.own = NodeVersions(keys.into_iter().map(|key| (key, None)).collect());
        Ok(Self { top, losses })
    }

    /// Fails if the model of its dialect cannot represent the planned tree.
    pub(crate) fn check_representable(&self) -> Result<(), NodeError> {
        let format = ZomFormat::for_dialect(self.top.dialect);
        node_alone(&self.top, format)?;
        for node in self.top.all() {
            match node_alone(node, format) {
                // A description leaves it out, as a broken node.
                Ok(_) | Err(NodeError::Array(ArrayError::Document { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Checks the name of a new node.
pub(crate) fn check_name(dialect: Dialect, path: &NodePath) -> Result<(), NodeError> {
    match path.name() {
        None => Ok(()),
        Some(name) => names::check(dialect, name).map_err(|source| NodeError::Name { path: path.clone(), source }),
    }
}

/// The state of planning a tree.
struct Planner<'a> {
    chunks: ChunkPolicy,
    /// The dialect of the documents that were declared.
    from: Dialect,
    site: &'a Target,
    contexts: &'a ArrayContexts,
    top: &'a NodePath,
    losses: Vec<(NodePath, Loss)>,
    /// The last documents: most groups of a large tree have the same, which they then share.
    last: Arc<StoredNode>,
    /// The declaration of the last documents, if nothing is lost and they do not depend on the path.
    planned: Option<(Json, NodeKind, ArrayContext)>,
}

impl Planner<'_> {
    fn branch(&mut self, path: &NodePath, node: &Node, is_in_named_group: bool) -> Result<NodeTree, NodeError> {
        let kind = match node {
            Node::Array(_) => NodeKind::Array,
            Node::Group(_) => NodeKind::Group,
        };
        let site = self.site;
        let keys = keys::document_keys(path, site.dialect, kind, site.root.as_ref())?;
        let mut context = self.contexts.at(path, self.top);
        context.is_in_named_group |= is_in_named_group;
        let stored = self.stored((path, context), node.document(), kind, keys.first())?;
        let members = match node {
            Node::Group(Group { members: Some(members), .. }) => {
                let mut planned = Members::with_capacity(members.len());
                let is_named = self.from != site.dialect && members.values().any(is_named_array);
                for (name, member) in members {
                    let path = child(path, name, site.dialect)?;
                    planned.insert(name.clone(), self.branch(&path, member, is_named)?);
                }
                Some(planned)
            }
            _ => None,
        };
        let (path, root) = (path.clone(), site.root.clone());
        Ok(NodeTree { root, members, ..from_document(path, site.dialect, kind, stored, NodeVersions::default()) })
    }

    /// The documents of a node, the first of which has this key.
    fn stored(
        &mut self,
        (path, context): (&NodePath, ArrayContext),
        document: &Json,
        kind: NodeKind,
        key: Option<&Key>,
    ) -> Result<Arc<StoredNode>, NodeError> {
        let (site, from) = (self.site, self.from);
        if self.planned.as_ref().is_some_and(|(declared, of, at)| declared == document && *of == kind && *at == context)
        {
            return Ok(self.last.clone());
        }
        let losses = self.losses.len();
        let read = |dialect, stored: &StoredNode| -> Result<NodeModel, NodeError> {
            let below = site.root.as_ref().and_then(|root| path.relative_to(&root.path)).unwrap_or_default();
            let model = NodeModel::read(dialect, kind, stored, below);
            match (model, key) {
                (Ok(model), _) => Ok(model),
                (Err(source), Some(key)) => Err(invalid_document(key, source).into()),
                (Err(_), None) => Err(keys::too_long(dialect, path)),
            }
        };
        let mut stored = StoredNode::from_node_document(from, document);
        let mut model = read(from, &stored)?;
        if from != site.dialect {
            let Converted { document, losses: lost } = model.convert(path, site.dialect, self.chunks, context)?;
            self.losses.extend(lost.into_iter().map(|loss| (path.clone(), loss)));
            stored = StoredNode::from_node_document(site.dialect, &document);
            model = read(site.dialect, &stored)?;
        }
        if let NodeModel::Array(model) = model {
            // Chunks are not read, so any prefix will do.
            Array::new(*model, path.clone(), &Prefix::root(), 0)?;
        }
        if *self.last != stored {
            if self.last.document == stored.document {
                stored.document = self.last.document.clone();
            }
            self.last = Arc::new(stored);
        }
        // The chunk keys of an array of the draft have its path.
        let is_general = kind == NodeKind::Group || site.dialect != Dialect::Draft;
        self.planned = (is_general && self.losses.len() == losses).then(|| (document.clone(), kind, context));
        Ok(self.last.clone())
    }
}

fn is_named_array(node: &Node) -> bool {
    matches!(node, Node::Array(document) if has_dimension_names(document))
}

/// The path of a member. Fails if the dialect does not allow its name.
fn child(path: &NodePath, name: &str, dialect: Dialect) -> Result<NodePath, NodeError> {
    names::check(dialect, name).map_err(|source| NodeError::Name { path: path.clone(), source })?;
    // An allowed name can still be too long.
    path.member(name).map_err(|_| keys::too_long(dialect, path))
}
