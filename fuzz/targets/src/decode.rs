//! Encoded chunks.

use std::sync::LazyLock;

use bytes::Bytes;
use codec::{ChunkRepresentation, CodecChain};
use meta::{codecs::CodecSpec, data_type::DataType};
use serde_json::json;

use crate::chunk;

/// The memory budget of variable-length elements.
const BUDGET: u64 = 1 << 18;

/// The properties of a chunk that survive encoding and decoding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Preserves {
    /// Every bit.
    All,
    /// Every bit of a chunk that was decoded once: some elements have several text or byte representations.
    Decoded,
    /// The number of elements.
    Number,
}

use Preserves::{All, Decoded, Number};

/// The position of codecs in the chain.
enum Position {
    /// Before the array-to-bytes codec.
    Before,
    /// After it.
    After,
    /// Without any other codec.
    Alone,
}

use Position::{After, Alone, Before};

struct Case {
    data_types: Vec<DataType>,
    codecs: Vec<CodecSpec>,
    preserves: Preserves,
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
const BIG_STRUCT: &str = r#"[["a", "|u1"], ["b", ">i4"], ["c", "<f8", [2]]]"#;

/// Every codec with several configurations, at several positions.
#[rustfmt::skip]
static CASES: &[(Preserves, Position, &[&str], &str)] = &[
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
    (Decoded, Alone, &["json2 {}"], r#"["numcodecs.json2"]"#),
    (Decoded, Alone, &["json2 {}"], r#"[{"name":"numcodecs.json2","configuration":{"encoding":"ascii","ensure_ascii":false,"separators":[", ",": "],"sort_keys":false}}, "numcodecs.bz2"]"#),

    (All, Alone, NUMBERS, r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":[{"name":"bytes","configuration":{"endian":"little"}},"gzip"]}}, "crc32c"]"#),
    (All, Alone, TEXTS, r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":["vlen-utf8"],"index_codecs":[{"name":"bytes","configuration":{"endian":"big"}}],"index_location":"start"}}, "zstd"]"#),
];

static RESOLVED: LazyLock<Vec<Case>> = LazyLock::new(|| CASES.iter().map(Case::new).collect());

impl Case {
    fn new((preserves, codec_position, data_types, json): &(Preserves, Position, &[&str], &str)) -> Self {
        let mut codecs = chunk::codecs(json);
        let endian = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let bytes = CodecSpec::parse_v3(&endian).expect("a codec");
        match codec_position {
            Before => codecs.push(bytes),
            After => codecs.insert(0, bytes),
            Alone => {}
        }
        Self { preserves: *preserves, data_types: data_types.iter().copied().map(chunk::data_type).collect(), codecs }
    }
}

/// Decodes a chunk. The first byte selects data types and a chain, the second one of these data types, the third the
/// kind of the remaining input and the number of dimensions, whose extents follow.
pub fn decode(data: &[u8]) {
    let Some((&[case, data_type, form], rest)) = data.split_first_chunk() else { return };
    let Some((extents, rest)) = rest.split_at_checked(usize::from(form >> 2) % 4) else { return };
    let case = RESOLVED.iter().cycle().nth(case.into()).expect("they begin again");
    let data_type = case.data_types.iter().cycle().nth(data_type.into()).expect("they begin again").clone();
    let shape = extents.iter().map(|extent| u64::from(extent % 17)).collect();
    let fill_value = data_type.zero();
    let array = ChunkRepresentation::new(data_type, shape, fill_value).expect("a small chunk");
    // Some codecs require another number of dimensions.
    let Ok(chain) = CodecChain::new(&case.codecs, array) else { return };
    match form % 4 {
        0 | 1 => stored(&chain, Bytes::copy_from_slice(rest), case.preserves),
        2 => elements(&chain, rest, case.preserves),
        _ => damaged(&chain, rest, case.preserves),
    }
}

/// Decodes stored bytes, and encodes the result again.
fn stored(chain: &CodecChain, encoded: Bytes, preserves: Preserves) {
    let decoded = match chain.decode(encoded, BUDGET) {
        Ok(decoded) => decoded,
        Err(error) => return drop(error.to_string()),
    };
    chunk::is_complete(&decoded, chain.representation(), BUDGET);
    let encoded = chunk::encode(chain, decoded.clone()).expect("elements that were decoded");
    let again = chain.decode(encoded, BUDGET).expect("a chunk that was encoded");
    chunk::is_complete(&again, chain.representation(), BUDGET);
    assert!(preserves == Number || again == decoded);
}

/// Encodes elements and decodes them again.
fn elements(chain: &CodecChain, bytes: &[u8], preserves: Preserves) {
    let elements = chunk::elements(chain.representation(), bytes);
    let Some(encoded) = chunk::encode(chain, elements.clone()) else { return };
    let decoded = chain.decode(encoded.clone(), BUDGET).expect("a chunk that was encoded");
    assert!(preserves != All || decoded == elements);
    stored(chain, encoded, preserves);
}

/// Modifies one byte of an encoded chunk.
fn damaged(chain: &CodecChain, bytes: &[u8], preserves: Preserves) {
    let Some((&[low, high, mask], bytes)) = bytes.split_first_chunk() else { return };
    let elements = chunk::elements(chain.representation(), bytes);
    let Some(mut encoded) = chunk::encode(chain, elements).map(Vec::from) else { return };
    let position = usize::from(u16::from_le_bytes([low, high])) % encoded.len().max(1);
    if let Some(byte) = encoded.get_mut(position) {
        *byte ^= mask;
    }
    stored(chain, encoded.into(), preserves);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_chain_resolves() {
        for (case, (_, _, _, json)) in RESOLVED.iter().zip(CASES) {
            for data_type in &case.data_types {
                let resolves = |rank| {
                    let array = ChunkRepresentation::new(data_type.clone(), vec![2; rank], data_type.zero()).unwrap();
                    CodecChain::new(&case.codecs, array).is_ok()
                };
                assert!((0..4).any(resolves), "{json} of {data_type}");
            }
        }
    }
}
