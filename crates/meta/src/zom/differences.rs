//! Where two structures differ.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{Difference, Node, Version, Zom, canonical, members::shown, read::escaped};

pub(super) fn between(declared: &Zom, found: &Zom, limit: usize) -> Vec<Difference> {
    let mut comparison =
        Comparison { version: declared.version, limit, pointer: String::new(), differences: Vec::new() };
    if declared.version == found.version {
        comparison.nodes(&declared.root, &found.root);
    } else {
        comparison.differ(Some(&declared.root), Some(&found.root));
    }
    comparison.differences
}

struct Comparison {
    version: Version,
    limit: usize,
    /// Where the nodes are.
    pointer: String,
    differences: Vec<Difference>,
}

impl Comparison {
    fn nodes(&mut self, declared: &Node, found: &Node) {
        let version = self.version;
        match (declared, found) {
            (Node::Array(declared), Node::Array(found)) => {
                self.documents(declared, found, |document| canonical::array(version, document));
            }
            (Node::Group(declared), Node::Group(found)) => {
                let canonical = |document: &Map<String, Value>| canonical::group(version, document);
                match declared.document == found.document {
                    true => {}
                    // Pointers have the names of JSON.
                    false => self.documents(&shown(&declared.document), &shown(&found.document), canonical),
                }
                if let Some(members) = &declared.members {
                    self.members(members, found.members.as_ref());
                }
            }
            _ => self.differ(Some(declared), Some(found)),
        }
    }

    /// Compares members. A group of which no members are found has none.
    fn members(&mut self, declared: &BTreeMap<String, Node>, found: Option<&BTreeMap<String, Node>>) {
        let none = BTreeMap::new();
        let found = found.unwrap_or(&none);
        let undeclared = found.keys().filter(|name| !declared.contains_key(*name));
        let len = self.pointer.len();
        for name in declared.keys().chain(undeclared) {
            if self.is_full() {
                return;
            }
            self.pointer.push_str("/members/");
            self.pointer.push_str(&escaped(name));
            match (declared.get(name), found.get(name)) {
                (Some(declared), Some(found)) => self.nodes(declared, found),
                (declared, found) => self.differ(declared, found),
            }
            self.pointer.truncate(len);
        }
    }

    fn documents(
        &mut self,
        declared: &Map<String, Value>,
        found: &Map<String, Value>,
        canonical: impl Fn(&Map<String, Value>) -> Map<String, Value>,
    ) {
        if declared == found {
            return;
        }
        let mut places = Vec::new();
        let left = self.limit.saturating_sub(self.differences.len());
        objects(&canonical(declared), &canonical(found), &mut Vec::new(), &mut |path| {
            let path = told(declared, path);
            if !places.contains(&path) {
                places.push(path);
            }
            places.len() < left
        });
        for path in places.into_iter().take(left) {
            let difference = Difference {
                pointer: path.iter().fold(self.pointer.clone(), |pointer, name| format!("{pointer}/{}", escaped(name))),
                declared: at(declared, &path).cloned(),
                found: at(found, &path).cloned(),
            };
            self.differences.push(difference);
        }
    }

    /// Nodes differ as a whole.
    fn differ(&mut self, declared: Option<&Node>, found: Option<&Node>) {
        if self.is_full() {
            return;
        }
        let document = |node: Option<&Node>| node.map(|node| Value::Object(node.shown_document()));
        let (declared, found) = (document(declared), document(found));
        self.differences.push(Difference { pointer: self.pointer.clone(), declared, found });
    }

    fn is_full(&self) -> bool {
        self.differences.len() >= self.limit
    }
}

/// The place in the declared document that shows a difference between the canonical ones: the nearest whose parent it has. A codec that is just a name has no
/// configuration to point to.
fn told(declared: &Map<String, Value>, path: &[String]) -> Vec<String> {
    let mut path = path.to_vec();
    while let Some((last, parent)) = path.split_last()
        && !parent.is_empty()
        && !at(declared, parent)
            .is_some_and(|parent| parent.is_object() || parent.is_array() && parent_has(parent, last))
    {
        path.pop();
    }
    path
}

fn parent_has(list: &Value, index: &str) -> bool {
    index.parse::<usize>().is_ok_and(|index| list.get(index).is_some())
}

/// What is at a path in a document.
fn at<'a>(document: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(document.get(first)?, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Tells the places where two objects differ, until `tell` has enough. The answer is whether it has not.
fn objects(
    declared: &Map<String, Value>,
    found: &Map<String, Value>,
    path: &mut Vec<String>,
    tell: &mut dyn FnMut(&[String]) -> bool,
) -> bool {
    let undeclared = found.keys().filter(|name| !declared.contains_key(*name));
    declared.keys().chain(undeclared).all(|name| {
        path.push(name.clone());
        let goes_on = match (declared.get(name), found.get(name)) {
            (Some(declared), Some(found)) => values(declared, found, path, tell),
            _ => tell(path),
        };
        path.pop();
        goes_on
    })
}

/// The same for two values. Lists of different lengths differ as a whole.
fn values(declared: &Value, found: &Value, path: &mut Vec<String>, tell: &mut dyn FnMut(&[String]) -> bool) -> bool {
    match (declared, found) {
        (Value::Object(declared), Value::Object(found)) => objects(declared, found, path, tell),
        (Value::Array(declared), Value::Array(found)) if declared.len() == found.len() => {
            declared.iter().zip(found).enumerate().all(|(index, (declared, found))| {
                path.push(index.to_string());
                let goes_on = values(declared, found, path, tell);
                path.pop();
                goes_on
            })
        }
        (Value::Number(declared), Value::Number(found)) if same_number(declared, found) => true,
        _ if declared == found => true,
        _ => tell(path),
    }
}

/// Whether two numbers are the same, however they are written.
fn same_number(one: &Number, other: &Number) -> bool {
    one == other || integer(one).zip(integer(other)).is_some_and(|(one, other)| one == other)
}

/// The integer that a number is, exactly. Larger floats are none that JSON has as an integer, too.
fn integer(number: &Number) -> Option<i128> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < TWO_TO_64);
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // Exact, since the float is a whole number that an `i128` holds.
    whole.or_else(|| float().map(|float| float as i128))
}
