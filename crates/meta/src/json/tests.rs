//! Tests of JSON texts.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parsed(text: &str) -> Json {
    Json::parse(text.as_bytes().to_vec()).unwrap()
}

fn set(name: &str, value: Value) -> ObjectEdit {
    let mut edit = ObjectEdit::default();
    edit.change(name, Change::Set(value));
    edit
}

#[test]
fn syntax_errors_have_a_position() {
    for (text, line, column) in [
        ("", 1, 1),
        ("{\"a\": NaNs}", 1, 10),
        ("{\"a\": nan}", 1, 7),
        ("{\"a\": -NaN}", 1, 8),
        ("{\n \"a\" 1}", 2, 6),
        ("{\"a\": 1,}", 1, 9),
        ("[1 2]", 1, 4),
        ("\"a\nb\"", 1, 3),
        ("\"\\x\"", 1, 3),
        ("\"\\u12g4\"", 1, 3),
        ("01", 1, 2),
        ("1.", 1, 3),
        ("1e", 1, 3),
        ("{} {}", 1, 4),
        ("[", 1, 2),
        ("{NaN: 1}", 1, 2),
    ] {
        let error = Json::parse(text.as_bytes().to_vec()).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text} {error}");
    }
    assert_eq!(Json::parse(&b"{\"a\": \"\xff\"}"[..]).unwrap_err().column, 8);
}

#[test]
fn nesting_beyond_the_limit_is_rejected() {
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parsed(&nested(MAX_DEPTH)).to_value().is_ok());
    assert!(Json::parse(nested(MAX_DEPTH + 1)).is_err());
    assert!(Json::parse(nested(1_000_000)).is_err());
}

#[test]
fn documents_may_be_nested_deeper_than_other_texts() {
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let deep = Json::parse_document(nested(MAX_DOCUMENT_DEPTH)).unwrap();
    assert!(deep.to_value().is_err());
    assert_eq!(serde_json::to_value(&deep).unwrap().to_string().matches('"').count(), 2);
    assert!(deep.is_equivalent(&Json::parse_document(nested(MAX_DOCUMENT_DEPTH).replace('[', "[ ")).unwrap()));
    assert!(!deep.is_equivalent(&Json::parse_document(nested(MAX_DOCUMENT_DEPTH - 1)).unwrap()));
    for (error, bound) in [
        (Json::parse(nested(MAX_DEPTH + 1)), MAX_DEPTH),
        (Json::parse_document(nested(MAX_DOCUMENT_DEPTH + 1)), MAX_DOCUMENT_DEPTH),
    ] {
        assert_eq!(error.unwrap_err().reason, format!("nested deeper than {bound} levels"));
    }
}

#[test]
fn surrounding_whitespace_is_preserved_but_not_part_of_the_value() {
    let text = "\u{feff} {\"a\": 1, \"b\": [2]}\r\n";
    let json = parsed(text);
    assert_eq!(
        (json.as_str(), json.to_padded_bytes().as_ref()),
        (text.trim_start_matches('\u{feff}').trim(), text.as_bytes())
    );
    assert_eq!(json.with("a", Change::Set(json!(3))).to_padded_bytes(), text.replace('1', "3").as_bytes());
    assert_eq!(json.without("a").to_padded_bytes(), text.replace("\"a\": 1, ", "").as_bytes());
    assert_eq!(json.get("b").unwrap().to_padded_bytes().as_ref(), b"[2]");
    assert_eq!(json, parsed(text.trim_start_matches('\u{feff}')));
    assert_eq!(json.formatted().to_padded_bytes(), json.formatted().to_bytes());
    for text in [" \u{feff}{}", "\u{feff}\u{feff}{}", "{}\u{feff}", "{\u{feff}}", "\u{feff}"] {
        assert!(Json::parse(text.as_bytes().to_vec()).is_err(), "{text:?}");
    }
}

#[test]
fn setting_an_equal_value_changes_no_byte() {
    let text =
        r#"{"a": "\u00e9", "b":[1,  2.50], "c": {"x" :-0.0, "y": 30}, "n": 123456789012345678901234567890, "w": NaN}"#;
    let json = parsed(text);
    let edited = |name: &str, value: &str| json.with(name, Change::SetFormatted(parsed(value))).as_str().to_owned();
    for (name, value) in [
        ("a", "\"é\""),
        ("b", "[1, 25e-1]"),
        ("c", r#"{"y":1,"y":30,"x":-0.00}"#),
        ("n", "123456789012345678901234567890"),
        ("w", "NaN"),
    ] {
        assert_eq!(edited(name, value), text, "{name}");
    }
    for (name, value) in [
        ("a", "\"e\""),
        ("b", "[1.0,2.5]"),
        ("b", "[1,2.5,3]"),
        ("b", "[1]"),
        ("c", r#"{"x":0.0,"y":30}"#),
        ("c", r#"{"x":-0.0}"#),
        ("n", "123456789012345678901234567891"),
        ("w", "\"NaN\""),
    ] {
        assert!(
            edited(name, value).contains(&format!("\"{name}\": {value}"))
                || edited(name, value).contains(&format!("\"{name}\":{value}")),
            "{name} {value}"
        );
    }
    assert_eq!(json.with("b", Change::Set(json!([1, 2.5]))).as_str(), text);
    assert!(!parsed("[123456789012345678901234567890]").is_equivalent(&parsed("[123456789012345678901234567891]")));
}

#[test]
fn members_and_items_are_iterated() {
    let json = parsed(" {\"a\" : [1, {\"b\":2} , \"}\\\"\"], \"\\u0061b\":NaN,\"a\":null,\"\\ud800\":1 } ");
    let names: Vec<_> = json.members().map(|member| member.name()).collect();
    assert_eq!(names, [Some("a".to_owned()), Some("ab".to_owned()), Some("a".to_owned()), None]);
    assert!(json.get("a").unwrap().is_null(), "the last one counts");
    assert_eq!(json.get("ab").unwrap().to_value().unwrap(), json!("NaN"));
    let items: Vec<_> = json.members().next().unwrap().value.items().map(|item| item.as_str().to_owned()).collect();
    assert_eq!(items, ["1", "{\"b\":2}", "\"}\\\"\""]);
    assert_eq!(parsed("[ ]").items().count() + parsed("{ }").members().count() + parsed("1").items().count(), 0);
}

#[test]
fn edit_preserves_all_other_bytes() {
    let text = "{\n    \"n\": 123456789012345678901234567890,\n    \"x\" :  1e5 ,\n    \"e\": \"\\u00e9\",\n    \"x\": [NaN,  -Infinity]\n}";
    let json = parsed(text);
    assert_eq!(json.edited(&set("x", json!(2))).as_str(), text.replace("[NaN,  -Infinity]", "2"));
    assert_eq!(json.edited(&set("e", json!("è"))).as_str(), text.replace("\\u00e9", "è"));
    let appended = "[NaN,  -Infinity],\n    \"y\": {\n        \"z\": 1\n    }\n}";
    assert_eq!(json.edited(&set("y", json!({"z": 1}))).as_str(), text.replace("[NaN,  -Infinity]\n}", appended));
    let mut edit = ObjectEdit::default();
    edit.change("x", Change::Remove);
    edit.change("nothing", Change::Remove);
    let expected = "{\n    \"n\": 123456789012345678901234567890 ,\n    \"e\": \"\\u00e9\"\n}";
    assert_eq!(json.edited(&edit).as_str(), expected);
}

#[test]
fn edited_single_line_objects_stay_on_one_line() {
    assert_eq!(parsed("{\"a\":1}").edited(&set("b", json!([1, 2]))).as_str(), "{\"a\":1,\"b\":[1,2]}");
    assert_eq!(parsed("{\"a\": 1, \"b\": 2}").edited(&set("c", json!(3))).as_str(), "{\"a\": 1, \"b\": 2, \"c\": 3}");
    assert_eq!(parsed("{}").edited(&set("c", json!(3))).as_str(), "{\"c\": 3}");
    let mut all = set("b", json!(1));
    all.change("a", Change::Remove);
    assert_eq!(parsed("{ \"a\": 0 }").edited(&all).as_str(), "{ \"b\": 1}");
}

#[test]
fn new_objects_use_the_indentation_of_the_document() {
    let json = parsed("{\n  \"attributes\": {}\n}");
    let mut edit = ObjectEdit::default();
    edit.change("attributes", Change::edit(set("a", json!({"b": 1}))));
    let expected = "{\n  \"attributes\": {\n    \"a\": {\n      \"b\": 1\n    }\n  }\n}";
    assert_eq!(json.edited(&edit).as_str(), expected);
    assert_eq!(parsed(expected).edited(&edit).as_str(), expected);
}

#[test]
fn remove_subtree_removes_members_below_a_path() {
    let json = parsed(r#"{"a": 1, "a/b": 2, "a/b/c": 3, "ab": 4, "a/c": 5}"#);
    let mut edit = set("a/b/c", json!(6));
    edit.remove_subtree("a/b");
    assert_eq!(json.edited(&edit).as_str(), r#"{"a": 1, "a/b/c": 6, "ab": 4, "a/c": 5}"#);
    let mut all = set("ab", json!(7));
    all.remove_subtree("");
    assert_eq!(json.edited(&all).as_str(), r#"{"ab": 7}"#, "all is below the empty path");
}

#[test]
fn removed_elements_take_their_commas() {
    let without =
        |json: &str, removed: &str| parsed(json).retaining(|item| item.as_str() != removed).as_str().to_owned();
    assert_eq!(without("[1, 2 , 3]", "1"), "[2 , 3]");
    assert_eq!(without("[1, 2 , 3]", "2"), "[1 , 3]");
    assert_eq!(without("[ 1, 2]", "2"), "[ 1]");
    assert_eq!(without("[ 1 ]", "1"), "[]");
    assert_eq!(without("[\n 1,\n 2\n]", "1"), "[\n 2\n]");
}

#[test]
fn unrepresentable_values_serialize_as_text() {
    let json = parsed(r#"{"a": [1e999, "\ud800", NaN, 1.50], "\udc00": 1, "b": {"c": "\u0041"}}"#);
    let serialised = serde_json::to_value(&json).unwrap();
    assert_eq!(serialised, json!({"a": ["1e999", "\"\\ud800\"", "NaN", 1.5], "\"\\udc00\"": 1, "b": {"c": "A"}}));
}

#[test]
fn differences_ignore_notation() {
    let differences = |one: &str, other: &str| {
        let mut found = Vec::new();
        parsed(one).differences(&parsed(other), &mut Vec::new(), &mut |path| {
            found.push(path.join("/"));
            true
        });
        found
    };
    assert!(differences(r#"{"a": 1.0, "b": ["\u0041", NaN]}"#, r#"{"b":["A", NaN],"a":1}"#).is_empty());
    assert_eq!(differences(r#"{"a": 1, "c": {"d": [1, 2]}}"#, r#"{"b": 1, "c": {"d": [1, 3]}}"#), ["a", "c/d/1", "b"]);
    assert_eq!(differences("[1]", "[1, 2]"), [""]);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[ab\"\\\\é]{0,2}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// RFC 7396, of values.
fn merged(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return target.clone_from(patch) };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => _ = members.shift_remove(name),
            _ => merged(members.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}

#[test]
fn member_is_appended_as_by_an_edit() {
    // The object, a name, and the object with it.
    for (text, name, expected) in [
        (r#"{"a":1}"#, "b", r#"{"a":1,"b":{}}"#),
        (r#"{"a":1,"a":2}"#, "b\"", r#"{"a":1,"a":2,"b\"":{}}"#),
        (r#"{"a":1}"#, "a", r#"{"a":{}}"#),
        (r#"{"\u0061":1}"#, "a", r#"{"\u0061":{}}"#),
        (r#"{"a": 1}"#, "b", r#"{"a": 1, "b": {}}"#),
        ("{}", "b", r#"{"b": {}}"#),
    ] {
        let json = parsed(text);
        let edited = json.edited(&ObjectEdit::single(name, Change::Set(json!({}))));
        let appended = json.with(name, Change::Set(json!({})));
        assert_eq!((appended.as_str(), edited.as_str()), (expected, expected), "{text}");
    }
}

#[test]
fn split_off_removes_all_members_of_a_name() {
    for (text, document, last) in [
        (r#"{"a": 1, "b":2}"#, r#"{"a": 1, "b":2}"#, None),
        (r#"{"m": 0, "a": 1, "\u006d":{"m":1}, "b" :[2]}"#, r#"{"a":1,"b":[2]}"#, Some(r#"{"m":1}"#)),
        (r#"{"m": 0}"#, "{}", Some("0")),
    ] {
        let (rest, split) = parsed(text).split_off("m");
        assert_eq!((rest.as_str(), split.as_ref().map(Json::as_str)), (document, last), "{text}");
    }
}

proptest! {
    #[test]
    fn parser_accepts_what_serde_json_accepts(text in "[\\[\\]{}\":,0-9eE.+\\-tfn \\\\aulrse]{0,24}") {
        let ours = Json::parse(text.clone().into_bytes());
        let theirs = serde_json::from_str::<Value>(&text);
        match theirs {
            Ok(value) => prop_assert_eq!(ours.unwrap().to_value().unwrap(), value),
            // Numbers beyond floats and lone surrogates are texts, and no values.
            Err(_) => prop_assert!(ours.is_err() || ours.unwrap().to_value().is_err()),
        }
    }

    #[test]
    fn values_roundtrip(value in values(), pretty in any::<bool>()) {
        let json = if pretty { Json::pretty(&value) } else { Json::compact(&value) };
        prop_assert_eq!(Json::parse(json.as_bytes().to_vec()).unwrap(), json.clone());
        prop_assert_eq!(json.to_value().unwrap(), value);
    }

    #[test]
    fn formatting_changes_whitespace_only(value in values(), pretty in any::<bool>()) {
        let json = if pretty { Json::pretty(&value) } else { Json::compact(&value) };
        let formatted = json.formatted();
        prop_assert_eq!(formatted.as_str(), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn merge_patch_matches_rfc_7396(target in values(), patch in values(), pretty in any::<bool>()) {
        prop_assume!(target.is_object() && patch.is_object());
        let json = if pretty { Json::pretty(&target) } else { Json::compact(&target) };
        let edited = json.merged(&Json::compact(&patch));
        let mut expected = target;
        merged(&mut expected, &patch);
        prop_assert_eq!(Json::parse(edited.as_bytes().to_vec()).unwrap().to_value().unwrap(), expected);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(prop_oneof![Just(b'"'), Just(b'\\'), Just(b'{'), Just(b':'), Just(b'['), Just(b','), Just(b'N'), any::<u8>()], 0..48)) {
        if let Ok(json) = Json::parse(bytes) {
            let _ = (json.to_value(), json.members().count(), json.items().count());
            prop_assert!(json.edited(&set("a", json!(1))).get("a").is_some());
        }
    }
}
