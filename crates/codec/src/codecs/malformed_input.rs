//! Compressors and checksums with malformed and hostile input.

use bytes::Bytes;
use proptest::prelude::*;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::golden::{Content, KNOWN};
use crate::{BytesRepresentation, BytesToBytes, Codec, CodecError, CodecInput, EncodedSizeBound, builder, registry};
use std::{iter, sync::Arc};

fn codec(namespace: Namespace, name: &str, json: &str) -> Result<Arc<dyn BytesToBytes>, String> {
    let configuration = serde_json::from_str(json).unwrap();
    let spec = CodecSpec { namespace, name: name.to_owned(), configuration };
    let bytes = BytesRepresentation { stored_elements: None, size: None };
    match registry::create(&spec, CodecInput::Bytes(&bytes), &builder::top_level()) {
        Ok(Codec::BytesToBytes(codec)) => Ok(codec),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

fn numcodec(name: &str, json: &str) -> Arc<dyn BytesToBytes> {
    codec(Namespace::Numcodecs, name, json).unwrap()
}

fn content(content: Content) -> Vec<u8> {
    match content {
        Content::Short => (0..24).collect(),
        Content::Long => (0..275_i32).flat_map(|at| (at / 25 * 1000).to_le_bytes()).collect(),
    }
}

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Codecs with a configuration, and bytes that numcodecs encoded with it.
fn samples() -> impl Iterator<Item = (&'static str, Arc<dyn BytesToBytes>, Vec<u8>, Bytes)> {
    KNOWN.iter().map(|&(name, json, raw, encoded)| (name, numcodec(name, json), content(raw), hex(encoded)))
}

fn is_checksum(name: &str) -> bool {
    !["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"].contains(&name)
}

#[test]
fn output_of_numcodecs_is_decoded() {
    for (name, codec, raw, encoded) in samples() {
        let len = raw.len() as u64;
        for limit in [len, len + 1, 2 * len, 1 << 40, u64::MAX] {
            let decoded =
                codec.decode(encoded.clone(), limit).unwrap_or_else(|error| panic!("{name} {codec:?}: {error:?}"));
            assert!(decoded == raw, "{name} {codec:?}");
        }
        assert!(encoded.len() as u64 <= codec.encoded_size(len).max(), "{name} {codec:?}");
    }
}

#[test]
fn output_beyond_the_limit_is_rejected() {
    for (name, codec, raw, encoded) in samples() {
        for limit in [0, 1, raw.len() as u64 / 2, raw.len() as u64 - 1] {
            let error = codec.decode(encoded.clone(), limit).unwrap_err();
            assert!(
                matches!(error, CodecError::OutputTooLong { limit: found, .. } if found == limit),
                "{name} {error:?}"
            );
            assert_eq!(error.codec(), name);
        }
    }
}

#[test]
fn truncated_input_is_rejected() {
    for (name, codec, raw, encoded) in samples() {
        for end in 0..encoded.len() {
            let decoded = codec.decode(encoded.slice(..end), raw.len() as u64);
            assert!(decoded.is_err(), "{name} {codec:?} {end}");
        }
    }
}

#[test]
fn trailing_bytes_are_ignored_where_python_ignores_them() {
    for (at, (name, codec, raw, encoded)) in samples().enumerate() {
        let is_alone = KNOWN[at].1.contains(r#""format": 2"#);
        let is_raw = KNOWN[at].1.contains(r#""format": 3"#);
        for after in [&b"x"[..], b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", &[0; 3]] {
            let longer: Bytes = [&encoded, after].concat().into();
            let is_ignored = match name {
                "zlib" | "blosc" => true,
                "bz2" => after != b"BZh",
                "lzma" if is_alone => after == [0; 3],
                "lzma" => is_raw || after != b"\xfd7zXZ\0",
                "gzip" => after == [0; 3],
                _ => false,
            };
            for limit in [raw.len() as u64, 1 << 20] {
                let decoded = codec.decode(longer.clone(), limit);
                assert_eq!(decoded.is_ok_and(|decoded| decoded == raw), is_ignored, "{name} {codec:?} {after:?}");
            }
        }
    }
}

#[test]
fn unsupported_levels_stop_no_read() {
    let content: Vec<u8> = (0..100).collect();
    for (namespace, name, json) in [
        (Namespace::V3, "gzip", r#"{"level": 10}"#),
        (Namespace::V3, "gzip", r#"{"level": -1}"#),
        (Namespace::V3, "zstd", r#"{"level": 23}"#),
        (Namespace::V3, "blosc", r#"{"clevel": 10}"#),
        (Namespace::Numcodecs, "gzip", r#"{"level": -2}"#),
        (Namespace::Numcodecs, "gzip", r#"{"level": 1000000}"#),
        (Namespace::Numcodecs, "zlib", r#"{"level": 10}"#),
        (Namespace::Numcodecs, "bz2", r#"{"level": 0}"#),
        (Namespace::Numcodecs, "blosc", r#"{"clevel": -1}"#),
        (Namespace::Numcodecs, "zstd", r#"{"level": -200000}"#),
        (Namespace::Numcodecs, "lzma", r#"{"preset": 10}"#),
    ] {
        let unsupported = codec(namespace, name, json).unwrap();
        let encoded = codec(namespace, name, "{}").unwrap().encode(content.clone().into()).unwrap();
        assert!(unsupported.decode(encoded, 100).is_ok_and(|decoded| decoded == content), "{name} {json}");
        let refused = unsupported.encode(content.clone().into()).unwrap_err();
        assert!(matches!(&refused, CodecError::EncodingUnsupported { codec, .. } if *codec == name), "{refused:?}");
    }
}

#[test]
fn flipped_bits_are_detected_or_stay_within_the_limit() {
    for (name, codec, raw, encoded) in samples() {
        for (at, bit) in (0..encoded.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = encoded.to_vec();
            flipped[at] ^= 1 << bit;
            let limit = raw.len() as u64;
            if let Ok(decoded) = codec.decode(flipped.into(), limit) {
                assert!(decoded.len() as u64 <= limit && !is_checksum(name), "{name} {codec:?} {at} {bit}");
            }
        }
    }
}

#[test]
fn concatenated_streams_are_decoded() {
    for (name, codec, raw, encoded) in samples() {
        let twice: Bytes = [&encoded[..], &encoded[..]].concat().into();
        let decoded = codec.decode(twice.clone(), 2 * raw.len() as u64);
        let raw_lzma = format!("{codec:?}").contains("Raw");
        if ["gzip", "zstd", "bz2"].contains(&name) || name == "lzma" && !raw_lzma {
            assert!(decoded.unwrap() == [&raw[..], &raw[..]].concat(), "{name} {codec:?}");
            let error = codec.decode(twice, raw.len() as u64).unwrap_err();
            assert!(matches!(error, CodecError::OutputTooLong { .. }), "{name} {error:?}");
        } else if ["zlib", "blosc"].contains(&name) || raw_lzma {
            assert!(decoded.unwrap() == raw, "{name} {codec:?}");
        } else {
            assert!(decoded.is_err(), "{name} {codec:?}");
        }
    }
}

#[test]
fn decompression_bombs_stop_at_the_limit() {
    for (name, json) in [
        ("gzip", "{}"),
        ("zlib", "{}"),
        ("zstd", "{}"),
        ("lz4", "{}"),
        ("bz2", "{}"),
        ("lzma", "{}"),
        ("lzma", r#"{"format": 2}"#),
        ("lzma", r#"{"format": 3, "filters": [{"id": 33}]}"#),
        ("blosc", r#"{"cname": "zstd"}"#),
        ("blosc", r#"{"cname": "blosclz"}"#),
    ] {
        let codec = numcodec(name, json);
        let len = (4 << 20) + 1;
        let bomb = codec.encode(vec![0; len].into()).unwrap();
        for limit in [0, 16, len as u64 - 1] {
            let error = codec.decode(bomb.clone(), limit).unwrap_err();
            assert!(matches!(error, CodecError::OutputTooLong { .. }), "{name} {error:?}");
        }
        assert_eq!(codec.decode(bomb.clone(), len as u64).unwrap().len(), len, "{name}");
        assert_eq!(codec.decode(bomb, u64::MAX).unwrap().len(), len, "{name}");
    }
}

/// Bytes that declare far more than they hold, which are rejected under any limit.
#[test]
fn declared_sizes_are_not_trusted() {
    let blosc = |flags: u8, type_size: u8, numbers: [u32; 3], rest: &[u8]| -> Vec<u8> {
        let numbers = numbers.into_iter().flat_map(u32::to_le_bytes);
        [2, 1, flags, type_size].into_iter().chain(numbers).chain(rest.iter().copied()).collect()
    };
    let big = 0x7fff_0000;
    let lies: Vec<(&str, &str, Vec<u8>)> = vec![
        // A frame of one empty block that declares 2^47 bytes, in a single segment or with a window of that size.
        ("zstd", "{}", hex("28b52ffde0000000000080000001 0000".replace(' ', "").as_str()).to_vec()),
        ("zstd", "{}", hex("28b52ffd00b8010000").to_vec()),
        ("lz4", "{}", vec![0xff, 0xff, 0xff, 0xff, 0x1f, 0, 1, 0, 0xff, 0xff]),
        ("lz4", "{}", vec![0, 0, 0, 0x7f, 0]),
        ("lz4", "{}", vec![0, 0, 0, 0x80]),
        // A member that declares 4 GiB minus one byte.
        ("gzip", "{}", hex("1f8b080000000000000303000000000 0ffffffff".replace(' ', "").as_str()).to_vec()),
        // Dictionaries of 4 GiB minus one byte.
        ("lzma", r#"{"format": 2}"#, hex("5dffffffffffffffffffffffff00").to_vec()),
        ("lzma", "{}", hex("fd377a585a000004e6d6b44602002101280000007ae90bcf").to_vec()),
        ("blosc", "{}", blosc(0x31, 4, [big, big, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [big, 1, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [big, big, 24], &[20, 0, 0, 0, 0, 0, 0, 0])),
        ("blosc", "{}", blosc(0x31, 0, [big, big, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [big, 0, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [u32::MAX, big, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [big, u32::MAX, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [big, big, u32::MAX], &[0; 8])),
        ("blosc", "{}", blosc(0x33, 4, [big, big, 24], &[0; 8])),
        ("blosc", "{}", blosc(0x33, 4, [big, big, big + 16], &[0; 8])),
        ("blosc", "{}", blosc(0x31, 4, [64, 64, 28], &[20, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0])),
        ("blosc", "{}", blosc(0x31, 4, [64, 64, 28], &[20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])),
        ("blosc", "{}", blosc(0x31, 4, [64, 64, 24], &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])),
        ("blosc", "{}", blosc(0x39, 4, [64, 64, 24], &[0; 8])),
        ("blosc", "{}", blosc(0xf1, 4, [64, 64, 24], &[0; 8])),
        // Blocks of 513 bytes, which cannot be split into four streams.
        ("blosc", "{}", blosc(0x21, 4, [1026, 513, 28], &[20, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0])),
    ];
    for (name, json, lie) in lies {
        let codec = numcodec(name, json);
        for limit in [16, 1 << 30, 1 << 40, u64::MAX] {
            let decoded = codec.decode(lie.clone().into(), limit);
            assert!(decoded.is_err(), "{name} {lie:x?} {limit} {decoded:?}");
        }
    }
}

#[test]
fn zstd_frames_without_content_size_are_decoded() {
    let codec = numcodec("zstd", "{}");
    let raw: Vec<u8> = (0..5_000_000_u32).map(|at| (at / 1000) as u8).collect();
    let open = zstd::stream::encode_all(&raw[..], 1).unwrap();
    let sized = zstd::bulk::compress(&raw, 1).unwrap();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let len = raw.len() as u64;
    for (parts, count) in [
        (vec![&open[..]], 1),
        (vec![&skippable, &open], 1),
        (vec![&open, &skippable, &sized], 2),
        (vec![&sized, &open, &skippable], 2),
    ] {
        let encoded = Bytes::from(parts.concat());
        for limit in [count * len, count * len + 5, 1 << 40] {
            let decoded = codec.decode(encoded.clone(), limit).unwrap();
            assert!(decoded == raw.repeat(count as usize));
        }
        assert!(matches!(codec.decode(encoded, count * len - 1), Err(CodecError::OutputTooLong { .. })));
    }
}

#[test]
fn invalid_configurations_are_rejected() {
    use Namespace::{Numcodecs, V3};
    let wrong = [
        (V3, "gzip", r#"{"levle": 1}"#),
        (V3, "gzip", r#"{"level": "5"}"#),
        (V3, "zstd", r#"{"level": "3"}"#),
        (V3, "blosc", r#"{"shuffle": 1}"#),
        (V3, "blosc", r#"{"shuffle": "bits"}"#),
        (V3, "blosc", r#"{"cname": "lzo"}"#),
        (V3, "blosc", r#"{"typesize": 0}"#),
        (V3, "bz2", "{}"),
        (Numcodecs, "blosc", r#"{"shuffle": "shuffle"}"#),
        (Numcodecs, "blosc", r#"{"shuffle": 3}"#),
        (Numcodecs, "crc32", r#"{"location": "middle"}"#),
        (Numcodecs, "fletcher32", r#"{"location": "end"}"#),
        (Numcodecs, "jenkins_lookup3", r#"{"initval": -1}"#),
        (Numcodecs, "lzma", r#"{"format": 0}"#),
        (Numcodecs, "lzma", r#"{"check": 2}"#),
        (Numcodecs, "lzma", r#"{"format": 3}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": []}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 3}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 33}, {"id": 33}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 3, "dist": 0}, {"id": 33}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 33, "dict_size": 4294967295}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 33, "lc": 4, "lp": 4}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 33, "nice_len": 1}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 33, "mf": 5}]}"#),
        (Numcodecs, "lzma", r#"{"format": 3, "filters": [{"id": 99}]}"#),
        (Numcodecs, "lzma", r#"{"preset": 1, "filters": [{"id": 33}]}"#),
        (Numcodecs, "lzma", r#"{"format": 1, "filters": [{"id": 4611686018427387905}]}"#),
    ];
    for (namespace, name, json) in wrong {
        assert!(codec(namespace, name, json).is_err(), "{name} {json}");
    }
}

/// Each compressor with its defaults, and blosc in all configurations.
fn configured() -> Vec<(&'static str, String)> {
    let names = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    let blosc = iter::repeat_n(names, 1).flatten().flat_map(|name| {
        let json = move |shuffle, typesize, blocksize| {
            format!(
                r#"{{"cname": "{name}", "clevel": 4, "shuffle": {shuffle}, "typesize": {typesize}, "blocksize": {blocksize}}}"#
            )
        };
        [json(0, 8, 0), json(1, 2, 300), json(1, 3, 0), json(1, 4, 0), json(1, 16, 5000), json(2, 1, 0), json(2, 4, 512), json(2, 300, 0)]
    });
    let rest =
        ["gzip", "zlib", "zstd", "lz4", "bz2", "lzma", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"];
    let rest = rest.into_iter().map(|name| (name, "{}".to_owned()));
    blosc.map(|json| ("blosc", json)).chain(rest).collect()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..2000),
        (0..6000_usize, 1..9_u32)
            .prop_map(|(len, step)| (0..len as u32).flat_map(|at| (at / step).to_le_bytes()).collect()),
        prop::collection::vec(0..3_u8, 0..9000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn encoded_bytes_roundtrip(raw in bytes()) {
        for (name, json) in configured() {
            let codec = numcodec(name, &json);
            let encoded = codec.encode(raw.clone().into()).unwrap();
            match codec.encoded_size(raw.len() as u64) {
                EncodedSizeBound::Exact(len) => prop_assert_eq!(encoded.len() as u64, len),
                EncodedSizeBound::AtMost(len) => prop_assert!(encoded.len() as u64 <= len, "{} {}", name, json),
            }
            let decoded = codec.decode(encoded, raw.len() as u64).unwrap();
            prop_assert!(decoded == raw, "{} {}", name, json);
        }
    }

    #[test]
    fn random_input_never_panics(junk in prop::collection::vec(any::<u8>(), 0..300), len in 0..40_usize, limit in 0..5000_u64) {
        for (name, codec, _, encoded) in samples() {
            let start = encoded.slice(..len.min(encoded.len()));
            if let Ok(decoded) = codec.decode([&start[..], &junk].concat().into(), limit) {
                prop_assert!(decoded.len() as u64 <= limit, "{}", name);
            }
        }
    }
}
