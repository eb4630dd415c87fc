//! The JSON of answers about nodes, and of answers to writes of elements.
//!
//! A node itself is answered as a ZOM, which [`zarrd_meta::zom`] has.

use std::{collections::BTreeMap, io};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zarrd_meta::{Dialect, NodePath, PathError, json::Json, ome::Image};
use zarrd_operations::{AppendReport, LinkTarget};
use zarrd_store::Scanned;

use crate::listing::ValueInfo;

/// The properties of a node besides its ZOM. The answer to `include=source` has the ZOM as its `node`; with `flat` the
/// document of every node, by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The dialect that it is stored in.
    #[serde(with = "dialect")]
    pub dialect: Dialect,
    /// Its path.
    pub path: String,
    /// True if it is a group without a document, which exists because there are nodes below it.
    pub implicit: bool,
    /// The children that are of another dialect, and so not among the members.
    pub other_dialects: Vec<OtherNode>,
    /// The nodes below it that are left out of the ZOM because one of their documents cannot be read. Empty if the
    /// server does not report them.
    #[serde(default)]
    pub broken: Vec<BrokenNode>,
    /// The paths of mounts below it whose members are unknown, since their stores have no listings. Empty if the server
    /// does not report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
    /// The paths of the arrays in the ZOM whose stored elements are packed, or some of them missing: functions of them
    /// need `decode`. Empty if the server does not report them.
    #[serde(default)]
    pub undecoded: Vec<String>,
    /// Properties that the ZOM cannot represent, if it is that of another dialect.
    pub losses: Vec<Loss>,
    /// The links of its extensions.
    pub links: Vec<Link>,
    /// What is directly below the group and belongs to no node, of a page of members; absent if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileEntry>>,
    /// The image of OME-Zarr that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

impl Source {
    /// The answer with a node.
    pub fn with_node(&self, node: &Json) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.reserve(node.len().saturating_add(16));
        text.pop();
        text.extend_from_slice(b",\"node\":");
        node.write(&mut text)?;
        text.push(b'}');
        Ok(text)
    }

    /// The properties in an answer, and the node; `None` if there is none.
    pub fn of_answer(answer: &Json) -> Option<(Self, Json)> {
        let members: Vec<_> = answer.members().filter(|member| !member.is_named("node")).collect();
        let members = members.iter().map(|member| (member.quoted_name(), &member.value));
        let source = serde_json::from_slice(Json::from_members(members).as_bytes()).ok()?;
        Some((source, answer.get("node")?))
    }
}

/// A key or prefix directly below a group that belongs to no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The whole key, or the whole prefix with its `/`.
    pub key: String,
    /// The metadata of the value of a key; a prefix has none.
    #[serde(flatten)]
    pub value: Option<ValueInfo>,
}

impl FileEntry {
    /// The JSON form of an entry of a listing.
    pub fn new(entry: &Scanned) -> Self {
        match entry {
            Scanned::Key(entry) => Self { key: entry.key.to_string(), value: Some(ValueInfo::of(entry)) },
            Scanned::Prefix(prefix) => Self { key: prefix.to_string(), value: None },
        }
    }
}

/// A child that is of another dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherNode {
    /// Its path.
    pub path: String,
    /// Its dialect.
    #[serde(with = "dialect")]
    pub dialect: Dialect,
}

/// A node that is left out because one of its documents cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenNode {
    /// Its path.
    pub path: String,
    /// The dialect whose documents have that key; v3 if it is not known whether a `zarr.json` belongs to the draft.
    #[serde(with = "dialect")]
    pub dialect: Dialect,
    /// The document and its error.
    pub problem: BrokenDocument,
}

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenDocument {
    /// Its key.
    pub key: String,
    /// The error message.
    pub reason: String,
}

/// A property that another dialect cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The path of the node.
    pub path: String,
    /// The location in its document, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The lost property.
    pub property: String,
}

/// Another node that an extension of a group names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The extension.
    pub extension: String,
    /// The location in the group's document, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The path that it names, from the group on.
    pub path: String,
    /// The target of the link.
    #[serde(with = "link_target")]
    pub resolved: LinkTarget,
}

/// A place at which two structures differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The location in the ZOM, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The value in the request; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub expected: Option<Json>,
    /// The stored value; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub actual: Option<Json>,
}

/// A place at which a ZOM breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The location in the body, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// The violation.
    pub reason: String,
}

/// The result of comparing a hierarchy with a ZOM: the answer to `validate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidateReport {
    /// True if creating the hierarchy from the ZOM would change nothing.
    pub unchanged: bool,
    /// The differences.
    pub differences: Vec<Difference>,
    /// True if there may be more differences than these.
    pub truncated: bool,
}

/// The result of a conversion: the answer to `convert`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConvertReport {
    /// The number of nodes converted.
    pub nodes: u64,
    /// The number of chunks copied.
    pub chunks: u64,
    /// Properties that were lost.
    pub losses: Vec<Loss>,
}

/// The result of a write of elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteAnswer {
    /// The array's shape now.
    pub shape: Vec<u64>,
    /// The number of chunks (of a sharded array: shards) written.
    pub chunks_written: u64,
    /// The number of chunks erased, or not stored, because all their elements are the fill value.
    pub chunks_erased: u64,
    /// The number of chunks that were encoded again because another writer had changed them.
    pub conflicts_retried: u64,
}

/// The result of an append to the arrays of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendAnswer {
    /// The name of the dimension.
    pub dimension: String,
    /// Its extent before.
    pub before: u64,
    /// Its extent now.
    pub after: u64,
    /// The shapes of the arrays now, by name.
    pub arrays: BTreeMap<String, Vec<u64>>,
    /// The number of chunks (of a sharded array: shards) written.
    pub chunks_written: u64,
    /// The number of chunks erased, or not stored, because all their elements are the fill value.
    pub chunks_erased: u64,
    /// The number of attempts that other writers prevented.
    pub conflicts_retried: u64,
}

impl From<AppendReport> for AppendAnswer {
    fn from(report: AppendReport) -> Self {
        let AppendReport { dimension, before, after, arrays, chunks_written, chunks_erased, conflicts_retried } =
            report;
        Self { dimension, before, after, arrays, chunks_written, chunks_erased, conflicts_retried }
    }
}

impl From<AppendAnswer> for AppendReport {
    fn from(answer: AppendAnswer) -> Self {
        let AppendAnswer { dimension, before, after, arrays, chunks_written, chunks_erased, conflicts_retried } =
            answer;
        Self { dimension, before, after, arrays, chunks_written, chunks_erased, conflicts_retried }
    }
}

impl From<&zarrd_meta::zom::Difference> for Difference {
    fn from(difference: &zarrd_meta::zom::Difference) -> Self {
        let zarrd_meta::zom::Difference { pointer, expected, actual } = difference.clone();
        Self { pointer, expected, actual }
    }
}

impl From<Difference> for zarrd_meta::zom::Difference {
    fn from(Difference { pointer, expected, actual }: Difference) -> Self {
        Self { pointer, expected, actual }
    }
}

impl From<&zarrd_meta::zom::Violation> for Violation {
    fn from(violation: &zarrd_meta::zom::Violation) -> Self {
        let zarrd_meta::zom::Violation { pointer, reason } = violation.clone();
        Self { pointer, reason }
    }
}

/// The JSON form of losses.
pub fn render_losses(losses: &[(NodePath, zarrd_meta::convert::Loss)]) -> Vec<Loss> {
    let loss = |(path, loss): &(NodePath, zarrd_meta::convert::Loss)| {
        let zarrd_meta::convert::Loss { pointer, property } = loss.clone();
        Loss { path: path.to_string(), pointer, property }
    };
    losses.iter().map(loss).collect()
}

/// Parses the JSON form of losses. Fails if a path is not that of a node.
pub fn parse_losses(losses: &[Loss]) -> Result<Vec<(NodePath, zarrd_meta::convert::Loss)>, PathError> {
    let loss = |loss: &Loss| {
        let Loss { path, pointer, property } = loss.clone();
        Ok((NodePath::parse(&path)?, zarrd_meta::convert::Loss { pointer, property }))
    };
    losses.iter().map(loss).collect()
}

/// A member that is present, even if it is `null`, as opposed to a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Targets of links by their names.
mod link_target {
    use super::{Deserialize, Deserializer, LinkTarget, Serializer, de};

    pub(super) fn serialize<S: Serializer>(target: &LinkTarget, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(target.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LinkTarget, D::Error> {
        let name = String::deserialize(deserializer)?;
        let target = [LinkTarget::Array, LinkTarget::Missing].into_iter().find(|target| target.name() == name);
        target.ok_or_else(|| de::Error::unknown_variant(&name, &["array", "missing"]))
    }
}

/// Dialects by their names.
mod dialect {
    use super::{Deserialize, Deserializer, Dialect, Serializer, de};

    pub(super) fn serialize<S: Serializer>(dialect: &Dialect, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(dialect.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Dialect, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn responses_round_trip() {
        let source = json!({
            "dialect": "draft", "path": "/a", "implicit": false,
            "other_dialects": [{"path": "/a/b", "dialect": "v2"}],
            "broken": [{"path": "/a/c", "dialect": "v3", "problem": {"key": "a/c/zarr.json", "reason": "is empty"}}],
            "unlisted": ["/web"],
            "undecoded": ["/a/t"],
            "losses": [{"path": "/a", "pointer": "/order", "property": "the order"}],
            "links": [{"extension": "e", "pointer": "/extensions/0", "path": "b", "resolved": "missing"}],
            "files": [
                {"key": "a/README.md", "size": 3, "etag": "\"0\"", "modified": "2026-11-21T06:28:08.123Z"},
                {"key": "a/figures/"},
            ],
            "image": {
                "axes": [{"name": "c", "type": "channel", "unit": null}],
                "levels": [{"path": "0", "scale": [0.5], "translation": []}],
                "channels": [{"label": "DAPI", "color": "0000ff", "window": [0.0, 9.5], "active": true},
                    {"label": null, "color": null, "window": null, "active": false}],
            },
        });
        let parsed: Source = serde_json::from_value(source.clone()).unwrap();
        let node = Json::parse("{\"n\": [NaN, 1e999]}").unwrap();
        let answer = Json::parse(parsed.with_node(&node).unwrap()).unwrap();
        assert_eq!(Source::of_answer(&answer), Some((parsed.clone(), node)));
        assert_eq!((parsed.dialect, parsed.links[0].resolved), (Dialect::Draft, LinkTarget::Missing));
        assert_eq!(serde_json::to_value(parsed).unwrap(), source);
        assert!(serde_json::from_value::<OtherNode>(json!({"path": "/", "dialect": "v4"})).is_err());

        let report = json!({"nodes": 1, "chunks": 2, "losses": []});
        let parsed: ConvertReport = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(serde_json::to_value(parsed).unwrap(), report);
        let answer = WriteAnswer { shape: vec![4], chunks_written: 1, chunks_erased: 2, conflicts_retried: 0 };
        let json = json!({"shape": [4], "chunks_written": 1, "chunks_erased": 2, "conflicts_retried": 0});
        assert_eq!(serde_json::to_value(&answer).unwrap(), json);
        assert_eq!(serde_json::from_value::<WriteAnswer>(json).unwrap(), answer);
    }

    #[test]
    fn null_differs_from_a_missing_member() {
        let report =
            json!({"unchanged": false, "differences": [{"pointer": "/a", "expected": null}], "truncated": false});
        let parsed: ValidateReport = serde_json::from_value(report.clone()).unwrap();
        let [difference] = &parsed.differences[..] else { panic!("{parsed:?}") };
        assert_eq!((&difference.expected, &difference.actual), (&Some(Json::compact(&json!(null))), &None));
        assert_eq!(serde_json::to_value(&parsed).unwrap(), report);
        let converted: zarrd_meta::zom::Difference = difference.clone().into();
        assert_eq!(Difference::from(&converted), *difference);
    }
}
