//! Numbers of at most 8 bits. `tests/clients/golden_small_numbers.py` makes the table with ml_dtypes.

use serde_json::{Map, Value, json};

use crate::{
    Dialect,
    data_type::{StoredOrder, TypeError, V2Context, parse_draft, parse_v2, parse_v3},
};

fn golden() -> Map<String, Value> {
    serde_json::from_str(include_str!("small_numbers.json")).unwrap()
}

fn number(json: &Value) -> f64 {
    match json.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => json.as_f64().unwrap(),
    }
}

fn names() -> Vec<String> {
    golden().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn values_are_those_of_ml_dtypes() {
    for (name, table) in golden() {
        let data_type = parse_v3(&json!(name)).unwrap();
        for (code, value) in table["values"].as_array().unwrap().iter().enumerate() {
            let (found, expected) = (data_type.to_f64(&[code as u8]).unwrap(), number(value));
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{name} {code}: {found} {expected}");
        }
    }
}

#[test]
fn numbers_are_rounded_as_by_ml_dtypes() {
    for (name, table) in golden() {
        let data_type = parse_v3(&json!(name)).unwrap();
        for pair in table.get("rounded").and_then(Value::as_array).into_iter().flatten() {
            let mut element = Vec::new();
            let found = data_type.parse_json(&pair[0], &mut element).ok().map(|()| u64::from(element[0]));
            assert_eq!(found, pair[1].as_u64(), "{name} {}", pair[0]);
        }
    }
}

#[test]
fn every_code_is_written_and_read_back() {
    for name in names() {
        let data_type = parse_v3(&json!(name)).unwrap();
        for code in 0..data_type.packed_bits().map_or(0, |bits| 1_u16 << bits) {
            let mut text = Vec::new();
            data_type.write_json(&[code as u8], &mut text);
            let json: Value = serde_json::from_slice(&text).unwrap();
            let mut element = Vec::new();
            data_type.parse_json(&json, &mut element).unwrap();
            assert_eq!(element, [code as u8], "{name} {json}");
            assert_eq!(data_type.fill_value(&json, Dialect::V3), Ok(element), "{name}");
        }
    }
}

#[test]
fn upper_bits_have_no_meaning() {
    let data_type = parse_v3(&json!("int4")).unwrap();
    let mut text = Vec::new();
    data_type.write_json(&[0xff], &mut text);
    text.push(b' ');
    data_type.write_json(&[0x0f], &mut text);
    text.push(b' ');
    data_type.write_json(&[0xa7], &mut text);
    assert_eq!(String::from_utf8(text).unwrap(), "-1 -1 7");
}

#[test]
fn impossible_elements_are_rejected() {
    for (name, json) in [
        ("int2", json!(2)),
        ("int2", json!(-3)),
        ("int4", json!(8)),
        ("int4", json!(1.5)),
        ("int4", json!("NaN")),
        ("uint4", json!(-1)),
        ("uint4", json!(16)),
        ("uint2", json!("0x4")),
        ("float4_e2m1fn", json!("NaN")),
        ("float4_e2m1fn", json!("0x10")),
        ("float4_e2m1fn", json!(7.5)),
        ("float8_e4m3fn", json!("Infinity")),
        ("float8_e4m3fn", json!(500)),
        ("float8_e5m2", json!(1e9)),
        ("float8_e8m0fnu", json!(-1)),
        ("float8_e5m2", json!([1])),
    ] {
        let data_type = parse_v3(&json!(name)).unwrap();
        assert!(data_type.parse_json(&json, &mut Vec::new()).is_err(), "{name} {json}");
        assert!(data_type.fill_value(&json, Dialect::V3).is_err(), "{name} {json}");
    }
}

#[test]
fn names_are_the_same_in_v2() {
    for name in names().iter().map(String::as_str).chain(["bfloat16"]) {
        let (data_type, order) = parse_v2(&json!(name), V2Context::default()).unwrap();
        assert_eq!(data_type.to_v2(&order), Ok(json!(name)));
        assert_eq!(data_type, parse_v3(&json!(name)).unwrap());
        assert_eq!(data_type.fill_value(&Value::Null, Dialect::V2), Ok(data_type.zero()));
        assert!(parse_draft(&json!(name)).is_err(), "{name}");
        let configured = json!({"name": name, "configuration": {"bits": 4}});
        assert!(matches!(parse_v3(&configured), Err(TypeError::Invalid { .. })), "{name}");
    }
    assert!(parse_v3(&json!("bfloat16")).unwrap().to_v2(&StoredOrder::Big).is_err());
}
