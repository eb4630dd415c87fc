//! Concurrent operations.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{sync::Barrier, task::JoinSet};

use super::{
    Storage,
    test_value::TestValue,
    tools::{assert_absent, assert_has, get, key, list_keys, put},
};
use zarrd_store::{ByteRange, Precondition, PutResult, StoreError, Version};

/// Runs `count` tasks that start at the same time, and returns their results.
pub(super) async fn at_once<S, T, F>(store: &S, tasks: u64, task: impl Fn(S, u64) -> F) -> Vec<T>
where
    S: Storage,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(usize::try_from(tasks).unwrap()));
    let mut running = JoinSet::new();
    for number in 0..tasks {
        let (start, task) = (start.clone(), task(store.clone(), number));
        running.spawn(async move {
            start.wait().await;
            task.await
        });
    }
    running.join_all().await
}

pub(super) async fn one_creator_wins(store: impl Storage) {
    for round in 0..8 {
        let at = format!("a/{round}");
        let results = at_once(&store, 16, |store, number| {
            let at = key(&at);
            async move {
                let content = TestValue::new(number, 3_000 + number).payload();
                (number, store.set(&at, content, Precondition::absent()).await)
            }
        })
        .await;
        let mut winners = Vec::new();
        for (number, result) in results {
            match result {
                Ok(written) => winners.push((number, written)),
                Err(error) => assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error:?}"),
            }
        }
        let [(winner, written)] = winners[..] else { panic!("{} of 16 created {at}", winners.len()) };
        assert!(!written.replaced);
        assert_eq!(store.head(&key(&at)).await.unwrap().unwrap().version, written.version);
        assert_has(&store, &at, TestValue::new(winner, 3_000 + winner)).await;
    }
}

pub(super) async fn one_eraser_wins(store: impl Storage) {
    for round in 0..8 {
        let at = format!("a/{round}");
        let version = put(&store, &at, "value").await;
        let results = at_once(&store, 8, |store, _| {
            let at = key(&at);
            async move { store.erase(&at, Precondition::at(version)).await }
        })
        .await;
        let mut winners = 0;
        for result in results {
            match result {
                Ok(existed) => winners += u32::from(existed),
                Err(error) => assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error:?}"),
            }
        }
        assert_eq!(winners, 1, "of 8 erasers of {at}");
        assert_absent(&store, &at).await;
    }
}

pub(super) async fn compare_and_swap_loses_no_increment(store: impl Storage) {
    const TASKS: u64 = 6;
    const EACH: u64 = 8;
    at_once(&store, TASKS, |store, _| async move {
        for _ in 0..EACH {
            while !increment(&store).await {}
        }
    })
    .await;
    assert_eq!(get(&store, "counter").await.unwrap(), (TASKS * EACH).to_string());
}

/// Tries to add one to the counter. Returns true if no other writer interfered.
async fn increment(store: &impl Storage) -> bool {
    let (count, version) = match store.get(&key("counter"), None).await.unwrap() {
        Some(value) => {
            let version = value.meta.version;
            let text = String::from_utf8(value.bytes().await.unwrap().to_vec()).unwrap();
            (text.parse::<u64>().unwrap(), Some(version))
        }
        None => (0, None),
    };
    let content = (count + 1).to_string().into();
    match store.set(&key("counter"), content, Precondition::unchanged(version)).await {
        Ok(_) => true,
        Err(StoreError::PreconditionFailed { .. }) => false,
        Err(error) => panic!("{error:?}"),
    }
}

pub(super) async fn sets_of_one_key_are_serialized(store: impl Storage) {
    for round in 0..4 {
        let at = format!("a/{round}");
        let written: HashMap<Version, (u64, PutResult)> = at_once(&store, 12, |store, number| {
            let at = key(&at);
            async move {
                let content = TestValue::new(number, 100 + 1_000 * number).payload();
                let written = store.set(&at, content, Precondition::none()).await.expect("set");
                (written.version, (number, written))
            }
        })
        .await
        .into_iter()
        .collect();
        assert_eq!(written.len(), 12, "a version was assigned twice");
        assert_eq!(
            written.values().filter(|(_, written)| !written.replaced).count(),
            1,
            "only the first found nothing"
        );
        let last = store.head(&key(&at)).await.unwrap().unwrap().version;
        let (number, _) = written[&last];
        assert_has(&store, &at, TestValue::new(number, 100 + 1_000 * number)).await;
        assert_eq!(list_keys(&store, "a/").await.len(), round + 1);
    }
}

/// A value of [`readers_never_see_partial_values`]. Its length determines the seed, so that a reader knows what to
/// expect, and alternates over the sizes at which stores change their representation.
fn value_of_seed(seed: u64) -> TestValue {
    let size = [10, 4_090, 60_000, 131_000, 400_000][usize::try_from(seed % 5).unwrap()];
    TestValue::new(seed, size + seed)
}

fn value_of_size(size: u64) -> TestValue {
    let seeds = (0..60).map(value_of_seed);
    let mut fitting = seeds.filter(|payload| payload.len == size);
    fitting.next().unwrap_or_else(|| panic!("no value of {size} bytes was ever set"))
}

pub(super) async fn readers_never_see_partial_values(store: impl Storage) {
    put(&store, "a", value_of_seed(0).payload()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for reader in 0..4 {
        let (store, stop) = (store.clone(), stop.clone());
        readers.spawn(async move {
            let mut reads = 0;
            while reads == 0 || !stop.load(Ordering::Relaxed) {
                let range =
                    [None, Some(ByteRange::From(7)), Some(ByteRange::last(5_000).unwrap())][(reader + reads) % 3];
                if let Some(value) = store.get(&key("a"), range).await.expect("get") {
                    value_of_size(value.meta.size).assert_is(value).await;
                }
                reads += 1;
                tokio::task::yield_now().await;
            }
        });
    }
    let versions: Vec<Vec<Version>> = at_once(&store, 2, |store, writer| async move {
        let mut versions = Vec::new();
        for seed in (1 + writer..60).step_by(2) {
            versions.push(put(&store, "a", value_of_seed(seed).payload()).await);
            if seed % 10 == 0 {
                store.erase(&key("a"), Precondition::none()).await.expect("erase");
            }
        }
        versions
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    readers.join_all().await;
    if let Some(meta) = store.head(&key("a")).await.unwrap() {
        assert!(versions.concat().contains(&meta.version));
    }
}

pub(super) async fn writers_read_their_writes(store: impl Storage) {
    at_once(&store, 8, |store, writer| async move {
        let (below, at) = (format!("{writer}/"), format!("{writer}/key"));
        for step in 0..5 {
            let payload = TestValue::new(10 * writer + step, 4_094 + step);
            let version = put(&store, &at, payload.payload()).await;
            assert_eq!(store.head(&key(&at)).await.unwrap().unwrap().version, version);
            assert_has(&store, &at, payload).await;
            assert_eq!(list_keys(&store, &below).await, [at.as_str()]);
            assert!(store.erase(&key(&at), Precondition::none()).await.unwrap());
            assert_absent(&store, &at).await;
        }
    })
    .await;
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
}
