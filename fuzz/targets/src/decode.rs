//! Decoding and encoding of chunks.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd_codec::{ChunkRepresentation, CodecChain, CodecError, Elements};
use zarrd_meta::{codecs::CodecSpec, data_type::DataType, json::Json as Text};

use crate::chunk;

/// The memory budget of elements of variable length, in bytes.
const BUDGET: u64 = 1 << 18;

/// The part of a chunk that survives encoding and decoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preserved {
    /// Every bit.
    All,
    /// Every bit of a chunk that was decoded before: an element has several encodings.
    Decoded,
    /// The JSON value of each element: a value has several texts.
    Json,
    /// The number of elements.
    Number,
}

use Preserved::{All, Decoded, Json, Number};

/// The position of the codecs relative to `bytes`.
enum Position {
    /// Before it.
    Before,
    /// After it.
    After,
    /// Without it.
    Alone,
}

use Position::{After, Alone, Before};

struct Case {
    data_types: Vec<DataType>,
    codecs: Vec<CodecSpec>,
    preserved: Preserved,
}

const WORDS: &[&str] = &[
    "uint16",
    "float64",
    "complex64",
    r#"{"name":"struct","configuration":{"fields":[["a","uint8"],["b","int32"]]}}"#,
];
const BYTES: &[&str] = &["uint8", "|S3", "r24", "bool"];
const NUMBERS: &[&str] = &["int32", "uint8", "float64", "complex64", "float16", "bool", "|S3"];
const TEXTS: &[&str] = &["string", "vlen-utf8 {}"];
const PADDED_STRUCT: &str = r#"[["a", "|u1"], ["", "|V3"], ["b", "<i4"]]"#;
const BIG_STRUCT: &str = r#"[["a", "|u1"], ["b", ">i4"], ["c", "<f8", [2]]]"#;

/// Chains with every codec, in several configurations and positions.
#[rustfmt::skip]
static CASES: &[(Preserved, Position, &[&str], &str)] = &[
    (All, Alone, BYTES, r#"["bytes"]"#),
    (All, Alone, WORDS, r#"[{"name":"bytes","configuration":{"endian":"big"}}]"#),
    (All, Alone, WORDS, r#"[{"name":"endian","configuration":{"endian":"little"}}]"#),
    (All, Alone, &[BIG_STRUCT], r#"[{"name":"model:mixed_endian","configuration":{"big":[[1,4,1]]}}]"#),
    (All, Before, NUMBERS, r#"[{"name":"transpose","configuration":{"order":[2,0,1]}}]"#),
    (All, Before, NUMBERS, r#"[{"name":"transpose","configuration":{"order":"F"}}, {"name":"transpose","configuration":{"order":"C"}}]"#),
    (All, Alone, TEXTS, r#"[{"name":"transpose","configuration":{"order":"F"}}, "vlen-utf8"]"#),

    (All, After, NUMBERS, r#"["gzip"]"#),
    (All, After, NUMBERS, r#"[{"name":"gzip","configuration":{"level":0}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.gzip","configuration":{"level":9}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.zlib"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.zlib","configuration":{"level":-1}}]"#),
    (All, After, NUMBERS, r#"[{"name":"zstd","configuration":{"level":3,"checksum":true}}]"#),
    (All, After, NUMBERS, r#"[{"name":"zstd","configuration":{"level":-5,"checksum":false}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.zstd","configuration":{"level":1}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.lz4"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lz4","configuration":{"acceleration":50}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.bz2"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.bz2","configuration":{"level":9}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.lzma"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lzma","configuration":{"format":1,"check":0,"preset":0}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lzma","configuration":{"format":1,"check":10,"filters":[{"id":4},{"id":33,"preset":1}]}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lzma","configuration":{"format":2,"preset":1}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lzma","configuration":{"format":3,"filters":[{"id":3,"dist":4},{"id":33,"preset":1}]}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.lzma","configuration":{"format":3,"filters":[{"id":4611686018427387905,"lc":1,"lp":1,"pb":0}]}}]"#),
    (All, After, NUMBERS, r#"[{"name":"blosc","configuration":{"cname":"blosclz","clevel":9,"shuffle":"shuffle","typesize":4,"blocksize":0}}]"#),
    (All, After, NUMBERS, r#"[{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"bitshuffle","typesize":8,"blocksize":128}}]"#),
    (All, After, NUMBERS, r#"[{"name":"blosc","configuration":{"cname":"zstd","clevel":1,"shuffle":"noshuffle","blocksize":256}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.blosc","configuration":{"cname":"lz4hc","clevel":3,"shuffle":-1}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.blosc","configuration":{"cname":"snappy","clevel":5,"shuffle":1}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.blosc","configuration":{"cname":"zlib","clevel":5,"shuffle":2,"blocksize":512}}]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.blosc","configuration":{"cname":"blosclz","clevel":0,"shuffle":0}}]"#),

    (All, After, NUMBERS, r#"["crc32c"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.crc32c","configuration":{"location":"start"}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.crc32"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.adler32","configuration":{"location":"end"}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.fletcher32"]"#),
    (All, After, NUMBERS, r#"[{"name":"numcodecs.jenkins_lookup3","configuration":{"initval":7,"prefix":[1,2]}}]"#),
    (All, After, NUMBERS, r#"["numcodecs.shuffle"]"#),
    (All, After, &["|S3", "r24"], r#"[{"name":"numcodecs.shuffle","configuration":{"elementsize":3}}, "crc32c", "gzip"]"#),

    (All, Before, &["int32"], r#"["numcodecs.delta"]"#),
    (All, After, &["uint16", "|S4"], r#"[{"name":"numcodecs.delta","configuration":{"dtype":">u2"}}, "numcodecs.zlib"]"#),
    (Number, After, &["int32"], r#"[{"name":"numcodecs.delta","configuration":{"dtype":"<i4","astype":"|i1"}}, "gzip"]"#),
    (Number, Before, &["float32"], r#"["numcodecs.delta"]"#),
    (Number, Before, &["float64", "float16"], r#"[{"name":"numcodecs.fixedscaleoffset","configuration":{"offset":10,"scale":2.5,"astype":"<u2"}}]"#),
    (Number, After, &["uint16", "int16"], r#"[{"name":"numcodecs.fixedscaleoffset","configuration":{"offset":-3,"scale":0,"dtype":"<i2"}}]"#),
    (Number, Before, &["float64"], r#"[{"name":"numcodecs.quantize","configuration":{"digits":2,"astype":"<f4"}}]"#),
    (Number, After, &["float32"], r#"[{"name":"numcodecs.quantize","configuration":{"digits":-400,"dtype":"<f4"}}]"#),
    (Number, Before, &["float32", "float64", "float16"], r#"[{"name":"bitround","configuration":{"keepbits":3}}]"#),
    (Number, After, &["float32"], r#"[{"name":"numcodecs.bitround","configuration":{"keepbits":23}}]"#),
    (Number, Before, &["float64", "int64"], r#"[{"name":"numcodecs.astype","configuration":{"encode_dtype":"<f2"}}]"#),
    (Number, After, &["complex64", "int64"], r#"[{"name":"numcodecs.astype","configuration":{"encode_dtype":">i2","decode_dtype":"<i8"}}, "gzip"]"#),
    (Number, After, &["uint8"], r#"[{"name":"numcodecs.astype","configuration":{"encode_dtype":"<c16","decode_dtype":"|b1"}}]"#),
    (Decoded, Before, &["bool"], r#"["numcodecs.packbits"]"#),
    (Decoded, After, &["bool"], r#"["numcodecs.packbits"]"#),
    (Number, After, &["<U3"], r#"[{"name":"numcodecs.categorize","configuration":{"labels":["a","bcdef",""],"dtype":"<U3","astype":"|u1"}}]"#),
    (Decoded, Before, &["<U2"], r#"[{"name":"numcodecs.categorize","configuration":{"labels":["a","b"],"dtype":"<U2","astype":"<f4"}}]"#),
    (Decoded, Alone, TEXTS, r#"[{"name":"numcodecs.categorize","configuration":{"labels":["a","bc"],"dtype":"|O","astype":">u2"}}]"#),

    (All, Alone, TEXTS, r#"["vlen-utf8"]"#),
    (All, Alone, TEXTS, r#"["numcodecs.vlen-utf8", "gzip"]"#),
    (All, Alone, &["bytes", "vlen-bytes {}"], r#"["vlen-bytes"]"#),
    (All, Alone, &["vlen-bytes {}"], r#"["numcodecs.vlen-bytes", {"name":"numcodecs.blosc","configuration":{}}]"#),
    (All, Alone, &[r#"vlen-array {"dtype":"<i4"}"#], r#"[{"name":"numcodecs.vlen-array","configuration":{"dtype":"<i4"}}]"#),
    (All, Alone, &[r#"vlen-array {"dtype":">i2"}"#], r#"[{"name":"numcodecs.vlen-array","configuration":{"dtype":">i2"}}, "numcodecs.lz4"]"#),
    (Json, Alone, &["json2 {}"], r#"["numcodecs.json2"]"#),
    (Json, Alone, &["json2 {}"], r#"[{"name":"numcodecs.json2","configuration":{"encoding":"ascii","ensure_ascii":false,"separators":[", ",": "],"sort_keys":false}}, "numcodecs.bz2"]"#),

    (All, Alone, NUMBERS, r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":[{"name":"bytes","configuration":{"endian":"little"}},"gzip"]}}, "crc32c"]"#),
    (All, Alone, TEXTS, r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":["vlen-utf8"],"index_codecs":[{"name":"bytes","configuration":{"endian":"big"}}],"index_location":"start"}}, "zstd"]"#),

    (All, Alone, &["int16", "uint8", "float32", "complex64"], r#"["packbits"]"#),
    (Decoded, Alone, &["bool"], r#"[{"name":"packbits","configuration":{"padding_encoding":"last_byte"}}]"#),
    (Decoded, Alone, &["int16", "uint32"], r#"[{"name":"packbits","configuration":{"padding_encoding":"first_byte","first_bit":1,"last_bit":11}}, "gzip"]"#),
    (Number, Before, &["float32", "float64"], r#"[{"name":"scale_offset","configuration":{"offset":5,"scale":3}}]"#),
    (Number, Before, &["float32", "float64", "float16"], r#"[{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"wrap","scalar_map":{"encode":[["NaN",-9999],["Infinity",1]],"decode":[[-9999,"NaN"]]}}}]"#),
    (Decoded, Before, &["float32", "int32", "uint8"], r#"[{"name":"cast_value","configuration":{"data_type":"float16","rounding":"nearest-away","out_of_range":"clamp"}}]"#),
    (Number, Before, &["float64"], r#"[{"name":"scale_offset","configuration":{"scale":100}},{"name":"cast_value","configuration":{"data_type":"uint64","rounding":"towards-negative","out_of_range":"clamp"}}]"#),
    (All, Alone, &["int32", "uint64", "float16"], r#"["numcodecs.pcodec"]"#),
    (All, After, &["float32", "int16"], r#"[{"name":"numcodecs.pcodec","configuration":{"level":2,"delta_spec":"try_lookback","equal_pages_up_to":300}}]"#),
    (All, Alone, &["int2", "uint4", "float8_e4m3fn", "float8_e8m0fnu"], r#"["bytes"]"#),
    (All, Alone, &[PADDED_STRUCT, "bfloat16"], r#"[{"name":"bytes","configuration":{"endian":"little"}}, "gzip"]"#),
];

static PARSED_CASES: LazyLock<Vec<Case>> = LazyLock::new(|| CASES.iter().map(Case::new).collect());

impl Case {
    fn new((preserved, position, data_types, json): &(Preserved, Position, &[&str], &str)) -> Self {
        let mut codecs = chunk::codecs(json);
        let endian = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let bytes = CodecSpec::parse_v3(&endian).expect("a codec");
        match position {
            Before => codecs.push(bytes),
            After => codecs.insert(0, bytes),
            Alone => {}
        }
        Self { preserved: *preserved, data_types: data_types.iter().copied().map(chunk::data_type).collect(), codecs }
    }
}

/// Decodes a chunk. The first byte selects a chain, the second one of its data types, the third the meaning of the rest
/// and the rank; the next bytes are the extents.
pub fn decode(data: &[u8]) {
    let Some((&[case, data_type, form], rest)) = data.split_first_chunk() else { return };
    let Some((extents, rest)) = rest.split_at_checked(usize::from(form >> 2) % 4) else { return };
    let case = PARSED_CASES.iter().cycle().nth(case.into()).expect("they begin again");
    let data_type = case.data_types.iter().cycle().nth(data_type.into()).expect("they begin again").clone();
    let shape = extents.iter().map(|extent| u64::from(extent % 17)).collect();
    let fill_value = data_type.zero();
    let array = ChunkRepresentation::new(data_type, shape, fill_value).expect("a small chunk");
    // Some codecs need another rank.
    let Ok(chain) = CodecChain::new(&case.codecs, array) else { return };
    match form % 4 {
        0 | 1 => roundtrip_bytes(&chain, Bytes::copy_from_slice(rest), case.preserved),
        2 => roundtrip_elements(&chain, rest, case.preserved),
        _ => roundtrip_damaged(&chain, rest, case.preserved),
    }
}

/// Decodes arbitrary bytes, and encodes and decodes the result again.
fn roundtrip_bytes(chain: &CodecChain, encoded: Bytes, preserved: Preserved) {
    let decoded = match chain.decode(encoded, BUDGET) {
        Ok(decoded) => decoded,
        Err(error) => return drop(error.to_string()),
    };
    chunk::is_complete(&decoded, chain.representation(), BUDGET);
    let Some(encoded) = chunk::encode(chain, decoded.clone()) else {
        assert!(preserved == Number || (preserved == Json && !is_ascii(&decoded)), "elements that were decoded");
        return;
    };
    let Some(again) = decode_again(chain, encoded.clone()) else { return };
    chunk::is_complete(&again, chain.representation(), BUDGET);
    match preserved {
        All | Decoded => assert!(again == decoded),
        Json => {
            assert_eq!(json_values(&again), json_values(&decoded));
            assert_eq!(chunk::encode(chain, again), Some(encoded));
        }
        Number => {}
    }
}

/// Decodes a chunk that was encoded; `None` if a cast has no way back, as from an infinity that was a large integer.
fn decode_again(chain: &CodecChain, encoded: Bytes) -> Option<Elements> {
    match chain.decode(encoded, BUDGET) {
        Err(CodecError::Malformed { codec: "cast_value", .. }) => None,
        decoded => Some(decoded.expect("a chunk that was encoded")),
    }
}

/// The values of elements that are JSON texts; those with floats beyond `f64` or lone surrogates have none.
fn json_values(elements: &Elements) -> Vec<Option<Value>> {
    let Elements::Variable(elements) = elements else { panic!("texts have variable lengths") };
    elements.iter().map(|text| Text::parse(text.to_vec()).expect("JSON").to_value().ok()).collect()
}

/// True if every encoding of texts can store the elements.
fn is_ascii(elements: &Elements) -> bool {
    let Elements::Variable(elements) = elements else { return true };
    elements.iter().all(|text| text.is_ascii() && !text.windows(2).any(|escape| escape == br"\u"))
}

/// Encodes elements and decodes them again.
fn roundtrip_elements(chain: &CodecChain, bytes: &[u8], preserved: Preserved) {
    let elements = chunk::elements(chain.representation(), bytes);
    let Some(encoded) = chunk::encode(chain, elements.clone()) else { return };
    let Some(decoded) = decode_again(chain, encoded.clone()) else { return };
    assert!(preserved != All || decoded == elements);
    roundtrip_bytes(chain, encoded, preserved);
}

/// Changes one byte of an encoded chunk.
fn roundtrip_damaged(chain: &CodecChain, bytes: &[u8], preserved: Preserved) {
    let Some((&[low, high, mask], bytes)) = bytes.split_first_chunk() else { return };
    let elements = chunk::elements(chain.representation(), bytes);
    let Some(mut encoded) = chunk::encode(chain, elements).map(Vec::from) else { return };
    let position = usize::from(u16::from_le_bytes([low, high])) % encoded.len().max(1);
    if let Some(byte) = encoded.get_mut(position) {
        *byte ^= mask;
    }
    roundtrip_bytes(chain, encoded.into(), preserved);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_chain_resolves() {
        for (case, (_, _, _, json)) in PARSED_CASES.iter().zip(CASES) {
            for data_type in &case.data_types {
                let made = |rank| {
                    let array = ChunkRepresentation::new(data_type.clone(), vec![2; rank], data_type.zero()).unwrap();
                    CodecChain::new(&case.codecs, array).is_ok()
                };
                assert!((0..4).any(made), "{json} of {data_type}");
            }
        }
    }

    /// The codecs of a JSON list, including those of shards.
    fn codecs_in(list: &Value) -> Vec<CodecSpec> {
        let codecs = list.as_array().into_iter().flatten();
        let inner = |codec: &Value| {
            let lists = ["codecs", "index_codecs"].map(|name| codec.get("configuration")?.get(name).map(codecs_in));
            lists.into_iter().flatten().flatten().collect::<Vec<_>>()
        };
        codecs.flat_map(|codec| [vec![CodecSpec::parse_v3(codec).unwrap()], inner(codec)].concat()).collect()
    }

    #[test]
    fn every_codec_is_fuzzed() {
        let chains = CASES.iter().map(|(_, _, _, chain)| serde_json::from_str(chain).unwrap());
        let fuzzed: Vec<CodecSpec> = chains.flat_map(|chain| codecs_in(&chain)).collect();
        for (namespace, name) in zarrd_codec::supported_codecs() {
            let is_fuzzed = fuzzed.iter().any(|codec| codec.namespace == namespace && codec.name == name);
            assert!(is_fuzzed, "add a chain with {name} of {namespace:?} to CASES");
        }
    }
}
