//! numcodecs' filters against numcodecs 0.17.1 and 0.15.2 (NumPy 2.5 and 2.2, x86-64), which agree on every row.
//!
//! Each row has checksums of what numcodecs makes of 512 elements: encoded; decoded again; and decoded from bytes that it did not encode.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a failed test is a panic")]

use bytes::Bytes;
use codec::{Chain, Elements, Representation};
use flate2::Crc;
use meta::{
    codecs::CodecSpec,
    data_type::{Number, parse_v3},
};
use serde_json::{Map, Value, json};

const ELEMENTS: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Little,
    Big,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Any bits.
    Bits,
    /// Small numbers.
    Mild,
}

use Kind::{Bits, Mild};
use Order::{Big, Little};

type Row = (&'static str, &'static str, &'static str, Order, &'static str, Kind, Option<u32>, Option<u32>, Option<u32>);

fn random(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// 512 little-endian elements.
fn elements(data_type: &str, kind: Kind) -> Vec<u8> {
    let number = parse_v3(&json!(data_type)).unwrap().number().unwrap();
    let size = number.size();
    let bytes = random(ELEMENTS);
    let unsigned =
        |size: usize| bytes.iter().flat_map(|byte| u64::from(byte / 4).to_le_bytes()[..size].to_vec()).collect();
    let signed = |size: usize| {
        bytes.iter().flat_map(|&byte| (i64::from(byte) / 4 - 30).to_le_bytes()[..size].to_vec()).collect()
    };
    let float = |byte: u8| (f64::from(byte) - 100.0) / 4.0;
    match (kind, number) {
        (_, Number::Bool) => bytes.iter().map(|byte| byte & 1).collect(),
        (Bits, _) => random(ELEMENTS * size),
        (_, Number::UInt8 | Number::UInt16 | Number::UInt32 | Number::UInt64) => unsigned(size),
        (_, Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64) => signed(size),
        (_, Number::Float16) => bytes.iter().flat_map(|&byte| half::f16::from_f64(float(byte)).to_le_bytes()).collect(),
        (_, Number::Float32) => bytes.iter().flat_map(|&byte| (float(byte) as f32).to_le_bytes()).collect(),
        (_, Number::Float64) => bytes.iter().flat_map(|&byte| float(byte).to_le_bytes()).collect(),
        (_, Number::Complex64) => {
            random(2 * ELEMENTS).into_iter().flat_map(|byte| (float(byte) as f32).to_le_bytes()).collect()
        }
        (_, Number::Complex128) => {
            random(2 * ELEMENTS).into_iter().flat_map(|byte| float(byte).to_le_bytes()).collect()
        }
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn chain(id: &str, configuration: &str, data_type: &str, order: Order) -> Chain {
    let configuration: Map<String, Value> = serde_json::from_str(configuration).unwrap();
    let endian = json!({"endian": if order == Big { "big" } else { "little" }});
    let specs = [CodecSpec::v3("bytes", endian.as_object().unwrap().clone()), CodecSpec::numcodecs(id, configuration)];
    let data_type = parse_v3(&json!(data_type)).unwrap();
    let fill = data_type.zero();
    Chain::resolve(&specs, Representation::new(data_type, vec![ELEMENTS as u64], fill).unwrap()).unwrap()
}

fn fixed(elements: Elements) -> Bytes {
    match elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => panic!("the elements are of variable length"),
    }
}

#[test]
fn filters_agree_with_numcodecs() {
    let mut wrong = Vec::new();
    for row @ &(id, configuration, data_type, order, encoded_type, kind, encoded, decoded, wild) in ROWS {
        let chain = chain(id, configuration, data_type, order);
        let mut compare = |what: &str, expected: Option<u32>, found: &[u8]| {
            if expected.is_some_and(|expected| expected != crc(found)) {
                wrong.push(format!("{what}: {row:?}"));
            }
        };
        let input = Bytes::from(elements(data_type, kind));
        if encoded.is_some() {
            let bytes = chain.encode(Elements::Fixed(input)).unwrap();
            assert_eq!(chain.encoded_len().unwrap().exact(), Some(bytes.len() as u64), "{row:?}");
            compare("encoded", encoded, &bytes);
            compare("decoded", decoded, &fixed(chain.decode(bytes, 0).unwrap()));
        }
        if wild.is_some() {
            let mut bytes = elements(encoded_type, kind);
            let size = bytes.len() / ELEMENTS;
            if order == Big {
                bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
            compare("wild", wild, &fixed(chain.decode(bytes.into(), 0).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<b1"}"#, "bool", Little, "int8", Bits, Some(0x4b27c017), Some(0x4b27c017), Some(0x042550de)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<b1"}"#, "bool", Little, "int16", Bits, Some(0xcdf81ee6), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<b1"}"#, "bool", Little, "int32", Bits, Some(0x8221a809), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<b1"}"#, "bool", Little, "int64", Bits, Some(0x4da16d74), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<b1"}"#, "bool", Little, "uint8", Bits, Some(0x4b27c017), Some(0x4b27c017), Some(0x042550de)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<b1"}"#, "bool", Little, "uint16", Bits, Some(0xcdf81ee6), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<b1"}"#, "bool", Little, "uint32", Bits, Some(0x8221a809), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<b1"}"#, "bool", Little, "uint64", Bits, Some(0x4da16d74), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<b1"}"#, "bool", Little, "float16", Bits, Some(0x7902fbee), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<b1"}"#, "bool", Little, "float32", Bits, Some(0x75d68580), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<b1"}"#, "bool", Little, "float64", Bits, Some(0x0ceda320), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<b1"}"#, "bool", Little, "complex64", Bits, Some(0x26c80880), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<b1"}"#, "bool", Little, "complex128", Bits, Some(0xf4752af5), Some(0x4b27c017), Some(0x83e5c6ff)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<i1"}"#, "int8", Little, "bool", Bits, Some(0x042550de), Some(0x042550de), Some(0x4b27c017)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<i1"}"#, "int8", Little, "int16", Bits, Some(0xc2afe820), Some(0xf1e5bfac), Some(0x13bc0077)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<i1"}"#, "int8", Little, "int32", Bits, Some(0x7932aecf), Some(0xf1e5bfac), Some(0x23a7dc32)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<i1"}"#, "int8", Little, "int64", Bits, Some(0x141cd4bd), Some(0xf1e5bfac), Some(0xb20caeb4)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<i1"}"#, "int8", Little, "uint8", Bits, Some(0xf1e5bfac), Some(0xf1e5bfac), Some(0xf1e5bfac)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<i1"}"#, "int8", Little, "uint16", Bits, Some(0xc2afe820), Some(0xf1e5bfac), Some(0x13bc0077)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<i1"}"#, "int8", Little, "uint32", Bits, Some(0x7932aecf), Some(0xf1e5bfac), Some(0x23a7dc32)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<i1"}"#, "int8", Little, "uint64", Bits, Some(0x141cd4bd), Some(0xf1e5bfac), Some(0xb20caeb4)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<i1"}"#, "int8", Little, "float16", Bits, Some(0xca227797), Some(0xf1e5bfac), Some(0x8433f20b)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<i1"}"#, "int8", Little, "float32", Bits, Some(0xb6cf9c4d), Some(0xf1e5bfac), Some(0x4d338631)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<i1"}"#, "int8", Little, "float64", Bits, Some(0x9e4c9c1b), Some(0xf1e5bfac), Some(0x2878818d)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<i1"}"#, "int8", Little, "complex64", Bits, Some(0x391702cf), Some(0xf1e5bfac), Some(0xd9095dcf)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<i1"}"#, "int8", Little, "complex128", Bits, Some(0xfc19f005), Some(0xf1e5bfac), Some(0x0fc2a035)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<i2"}"#, "int16", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x032ff0dc), Some(0xcdf81ee6)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<i2"}"#, "int16", Little, "int8", Bits, Some(0x13bc0077), Some(0x14de7502), Some(0xc2afe820)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<i2"}"#, "int16", Little, "int32", Bits, Some(0xbd3fccd1), Some(0xe0c0b947), Some(0xbe482ba5)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<i2"}"#, "int16", Little, "int64", Bits, Some(0xdf98febb), Some(0xe0c0b947), Some(0x4b02e3f6)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<i2"}"#, "int16", Little, "uint8", Bits, Some(0x13bc0077), Some(0x1c163946), Some(0xc3b3a572)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<i2"}"#, "int16", Little, "uint16", Bits, Some(0xe0c0b947), Some(0xe0c0b947), Some(0xe0c0b947)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<i2"}"#, "int16", Little, "uint32", Bits, Some(0xbd3fccd1), Some(0xe0c0b947), Some(0xbe482ba5)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<i2"}"#, "int16", Little, "uint64", Bits, Some(0xdf98febb), Some(0xe0c0b947), Some(0x4b02e3f6)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<i2"}"#, "int16", Little, "float16", Bits, Some(0xae020252), Some(0x8a9f3cf4), Some(0x9f8cae53)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<i2"}"#, "int16", Little, "float32", Bits, Some(0x6caceac4), Some(0xe0c0b947), Some(0x3232bb00)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<i2"}"#, "int16", Little, "float64", Bits, Some(0xc542877a), Some(0xe0c0b947), Some(0xaebd5cef)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<i2"}"#, "int16", Little, "complex64", Bits, Some(0x9f7e823f), Some(0xe0c0b947), Some(0x8bfedad6)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<i2"}"#, "int16", Little, "complex128", Bits, Some(0xb067f745), Some(0xe0c0b947), Some(0x0bdf6d97)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<i4"}"#, "int32", Little, "bool", Bits, Some(0x83e5c6ff), Some(0xe5cb4f57), Some(0x8221a809)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<i4"}"#, "int32", Little, "int8", Bits, Some(0x23a7dc32), Some(0x4bc886ff), Some(0x7932aecf)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<i4"}"#, "int32", Little, "int16", Bits, Some(0xbe482ba5), Some(0xb1308841), Some(0xbd3fccd1)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<i4"}"#, "int32", Little, "int64", Bits, Some(0x61f60b57), Some(0xd942d957), Some(0xeb6a3f81)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<i4"}"#, "int32", Little, "uint8", Bits, Some(0x23a7dc32), Some(0x3d611343), Some(0xc266cd9c)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<i4"}"#, "int32", Little, "uint16", Bits, Some(0xbe482ba5), Some(0xee253405), Some(0xbf62eba8)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<i4"}"#, "int32", Little, "uint32", Bits, Some(0xd942d957), Some(0xd942d957), Some(0xd942d957)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<i4"}"#, "int32", Little, "uint64", Bits, Some(0x61f60b57), Some(0xd942d957), Some(0xeb6a3f81)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<i4"}"#, "int32", Little, "float16", Bits, Some(0x0724c603), Some(0x521a9e6b), Some(0x37e21b5c)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<i4"}"#, "int32", Little, "float32", Bits, Some(0x4f330ab3), Some(0x0b9d412d), Some(0xf28f72c7)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<i4"}"#, "int32", Little, "float64", Bits, Some(0x9b096ddc), Some(0xd942d957), Some(0xe8d909dc)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<i4"}"#, "int32", Little, "complex64", Bits, Some(0x01a234a0), Some(0x0b9d412d), Some(0x0d6bf3d6)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<i4"}"#, "int32", Little, "complex128", Bits, Some(0xbc451ec7), Some(0xd942d957), Some(0x8245306c)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<i8"}"#, "int64", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x081b686b), Some(0x4da16d74)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<i8"}"#, "int64", Little, "int8", Bits, Some(0xb20caeb4), Some(0x982983dc), Some(0x141cd4bd)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<i8"}"#, "int64", Little, "int16", Bits, Some(0x4b02e3f6), Some(0x4d96f840), Some(0xdf98febb)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<i8"}"#, "int64", Little, "int32", Bits, Some(0xeb6a3f81), Some(0xe9ce7771), Some(0x61f60b57)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<i8"}"#, "int64", Little, "uint8", Bits, Some(0xb20caeb4), Some(0xce5f8820), Some(0x281f7a7a)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<i8"}"#, "int64", Little, "uint16", Bits, Some(0x4b02e3f6), Some(0xb9a86f2a), Some(0xa5358753)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<i8"}"#, "int64", Little, "uint32", Bits, Some(0xeb6a3f81), Some(0xa4694168), Some(0xbdddb132)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<i8"}"#, "int64", Little, "uint64", Bits, Some(0xcf53ff1b), Some(0xcf53ff1b), Some(0xcf53ff1b)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<i8"}"#, "int64", Little, "float16", Bits, Some(0xa30aeedd), Some(0x604b639a), Some(0x5c7573b6)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<i8"}"#, "int64", Little, "float32", Bits, Some(0xc6600850), Some(0x4697f98a), Some(0x3396a69d)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<i8"}"#, "int64", Little, "float64", Bits, Some(0x4fa7c24b), Some(0xfc346ea3), Some(0xad42d0da)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<i8"}"#, "int64", Little, "complex64", Bits, Some(0xcc5a8638), Some(0x4697f98a), Some(0x8f4999de)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<i8"}"#, "int64", Little, "complex128", Bits, Some(0xd237b5dd), Some(0xfc346ea3), Some(0x3a29b9fe)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<u1"}"#, "uint8", Little, "bool", Bits, Some(0x042550de), Some(0x042550de), Some(0x4b27c017)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<u1"}"#, "uint8", Little, "int8", Bits, Some(0xf1e5bfac), Some(0xf1e5bfac), Some(0xf1e5bfac)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<u1"}"#, "uint8", Little, "int16", Bits, Some(0xc3b3a572), Some(0xf1e5bfac), Some(0x13bc0077)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<u1"}"#, "uint8", Little, "int32", Bits, Some(0xc266cd9c), Some(0xf1e5bfac), Some(0x23a7dc32)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<u1"}"#, "uint8", Little, "int64", Bits, Some(0x281f7a7a), Some(0xf1e5bfac), Some(0xb20caeb4)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<u1"}"#, "uint8", Little, "uint16", Bits, Some(0xc3b3a572), Some(0xf1e5bfac), Some(0x13bc0077)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<u1"}"#, "uint8", Little, "uint32", Bits, Some(0xc266cd9c), Some(0xf1e5bfac), Some(0x23a7dc32)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<u1"}"#, "uint8", Little, "uint64", Bits, Some(0x281f7a7a), Some(0xf1e5bfac), Some(0xb20caeb4)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<u1"}"#, "uint8", Little, "float16", Bits, Some(0x42daf226), Some(0xf1e5bfac), Some(0x8433f20b)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<u1"}"#, "uint8", Little, "float32", Bits, Some(0xd0002ca1), Some(0xf1e5bfac), Some(0x4d338631)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<u1"}"#, "uint8", Little, "float64", Bits, Some(0xd3d525ff), Some(0xf1e5bfac), Some(0x2878818d)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<u1"}"#, "uint8", Little, "complex64", Bits, Some(0xdaff1442), Some(0xf1e5bfac), Some(0xd9095dcf)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<u1"}"#, "uint8", Little, "complex128", Bits, Some(0x2d4c07ab), Some(0xf1e5bfac), Some(0x0fc2a035)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<u2"}"#, "uint16", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x032ff0dc), Some(0xcdf81ee6)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<u2"}"#, "uint16", Little, "int8", Bits, Some(0x13bc0077), Some(0x14de7502), Some(0xc2afe820)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<u2"}"#, "uint16", Little, "int16", Bits, Some(0xe0c0b947), Some(0xe0c0b947), Some(0xe0c0b947)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<u2"}"#, "uint16", Little, "int32", Bits, Some(0xbf62eba8), Some(0xe0c0b947), Some(0xbe482ba5)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<u2"}"#, "uint16", Little, "int64", Bits, Some(0xa5358753), Some(0xe0c0b947), Some(0x4b02e3f6)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<u2"}"#, "uint16", Little, "uint8", Bits, Some(0x13bc0077), Some(0x1c163946), Some(0xc3b3a572)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<u2"}"#, "uint16", Little, "uint32", Bits, Some(0xbf62eba8), Some(0xe0c0b947), Some(0xbe482ba5)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<u2"}"#, "uint16", Little, "uint64", Bits, Some(0xa5358753), Some(0xe0c0b947), Some(0x4b02e3f6)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<u2"}"#, "uint16", Little, "float16", Bits, Some(0xe32a035f), Some(0x7e9da81b), Some(0x9f8cae53)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<u2"}"#, "uint16", Little, "float32", Bits, Some(0x9b352be8), Some(0xe0c0b947), Some(0x3232bb00)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<u2"}"#, "uint16", Little, "float64", Bits, Some(0x429d4cea), Some(0xe0c0b947), Some(0xaebd5cef)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<u2"}"#, "uint16", Little, "complex64", Bits, Some(0xaacf7dac), Some(0xe0c0b947), Some(0x8bfedad6)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<u2"}"#, "uint16", Little, "complex128", Bits, Some(0x500d4e90), Some(0xe0c0b947), Some(0x0bdf6d97)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<u4"}"#, "uint32", Little, "bool", Bits, Some(0x83e5c6ff), Some(0xe5cb4f57), Some(0x8221a809)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<u4"}"#, "uint32", Little, "int8", Bits, Some(0x23a7dc32), Some(0x4bc886ff), Some(0x7932aecf)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<u4"}"#, "uint32", Little, "int16", Bits, Some(0xbe482ba5), Some(0xb1308841), Some(0xbd3fccd1)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<u4"}"#, "uint32", Little, "int32", Bits, Some(0xd942d957), Some(0xd942d957), Some(0xd942d957)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<u4"}"#, "uint32", Little, "int64", Bits, Some(0xbdddb132), Some(0xd942d957), Some(0xeb6a3f81)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<u4"}"#, "uint32", Little, "uint8", Bits, Some(0x23a7dc32), Some(0x3d611343), Some(0xc266cd9c)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<u4"}"#, "uint32", Little, "uint16", Bits, Some(0xbe482ba5), Some(0xee253405), Some(0xbf62eba8)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<u4"}"#, "uint32", Little, "uint64", Bits, Some(0xbdddb132), Some(0xd942d957), Some(0xeb6a3f81)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<u4"}"#, "uint32", Little, "float16", Bits, Some(0x6f552aa9), Some(0xf1e8ba9e), Some(0xe5c1c5ae)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<u4"}"#, "uint32", Little, "float32", Bits, Some(0xd0ecef5f), Some(0xe882d0cb), Some(0x32b7d28e)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<u4"}"#, "uint32", Little, "float64", Bits, Some(0x86156c9d), Some(0xd942d957), Some(0x30fdf13f)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<u4"}"#, "uint32", Little, "complex64", Bits, Some(0x52445e1f), Some(0xe882d0cb), Some(0x08f559aa)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<u4"}"#, "uint32", Little, "complex128", Bits, Some(0x049333c5), Some(0xd942d957), Some(0xf2d8c89f)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<u8"}"#, "uint64", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x081b686b), Some(0x4da16d74)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<u8"}"#, "uint64", Little, "int8", Bits, Some(0xb20caeb4), Some(0x982983dc), Some(0x141cd4bd)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<u8"}"#, "uint64", Little, "int16", Bits, Some(0x4b02e3f6), Some(0x4d96f840), Some(0xdf98febb)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<u8"}"#, "uint64", Little, "int32", Bits, Some(0xeb6a3f81), Some(0xe9ce7771), Some(0x61f60b57)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<u8"}"#, "uint64", Little, "int64", Bits, Some(0xcf53ff1b), Some(0xcf53ff1b), Some(0xcf53ff1b)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<u8"}"#, "uint64", Little, "uint8", Bits, Some(0xb20caeb4), Some(0xce5f8820), Some(0x281f7a7a)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<u8"}"#, "uint64", Little, "uint16", Bits, Some(0x4b02e3f6), Some(0xb9a86f2a), Some(0xa5358753)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<u8"}"#, "uint64", Little, "uint32", Bits, Some(0xeb6a3f81), Some(0xa4694168), Some(0xbdddb132)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<u8"}"#, "uint64", Little, "float16", Bits, Some(0x6f552aa9), Some(0xc71c0011), Some(0x5c7573b6)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<u8"}"#, "uint64", Little, "float32", Bits, Some(0xb6ac5db1), Some(0xcff4c4f3), Some(0x6c418b1a)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<u8"}"#, "uint64", Little, "float64", Bits, Some(0x497c4927), Some(0x56e26e36), Some(0x26c5f947)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<u8"}"#, "uint64", Little, "complex64", Bits, Some(0x7ba5c0d9), Some(0xcff4c4f3), Some(0xef9e36d2)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<u8"}"#, "uint64", Little, "complex128", Bits, Some(0xdd9cbe5f), Some(0x56e26e36), Some(0x76a19991)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<f2"}"#, "float16", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x6a57c10e), Some(0x7902fbee)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<f2"}"#, "float16", Little, "int8", Bits, Some(0x8433f20b), Some(0xf121685b), Some(0xca227797)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<f2"}"#, "float16", Little, "int16", Bits, Some(0x9f8cae53), Some(0x22f0e53d), Some(0xae020252)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<f2"}"#, "float16", Little, "int32", Bits, Some(0x37e21b5c), Some(0xedb1aad5), Some(0x0724c603)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<f2"}"#, "float16", Little, "int64", Bits, Some(0x5c7573b6), Some(0xedb1aad5), Some(0xa30aeedd)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<f2"}"#, "float16", Little, "uint8", Bits, Some(0x8433f20b), Some(0xf626fb90), Some(0x42daf226)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<f2"}"#, "float16", Little, "uint16", Bits, Some(0x9f8cae53), Some(0x82687853), Some(0xe32a035f)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<f2"}"#, "float16", Little, "uint32", Bits, Some(0xe5c1c5ae), Some(0x4ad9214a), Some(0x6f552aa9)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<f2"}"#, "float16", Little, "uint64", Bits, Some(0x5c7573b6), Some(0x18677970), Some(0x6f552aa9)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<f2"}"#, "float16", Little, "float32", Bits, Some(0xf0be687b), Some(0xe0c0b947), Some(0xe3bd92d1)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<f2"}"#, "float16", Little, "float64", Bits, Some(0x834d76af), Some(0xe0c0b947), Some(0xb562d46f)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<f2"}"#, "float16", Little, "complex64", Bits, Some(0x3bafb2d2), Some(0xe0c0b947), Some(0xd71fcc88)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<f2"}"#, "float16", Little, "complex128", Bits, Some(0x80b69a46), Some(0xe0c0b947), Some(0xa2120a37)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<f4"}"#, "float32", Little, "bool", Bits, Some(0x83e5c6ff), Some(0xdefb99c5), Some(0x75d68580)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<f4"}"#, "float32", Little, "int8", Bits, Some(0x4d338631), Some(0x174808fd), Some(0xb6cf9c4d)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<f4"}"#, "float32", Little, "int16", Bits, Some(0x3232bb00), Some(0x143e32c6), Some(0x6caceac4)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<f4"}"#, "float32", Little, "int32", Bits, Some(0xf28f72c7), Some(0x2b9bee0a), Some(0x4f330ab3)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<f4"}"#, "float32", Little, "int64", Bits, Some(0x3396a69d), Some(0x2dac0fb9), Some(0xc6600850)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<f4"}"#, "float32", Little, "uint8", Bits, Some(0x4d338631), Some(0x34254b52), Some(0xd0002ca1)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<f4"}"#, "float32", Little, "uint16", Bits, Some(0x3232bb00), Some(0x5c5dec31), Some(0x9b352be8)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<f4"}"#, "float32", Little, "uint32", Bits, Some(0x32b7d28e), Some(0x76af10a0), Some(0xd0ecef5f)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<f4"}"#, "float32", Little, "uint64", Bits, Some(0x6c418b1a), Some(0x0cfc0860), Some(0xb6ac5db1)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<f4"}"#, "float32", Little, "float16", Bits, Some(0xe3bd92d1), Some(0x783e15ae), Some(0xf0be687b)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<f4"}"#, "float32", Little, "float64", Bits, Some(0x7a0357f4), Some(0xe5835cc5), Some(0xc2bf9bca)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<f4"}"#, "float32", Little, "complex64", Bits, Some(0xbdddb132), Some(0xd942d957), Some(0xeb6a3f81)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<f4"}"#, "float32", Little, "complex128", Bits, Some(0xfd397cc4), Some(0xe5835cc5), Some(0x3abf3b8f)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<f8"}"#, "float64", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x259b53d2), Some(0x0ceda320)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<f8"}"#, "float64", Little, "int8", Bits, Some(0x2878818d), Some(0xd9e70ead), Some(0x9e4c9c1b)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<f8"}"#, "float64", Little, "int16", Bits, Some(0xaebd5cef), Some(0x5c525d8f), Some(0xc542877a)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<f8"}"#, "float64", Little, "int32", Bits, Some(0xe8d909dc), Some(0xf2aed409), Some(0x9b096ddc)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<f8"}"#, "float64", Little, "int64", Bits, Some(0xad42d0da), Some(0x0bc3ee0e), Some(0x4fa7c24b)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<f8"}"#, "float64", Little, "uint8", Bits, Some(0x2878818d), Some(0x6e806bba), Some(0xd3d525ff)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<f8"}"#, "float64", Little, "uint16", Bits, Some(0xaebd5cef), Some(0x86580b61), Some(0x429d4cea)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<f8"}"#, "float64", Little, "uint32", Bits, Some(0x30fdf13f), Some(0xc16b6171), Some(0x86156c9d)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<f8"}"#, "float64", Little, "uint64", Bits, Some(0x26c5f947), Some(0x0844f072), Some(0x497c4927)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<f8"}"#, "float64", Little, "float16", Bits, Some(0xb562d46f), Some(0x0bfe70cf), Some(0x834d76af)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<f8"}"#, "float64", Little, "float32", Bits, Some(0xc2bf9bca), Some(0x151e8dbf), Some(0x7a0357f4)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<f8"}"#, "float64", Little, "complex64", Bits, Some(0x755e02b6), Some(0x151e8dbf), Some(0x19c633cf)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<f8"}"#, "float64", Little, "complex128", Bits, Some(0x140026d5), Some(0xcf53ff1b), Some(0xcc6e3c68)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<c8"}"#, "complex64", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x9cc47399), Some(0x26c80880)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<c8"}"#, "complex64", Little, "int8", Bits, Some(0xd9095dcf), Some(0xf8d15ab0), Some(0x391702cf)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<c8"}"#, "complex64", Little, "int16", Bits, Some(0x8bfedad6), Some(0x7c0a8d62), Some(0x9f7e823f)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<c8"}"#, "complex64", Little, "int32", Bits, Some(0x0d6bf3d6), Some(0xdb7ebe51), Some(0x01a234a0)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<c8"}"#, "complex64", Little, "int64", Bits, Some(0x8f4999de), Some(0x01a526f3), Some(0xcc5a8638)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<c8"}"#, "complex64", Little, "uint8", Bits, Some(0xd9095dcf), Some(0xbf1e8bed), Some(0xdaff1442)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<c8"}"#, "complex64", Little, "uint16", Bits, Some(0x8bfedad6), Some(0x6de49157), Some(0xaacf7dac)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<c8"}"#, "complex64", Little, "uint32", Bits, Some(0x08f559aa), Some(0xbf60aa47), Some(0x52445e1f)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<c8"}"#, "complex64", Little, "uint64", Bits, Some(0xef9e36d2), Some(0xa5981238), Some(0x7ba5c0d9)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<c8"}"#, "complex64", Little, "float16", Bits, Some(0xd71fcc88), Some(0xaa3aadd5), Some(0x3bafb2d2)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<c8"}"#, "complex64", Little, "float32", Bits, Some(0xeb6a3f81), Some(0xa4694168), Some(0xbdddb132)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<c8"}"#, "complex64", Little, "float64", Bits, Some(0x19c633cf), Some(0xa3c05c81), Some(0x755e02b6)),
    ("astype", r#"{"encode_dtype":"<c16","decode_dtype":"<c8"}"#, "complex64", Little, "complex128", Bits, Some(0xfc1f19ba), Some(0xe06d2507), Some(0xbec91333)),
    ("astype", r#"{"encode_dtype":"<b1","decode_dtype":"<c16"}"#, "complex128", Little, "bool", Bits, Some(0x83e5c6ff), Some(0x121e2ef4), Some(0xf4752af5)),
    ("astype", r#"{"encode_dtype":"<i1","decode_dtype":"<c16"}"#, "complex128", Little, "int8", Bits, Some(0x0fc2a035), Some(0xfb9ce78d), Some(0xfc19f005)),
    ("astype", r#"{"encode_dtype":"<i2","decode_dtype":"<c16"}"#, "complex128", Little, "int16", Bits, Some(0x0bdf6d97), Some(0xed51440a), Some(0xb067f745)),
    ("astype", r#"{"encode_dtype":"<i4","decode_dtype":"<c16"}"#, "complex128", Little, "int32", Bits, Some(0x8245306c), Some(0x0a4b1c8d), Some(0xbc451ec7)),
    ("astype", r#"{"encode_dtype":"<i8","decode_dtype":"<c16"}"#, "complex128", Little, "int64", Bits, Some(0x3a29b9fe), Some(0x2fcaaddf), Some(0xd237b5dd)),
    ("astype", r#"{"encode_dtype":"<u1","decode_dtype":"<c16"}"#, "complex128", Little, "uint8", Bits, Some(0x0fc2a035), Some(0x67171296), Some(0x2d4c07ab)),
    ("astype", r#"{"encode_dtype":"<u2","decode_dtype":"<c16"}"#, "complex128", Little, "uint16", Bits, Some(0x0bdf6d97), Some(0xd4d23f44), Some(0x500d4e90)),
    ("astype", r#"{"encode_dtype":"<u4","decode_dtype":"<c16"}"#, "complex128", Little, "uint32", Bits, Some(0xf2d8c89f), Some(0x3471473d), Some(0x049333c5)),
    ("astype", r#"{"encode_dtype":"<u8","decode_dtype":"<c16"}"#, "complex128", Little, "uint64", Bits, Some(0x76a19991), Some(0x416ca8e6), Some(0xdd9cbe5f)),
    ("astype", r#"{"encode_dtype":"<f2","decode_dtype":"<c16"}"#, "complex128", Little, "float16", Bits, Some(0xa2120a37), Some(0x90ffc16e), Some(0x80b69a46)),
    ("astype", r#"{"encode_dtype":"<f4","decode_dtype":"<c16"}"#, "complex128", Little, "float32", Bits, Some(0x3abf3b8f), Some(0x1672d8a2), Some(0xfd397cc4)),
    ("astype", r#"{"encode_dtype":"<f8","decode_dtype":"<c16"}"#, "complex128", Little, "float64", Bits, Some(0xcc6e3c68), Some(0xd44ad5b4), Some(0x140026d5)),
    ("astype", r#"{"encode_dtype":"<c8","decode_dtype":"<c16"}"#, "complex128", Little, "complex64", Bits, Some(0xbec91333), Some(0xa3d76994), Some(0xfc1f19ba)),
    ("delta", r#"{"dtype":"<b1"}"#, "bool", Little, "bool", Bits, Some(0x7f4dc08b), Some(0x3b366f4d), Some(0x3b366f4d)),
    ("delta", r#"{"dtype":"<b1"}"#, "bool", Little, "bool", Mild, Some(0x7f4dc08b), Some(0x3b366f4d), Some(0x3b366f4d)),
    ("delta", r#"{"dtype":"<i1"}"#, "int8", Little, "int8", Bits, Some(0xc7e6ce72), Some(0xf1e5bfac), Some(0x345170b3)),
    ("delta", r#"{"dtype":"<i1"}"#, "int8", Little, "int8", Mild, Some(0xeb2f8ff2), Some(0x4a694472), Some(0xe20e8c36)),
    ("delta", r#"{"dtype":"<i2"}"#, "int16", Little, "int16", Bits, Some(0x60aa2e8d), Some(0xe0c0b947), Some(0x985655c1)),
    ("delta", r#"{"dtype":"<i2"}"#, "int16", Little, "int16", Mild, Some(0x4f4aa157), Some(0x577facf6), Some(0x33943498)),
    ("delta", r#"{"dtype":"<i4"}"#, "int32", Little, "int32", Bits, Some(0xb8f661b2), Some(0xd942d957), Some(0x0156cd05)),
    ("delta", r#"{"dtype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0x42acb47a), Some(0x5093678b), Some(0xd2056d6e)),
    ("delta", r#"{"dtype":"<i8"}"#, "int64", Little, "int64", Bits, Some(0x94239dd9), Some(0xcf53ff1b), Some(0xafdcf6f1)),
    ("delta", r#"{"dtype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x46f74cc0), Some(0x2dc41f13), Some(0x6ae84576)),
    ("delta", r#"{"dtype":"<u1"}"#, "uint8", Little, "uint8", Bits, Some(0xc7e6ce72), Some(0xf1e5bfac), Some(0x345170b3)),
    ("delta", r#"{"dtype":"<u1"}"#, "uint8", Little, "uint8", Mild, Some(0x7a095c0a), Some(0xf9bfa5e5), Some(0x98918964)),
    ("delta", r#"{"dtype":"<u2"}"#, "uint16", Little, "uint16", Bits, Some(0x60aa2e8d), Some(0xe0c0b947), Some(0x985655c1)),
    ("delta", r#"{"dtype":"<u2"}"#, "uint16", Little, "uint16", Mild, Some(0x9d2b3cd6), Some(0x1ac2200d), Some(0xe860f578)),
    ("delta", r#"{"dtype":"<u4"}"#, "uint32", Little, "uint32", Bits, Some(0xb8f661b2), Some(0xd942d957), Some(0x0156cd05)),
    ("delta", r#"{"dtype":"<u4"}"#, "uint32", Little, "uint32", Mild, Some(0xbcc8069b), Some(0x59ade00e), Some(0x7128078d)),
    ("delta", r#"{"dtype":"<u8"}"#, "uint64", Little, "uint64", Bits, Some(0x94239dd9), Some(0xcf53ff1b), Some(0xafdcf6f1)),
    ("delta", r#"{"dtype":"<u8"}"#, "uint64", Little, "uint64", Mild, Some(0xad8323d0), Some(0x85d80949), Some(0x7455a21e)),
    ("delta", r#"{"dtype":"<f2"}"#, "float16", Little, "float16", Bits, Some(0x0292612d), Some(0x9b14d0f8), Some(0x8bd86892)),
    ("delta", r#"{"dtype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0xd4d2d26c), Some(0x96338233), Some(0x54a6bfe1)),
    ("delta", r#"{"dtype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0xbec6a348), Some(0x5179b6ed), Some(0x390edf4a)),
    ("delta", r#"{"dtype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0xb96caacc), Some(0xbddde946), Some(0x5d96775a)),
    ("delta", r#"{"dtype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x60afd391), Some(0x0a9e76d8), Some(0x650041d4)),
    ("delta", r#"{"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0x90d6f5d8), Some(0xbc497227), Some(0xd123663c)),
    ("delta", r#"{"dtype":"<c8"}"#, "complex64", Little, "complex64", Bits, Some(0xbbfa6f02), Some(0x91e94cfa), Some(0x415065e6)),
    ("delta", r#"{"dtype":"<c8"}"#, "complex64", Little, "complex64", Mild, Some(0x6d7fc4c3), Some(0xb0ba7fea), Some(0x4953c31f)),
    ("delta", r#"{"dtype":"<c16"}"#, "complex128", Little, "complex128", Bits, Some(0x3100cc1b), Some(0xe153ee7e), Some(0xbc34c4af)),
    ("delta", r#"{"dtype":"<c16"}"#, "complex128", Little, "complex128", Mild, Some(0x86a27624), Some(0xfc664edc), Some(0x773c3441)),
    ("delta", r#"{"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x4f4aa157), Some(0x5093678b), Some(0xd2056d6e)),
    ("delta", r#"{"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Bits, None, None, Some(0xc2385d57)),
    ("delta", r#"{"dtype":"<i2","astype":"<i4"}"#, "int16", Little, "int32", Mild, Some(0x42acb47a), Some(0x577facf6), Some(0x33943498)),
    ("delta", r#"{"dtype":"<i2","astype":"<i4"}"#, "int16", Little, "int32", Bits, Some(0xc565997d), Some(0xe0c0b947), Some(0xf893b483)),
    ("delta", r#"{"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0xb96caacc), Some(0xbc497227), Some(0xd123663c)),
    ("delta", r#"{"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x6d354335), Some(0x58f7d697), Some(0xd52988d5)),
    ("delta", r#"{"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Mild, Some(0x90d6f5d8), Some(0xbddde946), Some(0x5d96775a)),
    ("delta", r#"{"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x89383e95), Some(0x12000e04), Some(0xe812da5d)),
    ("delta", r#"{"dtype":"<f2","astype":"<f4"}"#, "float16", Little, "float32", Mild, Some(0xb96caacc), Some(0x96338233), Some(0x041252d9)),
    ("delta", r#"{"dtype":"<f2","astype":"<f4"}"#, "float16", Little, "float32", Bits, Some(0xf565e731), Some(0x67ddabbd), Some(0xf0806e36)),
    ("delta", r#"{"dtype":"<i8","astype":"<f4"}"#, "int64", Little, "float32", Mild, Some(0x6607cf72), Some(0x2dc41f13), Some(0x314cc2b9)),
    ("delta", r#"{"dtype":"<i8","astype":"<f4"}"#, "int64", Little, "float32", Bits, Some(0x017c76c1), Some(0x40398827), Some(0x604b639a)),
    ("delta", r#"{"dtype":"<u1","astype":"<i2"}"#, "uint8", Little, "int16", Mild, Some(0xda92f765), Some(0xf9bfa5e5), Some(0xe20e8c36)),
    ("delta", r#"{"dtype":"<u1","astype":"<i2"}"#, "uint8", Little, "int16", Bits, Some(0x6aefb3c9), Some(0xf1e5bfac), Some(0x8dfbcc9e)),
    ("delta", r#"{"dtype":"<u8","astype":"<i8"}"#, "uint64", Little, "int64", Mild, Some(0xad8323d0), Some(0x85d80949), Some(0x6ae84576)),
    ("delta", r#"{"dtype":"<u8","astype":"<i8"}"#, "uint64", Little, "int64", Bits, Some(0x94239dd9), Some(0xd2592ae9), Some(0x1d1e2977)),
    ("delta", r#"{"dtype":"<i8","astype":"<u8"}"#, "int64", Little, "uint64", Mild, Some(0x46f74cc0), Some(0x604b639a), Some(0x7455a21e)),
    ("delta", r#"{"dtype":"<i8","astype":"<u8"}"#, "int64", Little, "uint64", Bits, Some(0x94239dd9), Some(0xe510b5ca), Some(0xe510b5ca)),
    ("delta", r#"{"dtype":"<f4","astype":"<i4"}"#, "float32", Little, "int32", Mild, Some(0x570a8f2b), Some(0x91509f1d), Some(0xea840413)),
    ("delta", r#"{"dtype":"<f4","astype":"<i4"}"#, "float32", Little, "int32", Bits, None, None, Some(0x8b129591)),
    ("delta", r#"{"dtype":"<i4","astype":"<f4"}"#, "int32", Little, "float32", Mild, Some(0x6607cf72), Some(0x5093678b), Some(0xb881f379)),
    ("delta", r#"{"dtype":"<i4","astype":"<f4"}"#, "int32", Little, "float32", Bits, Some(0x47fe0783), Some(0xfefdddc1), Some(0x521a9e6b)),
    ("delta", r#"{"dtype":"<b1","astype":"<i1"}"#, "bool", Little, "int8", Mild, Some(0x7f4dc08b), Some(0xb2a7d29b), Some(0x83e5c6ff)),
    ("delta", r#"{"dtype":"<b1","astype":"<i1"}"#, "bool", Little, "int8", Bits, Some(0x7f4dc08b), Some(0xb2a7d29b), Some(0x83e5c6ff)),
    ("delta", r#"{"dtype":"<c8","astype":"<c16"}"#, "complex64", Little, "complex128", Mild, Some(0x86a27624), Some(0xb0ba7fea), Some(0x4953c31f)),
    ("delta", r#"{"dtype":"<c8","astype":"<c16"}"#, "complex64", Little, "complex128", Bits, Some(0x4c327e5d), Some(0x84c77e09), Some(0x5f1cde33)),
    ("delta", r#"{"dtype":">i4","astype":">i2"}"#, "int32", Big, "int16", Mild, Some(0x145de978), Some(0x5093678b), Some(0xd2056d6e)),
    ("delta", r#"{"dtype":">f8"}"#, "float64", Big, "float64", Mild, Some(0xf5a3f988), Some(0xbc497227), Some(0xd123663c)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f8","astype":"<u1"}"#, "float64", Little, "uint8", Mild, Some(0xf020f178), Some(0xfc281255), Some(0x48fa386c)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f8","astype":"<i4"}"#, "float64", Little, "int32", Mild, Some(0x0b73f63d), Some(0x8941dd90), Some(0xec9a1f92)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f4","astype":"<i2"}"#, "float32", Little, "int16", Mild, Some(0x7857c796), Some(0x6b7055f1), Some(0x437c514d)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0x5d62fb68), Some(0x6b7055f1), Some(0xe02d280c)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f2","astype":"<i1"}"#, "float16", Little, "int8", Mild, Some(0xf020f178), Some(0xe2668208), Some(0x16ddb50f)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x95ce0d4d), Some(0xe156308c), Some(0x2aa71a42)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x8bb3fced), Some(0x5093678b), Some(0x8460e307)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<i4","astype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0xbe6c6012), Some(0x5093678b), Some(0x8460e307)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<u1","astype":"<u1"}"#, "uint8", Little, "uint8", Mild, Some(0x0d497942), Some(0x3fe37812), Some(0x56a30238)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<i8","astype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x43b5dee9), Some(0x2dc41f13), Some(0x5385799d)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0x5d62fb68), Some(0xb0c0590a), Some(0x9fdfb4d9)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<b1","astype":"<u1"}"#, "bool", Little, "uint8", Mild, Some(0x3b69ab9b), Some(0x4b27c017), Some(0x83f611c9)),
    ("fixedscaleoffset", r#"{"offset":0,"scale":10,"dtype":"<i2","astype":"<f4"}"#, "int16", Little, "float32", Mild, Some(0xdc704011), Some(0x577facf6), Some(0xbe08acd5)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f8","astype":"<u1"}"#, "float64", Little, "uint8", Mild, Some(0x1fa62d49), Some(0xd4fb9eb9), Some(0x2836d2fb)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f8","astype":"<i4"}"#, "float64", Little, "int32", Mild, Some(0x30039989), Some(0xd16b59ef), Some(0xa7991cdc)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f4","astype":"<i2"}"#, "float32", Little, "int16", Mild, Some(0xaac57e86), Some(0x1a6bd50a), Some(0xdc704011)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0x3fc37359), Some(0x1a6bd50a), Some(0xd9508084)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f2","astype":"<i1"}"#, "float16", Little, "int8", Mild, Some(0x1fa62d49), Some(0x8b5cc875), Some(0x843e8c73)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x8f31974f), Some(0x8b5cc875), Some(0x8c041f0e)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x7ae185c2), Some(0x0b5c62b1), Some(0xbe6c6012)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<i4","astype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0x75ad07cf), Some(0x0b5c62b1), Some(0xbe6c6012)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<u1","astype":"<u1"}"#, "uint8", Little, "uint8", Mild, Some(0x51e75ac5), Some(0x25661bb6), Some(0x0d497942)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<i8","astype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x2cb0433a), Some(0x48c35700), Some(0x43b5dee9)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0x3fc37359), Some(0xd16b59ef), Some(0x8e46f5eb)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<b1","astype":"<u1"}"#, "bool", Little, "uint8", Mild, Some(0xb2aa7578), Some(0xb2aa7578), Some(0x83f611c9)),
    ("fixedscaleoffset", r#"{"offset":0.0,"scale":0.1,"dtype":"<i2","astype":"<f4"}"#, "int16", Little, "float32", Mild, Some(0xbf781275), Some(0x91d8c71f), Some(0xaae30dad)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f8","astype":"<u1"}"#, "float64", Little, "uint8", Mild, Some(0x0ac87021), Some(0x11ee04a0), Some(0x4431b353)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f8","astype":"<i4"}"#, "float64", Little, "int32", Mild, Some(0x7cf7d6ef), Some(0xcbd4525e), Some(0x3594dc2c)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f4","astype":"<i2"}"#, "float32", Little, "int16", Mild, Some(0x6716f6eb), Some(0x5ef524a3), Some(0x66ca2430)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0x27a264a3), Some(0x5ef524a3), Some(0xc9fad13e)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f2","astype":"<i1"}"#, "float16", Little, "int8", Mild, Some(0x0ac87021), Some(0x87be3c24), Some(0xda17f8d8)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x7d15bb37), Some(0x87be3c24), Some(0xffc107e7)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x5631d159), Some(0x5093678b), Some(0x8c61e56c)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<i4","astype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0x880ab4c7), Some(0x5093678b), Some(0x8c61e56c)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<u1","astype":"<u1"}"#, "uint8", Little, "uint8", Mild, None, None, Some(0xed5b71d7)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<i8","astype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x6c45413b), Some(0x2dc41f13), Some(0xd627bf19)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0x27a264a3), Some(0xcbd4525e), Some(0x9f3decf8)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<b1","astype":"<u1"}"#, "bool", Little, "uint8", Mild, Some(0xcc1cdbb7), Some(0x4b27c017), Some(0xffd0c3dc)),
    ("fixedscaleoffset", r#"{"offset":-3,"scale":2,"dtype":"<i2","astype":"<f4"}"#, "int16", Little, "float32", Mild, Some(0xb0680ada), Some(0x577facf6), Some(0x303139d2)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f8","astype":"<u1"}"#, "float64", Little, "uint8", Mild, Some(0xbca92748), Some(0x7ddbe52b), Some(0x031ee3e8)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f8","astype":"<i4"}"#, "float64", Little, "int32", Mild, Some(0x53859747), Some(0x23c34ccc), Some(0x1851461d)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f4","astype":"<i2"}"#, "float32", Little, "int16", Mild, Some(0xbee440a8), Some(0xda0c741d), Some(0x7f181233)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0x60618eea), Some(0xa5810835), Some(0x2a63d0f9)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f2","astype":"<i1"}"#, "float16", Little, "int8", Mild, Some(0xbca92748), Some(0xa3e55874), Some(0xa3d8d555)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0xc9972233), Some(0x136d4646), Some(0x023e0ab2)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x0038557d), Some(0xd99b553d), Some(0xe085832e)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<i4","astype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0x6edf9247), Some(0xd99b553d), Some(0xe085832e)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<u1","astype":"<u1"}"#, "uint8", Little, "uint8", Mild, Some(0x3313d1bc), Some(0x1d971af0), Some(0xe1b42dee)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<i8","astype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x68e7a875), Some(0xa0c48085), Some(0xd6ff03ed)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0x60618eea), Some(0x0300f022), Some(0x735dbe1d)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<b1","astype":"<u1"}"#, "bool", Little, "uint8", Mild, Some(0xc6c17b89), Some(0x83e5c6ff), Some(0x83e5c6ff)),
    ("fixedscaleoffset", r#"{"offset":1.5,"scale":3,"dtype":"<i2","astype":"<f4"}"#, "int16", Little, "float32", Mild, Some(0xfef179bb), Some(0x715e997c), Some(0xab7f4d56)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f8","astype":"<u1"}"#, "float64", Little, "uint8", Mild, Some(0xfbd47e54), Some(0xe0954973), Some(0xcb83b1bc)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f8","astype":"<i4"}"#, "float64", Little, "int32", Mild, Some(0x72ff5333), Some(0x451f8155), Some(0x30b2ba85)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f4","astype":"<i2"}"#, "float32", Little, "int16", Mild, Some(0x8fda012e), Some(0x7f7b75a8), Some(0xd39071bf)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Mild, Some(0x0b3df89a), Some(0x695a97a9), Some(0x045fdaae)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f2","astype":"<i1"}"#, "float16", Little, "int8", Mild, Some(0xfbd47e54), Some(0x560efeeb), Some(0x57a98cdb)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0xc301f429), Some(0xf1a5bec5), Some(0x0832832d)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<i4","astype":"<i2"}"#, "int32", Little, "int16", Mild, Some(0x112ffadb), Some(0xbe7473a5), Some(0x6d06fed3)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<i4","astype":"<i4"}"#, "int32", Little, "int32", Mild, Some(0xdc300dd4), Some(0xbe7473a5), Some(0x6d06fed3)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<u1","astype":"<u1"}"#, "uint8", Little, "uint8", Mild, Some(0x85854c33), Some(0xee3337e5), Some(0x734f1ef3)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<i8","astype":"<i8"}"#, "int64", Little, "int64", Mild, Some(0x47aae0b0), Some(0xbbb13301), Some(0xf7b51f24)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Mild, Some(0x0b3df89a), Some(0x54e9f0cc), Some(0xa1bada76)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<b1","astype":"<u1"}"#, "bool", Little, "uint8", Mild, Some(0x8c347018), Some(0x83e5c6ff), Some(0x83e5c6ff)),
    ("fixedscaleoffset", r#"{"offset":7,"scale":0.3,"dtype":"<i2","astype":"<f4"}"#, "int16", Little, "float32", Mild, Some(0x94cd449b), Some(0xafaf6130), Some(0x5979c1fa)),
    ("fixedscaleoffset", r#"{"offset":1000,"scale":10,"dtype":">f8","astype":">i4"}"#, "float64", Big, "int32", Mild, Some(0x3b7548db), Some(0x2078a681), Some(0x9f010dc9)),
    ("quantize", r#"{"digits":-2,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x88f6c7d6), Some(0x88f6c7d6), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":-2,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0xec5778f0), Some(0x3a6d68ea), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":-2,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0x3c3d6515), Some(0x3c3d6515), Some(0xd942d957)),
    ("quantize", r#"{"digits":-2,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0x9a1c2945), Some(0x255fad43), Some(0xf0be687b)),
    ("quantize", r#"{"digits":-2,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x52a78634), Some(0x52a78634), Some(0x96338233)),
    ("quantize", r#"{"digits":-2,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0xc1e86b4b), Some(0x3c3d6515), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":-2,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xa29f10de), Some(0xa29f10de), Some(0xbc497227)),
    ("quantize", r#"{"digits":-1,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0xba03e145), Some(0xba03e145), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":-1,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x8a263880), Some(0xee4ee943), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":-1,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0xca74d653), Some(0xca74d653), Some(0xd942d957)),
    ("quantize", r#"{"digits":-1,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0xeb72e14c), Some(0x72b99e73), Some(0xf0be687b)),
    ("quantize", r#"{"digits":-1,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x584d7412), Some(0x584d7412), Some(0x96338233)),
    ("quantize", r#"{"digits":-1,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x3c7ecea3), Some(0xca74d653), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":-1,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xa6428f5d), Some(0xa6428f5d), Some(0xbc497227)),
    ("quantize", r#"{"digits":0,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0xf4c80b05), Some(0xf4c80b05), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":0,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x2fdeebe5), Some(0x505978d7), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":0,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0x3a5a4b5b), Some(0x3a5a4b5b), Some(0xd942d957)),
    ("quantize", r#"{"digits":0,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0x210a81e9), Some(0x5f24b08f), Some(0xf0be687b)),
    ("quantize", r#"{"digits":0,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x4a7d2913), Some(0x4a7d2913), Some(0x96338233)),
    ("quantize", r#"{"digits":0,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0xfc343159), Some(0x3a5a4b5b), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":0,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0x764679ef), Some(0x764679ef), Some(0xbc497227)),
    ("quantize", r#"{"digits":1,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0xbf7c5794), Some(0xbf7c5794), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":1,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x6d126270), Some(0x2f8f945d), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":1,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0xa64fe3d0), Some(0xa64fe3d0), Some(0xd942d957)),
    ("quantize", r#"{"digits":1,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0xf3cc5e9f), Some(0x3a638f08), Some(0xf0be687b)),
    ("quantize", r#"{"digits":1,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x96338233), Some(0x96338233), Some(0x96338233)),
    ("quantize", r#"{"digits":1,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0xd4a8ebd9), Some(0xa64fe3d0), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":1,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("quantize", r#"{"digits":2,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x01c65f21), Some(0x01c65f21), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":2,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x21843c5c), Some(0xa6bd49c4), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":2,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0x32bb22ff), Some(0x32bb22ff), Some(0xd942d957)),
    ("quantize", r#"{"digits":2,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0xd7356829), Some(0xe7ae602a), Some(0xf0be687b)),
    ("quantize", r#"{"digits":2,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x96338233), Some(0x96338233), Some(0x96338233)),
    ("quantize", r#"{"digits":2,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x32bda310), Some(0x32bb22ff), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":2,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("quantize", r#"{"digits":3,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x67fdf700), Some(0x67fdf700), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":3,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x69c3dbcf), Some(0x2d3c1068), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":3,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0x1ae71549), Some(0x1ae71549), Some(0xd942d957)),
    ("quantize", r#"{"digits":3,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0xe2ffbfdd), Some(0x7f462391), Some(0xf0be687b)),
    ("quantize", r#"{"digits":3,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x96338233), Some(0x96338233), Some(0x96338233)),
    ("quantize", r#"{"digits":3,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x7c526192), Some(0x1ae71549), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":3,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("quantize", r#"{"digits":5,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x829ec14c), Some(0x829ec14c), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":5,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x24d089ac), Some(0x88eb8cba), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":5,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0xd7240ffd), Some(0xd7240ffd), Some(0xd942d957)),
    ("quantize", r#"{"digits":5,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0x51d6a7c8), Some(0x2535a954), Some(0xf0be687b)),
    ("quantize", r#"{"digits":5,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x4d7a5224), Some(0x4d7a5224), Some(0x96338233)),
    ("quantize", r#"{"digits":5,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x43ac57e8), Some(0xd7240ffd), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":5,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("quantize", r#"{"digits":7,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0x1c2fbafc), Some(0x1c2fbafc), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":7,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0x3d95ed96), Some(0xee4edea1), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":7,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0xcf1c4c9b), Some(0xcf1c4c9b), Some(0xd942d957)),
    ("quantize", r#"{"digits":7,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0x21c05968), Some(0xa40bda07), Some(0xf0be687b)),
    ("quantize", r#"{"digits":7,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x4d7a5224), Some(0x4d7a5224), Some(0x96338233)),
    ("quantize", r#"{"digits":7,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0x55b5dbaf), Some(0xcf1c4c9b), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":7,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("quantize", r#"{"digits":12,"dtype":"<f8","astype":"<f8"}"#, "float64", Little, "float64", Bits, Some(0xafcf778b), Some(0xafcf778b), Some(0xcf53ff1b)),
    ("quantize", r#"{"digits":12,"dtype":"<f8","astype":"<f4"}"#, "float64", Little, "float32", Bits, Some(0xe8503317), Some(0x60625995), Some(0x7a0357f4)),
    ("quantize", r#"{"digits":12,"dtype":"<f4","astype":"<f4"}"#, "float32", Little, "float32", Bits, Some(0x277bd706), Some(0x277bd706), Some(0xd942d957)),
    ("quantize", r#"{"digits":12,"dtype":"<f4","astype":"<f2"}"#, "float32", Little, "float16", Bits, Some(0x0dca88b2), Some(0x44ff903c), Some(0xf0be687b)),
    ("quantize", r#"{"digits":12,"dtype":"<f2","astype":"<f2"}"#, "float16", Little, "float16", Mild, Some(0x4d7a5224), Some(0x4d7a5224), Some(0x96338233)),
    ("quantize", r#"{"digits":12,"dtype":"<f4","astype":"<f8"}"#, "float32", Little, "float64", Bits, Some(0xf4788a93), Some(0x277bd706), Some(0xc2bf9bca)),
    ("quantize", r#"{"digits":12,"dtype":"<f8"}"#, "float64", Little, "float64", Mild, Some(0xbc497227), Some(0xbc497227), Some(0xbc497227)),
    ("bitround", r#"{"keepbits":0}"#, "float16", Little, "float16", Bits, Some(0x19e85774), Some(0x19e85774), None),
    ("bitround", r#"{"keepbits":1}"#, "float16", Little, "float16", Bits, Some(0xda2cef10), Some(0xda2cef10), None),
    ("bitround", r#"{"keepbits":5}"#, "float16", Little, "float16", Bits, Some(0x405cbcfa), Some(0x405cbcfa), None),
    ("bitround", r#"{"keepbits":9}"#, "float16", Little, "float16", Bits, Some(0x18ffa6dd), Some(0x18ffa6dd), None),
    ("bitround", r#"{"keepbits":10}"#, "float16", Little, "float16", Bits, Some(0xe0c0b947), Some(0xe0c0b947), None),
    ("bitround", r#"{"keepbits":0}"#, "float32", Little, "float32", Bits, Some(0xcb4225c0), Some(0xcb4225c0), None),
    ("bitround", r#"{"keepbits":1}"#, "float32", Little, "float32", Bits, Some(0x8eb90c5b), Some(0x8eb90c5b), None),
    ("bitround", r#"{"keepbits":10}"#, "float32", Little, "float32", Bits, Some(0xcf6d9429), Some(0xcf6d9429), None),
    ("bitround", r#"{"keepbits":22}"#, "float32", Little, "float32", Bits, Some(0x22e934b3), Some(0x22e934b3), None),
    ("bitround", r#"{"keepbits":23}"#, "float32", Little, "float32", Bits, Some(0xd942d957), Some(0xd942d957), None),
    ("bitround", r#"{"keepbits":0}"#, "float64", Little, "float64", Bits, Some(0x435a877b), Some(0x435a877b), None),
    ("bitround", r#"{"keepbits":1}"#, "float64", Little, "float64", Bits, Some(0x2a8fe45f), Some(0x2a8fe45f), None),
    ("bitround", r#"{"keepbits":30}"#, "float64", Little, "float64", Bits, Some(0xf5ca0554), Some(0xf5ca0554), None),
    ("bitround", r#"{"keepbits":51}"#, "float64", Little, "float64", Bits, Some(0xa534f7ba), Some(0xa534f7ba), None),
    ("bitround", r#"{"keepbits":52}"#, "float64", Little, "float64", Bits, Some(0xcf53ff1b), Some(0xcf53ff1b), None),
    ("packbits", r#"{}"#, "bool", Little, "bool", Bits, Some(0xac100e21), Some(0x4b27c017), None),
    ("shuffle", r#"{"elementsize":1}"#, "float64", Little, "float64", Bits, Some(0xcf53ff1b), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":2}"#, "float64", Little, "float64", Bits, Some(0x8452162d), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":4}"#, "float64", Little, "float64", Bits, Some(0x179fcd0e), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":8}"#, "float64", Little, "float64", Bits, Some(0x7a440531), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":16}"#, "float64", Little, "float64", Bits, Some(0xb2c57617), Some(0xcf53ff1b), None),
];
