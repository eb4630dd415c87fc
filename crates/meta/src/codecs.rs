//! Codecs as documents name them. What they do is in the crate `codec`.

use serde_json::{Map, Value, json};

use crate::text::truncated;

/// One codec of a chain, as a document configures it.
///
/// The chain of a model is always in the order of encoding, and complete: first any number of codecs from arrays to arrays, then exactly one
/// from an array to bytes, then any number from bytes to bytes. v2 and the draft, whose documents say some of it elsewhere, are
/// read into the same form:
///
/// - order `F` is a `transpose` with the reversed permutation;
/// - the byte order of a `dtype` is a `bytes` with that `endian`, or [`CodecSpec::MIXED_ENDIAN`] for a struct whose fields differ;
/// - v2 filters and the compressor are [`Namespace::Numcodecs`] codecs *after* it: they see the bytes as they are stored, with the data
///   types of their own configuration. Of an array of objects the first filter is the codec from array to bytes;
/// - the draft's sharding storage transformer is a `sharding_indexed` over the grid of whole shards.
#[derive(Clone, Debug, PartialEq)]
pub struct CodecSpec {
    /// Whose name it is.
    pub namespace: Namespace,
    /// The name: `gzip`, even if the document has `numcodecs.gzip` or a URI.
    pub name: String,
    /// The configuration; empty if there is none.
    pub configuration: Map<String, Value>,
}

/// Whose names codecs have. One name may mean different configurations in two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// Those of the v3 specification and its registry of extensions.
    V3,
    /// Those of numcodecs, with its configurations and defaults: the ids of v2, `numcodecs.*` in v3, the URIs of the draft.
    Numcodecs,
    /// Codecs that no registry has, made only by reading a document into a model.
    Model,
}

/// The prefix of the names of [`Namespace::Numcodecs`] in lists of v3 codecs.
const NUMCODECS: &str = "numcodecs.";

/// The prefix of the names of [`Namespace::Model`] in lists of v3 codecs. No registered name has a colon.
const MODEL: &str = "model:";

impl CodecSpec {
    /// In [`Namespace::Model`]: elements with some words big-endian. Its configuration is `{"big": [[offset, width, count], …]}`, as
    /// [`WordRun`](crate::data_type::WordRun) has them.
    pub const MIXED_ENDIAN: &str = "mixed_endian";

    /// A codec of the v3 specification.
    pub fn v3(name: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::V3, name: name.to_owned(), configuration }
    }

    /// A codec of numcodecs.
    pub fn numcodecs(id: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::Numcodecs, name: id.to_owned(), configuration }
    }

    /// A codec that only the model has.
    pub(crate) fn model(name: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::Model, name: name.to_owned(), configuration }
    }

    /// Reads one entry of the `codecs` of a v3 document (also one within a codec's configuration): a name, or an object of `name`
    /// and `configuration`. A name that begins with `numcodecs.` is one of [`Namespace::Numcodecs`] without it, and one that begins with `model:` is one of
    /// [`Namespace::Model`]: so the codecs of a model can stand in the configuration of another.
    pub fn parse_v3(json: &Value) -> Result<Self, CodecSpecError> {
        let (name, configuration) = match json {
            Value::String(name) => (name.as_str(), Map::new()),
            Value::Object(object) => {
                let name = object.get("name").and_then(Value::as_str).ok_or(CodecSpecError::NoName)?;
                let configuration = match object.get("configuration") {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(configuration)) => configuration.clone(),
                    Some(_) => return Err(CodecSpecError::Configuration { name: truncated(name) }),
                };
                (name, configuration)
            }
            _ => return Err(CodecSpecError::NoName),
        };
        Ok(match (name.strip_prefix(NUMCODECS), name.strip_prefix(MODEL)) {
            (Some(id), _) => Self::numcodecs(id, configuration),
            (None, Some(name)) => Self::model(name, configuration),
            (None, None) => Self::v3(name, configuration),
        })
    }

    /// The entry of a list of codecs that [`parse_v3`](Self::parse_v3) reads into this.
    pub fn to_v3(&self) -> Value {
        let name = match self.namespace {
            Namespace::V3 => self.name.clone(),
            Namespace::Numcodecs => format!("{NUMCODECS}{}", self.name),
            Namespace::Model => format!("{MODEL}{}", self.name),
        };
        // zarr-python requires a configuration of numcodecs' codecs, even an empty one.
        match self.configuration.is_empty() && self.namespace != Namespace::Numcodecs {
            true => json!({"name": name}),
            false => json!({"name": name, "configuration": self.configuration}),
        }
    }

    /// The name for messages: `gzip`, or `numcodecs.gzip`.
    pub fn full_name(&self) -> String {
        match self.namespace {
            Namespace::V3 | Namespace::Model => self.name.clone(),
            Namespace::Numcodecs => format!("{NUMCODECS}{}", self.name),
        }
    }
}

/// The reason why an entry of `codecs` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecSpecError {
    /// It has no name.
    #[error("a codec is a name or an object with a \"name\"")]
    NoName,
    /// Its configuration is no object.
    #[error("the configuration of the codec {name} is not an object")]
    Configuration {
        /// The codec's name, cut to a length that can be shown.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v3_entries_roundtrip() {
        for entry in [
            json!({"name": "bytes", "configuration": {"endian": "big"}}),
            json!({"name": "crc32c"}),
            json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}),
            json!({"name": "numcodecs.crc32", "configuration": {}}),
            json!({"name": "model:mixed_endian", "configuration": {"big": [[0, 4, 1]]}}),
        ] {
            assert_eq!(CodecSpec::parse_v3(&entry).unwrap().to_v3(), entry);
        }
        assert_eq!(CodecSpec::parse_v3(&json!("crc32c")), Ok(CodecSpec::v3("crc32c", Map::new())));
        let null = CodecSpec::parse_v3(&json!({"name": "numcodecs.crc32", "configuration": null}));
        assert_eq!(null, Ok(CodecSpec::numcodecs("crc32", Map::new())));
        let mixed = CodecSpec::parse_v3(&json!("model:mixed_endian"));
        assert_eq!(mixed, Ok(CodecSpec::model(CodecSpec::MIXED_ENDIAN, Map::new())));
    }

    #[test]
    fn malformed_v3_entries_are_rejected() {
        for entry in [json!(null), json!(["gzip"]), json!({}), json!({"name": 1})] {
            assert_eq!(CodecSpec::parse_v3(&entry), Err(CodecSpecError::NoName), "{entry}");
        }
        let wrong = CodecSpec::parse_v3(&json!({"name": "gzip", "configuration": [1]}));
        assert_eq!(wrong, Err(CodecSpecError::Configuration { name: "gzip".to_owned() }));
    }
}
