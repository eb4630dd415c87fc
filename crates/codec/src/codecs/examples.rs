//! Every codec documents a configuration, and it is valid.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{V2Context, parse_v2, parse_v3},
};

use super::FACTORIES;
use crate::{BytesRepresentation, ChunkRepresentation, CodecFactory, CodecInput, builder, registry};

/// The sources of the modules in this folder.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/codecs");
    let module = |entry: fs::DirEntry| match entry.path() {
        path if path.is_dir() => path.join("mod.rs"),
        path => path,
    };
    fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(module(entry.unwrap())).unwrap()).collect()
}

/// The JSON blocks in the documentation of a module, if its first line names a codec.
fn documented_configurations(source: &str, name: &str) -> Vec<Map<String, Value>> {
    let heading = source.lines().next().unwrap_or_default();
    if !heading.starts_with("//! The `") || !heading.contains(&format!("`{name}`")) {
        return Vec::new();
    }
    let documentation = source.lines().take_while(|line| line.starts_with("//!"));
    let text: String = documentation.flat_map(|line| [line.trim_start_matches("//!"), "\n"]).collect();
    let blocks = text.split("```json").skip(1).map(|block| block.split("```").next().unwrap_or_default());
    blocks.map(|json| serde_json::from_str(json).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

/// True if the configuration is valid for some input.
fn is_valid(factory: &CodecFactory, configuration: Map<String, Value>) -> bool {
    let spec = CodecSpec { namespace: factory.namespace, name: factory.name.to_owned(), configuration };
    let numbers = ["bool", "int16", "int32", "float32", "float64", "r128", "string", "bytes"];
    let objects = parse_v2(&json!("|O"), V2Context { object_codec: Some(&spec) }).map(|(data_type, _)| data_type);
    let data_types = numbers.map(|name| parse_v3(&json!(name)).unwrap()).into_iter().chain(objects);
    let arrays = data_types.flat_map(|data_type| {
        let shapes = [vec![64, 64], vec![64, 64, 64]];
        shapes.map(|shape| ChunkRepresentation::new(data_type.clone(), shape, data_type.zero()).unwrap())
    });
    let bytes = BytesRepresentation { stored_elements: None, size: None };
    let context = builder::top_level();
    registry::create(&spec, CodecInput::Bytes(&bytes), &context).is_ok()
        || arrays.into_iter().any(|array| registry::create(&spec, CodecInput::Array(&array), &context).is_ok())
}

#[test]
fn every_codec_documents_a_valid_configuration() {
    let sources = sources();
    for factory in FACTORIES.iter().copied().flatten() {
        let mut configurations = sources.iter().flat_map(|source| documented_configurations(source, factory.name));
        assert!(configurations.any(|configuration| is_valid(factory, configuration)), "{factory:?}");
    }
}
