//! The number of keys that operations look at.

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};

use crate::{
    lab::{v2_array, v2_group, v3_array, v3_group},
    racing::Intruded,
};

fn members(count: usize, member: &Value) -> Value {
    Value::Object((0..count).map(|number| (format!("n{number}"), member.clone())).collect::<Map<_, _>>())
}

/// A patch of a group depends on its own documents, those of its twin and consolidated metadata above, however many nodes are below.
#[tokio::test]
async fn a_patch_looks_at_nothing_below_a_group() {
    for group in [v3_group(&members(300, &v3_array(&[1]))), v2_group(&members(300, &v2_array(&[1])))] {
        let (lab, store) = Intruded::lab();
        lab.declare("/up/g", &group).await.unwrap();
        let before = (store.pages.load(Relaxed), store.looked_up.load(Relaxed));
        lab.patch("/up/g", &json!({"attributes": {"n": 1}})).await.unwrap();
        assert_eq!(store.pages.load(Relaxed) - before.0, 0);
        let looked_up = store.looked_up.load(Relaxed) - before.1;
        assert!(looked_up <= 40, "{looked_up} keys were looked up");
        assert_eq!(lab.all("/up/g").await["attributes"], json!({"n": 1}));
    }
}
