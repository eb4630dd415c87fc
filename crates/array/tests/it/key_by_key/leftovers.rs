//! Attributes of v2 that a declaration left that was cut.

use std::time::Duration;

use serde_json::{Value, json};
use zarrd_array::{ArrayError, NodeError};
use zarrd_meta::Dialect;

use super::fake_store::{BUCKET, Engine, FOLDER, array};

const QUARTER: Duration = Duration::from_secs(15 * 60);

fn with_attributes(attributes: &Value) -> Value {
    let mut described = array(4);
    described["attributes"] = attributes.clone();
    described
}

async fn stored(engine: &Engine, key: &str) -> Value {
    serde_json::from_slice(&engine.store.value(key).await.unwrap()).unwrap()
}

#[tokio::test]
async fn equal_attributes_stay() {
    for guarantees in [FOLDER, BUCKET] {
        let described = with_attributes(&json!({"n": 1}));
        let first = Engine::new(guarantees);
        first.create_as("/a", &described, Some(Dialect::V2)).await.unwrap();
        let left = first.store.value("a/.zattrs").await.unwrap();
        let engine = Engine::new(guarantees);
        engine.store.put("a/.zattrs", left).await;
        let created = engine.create_as("/a", &described, Some(Dialect::V2)).await.unwrap();
        assert_eq!(engine.store.take_changed(), ["a/.zarray"]);
        let found = engine.patch("/a", &json!({})).await.unwrap();
        assert_eq!(created.node.info.version, found.version);
    }
}

#[tokio::test]
async fn other_attributes_are_replaced_once_they_are_old() {
    for (attributes, expected) in [(json!({"n": 1}), json!({"n": 1})), (json!({}), json!({}))] {
        for guarantees in [FOLDER, BUCKET] {
            let engine = Engine::new(guarantees);
            engine.store.put("a/.zattrs", r#"{"old": 1}"#).await;
            let described = with_attributes(&attributes);
            let young = engine.create_as("/a", &described, Some(Dialect::V2)).await;
            let is_conflict = matches!(&young, Err(NodeError::Array(ArrayError::TooManyConflicts { .. })));
            assert!(is_conflict, "{:?}", young.err());
            assert_eq!(engine.store.keys().await, ["a/.zattrs"]);
            if guarantees == FOLDER {
                // Its times are those of this machine.
                continue;
            }
            engine.store.advance(QUARTER);
            engine.create_as("/a", &described, Some(Dialect::V2)).await.unwrap();
            assert_eq!(engine.store.keys().await, ["a/.zarray", "a/.zattrs"]);
            assert_eq!(stored(&engine, "a/.zattrs").await, expected);
        }
    }
}

#[tokio::test]
async fn attributes_of_a_node_are_not_replaced() {
    let engine = Engine::new(BUCKET);
    engine.create_as("/a", &with_attributes(&json!({"old": 1})), Some(Dialect::V2)).await.unwrap();
    engine.store.advance(QUARTER);
    let refused = engine.create_as("/a", &with_attributes(&json!({"n": 1})), Some(Dialect::V2)).await;
    assert!(matches!(refused, Err(NodeError::Rejected(_))));
    assert_eq!(stored(&engine, "a/.zattrs").await, json!({"old": 1}));
}
