//! Raw clients of v2 and of v3 and the engine change one array in turns, compared with a model of its elements.
//!
//! A step of a raw client is one operation of zarr-python, which may be cut after any of its requests. Whatever the order,
//! no element changes that a step was not told to change, and what could destroy elements is refused.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use serde_json::json;
use tokio::runtime;
use zarrd_meta::{Dialect, relation::DialectRelation};

use crate::hierarchies::{
    test_store::TestStore,
    two_dialects::{
        NAMED, append, change_document, make_both, node_differs, patch, read, shapes, snapshot, write, write_differs,
    },
};

/// The length of chunks.
const CHUNK: usize = 2;
/// The largest extent to which a step grows the array.
const MAX_EXTENT: usize = 24;
/// The number of sequences of steps, and of steps in each.
const SEQUENCES: u32 = 250;
const STEPS: usize = 16;

#[derive(Clone, Debug)]
enum Step {
    /// A raw client grows its document, and then writes the new elements chunk by chunk; `cut` requests are made.
    RawAppend {
        key: &'static str,
        count: usize,
        value: u8,
        cut: usize,
    },
    /// A raw client writes an element of its array.
    RawWrite {
        key: &'static str,
        at: usize,
        value: u8,
    },
    /// A raw client shrinks its document, and then erases the chunks outside; `cut` requests are made.
    RawShrink {
        key: &'static str,
        extent: usize,
        cut: usize,
    },
    /// A raw client changes the layout in its document, or leaves it unreadable, until the engine was asked.
    RawLayout {
        key: &'static str,
        unreadable: bool,
    },
    Append {
        dialect: Option<Dialect>,
        count: usize,
        value: u8,
    },
    Write {
        dialect: Option<Dialect>,
        start: usize,
        len: usize,
        value: u8,
    },
    Resize {
        dialect: Option<Dialect>,
        extent: usize,
    },
    Attributes {
        dialect: Option<Dialect>,
        value: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let key = || select(vec!["a/.zarray", "a/zarr.json"]);
    let named = || select(NAMED.to_vec());
    prop_oneof![
        4 => (key(), 1..5_usize, 1..=255_u8, 0..5_usize)
            .prop_map(|(key, count, value, cut)| Step::RawAppend { key, count, value, cut }),
        2 => (key(), 0..MAX_EXTENT, any::<u8>()).prop_map(|(key, at, value)| Step::RawWrite { key, at, value }),
        2 => (key(), 0..MAX_EXTENT, 0..4_usize).prop_map(|(key, extent, cut)| Step::RawShrink { key, extent, cut }),
        1 => (key(), any::<bool>()).prop_map(|(key, unreadable)| Step::RawLayout { key, unreadable }),
        4 => (named(), 1..5_usize, any::<u8>())
            .prop_map(|(dialect, count, value)| Step::Append { dialect, count, value }),
        3 => (named(), 0..MAX_EXTENT, 1..6_usize, any::<u8>())
            .prop_map(|(dialect, start, len, value)| Step::Write { dialect, start, len, value }),
        1 => (named(), 0..MAX_EXTENT).prop_map(|(dialect, extent)| Step::Resize { dialect, extent }),
        1 => (named(), any::<u8>()).prop_map(|(dialect, value)| Step::Attributes { dialect, value }),
    ]
}

/// The array and the elements that it should have.
struct Model {
    store: TestStore,
    /// The elements of stored and missing chunks, at least up to the larger shape.
    elements: Vec<u8>,
    /// The number of changes that were refused.
    refused: usize,
}

impl Model {
    async fn new() -> Self {
        let store = TestStore::new();
        make_both(&store, &[3]).await;
        Self { store, elements: vec![0; 3], refused: 0 }
    }

    async fn extent_of(&self, key: &str) -> usize {
        self.store.document(key).await["shape"][0].as_u64().unwrap() as usize
    }

    /// The larger one of both shapes.
    async fn extent(&self) -> usize {
        self.extent_of("a/.zarray").await.max(self.extent_of("a/zarr.json").await)
    }

    async fn chunks(&self) -> BTreeMap<usize, Vec<u8>> {
        let mut chunks = BTreeMap::new();
        for (key, value) in snapshot(&self.store).await {
            if let Some(index) = key.strip_prefix("a/").and_then(|name| name.parse().ok()) {
                chunks.insert(index, value);
            }
        }
        chunks
    }

    /// The elements as stored, up to an extent.
    async fn stored(&self, extent: usize) -> Vec<u8> {
        let chunks = self.chunks().await;
        let element = |at: usize| chunks.get(&(at / CHUNK)).map_or(0, |chunk| chunk[at % CHUNK]);
        (0..extent).map(element).collect()
    }

    /// Writes an element as a raw client does: it reads the chunk, and writes all of it.
    async fn write_raw(&mut self, at: usize, value: u8) {
        let mut chunk = self.chunks().await.remove(&(at / CHUNK)).unwrap_or_else(|| vec![0; CHUNK]);
        chunk[at % CHUNK] = value;
        self.store.set(&format!("a/{}", at / CHUNK), chunk).await;
        if let Some(element) = self.elements.get_mut(at) {
            *element = value;
        }
    }

    async fn step(&mut self, step: &Step) {
        let before = self.extent().await;
        self.elements = self.stored(before).await;
        match step {
            Step::RawAppend { key, count, value, cut } => {
                let start = self.extent_of(key).await;
                let end = start + count;
                if end > MAX_EXTENT || *cut == 0 {
                    return;
                }
                change_document(&self.store, key, &[("shape", json!([end]))]).await;
                self.elements = self.stored(end.max(before)).await;
                for at in (start..end).take(cut - 1) {
                    self.write_raw(at, *value).await;
                }
            }
            Step::RawWrite { key, at, value } => {
                if *at < self.extent_of(key).await {
                    self.write_raw(*at, *value).await;
                }
            }
            Step::RawShrink { key, extent, cut } => {
                if *extent >= self.extent_of(key).await || *cut == 0 {
                    return;
                }
                change_document(&self.store, key, &[("shape", json!([extent]))]).await;
                let outside = self.chunks().await.into_keys().filter(|chunk| chunk * CHUNK >= *extent);
                for chunk in outside.take(cut - 1) {
                    self.store.erase_key(&format!("a/{chunk}")).await;
                }
                // Who erases a chunk loses its elements, whatever the other document says.
                self.elements = self.stored(self.extent().await).await;
            }
            Step::RawLayout { key, unreadable } => self.refuse(key, *unreadable).await,
            Step::Append { dialect, count, value } => {
                if before + count <= MAX_EXTENT {
                    append(&self.store, *dialect, *count as u64, *value).await.unwrap();
                    self.elements.extend(vec![*value; *count]);
                    self.assert_shapes(before + count).await;
                }
            }
            Step::Write { dialect, start, len, value } => {
                let end = (start + len).min(before);
                if *start < end {
                    write(&self.store, *dialect, &format!("{start}:{end}"), *value).await.unwrap();
                    self.elements[*start..end].fill(*value);
                    self.assert_shapes(before).await;
                }
            }
            Step::Resize { dialect, extent } => {
                patch(&self.store, *dialect, &json!({"shape": [extent]})).await.unwrap();
                self.elements.truncate(*extent);
                self.assert_shapes(*extent).await;
            }
            Step::Attributes { dialect, value } => {
                patch(&self.store, *dialect, &json!({"attributes": {"n": value}})).await.unwrap();
                self.assert_shapes(before).await;
            }
        }
        let stored = self.stored(self.elements.len()).await;
        assert_eq!(stored, self.elements, "{step:?}");
    }

    async fn assert_shapes(&self, extent: usize) {
        assert_eq!(shapes(&self.store).await, [json!([extent]), json!([extent])]);
        for dialect in NAMED {
            assert_eq!(read(&self.store, dialect).await.unwrap(), self.stored(extent).await);
        }
    }

    /// Fails unless each change is refused while the document with a key describes the chunks differently, or cannot be
    /// read.
    async fn refuse(&mut self, key: &str, unreadable: bool) {
        let document = self.store.stored(key).await;
        let relation = if unreadable { DialectRelation::Unreadable } else { DialectRelation::Layout };
        match (unreadable, key) {
            (true, _) => self.store.set(key, "{").await,
            (false, "a/.zarray") => change_document(&self.store, key, &[("dtype", json!("|i1"))]).await,
            (false, _) => change_document(&self.store, key, &[("data_type", json!("int8"))]).await,
        }
        let before = snapshot(&self.store).await;
        // The document that can be read names the node.
        let dialect = Some(if key == "a/.zarray" { Dialect::V3 } else { Dialect::V2 });
        assert!(write_differs(append(&self.store, dialect, 1, 9).await, relation));
        assert!(write_differs(write(&self.store, dialect, "...", 9).await, relation));
        assert!(node_differs(patch(&self.store, dialect, &json!({"shape": [1]})).await, relation));
        assert!(node_differs(patch(&self.store, dialect, &json!({"attributes": {"n": 1}})).await, relation));
        assert_eq!(snapshot(&self.store).await, before);
        self.store.set(key, document).await;
        self.refused += 4;
    }
}

#[test]
fn nothing_acknowledged_is_lost_between_raw_clients_and_the_engine() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: SEQUENCES, ..ProptestConfig::default() });
    let refused = std::cell::Cell::new(0);
    let run = |steps: Vec<Step>| {
        runtime.block_on(async {
            let mut model = Model::new().await;
            for step in &steps {
                model.step(step).await;
            }
            refused.set(refused.get() + model.refused);
        });
        Ok(())
    };
    runner.run(&vec(step(), STEPS), run).unwrap();
    assert!(refused.get() > 0, "destroying changes were among the steps");
}
