use proptest::prelude::*;
use serde_json::json;
use zarrd_meta::data_type::parse_v3;

use super::*;
use crate::ChunkRepresentation;

fn codec(name: &str, len: u64, configuration: serde_json::Value) -> Arc<dyn ArrayToBytes> {
    let spec = CodecSpec::numcodecs("pcodec", configuration.as_object().unwrap().clone());
    let data_type = parse_v3(&name.into()).unwrap();
    let array = ChunkRepresentation::new(data_type.clone(), vec![len], data_type.zero()).unwrap();
    match create(&spec, CodecInput::Array(&array), &crate::builder::top_level()).unwrap() {
        Codec::ArrayToBytes(codec) => codec,
        other => panic!("{other:?}"),
    }
}

fn sample(len: i32) -> Bytes {
    (0..len).flat_map(|at| (at * at % 1000 * 7).to_le_bytes()).collect()
}

#[test]
fn damaged_files_are_errors_or_within_the_limit() {
    for configuration in [json!({}), json!({"delta_spec": "try_lookback"}), json!({"equal_pages_up_to": 300})] {
        let codec = codec("int32", 1000, configuration);
        let raw = sample(1000);
        let encoded = codec.encode(Elements::Fixed(raw.clone())).unwrap();
        assert_eq!(codec.decode(encoded.clone(), 0).unwrap(), Elements::Fixed(raw));
        for end in 0..encoded.len() {
            assert!(codec.decode(encoded.slice(..end), 0).is_err(), "{end}");
        }
        for (at, bit) in (0..encoded.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut flipped = encoded.to_vec();
            flipped[at] ^= 1 << bit;
            if let Ok(Elements::Fixed(decoded)) = codec.decode(flipped.into(), 0) {
                assert_eq!(decoded.len(), 4000);
            }
        }
        let longer: Bytes = [&encoded[..], b"more"].concat().into();
        assert!(codec.decode(longer, 0).is_ok());
    }
}

#[test]
fn declared_sizes_are_compared_before_they_are_allocated() {
    let encoded = codec("int32", 1000, json!({})).encode(Elements::Fixed(sample(1000))).unwrap();
    let short = codec("int32", 999, json!({})).decode(encoded.clone(), 0);
    assert!(matches!(short, Err(CodecError::OutputTooLong { limit: 3996, .. })), "{short:?}");
    let long = codec("int32", 1001, json!({})).decode(encoded.clone(), 0);
    assert!(matches!(long, Err(CodecError::LengthMismatch { expected: 4004, found: 4000, .. })), "{long:?}");
    assert!(codec("float32", 1000, json!({})).decode(encoded, 0).is_err(), "another type");
    // A file that says nothing of its size, with a page of 2^24 numbers, or a dictionary of 2^25 - 1.
    let header = [b"pco!".as_slice(), &[3, 3, 0, 4, 1]].concat();
    let page = |rest: &[u8]| Bytes::from([&header[..], rest].concat());
    let codec = codec("int32", 1000, json!({}));
    let found = codec.decode(page(&[3, 0xff, 0xff, 0xff, 0]), 0);
    assert!(matches!(found, Err(CodecError::OutputTooLong { .. })), "{found:?}");
    let found = codec.decode(page(&[3, 100, 0, 0, 0xf4, 0xff, 0xff, 0xff]), 0);
    assert!(matches!(found, Err(CodecError::Malformed { .. })), "{found:?}");
}

#[test]
fn windows_are_compared_before_they_are_allocated() {
    // A page of 100 numbers: classic, with a window of 2^17 to 2^24 numbers, and without a state.
    let page = |count: u32, log: u32| {
        let [low, middle, high, _] = (count - 1).to_le_bytes();
        let metadata = (2_u32 << 4) | ((log - 1) << 8);
        let header = [b"pco!".as_slice(), &[3, 3, 0, 4, 1, 3, low, middle, high]].concat();
        Bytes::from([&header[..], &metadata.to_le_bytes(), &[0; 64]].concat())
    };
    let is_refused = |found: &Result<Elements, CodecError>| {
        matches!(found, Err(CodecError::Malformed { reason: "a window is longer than its page", .. }))
    };
    for (count, log, wanted) in
        [(100, 16, true), (100, 24, true), (100, 15, false), (1 << 17, 17, false), (1 << 17, 18, true)]
    {
        let found = codec("int32", u64::from(count), json!({})).decode(page(count, log), 0);
        assert_eq!(is_refused(&found), wanted, "{count} {log}: {found:?}");
    }
    let repeated: Bytes =
        (0..200_000_u32).flat_map(|at| (at % 40_000).wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let codec = codec("uint32", 200_000, json!({"delta_spec": "try_lookback"}));
    let encoded = codec.encode(Elements::Fixed(repeated.clone())).unwrap();
    assert_eq!(codec.decode(encoded, 0).unwrap(), Elements::Fixed(repeated));
}

#[test]
fn wrong_configurations_stop_no_read() {
    let encoded = codec("int32", 100, json!({})).encode(Elements::Fixed(sample(100))).unwrap();
    for configuration in [
        json!({"level": 13}),
        json!({"level": -1}),
        json!({"mode_spec": "try_float_mult"}),
        json!({"delta_spec": "no_op", "delta_encoding_order": 2}),
        json!({"delta_encoding_order": 8}),
        json!({"paging_spec": "exact"}),
        json!({"equal_pages_up_to": 0}),
    ] {
        let codec = codec("int32", 100, configuration.clone());
        assert!(codec.decode(encoded.clone(), 0).is_ok(), "{configuration}");
        let refused = codec.encode(Elements::Fixed(sample(100)));
        assert!(matches!(refused, Err(CodecError::EncodingUnsupported { .. })), "{configuration}: {refused:?}");
    }
}

#[test]
fn other_elements_are_refused() {
    let spec = CodecSpec::numcodecs("pcodec", serde_json::Map::new());
    for name in ["bool", "complex64", "r8", "numpy.datetime64"] {
        let Ok(data_type) = parse_v3(&name.into()) else { continue };
        let array = ChunkRepresentation::new(data_type.clone(), vec![1], data_type.zero()).unwrap();
        assert!(create(&spec, CodecInput::Array(&array), &crate::builder::top_level()).is_err(), "{name}");
    }
    let int = parse_v3(&"int32".into()).unwrap();
    for (stored_elements, is_ok) in
        [(None, false), (Some((int.clone(), StoredOrder::Big)), false), (Some((int, StoredOrder::Little)), true)]
    {
        let bytes = crate::BytesRepresentation { stored_elements, size: None };
        let found = create(&spec, CodecInput::Bytes(&bytes), &crate::builder::top_level());
        assert_eq!(found.is_ok(), is_ok, "{found:?}");
    }
}

proptest! {
    #[test]
    fn numbers_are_decoded_again(numbers in prop::collection::vec(any::<u64>(), 0..600), name in 0..9_usize) {
        let (name, size) = [
            ("int16", 2), ("uint16", 2), ("float16", 2), ("int32", 4), ("uint32", 4), ("float32", 4), ("int64", 8),
            ("uint64", 8), ("float64", 8),
        ][name];
        let raw: Bytes = numbers.iter().flat_map(|number| number.to_le_bytes()[..size].to_vec()).collect();
        let codec = codec(name, numbers.len() as u64, json!({"level": 3}));
        let encoded = codec.encode(Elements::Fixed(raw.clone())).unwrap();
        prop_assert!(encoded.len() as u64 <= codec.encoded_size().unwrap().max());
        prop_assert_eq!(codec.decode(encoded, 0).unwrap(), Elements::Fixed(raw));
    }
}
