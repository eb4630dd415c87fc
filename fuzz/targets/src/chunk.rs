//! Chunks built from fuzzer input.

use serde_json::Value;
use zarrd_codec::{ChunkRepresentation, CodecChain, CodecError, Elements, VariableBuilder};
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{DataType, V2Context, parse_v2, parse_v3},
};

/// A data type by its v3 name, or by its v2 `dtype` if it has no v3 name.
pub(crate) fn data_type(name: &str) -> DataType {
    let json = serde_json::from_str(name).unwrap_or_else(|_| Value::from(name));
    let read_v2 =
        |filter: Option<&CodecSpec>| parse_v2(&json, V2Context { object_codec: filter }).map(|(found, _)| found);
    parse_v3(&json)
        .or_else(|_| read_v2(None))
        .or_else(|_| {
            let (id, configuration) = name.split_once(' ').expect("objects with a filter");
            let configuration = serde_json::from_str(configuration).expect("the configuration of a filter");
            parse_v2(&Value::from("|O"), V2Context { object_codec: Some(&CodecSpec::numcodecs(id, configuration)) })
                .map(|(found, _)| found)
        })
        .expect("a data type")
}

/// The codecs of a JSON list.
pub(crate) fn codecs(json: &str) -> Vec<CodecSpec> {
    let list: Vec<Value> = serde_json::from_str(json).expect("a list of codecs");
    list.iter().map(|codec| CodecSpec::parse_v3(codec).expect("a codec")).collect()
}

/// The elements of a chunk: the input bytes, padded with zeros. Elements of variable length end at a zero.
pub(crate) fn elements(chunk: &ChunkRepresentation, bytes: &[u8]) -> Elements {
    if let Some(len) = chunk.fixed_size() {
        let mut bytes = bytes.to_vec();
        bytes.resize(len as usize, 0);
        return Elements::Fixed(bytes.into());
    }
    let mut pieces = bytes.split(|&byte| byte == 0);
    let mut elements = VariableBuilder::new(u64::MAX);
    for _ in 0..chunk.num_elements() {
        elements.push(pieces.next().unwrap_or_default()).expect("no limit applies");
    }
    Elements::Variable(elements.finish())
}

/// Asserts that elements form a complete chunk, within the budget if their length is variable.
pub(crate) fn is_complete(elements: &Elements, chunk: &ChunkRepresentation, budget: u64) {
    match elements {
        Elements::Fixed(bytes) => assert_eq!(Some(bytes.len() as u64), chunk.fixed_size()),
        Elements::Variable(found) => {
            assert_eq!((None, found.len() as u64), (chunk.fixed_size(), chunk.num_elements()));
            assert!(elements.memory_size() <= budget);
        }
    }
}

/// Encodes a chunk and checks its encoded length; `None` if encoding fails, which variable-length elements may cause, and
/// numbers that a cast cannot represent.
pub(crate) fn encode(chain: &CodecChain, elements: Elements) -> Option<bytes::Bytes> {
    let encoded = match chain.encode(elements) {
        Ok(encoded) => encoded,
        Err(CodecError::InvalidElement { codec: "cast_value", .. }) => return None,
        Err(error) => {
            assert!(chain.representation().fixed_size().is_none(), "{error:?}");
            return None;
        }
    };
    if let Some(len) = chain.encoded_size() {
        let found = encoded.len() as u64;
        assert!(found <= len.max() && len.exact().is_none_or(|exact| exact == found), "{found} is not {len:?}");
    }
    Some(encoded)
}
