//! Appends and changes of shapes by several engines over one store, as several servers are over one bucket.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::json;
use zarrd_array::{ArrayError, Depth, NodeError, NodeInfo, WriteError};
use zarrd_operations::NodeRejection;
use zarrd_store::{Precondition, RunId, StoreError};

use super::fake_store::{BUCKET, Engine, Event, Pause, array, path};

const CLAIM: &str = "a/.zarrd/append";
const DOCUMENT: &str = "a/zarr.json";
const QUARTER: Duration = Duration::from_secs(15 * 60);

/// Two engines over an array.
async fn two_engines(len: u64) -> (Engine, Engine) {
    let one = Engine::with_array(BUCKET, len).await;
    let two = Engine::over(one.store.clone(), BUCKET);
    (one, two)
}

fn is_claimed(error: &WriteError) -> bool {
    matches!(error, WriteError::Array(ArrayError::Claimed { .. }))
}

fn is_unknown(error: &WriteError) -> bool {
    matches!(error, WriteError::Store(StoreError::OutcomeUnknown { .. }))
}

#[tokio::test]
async fn claim_comes_first_and_the_document_last() {
    let engine = Engine::with_array(BUCKET, 6).await;
    let report = engine.append(vec![2; 7]).await.unwrap();
    assert_eq!((report.shape, report.chunks_written, report.conflicts_retried), (vec![13], 3, 0));
    let changed = engine.store.take_changed();
    assert_eq!(changed[..2], [CLAIM, CLAIM], "it is set, and renewed after the edge chunk was read");
    assert_eq!(changed[5..], [DOCUMENT, CLAIM], "it is freed after the document");
    assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
    engine.append(vec![3]).await.unwrap();
    assert_eq!(engine.read().await.len(), 14);
}

#[tokio::test]
async fn claim_is_shown_by_no_node() {
    let engine = Engine::new(BUCKET);
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {"a": array(4)}});
    engine.create("/g", &group).await.unwrap();
    engine.append_to("/g/a", vec![1; 3]).await.unwrap();
    assert!(engine.store.value("g/a/.zarrd/append").await.is_some());
    for at in ["/", "/g"] {
        let node = engine.nodes.node(&path(at), None, Depth::All, None).await.unwrap();
        let text = node.info.zom.to_text().to_value().unwrap().to_string();
        assert!(text.contains(r#""shape":[7]"#) && !text.contains("zarrd"), "{text}");
    }
    engine.erase("/g/a").await.unwrap();
    assert_eq!(engine.store.keys().await, ["g/zarr.json"], "it is erased with its array");
}

#[tokio::test(start_paused = true)]
async fn appends_of_two_engines_are_all_found_once() {
    for round in 0..20_u8 {
        let (one, two) = two_engines(u64::from(round % 4)).await;
        let appends = (0..12_u8).map(|number| {
            let engine = if number % 2 == 0 { &one } else { &two };
            async move { engine.append(vec![100 + number; 3]).await.map(|_| number) }
        });
        let appended: Vec<u8> = join_all(appends).await.into_iter().map(Result::unwrap).collect();
        let found = two.read().await;
        let mut blocks: Vec<&[u8]> = found[usize::from(round % 4)..].chunks(3).collect();
        blocks.sort_unstable();
        let expected: Vec<Vec<u8>> = appended.iter().map(|number| vec![100 + number; 3]).collect();
        assert_eq!(blocks, expected);
        assert_eq!(one.read().await, found);
    }
}

/// Whole writes of the elements that the edge chunk has at first, while it gets others.
#[tokio::test(start_paused = true)]
async fn writes_of_the_edge_chunk_undo_no_append() {
    for _ in 0..30 {
        let (one, two) = two_engines(6).await;
        let appends = (0..6_u8).map(|number| one.append(vec![100 + number]));
        let writes = (0..12_u8).map(|number| two.write("4:6", vec![number; 2]));
        let (appended, written) = tokio::join!(join_all(appends), join_all(writes));
        appended.into_iter().for_each(|appended| assert!(appended.is_ok(), "{appended:?}"));
        let written: Vec<u8> =
            (0..12).zip(written).filter(|(_, done)| done.is_ok()).map(|(number, _)| number).collect();
        let found = one.read().await;
        let mut steps = found[6..].to_vec();
        steps.sort_unstable();
        assert_eq!(steps, (100..106).collect::<Vec<u8>>(), "{written:?} were written");
        assert_eq!(found[4], found[5]);
    }
}

#[tokio::test(start_paused = true)]
async fn edge_chunk_is_written_between_the_steps_of_an_append() {
    for (key, points) in [("a/c/1", false), (DOCUMENT, false), ("a/c/1", true), (DOCUMENT, true)] {
        let (engine, appended) = pause_at(key, 0, async |two| match points {
            true => drop(two.write_points(&[5, 4], vec![9, 8]).await.unwrap()),
            false => drop(two.write("4:6", vec![8, 9]).await.unwrap()),
        })
        .await;
        appended.unwrap();
        assert_eq!(engine.read().await, [1, 1, 1, 1, 8, 9, 7, 7, 7, 7, 7, 7], "{key} {points}");
    }
}

/// The elements of the array are blocks of acknowledged appends, each whole and once, and fill values of growths.
fn assert_blocks(found: &[u8], start: usize, acknowledged: &[u8], may_miss: bool) {
    let mut rest = &found[start..];
    let mut seen = Vec::new();
    while let Some(&value) = rest.first() {
        if value == 0 {
            rest = &rest[1..];
            continue;
        }
        assert!(rest.len() >= 3 && rest[..3] == [value; 3], "{found:?}");
        assert!(acknowledged.contains(&value), "{value} was not acknowledged: {found:?}");
        assert!(!seen.contains(&value), "{value} is there twice: {found:?}");
        seen.push(value);
        rest = &rest[3..];
    }
    assert!(may_miss || seen.len() == acknowledged.len(), "{acknowledged:?} were acknowledged: {found:?}");
}

#[tokio::test(start_paused = true)]
async fn appends_and_changes_of_shape_do_not_mix() {
    let mut growths = 0;
    for round in 0..40_u64 {
        let (one, two) = two_engines(4).await;
        let appends = (0..8_u8).map(|number| {
            let engine = if number % 2 == 0 { &one } else { &two };
            async move { engine.append(vec![100 + number; 3]).await.map(|_| 100 + number) }
        });
        let shrinks = round % 2 == 1;
        let reshapes = (0..6_u64).map(|number| {
            let engine = if number % 2 == 0 { &two } else { &one };
            async move {
                for _ in 0..RunId::random().as_u64() % 200 {
                    tokio::task::yield_now().await;
                }
                if shrinks {
                    return engine.patch("/a", &json!({"shape": [4]})).await;
                }
                let mut grown = grow(engine).await;
                for _ in 0..9 {
                    if grown.is_err() {
                        grown = grow(engine).await;
                    }
                }
                grown
            }
        });
        let (appended, reshaped) = tokio::join!(join_all(appends), join_all(reshapes));
        let appended: Vec<u8> = appended.into_iter().map(Result::unwrap).collect();
        growths += reshaped.iter().filter(|done| !shrinks && done.is_ok()).count();
        let found = one.read().await;
        assert_eq!(two.read().await, found);
        assert_eq!(found[..4], [1; 4]);
        assert_blocks(&found, 4, &appended, shrinks);
    }
    assert!(growths > 0, "no growth was made");
}

/// Makes the array larger by one, unless it changes meanwhile.
async fn grow(engine: &Engine) -> Result<NodeInfo, NodeError> {
    let (model, version) = engine.arrays.model(&path("/a"), None).await?;
    let patch = json!({"shape": [model.shape[0] + 1]});
    engine.patch_if("/a", &patch, &Precondition::at(version)).await
}

#[tokio::test]
async fn growth_by_the_clock_of_the_store() {
    let (engine, _) = two_engines(6).await;
    // An append that was cut.
    engine.store.put("a/c/2", vec![9; 4]).await;
    engine.store.advance(QUARTER - Duration::from_secs(60));
    let young = engine.patch("/a", &json!({"shape": [12]})).await;
    assert!(matches!(young, Err(NodeError::Rejected(NodeRejection::StrayKeys { .. }))), "{young:?}");
    engine.store.advance(Duration::from_secs(120));
    engine.patch("/a", &json!({"shape": [12]})).await.unwrap();
    assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(engine.store.value("a/.zarrd/clock").await, None);
}

#[tokio::test]
async fn many_chunks_outside_are_erased_in_batches() {
    let (engine, _) = two_engines(400).await;
    engine.patch("/a", &json!({"shape": [4]})).await.unwrap();
    assert_eq!(engine.store.keys().await, [CLAIM, "a/c/0", DOCUMENT]);
    let changed = engine.store.take_changed();
    assert_eq!(changed.iter().filter(|key| key.as_str() == CLAIM).count(), 1 + 1 + 4 + 1, "verified before each batch");
}

/// An append that pauses right before a change, and what happens meanwhile.
async fn pause_at(key: &str, skipped: usize, meanwhile: impl AsyncFnOnce(&Engine)) -> (Engine, Result<(), WriteError>) {
    let (one, two) = two_engines(6).await;
    let pause = Arc::new(Pause::default());
    for _ in 0..skipped {
        // The changes of this key that come before.
        one.store.before_change(key, Event::Pause(let_go()));
    }
    one.store.before_change(key, Event::Pause(pause.clone()));
    let paused = async {
        let done = one.append(vec![7; 6]).await;
        done.map(drop)
    };
    let others = async {
        pause.reached.notified().await;
        meanwhile(&two).await;
        pause.resume.notify_one();
    };
    let (done, ()) = tokio::join!(paused, others);
    (two, done)
}

/// A pause that is over.
fn let_go() -> Arc<Pause> {
    let pause = Arc::new(Pause::default());
    pause.resume.notify_one();
    pause
}

#[tokio::test(start_paused = true)]
async fn append_waits_for_the_claim_of_another() {
    for (key, skipped) in [(CLAIM, 1), ("a/c/1", 0), ("a/c/2", 0), (DOCUMENT, 0)] {
        let (engine, paused) = pause_at(key, skipped, async |two| {
            let refused = two.append(vec![8; 2]).await.unwrap_err();
            assert!(is_claimed(&refused), "{key}: {refused:?}");
            let grown = two.patch("/a", &json!({"shape": [20]})).await;
            assert!(matches!(grown, Err(NodeError::Array(ArrayError::Claimed { .. }))), "{key}: {grown:?}");
        })
        .await;
        paused.unwrap();
        engine.append(vec![8; 2]).await.unwrap();
        assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7, 8, 8], "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn append_that_pauses_past_its_claim_fails_and_loses_nothing() {
    for (key, skipped) in [(CLAIM, 1), ("a/c/1", 0), ("a/c/2", 0), (DOCUMENT, 0)] {
        for others in 1..=2_u8 {
            let (engine, paused) = pause_at(key, skipped, async |two| {
                two.store.advance(QUARTER);
                for number in 0..others {
                    two.append(vec![8 + number; 5]).await.unwrap();
                }
            })
            .await;
            let failed = paused.unwrap_err();
            assert!(is_claimed(&failed), "{key}: {failed:?}");
            let mut expected = vec![1; 6];
            (0..others).for_each(|number| expected.extend([8 + number; 5]));
            assert_eq!(engine.read().await, expected, "{key}");
            let document = engine.store.value(DOCUMENT).await.unwrap();
            assert!(document.ends_with(b"\n"), "the document was changed by the takeover");
        }
    }
}

/// The new holder has done nothing but taken the claim over when the former one continues.
#[tokio::test(start_paused = true)]
async fn former_holder_cannot_set_the_document_while_the_new_one_pauses() {
    let (one, two) = two_engines(6).await;
    let (former, new) = (Arc::new(Pause::default()), Arc::new(Pause::default()));
    one.store.before_change(DOCUMENT, Event::Pause(former.clone()));
    let first = async {
        let failed = one.append(vec![7; 6]).await.unwrap_err();
        assert!(is_claimed(&failed), "{failed:?}");
        new.resume.notify_one();
    };
    let second = async {
        former.reached.notified().await;
        one.store.advance(QUARTER);
        one.store.before_change("a/c/1", Event::Pause(new.clone()));
        two.append(vec![8; 5]).await.unwrap();
    };
    let order = async {
        new.reached.notified().await;
        former.resume.notify_one();
    };
    tokio::join!(first, second, order);
    assert_eq!(two.read().await, [1, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8]);
}

#[tokio::test(start_paused = true)]
async fn claims_are_renewed() {
    let (engine, paused) = pause_at("a/c/2", 0, async |two| {
        for _ in 0..20 {
            // Both clocks go on.
            tokio::time::sleep(Duration::from_secs(60)).await;
            two.store.advance(Duration::from_secs(60));
        }
        assert!(is_claimed(&two.append(vec![8; 5]).await.unwrap_err()));
    })
    .await;
    paused.unwrap();
    assert_eq!(engine.read().await.len(), 12);
}

/// A way in which an answer is lost.
type Loss = fn() -> Event;

/// Answers to each change of an append are lost, whether it is made or not, or only after the start of the next append.
#[tokio::test(start_paused = true)]
async fn lost_answers_are_never_success() {
    // The claim, its renewal, the edge chunk, another chunk, the document, and freeing the claim.
    let losses: [(&str, Loss); 3] =
        [("answer", || Event::LoseAnswer), ("request", || Event::LoseRequest), ("delay", || Event::Delay)];
    let steps = [(CLAIM, 0), (CLAIM, 1), ("a/c/1", 0), ("a/c/2", 0), (DOCUMENT, 0), (CLAIM, 2)];
    for (key, skipped) in steps {
        for (name, event) in losses {
            let (one, two) = two_engines(6).await;
            for _ in 0..skipped {
                one.store.before_change(key, Event::Pause(let_go()));
            }
            one.store.before_change(key, event());
            let first = one.append(vec![7; 6]).await;
            let is_made = async || two.read().await.get(6..12) == Some(&[7; 6][..]);
            match (&first, key) {
                (Ok(_), _) => assert!(is_made().await, "{key} {name}"),
                (Err(error), CLAIM) => panic!("{key} {name}: {error:?}"),
                (Err(error), _) => assert!(is_unknown(error), "{key} {name}: {error:?}"),
            }
            // What is unknown may come until the claim has expired.
            let waits = two.append(vec![8; 5]).await;
            assert_eq!(waits.is_ok(), first.is_ok(), "{key} {name}");
            two.store.advance(QUARTER);
            if waits.is_err() {
                two.append(vec![8; 5]).await.unwrap();
            }
            two.store.let_in().await;
            two.append(vec![9; 2]).await.unwrap();
            let found = two.read().await;
            let is_first = found.len() == 6 + 6 + 5 + 2;
            let blocks: &[(u8, usize)] =
                if is_first { &[(1, 6), (7, 6), (8, 5), (9, 2)] } else { &[(1, 6), (8, 5), (9, 2)] };
            let expected: Vec<u8> = blocks.iter().flat_map(|(value, count)| vec![*value; *count]).collect();
            assert_eq!(found, expected, "{key} {name}");
            assert!(is_first || first.is_err(), "{key} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn append_goes_on_after_its_caller_has_left() {
    let (one, two) = two_engines(6).await;
    let pause = Arc::new(Pause::default());
    one.store.before_change(DOCUMENT, Event::Pause(pause.clone()));
    tokio::select! {
        _ = one.append(vec![7; 2]) => panic!("it is paused"),
        () = pause.reached.notified() => {}
    }
    pause.resume.notify_one();
    two.append(vec![8; 2]).await.unwrap();
    assert_eq!(two.read().await, [1, 1, 1, 1, 1, 1, 7, 7, 8, 8]);
}

#[tokio::test]
async fn append_that_fails_frees_its_claim() {
    for key in ["a/c/1", "a/c/2", DOCUMENT] {
        let (one, two) = two_engines(6).await;
        one.store.before_change(key, Event::Fail);
        let failed = one.append(vec![7; 6]).await;
        assert!(matches!(failed, Err(WriteError::Store(StoreError::OutOfSpace))), "{key}: {failed:?}");
        two.append(vec![8; 5]).await.unwrap();
        assert_eq!(two.read().await, [1, 1, 1, 1, 1, 1, 8, 8, 8, 8, 8], "{key}");
    }
}

#[tokio::test]
async fn document_that_changes_during_an_append_is_not_overwritten() {
    let (engine, _) = two_engines(6).await;
    let mut theirs = array(6);
    theirs["attributes"] = json!({"theirs": 1});
    engine.store.before_change(DOCUMENT, Event::Set(DOCUMENT, theirs.to_string().into()));
    let report = engine.append(vec![7; 6]).await.unwrap();
    assert_eq!(report.shape, [12]);
    assert_eq!(engine.read().await, [1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7]);
    let stored = String::from_utf8(engine.store.value(DOCUMENT).await.unwrap()).unwrap();
    assert!(stored.contains("theirs"), "{stored}");
}

#[tokio::test]
async fn claim_that_cannot_be_read_is_waited_for_until_it_expires() {
    let (engine, _) = two_engines(6).await;
    engine.store.put(CLAIM, "no record").await;
    engine.store.advance(QUARTER);
    engine.append(vec![7]).await.unwrap();
    assert_eq!(engine.read().await.len(), 7);
}
