//! Writes of elements.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use serde_json::json;
use tokio::time::timeout;
use zarrd_array::{ArrayError, NodeError, WriteError};
use zarrd_operations::NodeRejection;
use zarrd_store::{Conditions, Guarantees, StoreError};

use super::fake_store::{BUCKET, Engine, Event, FOLDER, Pause, array};

#[tokio::test]
async fn region_is_written() {
    for guarantees in [FOLDER, BUCKET] {
        let engine = Engine::with_array(guarantees, 10).await;
        let report = engine.write("2:9", vec![7; 7]).await.unwrap();
        assert_eq!((report.chunks_written, report.conflicts_retried, report.shape), (3, 0, vec![10]));
        assert_eq!(engine.read().await, [1, 1, 7, 7, 7, 7, 7, 7, 7, 1]);
        let mut changed = engine.store.take_changed();
        changed.sort();
        assert_eq!(changed, ["a/c/0", "a/c/1", "a/c/2"], "the document is not changed");
    }
}

#[tokio::test]
async fn only_the_chunk_that_another_program_changed_is_written_again() {
    let engine = Engine::with_array(FOLDER, 12).await;
    engine.store.before_change("a/c/0", Event::Set("a/c/0", vec![5; 4]));
    let report = engine.write("2:10", vec![7; 8]).await.unwrap();
    assert_eq!((report.chunks_written, report.conflicts_retried), (3, 1));
    assert_eq!(engine.read().await, [5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 1, 1]);
    let mut changed = engine.store.take_changed();
    changed.sort();
    assert_eq!(changed, ["a/c/0", "a/c/0", "a/c/1", "a/c/2"]);
}

#[tokio::test]
async fn document_that_changes_while_chunks_are_written_is_noticed() {
    let engine = Engine::with_array(FOLDER, 12).await;
    engine.store.before_change("a/c/1", Event::Set("a/zarr.json", array(12).to_string().into()));
    let failed = engine.write("0:8", vec![7; 8]).await.unwrap_err();
    let WriteError::PartlyWritten { written: 2, of: 2, ref source, .. } = failed else { panic!("{failed:?}") };
    assert!(source.is_conflict());
    assert!(matches!(&**source, WriteError::Store(StoreError::PreconditionFailed { key, .. })
        if key.as_str() == "a/zarr.json"));
    engine.write("0:8", vec![7; 8]).await.unwrap();
}

#[tokio::test]
async fn write_that_fails_in_the_middle_says_so_and_can_be_repeated() {
    let engine = Engine::with_array(FOLDER, 12).await;
    engine.store.before_change("a/c/2", Event::Fail);
    let failed = engine.write("", vec![7; 12]).await.unwrap_err();
    let WriteError::PartlyWritten { written: 2, of: 3, ref source, .. } = failed else { panic!("{failed:?}") };
    assert!(!source.is_conflict());
    assert_eq!(engine.read().await, [7, 7, 7, 7, 7, 7, 7, 7, 1, 1, 1, 1]);
    engine.write("", vec![7; 12]).await.unwrap();
    assert_eq!(engine.read().await, [7; 12]);
    engine.store.before_change("a/c/0", Event::Fail);
    let failed = engine.write("0:2", vec![8; 2]).await;
    assert!(matches!(failed, Err(WriteError::Store(StoreError::OutOfSpace))), "nothing was changed: {failed:?}");
}

fn document(len: u64, codecs: serde_json::Value) -> serde_json::Value {
    let mut document = array(len);
    document["codecs"] = codecs;
    document
}

/// An array of bytes in chunks of four with these codecs, full of ones.
async fn encoded_array(len: u64, codecs: serde_json::Value) -> Engine {
    let engine = Engine::new(BUCKET);
    engine.create("/a", &document(len, codecs)).await.unwrap();
    engine.write("", vec![1; usize::try_from(len).unwrap()]).await.unwrap();
    engine
}

fn gzip() -> serde_json::Value {
    json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}])
}

/// Inner chunks of two elements.
fn shards() -> serde_json::Value {
    json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": gzip(),
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}])
}

/// Two servers create an array with elements; the first waits before a change of a key.
#[tokio::test]
async fn of_two_creations_with_elements_one_stores_chunks() {
    for key in ["a/.zarrd/append", "a/c/1", "a/c/2", "a/zarr.json"] {
        let one = Engine::new(BUCKET);
        let two = Engine::over(one.store.clone(), BUCKET);
        let pause = Arc::new(Pause::default());
        one.store.before_change(key, Event::Pause(pause.clone()));
        // Chunks of the fill value are not stored, so that these two store different ones.
        let (ones, twos) = ([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2]);
        let is_first = key != "a/.zarrd/append";
        let (first, second) = tokio::join!(one.create_with(ones.to_vec()), async {
            let reached = timeout(Duration::from_secs(20), pause.reached.notified());
            reached.await.expect("the first creation changes the key");
            let second = two.create_with(twos.to_vec()).await;
            pause.resume.notify_one();
            second
        });
        let found = two.read().await;
        assert_eq!((first.is_ok(), second.is_ok()), (is_first, !is_first), "{key}: {first:?} {second:?}");
        assert_eq!(found, if is_first { ones } else { twos }, "{key}");
    }
}

#[tokio::test]
async fn creation_that_fails_frees_its_claim() {
    let engine = Engine::new(BUCKET);
    engine.store.put("a/other", "of another program").await;
    assert!(engine.create_with(vec![1; 8]).await.is_err());
    engine.erase("/a").await.unwrap();
    engine.store.before_change("a/c/1", Event::Fail);
    assert!(engine.create_with(vec![1; 8]).await.is_err());
    engine.erase("/a").await.unwrap();
    engine.create_with(vec![3; 8]).await.unwrap();
    assert_eq!(engine.read().await, [3; 8]);
    engine.append(vec![4]).await.unwrap();
    assert_eq!(engine.read().await, [3, 3, 3, 3, 3, 3, 3, 3, 4]);
}

#[tokio::test]
async fn corrupt_edge_chunk_is_repaired_by_writing_all_of_it() {
    for codecs in [json!([{"name": "bytes"}]), gzip(), shards()] {
        let engine = encoded_array(6, codecs.clone()).await;
        for damage in ["x".to_owned(), "damage".repeat(100)] {
            engine.store.put("a/c/1", damage).await;
            let failed = engine.write("4:5", vec![7]).await.unwrap_err();
            assert!(matches!(failed, WriteError::Array(ArrayError::Chunk { .. })), "{codecs}: {failed:?}");
            engine.write("4:6", vec![7, 8]).await.unwrap();
            assert_eq!(engine.read().await, [1, 1, 1, 1, 7, 8], "{codecs}");
            engine.store.put("a/c/1", "damaged again").await;
            engine.write_points(&[5, 4], vec![3, 2]).await.unwrap();
            assert_eq!(engine.read().await, [1, 1, 1, 1, 2, 3], "{codecs}");
        }
    }
}

#[tokio::test]
async fn repair_of_an_inner_chunk_keeps_what_is_outside_of_the_array() {
    let engine = encoded_array(8, shards()).await;
    let set_len = async |len: u64| engine.store.put("a/zarr.json", document(len, shards()).to_string()).await;
    // As during an append, whose document is not written yet.
    set_len(6).await;
    let mut shard = engine.store.value("a/c/1").await.unwrap();
    shard[..4].fill(0);
    engine.store.put("a/c/1", shard).await;
    engine.write("4:6", vec![7, 8]).await.unwrap();
    set_len(8).await;
    assert_eq!(engine.read().await, [1, 1, 1, 1, 7, 8, 1, 1]);
}

#[tokio::test]
async fn chunk_that_becomes_the_fill_value_is_erased_if_its_condition_can_be_checked() {
    for (guarantees, stored) in [(FOLDER, None), (BUCKET, Some(vec![0; 4]))] {
        let engine = Engine::with_array(guarantees, 8).await;
        engine.write("0:2", vec![0; 2]).await.unwrap();
        engine.write("2:4", vec![0; 2]).await.unwrap();
        assert_eq!(engine.store.value("a/c/0").await, stored);
        // One that the write covers needs no condition.
        engine.write("4:8", vec![0; 4]).await.unwrap();
        assert_eq!(engine.store.value("a/c/1").await, None);
        engine.write("5:6", vec![0; 1]).await.unwrap();
        assert_eq!(engine.store.value("a/c/1").await, None);
        assert_eq!(engine.read().await, [0; 8]);
    }
}

#[tokio::test]
async fn append_writes_the_document_last() {
    let engine = Engine::with_array(FOLDER, 6).await;
    let report = engine.append(vec![2; 7]).await.unwrap();
    assert_eq!((report.shape, report.chunks_written), (vec![13], 3));
    assert_eq!(engine.store.take_changed().last().map(String::as_str), Some("a/zarr.json"));
    assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
}

#[tokio::test]
async fn append_that_fails_is_not_seen() {
    for key in ["a/c/1", "a/c/3", "a/zarr.json"] {
        let engine = Engine::with_array(FOLDER, 6).await;
        engine.store.before_change(key, Event::Fail);
        let failed = engine.append(vec![2; 7]).await;
        assert!(matches!(failed, Err(WriteError::Store(StoreError::OutOfSpace))), "{failed:?}");
        assert_eq!(engine.read().await, [1; 6]);
        engine.append(vec![3; 3]).await.unwrap();
        assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 3, 3, 3]);
    }
}

#[tokio::test]
async fn append_without_conditions_is_refused() {
    let written = Engine::with_array(BUCKET, 8).await;
    let engine = Engine::over(written.store, Guarantees { conditions: Conditions::None, ..BUCKET });
    let refused = engine.append(vec![2; 7]).await;
    assert!(matches!(refused, Err(WriteError::Store(StoreError::Unsupported { .. }))), "{refused:?}");
    assert!(engine.store.take_changed().is_empty());
}

#[tokio::test]
async fn concurrent_appends_and_writes_are_all_found() {
    let engine = Engine::with_array(FOLDER, 4).await;
    let appends = (0..20_u8).map(|number| engine.append(vec![100 + number; 3]));
    let writes = (0..20_u8).map(|number| engine.write("0:2", vec![number; 2]));
    let (appended, written) = tokio::join!(futures::future::join_all(appends), futures::future::join_all(writes));
    appended.into_iter().for_each(|appended| assert!(appended.is_ok(), "{appended:?}"));
    written.into_iter().for_each(|written| assert!(written.is_ok(), "{written:?}"));
    let found = engine.read().await;
    let mut steps: Vec<&[u8]> = found[4..].chunks(3).collect();
    steps.sort_unstable();
    let expected: Vec<Vec<u8>> = (0..20).map(|number| vec![100 + number; 3]).collect();
    assert_eq!(steps, expected);
}

#[tokio::test]
async fn growth_shows_nothing_that_was_outside() {
    let engine = Engine::with_array(FOLDER, 6).await;
    // An append that was cut: the edge chunk has its elements, and a chunk outside exists.
    engine.store.put("a/c/1", vec![1, 1, 9, 9]).await;
    engine.patch("/a", &json!({"shape": [7]})).await.unwrap();
    assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 0]);
    engine.store.put("a/c/2", vec![9; 4]).await;
    let young = engine.patch("/a", &json!({"shape": [12]})).await;
    assert!(
        matches!(&young, Err(NodeError::Rejected(NodeRejection::StrayKeys { key, .. }))
        if key.as_str() == "a/c/2"),
        "{young:?}"
    );
    assert_eq!(engine.read().await.len(), 7);
}

#[tokio::test]
async fn shrinking_erases_the_chunks_outside_and_can_be_repeated() {
    let engine = Engine::with_array(FOLDER, 14).await;
    engine.patch("/a", &json!({"shape": [9]})).await.unwrap();
    assert_eq!(engine.store.take_changed(), ["a/zarr.json", "a/c/3"]);
    engine.store.before_change("a/c/2", Event::Fail);
    assert!(engine.patch("/a", &json!({"shape": [4]})).await.is_err());
    assert_eq!(engine.read().await, [1; 4]);
    assert!(engine.store.value("a/c/2").await.is_some());
    engine.patch("/a", &json!({"shape": [4]})).await.unwrap();
    assert_eq!(engine.store.keys().await, ["a/c/0", "a/zarr.json"]);
    engine.patch("/a", &json!({"shape": [12]})).await.unwrap();
    assert_eq!(engine.read().await, [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn writes_that_race_with_a_shrink_leave_nothing_outside() {
    for _ in 0..20 {
        let engine = Engine::with_array(FOLDER, 32).await;
        let writes = (0..4).map(|number| engine.write("0:32", vec![number + 2; 32]));
        let shape = json!({"shape": [6]});
        let (shrunk, written) = tokio::join!(engine.patch("/a", &shape), futures::future::join_all(writes));
        shrunk.unwrap();
        for failed in written.into_iter().filter_map(Result::err) {
            assert!(failed.is_conflict(), "{failed:?}");
        }
        assert_eq!(engine.store.keys().await, ["a/c/0", "a/c/1", "a/zarr.json"]);
        engine.patch("/a", &json!({"shape": [12]})).await.unwrap();
        assert_eq!(engine.read().await[6..], [0; 6]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Append(Vec<u8>),
    Resize(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = || prop_oneof![Just(0_u8), 1..4_u8];
    let step = prop_oneof![
        (0..20_u64, prop::collection::vec(value(), 1..12)).prop_map(|(start, values)| Step::Write(start, values)),
        prop::collection::vec(value(), 1..9).prop_map(Step::Append),
        (0..24_u64).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 1..12)
}

/// An array is as a vector: what is outside of it is gone.
async fn is_as_a_vector(guarantees: Guarantees, steps: Vec<Step>) {
    let engine = Engine::with_array(guarantees, 5).await;
    let mut model = vec![1_u8; 5];
    for step in steps {
        match step {
            Step::Write(start, values) => {
                let start = (start as usize).min(model.len());
                let end = (start + values.len()).min(model.len());
                model[start..end].copy_from_slice(&values[..end - start]);
                engine.write(&format!("{start}:{end}"), values[..end - start].to_vec()).await.unwrap();
            }
            Step::Append(values) => {
                engine.append(values.clone()).await.unwrap();
                model.extend(values);
            }
            Step::Resize(len) => {
                engine.patch("/a", &json!({"shape": [len]})).await.unwrap();
                model.resize(len as usize, 0);
            }
        }
        assert_eq!(engine.read().await, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn array_is_as_a_vector(steps in steps(), is_bucket: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(is_as_a_vector(if is_bucket { BUCKET } else { FOLDER }, steps));
    }
}

/// Two engines over one store, as two processes are over one bucket.
#[tokio::test]
async fn writes_of_two_engines_to_one_chunk_are_all_found() {
    let one = Engine::with_array(BUCKET, 8).await;
    let two = Engine::over(one.store.clone(), BUCKET);
    for round in 1..=20_u8 {
        let of = |engine: &'static str| move |at: u8| (format!("{at}:{}", at + 1), engine, at);
        let writes = (0..8).map(|at| if at % 2 == 0 { of("one")(at) } else { of("two")(at) });
        let writes = writes.map(|(select, engine, at)| {
            let engine = if engine == "one" { &one } else { &two };
            async move { engine.write(&select, vec![round * 8 + at]).await }
        });
        for written in futures::future::join_all(writes).await {
            written.unwrap();
        }
        let expected: Vec<u8> = (0..8).map(|at| round * 8 + at).collect();
        assert_eq!(one.read().await, expected);
        assert_eq!(two.read().await, expected);
    }
}
