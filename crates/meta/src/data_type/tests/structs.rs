//! Structs.

use proptest::prelude::*;

use super::*;
use crate::data_type::{FixedLayout, Layout, TypeError, WordRun};

fn refused(dtype: &Value) -> TypeError {
    parse_v2(dtype, V2Context::default()).map(|(data_type, _)| data_type.name()).unwrap_err()
}

fn runs(runs: &[[usize; 3]]) -> Vec<WordRun> {
    runs.iter().map(|&[offset, width, count]| WordRun { offset, width, count }).collect()
}

#[test]
fn struct_has_a_name_and_words() {
    let dtype = json!([["a", "<i4"], ["b é\"", ">f8", [2, 3]], ["c", [["x", "|u1"], ["y", "<u2", 2]], [2]]]);
    let (data_type, order) = v2(dtype);
    let name = "struct{a:int32,\"b \\u00e9\\\"\":float64[2,3],c:struct{x:uint8,y:uint16[2]}[2]}";
    assert_eq!(data_type.name(), name);
    let words = runs(&[[0, 4, 1], [4, 8, 6], [53, 2, 2], [58, 2, 2]]);
    assert_eq!(data_type.layout(), Layout::Fixed(FixedLayout { size: 62, words }));
    assert_eq!(order, StoredOrder::Mixed(runs(&[[4, 8, 6]])));
    let npy = r#"[('a', '<i4'), ('b \xe9"', '<f8', (2, 3)), ('c', [('x', '|u1'), ('y', '<u2', (2,))], (2,))]"#;
    assert_eq!(data_type.npy_descr().unwrap(), npy);
    assert_eq!(data_type.number(), None);
    assert_eq!(data_type.to_f64(&data_type.zero()), None);
}

#[test]
fn field_names_are_quoted_like_python() {
    // As `repr` has them in Python 3.13.
    for (name, python) in [
        ("a'b", "\"a'b\""),
        ("a\"b", "'a\"b'"),
        ("a'\"b", "'a\\'\"b'"),
        ("\\\n\t\r\u{1}", "'\\\\\\n\\t\\r\\x01'"),
        ("\u{200b}", "'\\u200b'"),
    ] {
        let (data_type, _) = v2(json!([[name, "|i1"]]));
        assert_eq!(data_type.npy_descr().unwrap(), format!("[({python}, '|i1')]"));
    }
}

#[test]
fn byte_orders_of_fields_are_read() {
    for (dtype, order) in [
        (json!([["a", "<i4"], ["b", "<i2"]]), StoredOrder::Little),
        (json!([["a", ">i4"], ["b", ">i2"], ["c", "|u1"]]), StoredOrder::Big),
        (json!([["a", "|u1"], ["b", "|S3"]]), StoredOrder::Little),
        (json!([["a", ">i4"], ["b", "<i4"], ["c", ">c8"]]), StoredOrder::Mixed(runs(&[[0, 4, 1], [8, 4, 2]]))),
        (
            json!([["n", [["a", ">i2"], ["b", "<i2"]], [2, 2]]]),
            StoredOrder::Mixed(runs(&[[0, 2, 1], [4, 2, 1], [8, 2, 1], [12, 2, 1]])),
        ),
    ] {
        let (data_type, found) = v2(dtype.clone());
        assert_eq!(found, order, "{dtype}");
        assert_eq!(data_type.to_v2(&order), Ok(dtype));
    }
}

#[test]
fn struct_elements_roundtrip_through_json() {
    let (data_type, order) = v2(json!([["a", ">u2", [2]], ["b", [["x", "<u2"], ["s", "|S2"]]]]));
    let element = [1, 0, 2, 0, 3, 0, b'a', 0];
    assert_eq!(written(&data_type, &element), "[[1,2],[3,\"YQ==\"]]");
    round_trip(&data_type, &element);
    // zarr-python 2 has the bytes as they are stored.
    assert_eq!(data_type.stored_fill_value(&json!("AAEAAgMAYQA="), Dialect::V2, &order).unwrap(), element);
    for dialect in Dialect::ALL {
        let object = json!({"a": [1, 2], "b": {"x": 3, "s": "YQ=="}});
        assert_eq!(data_type.stored_fill_value(&object, dialect, &order).unwrap(), element);
    }
    assert_eq!(data_type.stored_fill_value(&json!("AQACAAMAYQA="), Dialect::V3, &order).unwrap(), element);
    assert_eq!(data_type.fill_value(&json!(0), Dialect::V2), Ok(vec![0; 8]));
    for json in [
        json!([1, [3, "YQ=="]]),
        json!([[1, 2, 3], [3, "YQ=="]]),
        json!([[1, 2], [3]]),
        json!([[1, 2], [3, "YQ=="], 4]),
        json!([[1, 65536], [3, "YQ=="]]),
        json!({"a": [1, 2], "b": [3, "YQ=="]}),
        json!("AAEAAgMAYQA="),
    ] {
        assert_eq!(parsed(&data_type, &json), None, "{json}");
    }
    for json in [
        json!({"a": [1, 2]}),
        json!({"a": [1, 2], "b": {"x": 3, "s": "YQ=="}, "c": 1}),
        json!({"a": [1, 2], "c": {"x": 3, "s": "YQ=="}}),
        json!("AAEAAgMAYQ=="),
        json!("AAEAAgMAYQAA"),
        json!("?"),
        json!(1),
    ] {
        assert!(data_type.fill_value(&json, Dialect::V3).is_err(), "{json}");
    }
    assert!(data_type.fill_value(&json!(0), Dialect::V3).is_err());
}

#[test]
fn both_forms_of_v3_structs_are_read() {
    let (expected, _) = v2(json!([["x", "<f4"], ["n", [["y", "|i1"]]]]));
    let inner = json!({"name": "structured", "configuration": {"fields": [["y", "int8"]]}});
    for data_type in [
        json!({"name": "structured", "configuration": {"fields": [["x", "float32"], ["n", inner]]}}),
        json!({"name": "struct", "configuration": {"fields": [
            {"name": "x", "data_type": {"name": "float32"}},
            {"name": "n", "data_type": inner},
        ]}}),
    ] {
        assert_eq!(v3(data_type), expected);
    }
    assert_eq!(v3(expected.to_v3()), expected);
}

#[test]
fn malformed_structs_are_rejected() {
    for fields in [
        json!([]),
        json!([["a"]]),
        json!([["a", "int8", 1]]),
        json!([["", "int8"]]),
        json!([["a", "int8"], ["a", "int8"]]),
        json!([["a", "string"]]),
        json!([["a", "x"]]),
        json!([{"name": "a"}]),
        json!([{"data_type": "int8"}]),
        json!([1]),
        json!(1),
        json!(null),
    ] {
        let json = json!({"name": "struct", "configuration": {"fields": fields}});
        assert!(parse_v3(&json).is_err(), "{json}");
    }
    assert!(parse_v3(&json!("struct")).is_err());
    for dtype in [
        json!([]),
        json!([[]]),
        json!(["a", "<i4"]),
        json!([["a", "|O"]]),
        json!([[["title", "a"], "<i4"]]),
        json!([["a", "<i4", 0]]),
        json!([["a", "<i4", -1]]),
        json!([["a", "<i4", [1.5]]]),
        json!([["a", "<i4", "2"]]),
        json!([["a", "<i4", [2], 1]]),
        json!([["a", "|S0", [4_000_000_000_u64]]]),
        json!([["a", "<i4", vec![1; 65]]]),
        json!([["a", "<i4"], ["b", "<f3"]]),
    ] {
        refused(&dtype);
    }
}

#[test]
fn structs_beyond_the_limits_are_rejected() {
    let many = |count: usize| Value::Array((0..count).map(|index| json!([format!("f{index}"), "<i4"])).collect());
    assert!(parse_v2(&many(4096), V2Context::default()).is_ok());
    assert!(matches!(refused(&many(4097)), TypeError::Invalid { .. }));
    refused(&many(100_000));
    let two = json!([["a", many(2048)], ["b", many(2048)]]);
    assert!(matches!(refused(&two), TypeError::Invalid { .. }));
    for dtype in [
        json!([["a", "|V1048576"], ["b", "|u1"]]),
        json!([["a", "<i4", [262_145]]]),
        json!([["a", "<i4", [u64::MAX, 2]]]),
        json!([["a", "<i4", [1_u64 << 32, 1_u64 << 32]]]),
    ] {
        assert!(matches!(refused(&dtype), TypeError::TooLarge { .. }), "{dtype}");
    }
    // Each item would have words of its own.
    assert!(matches!(refused(&json!([["a", [["x", "<i4"], ["y", "|u1"]], [1 << 17]]])), TypeError::Invalid { .. }));
    let mut deep = json!("<i4");
    for _ in 0..60 {
        deep = json!([["a", deep]]);
    }
    assert!(matches!(refused(&deep), TypeError::Invalid { .. }));
    let mut deep = json!("int8");
    for _ in 0..60 {
        deep = json!({"name": "struct", "configuration": {"fields": [["a", deep]]}});
    }
    assert!(matches!(parse_v3(&deep), Err(TypeError::Invalid { .. })));
    assert!(
        parse_v2(&json!([["x".repeat(10_000), "<i4"], ["y", "?"]]), V2Context::default())
            .unwrap_err()
            .to_string()
            .len()
            < 300
    );
}

/// A field's dtype, nested at most so deep.
fn dtypes() -> impl Strategy<Value = Value> {
    #[rustfmt::skip]
    let leaf = prop::sample::select(&["|b1", "|i1", "<u2", ">i4", "<i8", ">f2", "<f8", ">c8", "|S3", "|V2", "<M8[us]", ">m8[D]"][..]);
    leaf.prop_map(Value::from).prop_recursive(3, 20, 4, |inner| {
        let field = (inner, prop::option::of(prop::collection::vec(1_usize..4, 0..3)));
        prop::collection::vec(field, 1..4).prop_map(|fields| {
            let field = |(index, (dtype, shape)): (usize, (Value, Option<Vec<usize>>))| match shape {
                Some(shape) if !shape.is_empty() => json!([format!("f{index}"), dtype, shape]),
                _ => json!([format!("f{index}"), dtype]),
            };
            Value::Array(fields.into_iter().enumerate().map(field).collect())
        })
    })
}

proptest! {
    #[test]
    fn structs_round_trip(dtype in dtypes(), seed: u64) {
        let (data_type, order) = v2(dtype.clone());
        prop_assert_eq!(data_type.to_v2(&order), Ok(dtype));
        let size = data_type.fixed_size().unwrap();
        let mut state = seed;
        let bytes: Vec<u8> = (0..size).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        }).collect();
        // Booleans are 0 or 1 in memory, and only then the same after a round trip.
        let text = written(&data_type, &bytes);
        let element = parsed(&data_type, &serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(written(&data_type, &element), text);
        round_trip(&data_type, &element);
        let Layout::Fixed(layout) = data_type.layout() else { panic!("of a fixed size") };
        let mut end = 0;
        for run in &layout.words {
            prop_assert!(run.offset >= end && run.width > 1 && run.count > 0);
            end = run.offset + run.width * run.count;
        }
        prop_assert!(end <= size);
    }
}

#[test]
fn padding_is_a_field_that_numpy_names() {
    for (dtype, name, size) in [
        (json!([["a", "<u4"], ["b", "|u1"], ["", "|V3"]]), "struct{a:uint32,b:uint8,f2:r24}", 8),
        (
            json!([["i", "|i1"], ["", "|V3"], ["j", "<i4"], ["k", "<i2"], ["", "|V6"], ["l", "<f8"]]),
            "struct{i:int8,f1:r24,j:int32,k:int16,f4:r48,l:float64}",
            24,
        ),
        (json!([["", "|V2"], ["a", ">u2"]]), "struct{f0:r16,a:uint16}", 4),
        (
            json!([["p", [["a", "|u1"], ["", "|V1"]], [2]], ["q", "|u1"]]),
            "struct{p:struct{a:uint8,f1:r8}[2],q:uint8}",
            5,
        ),
        (json!([["", "<f4"], ["", "<f4"]]), "struct{f0:float32,f1:float32}", 8),
    ] {
        let (data_type, order) = v2(dtype.clone());
        assert_eq!((data_type.name().as_str(), data_type.fixed_size()), (name, Some(size)), "{dtype}");
        assert_eq!(data_type.to_v2(&order), Ok(dtype), "padding stays padding");
    }
    // As in NumPy, such a name must be free.
    assert!(matches!(refused(&json!([["f1", "|u1"], ["", "|V3"]])), TypeError::Invalid { .. }));
    let unnamed = json!({"name": "struct", "configuration": {"fields": [{"name": "", "data_type": "r8"}]}});
    assert!(parse_v3(&unnamed).is_err(), "v3 has no padding");
}
