//! numcodecs' filters against numcodecs 0.17.1 and 0.15.2 (NumPy 2.5 and 2.2, x86-64), which agree on every row.
//!
//! Each row has checksums of what numcodecs makes of 512 elements: encoded; decoded again; and decoded from bytes that
//! it did not encode. `tests/clients/golden.py --write` makes the checksums anew.

mod astype;
mod bits;
mod delta;
mod fixedscaleoffset;
mod rounding;

use bytes::Bytes;
use flate2::Crc;
use serde_json::{Map, Value, json};
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements};
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{Number, parse_v3},
};

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

use Kind::Bits;
use Order::Big;

/// A filter with its configuration; the type and byte order of the elements; the type and kind of bytes that numcodecs
/// did not encode; and the checksums.
type Row = (&'static str, &'static str, &'static str, Order, &'static str, Kind, Option<u32>, Option<u32>, Option<u32>);

fn rows() -> impl Iterator<Item = &'static Row> {
    [astype::ROWS, delta::ROWS, fixedscaleoffset::ROWS, rounding::ROWS, bits::ROWS].into_iter().flatten()
}

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

fn chain(id: &str, configuration: &str, data_type: &str, order: Order) -> CodecChain {
    let configuration: Map<String, Value> = serde_json::from_str(configuration).unwrap();
    let endian = json!({"endian": if order == Big { "big" } else { "little" }});
    let specs = [CodecSpec::v3("bytes", endian.as_object().unwrap().clone()), CodecSpec::numcodecs(id, configuration)];
    let data_type = parse_v3(&json!(data_type)).unwrap();
    let fill = data_type.zero();
    CodecChain::new(&specs, ChunkRepresentation::new(data_type, vec![ELEMENTS as u64], fill).unwrap()).unwrap()
}

fn fixed(elements: Elements) -> Bytes {
    match elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => panic!("the elements are of variable length"),
    }
}

#[test]
fn filters_match_numcodecs() {
    let mut wrong = Vec::new();
    for row @ &(id, configuration, data_type, order, encoded_type, kind, encoded, decoded, wild) in rows() {
        let chain = chain(id, configuration, data_type, order);
        let mut compare = |what: &str, expected: Option<u32>, found: &[u8]| {
            if expected.is_some_and(|expected| expected != crc(found)) {
                wrong.push(format!("{what}: {row:?}"));
            }
        };
        let input = Bytes::from(elements(data_type, kind));
        if encoded.is_some() {
            let bytes = chain.encode(Elements::Fixed(input)).unwrap();
            assert_eq!(chain.encoded_size().unwrap().exact(), Some(bytes.len() as u64), "{row:?}");
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
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows().count(), wrong.join("\n"));
}
