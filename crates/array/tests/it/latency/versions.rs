//! Versions of chunks, which entity tags are made of.

use tokio::time::{Duration, Instant, advance};
use zarrd_array::{Arrays, Options, Purpose, VersionSource};
use zarrd_store::{
    Guarantees, ListableStore, MemoryStore, PageRequest, Precondition, Prefix, ReadError, ReadableStore, Recheck,
    WriteableStore, not_before,
};

use crate::latency::{
    checked, collect,
    distant_store::{DistantStore, Request},
    document, plan, read, with_checksum,
};

const LISTED: Guarantees = Guarantees { listed_versions: true, ..Guarantees::READ_ONLY };

/// An array of chunks of 4 elements, which are the number of their chunk. Each tenth is not stored.
async fn store(chunks: u64) -> (DistantStore, Vec<u8>) {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(4 * chunks, 4, &checked())).await;
    let mut expected = Vec::new();
    for chunk in 0..chunks {
        let elements = if chunk % 10 == 3 { [9; 4] } else { [(chunk % 251) as u8; 4] };
        expected.extend(elements);
        if chunk % 10 != 3 {
            store.set(&format!("a/c/{chunk}"), with_checksum(&elements)).await;
        }
    }
    (store, expected)
}

fn arrays(store: &DistantStore, recheck: Recheck) -> Arrays {
    Arrays::new(store.served(recheck, LISTED), Options::default())
}

fn listings(requests: &[Request]) -> usize {
    requests.iter().filter(|request| matches!(request, Request::List(_))).count()
}

#[tokio::test(start_paused = true)]
async fn versions_of_dense_chunks_are_learnt_from_one_listing() {
    let (store, expected) = store(200).await;
    let arrays = arrays(&store, Recheck::DISTANT);
    read(&arrays, "0").await.unwrap();
    // A single chunk is looked at, and so are a few.
    let (planned, trips, requests) = store.measure(plan(&arrays, "4:60")).await;
    assert!(planned.unwrap().fingerprint().is_some());
    assert_eq!((trips, requests.len(), listings(&requests)), (1, 14, 0));
    let (planned, trips, requests) = store.measure(plan(&arrays, "100:356")).await;
    let listed = planned.unwrap().fingerprint();
    assert!(listed.is_some());
    assert_eq!((trips, requests), (1, vec![Request::List("a/c/".to_owned())]));
    let (planned, _, requests) = store.measure(plan(&arrays, "100:356")).await;
    assert_eq!((planned.unwrap().fingerprint(), requests.len()), (listed, 0), "absent chunks are remembered, too");
    let (elements, trips, requests) = store.measure(read(&arrays, "100:356")).await;
    assert_eq!((elements.unwrap(), trips, requests.len()), (expected[100..356].to_vec(), 1, 58));
    // The version that reads find is the same.
    advance(Duration::from_secs(5)).await;
    let looked = arrays_that_look(&store);
    assert_eq!(plan(&looked, "100:356").await.unwrap().fingerprint(), listed);
}

fn arrays_that_look(store: &DistantStore) -> Arrays {
    store.arrays(Recheck::Always, Options::default())
}

/// A request that has a tag learns the versions of more chunks.
#[tokio::test(start_paused = true)]
async fn a_request_that_compares_learns_the_versions_of_ten_thousand_chunks() {
    let (store, _) = store(10_001).await;
    for (recheck, select, trips, requests) in [
        // Too few for the eleven pages of the array.
        (Recheck::DISTANT, "0:800", 4, 199),
        (Recheck::DISTANT, "0:40000", 10, 10),
        (Recheck::Always, "0:40000", 11, 11),
    ] {
        let arrays = arrays(&store, recheck);
        plan(&arrays, "0").await.unwrap();
        if recheck != Recheck::Always {
            let (planned, trips, requests) = store.measure(plan(&arrays, select)).await;
            assert_eq!(planned.unwrap().fingerprint(), None);
            assert_eq!((trips, requests.len()), (0, 0));
        }
        let (planned, taken, asked) =
            store.measure(plan(&arrays.clone().with_purpose(Purpose::Comparison), select)).await;
        assert!(planned.unwrap().fingerprint().is_some());
        assert_eq!((taken, asked.len()), (trips, requests), "{select}");
    }
    let arrays = arrays(&store, Recheck::DISTANT);
    plan(&arrays, "0").await.unwrap();
    let (planned, _, requests) = store.measure(plan(&arrays.clone().with_purpose(Purpose::Comparison), "")).await;
    assert_eq!((planned.unwrap().fingerprint(), requests.len()), (None, 0));
}

/// All are looked at if no listing is worth while.
#[tokio::test(start_paused = true)]
async fn a_request_that_compares_looks_at_chunks_64_at_a_time() {
    let (store, _) = store(640).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    plan(&arrays, "0").await.unwrap();
    let (planned, trips, requests) = store.measure(plan(&arrays.clone().with_purpose(Purpose::Comparison), "")).await;
    assert!(planned.unwrap().fingerprint().is_some());
    assert_eq!((trips, requests.len()), (10, 639));
}

#[tokio::test(start_paused = true)]
async fn a_changed_chunk_changes_the_tag_when_it_is_looked_at_again() {
    let (store, _) = store(200).await;
    for recheck in [Recheck::DISTANT, Recheck::Always, Recheck::Never] {
        let served = store.served(recheck, LISTED);
        let arrays = Arrays::new(served.clone(), Options::default()).with_purpose(Purpose::Comparison);
        let fingerprint = async || plan(&arrays, "").await.unwrap().fingerprint().unwrap();
        let first = fingerprint().await;
        assert_eq!(fingerprint().await, first);
        for value in [Some([5; 4]), None, Some([9; 4])] {
            let before = fingerprint().await;
            match value {
                Some(elements) => store.set("a/c/77", with_checksum(&elements)).await,
                None => store.erase("a/c/77").await,
            }
            match recheck {
                Recheck::Always => {}
                Recheck::After(time) => advance(time).await,
                Recheck::Never => {
                    advance(Duration::from_secs(100_000)).await;
                    assert_eq!(fingerprint().await, before);
                    let current = not_before(Some(Instant::now()), fingerprint()).await;
                    assert_ne!(current, before);
                }
            }
            assert_ne!(fingerprint().await, before, "{recheck}: {value:?}");
        }
        assert_ne!(fingerprint().await, first, "versions do not return");
    }
}

/// The listings of some services are late.
#[tokio::test(start_paused = true)]
async fn late_listings_are_not_relied_on_twice() {
    let (store, _) = store(200).await;
    let older = MemoryStore::new();
    let all = store.memory.list_prefix(&Prefix::root(), PageRequest::first(10_000)).await.unwrap();
    for entry in all.keys {
        let value = store.memory.get(&entry.key, None).await.unwrap().unwrap().bytes().await.unwrap();
        older.set(&entry.key, value.into(), Precondition::none()).await.unwrap();
    }
    store.list_older(older);
    let current = arrays(&store, Recheck::Always).with_versions(VersionSource::Chunks);
    let (looked, _, requests) = store.measure(plan(&current, "0:256")).await;
    assert!(collect(looked.unwrap()).await.is_ok());
    assert_eq!(listings(&requests), 0, "a request for what is current");
    let arrays = arrays(&store, Recheck::DISTANT);
    let planned = plan(&arrays, "0:256").await.unwrap();
    assert!(collect(planned).await.unwrap_err().is_changed());
    let (elements, _, requests) = store.measure(read(&arrays, "0:256")).await;
    assert_eq!((elements.unwrap().len(), listings(&requests)), (256, 0));
}
