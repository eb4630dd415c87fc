//! Codecs as metadata documents configure them. The crate `codec` implements them.

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
    /// The namespace of the name.
    pub namespace: Namespace,
    /// The name: `gzip`, even if the document has `numcodecs.gzip` or a URI.
    pub name: String,
    /// The configuration; empty if there is none.
    pub configuration: Map<String, Value>,
}

/// Namespaces of codec names. A name may have different configurations in two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// Codecs of the v3 specification and of its extension registry.
    V3,
    /// Codecs of numcodecs, with its configurations and defaults: ids in v2, `numcodecs.*` in v3, URIs in the draft.
    Numcodecs,
    /// Codecs that only exist in models, made by reading a document.
    Model,
}

/// The prefix of the names of [`Namespace::Numcodecs`] in lists of v3 codecs.
const NUMCODECS: &str = "numcodecs.";

/// The prefix of the names of [`Namespace::Model`] in lists of v3 codecs. Registered names have no colon.
const MODEL: &str = "model:";

impl CodecSpec {
    /// A codec of [`Namespace::Model`] that stores some words big-endian. Its configuration is `{"big": [[offset,
    /// width, count], …]}`, the fields of [`WordRun`](crate::data_type::WordRun).
    pub const MIXED_ENDIAN: &str = "mixed_endian";

    /// Creates a codec of the v3 specification.
    pub fn v3(name: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::V3, name: name.to_owned(), configuration }
    }

    /// Creates a codec of numcodecs.
    pub fn numcodecs(id: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::Numcodecs, name: id.to_owned(), configuration }
    }

    /// Creates a codec that only exists in models.
    pub(crate) fn model(name: &str, configuration: Map<String, Value>) -> Self {
        Self { namespace: Namespace::Model, name: name.to_owned(), configuration }
    }

    /// Reads an entry of the `codecs` of a v3 document, or of a codec's configuration: a name, or an object with `name`
    /// and `configuration`. The prefix `numcodecs.` selects [`Namespace::Numcodecs`], the prefix `model:`
    /// [`Namespace::Model`], so that codecs of a model can be in the configuration of another one.
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

    /// The entry of a list of v3 codecs that [`parse_v3`](Self::parse_v3) reads as this codec.
    pub fn to_v3(&self) -> Value {
        let name = match self.namespace {
            Namespace::V3 => self.name.clone(),
            Namespace::Numcodecs => format!("{NUMCODECS}{}", self.name),
            Namespace::Model => format!("{MODEL}{}", self.name),
        };
        // zarr-python requires a configuration of `numcodecs.*` codecs, even an empty one.
        match self.configuration.is_empty() && self.namespace != Namespace::Numcodecs {
            true => json!({"name": name}),
            false => json!({"name": name, "configuration": self.configuration}),
        }
    }

    /// The name for messages, such as `gzip` or `numcodecs.gzip`.
    pub fn full_name(&self) -> String {
        match self.namespace {
            Namespace::V3 | Namespace::Model => self.name.clone(),
            Namespace::Numcodecs => format!("{NUMCODECS}{}", self.name),
        }
    }
}

/// Errors of an entry of `codecs`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecSpecError {
    /// The entry has no name.
    #[error("a codec is a name or an object with a \"name\"")]
    NoName,
    /// The configuration is not an object.
    #[error("the configuration of the codec {name} is not an object")]
    Configuration {
        /// The codec's name, truncated.
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
