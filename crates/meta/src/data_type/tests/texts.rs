//! Bytes, texts, objects, and what the draft calls extensions.

use proptest::prelude::*;

use super::*;
use crate::{
    codecs::CodecSpec,
    data_type::{FixedLayout, Layout, TypeError, WordRun},
};

fn objects(codec: Option<Value>) -> Result<DataType, TypeError> {
    let spec = codec.map(|mut configuration| {
        let members = configuration.as_object_mut().unwrap();
        let id = members.remove("id").unwrap();
        CodecSpec::numcodecs(id.as_str().unwrap(), members.clone())
    });
    parse_v2(&json!("|O"), V2Context { object_codec: spec.as_ref() }).map(|(data_type, _)| data_type)
}

fn object(codec: Value) -> DataType {
    objects(Some(codec)).unwrap()
}

#[test]
fn fixed_bytes_are_padded() {
    let (data_type, order) = v2(json!("|S5"));
    assert_eq!((data_type.name().as_str(), order), ("null_terminated_bytes[5]", StoredOrder::Little));
    assert_eq!(v2(json!(">S5")).0, data_type);
    assert_eq!(draft(json!("|S5")).0, data_type);
    assert_eq!(written(&data_type, b"ab\0c\0"), "\"YWIAYw==\"");
    for json in [json!("YWI="), json!("YWIA"), json!("YWIAAAA=")] {
        assert_eq!(parsed(&data_type, &json), Some(b"ab\0\0\0".to_vec()));
    }
    for json in [json!("YWIAAAAA"), json!("YWI"), json!("YW I="), json!("-_=="), json!([97]), json!(0), json!(null)] {
        assert_eq!(parsed(&data_type, &json), None, "{json}");
    }
    for dialect in Dialect::ALL {
        assert_eq!(data_type.fill_value(&json!([97, 98]), dialect).unwrap(), b"ab\0\0\0");
        assert_eq!(data_type.fill_value(&json!(""), dialect).unwrap(), [0; 5]);
        assert_eq!(data_type.fill_value(&json!(0), dialect).is_ok(), dialect != Dialect::V3);
        assert_eq!(data_type.fill_value(&json!(null), dialect).is_ok(), dialect != Dialect::V3);
    }
    let (empty, _) = v2(json!("|S0"));
    assert_eq!((empty.fixed_size(), empty.zero()), (Some(0), Vec::new()));
    round_trip(&empty, b"");
}

#[test]
fn fixed_strings_are_padded() {
    let (data_type, order) = v2(json!(">U3"));
    assert_eq!((data_type.name().as_str(), order), ("fixed_length_utf32[12]", StoredOrder::Big));
    let words = vec![WordRun { offset: 0, width: 4, count: 3 }];
    assert_eq!(data_type.layout(), Layout::Fixed(FixedLayout { size: 12, words }));
    let element = [0x61, 0, 0, 0, 0, 0, 0, 0, 0, 0xf6, 1, 0];
    assert_eq!(written(&data_type, &element), "\"a\\u0000😀\"");
    round_trip(&data_type, &element);
    assert_eq!(parsed(&data_type, &json!("abcd")), None);
    assert_eq!(parsed(&data_type, &json!(1)), None);
    assert_eq!(data_type.fill_value(&json!(0), Dialect::V2), Ok(vec![0; 12]));
    // No code points: a surrogate, and what is beyond the last.
    let broken = [0x61, 0, 0, 0, 0, 0xd8, 0, 0, 0, 0, 0x11, 0];
    assert_eq!(written(&data_type, &broken), "\"a\u{fffd}\u{fffd}\"");
    assert!(data_type.fill_value_json(&broken, Dialect::V3).is_err());
    round_trip(&v2(json!("<U0")).0, b"");
}

#[test]
fn oversized_elements_are_rejected() {
    for dtype in ["|S99999999999", "|S1048577", "<U262145", "<U99999999999999999999999", "|V18446744073709551616"] {
        assert!(matches!(parse_v2(&json!(dtype), V2Context::default()), Err(TypeError::TooLarge { .. })), "{dtype}");
    }
    for dtype in ["<U-1", "|S-1", "|S+1", "|S1e3", "|S", "<U", "|S١"] {
        assert!(matches!(parse_v2(&json!(dtype), V2Context::default()), Err(TypeError::Unknown { .. })), "{dtype}");
    }
    for dtype in ["|U3", "U3"] {
        assert!(matches!(parse_v2(&json!(dtype), V2Context::default()), Err(TypeError::Invalid { .. })), "{dtype}");
    }
    for name in ["null_terminated_bytes", "fixed_length_utf32", "raw_bytes"] {
        for length in [json!(0), json!(-4), json!(1.5), json!("4"), json!(null), json!(16_777_220), json!(u64::MAX)] {
            let json = json!({"name": name, "configuration": {"length_bytes": length}});
            assert!(parse_v3(&json).is_err(), "{json}");
        }
        assert!(parse_v3(&json!(name)).is_err());
    }
    assert!(parse_v3(&json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 6}})).is_err());
    let (data_type, _) = v2(json!("|S5"));
    assert!(data_type.fill_value(&json!("A".repeat(10_000_000)), Dialect::V2).is_err());
}

#[test]
fn variable_strings_and_bytes_are_read() {
    let string = object(json!({"id": "vlen-utf8"}));
    assert_eq!(string, v3(json!("string")));
    assert_eq!(string, object(json!({"id": "categorize", "labels": ["a"]})));
    assert_eq!(string, v3(json!("variable_length_utf8")));
    assert_eq!((string.fixed_size(), string.npy_descr()), (None, None));
    assert_eq!(string.to_v2(&StoredOrder::Little), Ok(json!("|O")));
    assert_eq!(written(&string, "a\"\n\u{e9}".as_bytes()), "\"a\\\"\\n\u{e9}\"");
    assert_eq!(written(&string, b"a\xff"), "\"a\u{fffd}\"");
    assert!(string.fill_value_json(b"a\xff", Dialect::V3).is_err());
    assert_eq!(string.fill_value(&json!("x"), Dialect::V2).unwrap(), b"x");
    assert_eq!(string.fill_value(&json!(0), Dialect::V2).unwrap(), b"");
    assert!(string.fill_value(&json!(0), Dialect::V3).is_err());
    assert!(string.fill_value(&json!(1), Dialect::V2).is_err());

    let bytes = object(json!({"id": "vlen-bytes"}));
    assert_eq!(bytes, v3(json!("bytes")));
    assert_eq!(bytes, v3(json!("variable_length_bytes")));
    assert_eq!(written(&bytes, b"ab\0"), "\"YWIA\"");
    for dialect in Dialect::ALL {
        assert_eq!(bytes.fill_value(&json!("YWIA"), dialect).unwrap(), b"ab\0");
        assert_eq!(bytes.fill_value(&json!([97, 0]), dialect).unwrap(), b"a\0");
        assert!(bytes.fill_value(&json!([256]), dialect).is_err());
        assert!(bytes.fill_value(&json!("?"), dialect).is_err());
    }
}

#[test]
fn variable_arrays_are_read() {
    let data_type = object(json!({"id": "vlen-array", "dtype": ">i2"}));
    assert_eq!(data_type.name(), "vlen_array[int16]");
    assert_eq!(written(&data_type, &[1, 0, 255, 255]), "[1,-1]");
    round_trip(&data_type, &[1, 0, 255, 255]);
    round_trip(&data_type, &[]);
    assert_eq!(data_type.fill_value(&json!(null), Dialect::V2).unwrap(), b"");
    assert_eq!(parsed(&data_type, &json!([1, 65536])), None);
    assert_eq!(parsed(&data_type, &json!(1)), None);
    let large = object(json!({"id": "vlen-array", "dtype": "|S1048576"}));
    assert!(parsed(&large, &json!([""])).is_some());
    assert_eq!(parsed(&large, &Value::from(vec![""; 100_000])), None);
    assert!(large.fill_value(&Value::from(vec![""; 100_000]), Dialect::V2).is_err());
    for codec in [
        json!({"id": "vlen-array"}),
        json!({"id": "vlen-array", "dtype": "|O"}),
        json!({"id": "vlen-array", "dtype": "|S0"}),
        json!({"id": "vlen-array", "dtype": 1}),
    ] {
        assert!(objects(Some(codec.clone())).is_err(), "{codec}");
    }
}

#[test]
fn json_values_are_read() {
    let data_type = object(json!({"id": "json2"}));
    assert_eq!(data_type.name(), "json");
    for text in ["null", "{\"a\":[1,2.5,\"x\"]}", "\"x\"", "0"] {
        round_trip(&data_type, text.as_bytes());
        assert_eq!(written(&data_type, text.as_bytes()), text);
    }
    // Floats that JSON does not have are stored as Python's words, and answered as strings.
    for (text, answered) in [("NaN", r#""NaN""#), (r#"[-Infinity,"NaN"]"#, r#"["-Infinity","NaN"]"#)] {
        assert_eq!(data_type.invalid_reason(text.as_bytes()), None);
        assert_eq!(written(&data_type, text.as_bytes()), answered);
    }
    for text in ["", "{", "1 2", "nan", "\u{ff}"] {
        assert_eq!(written(&data_type, text.as_bytes()), "null", "{text}");
    }
    assert_eq!(written(&data_type, "\u{feff}1".as_bytes()), "1");
    assert_eq!(data_type.fill_value(&json!(null), Dialect::V2).unwrap(), b"null");
    assert_eq!(written(&data_type, "[".repeat(1_000_000).as_bytes()), "null");
}

#[test]
fn unsupported_objects_are_rejected() {
    for id in ["pickle", "msgpack2", "x"] {
        let Err(TypeError::Invalid { reason, .. }) = objects(Some(json!({"id": id}))) else { panic!("{id} was read") };
        assert!(reason.contains(id), "{reason}");
    }
    assert!(matches!(objects(None), Err(TypeError::Invalid { .. })));
    assert!(matches!(parse_draft(&json!("|O")), Err(TypeError::Invalid { .. })));
}

#[test]
fn extension_types_of_the_draft_are_read() {
    let extension =
        |name: &str, fallback: Value| json!({"extension": "https://x.org", "type": name, "fallback": fallback});
    for (name, expected) in [("<U3", v2(json!("<U3"))), (">m8[s]", v2(json!(">m8[s]"))), ("|V3", v2(json!("|V3")))] {
        assert_eq!(draft(extension(name, json!(null))), expected);
        assert_eq!(draft(extension(name, json!("<i8"))), expected);
    }
    assert_eq!(draft(extension("decimal", json!(">i8"))), v2(json!(">i8")));
    assert_eq!(draft(extension("<M8[x]", json!("<i8"))), v2(json!("<i8")));
    assert_eq!(draft(extension("decimal", json!("r64"))).0, v3(json!("r64")));
    assert_eq!(draft(json!({"extension": "https://x.org", "type": "<U3"})), v2(json!("<U3")));
    let unknown = parse_draft(&extension("decimal", json!(null)));
    assert!(matches!(&unknown, Err(TypeError::Unknown { name }) if name.contains("decimal")), "{unknown:?}");
    assert!(matches!(parse_draft(&extension("decimal", json!("x"))), Err(TypeError::Unknown { .. })));
    assert!(matches!(parse_draft(&extension("<M8[x]", json!(null))), Err(TypeError::Invalid { .. })));
    let mut deep = json!("<i4");
    for _ in 0..100 {
        deep = extension("decimal", deep);
    }
    assert_eq!(draft(deep), v2(json!("<i4")));
    assert!(parse_draft(&json!({"extension": "x", "type": 1})).is_err());
}

proptest! {
    #[test]
    fn texts_round_trip(text: String, bytes: Vec<u8>, padded in "[^\u{0}]{0,4}") {
        round_trip(&v3(json!("string")), text.as_bytes());
        round_trip(&v3(json!("bytes")), &bytes);
        let mut fixed = bytes.clone();
        fixed.resize(20, 0);
        round_trip(&v2(json!("|S20")).0, &fixed);
        round_trip(&v2(json!("|V20")).0, &fixed);
        let mut wide: Vec<u8> = padded.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
        wide.resize(16, 0);
        round_trip(&v2(json!("<U4")).0, &wide);
    }

    #[test]
    fn random_bytes_are_written_as_json(bytes in prop::collection::vec(any::<u8>(), 16)) {
        for dtype in ["<U4", "|S16", "<c16", "|V16"] {
            let text = written(&v2(json!(dtype)).0, &bytes);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
        for codec in ["vlen-utf8", "vlen-bytes", "json2"] {
            let text = written(&object(json!({"id": codec})), &bytes);
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }

    #[test]
    fn random_type_names_never_panic(text in "[<>|=]?[a-zA-Z]{0,2}[0-9]{0,3}(\\[[0-9]{0,3}[a-z]{0,2}\\])?") {
        let parsed = [parse_v2(&json!(text), V2Context::default()), parse_draft(&json!(text))];
        for (data_type, order) in parsed.into_iter().flatten() {
            prop_assert_eq!(v2(data_type.to_v2(&order).unwrap()), (data_type, order));
        }
    }
}

#[test]
fn invalid_elements_have_a_reason() {
    for (data_type, element, flaw) in [
        (v3(json!("bool")), &[2][..], "a byte is neither 0 nor 1"),
        (v3(json!("string")), b"\xff", "a text is not UTF-8"),
        (object(json!({"id": "json2"})), b"{", "a text is not JSON"),
        (object(json!({"id": "vlen-array", "dtype": "<i2"})), b"abc", "an inner array is no whole number of elements"),
    ] {
        assert_eq!(data_type.invalid_reason(element), Some(flaw));
    }
}
