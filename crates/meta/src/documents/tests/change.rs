use super::*;
use crate::ArrayModel;

fn v3_array(document: &Value) -> ArrayModel {
    match super::super::v3::node(&bytes(document)).unwrap() {
        super::super::v3::Node::Array(array) => *array,
        super::super::v3::Node::Group(_) => panic!("a group"),
    }
}

fn patch(patch: Value) -> Result<Changes, String> {
    Changes::parse(&bytes(&patch)).map_err(|error| error.to_string())
}

fn of_array(model: &ArrayModel, body: Value) -> Result<Value, String> {
    patch(body)?.of_array(model).map(Value::Object).map_err(|error| error.to_string())
}

#[test]
fn patches_that_are_none() {
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
        (json!({"a/b~": 1}), "/a~1b~0 is none of attributes, shape and dimension_names"),
    ] {
        assert_eq!(patch(body).unwrap_err(), reason);
    }
    let deep = format!("{{\"attributes\": {{\"a\": {}{}}}}}", "[".repeat(99), "]".repeat(99));
    assert_eq!(Changes::parse(deep.as_bytes()).unwrap_err().reason, "is nested deeper than 100 levels");
    assert_eq!(patch(json!({})), Ok(Changes::default()));
}

/// The test cases of RFC 7396 whose patch is an object.
#[test]
fn merging() {
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
        let Ok(super::super::v3::Node::Group(group)) = super::super::v3::node(&bytes(&document)) else { panic!() };
        let changed = Changes::parse(&bytes(&json!({"attributes": patch}))).unwrap().of_group(&group).unwrap();
        assert_eq!(changed["attributes"], result, "{target} {patch}");
    }
}

#[test]
fn arrays_of_v3() {
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
    let written = Changes { elements: ElementsChange::Some, ..Changes::default() };
    assert_eq!(written.of_array(&v3_array(&document)).unwrap().get("extensions"), None);
    for (body, reason) in [
        (json!({"shape": [1]}), "/shape has 1 entries for 2 dimensions"),
        (json!({"dimension_names": ["a"]}), "/dimension_names has 1 entries for 2 dimensions"),
    ] {
        assert_eq!(of_array(&array, body).unwrap_err(), reason);
    }
}

#[test]
fn views() {
    let mut array = v3_array(&v3::base());
    array.origin = vec![2, 3];
    assert_eq!(of_array(&array, json!({"shape": [10, 0]})).unwrap()["shape"], json!([12, 3]));
    assert_eq!(
        of_array(&array, json!({"shape": [1, MAX_EXTENT]})).unwrap_err(),
        "/shape/1 is larger than 9223372036854775804"
    );
}

#[test]
fn listed_chunks_end_somewhere() {
    let mut document = v3::base();
    document["shape"] = json!([5, 7]);
    document["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[2, 3]], 3]}});
    let array = v3_array(&document);
    assert_eq!(of_array(&array, json!({"shape": [6, 100]})).unwrap()["shape"], json!([6, 100]));
    assert_eq!(
        of_array(&array, json!({"shape": [7, 1]})).unwrap_err(),
        "/shape/0 is more than the array's chunks cover"
    );
}

#[test]
fn arrays_of_v2() {
    let zattrs = json!({"a": 1, "_ARRAY_DIMENSIONS": ["x", "y"]});
    let array = super::super::v2::array(&bytes(&v2::base()), Some(&bytes(&zattrs))).unwrap();
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
fn chunks_that_zarr_python_wrote_as_empty() {
    let mut document = v2::base();
    document["shape"] = json!([0, 7]);
    document["chunks"] = json!([0, 3]);
    let array = super::super::v2::array(&bytes(&document), None).unwrap();
    let grown = of_array(&array, json!({"shape": [4, 7]})).unwrap();
    assert_eq!(grown["chunks"], json!([1, 3]));
    assert_eq!(super::super::v2::array(&bytes(&grown), None).unwrap().grid, array.grid);
}

#[test]
fn filters_of_the_draft_are_no_attribute_to_change() {
    let mut document = draft::base();
    document["attributes"] = json!({"filters": [{"id": "delta", "dtype": "<f8"}], "a": 1});
    let array = super::super::draft::array(&bytes(&document), "a").unwrap();
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
fn groups() {
    let document = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {}}});
    let Ok(super::super::v3::Node::Group(group)) = super::super::v3::node(&bytes(&document)) else { panic!() };
    let changed = patch(json!({"attributes": {"a": 2}})).unwrap().of_group(&group).unwrap();
    let mut expected = document;
    expected["attributes"]["a"] = json!(2);
    assert_eq!(Value::Object(changed), expected);
    for (body, reason) in [
        (json!({"shape": [1]}), "/shape is not a group's to have"),
        (json!({"dimension_names": null}), "/dimension_names is not a group's to have"),
    ] {
        assert_eq!(patch(body).unwrap().of_group(&group).unwrap_err().to_string(), reason);
    }
    let bare = super::super::v2::group(b"{\"zarr_format\": 2}", Some(b"{\"n\": NaN}")).unwrap();
    let changed = patch(json!({"attributes": {"b": 1}})).unwrap().of_group(&bare).unwrap();
    assert_eq!(Value::Object(changed), json!({"zarr_format": 2, "attributes": {"n": "NaN", "b": 1}}));
}

proptest! {
    /// What is patched with any JSON is refused, or can still be read.
    #[test]
    fn any_patch(attributes in any_json(), patched in any_json()) {
        let mut document = v3::base();
        document["attributes"] = json!({"a": attributes});
        let array = v3_array(&document);
        if let Ok(changes) = Changes::parse(&bytes(&json!({"attributes": {"a": patched}}))) {
            let changed = changes.of_array(&array).unwrap();
            let read = v3_array(&Value::Object(changed));
            let again = changes.of_array(&read).unwrap();
            prop_assert_eq!(again, read.document);
        }
    }
}
