//! Problem documents (RFC 9457), and the closed list of their types.

mod types;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use zarrd_meta::NodePath;

use crate::node::{Difference, Loss, Violation};

pub use types::{ProblemType, TYPE_BASE};

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The type of the problem.
    #[serde(rename = "type")]
    pub kind: ProblemType,
    /// The type's title.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// The error of this very request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The request's id, under which the log says more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The members that some types have.
    #[serde(flatten)]
    pub members: Members,
}

/// The extension members of problem documents. [`ProblemType`] says which type has which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Members {
    /// The key concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The prefix concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The path of the node concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// A length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// A length in bytes that was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<u64>,
    /// The number of bytes received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// The methods that a resource has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The query parameter concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The values that would have been accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<String>>,
    /// The position of the error in a text, as a byte offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The location of the error in a JSON document, as a JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The dimension concerned, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimension: Option<u64>,
    /// The name of the dimension concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A label, as it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The label of the coordinate that is nearest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Value>,
    /// The first label of the coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Value>,
    /// The last label of the coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Value>,
    /// An index, as it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// The number of indices of the dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extent: Option<u64>,
    /// The number of chunks touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// The text of a smaller selection that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smaller: Option<String>,
    /// The names of arrays that the body lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The names in the body that are no arrays over the dimension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unexpected: Vec<String>,
    /// The codec concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// The missing feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The header concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The entity tag that the key or the node has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The origin concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The host concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The array concerned, where `path` is another node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The keys of the documents concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The relation of the documents of v2 and v3 at a path: `attributes`, `shape`, `layout` or `unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The dialect concerned: `v2`, `v3` or `draft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The required number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// The actual number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<u64>,
    /// The indices of an element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<Vec<u64>>,
    /// The number of changes needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<u64>,
    /// The places where a document violates its schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The differences between two structures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Properties that would be lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

impl Members {
    /// The path of the node concerned; `requested`, if it is missing or invalid.
    pub fn node_path(&self, requested: &NodePath) -> NodePath {
        self.path.as_deref().and_then(|path| NodePath::parse(path).ok()).unwrap_or_else(|| requested.clone())
    }
}

impl Problem {
    /// A problem of a type, about which nothing more is said.
    pub fn new(kind: ProblemType) -> Self {
        Self {
            kind,
            title: kind.title().to_owned(),
            status: kind.status().as_u16(),
            detail: String::new(),
            request: String::new(),
            members: Members::default(),
        }
    }

    /// Says what is wrong with this very request.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Adds members.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// The detail of this very request, or else the title of its type.
    pub fn message(&self) -> &str {
        if self.detail.is_empty() { &self.title } else { &self.detail }
    }

    /// Parses a problem document; `None` if it is not one, or of an unknown type.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The document.
    pub fn to_json(&self) -> Vec<u8> {
        // Only maps with keys other than strings, and failing writers, make this fail; there is neither.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_round_trip() {
        let bare = Problem::new(ProblemType::NotFound);
        assert_eq!(
            String::from_utf8(bare.to_json()).unwrap(),
            r#"{"type":"https://zarrd.dev/problems/not-found","title":"Not found","status":404}"#
        );
        let full = Problem::new(ProblemType::ValueTooLarge)
            .with_detail("a value has at most 7 bytes")
            .with_members(Members { limit: Some(7), key: Some("a\"b".into()), ..Members::default() });
        assert_eq!(Problem::from_json(&full.to_json()), Some(full));
        let differs = Problem::new(ProblemType::NodeConflict).with_members(Members {
            differences: vec![Difference {
                pointer: "/shape".into(),
                expected: Some(zarrd_meta::json::Json::compact(&serde_json::Value::Null)),
                actual: None,
            }],
            violations: vec![Violation { pointer: String::new(), reason: "is not there".into() }],
            losses: vec![Loss { path: "/".into(), pointer: "/order".into(), property: "the order".into() }],
            element: Some(Vec::new()),
            expected: Some(4),
            actual: Some(0),
            ..Members::default()
        });
        assert_eq!(Problem::from_json(&differs.to_json()), Some(differs));
        assert_eq!(Problem::from_json(br#"{"type":"about:blank","title":"x","status":404}"#), None);
        assert_eq!(Problem::from_json(b"<html>"), None);
    }
}
