//! Documents that writers make, and documents that are wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    codecs::CodecSpec,
    json::{MAX_DEPTH, MAX_DOCUMENT_DEPTH},
    limits::MAX_EXTENT,
};

mod draft;
mod patch;
mod v2;
mod v3;
mod write;

/// The bytes of a document.
fn bytes(document: &Value) -> Bytes {
    document.to_string().into()
}

/// The value that a text is.
fn value(json: &Json) -> Value {
    json.to_value().unwrap()
}

/// A document with another value in place of one of its members; members that it has not are added.
fn with(document: &Value, path: &[&str], value: Value) -> Bytes {
    let mut document = document.clone();
    let mut place = &mut document;
    for name in path {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[*name],
        };
    }
    *place = value;
    bytes(&document)
}

/// A document without one of its members.
fn without(document: &Value, name: &str) -> Bytes {
    let mut document = document.clone();
    document.as_object_mut().unwrap().remove(name).unwrap();
    bytes(&document)
}

/// The codecs as text: `transpose {"order":[1,0]}`.
fn chain(codecs: &[CodecSpec]) -> Vec<String> {
    let codec = |codec: &CodecSpec| match codec.configuration.is_empty() {
        true => codec.full_name(),
        false => format!("{} {}", codec.full_name(), json!(codec.configuration)),
    };
    codecs.iter().map(codec).collect()
}

/// The extents and chunk shapes that no dialect has, as values of a two-dimensional shape, and what is said of them.
fn wrong_shapes() -> Vec<(Value, &'static str)> {
    vec![
        (json!(5), " is not a list"),
        (json!([1, -2]), "/1 is negative"),
        (json!([1.0, 2]), "/0 is not an integer from 0 to 9223372036854775807"),
        (json!(["1", 2]), "/0 is not an integer from 0 to 9223372036854775807"),
        (json!([true, 2]), "/0 is not an integer from 0 to 9223372036854775807"),
        (json!([1e30, 2]), "/0 is not an integer from 0 to 9223372036854775807"),
        (json!([MAX_EXTENT + 1, 2]), "/0 is larger than 9223372036854775807"),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "zarr_format",
        "node_type",
        "shape",
        "chunks",
        "dtype",
        "compressor",
        "filters",
        "order",
        "fill_value",
        "id",
        "name",
        "configuration",
        "chunk_grid",
        "chunk_shape",
        "chunk_shapes",
        "kind",
        "data_type",
        "type",
        "extension",
        "extensions",
        "codecs",
        "codec",
        "must_understand",
        "storage_transformers",
        "chunks_per_shard",
        "attributes",
        "metadata",
    ];
    let texts = [
        "array",
        "group",
        "C",
        "F",
        "<f4",
        "|O",
        "float32",
        "regular",
        "rectilinear",
        "inline",
        "default",
        "v2",
        "/",
        ".",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0_u64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let name = prop_oneof![prop::sample::select(names.to_vec()).prop_map(str::to_owned), "\\PC{0,6}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..8).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Reads a document as each kind that there is.
fn read_as_everything(document: &Bytes) {
    let again = || document.clone();
    let _ = super::v2::array(again(), Some(again()));
    let _ = super::v2::group(again(), Some(again()));
    let _ = super::v2::consolidated(again());
    let _ = super::v3::node(again());
    let _ = super::draft::entry_point(again());
    let _ = super::draft::is_entry_point(document);
    let _ = super::draft::array(again(), "a");
    let _ = super::draft::group(again());
}

proptest! {
    #[test]
    fn random_json_never_panics(document in any_json()) {
        read_as_everything(&bytes(&document));
    }

    /// Documents that are right but for one member, or two.
    #[test]
    fn random_members_never_panic(
        base in prop::sample::select(vec![v2::base(), v3::base(), draft::base()]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..3),
    ) {
        let mut document = base;
        let members = document.as_object_mut().unwrap();
        for (index, value) in changes {
            let name = index.get(&members.keys().cloned().collect::<Vec<_>>()).clone();
            members.insert(name, value);
        }
        read_as_everything(&bytes(&document));
    }

    /// Unknown members are preserved everywhere.
    #[test]
    fn unknown_members_are_preserved(value in any_json()) {
        let document = with(&v2::base(), &["unheard-of"], value.clone());
        prop_assert_eq!(super::v2::array(document.clone(), None).unwrap().document.to_bytes(), document);
        let document = with(&draft::base(), &["unheard-of"], value.clone());
        prop_assert_eq!(super::draft::array(document.clone(), "").unwrap().document.to_bytes(), document);
        let document = with(&v3::base(), &["unheard-of"], json!({"must_understand": false, "what": value}));
        let super::v3::Node::Array(array) = super::v3::node(document.clone()).unwrap() else { panic!() };
        prop_assert_eq!(array.document.to_bytes(), document);
    }
}

#[test]
fn random_bytes_never_panic() {
    for bytes in [&b""[..], b"{", b"null", b"\xff\xfe", b"{\"zarr_format\":3", b"[]"] {
        read_as_everything(&Bytes::from_static(bytes));
    }
}

#[test]
fn too_many_dimensions_are_rejected() {
    for (base, chunks) in [(v2::base(), "/shape"), (v3::base(), "/shape"), (draft::base(), "/shape")] {
        let document = with(&base, &["shape"], json!(vec![1; 5000]));
        let errors = [
            super::v2::array(document.clone(), None).err(),
            super::v3::node(document.clone()).err(),
            super::draft::array(document, "").err(),
        ];
        let expected = format!("{chunks} has 5000 dimensions, more than 64");
        assert!(errors.iter().flatten().any(|error| error.to_string() == expected), "{errors:?}");
    }
}

/// As zarr-python 3 reads them, and as Windows' editors write them.
#[test]
fn documents_may_begin_with_a_byte_order_mark() {
    let marked = |document: &Value| Bytes::from(format!("\u{feff}{document}\n"));
    let attributes = Some(marked(&json!({"a": 1})));
    let array = super::v2::array(marked(&v2::base()), attributes.clone()).unwrap();
    assert_eq!((array.attributes.as_str(), array.document.to_padded_bytes()), (r#"{"a":1}"#, marked(&v2::base())));
    assert_eq!(
        super::v2::group(marked(&json!({"zarr_format": 2})), attributes).unwrap().attributes.as_str(),
        r#"{"a":1}"#
    );
    super::v2::consolidated(marked(&json!({"zarr_consolidated_format": 1, "metadata": {}}))).unwrap();
    super::v3::node(marked(&v3::base())).unwrap();
    super::draft::array(marked(&draft::base()), "a").unwrap();
    let changes = NodePatch::parse(r#"{"attributes": {"a": 2}, "shape": [6, 7]}"#).unwrap();
    let changed = changes.apply_to_array(&array).unwrap();
    assert_eq!(changed.attributes.unwrap().to_padded_bytes(), marked(&json!({"a": 2})));
    assert_eq!(
        changed.document.to_padded_bytes(),
        String::from_utf8(marked(&v2::base()).into()).unwrap().replace("[5,7]", "[6,7]").as_bytes()
    );
}

#[test]
fn attributes_may_be_nested_as_deeply_as_documents() {
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let document = |member: &str, levels| {
        v3::base().to_string().replacen('{', &format!("{{\"{member}\": {{\"deep\": {}}},", nested(levels)), 1)
    };
    let read = |text: String| super::v3::node(text.replace(r#""attributes":{},"#, "").into_bytes());
    let super::v3::Node::Array(array) = read(document("attributes", MAX_DOCUMENT_DEPTH - 2)).unwrap() else { panic!() };
    assert_eq!(array.attributes.depth(), MAX_DOCUMENT_DEPTH - 1);
    let changed = NodePatch::parse(r#"{"attributes": {"a": 2}}"#).unwrap().apply_to_array(&array).unwrap();
    assert!(changed.document.is_equivalent(&changed.document.formatted()));
    let error = read(document("attributes", MAX_DOCUMENT_DEPTH - 1)).unwrap_err().to_string();
    assert!(error.starts_with("the document is not JSON: nested deeper than 1000 levels at line 1 column "), "{error}");
    let error = read(document("storage_transformers", MAX_DEPTH)).unwrap_err().to_string();
    assert_eq!(error, "/storage_transformers is nested deeper than 127 levels");
}
