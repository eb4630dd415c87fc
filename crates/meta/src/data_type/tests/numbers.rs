//! Booleans, integers, floats, complex numbers and raw bits.

use proptest::prelude::*;

use super::*;
use crate::data_type::{FixedLayout, Layout, Number, TypeError, WordRun};

const NUMBERS: [(&str, &str, Number); 14] = [
    ("bool", "|b1", Number::Bool),
    ("int8", "|i1", Number::Int8),
    ("int16", "<i2", Number::Int16),
    ("int32", "<i4", Number::Int32),
    ("int64", "<i8", Number::Int64),
    ("uint8", "|u1", Number::UInt8),
    ("uint16", "<u2", Number::UInt16),
    ("uint32", "<u4", Number::UInt32),
    ("uint64", "<u8", Number::UInt64),
    ("float16", "<f2", Number::Float16),
    ("float32", "<f4", Number::Float32),
    ("float64", "<f8", Number::Float64),
    ("complex64", "<c8", Number::Complex64),
    ("complex128", "<c16", Number::Complex128),
];

#[test]
fn names_of_numbers_are_read() {
    for (name, little, number) in NUMBERS {
        let data_type = v3(json!(name));
        assert_eq!((data_type.name().as_str(), data_type.number()), (name, Some(number)));
        assert_eq!(v3(json!({"name": name})), data_type);
        assert_eq!(data_type.fixed_size(), Some(number.size()));
        assert_eq!(data_type.zero(), vec![0; number.size()]);
        assert_eq!(data_type.to_v3(), json!(name));
        assert_eq!(data_type.npy_descr(), Some(format!("'{little}'")));
        assert_eq!(v2(json!(little)), (data_type.clone(), StoredOrder::Little));
        assert_eq!(data_type.to_v2(&StoredOrder::Little), Ok(json!(little)));
        let Some(plain) = little.strip_prefix('<') else { continue };
        let big = format!(">{plain}");
        assert_eq!(v2(json!(big)), (data_type.clone(), StoredOrder::Big));
        assert_eq!(draft(json!(big)), (data_type.clone(), StoredOrder::Big));
        assert_eq!(data_type.to_v2(&StoredOrder::Big), Ok(json!(big)));
        assert!(matches!(parse_v2(&json!(plain), V2Context::default()), Err(TypeError::Invalid { .. })));
    }
    for (name, text) in [("bool", "bool"), ("int8", "i1"), ("uint8", "u1")] {
        assert_eq!(draft(json!(text)), (v3(json!(name)), StoredOrder::Little));
    }
    let complex = v3(json!("complex64"));
    let words = vec![WordRun { offset: 0, width: 4, count: 2 }];
    assert_eq!(complex.layout(), Layout::Fixed(FixedLayout { size: 8, words }));
    assert_eq!(v3(json!("complex_float64")), v3(json!("complex128")));
    assert_eq!(v3(json!("bfloat16")).npy_descr(), None);
}

#[test]
fn unknown_types_are_rejected() {
    for name in ["int128", "r", "rx", "r+8", "i4", "", "<f4", "float8", "complex", "Bool"] {
        assert!(matches!(parse_v3(&json!(name)), Err(TypeError::Unknown { .. })), "{name}");
    }
    for name in ["<f16", "<i3", "bool", "<", "", "|", "x", "<f", "|V", "|V-1", "|V 1", "é4", "<f4<f4"] {
        assert!(matches!(parse_v2(&json!(name), V2Context::default()), Err(TypeError::Unknown { .. })), "{name}");
    }
    for name in ["r7", "r0", "r12"] {
        assert!(matches!(parse_v3(&json!(name)), Err(TypeError::Invalid { .. })), "{name}");
    }
    for name in ["r99999999999999999999999", "r8388616"] {
        assert!(matches!(parse_v3(&json!(name)), Err(TypeError::TooLarge { .. })), "{name}");
    }
    assert!(parse_v3(&json!("r8388608")).is_ok());
    for json in [json!(null), json!(7), json!([]), json!({}), json!({"name": 3}), json!({"configuration": {}})] {
        assert!(parse_v3(&json).is_err(), "{json}");
        assert!(parse_draft(&json).is_err(), "{json}");
    }
    for name in ["bool", "int8", "float16", "bfloat16", "complex64", "r8", "string", "bytes"] {
        assert_eq!(v3(json!({"name": name, "configuration": {}})), v3(json!(name)));
        let configured = json!({"name": name, "configuration": {"endian": "little"}});
        assert!(matches!(parse_v3(&configured), Err(TypeError::Invalid { .. })), "{name}");
    }
    let long = "x".repeat(100_000);
    assert!(parse_v3(&json!(long)).unwrap_err().to_string().len() < 200);
}

#[test]
fn fill_values_of_numbers_are_read() {
    use Dialect::{Draft, V2, V3};
    #[rustfmt::skip]
    let table: &[(&str, &[Dialect], Value, &[u8])] = &[
        ("bool", &[V2, V3, Draft], json!(true), &[1]),
        ("bool", &[V2, V3, Draft], json!(1), &[1]),
        ("bool", &[V2, V3, Draft], json!(0.0), &[0]),
        ("bool", &[V2, Draft], json!(null), &[0]),
        ("bool", &[Draft], json!("0b00000001"), &[1]),
        ("int8", &[V2, V3, Draft], json!(-7), &[0xf9]),
        ("int16", &[V2, V3, Draft], json!(-2.0), &[0xfe, 0xff]),
        ("int16", &[V2, V3], json!("-2"), &[0xfe, 0xff]),
        ("int16", &[Draft], json!("0x8001"), &[0x01, 0x80]),
        ("uint16", &[Draft], json!("0b1000000000000001"), &[0x01, 0x80]),
        ("int64", &[V2, V3, Draft], json!(i64::MIN), &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("uint64", &[V2, V3, Draft], json!(u64::MAX), &[0xff; 8]),
        ("uint64", &[V2, V3, Draft], json!(9_007_199_254_740_993_u64), &[1, 0, 0, 0, 0, 0, 0x20, 0]),
        ("float16", &[V2, V3, Draft], json!(1.5), &[0x00, 0x3e]),
        ("float32", &[V2, V3, Draft], json!(0.1), &[0xcd, 0xcc, 0xcc, 0x3d]),
        // As zarr-python writes np.float32(0.1).
        ("float32", &[V2, V3, Draft], json!(0.10000000149011612), &[0xcd, 0xcc, 0xcc, 0x3d]),
        ("float32", &[V2, V3], json!("1e3"), &[0, 0, 0x7a, 0x44]),
        ("float32", &[V2, V3, Draft], json!("NaN"), &[0, 0, 0xc0, 0x7f]),
        ("float32", &[V3, Draft], json!("0x7fc00001"), &[1, 0, 0xc0, 0x7f]),
        ("float32", &[Draft], json!("0b01111111110000000000000000000001"), &[1, 0, 0xc0, 0x7f]),
        ("float32", &[V2, Draft], json!(null), &[0; 4]),
        ("float64", &[V2, V3, Draft], json!("-Infinity"), &[0, 0, 0, 0, 0, 0, 0xf0, 0xff]),
        ("float64", &[Draft], json!("+Infinity"), &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f]),
        ("float64", &[V2, V3, Draft], json!(-0.0), &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ("bfloat16", &[V3], json!("0x7fc0"), &[0xc0, 0x7f]),
        ("bfloat16", &[V3], json!(1.0), &[0x80, 0x3f]),
        ("complex64", &[V2, V3, Draft], json!([1.0, "-Infinity"]), &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xff]),
        ("complex64", &[V3], json!(["0x3f800000", "0x7fc00001"]), &[0, 0, 0x80, 0x3f, 1, 0, 0xc0, 0x7f]),
        ("complex64", &[Draft], json!("0x3f8000007fc00001"), &[0, 0, 0x80, 0x3f, 1, 0, 0xc0, 0x7f]),
        ("complex64", &[V2, Draft], json!(1), &[0, 0, 0x80, 0x3f, 0, 0, 0, 0]),
        ("complex64", &[V2, Draft], json!(null), &[0; 8]),
        ("r24", &[V2, V3, Draft], json!([1, 2, 255]), &[1, 2, 255]),
        ("r24", &[V2, V3, Draft], json!("AQL/"), &[1, 2, 255]),
        ("r24", &[Draft], json!("0x0102ff"), &[1, 2, 255]),
        ("r24", &[V2, Draft], json!(0), &[0; 3]),
    ];
    for (name, dialects, json, element) in table {
        for dialect in *dialects {
            let data_type = v3(json!(name));
            assert_eq!(data_type.fill_value(json, *dialect).as_deref(), Ok(*element), "{name} in {dialect}: {json}");
        }
    }
}

#[test]
fn invalid_fill_values_are_rejected() {
    let table = [
        ("bool", json!(["true", "1", [], {}])),
        ("int8", json!([128, -129, 1.5, "NaN", "0x1ff", "0x-1", "0x+1", "", "1_", [1], {}])),
        ("int64", json!([9_223_372_036_854_775_808_u64, 1e18, -1e19, "9223372036854775808"])),
        ("uint64", json!([-1, 1e19, 18446744073709551616.0])),
        ("float16", json!(["0x7fc00000", "0x7e", "", "+-1", "1__0", [1.0]])),
        ("float32", json!(["0x7fc0000g", "0x+fc00000", "0b01", {}])),
        ("complex64", json!([[1], [1, 2, 3], ["x", 1], [null, 1]])),
        ("r16", json!([[1], [1, 2, 3], [256, 0], [-1, 0], [1.5, 0], "AA", "AQ==", "AQID", "!!!=", 7])),
    ];
    for (name, values) in table {
        let data_type = v3(json!(name));
        for dialect in Dialect::ALL {
            for json in values.as_array().unwrap() {
                assert!(data_type.fill_value(json, dialect).is_err(), "{name} in {dialect}: {json}");
            }
            assert_eq!(data_type.fill_value(&Value::Null, dialect).is_ok(), dialect != Dialect::V3, "{name}");
        }
    }
}

#[test]
fn numbers_are_written_as_json() {
    let f16 = |bits: u16| bits.to_le_bytes().to_vec();
    let table = [
        ("bool", vec![1], "true"),
        ("bool", vec![0], "false"),
        ("int64", i64::MIN.to_le_bytes().to_vec(), "-9223372036854775808"),
        ("uint64", u64::MAX.to_le_bytes().to_vec(), "18446744073709551615"),
        ("float32", 0.1_f32.to_le_bytes().to_vec(), "0.1"),
        ("float32", 0x15ae_43fd_u32.to_le_bytes().to_vec(), "7.038530691851209e-26"),
        ("float32", 0x95ae_43fd_u32.to_le_bytes().to_vec(), "-7.038530691851209e-26"),
        ("float64", (-0.0_f64).to_le_bytes().to_vec(), "-0.0"),
        ("float64", 0.1_f64.to_le_bytes().to_vec(), "0.1"),
        ("float16", f16(0x2e66), "0.1"),
        ("float16", f16(0x7bff), "65500.0"),
        ("float16", f16(0x0001), "6e-8"),
        ("float16", f16(0x7e00), "\"NaN\""),
        ("float16", f16(0xfe01), "\"0xfe01\""),
        ("float16", f16(0xfc00), "\"-Infinity\""),
        ("bfloat16", f16(0x3dcd), "0.1"),
        ("bfloat16", f16(0x7f80), "\"Infinity\""),
        ("complex64", [0, 0, 0x80, 0x3f, 1, 0, 0xc0, 0x7f].to_vec(), "[1.0,\"0x7fc00001\"]"),
        ("r16", vec![1, 255], "[1,255]"),
    ];
    for (name, element, text) in table {
        let data_type = v3(json!(name));
        assert_eq!(written(&data_type, &element), text, "{name}");
        round_trip(&data_type, &element);
    }
    for name in ["int8", "uint8", "bool"] {
        for byte in 0..=u8::from(name != "bool") * 254 + 1 {
            round_trip(&v3(json!(name)), &[byte]);
        }
    }
    for name in ["float16", "bfloat16", "int16"] {
        let data_type = v3(json!(name));
        for bits in 0..=u16::MAX {
            round_trip(&data_type, &bits.to_le_bytes());
        }
    }
}

#[test]
fn float16_is_rounded_to_nearest() {
    // Each is as NumPy 2.5 has `np.float16(x).view('u2')`.
    let table = [
        (65519.999, 0x7bff_u16),
        (1.000_488_281_25, 0x3c00),
        (1.000_488_281_250_000_2, 0x3c01),
        (1.001_464_843_749_999_8, 0x3c01),
        (1.001_464_843_75, 0x3c02),
        (2.980_232_238_769_531e-8, 0x0000),
        (2.980_232_238_769_532e-8, 0x0001),
        (-5e-324, 0x8000),
    ];
    for (value, bits) in table {
        assert_eq!(parsed(&v3(json!("float16")), &json!(value)), Some(bits.to_le_bytes().to_vec()), "{value}");
    }
}

#[test]
fn numbers_convert_to_f64() {
    let table = [
        ("bool", vec![1], Some(1.0)),
        ("int16", vec![0xfe, 0xff], Some(-2.0)),
        ("float32", 1.5_f32.to_le_bytes().to_vec(), Some(1.5)),
        ("bfloat16", vec![0x80, 0x3f], Some(1.0)),
        ("complex64", vec![0; 8], None),
        ("r8", vec![1], None),
        ("int16", vec![1], None),
    ];
    for (name, element, grey) in table {
        assert_eq!(v3(json!(name)).to_f64(&element), grey, "{name}");
    }
}

#[test]
fn nan_payload_is_unsupported_in_v2() {
    let element = [1, 0, 0xc0, 0x7f];
    assert!(v3(json!("float32")).fill_value_json(&element, Dialect::V2).is_err());
    assert!(v3(json!("complex64")).fill_value_json(&[element, element].concat(), Dialect::V2).is_err());
    assert_eq!(v3(json!("float32")).fill_value_json(&element, Dialect::V3), Ok(json!("0x7fc00001")));
}

#[test]
fn rejected_values_are_truncated() {
    let error = v3(json!("int8")).fill_value(&json!("x".repeat(10_000)), Dialect::V3).unwrap_err();
    assert!(error.to_string().len() < 200, "{error}");
    let error = v3(json!("int8")).fill_value(&json!(300), Dialect::V3).unwrap_err();
    assert_eq!(error.to_string(), "300 is no int8: it is out of range");
}

proptest! {
    #[test]
    fn numbers_round_trip(bytes in any::<[u8; 16]>()) {
        for (name, _, number) in NUMBERS {
            if number != Number::Bool {
                round_trip(&v3(json!(name)), &bytes[..number.size()]);
            }
        }
        round_trip(&v3(json!("r128")), &bytes);
    }

    #[test]
    fn random_bits_roundtrip_through_json(bytes in any::<[u8; 8]>()) {
        let value = u64::from_le_bytes(bytes);
        for text in [format!("0x{value:016x}"), format!("0x{value:016X}"), format!("0b{value:064b}")] {
            for name in ["<u8", "<i8", "<f8"] {
                prop_assert_eq!(draft(json!(name)).0.fill_value(&json!(text), Dialect::Draft).unwrap(), bytes);
            }
        }
    }
}

/// Each is as zarr-python 3.4.2 reads it.
#[test]
fn fill_values_are_read_as_by_python() {
    let single = |value: f32| Some(value.to_le_bytes().to_vec());
    let nan = Some(vec![0, 0, 0xc0, 0x7f]);
    for dialect in [Dialect::V2, Dialect::V3] {
        let fill = |name: &str, json: Value| v3(json!(name)).fill_value(&json, dialect).ok();
        for text in ["nan", "NAN", "NaN", " nan "] {
            assert_eq!(fill("float32", json!(text)), nan, "{text}");
        }
        for (json, expected) in [
            (json!("inf"), single(f32::INFINITY)),
            (json!("-inf"), single(f32::NEG_INFINITY)),
            (json!("+Infinity"), single(f32::INFINITY)),
            (json!("infinity"), single(f32::INFINITY)),
            (json!("1e40"), single(f32::INFINITY)),
            (json!(1e40), single(f32::INFINITY)),
            (json!(-1e40), single(f32::NEG_INFINITY)),
            (json!(false), single(0.0)),
            (json!(true), single(1.0)),
            (json!(" 2 "), single(2.0)),
            (json!("1_000"), single(1000.0)),
            (json!("1__0"), None),
            (json!("_1"), None),
            (json!("false"), None),
            (json!("0x10"), None),
            (json!(""), None),
            (json!([]), None),
        ] {
            assert_eq!(fill("float32", json.clone()), expected, "{json}");
        }
        assert_eq!(fill("float16", json!(1e6)), Some(vec![0, 0x7c]));
        for (json, expected) in [
            (json!(false), Some(vec![0; 4])),
            (json!(true), Some(vec![1, 0, 0, 0])),
            (json!(" 2 "), Some(vec![2, 0, 0, 0])),
            (json!("1_000"), Some(vec![0xe8, 3, 0, 0])),
            (json!("1.5"), None),
            (json!("nan"), None),
            (json!(1e40), None),
        ] {
            assert_eq!(fill("int32", json.clone()), expected, "{json}");
        }
        for (json, expected) in [(json!(2.5), Some(vec![1])), (json!(-1), Some(vec![1])), (json!(0), Some(vec![0]))] {
            assert_eq!(fill("bool", json.clone()), expected, "{json}");
        }
    }
}
