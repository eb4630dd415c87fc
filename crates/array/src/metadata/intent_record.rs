//! Records of intents: what an operation of several commits is about to do, and which commits it excludes meanwhile.

use serde::{Deserialize, Serialize};
use zarrd_meta::{Dialect, NodePath};
use zarrd_store::{IntentFilter, Prefix, RunId};

/// The version of records that this program writes and understands.
const VERSION: u32 = 1;

/// A record of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntentRecord {
    /// The run of the store's owner that added it; `None` in records of programs that did not name it, whose runs have
    /// ended.
    pub(crate) run: Option<RunId>,
    pub(crate) operation: Unsettled,
}

/// An operation that may have to be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unsettled {
    Copy(CopyIntent),
    Shrink(ShrinkIntent),
}

/// A copy of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyIntent {
    pub(crate) target: NodePath,
    pub(crate) dialect: Dialect,
    /// The prefixes of its chunks.
    pub(crate) extent: Vec<Prefix>,
}

/// A shrink of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShrinkIntent {
    pub(crate) path: NodePath,
    pub(crate) dialect: Dialect,
}

/// A commit that unfinished operations exclude.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Excluded {
    /// A new shape of the array at a path, while a shrink of it erases the chunks outside.
    NewShape(NodePath),
    /// A new node at a path, while something is copied there, above or below.
    NewNode(NodePath),
}

/// A record that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("unsupported version {0}; the supported one is {VERSION}")]
    Version(u64),
    #[error("malformed record")]
    Json(#[from] serde_json::Error),
    #[error("invalid path, dialect, prefixes or run")]
    Content,
}

/// A record as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// Sixteen hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    operation: Operation,
}

/// An operation in a record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Operation {
    /// A copy of a hierarchy to `target`, whose chunks are set below `extent` before its documents are.
    Copy { target: String, dialect: String, extent: Vec<String> },
    /// A shrink of the array at `path`, whose chunks outside are erased after its documents are changed.
    Shrink { path: String, dialect: String },
}

impl IntentRecord {
    /// The record as it is stored.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let operation = match &self.operation {
            Unsettled::Copy(copy) => Operation::Copy {
                target: copy.target.to_string(),
                dialect: copy.dialect.to_string(),
                extent: copy.extent.iter().map(ToString::to_string).collect(),
            },
            Unsettled::Shrink(shrink) => {
                Operation::Shrink { path: shrink.path.to_string(), dialect: shrink.dialect.to_string() }
            }
        };
        serde_json::to_vec(&Record { version: VERSION, run: self.run.map(|run| run.to_string()), operation })
    }

    /// Parses a stored record.
    pub(crate) fn parse(record: &[u8]) -> Result<Self, RecordError> {
        let json: serde_json::Value = serde_json::from_slice(record)?;
        match json.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => return Err(RecordError::Version(version)),
            _ => {}
        }
        let path = |text: &str| NodePath::parse(text).map_err(|_| RecordError::Content);
        let dialect = |text: &str| text.parse::<Dialect>().map_err(|_| RecordError::Content);
        let Record { run, operation, .. } = serde_json::from_value(json)?;
        let run = run.map(|run| u64::from_str_radix(&run, 16).map(RunId::from_u64));
        let run = run.transpose().map_err(|_| RecordError::Content)?;
        let operation = match operation {
            Operation::Copy { target, dialect: of, extent } => {
                let extent = extent.iter().map(|prefix| Prefix::parse(prefix).map_err(|_| RecordError::Content));
                let extent = extent.collect::<Result<_, _>>()?;
                Unsettled::Copy(CopyIntent { target: path(&target)?, dialect: dialect(&of)?, extent })
            }
            Operation::Shrink { path: at, dialect: of } => {
                Unsettled::Shrink(ShrinkIntent { path: path(&at)?, dialect: dialect(&of)? })
            }
        };
        Ok(Self { run, operation })
    }
}

impl Unsettled {
    /// The path of the node that the operation changes.
    pub(crate) fn path(&self) -> &NodePath {
        match self {
            Self::Copy(copy) => &copy.target,
            Self::Shrink(shrink) => &shrink.path,
        }
    }
}

impl IntentFilter for Excluded {
    fn matches(&self, record: &[u8]) -> bool {
        // A record of a later program is of an operation that this one cannot tell from any other.
        let Ok(IntentRecord { operation, .. }) = IntentRecord::parse(record) else { return false };
        match (self, operation) {
            (Self::NewShape(path), Unsettled::Shrink(shrink)) => shrink.path == *path,
            (Self::NewNode(path), Unsettled::Copy(CopyIntent { target, .. })) => {
                target.relative_to(path).is_some() || path.relative_to(&target).is_some()
            }
            (Self::NewShape(_), Unsettled::Copy(_)) | (Self::NewNode(_), Unsettled::Shrink(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> NodePath {
        NodePath::parse(text).unwrap()
    }

    fn copy(target: &str) -> Unsettled {
        let extent = vec![Prefix::parse("a/b/").unwrap()];
        Unsettled::Copy(CopyIntent { target: path(target), dialect: Dialect::V3, extent })
    }

    fn shrink(at: &str) -> Unsettled {
        Unsettled::Shrink(ShrinkIntent { path: path(at), dialect: Dialect::V2 })
    }

    fn encoded(operation: Unsettled) -> Vec<u8> {
        IntentRecord { run: Some(RunId::from_u64(7)), operation }.encode().unwrap()
    }

    #[test]
    fn parsed_record_is_the_encoded_one() {
        for operation in [copy("/a/b"), copy("/"), shrink("/a")] {
            for run in [None, Some(0), Some(u64::MAX)] {
                let record = IntentRecord { run: run.map(RunId::from_u64), operation: operation.clone() };
                assert_eq!(IntentRecord::parse(&record.encode().unwrap()).unwrap(), record);
            }
        }
    }

    #[test]
    fn copies_exclude_new_nodes_at_above_and_below_their_target() {
        let record = encoded(copy("/a/b"));
        for (at, expected) in [("/", true), ("/a", true), ("/a/b", true), ("/a/b/c", true), ("/a/bc", false)] {
            assert_eq!(Excluded::NewNode(path(at)).matches(&record), expected, "{at}");
            assert!(!Excluded::NewShape(path(at)).matches(&record), "{at}");
        }
    }

    #[test]
    fn shrinks_exclude_new_shapes_of_their_array_alone() {
        let record = encoded(shrink("/a/b"));
        for (at, expected) in [("/", false), ("/a", false), ("/a/b", true), ("/a/b/c", false)] {
            assert_eq!(Excluded::NewShape(path(at)).matches(&record), expected, "{at}");
            assert!(!Excluded::NewNode(path(at)).matches(&record), "{at}");
        }
    }

    #[test]
    fn records_that_cannot_be_understood_exclude_nothing() {
        for record in
            ["", "{", "[1]", r#"{"version": 2, "operation": {"kind": "shrink", "path": "/a", "dialect": "v2"}}"#]
        {
            assert!(!Excluded::NewShape(path("/a")).matches(record.as_bytes()), "{record}");
        }
    }
}
