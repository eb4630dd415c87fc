//! Comparison of two trees of nodes.

use super::{Difference, Members, Node, Zom, ZomFormat, canonical, members::rename_for_json, read::escape_pointer};
use crate::json::{Json, Kind};

pub(super) fn between(declared: &Zom, found: &Zom, limit: usize) -> Vec<Difference> {
    let mut comparison = Comparison::new(declared.format, limit);
    if declared.format == found.format {
        comparison.nodes(&declared.root, &found.root);
    } else {
        comparison.differ(Some(&declared.root), Some(&found.root));
    }
    comparison.into_differences()
}

/// A comparison in progress: the location of the nodes that are compared, and the differences found so far. [`Zom`]s
/// are compared by [`Zom::differences`], and other trees node by node.
#[derive(Debug)]
pub struct Comparison {
    format: ZomFormat,
    limit: usize,
    /// The location of the compared nodes.
    pointer: String,
    differences: Vec<Difference>,
    /// The last nodes with different texts that are equal: many nodes of a large tree have the same documents.
    equal: Option<(Node, Node)>,
}

impl Comparison {
    /// A comparison of the topmost nodes of two trees of a format, which finds at most `limit` differences.
    pub fn new(format: ZomFormat, limit: usize) -> Self {
        Self { format, limit, pointer: String::new(), differences: Vec::new(), equal: None }
    }

    /// Compares a member of the nodes at the current location.
    pub fn member<T>(&mut self, name: &str, compare: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.pointer.len();
        self.pointer.push_str("/members/");
        self.pointer.push_str(&escape_pointer(name));
        let compared = compare(self);
        self.pointer.truncate(len);
        compared
    }

    /// Compares two nodes without their members.
    pub fn documents(&mut self, declared: &Node, found: &Node) {
        if declared.document() == found.document() && is_array(declared) == is_array(found) {
            return;
        }
        let is_equal = |(one, other): &(Node, Node)| {
            let same =
                |one: &Node, other: &Node| one.document() == other.document() && is_array(one) == is_array(other);
            same(one, declared) && same(other, found)
        };
        if self.equal.as_ref().is_some_and(is_equal) {
            return;
        }
        let (format, before) = (self.format, self.differences.len());
        match (declared, found) {
            (Node::Array(one), Node::Array(other)) => {
                self.canonical(one, other, |document| canonical::array(format, document));
            }
            (Node::Group(one), Node::Group(other)) => {
                // Pointers use the member names of JSON.
                let (one, other) = (rename_for_json(&one.document), rename_for_json(&other.document));
                self.canonical(&one, &other, |document| canonical::group(format, document));
            }
            _ => self.differ(Some(declared), Some(found)),
        }
        if self.differences.len() == before && !self.is_full() {
            self.equal = Some((declared.without_members(), found.without_members()));
        }
    }

    /// Records that nodes differ as a whole, or that one of them is missing.
    pub fn differ(&mut self, declared: Option<&Node>, found: Option<&Node>) {
        if self.is_full() {
            return;
        }
        let document = |node: Option<&Node>| node.map(Node::rendered_document);
        let (declared, found) = (document(declared), document(found));
        self.differences.push(Difference { pointer: self.pointer.clone(), expected: declared, actual: found });
    }

    /// True if the maximum number of differences is found.
    pub fn is_full(&self) -> bool {
        self.differences.len() >= self.limit
    }

    /// The differences.
    pub fn into_differences(self) -> Vec<Difference> {
        self.differences
    }

    fn nodes(&mut self, declared: &Node, found: &Node) {
        self.documents(declared, found);
        if let (Node::Group(declared), Node::Group(found)) = (declared, found)
            && let Some(members) = &declared.members
        {
            self.members(members, found.members.as_ref());
        }
    }

    /// Compares members. A group without known members is treated as empty.
    fn members(&mut self, declared: &Members<Node>, found: Option<&Members<Node>>) {
        let none = Members::new();
        let found = found.unwrap_or(&none);
        let undeclared = found.keys().filter(|name| !declared.contains_key(name));
        for name in declared.keys().chain(undeclared) {
            if self.is_full() {
                return;
            }
            self.member(name, |comparison| match (declared.get(name), found.get(name)) {
                (Some(declared), Some(found)) => comparison.nodes(declared, found),
                (declared, found) => comparison.differ(declared, found),
            });
        }
    }

    fn canonical(&mut self, declared: &Json, found: &Json, canonical: impl Fn(&Json) -> Json) {
        if declared == found {
            return;
        }
        let mut paths = Vec::new();
        let remaining = self.limit.saturating_sub(self.differences.len());
        canonical(declared).differences(&canonical(found), &mut Vec::new(), &mut |path| {
            let path = nearest_location(declared, path);
            if !paths.contains(&path) {
                paths.push(path);
            }
            paths.len() < remaining
        });
        for path in paths.into_iter().take(remaining) {
            let difference = Difference {
                pointer: path
                    .iter()
                    .fold(self.pointer.clone(), |pointer, name| format!("{pointer}/{}", escape_pointer(name))),
                expected: declared.at(&path),
                actual: found.at(&path),
            };
            self.differences.push(difference);
        }
    }
}

fn is_array(node: &Node) -> bool {
    matches!(node, Node::Array(_))
}

/// The location in the request of a difference between canonical documents: the nearest one whose parent exists. A
/// codec that is just a name has no configuration to point to.
fn nearest_location(declared: &Json, path: &[String]) -> Vec<String> {
    let mut path = path.to_vec();
    while let Some((last, parent)) = path.split_last()
        && !parent.is_empty()
        && !declared.at(parent).is_some_and(|parent| match parent.kind() {
            Kind::Object => true,
            Kind::Array => parent.at(std::slice::from_ref(last)).is_some(),
            _ => false,
        })
    {
        path.pop();
    }
    path
}
