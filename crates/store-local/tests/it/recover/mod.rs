//! Recovering what is whole of damaged stores, compared with a model of them.

mod damage;
mod sample;
mod served;

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::StoreError;
use zarrd_store_local::{Certainty, IndexKind, Loss, OpenError, RecoverableValue, Recovery};

use self::{
    damage::{Damage, Random},
    sample::{Ending, Sample},
};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

/// What a recovery has of the keys of a model.
#[derive(Debug, Default)]
struct Outcome {
    certain: usize,
    doubtful: usize,
    named: usize,
    /// Keys with other bytes among the certain ones, or that do not exist.
    wrong: Vec<String>,
    /// Keys that are neither recovered nor named.
    silent: Vec<String>,
}

async fn read(recovery: &Recovery, value: &RecoverableValue) -> Option<Vec<u8>> {
    let payload = recovery.read(value).await.ok()?;
    let parts: Vec<Bytes> = payload.stream.try_collect().await.ok()?;
    Some(parts.concat())
}

async fn outcome(recovery: &Recovery, model: &BTreeMap<String, Vec<u8>>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut found = BTreeMap::new();
    for value in recovery.values() {
        let bytes = read(recovery, value).await;
        let is_right = bytes.as_ref().is_some_and(|bytes| model.get(value.key.as_str()) == Some(bytes));
        if value.certainty == Certainty::Certain && bytes.is_some() && !is_right {
            outcome.wrong.push(format!("{}: {:?}", value.key, bytes.as_ref().map(Vec::len)));
        }
        found.insert(value.key.as_str().to_owned(), (value.certainty, is_right, bytes.is_some()));
    }
    for key in model.keys() {
        match found.get(key) {
            Some((Certainty::Certain, true, _)) => outcome.certain += 1,
            Some((Certainty::Doubtful, true, _)) => outcome.doubtful += 1,
            // A value whose file is damaged is named when it is read, and a doubtful one is named as such.
            Some((_, _, false) | (Certainty::Doubtful, ..)) => outcome.named += 1,
            _ if recovery.losses().iter().any(|loss| loss.concerns(key)) => outcome.named += 1,
            _ => outcome.silent.push(key.clone()),
        }
    }
    outcome
}

async fn recovered(dir: &Path, model: &BTreeMap<String, Vec<u8>>) -> Outcome {
    outcome(&Recovery::open(dir).await.unwrap(), model).await
}

#[tokio::test]
async fn undamaged_stores_are_recovered_with_certainty() {
    for kind in KINDS {
        for ending in [Ending::Closed, Ending::Dropped, Ending::HotCopy] {
            let sample = Sample::create(kind, ending, 300).await;
            let recovery = Recovery::open(sample.dir.path()).await.unwrap();
            let outcome = outcome(&recovery, &sample.model).await;
            assert_eq!(
                (outcome.certain, outcome.wrong.len()),
                (sample.model.len(), 0),
                "{kind} {ending:?}: {outcome:?}"
            );
            assert_eq!(recovery.values().len(), sample.model.len(), "{kind} {ending:?}");
            assert_eq!(recovery.losses(), [], "{kind} {ending:?}");
            assert_eq!(recovery.index(), Some(kind));
        }
    }
}

#[tokio::test]
async fn no_wrong_value_is_certain_after_random_damages() {
    let rounds = std::env::var("ZARRD_DAMAGES").map_or(16, |rounds| rounds.parse().unwrap());
    let mut random = Random::new(std::env::var("ZARRD_SEED").map_or(1, |seed| seed.parse().unwrap()));
    let mut shares: BTreeMap<(String, &str), [usize; 5]> = BTreeMap::new();
    let mut bad = Vec::new();
    for kind in KINDS {
        for ending in [Ending::Closed, Ending::Dropped] {
            // A large store is damaged twenty times.
            for (keys, rounds) in [(500, rounds / 2), (5000, if rounds >= 200 { 5 } else { 0 })] {
                if rounds == 0 {
                    continue;
                }
                let sample = Sample::create(kind, ending, keys).await;
                for round in 0..rounds {
                    let damage = Damage::random(sample.dir.path(), &mut random);
                    let undo = damage.apply();
                    let before = sample::contents(sample.dir.path());
                    let outcome = match Recovery::open(sample.dir.path()).await {
                        Ok(recovery) => outcome(&recovery, &sample.model).await,
                        Err(error) => panic!("{kind} {ending:?} {damage:?}: {error:?}"),
                    };
                    assert!(sample::contents(sample.dir.path()) == before, "{damage:?} changed the store");
                    if !outcome.wrong.is_empty() || !outcome.silent.is_empty() {
                        bad.push(format!("{kind} {ending:?} {round} {damage:?}: {outcome:?}"));
                    }
                    for name in [damage.kind(), damage.place()] {
                        let share = shares.entry((format!("{kind} {ending:?}"), name)).or_default();
                        let counts = [1, sample.model.len(), outcome.certain, outcome.doubtful, outcome.named];
                        share.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                    }
                    undo();
                }
            }
        }
    }
    for ((store, damage), [damages, keys, certain, doubtful, named]) in shares {
        let percent = |count: usize| 100.0 * count as f64 / keys as f64;
        let (certain, doubtful, named) = (percent(certain), percent(doubtful), percent(named));
        println!(
            "{store} | {damage} | {damages} | {certain:.1} % certain, {doubtful:.1} % doubtful, {named:.1} % named"
        );
    }
    assert!(bad.is_empty(), "{} bad: {:#?}", bad.len(), &bad[..bad.len().min(5)]);
}

#[tokio::test]
async fn stores_without_one_of_their_parts_are_recovered() {
    for kind in KINDS {
        let sample = Sample::create(kind, Ending::Closed, 200).await;
        let large = sample.model.values().filter(|value| value.len() > 16 << 10).count();
        for part in ["index", "log", "zarrd.json", "zarrd.json.copy", "lock", "clean-shutdown", "values"] {
            let copy = tempfile::tempdir().unwrap();
            sample::copy(sample.dir.path(), copy.path());
            let path = copy.path().join(part);
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap()
            } else {
                fs::remove_file(path).unwrap()
            }
            let outcome = recovered(copy.path(), &sample.model).await;
            assert!(outcome.wrong.is_empty() && outcome.silent.is_empty(), "{kind} {part}: {outcome:?}");
            match part {
                // The log of a closed store has nothing that the index has not, and as much as was not retired.
                "index" => assert!(outcome.certain + outcome.doubtful >= large, "{kind}: {outcome:?}"),
                "values" => assert!(outcome.certain > 0 && outcome.named >= large, "{kind}: {outcome:?}"),
                _ => assert_eq!(outcome.certain, sample.model.len(), "{kind} {part}: {outcome:?}"),
            }
        }
        // Without both copies of the identity, values of files come back.
        let copy = tempfile::tempdir().unwrap();
        sample::copy(sample.dir.path(), copy.path());
        fs::remove_file(copy.path().join("zarrd.json")).unwrap();
        fs::remove_file(copy.path().join("zarrd.json.copy")).unwrap();
        let outcome = recovered(copy.path(), &sample.model).await;
        assert_eq!((outcome.certain, outcome.silent.len()), (0, 0), "{kind}");
        assert!(outcome.doubtful >= large, "{kind}: {outcome:?}");
    }
}

#[tokio::test]
async fn what_is_no_store_or_newer_or_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Recovery::open(dir.path()).await, Err(OpenError::NotAStore { .. })));
    assert!(matches!(Recovery::open(&dir.path().join("none")).await, Err(OpenError::NotAStore { .. })));
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    assert!(matches!(Recovery::open(dir.path()).await, Err(OpenError::NotAStore { .. })));
    let sample = Sample::create(IndexKind::Sled, Ending::Closed, 20).await;
    let store = sample.open().await;
    assert!(matches!(Recovery::open(sample.dir.path()).await, Err(OpenError::Locked { .. })));
    store.close().await.unwrap();
    for file in ["zarrd.json", "zarrd.json.copy"] {
        let path = sample.dir.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"format\": 2", "\"format\": 5")).unwrap();
    }
    match Recovery::open(sample.dir.path()).await {
        Err(OpenError::UnsupportedFormat { found, .. }) => assert_eq!(found, 5),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn refused_recoveries_leave_every_file() {
    for kind in KINDS {
        let sample = Sample::create(kind, Ending::Closed, 40).await;
        let dir = sample.dir.path();
        let main_file = dir.join("index").join(if kind == IndexKind::Sled { "db" } else { "index.redb" });
        let refused = async |expected: &str| {
            let before = (sample::contents(dir), sample::bytes(dir));
            let error = Recovery::open(dir).await.unwrap_err();
            assert!(format!("{error:?}").starts_with(expected), "{kind}: {error:?}");
            assert!((sample::contents(dir), sample::bytes(dir)) == before, "{kind} {expected}");
        };
        // Another process has the lock, or only the index.
        let lock = fs::File::open(dir.join("lock")).unwrap();
        lock.lock().unwrap();
        refused("Locked").await;
        drop(lock);
        let index = fs::File::open(&main_file).unwrap();
        index.lock().unwrap();
        refused("Locked").await;
        fs::remove_file(dir.join("lock")).unwrap();
        refused("Locked").await;
        drop(index);
        let identity = fs::read_to_string(dir.join("zarrd.json")).unwrap();
        for name in ["zarrd.json", "zarrd.json.copy"] {
            // One of the two is enough to know that it is a newer format, whatever the other one says.
            fs::write(dir.join(name), identity.replace("\"format\": 2", "\"format\": 5")).unwrap();
            let other = if name == "zarrd.json" { "zarrd.json.copy" } else { "zarrd.json" };
            fs::write(dir.join(other), "noise").unwrap();
            refused("UnsupportedFormat").await;
        }
        for name in ["zarrd.json", "zarrd.json.copy"] {
            fs::write(dir.join(name), "noise").unwrap();
        }
        fs::remove_dir_all(dir.join("values")).unwrap();
        refused("Corrupt").await;
    }
}

#[tokio::test]
async fn pipes_in_place_of_files_do_not_stop_a_recovery() {
    for (kind, ending) in [(IndexKind::Sled, Ending::Dropped), (IndexKind::Redb, Ending::Closed)] {
        let sample = Sample::create(kind, ending, 60).await;
        let dir = sample.dir.path();
        let mut files = sample::files(dir);
        files.retain(|file| !file.starts_with(dir.join("ballast")) && !file.starts_with(dir.join("values")));
        files.push(sample::files(&dir.join("values")).remove(0));
        for file in files {
            let aside = sample.dir.path().with_extension("aside");
            fs::rename(&file, &aside).unwrap();
            crate::make_pipe(&file);
            let recovering = recovered(dir, &sample.model);
            let ended = tokio::time::timeout(std::time::Duration::from_secs(60), recovering).await;
            // One that waits for a writer has one now, so that the test can end.
            drop(fs::File::options().read(true).write(true).open(&file).unwrap());
            let outcome = ended.unwrap_or_else(|_| panic!("{kind}: a recovery waits for {file:?}"));
            assert!(outcome.wrong.is_empty() && outcome.silent.is_empty(), "{kind} {file:?}: {outcome:?}");
            fs::rename(&aside, &file).unwrap();
        }
    }
}

#[tokio::test]
async fn files_that_change_after_a_recovery_was_opened_give_no_wrong_bytes() {
    for kind in KINDS {
        let sample = Sample::create(kind, Ending::Closed, 240).await;
        let dir = sample.dir.path();
        let recovery = Recovery::open(dir).await.unwrap();
        let large = recovery.values().iter().filter(|value| value.size() > 5000).take(4);
        for (number, value) in large.enumerate() {
            let bytes = &sample.model[value.key.as_str()];
            assert_eq!(value.certainty, Certainty::Certain);
            let file = sample::file_of(dir, bytes);
            let opened = fs::File::options().read(true).write(true).open(&file).unwrap();
            match number {
                0 => std::os::unix::fs::FileExt::write_all_at(&opened, b"damage", 4500).unwrap(),
                1 => opened.set_len(4096).unwrap(),
                2 => fs::remove_file(&file).unwrap(),
                _ => {
                    fs::remove_file(&file).unwrap();
                    crate::make_pipe(&file);
                }
            }
            let error = match recovery.read(value).await {
                Ok(payload) => payload.stream.try_collect::<Vec<Bytes>>().await.unwrap_err(),
                Err(error) => error,
            };
            assert!(matches!(&error, StoreError::Corrupt { key, .. } if *key == value.key), "{number}: {error:?}");
        }
        // What was recovered is whole, whatever happens to the index meanwhile.
        fs::remove_dir_all(dir.join("index")).unwrap();
        fs::remove_dir_all(dir.join("log")).unwrap();
        let outcome = outcome(&recovery, &sample.model).await;
        assert!(outcome.wrong.is_empty() && outcome.silent.is_empty(), "{kind}: {outcome:?}");
        assert_eq!(outcome.certain, sample.model.len() - 4, "{kind}: {outcome:?}");
    }
}

#[tokio::test]
async fn one_flipped_bit_of_an_index_costs_nothing() {
    for kind in KINDS {
        let sample = Sample::create(kind, Ending::Closed, 300).await;
        let mut random = Random::new(3);
        for round in 0..30 {
            let damage = Damage::bit_of_index(sample.dir.path(), kind, &mut random);
            let undo = damage.apply();
            let outcome = recovered(sample.dir.path(), &sample.model).await;
            assert_eq!(outcome.certain, sample.model.len(), "{kind} {round} {damage:?}: {outcome:?}");
            undo();
        }
    }
}

#[tokio::test]
async fn losses_of_an_index_page_are_named_by_their_range() {
    let sample = Sample::create(IndexKind::Redb, Ending::Closed, 500).await;
    let damage = Damage::leaf_of_redb(sample.dir.path());
    let undo = damage.apply();
    let recovery = Recovery::open(sample.dir.path()).await.unwrap();
    let outcome = outcome(&recovery, &sample.model).await;
    assert!(outcome.wrong.is_empty() && outcome.silent.is_empty(), "{outcome:?}");
    assert!(outcome.certain > sample.model.len() / 2 && outcome.certain < sample.model.len(), "{outcome:?}");
    let ranges = recovery.losses().iter().filter(|loss| matches!(loss, Loss::Range { .. })).count();
    assert_eq!(ranges, 1, "{:?}", recovery.losses());
    undo();
}
