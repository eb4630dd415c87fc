use super::{super::write::StoredNode, *};
use crate::ArrayModel;

fn v3_text(document: impl Into<Bytes>) -> ArrayModel {
    match super::super::v3::node(document).unwrap() {
        super::super::v3::Node::Array(array) => *array,
        super::super::v3::Node::Group(_) => panic!("a group"),
    }
}

fn v3_array(document: &Value) -> ArrayModel {
    v3_text(bytes(document))
}

fn v3_group(document: impl Into<Bytes>) -> GroupModel {
    match super::super::v3::node(document).unwrap() {
        super::super::v3::Node::Array(_) => panic!("an array"),
        super::super::v3::Node::Group(group) => group,
    }
}

fn patch(patch: Value) -> Result<NodePatch, String> {
    NodePatch::parse(bytes(&patch)).map_err(|error| error.to_string())
}

fn of_array(model: &ArrayModel, body: Value) -> Result<Value, String> {
    stored(model, body).map(|node| value(&node.node_document(model.dialect)))
}

fn stored(model: &ArrayModel, body: Value) -> Result<StoredNode, String> {
    patch(body)?.apply_to_array(model).map_err(|error| error.to_string())
}

#[test]
fn malformed_patches_are_rejected() {
    for (body, reason) in [
        (json!([]), " the document is not an object"),
        (json!({"attributes": null}), "/attributes is not an object"),
        (json!({"attributes": [1]}), "/attributes is not an object"),
        (json!({"shape": null}), "/shape is not a list"),
        (json!({"shape": [-1]}), "/shape/0 is negative"),
        (json!({"shape": [MAX_EXTENT + 1]}), "/shape/0 is larger than 9223372036854775807"),
        (json!({"shape": vec![1; 65]}), "/shape has 65 dimensions, more than 64"),
        (json!({"dimension_names": "x"}), "/dimension_names is not a list"),
        (json!({"dimension_names": ["x", 1]}), "/dimension_names/1 is neither a string nor null"),
        (json!({"a/b~": 1}), "/a~1b~0 is not one of attributes, shape and dimension_names"),
    ] {
        assert_eq!(patch(body).unwrap_err(), reason);
    }
    let deep = format!("{{\"attributes\": {{\"a\": {}{}}}}}", "[".repeat(99), "]".repeat(99));
    assert_eq!(NodePatch::parse(deep).unwrap_err().reason, "is nested deeper than 100 levels");
    assert_eq!(patch(json!({})), Ok(NodePatch::default()));
}

/// The test cases of RFC 7396 whose patch is an object.
#[test]
fn attributes_are_merged() {
    for (target, patch, result) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        let document = json!({"zarr_format": 3, "node_type": "group", "attributes": target});
        let group = v3_group(bytes(&document));
        let changed = NodePatch::parse(bytes(&json!({"attributes": patch}))).unwrap().apply_to_group(&group).unwrap();
        assert_eq!(changed.document.get("attributes").unwrap(), result, "{target} {patch}");
        assert_eq!(changed.attributes, None);
    }
}

#[test]
fn patch_changes_v3_arrays() {
    let mut document = v3::base();
    document["x"] = json!({"must_understand": false});
    document["extensions"] =
        json!(["example.skip_empty_chunks", {"name": "example.array-statistics", "must_understand": false}]);
    let array = v3_array(&document);
    let changed = of_array(&array, json!({"attributes": {"new": {"a": 1}}, "dimension_names": ["p", null]})).unwrap();
    let mut expected = document.clone();
    expected["attributes"]["new"] = json!({"a": 1});
    expected["dimension_names"] = json!(["p", null]);
    assert_eq!(changed, expected);
    // The order of the members is as it was.
    let order = |document: &Value| document.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        order(&changed).iter().filter(|name| document.get(name).is_some()).collect::<Vec<_>>(),
        order(&document).iter().collect::<Vec<_>>()
    );
    let unnamed = of_array(&v3_array(&changed), json!({"dimension_names": null})).unwrap();
    assert_eq!(unnamed.get("dimension_names"), None);
    let same = of_array(&array, json!({"shape": array.shape})).unwrap();
    assert_eq!(same, document);
    let grown = of_array(&array, json!({"shape": [100, 0]})).unwrap();
    assert_eq!((&grown["shape"], &grown["extensions"]), (&json!([100, 0]), &json!(["example.skip_empty_chunks"])));
    document["extensions"] = json!([{"name": "example.array-statistics", "must_understand": false}]);
    let written = NodePatch { element_impact: ElementImpact::Changed, ..NodePatch::default() };
    assert_eq!(written.apply_to_array(&v3_array(&document)).unwrap().document.get("extensions"), None);
    for (body, reason) in [
        (json!({"shape": [1]}), "/shape has 1 entries for 2 dimensions"),
        (json!({"dimension_names": ["a"]}), "/dimension_names has 1 entries for 2 dimensions"),
    ] {
        assert_eq!(of_array(&array, body).unwrap_err(), reason);
    }
}

#[test]
fn patch_has_the_shape_of_the_view() {
    let mut array = v3_array(&v3::base());
    array.view_offset = vec![2, 3];
    assert_eq!(of_array(&array, json!({"shape": [10, 0]})).unwrap()["shape"], json!([12, 3]));
    assert_eq!(
        of_array(&array, json!({"shape": [1, MAX_EXTENT]})).unwrap_err(),
        "/shape/1 is larger than 9223372036854775804"
    );
}

#[test]
fn shape_beyond_a_rectilinear_grid_is_rejected() {
    let mut document = v3::base();
    document["shape"] = json!([5, 7]);
    document["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[2, 3]], 3]}});
    let array = v3_array(&document);
    assert_eq!(of_array(&array, json!({"shape": [6, 100]})).unwrap()["shape"], json!([6, 100]));
    assert_eq!(of_array(&array, json!({"shape": [7, 1]})).unwrap_err(), "/shape/0 exceeds the chunks of the array");
}

#[test]
fn patch_changes_v2_arrays() {
    let zattrs = json!({"a": 1, "_ARRAY_DIMENSIONS": ["x", "y"]});
    let array = super::super::v2::array(bytes(&v2::base()), Some(bytes(&zattrs))).unwrap();
    let changed =
        of_array(&array, json!({"shape": [0, 1], "dimension_names": ["p", "q"], "attributes": {"a": null}})).unwrap();
    let mut expected = v2::base();
    expected["shape"] = json!([0, 1]);
    expected["attributes"] = json!({"_ARRAY_DIMENSIONS": ["p", "q"]});
    assert_eq!(changed, expected);
    let unnamed = of_array(&array, json!({"dimension_names": null})).unwrap();
    assert_eq!(unnamed["attributes"], json!({"a": 1}));
    assert_eq!(
        of_array(&array, json!({"dimension_names": ["p", null]})).unwrap_err(),
        "/dimension_names/1 is null, and v2 has names for all dimensions or none"
    );
}

#[test]
fn empty_chunks_of_zarr_python_get_a_length() {
    let mut document = v2::base();
    document["shape"] = json!([0, 7]);
    document["chunks"] = json!([0, 3]);
    let array = super::super::v2::array(bytes(&document), None).unwrap();
    let grown = of_array(&array, json!({"shape": [4, 7]})).unwrap();
    assert_eq!(grown["chunks"], json!([1, 3]));
    assert_eq!(super::super::v2::array(bytes(&grown), None).unwrap().grid, array.grid);
}

#[test]
fn filters_of_the_draft_cannot_be_changed() {
    let mut document = draft::base();
    document["attributes"] = json!({"filters": [{"id": "delta", "dtype": "<f8"}], "a": 1});
    let array = super::super::draft::array(bytes(&document), "a").unwrap();
    assert_eq!(
        of_array(&array, json!({"attributes": {"filters": null}})).unwrap_err(),
        "/attributes/filters would change how the chunks are read"
    );
    assert_eq!(
        of_array(&array, json!({"attributes": {"a": 2}})).unwrap()["attributes"],
        json!({"filters": [{"id": "delta", "dtype": "<f8"}], "a": 2})
    );
}

#[test]
fn patch_changes_groups() {
    let document = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {}}});
    let group = v3_group(bytes(&document));
    let changed = patch(json!({"attributes": {"a": 2}})).unwrap().apply_to_group(&group).unwrap();
    let mut expected = document;
    expected["attributes"]["a"] = json!(2);
    assert_eq!(changed, StoredNode::single_document(Json::compact(&expected)));
    for (body, reason) in [
        (json!({"shape": [1]}), "/shape is not a property of groups"),
        (json!({"dimension_names": null}), "/dimension_names is not a property of groups"),
    ] {
        assert_eq!(patch(body).unwrap().apply_to_group(&group).unwrap_err().to_string(), reason);
    }
    let bare = super::super::v2::group("{\"zarr_format\": 2}", Some("{\"n\": NaN}".into())).unwrap();
    let changed = patch(json!({"attributes": {"b": 1}})).unwrap().apply_to_group(&bare).unwrap();
    assert_eq!(changed.node_document(Dialect::V2), json!({"zarr_format": 2, "attributes": {"n": "NaN", "b": 1}}));
    assert_eq!(changed.document.as_str(), "{\"zarr_format\": 2}");
    assert_eq!(changed.attributes.unwrap().as_str(), "{\"n\": NaN, \"b\": 1}");
}

/// Attributes whose notation serde_json's values do not preserve: words, long numbers, escapes, a repeated name, layout.
const STRANGE: &str = r#"{ "n":NaN ,"big": 123456789012345678901234567890,
	"e": "\u00e9\ud800", "x": 1,  "x" : 1.50e+3,"k\u0061":[ -Infinity,1 ], "a":  0}"#;

/// The documents of one array of each dialect, with a place for its attributes.
fn strange_arrays() -> Vec<(ArrayModel, String)> {
    let v3 = r#"{"zarr_format":3, "node_type":"array","shape" :[ 5 , 7],"data_type":"float32", "fill_value":NaN,
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},"chunk_key_encoding":"default","codecs":[ "bytes"],
  "attributes":ATTRIBUTES, "later":{"must_understand":false,"n":-Infinity}, "dimension_names" : ["p","q"] }"#;
    let draft = r#"{"shape" :[ 5 , 7],"data_type":"<f4", "chunk_grid":{"type":"regular","chunk_shape":[2,3]},"fill_value":NaN,
"chunk_memory_layout":"C",  "attributes":ATTRIBUTES, "later":[1E2,"\ud800"] }"#;
    let v2 = r#"{"zarr_format":2, "shape" :[ 5 , 7],"chunks":[2,3],"dtype":"<f4","compressor":null, "fill_value":NaN,"order":"C",
 "later":[1E2,"\ud800"] }"#;
    let (v3, draft) = (v3.replace("ATTRIBUTES", STRANGE), draft.replace("ATTRIBUTES", STRANGE));
    vec![
        (super::super::v2::array(v2, Some(STRANGE.into())).unwrap(), format!("{v2}{STRANGE}")),
        (v3_text(v3.clone()), v3),
        (super::super::draft::array(draft.clone(), "a").unwrap(), draft),
    ]
}

/// The texts of a node, one behind the other.
fn texts(node: &StoredNode) -> String {
    format!("{}{}", node.document.as_str(), node.attributes.as_ref().map(Json::as_str).unwrap_or_default())
}

#[test]
fn patch_preserves_all_other_bytes() {
    for (array, text) in strange_arrays() {
        assert_eq!(texts(&stored(&array, json!({})).unwrap()), text);
        assert_eq!(texts(&stored(&array, json!({"shape": [5, 7], "attributes": {}})).unwrap()), text);
        for (body, from, to) in [
            (json!({"shape": [9, 7]}), "[ 5 , 7]", "[9,7]"),
            (json!({"attributes": {"a": "é"}}), r#""a":  0"#, r#""a":  "é""#),
            (json!({"attributes": {"ka": null}}), r#","k\u0061":[ -Infinity,1 ]"#, ""),
            (json!({"attributes": {"x": null}}), r#", "x": 1,  "x" : 1.50e+3"#, ""),
            (json!({"attributes": {"x": {"y": 1}}}), r#""x" : 1.50e+3"#, r#""x" : {"y": 1}"#),
            (json!({"attributes": {"n": null}}), r#"{ "n":NaN ,"#, "{ "),
        ] {
            let expected = text.replace(from, to);
            assert_ne!(expected, text, "{from}");
            assert_eq!(texts(&stored(&array, body.clone()).unwrap()), expected, "{body}");
        }
    }
}

#[test]
fn new_attributes_of_v2_are_formatted() {
    let array = super::super::v2::array(bytes(&v2::base()), None).unwrap();
    let changed = stored(&array, json!({"attributes": {"a": {"b": [1]}}})).unwrap();
    assert_eq!(changed.document.to_bytes(), bytes(&v2::base()));
    let attributes = changed.attributes.unwrap();
    assert_eq!(attributes.as_str(), serde_json::to_string_pretty(&json!({"a": {"b": [1]}})).unwrap());
    let array = super::super::v2::array(bytes(&v2::base()), Some(attributes.to_bytes())).unwrap();
    assert_eq!(stored(&array, json!({"attributes": {"a": null}})).unwrap().attributes, None);
}

proptest! {
    /// A patch of any JSON is rejected, or the result is readable.
    #[test]
    fn random_patches_never_panic(attributes in any_json(), patched in any_json()) {
        let mut document = v3::base();
        document["attributes"] = json!({"a": attributes});
        let array = v3_array(&document);
        if let Ok(changes) = NodePatch::parse(bytes(&json!({"attributes": {"a": patched}}))) {
            let changed = changes.apply_to_array(&array).unwrap();
            let read = v3_text(changed.document.to_bytes());
            let again = changes.apply_to_array(&read).unwrap();
            prop_assert_eq!(&again.document, &read.document);
            prop_assert_eq!(again, changed);
        }
    }
}

/// A merge patch could not say what becomes of such a member.
#[test]
fn names_with_lone_surrogates_are_rejected() {
    for patch in [r#"{"attributes": {"\ud800": 1}}"#, r#"{"attributes": {"a": [{"\ud800": 1}]}}"#] {
        assert_eq!(NodePatch::parse(patch).unwrap_err().pointer, "/attributes");
    }
    let patch = NodePatch::parse(r#"{"attributes": {"a": "\ud800"}}"#).unwrap();
    assert_eq!(patch.attributes.unwrap().as_str(), r#"{"a": "\ud800"}"#);
}
