//! Reading.

use serde_json::json;

use super::*;
use crate::zom::Members;
use crate::{
    documents::{v2, v3},
    json::Json,
    limits::MAX_DOCUMENT_SIZE,
    names::MAX_NAME_LEN,
    zom::{Group, MAX_NODES, MAX_VIOLATIONS, Node, ZomFormat},
};

#[test]
fn examples_of_zep_6_are_parsed() {
    let zom = Zom::parse(ZEP_6_V3.as_bytes()).unwrap();
    assert_eq!(
        shown(&zom),
        json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {"foo": 42, "bar": false},
            "members": {"array": {
                "zarr_format": 3,
                "node_type": "array",
                "attributes": {"baz": [1, 2, 3]},
                "shape": [1000, 1000],
                "data_type": "uint8",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": 0,
                "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}],
                "dimension_names": ["rows", "columns"],
            }},
        })
    );
    let zom = Zom::parse(ZEP_6_V2.as_bytes()).unwrap();
    assert_eq!(
        shown(&zom),
        json!({
            "zarr_format": 2,
            "attributes": {"foo": 42, "bar": false},
            "members": {"foo": {
                "zarr_format": 2,
                "shape": [1000, 1000],
                "chunks": [100, 100],
                "dtype": "|u1",
                "compressor": null,
                "fill_value": 0,
                "order": "C",
                "dimension_separator": "/",
                "filters": null,
                "attributes": {"baz": true},
            }},
        })
    );
}

/// A node and all below it without the `null` for names that no dimension has.
fn without_null_names(node: &mut Value) {
    let node = node.as_object_mut().unwrap();
    if node.get("dimension_names").is_some_and(Value::is_null) {
        node.shift_remove("dimension_names");
    }
    node.get_mut("members")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
        .for_each(|(_, node)| without_null_names(node));
}

#[test]
fn output_of_pydantic_zarr_is_parsed() {
    for (text, nodes) in [(PYDANTIC_V2, 11), (PYDANTIC_V3, 9)] {
        let zom = Zom::parse(text.as_bytes()).unwrap();
        assert_eq!(zom.len(), nodes);
        let mut written: Value = serde_json::from_str(text).unwrap();
        without_null_names(&mut written);
        assert_eq!(shown(&zom), written);
        assert_eq!(Zom::parse(zom.to_text().to_bytes()).unwrap().to_text(), zom.to_text());
        assert!(Zom::differences(&parse(&written).unwrap(), &zom, 1).is_empty());
    }
}

#[test]
fn flat_paths_match_pydantic_zarr() {
    let mut paths: Vec<_> = flat(&Zom::parse(PYDANTIC_V3.as_bytes()).unwrap()).keys().cloned().collect();
    paths.sort();
    assert_eq!(paths, ["", "/a", "/g", "/g/b", "/g/c", "/g/s", "/g/t", "/g/u", "/g/v"]);
    let nodes = flat(&parse(&group_v3(json!({"a": array_v3()}))).unwrap());
    assert_eq!(nodes[""], json!({"zarr_format": 3, "node_type": "group", "attributes": {}}));
    assert_eq!(nodes["/a"], array_v3());
    assert_eq!(flat(&parse(&array_v3()).unwrap()).keys().collect::<Vec<_>>(), [""]);
}

#[test]
fn missing_null_and_empty_members_differ() {
    let members = |json: Value| match parse(&json).unwrap().root {
        Node::Group(Group { members, .. }) => members,
        Node::Array(_) => panic!("{json} is a group"),
    };
    assert_eq!(members(group_v3(json!({}))), Some(Members::new()));
    assert_eq!(members(group_v3(json!(null))), None);
    assert_eq!(members(json!({"zarr_format": 3, "node_type": "group"})), None);
    assert_eq!(members(json!({"zarr_format": 2})), None);
    assert_eq!(parse(&group_v2(json!(null))).unwrap().to_text(), json!({"zarr_format": 2, "attributes": {}}));
    assert_eq!(parse(&group_v2(json!({}))).unwrap().to_text(), group_v2(json!({})));
}

#[test]
fn documents_with_a_member_called_members_roundtrip() {
    let own = json!({"must_understand": false});
    let json = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "_members": own, "members": {}});
    let zom = parse(&json).unwrap();
    assert_eq!(zom.root.document().get("members").unwrap(), own);
    assert_eq!(shown(&zom), json);
    assert_eq!(flat(&zom)[""]["_members"], own);
    let wrong = changed(&json, "/_members", Some(json!(1)));
    assert_eq!(violations(&wrong)[0].0, "/_members");
}

#[test]
fn violations_have_pointers() {
    let v3 =
        |pointer: &str, value: Value| group_v3(json!({"a~/b": 0, "a": changed(&array_v3(), pointer, Some(value))}));
    for (json, place, why) in [
        (json!([]), "", "is not an object"),
        (json!({}), "/zarr_format", "is missing"),
        (json!({"zarr_format": "3"}), "/zarr_format", "is neither 2 nor 3"),
        (json!({"zarr_format": 3}), "/node_type", "is missing"),
        (json!({"zarr_format": 3, "node_type": 1}), "/node_type", "is neither \"array\" nor \"group\""),
        (group_v3(json!([])), "/members", "is neither an object nor null"),
        (group_v3(json!({"a": null})), "/members/a", "is not an object"),
        (group_v3(json!({"a": {}})), "/members/a/zarr_format", "is missing"),
        (group_v3(json!({"a": group_v2(json!({}))})), "/members/a/zarr_format", "is 2 where the topmost node has 3"),
        (group_v2(json!({"a": array_v3()})), "/members/a/zarr_format", "is 3 where the topmost node has 2"),
        (
            group_v3(json!({"__a": array_v3()})),
            "/members/__a",
            "has a name that v3 does not allow: it begins with \"__\", which is reserved",
        ),
        (group_v3(json!({"a~/b": array_v3()})), "/members/a~0~1b", "has a name that v3 does not allow: it has a \"/\""),
        (
            group_v2(json!({".zarray": array_v2()})),
            "/members/.zarray",
            "has a name that v2 does not allow: it is reserved for metadata documents",
        ),
        (
            group_v3(json!({"a": changed(&array_v3(), "/members", Some(json!({})))})),
            "/members/a/members",
            "is not allowed: arrays have no members",
        ),
        (
            group_v2(json!({"a": changed(&array_v2(), "/members", Some(json!({})))})),
            "/members/a/members",
            "is not allowed: arrays have no members",
        ),
        (
            group_v2(json!({"a": changed(&array_v2(), "/order", Some(json!("X")))})),
            "/members/a/order",
            "is neither \"C\" nor \"F\"",
        ),
        (
            group_v2(json!({"a": changed(&array_v2(), "/attributes", Some(json!([])))})),
            "/members/a/attributes",
            "is not an object",
        ),
        (group_v2(json!({"a": changed(&array_v2(), "/shape", None)})), "/members/a/shape", "is missing"),
        (group_v3(json!({"a": changed(&array_v3(), "/data_type", None)})), "/members/a/data_type", "is missing"),
    ] {
        assert_eq!(violations(&json), [(place.to_owned(), why.to_owned())], "{json}");
    }
    for (json, place) in [
        (v3("/shape/1", json!(-1)), "/members/a/shape/1"),
        (v3("/shape", json!([1])), "/members/a/chunk_grid/configuration/chunk_shape"),
        (v3("/data_type", json!("float33")), "/members/a/data_type"),
        (v3("/fill_value", json!("x")), "/members/a/fill_value"),
        (v3("/codecs/1", json!(1)), "/members/a/codecs/1"),
        (v3("/chunk_grid/name", json!("hexagonal")), "/members/a/chunk_grid"),
        (v3("/unheard", json!(1)), "/members/a/unheard"),
        (v3("/storage_transformers", json!(["x"])), "/members/a/storage_transformers/0"),
        (v3("/extensions", json!(["x"])), "/members/a/extensions/0"),
    ] {
        let places: Vec<_> = violations(&json).into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["/members/a~0~1b", place], "{json}");
    }
}

#[test]
fn all_missing_members_are_listed() {
    let array = json!({"zarr_format": 2, "dtype": "<f4"});
    let found = violations(&group_v2(json!({"a": array, "b": {"zarr_format": 3}})));
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    let missing = ["/shape", "/chunks", "/compressor", "/fill_value", "/order"].map(|name| format!("/members/a{name}"));
    assert_eq!(places[..5], missing);
    assert_eq!(places[5..], ["/members/b/zarr_format"]);
}

#[test]
fn limits_are_enforced() {
    let members: serde_json::Map<_, _> = (0..2 * MAX_VIOLATIONS).map(|index| (index.to_string(), json!(1))).collect();
    assert_eq!(violations(&group_v3(members.into())).len(), MAX_VIOLATIONS);

    let node = "{\"zarr_format\":2},";
    let many = |count: usize| {
        let members: String = (0..count).map(|index| format!("\"{index}\":{node}")).collect();
        format!("{{\"zarr_format\":2,\"members\":{{{}}}}}", members.trim_end_matches(','))
    };
    assert_eq!(Zom::parse(many(MAX_NODES - 1)).unwrap().len(), MAX_NODES);
    let more = Zom::parse(many(MAX_NODES));
    assert!(matches!(more, Err(ZomError::TooManyNodes { limit: MAX_NODES })), "{more:?}");

    // Attributes stay text and take no more memory than it; a fill value is parsed, within a bound.
    let many = format!("{{\"a\":[{}0]}}", "{\"\":0},".repeat(1 << 18));
    let attributes = changed(&array_v3(), "/attributes", Some(json!("ATTRIBUTES"))).to_string();
    let zom = Zom::parse(attributes.replace("\"ATTRIBUTES\"", &many)).unwrap();
    assert_eq!(zom.root.document().get("attributes").unwrap().as_str(), many);
    let fill_value = changed(&array_v3(), "/fill_value", Some(json!("VALUE"))).to_string().replace("\"VALUE\"", &many);
    let Err(ZomError::Invalid { violations: found }) = Zom::parse(fill_value) else { panic!("it is too large") };
    assert!(found[0].reason.contains("memory"), "{found:?}");
    let Err(ZomError::Invalid { violations: found }) = Zom::parse(vec![b' '; MAX_DOCUMENT_SIZE + 1]) else {
        panic!("it is too long")
    };
    assert_eq!((found[0].pointer.as_str(), found[0].reason.as_str()), ("", "has more than 67108864 bytes"));

    let long = "a".repeat(MAX_NAME_LEN);
    assert_eq!(parse(&group_v3(json!({&long: array_v3()}))).unwrap().len(), 2);
    let found = violations(&group_v3(json!({&long: group_v3(json!({"b": array_v3()}))})));
    assert_eq!(found, [(format!("/members/{long}/members/b"), "has a path of more than 1014 bytes".to_owned())]);
    let found = violations(&group_v3(json!({"a".repeat(100_000): array_v3()})));
    assert!(found[0].0.len() < 200, "{found:?}");
}

#[test]
fn groups_nest_63_levels_deep() {
    let nested = |depth: usize| {
        let above = "{\"zarr_format\":2,\"members\":{\"a\":".repeat(depth - 1);
        format!("{above}{{\"zarr_format\":2}}{}", "}}".repeat(depth - 1))
    };
    let zom = Zom::parse(nested(64)).unwrap();
    assert_eq!((zom.len(), flat(&zom).len()), (64, 64));
    assert!(Zom::differences(&zom, &zom, 1).is_empty());
    for depth in [65, 10_000] {
        assert!(matches!(Zom::parse(nested(depth)), Err(ZomError::NotJson(_))), "{depth}");
    }
}

#[test]
fn bare_nan_and_infinity_are_parsed() {
    let text = "{\"zarr_format\":2,\"attributes\":{\"a\":NaN}}";
    let zom = Zom::parse(text).unwrap();
    assert_eq!(zom.to_text().as_str(), text);
    assert_eq!(shown(&zom)["attributes"]["a"], "NaN");
    assert!(matches!(Zom::parse("{"), Err(ZomError::NotJson(_))));
}

/// Words, long numbers, escapes and names that are there twice, none of which serde_json's values keep.
#[test]
fn attributes_keep_their_notation() {
    let attributes =
        r#"{ "n":NaN ,"n": 123456789012345678901234567890, "e":"\u00e9\ud800","f":[ 1.50e+3,-Infinity ] }"#;
    let with = |json: &Value| changed(json, "/attributes", Some(json!("ATTRIBUTES"))).to_string();
    let (array, group) = (with(&array_v3()), with(&group_v3(json!("MEMBERS"))));
    let text = group.replace("\"MEMBERS\"", &format!("{{\"a\":{array}}}")).replace("\"ATTRIBUTES\"", attributes);
    let zom = Zom::parse(text.clone()).unwrap();
    assert_eq!(zom.root.document().get("attributes").unwrap().as_str(), attributes);
    // Answers are on one line.
    let one_line = |text: &str| Json::parse(text.to_owned()).unwrap().compacted();
    assert_eq!(zom.to_text(), one_line(&text));
    let flat = zom.to_flat_text();
    for path in ["", "/a"] {
        assert_eq!(flat.get(path).unwrap().get("attributes").unwrap(), one_line(attributes));
    }
    assert!(Zom::differences(&zom, &zom, 1).is_empty());
}

#[test]
fn stored_nodes_are_rendered() {
    let zarray = r#"{"zarr_format":2,"shape":[1],"chunks":[1],"dtype":"|u1","compressor":null,"fill_value":null,"order":"C","more":1}"#;
    let array = v2::array(zarray, Some(r#"{"b":1,"a":2}"#.into())).unwrap();
    let shown = Node::from_array(&array).to_text();
    assert_eq!(shown.get("attributes").unwrap().as_str(), r#"{"b":1,"a":2}"#);
    // Nothing is normalised.
    assert_eq!((shown.get("filters"), shown.get("more")), (None, Some(Json::compact(&json!(1)))));
    let group = v2::group(r#"{"zarr_format":2}"#, None).unwrap();
    assert_eq!(Node::Group(Node::group_from_model(&group)).to_text(), json!({"zarr_format": 2, "attributes": {}}));

    let zarr_json = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}});
    let Ok(v3::Node::Group(group)) = v3::node(zarr_json.to_string()) else { panic!("it is a group") };
    let group = Node::group_from_model(&group);
    assert_eq!(Node::Group(group).to_text(), json!({"zarr_format": 3, "node_type": "group", "attributes": {}}));
    assert_eq!((ZomFormat::V2.dialect().name(), ZomFormat::V3.dialect().name()), ("v2", "v3"));
}

/// The written text is the displayed one, with unchanged node documents.
#[test]
fn to_text_matches_write() {
    for json in [ZEP_6_V2, ZEP_6_V3, PYDANTIC_V2, PYDANTIC_V3] {
        let zom = Zom::parse(json.as_bytes()).unwrap();
        let (mut written, mut flat) = (Vec::new(), Vec::new());
        zom.write(&mut written).unwrap();
        zom.write_flat(&mut flat).unwrap();
        assert_eq!((&written[..], &flat[..]), (zom.to_text().as_bytes(), zom.to_flat_text().as_bytes()));
        assert_eq!(zom.root.to_text(), zom.to_text());
        assert_eq!(Zom::parse(written).unwrap().to_text(), zom.to_text());
    }
    let own = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "_members": {"must_understand": false}, "members": {}});
    let zom = parse(&own).unwrap();
    assert_eq!(zom.to_text().as_str(), own.to_string());
}
