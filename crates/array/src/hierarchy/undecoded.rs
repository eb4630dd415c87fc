//! The arrays of a described tree whose elements have to be decoded before a computation.

use zarrd_meta::{
    Dialect, NodePath,
    documents::write::StoredNode,
    json::Json,
    zom::{Group, Node, Zom},
};

use crate::metadata::{model::NodeModel, tree::NodeKind};

/// The arrays of a node at a path whose stored elements are packed, or some of them missing: functions of them need a
/// request for decoding ([`ArrayError::DecodeUnspecified`](crate::ArrayError::DecodeUnspecified)).
pub fn undecoded(path: &NodePath, zom: &Zom) -> Vec<NodePath> {
    let mut found = Vec::new();
    add_undecoded(path, &zom.root, zom.format.dialect(), &mut found);
    found
}

fn add_undecoded(path: &NodePath, node: &Node, dialect: Dialect, found: &mut Vec<NodePath>) {
    match node {
        Node::Array(document) if is_undecoded(document, dialect) => found.push(path.clone()),
        Node::Array(_) => {}
        Node::Group(Group { members, .. }) => {
            for (name, member) in members.iter().flatten() {
                // The path of a described node is valid.
                if let Ok(path) = path.member(name) {
                    add_undecoded(&path, member, dialect, found);
                }
            }
        }
    }
}

fn is_undecoded(document: &Json, dialect: Dialect) -> bool {
    let stored = StoredNode::from_node_document(dialect, document);
    match NodeModel::read(dialect, NodeKind::Array, &stored, "") {
        Ok(NodeModel::Array(model)) => zarrd_cf::is_undecoded(&model),
        Ok(NodeModel::Group(_)) | Err(_) => false,
    }
}
