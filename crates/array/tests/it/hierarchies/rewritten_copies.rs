//! Copies of arrays whose chunks the other dialect does not have: in shards, or of different shapes.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime;
use zarrd_array::{ConvertOptions, ExistingDocuments, LossPolicy, NodeError, NodeRejection, Options};
use zarrd_meta::{
    Dialect,
    selection::{DimensionSelection, ReadRequest},
};
use zarrd_store::MemoryStore;

use crate::{
    common::{TestArray, bytes, selection, sharded},
    hierarchies::test_store::{TestStore, path, v3_array, v3_group},
    write::case,
};

fn to_copy(dialect: Dialect, losses: LossPolicy) -> ConvertOptions {
    ConvertOptions { dialect, target: Some(path("/copy")), losses, existing: ExistingDocuments::Keep }
}

/// An array with shards of 4 × 4 elements that have chunks of 2 × 2.
fn sharded_array(shape: &[u64]) -> Value {
    let mut array = v3_array(shape);
    array["chunk_grid"] = json!({"name": "regular", "configuration": {"chunk_shape": [4, 4]}});
    array["codecs"] = json!([sharded(&[2, 2], &json!([bytes("little")]), "end")]);
    array
}

fn irregular_array(lengths: &[u64]) -> Value {
    let mut array = v3_array(&[lengths.iter().sum()]);
    array["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [lengths]}});
    array
}

async fn write(store: &TestStore, at: &str, range: &[DimensionSelection], elements: Vec<u8>) {
    let write =
        store.arrays.write(&path(at), None, &selection(range), zarrd_store::Precondition::none()).await.unwrap();
    let body = futures::StreamExt::boxed(futures::stream::iter([Ok(bytes::Bytes::from(elements))]));
    write.execute(zarrd_array::ElementSource::Fixed(body)).await.unwrap();
}

async fn read(store: &TestStore, at: &str) -> Vec<u8> {
    let all = ReadRequest::Select(selection(&[]));
    let read = store.arrays.read(&path(at), None, &all, 1 << 20).await.unwrap();
    let pieces: Vec<_> = futures::TryStreamExt::try_collect(read.into_stream()).await.unwrap();
    let bytes = pieces.into_iter().map(|piece| match piece {
        zarrd_codec::Elements::Fixed(bytes) => bytes,
        zarrd_codec::Elements::Variable(_) => panic!("elements have one byte"),
    });
    bytes.collect::<Vec<_>>().concat()
}

fn range(start: u64, len: u64) -> DimensionSelection {
    DimensionSelection::Range { start, step: 1, len }
}

#[tokio::test]
async fn chunks_of_shards_are_stored_by_themselves() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({"x": sharded_array(&[6, 7]), "y": v3_array(&[3])}))).await.unwrap();
    write(&store, "/g/x", &[range(3, 3), range(0, 3)], (1..=9).collect()).await;
    write(&store, "/g/y", &[range(2, 1)], vec![5]).await;
    let report = store.copy("/g", "/copy", Dialect::V2).await.unwrap();
    // The empty chunks of the shards are missing in the copy.
    let chunks: Vec<_> =
        store.keys().await.into_iter().filter(|key| key.starts_with("copy/x/") && !key.contains("/.")).collect();
    assert_eq!(chunks, ["copy/x/1.0", "copy/x/1.1", "copy/x/2.0", "copy/x/2.1"]);
    assert_eq!((report.nodes, report.chunks), (3, 5));
    let losses: Vec<_> = report.losses.iter().map(|(path, loss)| format!("{path} {}", loss.pointer)).collect();
    assert!(losses.contains(&"/g/x /codecs/0".to_owned()), "{losses:?}");
    for array in ["x", "y"] {
        assert_eq!(read(&store, &format!("/copy/{array}")).await, read(&store, &format!("/g/{array}")).await);
    }
}

#[tokio::test]
async fn only_chunks_below_stored_ones_are_written() {
    let store = TestStore::new();
    let extent = 1 << 40;
    store.declare("/x", &sharded_array(&[extent, extent])).await.unwrap();
    write(&store, "/x", &[range(1 << 39, 2), range(0, 2)], vec![1, 2, 3, 4]).await;
    let report = store.copy("/x", "/copy", Dialect::V2).await.unwrap();
    assert_eq!(report.chunks, 1);
    let mut wide = irregular_array(&[1, 3, 1, 2]);
    wide["shape"] = json!([7]);
    store.declare("/y", &wide).await.unwrap();
    write(&store, "/y", &[range(4, 1)], vec![9]).await;
    let options = ConvertOptions { target: Some(path("/other")), ..to_copy(Dialect::V2, LossPolicy::Allow) };
    let report = store.nodes.convert(&path("/y"), None, &options).await.unwrap();
    assert_eq!((report.chunks, read(&store, "/other").await), (1, vec![0, 0, 0, 0, 9, 0, 0]));
    assert!(store.keys().await.contains(&"other/1".to_owned()));
}

#[tokio::test]
async fn losses_can_be_refused() {
    let store = TestStore::new();
    store.declare("/x", &sharded_array(&[4, 4])).await.unwrap();
    let before = store.keys().await;
    let refused = store.nodes.convert(&path("/x"), None, &to_copy(Dialect::V2, LossPolicy::Reject)).await;
    assert!(matches!(refused, Err(NodeError::Rejected(NodeRejection::LossyConversion { .. }))), "{refused:?}");
    assert_eq!(store.keys().await, before);
}

#[tokio::test]
async fn damaged_shard_fails_the_copy_which_leaves_nothing() {
    let store = TestStore::new();
    store.declare("/x", &sharded_array(&[8, 4])).await.unwrap();
    write(&store, "/x", &[range(0, 4), range(0, 4)], vec![1; 16]).await;
    store.set("x/c/1/0", vec![0; 40]).await;
    let before = store.keys().await;
    let failed = store.copy("/x", "/copy", Dialect::V2).await.unwrap_err();
    assert!(failed.to_string().contains("x/c/1/0"), "{failed}");
    assert_eq!(store.keys().await, before);
}

#[tokio::test]
async fn shards_stay_in_place_conversions_unconvertible() {
    let store = TestStore::new();
    let mut array = sharded_array(&[4, 4]);
    array["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    store.declare("/x", &array).await.unwrap();
    let failed = store.convert("/x", Dialect::V2).await.unwrap_err();
    assert!(failed.to_string().contains("makes shards"), "{failed}");
    let declared = store.declare_as("/y", &sharded_array(&[4, 4]), Dialect::V2).await.unwrap_err();
    assert!(declared.to_string().contains("makes shards"), "{declared}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn copies_have_the_elements_of_the_original(case in case(), to_draft in any::<bool>()) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let store = Arc::new(MemoryStore::new());
            crate::common::set(&store, "a/zarr.json", case.document.to_string().into_bytes()).await;
            let options = Options { slab_memory: case.assembly, ..Options::default() };
            let array = TestArray::over(store.clone(), options).await;
            for write in &case.writes {
                let region = array.region(&write.selection).await;
                let count = region.shape().iter().product::<u64>() as usize;
                let elements = array.elements(write.seed, count);
                region.execute(array.incoming(&elements, write.part)).await.unwrap();
            }
            let dialect = if to_draft { Dialect::Draft } else { Dialect::V2 };
            if to_draft {
                crate::common::set(&store, "zarr.json", crate::hierarchies::test_store::entry_point().to_string().into_bytes()).await;
            }
            let copied = array.arrays.hierarchies().convert(&path("/a"), None, &to_copy(dialect, LossPolicy::Allow)).await;
            prop_assert!(copied.is_ok(), "{copied:?}");
            // Arrays of v2 have no views.
            let shape: Vec<u64> = serde_json::from_value(case.document["shape"].clone()).unwrap();
            let view: Vec<_> = shape.iter().zip(&case.view).map(|(all, seen)| range(all - seen, *seen)).collect();
            let view = if to_draft { vec![] } else { view };
            let original = array.read(&selection(&[]), 1 << 30).await;
            prop_assert_eq!(array.read_at(&path("/copy"), &selection(&view), 1 << 30).await, original);
            Ok(())
        })?;
    }
}
