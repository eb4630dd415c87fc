//! Structural equality.

use super::*;
use crate::{json::Json, zom::Difference};

/// The differences between a requested ZOM and a stored one that is not normalised.
fn differences(declared: &Value, found: &Value) -> Vec<Difference> {
    Zom::differences(&parse(declared).unwrap(), &parse(found).unwrap(), 100)
}

/// The differences between two arrays: locations and both values.
fn differences_of(declared: &Value, found: &Value) -> Vec<(String, Option<Value>, Option<Value>)> {
    let value = |json: Option<Json>| json.map(|json| json.to_value().unwrap());
    let sides = |Difference { pointer, expected: declared, actual: found }| (pointer, value(declared), value(found));
    differences(declared, found).into_iter().map(sides).collect()
}

fn with(array: &Value, changes: &[(&str, Value)]) -> Value {
    changes.iter().fold(array.clone(), |json, (pointer, value)| changed(&json, pointer, Some(value.clone())))
}

#[test]
fn notation_makes_no_difference() {
    let sharding = |index_codecs: Value| json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3], "codecs": ["bytes"], "index_codecs": index_codecs}}]);
    for (array, one, other) in [
        (
            array_v3(),
            vec![("/attributes", json!({"a": 1, "b": [2, {"c": 0}]}))],
            vec![("/attributes", json!({"b": [2.0, {"c": -0.0}], "a": 1.0}))],
        ),
        (array_v3(), vec![("/fill_value", json!(1))], vec![("/fill_value", json!(1.0))]),
        (array_v3(), vec![("/fill_value", json!("NaN"))], vec![("/fill_value", json!("0x7fc00000"))]),
        (array_v3(), vec![("/dimension_names", json!([null, null]))], vec![]),
        (array_v3(), vec![("/storage_transformers", json!([]))], vec![]),
        (array_v3(), vec![("/attributes", json!({}))], vec![("/attributes", json!(null))]),
        (
            array_v3(),
            vec![("/codecs/0", json!("bytes"))],
            vec![("/codecs/0", json!({"name": "bytes", "configuration": {}}))],
        ),
        (
            array_v3(),
            vec![("/codecs", sharding(json!(["bytes", "crc32c"])))],
            vec![("/codecs", sharding(json!([{"name": "bytes"}, {"name": "crc32c", "configuration": {}}])))],
        ),
        (array_v3(), vec![("/chunk_key_encoding", json!("default"))], vec![]),
        (
            array_v3(),
            vec![("/chunk_key_encoding", json!({"name": "v2"}))],
            vec![("/chunk_key_encoding", json!({"name": "v2", "configuration": {"separator": "."}}))],
        ),
        (
            array_v3(),
            vec![("/extensions", json!(["example.skip_empty_chunks"]))],
            vec![(
                "/extensions",
                json!([{"name": "example.skip_empty_chunks", "configuration": {}, "must_understand": true}]),
            )],
        ),
        (
            with(&array_v3(), &[("/codecs/0", json!("vlen-bytes")), ("/fill_value", json!(""))]),
            vec![("/data_type", json!("bytes"))],
            vec![("/data_type", json!("variable_length_bytes"))],
        ),
        (array_v2(), vec![("/fill_value", json!(0))], vec![("/fill_value", json!(0.0))]),
        (array_v2(), vec![("/fill_value", json!("NaN"))], vec![("/fill_value", json!("NaN"))]),
        (
            with(&array_v2(), &[("/fill_value", json!(0))]),
            vec![("/dtype", json!("|u1"))],
            vec![("/dtype", json!("<u1"))],
        ),
    ] {
        let (one, other) = (with(&array, &one), with(&array, &other));
        assert_eq!(differences_of(&one, &other), [], "{one} and {other}");
        assert_eq!(differences_of(&other, &one), [], "{other} and {one}");
    }
}

#[test]
fn defaults_make_no_difference() {
    let stored =
        |json: &Value| Zom { format: crate::zom::ZomFormat::V2, root: crate::zom::Node::Array(Json::compact(json)) };
    let declared = stored(&array_v2());
    for filters in [None, Some(json!([]))] {
        let found = changed(&changed(&array_v2(), "/dimension_separator", None), "/filters", filters);
        assert_eq!(Zom::differences(&declared, &stored(&found), 100), []);
    }
    let found = changed(&array_v2(), "/attributes", Some(json!({})));
    let places = Zom::differences(&declared, &stored(&found), 100);
    assert_eq!((places.len(), places[0].pointer.as_str()), (1, "/attributes/units"));
}

#[test]
fn differences_have_a_pointer_and_both_values() {
    for (array, change, place, declared, found) in [
        (array_v3(), ("/shape/0", json!(5)), "/shape/0", Some(json!(4)), Some(json!(5))),
        (array_v3(), ("/attributes/a", json!({"b": 1})), "/attributes/a", None, Some(json!({"b": 1}))),
        (array_v3(), ("/attributes/units", json!("s")), "/attributes/units", Some(json!("m")), Some(json!("s"))),
        (array_v3(), ("/data_type", json!("int32")), "/data_type", Some(json!("float32")), Some(json!("int32"))),
        (array_v3(), ("/fill_value", json!("NaN")), "/fill_value", Some(json!(0.0)), Some(json!("NaN"))),
        (array_v3(), ("/dimension_names", json!(["y", null])), "/dimension_names", None, Some(json!(["y", null]))),
        (
            array_v3(),
            ("/chunk_key_encoding/configuration/separator", json!(".")),
            "/chunk_key_encoding/configuration/separator",
            Some(json!("/")),
            Some(json!(".")),
        ),
        (
            array_v3(),
            ("/codecs", json!([array_v3()["codecs"][0]])),
            "/codecs",
            Some(array_v3()["codecs"].clone()),
            Some(json!([array_v3()["codecs"][0]])),
        ),
        (
            array_v3(),
            ("/codecs/1/configuration/level", json!(2)),
            "/codecs/1/configuration/level",
            Some(json!(1)),
            Some(json!(2)),
        ),
        (array_v2(), ("/fill_value", json!(null)), "/fill_value", Some(json!(0.0)), Some(json!(null))),
        (array_v2(), ("/dtype", json!(">f4")), "/dtype", Some(json!("<f4")), Some(json!(">f4"))),
        (array_v2(), ("/a~b", json!(1)), "/a~0b", None, Some(json!(1))),
    ] {
        let other = with(&array, &[change]);
        assert_eq!(differences_of(&array, &other), [(place.to_owned(), declared.clone(), found.clone())]);
        // The other way round it is the other way round, but for what is told higher up where nothing is declared
        // below.
        let (back_place, back_declared, _) = &differences_of(&other, &array)[0];
        assert!(place.starts_with(back_place.as_str()) && (back_place != place || *back_declared == found));
    }
}

#[test]
fn difference_below_an_undeclared_member_points_to_its_parent() {
    let declared = with(&array_v3(), &[("/codecs/1", json!("gzip")), ("/chunk_key_encoding", json!("default"))]);
    let found = with(&array_v3(), &[("/chunk_key_encoding/configuration/separator", json!("."))]);
    assert_eq!(
        differences_of(&declared, &found),
        [
            ("/chunk_key_encoding".to_owned(), Some(json!("default")), Some(found["chunk_key_encoding"].clone())),
            ("/codecs/1".to_owned(), Some(json!("gzip")), Some(found["codecs"][1].clone())),
        ]
    );
}

#[test]
fn order_of_extensions_matters() {
    let extension = |name: &str| json!({"name": name, "must_understand": false});
    let one = with(&array_v3(), &[("/extensions", json!([extension("a"), extension("b")]))]);
    let other = with(&array_v3(), &[("/extensions", json!([extension("b"), extension("a")]))]);
    let places: Vec<_> = differences_of(&one, &other).into_iter().map(|(place, ..)| place).collect();
    assert_eq!(places, ["/extensions/0/name", "/extensions/1/name"]);
}

#[test]
fn undeclared_members_are_differences() {
    let group = |members: Value| group_v3(members);
    let empty = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let (a, b) = (array_v3(), group(json!({"c": array_v3()})));
    let both = group(json!({"a": a, "b": b}));
    assert_eq!(differences_of(&both, &group(json!({"b": b, "a": a}))), []);
    assert_eq!(differences_of(&empty, &both), []);
    assert_eq!(
        differences_of(&group(json!({})), &both),
        [("/members/a".to_owned(), None, Some(a.clone())), ("/members/b".to_owned(), None, Some(empty.clone()))]
    );
    assert_eq!(differences_of(&both, &group(json!({"b": b}))), [("/members/a".to_owned(), Some(a.clone()), None)]);
    assert_eq!(
        differences_of(&group(json!({"x": a})), &group(json!({"x": empty}))),
        [("/members/x".to_owned(), Some(a.clone()), Some(empty.clone()))]
    );
    let other = group(json!({"a": a, "b": group(json!({"c": with(&a, &[("/shape/1", json!(7))])}))}));
    assert_eq!(
        differences_of(&both, &other),
        [("/members/b/members/c/shape/1".to_owned(), Some(json!(6)), Some(json!(7)))]
    );
}

#[test]
fn formats_differ_as_a_whole() {
    let (v2, v3) = (group_v2(json!({})), group_v3(json!({})));
    let places = differences(&v2, &v3);
    assert_eq!((places.len(), places[0].pointer.as_str()), (1, ""));
    assert_eq!(places[0].expected, Some(Json::compact(&json!({"zarr_format": 2, "attributes": {}}))));
}

#[test]
fn differences_stop_at_the_limit() {
    let many: serde_json::Map<_, _> = (0..50).map(|index| (index.to_string(), json!(0))).collect();
    let (declared, found) = (with(&array_v3(), &[("/attributes", json!(many))]), array_v3());
    let (declared, found) = (json!({"a": declared, "b": declared}), json!({"a": found, "b": found}));
    let (declared, found) = (parse(&group_v3(declared)).unwrap(), parse(&group_v3(found)).unwrap());
    for (limit, count) in [(0, 0), (1, 1), (51, 51), (60, 60), (1000, 102)] {
        assert_eq!(Zom::differences(&declared, &found, limit).len(), count);
    }
}
