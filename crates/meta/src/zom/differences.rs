//! Differences between two structures.

use super::{Difference, Members, Node, Zom, ZomFormat, canonical, members::rename_for_json, read::escape_pointer};
use crate::json::{Json, Kind};

pub(super) fn between(declared: &Zom, found: &Zom, limit: usize) -> Vec<Difference> {
    let mut comparison = Comparison { format: declared.format, limit, pointer: String::new(), differences: Vec::new() };
    if declared.format == found.format {
        comparison.nodes(&declared.root, &found.root);
    } else {
        comparison.differ(Some(&declared.root), Some(&found.root));
    }
    comparison.differences
}

struct Comparison {
    format: ZomFormat,
    limit: usize,
    /// The location of the nodes.
    pointer: String,
    differences: Vec<Difference>,
}

impl Comparison {
    fn nodes(&mut self, declared: &Node, found: &Node) {
        let format = self.format;
        match (declared, found) {
            (Node::Array(declared), Node::Array(found)) => {
                self.documents(declared, found, |document| canonical::array(format, document));
            }
            (Node::Group(declared), Node::Group(found)) => {
                let canonical = |document: &Json| canonical::group(format, document);
                match declared.document == found.document {
                    true => {}
                    // Pointers have the names of JSON.
                    false => self.documents(
                        &rename_for_json(&declared.document),
                        &rename_for_json(&found.document),
                        canonical,
                    ),
                }
                if let Some(members) = &declared.members {
                    self.members(members, found.members.as_ref());
                }
            }
            _ => self.differ(Some(declared), Some(found)),
        }
    }

    /// Compares members. A group of which no members are found has none.
    fn members(&mut self, declared: &Members<Node>, found: Option<&Members<Node>>) {
        let none = Members::new();
        let found = found.unwrap_or(&none);
        let undeclared = found.keys().filter(|name| !declared.contains_key(name));
        let len = self.pointer.len();
        for name in declared.keys().chain(undeclared) {
            if self.is_full() {
                return;
            }
            self.pointer.push_str("/members/");
            self.pointer.push_str(&escape_pointer(name));
            match (declared.get(name), found.get(name)) {
                (Some(declared), Some(found)) => self.nodes(declared, found),
                (declared, found) => self.differ(declared, found),
            }
            self.pointer.truncate(len);
        }
    }

    fn documents(&mut self, declared: &Json, found: &Json, canonical: impl Fn(&Json) -> Json) {
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

    /// Nodes differ as a whole.
    fn differ(&mut self, declared: Option<&Node>, found: Option<&Node>) {
        if self.is_full() {
            return;
        }
        let document = |node: Option<&Node>| node.map(Node::rendered_document);
        let (declared, found) = (document(declared), document(found));
        self.differences.push(Difference { pointer: self.pointer.clone(), expected: declared, actual: found });
    }

    fn is_full(&self) -> bool {
        self.differences.len() >= self.limit
    }
}

/// The location in the request of a difference between the canonical documents: the nearest whose parent exists. A
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
