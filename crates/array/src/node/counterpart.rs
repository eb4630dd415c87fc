//! What the other one of v2 and v3 has at the path of a node.

use zarrd_meta::{
    ArrayModel, NodePath,
    documents::GroupModel,
    relation::{ComparedNode, DialectRelation, containing_shape},
};
use zarrd_store::Key;

use super::{broken::Broken, read_set::NodeVersions};

/// The node that the other one of v2 and v3 has at the path of a node, as of the same commit.
#[derive(Clone, Debug)]
pub(crate) struct Counterpart {
    /// Its relation to the node.
    pub(crate) relation: DialectRelation,
    pub(crate) node: CounterpartNode,
    /// The versions of its documents; of one that cannot be read, that of the document at fault.
    pub(crate) versions: NodeVersions,
    /// The error of an array's attributes, if they cannot be read.
    pub(crate) unreadable_attributes: Option<Broken>,
}

/// The node of a [`Counterpart`].
#[derive(Clone, Debug)]
pub(crate) enum CounterpartNode {
    Array(Box<ArrayModel>),
    Group(Box<GroupModel>),
    Unreadable,
}

/// The documents of v2 and v3 at one path differ, so that a change would destroy what one of them has, or that a read
/// would take chunks for what they are not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the documents {} and {} of {path} differ: {}", keys.0, keys.1, explanation(*relation))]
pub struct DialectsDiffer {
    /// The path of the node.
    pub path: NodePath,
    /// The relation of the documents.
    pub relation: DialectRelation,
    /// The key of the node's document, and that of the other dialect.
    pub keys: (Key, Key),
}

/// What differs.
fn explanation(relation: DialectRelation) -> &'static str {
    match relation {
        DialectRelation::Same => "they describe the same node",
        DialectRelation::Independent => "they describe two arrays with different chunk keys",
        DialectRelation::Attributes => "they have different attributes or dimension names",
        DialectRelation::Shape => "neither shape contains the other one",
        DialectRelation::Layout => "they describe the same chunks differently",
        DialectRelation::Unreadable => "the second one cannot be read",
    }
}

impl CounterpartNode {
    /// The node as it is compared with another one.
    pub(crate) fn compared(&self) -> ComparedNode<'_> {
        match self {
            Self::Array(model) => ComparedNode::Array(model),
            Self::Group(model) => ComparedNode::Group(model),
            Self::Unreadable => ComparedNode::Unreadable,
        }
    }
}

impl Counterpart {
    /// The counterpart of an array, if it is an array over the same chunks.
    pub(crate) fn array(&self) -> Option<&ArrayModel> {
        match (&self.node, self.relation) {
            (
                CounterpartNode::Array(model),
                DialectRelation::Same | DialectRelation::Attributes | DialectRelation::Shape,
            ) => Some(model),
            _ => None,
        }
    }

    /// True if it differs from the node over the same chunks.
    pub(crate) fn differs(&self) -> bool {
        !matches!(self.relation, DialectRelation::Same | DialectRelation::Independent)
    }

    /// True if the node can be changed without destroying what the counterpart has. `shape` is the shape of the node,
    /// if it is an array.
    pub(crate) fn allows_changes(&self, shape: Option<&[u64]>) -> bool {
        match (self.relation, &self.node) {
            (DialectRelation::Same | DialectRelation::Independent | DialectRelation::Attributes, _) => true,
            (DialectRelation::Shape, CounterpartNode::Array(model)) => {
                shape.is_some_and(|shape| containing_shape(shape, &model.shape).is_some())
            }
            (DialectRelation::Shape | DialectRelation::Layout | DialectRelation::Unreadable, _) => false,
        }
    }

    /// The error of a change, or of a read, that the difference rules out.
    pub(crate) fn rejection(&self, path: &NodePath, own: &NodeVersions) -> Option<DialectsDiffer> {
        let keys = (own.keys().next()?.clone(), self.versions.keys().next()?.clone());
        Some(DialectsDiffer { path: path.clone(), relation: self.relation, keys })
    }
}
