//! Chains of codecs: what zarr-python writes with them, and what strangers might.

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd_codec::{ChainError, ChunkRepresentation, CodecChain, CodecError, Elements, PartialAccess, VariableBuilder};
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, StoredOrder, V2Context, parse_v2, parse_v3},
};

use Known::{Fixed, Variable};
use Writer::Exact;
use rows::ROWS;

mod malformed;
mod properties;
mod rows;
mod shards;

/// A chunk that zarr-python wrote.
struct Row {
    name: &'static str,
    /// The `data_type` of a v3 document, or the `dtype` of a v2 one.
    data_type: &'static str,
    shape: &'static [u64],
    /// The `codecs` of a v3 document, or the model's of a v2 one: triples of namespace, name and configuration.
    codecs: &'static str,
    chunk: &'static str,
    elements: Known,
    writer: Writer,
}

/// The elements in C order, each word little-endian, as hexadecimal digits.
enum Known {
    Fixed(&'static str),
    Variable(&'static [&'static str]),
}

/// True if our chunk is byte for byte that of zarr-python.
#[derive(PartialEq)]
enum Writer {
    Exact,
    Own,
}

const BUDGET: u64 = 1 << 20;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn variable(elements: &[Vec<u8>]) -> Elements {
    let mut builder = VariableBuilder::new(u64::MAX);
    elements.iter().for_each(|element| builder.push(element).unwrap());
    Elements::Variable(builder.finish())
}

impl Known {
    fn elements(&self) -> Elements {
        match self {
            Fixed(text) => Elements::Fixed(hex(text).into()),
            Variable(texts) => variable(&texts.iter().map(|text| hex(text)).collect::<Vec<_>>()),
        }
    }
}

fn chain(data_type: &DataType, shape: &[u64], specs: &[CodecSpec]) -> Result<CodecChain, ChainError> {
    let fill = data_type.zero();
    CodecChain::new(specs, ChunkRepresentation::new(data_type.clone(), shape.to_vec(), fill)?)
}

fn v3(codecs: &Value) -> Vec<CodecSpec> {
    codecs.as_array().unwrap().iter().map(|codec| CodecSpec::parse_v3(codec).unwrap()).collect()
}

fn v3_chain(data_type: &Value, shape: &[u64], codecs: &Value) -> Result<CodecChain, ChainError> {
    chain(&parse_v3(data_type).unwrap(), shape, &v3(codecs))
}

fn model(codecs: &Value) -> Vec<CodecSpec> {
    let spec = |triple: &Value| CodecSpec {
        namespace: match triple[0].as_str().unwrap() {
            "v3" => Namespace::V3,
            "numcodecs" => Namespace::Numcodecs,
            _ => Namespace::Model,
        },
        name: triple[1].as_str().unwrap().to_owned(),
        configuration: triple[2].as_object().unwrap().clone(),
    };
    codecs.as_array().unwrap().iter().map(spec).collect()
}

impl Row {
    fn chain(&self) -> CodecChain {
        let [data_type, codecs] =
            [self.data_type, self.codecs].map(|text| serde_json::from_str::<Value>(text).unwrap());
        let (data_type, specs) = match codecs[0].is_array() {
            true => {
                let specs = model(&codecs);
                let object_codec = specs.iter().find(|spec| spec.namespace == Namespace::Numcodecs);
                (parse_v2(&data_type, V2Context { object_codec }).unwrap().0, specs)
            }
            false => (parse_v3(&data_type).unwrap(), v3(&codecs)),
        };
        chain(&data_type, self.shape, &specs).unwrap_or_else(|error| panic!("{}: {error:?}", self.name))
    }
}

#[test]
fn chunks_of_zarr_python_roundtrip() {
    for row in ROWS {
        let chain = row.chain();
        let elements = row.elements.elements();
        let decoded =
            chain.decode(hex(row.chunk).into(), BUDGET).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
        assert_eq!(decoded, elements, "{}", row.name);
        let encoded = chain.encode(elements.clone()).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
        if row.writer == Exact {
            assert_eq!(encoded, hex(row.chunk), "{}", row.name);
        }
        if let Some(len) = chain.encoded_size() {
            assert!(encoded.len() as u64 <= len.max(), "{}", row.name);
            assert!(len.exact().is_none_or(|len| len == encoded.len() as u64), "{}", row.name);
        }
        assert_eq!(chain.decode(encoded, BUDGET).unwrap(), elements, "{}", row.name);
    }
}

#[test]
fn truncated_and_extended_chunks_are_rejected() {
    for row in ROWS {
        let chain = row.chain();
        let chunk = Bytes::from(hex(row.chunk));
        for end in 0..chunk.len() {
            assert!(chain.decode(chunk.slice(..end), BUDGET).is_err(), "{} {end}", row.name);
        }
        // A shard may have gaps, and then its index is where it is expected again. Bytes after the end of some formats
        // are ignored.
        let is_ended = ["zlib", "pcodec\",", "pcodec\"}"].iter().any(|name| row.codecs.contains(name));
        if !row.codecs.contains("sharding_indexed") {
            let longer = [&chunk, &chunk[..1]].concat();
            assert_eq!(
                chain.decode(longer.into(), BUDGET).is_ok(),
                is_ended && !row.codecs.contains("crc32c"),
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn decoding_variable_elements_respects_the_budget() {
    for row in ROWS {
        let Variable(elements) = row.elements else { continue };
        let least = elements.iter().map(|element| 8 + element.len() as u64 / 2).sum::<u64>();
        let error = row.chain().decode(hex(row.chunk).into(), least - 1).unwrap_err();
        assert!(matches!(error, CodecError::BudgetExceeded { .. }), "{} {error:?}", row.name);
    }
}

#[test]
fn flipped_bits_never_panic() {
    for row in ROWS {
        let (chain, chunk) = (row.chain(), hex(row.chunk));
        for bit in 0..8 * chunk.len() {
            let mut flipped = chunk.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Elements::Fixed(bytes)) = chain.decode(flipped.into(), BUDGET) {
                assert_eq!(Some(bytes.len() as u64), chain.representation().fixed_size(), "{} {bit}", row.name);
            }
        }
    }
}

#[test]
fn structs_with_fields_of_both_byte_orders_roundtrip() {
    let dtype = json!([["a", "<i4"], ["b", ">f8"], ["c", "|S3"]]);
    let (data_type, order) = parse_v2(&dtype, V2Context::default()).unwrap();
    let StoredOrder::Mixed(runs) = order else { panic!("{order:?}") };
    let big: Vec<_> = runs.iter().map(|run| [run.offset, run.width, run.count]).collect();
    assert_eq!(big, [[4, 8, 1]]);
    let specs = model(&json!([["model", "mixed_endian", {"big": big}]]));
    let chain = chain(&data_type, &[2], &specs).unwrap();
    assert!(matches!(chain.partial_access(), PartialAccess::Elements(StoredOrder::Mixed(_))));
    let stored = hex("010000004004000000000000616200f9ffffff4202a05f2000000078797a");
    let elements = Elements::Fixed(hex("010000000000000000000440616200f9ffffff000000205fa0024278797a").into());
    assert_eq!(chain.decode(stored.clone().into(), 0).unwrap(), elements);
    assert_eq!(chain.encode(elements).unwrap(), stored);
}

#[test]
fn codecs_at_invalid_positions_are_rejected() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let numcodecs =
        |id: &str, configuration: Value| json!({"name": format!("numcodecs.{id}"), "configuration": configuration});
    let cases = [
        ("int16", json!([])),
        ("int16", json!(["bytes"])),
        ("int16", json!([{"name": "bytes", "configuration": {"endian": "middle"}}])),
        ("int16", json!([little, little])),
        ("int16", json!(["crc32c", little])),
        ("int16", json!(["vlen-utf8"])),
        ("string", json!([little])),
        ("string", json!([numcodecs("delta", json!({"dtype": "<i2"})), "vlen-utf8"])),
        ("int16", json!([{"name": "transpose", "configuration": {"order": [0, 0]}}, little])),
        ("int16", json!([{"name": "transpose", "configuration": {"order": [0]}}, little])),
        ("int16", json!([{"name": "transpose", "configuration": {"order": [0, 2]}}, little])),
        ("int16", json!([{"name": "transpose", "configuration": {"order": [0, -1]}}, little])),
        ("int16", json!([{"name": "transpose", "configuration": {"order": "K"}}, little])),
        ("int16", json!([numcodecs("delta", json!({"dtype": "<i4"})), little])),
        ("int16", json!([numcodecs("delta", json!({"dtype": "|O"})), little])),
        ("int16", json!([numcodecs("packbits", json!({})), little])),
        ("string", json!([numcodecs("bitround", json!({"keepbits": 3})), "vlen-utf8"])),
        ("float32", json!([numcodecs("bitround", json!({"keepbits": -1})), little])),
        ("int16", json!([numcodecs("quantize", json!({"digits": 3})), little])),
        ("complex64", json!([numcodecs("quantize", json!({"digits": 3})), little])),
        ("string", json!([numcodecs("fixedscaleoffset", json!({"offset": 0, "scale": 1})), "vlen-utf8"])),
        ("uint8", json!(["bytes", numcodecs("delta", json!({}))])),
        ("uint8", json!(["bytes", numcodecs("vlen-utf8", json!({}))])),
        ("uint8", json!(["bytes", {"name": "transpose", "configuration": {"order": [0, 1]}}])),
    ];
    for (data_type, codecs) in cases {
        let error = v3_chain(&json!(data_type), &[2, 3], &codecs).unwrap_err();
        assert!(!matches!(error, ChainError::UnknownCodec { .. }), "{codecs} {error:?}");
    }
}

#[test]
fn transpositions_that_cancel_out_keep_partial_access() {
    let codecs = |order: Value| json!([{"name": "transpose", "configuration": {"order": order}}, {"name": "bytes"}]);
    for order in [json!([0, 1]), json!("C")] {
        let chain = v3_chain(&json!("uint8"), &[2, 3], &codecs(order)).unwrap();
        assert!(matches!(chain.partial_access(), PartialAccess::Elements(StoredOrder::Little)));
    }
    let chain = v3_chain(&json!("uint8"), &[2, 3], &codecs(json!([1, 0]))).unwrap();
    assert!(matches!(chain.partial_access(), PartialAccess::Full));
}

#[test]
fn json2_of_empty_arrays_takes_constant_time() {
    let json2 = CodecSpec::numcodecs("json2", serde_json::Map::new());
    let (objects, _) = parse_v2(&json!("|O"), V2Context { object_codec: Some(&json2) }).unwrap();
    let chain = chain(&objects, &[1 << 60, 0], &[json2]).unwrap();
    let encoded = chain.encode(variable(&[])).unwrap();
    assert_eq!(encoded, r#"["|O",[0]]"#);
    assert_eq!(chain.decode(encoded, BUDGET).unwrap(), variable(&[]));
}

/// A write of one element encodes its neighbours again.
#[test]
fn json2_preserves_the_values_of_a_decoded_chunk() {
    let json2 = CodecSpec::numcodecs("json2", serde_json::Map::new());
    let (objects, _) = parse_v2(&json!("|O"), V2Context { object_codec: Some(&json2) }).unwrap();
    let chain = chain(&objects, &[3, 2], &[json2]).unwrap();
    // Written by Python.
    let stored = concat!(
        r#"[[NaN,"NaN"],[[-Infinity,Infinity],340282366920938463463374607431768211456],"#,
        r#"["\ud800",{"a":1.5,"b":[1e+16,-0.0]}],"|O",[3,2]]"#,
    );
    let decoded = chain.decode(stored.into(), BUDGET).unwrap();
    assert_eq!(chain.encode(decoded).unwrap(), stored);
}

#[test]
fn unsupported_time_conversions_are_rejected() {
    for (id, configuration) in [
        ("astype", json!({"encode_dtype": "<M8[s]", "decode_dtype": "<M8[ms]"})),
        ("astype", json!({"encode_dtype": "<m8[s]", "decode_dtype": "<m8[2s]"})),
        ("astype", json!({"encode_dtype": "<U4", "decode_dtype": "<M8[s]"})),
        ("delta", json!({"dtype": "<M8[s]"})),
        ("delta", json!({"dtype": "<m8[s]", "astype": "<f8"})),
        ("delta", json!({"dtype": "<m8[s]", "astype": "<m8[ms]"})),
        ("delta", json!({"dtype": "<i8", "astype": "<m8[s]"})),
        ("quantize", json!({"digits": 1, "dtype": "<m8[s]"})),
        ("fixedscaleoffset", json!({"offset": 1, "scale": 1, "dtype": "<m8[s]"})),
    ] {
        let bytes = CodecSpec::v3("bytes", json!({"endian": "little"}).as_object().unwrap().clone());
        let filter = CodecSpec::numcodecs(id, configuration.as_object().unwrap().clone());
        let found = chain(&parse_v3(&json!("int64")).unwrap(), &[2], &[bytes, filter]);
        assert!(
            matches!(found, Err(ChainError::MalformedConfiguration { .. } | ChainError::InvalidConfiguration { .. })),
            "{id} {configuration}: {found:?}"
        );
    }
}

#[test]
fn scale_and_offset_beyond_the_data_type_are_rejected() {
    let codecs = |configuration: Value| json!([{"name": "scale_offset", "configuration": configuration}, "bytes"]);
    for (data_type, configuration) in [
        ("bool", json!({})),
        ("uint8", json!({"offset": 256})),
        ("uint8", json!({"offset": 1.5})),
        ("uint8", json!({"scale": 0})),
        ("uint8", json!({"scale": 2, "more": 1})),
        // The fill value is 0, from which nothing can be subtracted.
        ("uint8", json!({"offset": 1})),
    ] {
        let found = v3_chain(&json!(data_type), &[2], &codecs(configuration.clone()));
        assert!(
            matches!(found, Err(ChainError::MalformedConfiguration { .. } | ChainError::InvalidConfiguration { .. })),
            "{data_type} {configuration}: {found:?}"
        );
    }
    let chain = v3_chain(&json!("int8"), &[2], &codecs(json!({"offset": -100, "scale": -1}))).unwrap();
    let refused = |found: Result<_, CodecError>, is: fn(&CodecError) -> bool| found.is_err_and(|error| is(&error));
    assert!(refused(chain.encode(Elements::Fixed(hex("007f").into())).map(drop), |error| {
        matches!(error, CodecError::InvalidElement { index: 1, .. })
    }));
    let decode = |stored: &str, chain: &CodecChain| chain.decode(hex(stored).into(), BUDGET).map(drop);
    assert!(decode("009c", &chain).is_ok());
    assert!(refused(decode("007f", &chain), |error| matches!(error, CodecError::Malformed { .. })));
    let chain = v3_chain(&json!("int8"), &[2], &codecs(json!({"scale": 2}))).unwrap();
    assert!(refused(decode("0201", &chain), |error| matches!(error, CodecError::Malformed { .. })));
}

/// As numcodecs: it reads whatever somebody says that it has rounded, and rounds floats only.
#[test]
fn working_memory_has_the_widest_array_of_the_chain() {
    let astype = |stored| {
        let configuration = json!({"encode_dtype": stored, "decode_dtype": "|u1"});
        json!({"name": "numcodecs.astype", "configuration": configuration})
    };
    let memory = |filters: &[Value], compressor: &[Value]| {
        let codecs = [filters, &[json!({"name": "bytes", "configuration": {"endian": "big"}})], compressor].concat();
        v3_chain(&json!("uint8"), &[1000], &json!(codecs)).unwrap().working_memory()
    };
    assert_eq!(memory(&[], &[]), Some(1_000));
    assert_eq!(memory(&[astype(">f8")], &[]), Some(8_000));
    assert_eq!(memory(&[astype(">f8")], &[json!({"name": "gzip", "configuration": {"level": 1}})]), Some(16_000));
}

#[test]
fn bitround_decodes_types_that_it_cannot_encode() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    for (data_type, keepbits, why) in [
        ("int16", 3, "bitround cannot encode int16, only floating-point numbers of 16 to 64 bits"),
        ("uint16", 0, "bitround cannot encode uint16, only floating-point numbers of 16 to 64 bits"),
        ("bfloat16", 3, "bitround cannot encode bfloat16, only floating-point numbers of 16 to 64 bits"),
        ("float16", 11, "bitround cannot keep 11 bits of float16, which has 10"),
    ] {
        for name in ["bitround", "numcodecs.bitround"] {
            let codecs = json!([{"name": name, "configuration": {"keepbits": keepbits}}, little]);
            let chain = v3_chain(&json!(data_type), &[2], &codecs).unwrap();
            let Elements::Fixed(decoded) = chain.decode(hex("01020304").into(), BUDGET).unwrap() else { panic!() };
            assert_eq!(decoded, hex("01020304"), "{data_type} {name}");
            let error = chain.encode(Elements::Fixed(decoded)).unwrap_err();
            assert_eq!(error.to_string(), why, "{name}");
        }
    }
    // In v2 it may be given bytes that are no elements.
    let zlib =
        json!([little, {"name": "numcodecs.zlib"}, {"name": "numcodecs.bitround", "configuration": {"keepbits": 3}}]);
    let chain = v3_chain(&json!("int16"), &[2], &zlib).unwrap();
    let zeros = hex("789c63606060000000040001");
    assert_eq!(chain.decode(zeros.into(), BUDGET).unwrap(), Elements::Fixed(vec![0; 4].into()));
}

/// The bits that the specification puts one after the other.
#[test]
fn packbits_stores_a_range_of_bits() {
    let packed = |configuration: &Value| json!([{"name": "packbits", "configuration": configuration}]);
    for (data_type, configuration, elements, expected) in [
        ("bool", json!({}), "010000010101000001", "3901"),
        ("bool", json!({"padding_encoding": "first_byte"}), "010000010101000001", "073901"),
        ("bool", json!({"padding_encoding": "last_byte", "last_bit": null}), "0100000101010000", "3900"),
        ("int16", json!({"last_bit": 11}), "0100ffff00f8ff07", "01f0ff00f87f"),
        ("int8", json!({"first_bit": 1, "last_bit": 3, "padding_encoding": "first_byte"}), "02f8fe0606", "01e137"),
        ("uint32", json!({"first_bit": 31}), "0000008000000000", "01"),
        ("float32", json!({"padding_encoding": "none"}), "0000c03f", "0000c03f"),
        ("complex64", json!({"first_bit": 16, "padding_encoding": "last_byte"}), "0000c03f000080ff", "c03f80ff00"),
        ("int64", json!({"first_bit": 3}), "f8ffffffffffffff0800000000000000", "ffffffffffffff3f0000000000000000"),
    ] {
        let data_type = json!(data_type);
        let size = parse_v3(&data_type).unwrap().fixed_size().unwrap();
        let len = (elements.len() / 2 / size) as u64;
        let chain = v3_chain(&data_type, &[len], &packed(&configuration)).unwrap();
        let elements = Elements::Fixed(hex(elements).into());
        assert_eq!(chain.encode(elements.clone()).unwrap(), hex(expected), "{data_type} {configuration}");
        assert_eq!(chain.decode(hex(expected).into(), BUDGET).unwrap(), elements, "{data_type} {configuration}");
        assert_eq!(chain.encoded_size().unwrap().exact(), Some((expected.len() / 2) as u64));
        assert!(matches!(
            chain.decode(hex(&format!("{expected}00")).into(), BUDGET),
            Err(CodecError::LengthMismatch { codec: "packbits", .. })
        ));
    }
    let padded = v3_chain(&json!("bool"), &[5], &packed(&json!({"padding_encoding": "first_byte"}))).unwrap();
    assert!(padded.decode(hex("031f").into(), BUDGET).is_ok());
    assert!(matches!(padded.decode(hex("041f").into(), BUDGET), Err(CodecError::Malformed { .. })));
    for (data_type, configuration) in [
        ("string", json!({})),
        ("bool", json!({"last_bit": 1})),
        ("int8", json!({"last_bit": 8})),
        ("int8", json!({"first_bit": 5, "last_bit": 4})),
        ("int8", json!({"first_bit": -1})),
        ("int8", json!({"padding_encoding": "both"})),
    ] {
        let found = v3_chain(&json!(data_type), &[2], &packed(&configuration));
        assert!(
            matches!(found, Err(ChainError::MalformedConfiguration { .. } | ChainError::InvalidConfiguration { .. })),
            "{data_type} {configuration}: {found:?}"
        );
    }
}

#[test]
fn codecs_that_are_not_supported_are_refused_by_name() {
    for name in ["zfpy", "msgpack2", "base64", "pickle"] {
        let codec = json!({"name": format!("numcodecs.{name}"), "configuration": {}});
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        for codecs in [json!([codec]), json!([little, codec])] {
            let error = v3_chain(&json!("int32"), &[2], &codecs).unwrap_err();
            assert!(
                matches!(&error, ChainError::UnsupportedCodec { codec, .. } if *codec == format!("numcodecs.{name}")),
                "{error:?}"
            );
        }
    }
    let other = v3_chain(&json!("int32"), &[2], &json!(["zfpy"])).unwrap_err();
    assert!(matches!(other, ChainError::UnknownCodec { .. }), "{other:?}");
}
