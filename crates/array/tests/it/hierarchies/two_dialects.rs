//! Nodes with documents of v2 and v3 that disagree, because a program that knows one dialect changed its document.

use futures::StreamExt;
use serde_json::{Value, json};
use zarrd_array::{ArrayError, Depth, DialectsDiffer, ElementSource, NodeError, WriteError};
use zarrd_codec::Elements;
use zarrd_meta::{
    Dialect,
    documents::NodePatch,
    relation::DialectRelation,
    selection::{ReadRequest, Selection},
};
use zarrd_store::Precondition;

use crate::hierarchies::test_store::{TestStore, path, v2_array, v2_group, v3_array, v3_group};

/// Both dialects that a request may name, or none.
pub(crate) const NAMED: [Option<Dialect>; 3] = [None, Some(Dialect::V2), Some(Dialect::V3)];

/// A store with an array of ones at `/a`, in chunks of two, with documents of both dialects.
pub(crate) async fn array_of_both(extent: u64) -> TestStore {
    let store = TestStore::new();
    make_both(&store, &[extent]).await;
    write(&store, None, "...", 1).await.unwrap();
    store
}

pub(crate) async fn make_both(store: &TestStore, shape: &[u64]) {
    store.declare("/a", &v2_array(shape)).await.unwrap();
    store.convert("/a", Dialect::V3).await.unwrap();
}

pub(crate) async fn write(
    store: &TestStore,
    dialect: Option<Dialect>,
    select: &str,
    value: u8,
) -> Result<(), WriteError> {
    let selection = Selection::parse(select).unwrap();
    let write = store.arrays.write(&path("/a"), dialect, &selection, Precondition::none()).await?;
    write.execute(ElementSource::Scalar(vec![value])).await.map(|_| ())
}

pub(crate) async fn append(
    store: &TestStore,
    dialect: Option<Dialect>,
    count: u64,
    value: u8,
) -> Result<Vec<u64>, WriteError> {
    let append = store.arrays.append(&path("/a"), dialect, "0", Precondition::none()).await?;
    append.execute(Some(count), ElementSource::Scalar(vec![value])).await.map(|report| report.shape)
}

pub(crate) async fn patch(store: &TestStore, dialect: Option<Dialect>, patch: &Value) -> Result<(), NodeError> {
    let changes = NodePatch::parse(patch.to_string()).unwrap();
    store.nodes.patch(&path("/a"), dialect, &changes, &Precondition::none()).await.map(|_| ())
}

pub(crate) async fn read(store: &TestStore, dialect: Option<Dialect>) -> Result<Vec<u8>, ArrayError> {
    let request = ReadRequest::Select(Selection::default());
    let reading = store.arrays.read(&path("/a"), dialect, &request, u64::MAX).await?;
    let mut parts = std::pin::pin!(reading.into_stream());
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        match part? {
            Elements::Fixed(bytes) => all.extend_from_slice(&bytes),
            Elements::Variable(_) => panic!("the elements have a fixed size"),
        }
    }
    Ok(all)
}

/// The shapes in the documents of v2 and v3.
pub(crate) async fn shapes(store: &TestStore) -> [Value; 2] {
    [store.document("a/.zarray").await["shape"].clone(), store.document("a/zarr.json").await["shape"].clone()]
}

/// What a program does that knows one dialect: it changes members of its document.
pub(crate) async fn change_document(store: &TestStore, key: &str, members: &[(&str, Value)]) {
    let mut document = store.document(key).await;
    for (member, value) in members {
        document[member] = value.clone();
    }
    store.json(key, &document).await;
}

/// What a program does that appends one element of value 7 to five ones, by the document with a key.
async fn append_raw(store: &TestStore, key: &str) {
    change_document(store, key, &[("shape", json!([6]))]).await;
    store.set("a/2", [1, 7]).await;
}

fn differs(error: &ArrayError, relation: DialectRelation) -> bool {
    let keys = |DialectsDiffer { keys: (own, other), .. }: &DialectsDiffer| {
        let mut keys = [own.name().to_owned(), other.name().to_owned()];
        keys.sort_unstable();
        keys
    };
    matches!(error, ArrayError::DialectsDiffer(differ)
        if differ.relation == relation && keys(differ).iter().any(|key| key == "zarr.json") && keys(differ)[0] != keys(differ)[1])
}

pub(crate) fn write_differs<T>(result: Result<T, WriteError>, relation: DialectRelation) -> bool {
    match result {
        Err(WriteError::Array(error) | WriteError::Node(NodeError::Array(error))) => differs(&error, relation),
        _ => false,
    }
}

pub(crate) fn node_differs<T>(result: Result<T, NodeError>, relation: DialectRelation) -> bool {
    matches!(result, Err(NodeError::Array(error)) if differs(&error, relation))
}

#[tokio::test]
async fn append_continues_after_what_another_program_appended() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            let store = array_of_both(5).await;
            append_raw(&store, key).await;
            assert_eq!(append(&store, dialect, 2, 9).await.unwrap(), [8], "{key} {dialect:?}");
            assert_eq!(shapes(&store).await, [json!([8]), json!([8])], "{key} {dialect:?}");
            for dialect in NAMED {
                assert_eq!(read(&store, dialect).await.unwrap(), [1, 1, 1, 1, 1, 7, 9, 9], "{key} {dialect:?}");
            }
        }
    }
}

#[tokio::test]
async fn region_of_an_edge_chunk_keeps_what_another_program_appended() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            for select in ["4", "3:5", "0:5"] {
                let store = array_of_both(5).await;
                append_raw(&store, key).await;
                write(&store, dialect, select, 9).await.unwrap();
                let found = read(&store, Some(Dialect::V2)).await.unwrap();
                assert_eq!(found[4..], [9, 7], "{key} {dialect:?} {select}");
                assert_eq!(shapes(&store).await, [json!([6]), json!([6])], "{key} {dialect:?} {select}");
            }
        }
    }
}

#[tokio::test]
async fn full_write_has_the_larger_shape() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            let store = array_of_both(5).await;
            append_raw(&store, key).await;
            write(&store, dialect, "...", 9).await.unwrap();
            assert_eq!(read(&store, dialect).await.unwrap(), [9; 6], "{key} {dialect:?}");
            assert_eq!(shapes(&store).await, [json!([6]), json!([6])], "{key} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn shrink_of_another_program_is_undone_except_by_a_patch() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            let store = array_of_both(6).await;
            change_document(&store, key, &[("shape", json!([2]))]).await;
            write(&store, dialect, "0", 9).await.unwrap();
            assert_eq!(shapes(&store).await, [json!([6]), json!([6])], "{key} {dialect:?}");
            assert_eq!(read(&store, None).await.unwrap(), [9, 1, 1, 1, 1, 1], "{key} {dialect:?}");
            change_document(&store, key, &[("shape", json!([2]))]).await;
            patch(&store, dialect, &json!({"shape": [2]})).await.unwrap();
            assert_eq!(shapes(&store).await, [json!([2]), json!([2])], "{key} {dialect:?}");
            patch(&store, dialect, &json!({"shape": [6]})).await.unwrap();
            assert_eq!(read(&store, None).await.unwrap(), [9, 1, 0, 0, 0, 0], "{key} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn patch_of_attributes_gives_both_documents_the_larger_shape() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            let store = array_of_both(5).await;
            append_raw(&store, key).await;
            patch(&store, dialect, &json!({"attributes": {"n": 1}})).await.unwrap();
            assert_eq!(shapes(&store).await, [json!([6]), json!([6])], "{key} {dialect:?}");
            assert_eq!(read(&store, None).await.unwrap(), [1, 1, 1, 1, 1, 7], "{key} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn patch_to_a_shape_between_the_two_is_a_shrink() {
    for key in ["a/.zarray", "a/zarr.json"] {
        for dialect in NAMED {
            let store = array_of_both(4).await;
            change_document(&store, key, &[("shape", json!([10]))]).await;
            store.set("a/4", [7, 7]).await;
            patch(&store, dialect, &json!({"shape": [6]})).await.unwrap();
            assert_eq!(shapes(&store).await, [json!([6]), json!([6])], "{key} {dialect:?}");
            assert!(!store.keys().await.contains(&"a/4".to_owned()), "{key} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn patch_merges_into_each_document_and_keeps_other_differences() {
    for dialect in NAMED {
        let store = array_of_both(4).await;
        store.json("a/.zattrs", &json!({"two": 2, "both": 0})).await;
        change_document(&store, "a/zarr.json", &[("attributes", json!({"three": 3}))]).await;
        write(&store, dialect, "0", 9).await.unwrap();
        patch(&store, dialect, &json!({"attributes": {"both": 1}})).await.unwrap();
        assert_eq!(store.document("a/.zattrs").await, json!({"two": 2, "both": 1}), "{dialect:?}");
        assert_eq!(store.document("a/zarr.json").await["attributes"], json!({"three": 3, "both": 1}), "{dialect:?}");
    }
}

#[tokio::test]
async fn patch_of_a_group_merges_into_each_document() {
    for dialect in NAMED {
        let store = TestStore::new();
        store.declare("/a", &v2_group(&json!({}))).await.unwrap();
        store.convert("/a", Dialect::V3).await.unwrap();
        store.json("a/.zattrs", &json!({"two": 2})).await;
        patch(&store, dialect, &json!({"attributes": {"both": 1}})).await.unwrap();
        assert_eq!(store.document("a/.zattrs").await, json!({"two": 2, "both": 1}), "{dialect:?}");
        assert_eq!(store.document("a/zarr.json").await["attributes"], json!({"both": 1}), "{dialect:?}");
    }
}

/// Changes of one document after which a write could destroy what the other one has.
pub(crate) fn layouts() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let gzip = json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]);
    let grid = json!({"name": "regular", "configuration": {"chunk_shape": [3]}});
    vec![
        ("a/.zarray", vec![("dtype", json!("|i1"))]),
        ("a/.zarray", vec![("chunks", json!([4]))]),
        ("a/.zarray", vec![("fill_value", json!(3))]),
        ("a/.zarray", vec![("compressor", json!({"id": "zlib", "level": 1}))]),
        ("a/.zarray", vec![("filters", json!([{"id": "delta", "dtype": "|u1"}]))]),
        ("a/zarr.json", vec![("data_type", json!("int8"))]),
        ("a/zarr.json", vec![("chunk_grid", grid)]),
        ("a/zarr.json", vec![("fill_value", json!(3))]),
        ("a/zarr.json", vec![("codecs", gzip)]),
        ("a/zarr.json", vec![("fill_value", json!(3)), ("shape", json!([9]))]),
    ]
}

/// Fails unless each change of the array at `/a` is refused and changes nothing.
async fn assert_refused(store: &TestStore, relation: DialectRelation, case: &str) {
    let before = snapshot(store).await;
    for dialect in NAMED {
        let case = format!("{case} {dialect:?}");
        assert!(write_differs(write(store, dialect, "0", 9).await, relation), "{case}");
        assert!(write_differs(write(store, dialect, "...", 9).await, relation), "{case}");
        assert!(write_differs(append(store, dialect, 1, 9).await, relation), "{case}");
        for change in [json!({"shape": [9]}), json!({"shape": [1]}), json!({"attributes": {"n": 1}})] {
            let refused = patch(store, dialect, &change).await;
            assert!(node_differs(refused, relation), "{case} {change}");
        }
    }
    assert_eq!(snapshot(store).await, before, "{case}");
}

/// All keys with their values.
pub(crate) async fn snapshot(store: &TestStore) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for key in store.keys().await {
        let value = store.stored(&key).await;
        all.push((key, value));
    }
    all
}

#[tokio::test]
async fn change_of_two_layouts_is_refused() {
    for (key, members) in layouts() {
        let store = array_of_both(5).await;
        // A resolved array may be cached.
        write(&store, None, "0", 1).await.unwrap();
        change_document(&store, key, &members).await;
        assert_refused(&store, DialectRelation::Layout, &format!("{key} {members:?}")).await;
    }
}

#[tokio::test]
async fn read_of_two_layouts_names_its_dialect() {
    for (key, members) in layouts() {
        let store = array_of_both(5).await;
        read(&store, None).await.unwrap();
        change_document(&store, key, &members).await;
        let refused = read(&store, None).await;
        assert!(refused.is_err_and(|error| differs(&error, DialectRelation::Layout)), "{key} {members:?}");
        let other = if key == "a/.zarray" { Dialect::V3 } else { Dialect::V2 };
        assert_eq!(read(&store, Some(other)).await.unwrap(), [1; 5], "{key} {members:?}");
    }
}

#[tokio::test]
async fn read_of_another_shape_or_other_attributes_takes_v3() {
    let store = array_of_both(5).await;
    append_raw(&store, "a/.zarray").await;
    store.json("a/.zattrs", &json!({"n": 1})).await;
    assert_eq!(read(&store, None).await.unwrap().len(), 5);
    assert_eq!(read(&store, Some(Dialect::V2)).await.unwrap().len(), 6);
    store.set("a/.zarray", "{").await;
    assert_eq!(read(&store, None).await.unwrap().len(), 5);
}

/// Reads and descriptions have the relation of the two documents, also if the array was cached before it changed.
#[tokio::test]
async fn answers_have_the_relation_of_the_documents() {
    let relations = async |store: &TestStore| {
        let request = ReadRequest::Select(Selection::default());
        let read = store.arrays.read(&path("/a"), Some(Dialect::V3), &request, u64::MAX).await.unwrap();
        let node = store.nodes.node(&path("/a"), None, Depth::Levels(0), None).await.unwrap();
        assert_eq!(read.relation(), node.relation);
        node.relation
    };
    let store = array_of_both(5).await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Same));
    store.json("a/.zattrs", &json!({"n": 1})).await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Attributes));
    append_raw(&store, "a/.zarray").await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Shape));
    change_document(&store, "a/.zarray", &[("dtype", json!("|i1"))]).await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Layout));
    store.set("a/.zarray", "{").await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Unreadable));
    store.json("a/.zarray", &v2_array(&[5])).await;
    change_document(&store, "a/zarr.json", &[("chunk_key_encoding", json!({"name": "default"}))]).await;
    assert_eq!(relations(&store).await, Some(DialectRelation::Independent));
    store.erase_key("a/.zarray").await;
    assert_eq!(relations(&store).await, None);
}

#[tokio::test]
async fn change_beside_an_unreadable_document_is_refused() {
    for text in ["{", "[]", "", r#"{"zarr_format": 2}"#, r#"{"zarr_format": 2, "shape": [5], "chunks": [2]}"#] {
        let store = array_of_both(5).await;
        store.set("a/.zarray", text).await;
        let before = snapshot(&store).await;
        for dialect in [None, Some(Dialect::V3)] {
            let relation = DialectRelation::Unreadable;
            assert!(write_differs(write(&store, dialect, "0", 9).await, relation), "{text}");
            assert!(write_differs(append(&store, dialect, 1, 9).await, relation), "{text}");
            assert!(node_differs(patch(&store, dialect, &json!({"shape": [1]})).await, relation), "{text}");
        }
        assert_eq!(snapshot(&store).await, before, "{text}");
    }
    let store = array_of_both(5).await;
    store.set("a/zarr.json", "{").await;
    let relation = DialectRelation::Unreadable;
    assert!(write_differs(append(&store, Some(Dialect::V2), 1, 9).await, relation));
}

#[tokio::test]
async fn change_of_a_group_that_is_an_array_in_the_other_dialect_is_refused() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let store = TestStore::new();
        match dialect {
            Dialect::V2 => {
                store.declare("/a", &v2_group(&json!({}))).await.unwrap();
                store.json("a/zarr.json", &v3_array(&[4])).await;
            }
            _ => {
                store.declare("/a", &v3_group(&json!({}))).await.unwrap();
                store.json("a/.zarray", &v2_array(&[4])).await;
            }
        }
        let before = snapshot(&store).await;
        for named in NAMED {
            let refused = patch(&store, named, &json!({"attributes": {"n": 1}})).await;
            assert!(node_differs(refused, DialectRelation::Layout), "{dialect} {named:?}");
        }
        let array = if dialect == Dialect::V2 { Dialect::V3 } else { Dialect::V2 };
        assert!(write_differs(append(&store, Some(array), 1, 9).await, DialectRelation::Layout), "{dialect}");
        assert_eq!(snapshot(&store).await, before, "{dialect}");
    }
}

#[tokio::test]
async fn shapes_of_which_neither_contains_the_other_are_refused() {
    let store = TestStore::new();
    make_both(&store, &[4, 4]).await;
    write(&store, None, "...", 1).await.unwrap();
    change_document(&store, "a/.zarray", &[("shape", json!([6, 4]))]).await;
    change_document(&store, "a/zarr.json", &[("shape", json!([4, 6]))]).await;
    let before = snapshot(&store).await;
    for dialect in NAMED {
        assert!(write_differs(write(&store, dialect, "0,0", 9).await, DialectRelation::Shape), "{dialect:?}");
        assert!(write_differs(append(&store, dialect, 1, 9).await, DialectRelation::Shape), "{dialect:?}");
        let refused = patch(&store, dialect, &json!({"shape": [6, 6]})).await;
        assert!(node_differs(refused, DialectRelation::Shape), "{dialect:?}");
    }
    assert_eq!(snapshot(&store).await, before);
}

#[tokio::test]
async fn larger_shape_of_several_dimensions_is_adopted() {
    let store = TestStore::new();
    make_both(&store, &[4, 3]).await;
    write(&store, None, "...", 1).await.unwrap();
    // Another program appends a column, which shares the edge chunks.
    change_document(&store, "a/.zarray", &[("shape", json!([4, 4]))]).await;
    store.set("a/0.1", [1, 7, 1, 7]).await;
    store.set("a/1.1", [1, 7, 1, 7]).await;
    let selection = Selection::parse("0:2,2").unwrap();
    let write = store.arrays.write(&path("/a"), None, &selection, Precondition::none()).await.unwrap();
    write.execute(ElementSource::Scalar(vec![9])).await.unwrap();
    assert_eq!(read(&store, None).await.unwrap(), [1, 1, 9, 7, 1, 1, 9, 7, 1, 1, 1, 7, 1, 1, 1, 7]);
}

#[tokio::test]
async fn independent_arrays_are_written_alone() {
    let store = TestStore::new();
    store.json("a/.zarray", &v2_array(&[4])).await;
    store.json("a/zarr.json", &v3_array(&[2])).await;
    append(&store, Some(Dialect::V2), 2, 5).await.unwrap();
    append(&store, Some(Dialect::V3), 1, 6).await.unwrap();
    patch(&store, Some(Dialect::V2), &json!({"attributes": {"n": 1}})).await.unwrap();
    assert_eq!(shapes(&store).await, [json!([6]), json!([3])]);
    assert_eq!(read(&store, Some(Dialect::V2)).await.unwrap(), [0, 0, 0, 0, 5, 5]);
    assert_eq!(read(&store, Some(Dialect::V3)).await.unwrap(), [0, 0, 6]);
    assert_eq!(store.document("a/zarr.json").await["attributes"], json!({}));
}

#[tokio::test]
async fn chunk_of_fill_values_is_stored_if_the_dialects_disagree_on_missing_ones() {
    let store = array_of_both(4).await;
    // The missing value 9 of v2 is in its fill value, as xarray has it.
    change_document(&store, "a/.zarray", &[("fill_value", json!(9))]).await;
    change_document(&store, "a/zarr.json", &[("attributes", json!({"_FillValue": 9}))]).await;
    write(&store, None, "0:2", 0).await.unwrap();
    assert_eq!(read(&store, Some(Dialect::V2)).await.unwrap(), [0, 0, 1, 1]);
    write(&store, Some(Dialect::V2), "0:2", 9).await.unwrap();
    assert_eq!(read(&store, Some(Dialect::V3)).await.unwrap(), [9, 9, 1, 1]);
}

#[tokio::test]
async fn views_that_start_elsewhere_keep_their_elements() {
    let store = array_of_both(6).await;
    let offset = json!([{"name": "example.offset", "configuration": {"offset": [2]}, "must_understand": true}]);
    change_document(&store, "a/zarr.json", &[("extensions", offset)]).await;
    assert_eq!(append(&store, None, 2, 9).await.unwrap(), [6]);
    assert_eq!(shapes(&store).await, [json!([8]), json!([8])]);
    assert_eq!(append(&store, Some(Dialect::V2), 1, 8).await.unwrap(), [9]);
    assert_eq!(shapes(&store).await, [json!([9]), json!([9])]);
    assert_eq!(read(&store, None).await.unwrap(), [1, 1, 1, 1, 9, 9, 8]);
}

#[tokio::test]
async fn ways_out_make_the_dialects_agree() {
    for (key, members) in layouts() {
        let store = array_of_both(5).await;
        change_document(&store, key, &members).await;
        store.erase_key(key).await;
        append(&store, None, 1, 9).await.unwrap();
        assert_eq!(read(&store, None).await.unwrap(), [1, 1, 1, 1, 1, 9], "{key} {members:?}");
        let store = array_of_both(5).await;
        change_document(&store, key, &members).await;
        store.replace("/a", &v2_array(&[5])).await.unwrap();
        append(&store, None, 1, 9).await.unwrap();
        assert_eq!(read(&store, None).await.unwrap().last(), Some(&9), "{key} {members:?}");
    }
}
