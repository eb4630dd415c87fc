use proptest::prelude::*;
use serde_json::json;

use super::{golden::CASTS, *};

const ROUNDINGS: [Rounding; 5] = [
    Rounding::NearestEven,
    Rounding::NearestAway,
    Rounding::TowardsZero,
    Rounding::TowardsPositive,
    Rounding::TowardsNegative,
];
const RANGES: [OutOfRange; 3] = [OutOfRange::Error, OutOfRange::Clamp, OutOfRange::Wrap];

fn data_type(name: &str) -> DataType {
    parse_v3(&name.into()).unwrap()
}

fn format(name: &str) -> Format {
    Format::of(&data_type(name)).unwrap()
}

/// The bits of `bits` in `tests/clients/golden/casts.py`.
fn bits(name: &str) -> Vec<u64> {
    match format(name) {
        Format::Integer { bits: width, .. } => {
            let mask = u64::MAX >> (64 - width);
            let powers = (0..width).map(|bit| 1_u64 << bit);
            let found: Vec<u64> = powers
                .flat_map(|power| [-1, 0, 1, (power / 2) as i64, -3].map(|more| power.wrapping_add_signed(more)))
                .collect();
            let negative = found.iter().map(|value| value.wrapping_neg());
            found.iter().copied().chain(negative).map(|value| value & mask).collect()
        }
        Format::Float { exponent, mantissa } => {
            let bias = (1_u64 << (exponent - 1)) - 1;
            let last = (1 << exponent) - 1;
            let exponents: Vec<u64> =
                [0, 1, last].into_iter().chain(bias.saturating_sub(26).max(2)..(bias + 67).min(last)).collect();
            let ones = (1..mantissa).map(|bit| 1 << bit);
            let fractions: Vec<u64> =
                [0, 1, (1 << mantissa) - 1, 3 << (mantissa - 2)].into_iter().chain(ones).collect();
            let signed = |sign: u64, at: u64| {
                fractions.iter().map(move |fraction| sign << (exponent + mantissa) | at << mantissa | fraction)
            };
            let of_sign = |sign: u64| exponents.iter().flat_map(move |at| signed(sign, *at));
            [0, 1].into_iter().flat_map(of_sign).collect()
        }
    }
}

fn direction(from: &str, to: &str, rules: Rules) -> Direction {
    Direction { from: format(from), to: format(to), rules, pairs: Vec::new(), payloads: Vec::new() }
}

#[test]
fn casts_are_those_of_cast_value_rs() {
    for (from, to, checksum) in CASTS {
        let mut crc = flate2::Crc::new();
        for rounding in ROUNDINGS {
            for out_of_range in RANGES {
                let direction = direction(from, to, Rules { rounding, out_of_range });
                for bits in bits(from) {
                    match direction.convert(bits) {
                        Ok(result) => crc.update(&result.to_le_bytes()[..direction.to.size()]),
                        Err(_) => crc.update(&[0xee]),
                    }
                }
            }
        }
        assert_eq!(crc.sum(), *checksum, "{from} to {to}");
    }
}

fn created(decoded: &str, configuration: Value) -> Result<Codec, ChainError> {
    let spec = CodecSpec::v3("cast_value", configuration.as_object().unwrap().clone());
    let array = ChunkRepresentation::new(data_type(decoded), vec![2], data_type(decoded).zero()).unwrap();
    create(&spec, CodecInput::Array(&array), &crate::builder::top_level())
}

#[test]
fn impossible_configurations_are_rejected() {
    let pairs: Vec<_> = (0..=MAX_PAIRS).map(|key| json!([key, 0])).collect();
    for (decoded, configuration) in [
        ("float64", json!({})),
        ("float64", json!({"data_type": "int16", "more": 1})),
        ("float64", json!({"data_type": "nothing"})),
        ("float64", json!({"data_type": "complex64"})),
        ("float64", json!({"data_type": "string"})),
        ("bool", json!({"data_type": "int16"})),
        ("r16", json!({"data_type": "int16"})),
        ("float64", json!({"data_type": "float32", "out_of_range": "wrap"})),
        ("float64", json!({"data_type": "int16", "out_of_range": "saturate"})),
        ("float64", json!({"data_type": "int16", "rounding": "up"})),
        ("float64", json!({"data_type": "int16", "scalar_map": {"encode": [["NaN", 70_000]]}})),
        ("float64", json!({"data_type": "int16", "scalar_map": {"encode": [["x", 0]]}})),
        ("float64", json!({"data_type": "int16", "scalar_map": {"encode": [["NaN"]]}})),
        ("float64", json!({"data_type": "int16", "scalar_map": {"decode": [["NaN", 0]]}})),
        ("float64", json!({"data_type": "int16", "scalar_map": {"both": []}})),
        ("int64", json!({"data_type": "int32", "scalar_map": {"encode": pairs}})),
    ] {
        let found = created(decoded, configuration.clone());
        assert!(
            matches!(found, Err(ChainError::MalformedConfiguration { .. } | ChainError::InvalidConfiguration { .. })),
            "{decoded} {configuration}: {found:?}"
        );
    }
    let bytes = crate::BytesRepresentation { stored_elements: None, size: None };
    let spec = CodecSpec::v3("cast_value", json!({"data_type": "int8"}).as_object().unwrap().clone());
    let behind = create(&spec, CodecInput::Bytes(&bytes), &crate::builder::top_level());
    assert!(matches!(behind, Err(ChainError::InvalidPosition { .. })));
}

#[test]
fn maps_precede_rounding_and_ranges() {
    let map = json!({
        "encode": [["NaN", -1], ["0x7ff8000000000001", -2], [-0.0, 5], [2.5, 70], [2.5, 7], ["Infinity", 127]],
        "decode": {"-1": "NaN", "-2": "0x7ff8000000000001", "127": "Infinity"},
    });
    let codec = created("float64", json!({"data_type": "int8", "scalar_map": map})).unwrap();
    let Codec::ArrayToArray(codec, array) = codec else { panic!("{codec:?}") };
    assert_eq!(array.fill_value()[..], [5], "the fill value is cast by the map, too");
    let floats = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff8_0000_0000_0001), 0.0, 2.5, f64::INFINITY, 3.5];
    let decoded: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
    let encoded = codec.encode(crate::Elements::Fixed(decoded.into())).unwrap();
    let stored = [-1_i8, -1, -2, 5, 7, 127, 4].map(|stored| stored as u8);
    assert_eq!(encoded, crate::Elements::Fixed(stored.to_vec().into()));
    let again = codec.decode(encoded).unwrap();
    let expected = [f64::NAN, f64::NAN, f64::from_bits(0x7ff8_0000_0000_0001), 5.0, 7.0, f64::INFINITY, 4.0];
    let expected: Vec<u8> = expected.iter().flat_map(|float| float.to_le_bytes()).collect();
    assert_eq!(again, crate::Elements::Fixed(expected.into()));
}

proptest! {
    /// The naive model: Rust's own conversions round to the nearest, and truncate.
    #[test]
    fn casts_are_those_of_the_language(bits: u64, integer: i64) {
        let convert = |from: &str, to: &str, bits, rounding, out_of_range| {
            direction(from, to, Rules { rounding, out_of_range }).convert(bits)
        };
        let (even, zero) = (Rounding::NearestEven, Rounding::TowardsZero);
        let float = f64::from_bits(bits);
        prop_assume!(float.is_finite());
        let single = (float as f32).to_bits();
        prop_assert_eq!(convert("float64", "float32", bits, even, OutOfRange::Clamp), Ok(u64::from(single)));
        let truncated = float as i16 as u16;
        prop_assert_eq!(convert("float64", "int16", bits, zero, OutOfRange::Clamp), Ok(u64::from(truncated)));
        let doubled = (integer as f64).to_bits();
        prop_assert_eq!(convert("int64", "float64", integer as u64, even, OutOfRange::Error), Ok(doubled));
        let narrowed = integer as u8;
        prop_assert_eq!(convert("int64", "uint8", integer as u64, even, OutOfRange::Wrap), Ok(u64::from(narrowed)));
        let mild = integer as i32;
        let back = convert("float64", "int32", f64::from(mild).to_bits(), even, OutOfRange::Error);
        prop_assert_eq!(back, Ok(u64::from(mild as u32)));
    }
}
