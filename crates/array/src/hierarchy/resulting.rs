//! The tree that a change results in: as declared and planned, with what stays of the current tree. A walk after the
//! commit would show the same, at several times the cost.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    convert::ChunkPolicy,
    documents::{parse_object, write::StoredNode},
    json::Json,
    zom::{Members, Node, Zom, ZomFormat},
};
use zarrd_operations::NodeInfo;
use zarrd_store::ChangeOutcome;

use super::{
    describe::{Unrepresented, into_zom, links, without_consolidated},
    options::DescribedNode,
    walk::walker::{RESERVED, Walk},
};
use crate::{
    context::Context,
    memory::claim::Permit,
    metadata::{
        change_set::{ChangeSet, PendingState},
        error::NodeError,
        tree::{NodeKind, NodeTree},
    },
    node::{keys::invalid_document, read_set::NodeVersions},
};

/// The work of completing a declared node, expressed as the size of a document in bytes.
const COMPLETION_WORK: u64 = 64;

/// A tree as a change leaves it.
pub(crate) struct ResultingTree {
    /// The topmost node, without its members.
    top: NodeTree,
    /// The indices of the changes of its documents.
    changes: Vec<Option<usize>>,
    description: Description,
}

/// The description of a resulting tree.
enum Description {
    /// As it was declared.
    Declared(Arc<Zom>),
    /// In the model of its dialect, with the memory of what stays of the current tree.
    Rendered(Zom, Unrepresented, Vec<Permit>),
}

impl ResultingTree {
    /// The tree that a planned one becomes by a change set, given the current tree. Takes little more memory than the
    /// declaration, unless documents stay that are not as declared. `None` if only a walk shows the tree.
    pub(crate) fn new(
        mut planned: NodeTree,
        current: Option<Walk>,
        declared: Arc<Zom>,
        change_set: &mut ChangeSet,
    ) -> Result<Option<Self>, NodeError> {
        change_set.sort();
        let format = ZomFormat::for_dialect(planned.dialect);
        let mut merge = Merge {
            change_set,
            is_as_declared: planned.dialect == declared.format.dialect(),
            is_known: true,
            value: None,
            alike: None,
        };
        let mut memory = Vec::new();
        match current {
            None => complete(&mut planned),
            // A node of another dialect may turn out to have been hidden by one that is erased.
            Some(walk) if !walk.other.is_empty() => return Ok(None),
            Some(walk) => {
                memory = walk.memory;
                merge.node(&mut planned, walk.top)?;
            }
        }
        if !merge.is_known {
            return Ok(None);
        }
        let (is_as_declared, top) = (merge.is_as_declared, planned.without_members());
        let changes = top.own.keys().map(|key| change_set.position(key)).collect();
        let description = if is_as_declared {
            Description::Declared(declared)
        } else {
            let mut unrepresented = Unrepresented::default();
            let root = into_zom(planned, format, ChunkPolicy::Preferred, &mut unrepresented)?;
            Description::Rendered(Zom { format, root }, unrepresented, memory)
        };
        Ok(Some(Self { top, changes, description }))
    }

    /// Takes the versions that the commit gave to the documents.
    pub(crate) fn advance(&mut self, outcomes: &[ChangeOutcome]) {
        self.top.own.advance(self.changes.iter().map(|index| outcomes.get((*index)?)));
    }

    /// Describes the tree, once it is committed.
    pub(crate) async fn describe(self, context: &Context) -> Result<DescribedNode, NodeError> {
        let Self { top, description, .. } = self;
        let links = links(context, &top).await?;
        let (zom, Unrepresented { losses, broken }, memory) = match description {
            Description::Rendered(zom, unrepresented, memory) => (zom, unrepresented, memory),
            Description::Declared(declared) => {
                let bytes = (declared.len() as u64).saturating_mul(COMPLETION_WORK);
                let completed = move || {
                    let mut zom = Arc::unwrap_or_clone(declared);
                    nothing_else(&mut zom.root);
                    zom
                };
                (context.run(Cost::of(Work::Tree, bytes), completed).await?, Unrepresented::default(), Vec::new())
            }
        };
        let NodeTree { path, dialect, own, .. } = top;
        let (version, other_dialects) = (Some(own.version()), Vec::new());
        // A changed node has no document of the other dialect that differs.
        let (implicit, relation) = (false, None);
        let info = NodeInfo { path, dialect, implicit, version, relation, zom, other_dialects, broken, losses, links };
        Ok(DescribedNode { info, files: None, unlisted: Vec::new(), memory: Arc::new(memory) })
    }
}

/// Merges the current tree into the planned one, which becomes the resulting one.
struct Merge<'a> {
    change_set: &'a ChangeSet,
    /// True if the result has the texts of the declaration, and nothing that it does not name.
    is_as_declared: bool,
    /// False if a walk could see something else.
    is_known: bool,
    /// The last document that is set, and its text: most groups of a large tree have the same.
    value: Option<(Bytes, Json)>,
    /// The last resulting and planned documents with the same text.
    alike: Option<(Arc<StoredNode>, Arc<StoredNode>)>,
}

impl Merge<'_> {
    /// Makes a planned node the resulting one, given the current node at its path.
    fn node(&mut self, planned: &mut NodeTree, current: NodeTree) -> Result<(), NodeError> {
        if current.broken.is_some() || current.kind != planned.kind {
            complete(planned);
            return Ok(());
        }
        self.documents(planned, current.own, &current.stored)?;
        if planned.kind == NodeKind::Array {
            return Ok(());
        }
        match (&mut planned.members, current.members) {
            (None, None) => {}
            (None, Some(kept)) => {
                self.is_as_declared &= kept.is_empty();
                planned.members = Some(kept);
            }
            (Some(members), kept) => {
                let mut kept = kept.unwrap_or_default().into_iter().peekable();
                for (name, member) in members.iter_mut() {
                    // Both are sorted by name. What is not declared is erased.
                    while kept.next_if(|(current, _)| current < name).is_some() {}
                    match kept.next_if(|(current, _)| current == name) {
                        Some((_, current)) => self.node(member, current)?,
                        None => {
                            // Below the entry point of a draft hierarchy these names are no nodes.
                            self.is_known &= !RESERVED.contains(&name.as_str());
                            complete(member);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives a node the documents, with their versions, that the change set leaves.
    fn documents(
        &mut self,
        node: &mut NodeTree,
        mut own: NodeVersions,
        before: &Arc<StoredNode>,
    ) -> Result<(), NodeError> {
        if own.0.is_empty() {
            return Ok(());
        }
        let (mut after, mut changes) = ((**before).clone(), false);
        for (index, (key, version)) in own.0.iter_mut().enumerate() {
            let document = match self.change_set.pending(key) {
                PendingState::Kept => continue,
                PendingState::Erased => None,
                PendingState::Set(value) => Some(self.document(value).map_err(|source| invalid_document(key, source))?),
            };
            (*version, changes) = (None, true);
            match index {
                0 => after.document = document.unwrap_or_default(),
                _ => after.attributes = document,
            }
        }
        let after = if changes { Arc::new(after) } else { before.clone() };
        let alike = self.alike.as_ref().is_some_and(|(last, planned)| {
            Arc::ptr_eq(planned, &node.stored) && (Arc::ptr_eq(last, &after) || **last == *after)
        });
        if self.is_as_declared && !alike {
            let planned = node.stored.clone();
            let declared = text(node)?;
            node.stored = after.clone();
            self.is_as_declared = text(node)? == declared;
            self.alike = Some((after.clone(), planned));
        }
        node.stored = match &self.alike {
            Some((last, _)) if alike => last.clone(),
            _ => after,
        };
        node.own = own;
        Ok(())
    }

    fn document(&mut self, value: &Bytes) -> Result<Json, zarrd_meta::documents::DocumentError> {
        if let Some((last, document)) = &self.value
            && last == value
        {
            return Ok(document.clone());
        }
        let document = parse_object(value.clone())?;
        self.value = Some((value.clone(), document.clone()));
        Ok(document)
    }
}

/// The text of a node's document in a description in the model of its dialect.
fn text(node: &NodeTree) -> Result<Json, NodeError> {
    Ok(without_consolidated(node, ZomFormat::for_dialect(node.dialect), &mut Vec::new())?.compacted())
}

/// Marks the groups of a new tree without members as having none.
fn complete(node: &mut NodeTree) {
    if node.kind == NodeKind::Group {
        node.members.get_or_insert_with(Members::new).values_mut().for_each(complete);
    }
}

/// Marks groups without members in a ZOM as having none.
fn nothing_else(node: &mut Node) {
    if let Node::Group(group) = node {
        group.members.get_or_insert_default().values_mut().for_each(nothing_else);
    }
}
