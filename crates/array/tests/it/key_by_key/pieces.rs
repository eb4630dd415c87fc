//! Updates of several documents, one after the other.

use serde_json::{Value, json};
use zarrd_array::NodeError;
use zarrd_meta::Dialect;
use zarrd_store::{Guarantees, StoreError};

use super::fake_store::{BUCKET, Engine, Event, FOLDER, array};

async fn stored(engine: &Engine, key: &str) -> Value {
    serde_json::from_slice(&engine.store.value(key).await.unwrap()).unwrap()
}

/// The documents that were changed, in order.
fn changed_documents(engine: &Engine) -> Vec<String> {
    let mut changed = engine.store.take_changed();
    changed.retain(|key| !key.contains(".zarrd"));
    changed
}

fn is_unsupported(refused: &Result<impl Sized, NodeError>) -> bool {
    matches!(refused, Err(NodeError::Store(StoreError::Unsupported { .. })))
}

#[tokio::test]
async fn attributes_come_before_the_shape() {
    for guarantees in [FOLDER, BUCKET] {
        let engine = Engine::new(guarantees);
        engine.create_as("/a", &array(4), Some(Dialect::V2)).await.unwrap();
        engine.store.take_changed();
        for (patch, fails) in [
            (json!({"shape": [8], "attributes": {"n": 2}}), "a/.zarray"),
            (json!({"shape": [3], "attributes": {"n": 3}}), "a/.zattrs"),
        ] {
            assert!(is_unsupported(&engine.patch("/a", &patch).await));
            assert!(changed_documents(&engine).is_empty());
            engine.store.before_change(fails, Event::Fail);
            let failed = engine.patch_piecewise("/a", &patch).await.unwrap_err();
            let is_part = matches!(&failed, NodeError::Store(StoreError::PartlyApplied { applied: 1, of: 2, .. }));
            assert_eq!(is_part, fails == "a/.zarray", "{failed:?}");
            engine.store.take_changed();
            engine.patch_piecewise("/a", &patch).await.unwrap();
            let expected: &[&str] = if is_part { &["a/.zarray"] } else { &["a/.zattrs", "a/.zarray"] };
            assert_eq!(changed_documents(&engine), expected, "what was changed already stays");
            assert_eq!(stored(&engine, "a/.zarray").await["shape"], patch["shape"]);
            assert_eq!(stored(&engine, "a/.zattrs").await["n"], patch["attributes"]["n"]);
        }
    }
}

/// An array with documents of v2 and v3, in chunks of four.
async fn with_two_documents(guarantees: Guarantees, v2: u64, v3: u64) -> Engine {
    let engine = Engine::new(guarantees);
    let mut document = array(v3);
    document["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    let other = json!({"zarr_format": 2, "shape": [v2], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null});
    engine.store.put("a/zarr.json", document.to_string()).await;
    engine.store.put("a/.zarray", other.to_string()).await;
    engine
}

async fn shapes(engine: &Engine) -> [Value; 2] {
    [stored(engine, "a/.zarray").await["shape"][0].clone(), stored(engine, "a/zarr.json").await["shape"][0].clone()]
}

#[tokio::test]
async fn larger_one_of_two_shapes_comes_first() {
    for guarantees in [FOLDER, BUCKET] {
        for (v2, v3, order) in [(8, 6, ["a/.zarray", "a/zarr.json"]), (6, 8, ["a/zarr.json", "a/.zarray"])] {
            for shape in [12_u64, 3] {
                let engine = with_two_documents(guarantees, v2, v3).await;
                let patch = json!({"shape": [shape]});
                assert!(is_unsupported(&engine.patch("/a", &patch).await));
                engine.store.take_changed();
                engine.store.before_change(order[1], Event::Fail);
                let failed = engine.patch_piecewise("/a", &patch).await.unwrap_err();
                assert!(matches!(failed, NodeError::Store(StoreError::PartlyApplied { .. })), "{failed:?}");
                assert_eq!(changed_documents(&engine), order[..1]);
                engine.patch_piecewise("/a", &patch).await.unwrap();
                assert_eq!(shapes(&engine).await, [json!(shape), json!(shape)]);
                engine.write("", vec![1; shape as usize]).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn attributes_of_two_documents_are_patched() {
    let engine = with_two_documents(BUCKET, 6, 6).await;
    let patch = json!({"attributes": {"n": 1}});
    assert!(is_unsupported(&engine.patch("/a", &patch).await));
    engine.patch_piecewise("/a", &patch).await.unwrap();
    assert_eq!(stored(&engine, "a/.zattrs").await["n"], 1);
    assert_eq!(stored(&engine, "a/zarr.json").await["attributes"]["n"], 1);
}
