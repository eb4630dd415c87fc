//! The JSON Schemas, and those of ZEP 6.

use jsonschema::Validator;

use super::*;
use crate::zom::ZomFormat;

/// The schemas that ZEP 6 prints, as they stand.
const OF_ZEP_6_V2: &str = include_str!("zep6/schema_v2.json");
const OF_ZEP_6_V3: &str = include_str!("zep6/schema_v3.json");

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Every place in a JSON value but the root.
fn places(json: &Value, pointer: &str, places: &mut Vec<String>) {
    let children: Vec<_> = match json {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in children {
        places.push(format!("{pointer}/{name}"));
        self::places(value, &format!("{pointer}/{name}"), places);
    }
}

#[test]
fn schemas_are_valid() {
    for version in [ZomFormat::V2, ZomFormat::V3] {
        assert!(jsonschema::meta::is_valid(&read(version.schema())), "{version:?}");
    }
}

/// The corrections of the schemas of ZEP 6, which the documentation of [`Version::schema`] lists.
#[test]
fn schemas_of_zep_6_have_known_errors() {
    let (zep_6_v2, zep_6_v3) = (validator(OF_ZEP_6_V2), validator(OF_ZEP_6_V3));
    let (v2, v3) = (validator(ZomFormat::V2.schema()), validator(ZomFormat::V3.schema()));
    let pydantic_v2 = read(PYDANTIC_V2);
    let (plain_v2, plain_v3) = (group_v2(json!({"a": array_v2()})), group_v3(json!({"a": array_v3()})));
    let crc32c = json!({"name": "crc32c"});
    for (what, wrong, right, zom) in [
        ("v2: its own example", &zep_6_v2, &v2, read(ZEP_6_V2)),
        ("v2: zarr_format", &zep_6_v2, &v2, json!({"zarr_format": 2, "attributes": {}, "members": {}})),
        ("v2: what pydantic-zarr writes", &zep_6_v2, &v2, pydantic_v2),
        (
            "v2: no compressor, no filters",
            &zep_6_v2,
            &v2,
            changed(&plain_v2, "/members/a/compressor", Some(json!(null))),
        ),
        (
            "v2: a structured type",
            &zep_6_v2,
            &v2,
            changed(
                &changed(&plain_v2, "/members/a/dtype", Some(json!([["a", "<i4"]]))),
                "/members/a/fill_value",
                Some(json!(null)),
            ),
        ),
        ("v2: no attributes", &zep_6_v2, &v2, changed(&plain_v2, "/attributes", None)),
        ("v3: a topmost array", &zep_6_v3, &v3, array_v3()),
        (
            "v3: a data type with a configuration",
            &zep_6_v3,
            &v3,
            changed(
                &changed(
                    &plain_v3,
                    "/members/a/data_type",
                    Some(json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}})),
                ),
                "/members/a/fill_value",
                Some(json!(0)),
            ),
        ),
        (
            "v3: a codec without a configuration",
            &zep_6_v3,
            &v3,
            changed(&plain_v3, "/members/a/codecs/1", Some(crc32c)),
        ),
        (
            "v3: a codec that is just a name",
            &zep_6_v3,
            &v3,
            changed(&plain_v3, "/members/a/codecs/1", Some(json!("crc32c"))),
        ),
        (
            "v3: a dimension without a name",
            &zep_6_v3,
            &v3,
            changed(&plain_v3, "/members/a/dimension_names", Some(json!(["y", null]))),
        ),
        (
            "v3: extensions",
            &zep_6_v3,
            &v3,
            changed(&plain_v3, "/extensions", Some(json!([{"name": "a", "must_understand": false}]))),
        ),
        (
            "v3: a member that need not be understood",
            &zep_6_v3,
            &v3,
            changed(&plain_v3, "/a", Some(json!({"must_understand": false}))),
        ),
        ("v3: members of which nothing is said", &zep_6_v3, &v3, changed(&plain_v3, "/members", None)),
    ] {
        assert!(!wrong.is_valid(&zom), "{what}");
        assert!(right.is_valid(&zom), "{what}: {:?}", right.iter_errors(&zom).next());
        assert!(parse(&zom).is_ok(), "{what}: {:?}", parse(&zom));
    }
    for (what, wrong, right, zom) in [
        ("v3: nodes that do not say whose they are", &zep_6_v3, &v3, json!({"attributes": {}, "members": {}})),
        ("v3: names that no node may have", &zep_6_v3, &v3, group_v3(json!({"__a": array_v3()}))),
        ("v3: negative extents", &zep_6_v3, &v3, changed(&plain_v3, "/members/a/shape/0", Some(json!(-1)))),
        ("v2: version 7", &zep_6_v2, &v2, json!({"zarr_version": 7, "attributes": {}, "members": {}})),
    ] {
        assert!(wrong.is_valid(&zom), "{what}");
        assert!(!right.is_valid(&zom), "{what}");
        assert!(parse(&zom).is_err(), "{what}");
    }
}

#[test]
fn v3_example_satisfies_the_schema_of_zep_6() {
    assert!(validator(OF_ZEP_6_V3).is_valid(&read(ZEP_6_V3)));
}

#[test]
fn schema_restricts_node_names() {
    for version in [ZomFormat::V2, ZomFormat::V3] {
        let validator = validator(version.schema());
        for name in [
            "a",
            "é",
            "a b",
            "__a",
            "_a",
            ".",
            "..",
            "...",
            "....a",
            "",
            "a/b",
            "a\\b",
            "a\u{7}",
            "a\u{85}",
            "zarr.json",
            ".zarray",
            ".zgroup",
            ".zattrs",
            ".zmetadata",
            "zarr.jsons",
        ] {
            let zom = match version {
                ZomFormat::V2 => group_v2(json!({name: group_v2(json!({}))})),
                ZomFormat::V3 => group_v3(json!({name: group_v3(json!({}))})),
            };
            assert_eq!(validator.is_valid(&zom), parse(&zom).is_ok(), "{version:?}: {name:?}");
        }
    }
}

/// Whatever a schema refuses is refused, with anything else at any place of examples that have all that a ZOM can have.
#[test]
fn parser_rejects_what_the_schema_rejects() {
    let extensions =
        json!(["example.skip_empty_chunks", {"name": "a", "configuration": {"b": 1}, "must_understand": false}]);
    let array =
        changed(&changed(&array_v3(), "/dimension_names", Some(json!(["y", null]))), "/extensions", Some(extensions));
    let array = changed(&array, "/other", Some(json!({"must_understand": false})));
    let v3 = group_v3(json!({"a": array, "g": group_v3(json!(null))}));
    let v3 = changed(&v3, "/consolidated_metadata", Some(json!(null)));
    let filtered = changed(&array_v2(), "/filters", Some(json!([{"id": "delta", "dtype": "<f4"}])));
    let v2 = group_v2(
        json!({"a": filtered, "g": group_v2(json!({"s": changed(&array_v2(), "/dtype", Some(json!([["x", "<f4"]])))}))}),
    );
    let v2 = changed(&v2, "/members/g/members/s/fill_value", Some(json!(null)));
    for (version, examples) in [(ZomFormat::V2, [v2, read(ZEP_6_V2)]), (ZomFormat::V3, [v3, read(ZEP_6_V3)])] {
        let validator = validator(version.schema());
        for example in examples {
            assert!(validator.is_valid(&example) && parse(&example).is_ok(), "{example}: {:?}", parse(&example));
            let mut all = Vec::new();
            places(&example, "", &mut all);
            let mut refused = 0;
            for place in all {
                let others = [
                    json!(null),
                    json!(0),
                    json!(-1),
                    json!(2.5),
                    json!(2.0),
                    json!("x"),
                    json!("."),
                    json!([]),
                    json!({}),
                    json!(["x"]),
                    json!([1, 2]),
                    json!({"name": "x"}),
                    json!({"id": "x"}),
                    json!(true),
                ];
                for other in others.map(Some).into_iter().chain([None]) {
                    let zom = changed(&example, &place, other.clone());
                    if !validator.is_valid(&zom) {
                        refused += 1;
                        assert!(parse(&zom).is_err(), "{place}: {other:?}: {:?}", validator.iter_errors(&zom).next());
                    }
                }
            }
            assert!(refused > 100, "{refused}");
        }
    }
}
