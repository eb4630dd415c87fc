//! The configurations that the codecs' documentation shows.

use meta::{
    codecs::{
        CodecSpec,
        Namespace::{self, Model, Numcodecs, V3},
    },
    data_type::{V2Context, parse_v2, parse_v3},
};
use serde_json::json;

use crate::{BytesRepresentation, ChunkRepresentation, CodecInput, builder, registry};

/// The input of a codec.
enum Given {
    /// An array of this v3 `data_type`.
    Array(&'static str),
    /// An array of v2's objects.
    Objects,
    /// Bytes.
    Bytes,
}

use Given::{Array, Bytes, Objects};

/// The JSON block at the head of a codec's file.
pub(super) fn example(source: &str) -> String {
    let block = source.lines().skip_while(|line| *line != "//! ```json").skip(1).take_while(|line| *line != "//! ```");
    block.map(|line| line.trim_start_matches("//!")).collect()
}

#[test]
fn examples_are_configurations() {
    let files: [(&str, &[Namespace], Given, &str); 19] = [
        ("bytes", &[V3], Array("int32"), include_str!("bytes.rs")),
        ("endian", &[V3], Array("int32"), include_str!("bytes.rs")),
        ("mixed_endian", &[Model], Array("r128"), include_str!("mixed_endian.rs")),
        ("transpose", &[V3], Array("int32"), include_str!("transpose.rs")),
        ("sharding_indexed", &[V3], Array("int32"), include_str!("sharding.rs")),
        ("shuffle", &[Numcodecs], Bytes, include_str!("shuffle.rs")),
        ("delta", &[Numcodecs], Array("int32"), include_str!("delta.rs")),
        ("fixedscaleoffset", &[Numcodecs], Array("float64"), include_str!("fixedscaleoffset.rs")),
        ("scale_offset", &[V3], Array("float32"), include_str!("scale_offset.rs")),
        ("quantize", &[Numcodecs], Array("float64"), include_str!("quantize.rs")),
        ("bitround", &[V3, Numcodecs], Array("float32"), include_str!("bitround.rs")),
        ("astype", &[Numcodecs], Array("float64"), include_str!("astype.rs")),
        ("packbits", &[Numcodecs], Array("bool"), include_str!("packbits_numcodecs.rs")),
        ("packbits", &[V3], Array("int16"), include_str!("packbits_v3.rs")),
        ("vlen-utf8", &[V3, Numcodecs], Array("string"), include_str!("vlen_utf8.rs")),
        ("vlen-bytes", &[V3, Numcodecs], Array("bytes"), include_str!("vlen_bytes.rs")),
        ("vlen-array", &[Numcodecs], Objects, include_str!("vlen_array.rs")),
        ("json2", &[Numcodecs], Objects, include_str!("json2.rs")),
        ("categorize", &[Numcodecs], Objects, include_str!("categorize.rs")),
    ];
    for (name, namespaces, given, source) in files {
        for &namespace in namespaces {
            let configuration = serde_json::from_str(&example(source)).unwrap();
            let spec = CodecSpec { namespace, name: name.to_owned(), configuration };
            let shape = vec![64, 64, 64];
            let serialized = BytesRepresentation { stored_elements: None, size: None };
            let data_type = match given {
                Array(data_type) => parse_v3(&json!(data_type)).unwrap(),
                Objects => parse_v2(&json!("|O"), V2Context { object_codec: Some(&spec) }).unwrap().0,
                Bytes => parse_v3(&json!("uint8")).unwrap(),
            };
            // The documented shard has two dimensions.
            let shape = if name == "sharding_indexed" { vec![64, 64] } else { shape };
            let array = ChunkRepresentation::new(data_type.clone(), shape, data_type.zero()).unwrap();
            let input = if matches!(given, Bytes) { CodecInput::Bytes(&serialized) } else { CodecInput::Array(&array) };
            let resolved = registry::create(&spec, input, &builder::top_level());
            assert!(resolved.is_ok(), "{name} {resolved:?}");
        }
    }
}
