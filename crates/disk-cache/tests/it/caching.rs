//! Pieces are found as they were inserted, until their space is needed.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use zarrd_store::{
    ByteRange, CachedStore, GetResult, Key, MemoryStore, Operation, PIECE_LEN, PieceCache, PieceId, PieceStore, Pieces,
    Precondition, ReadableStore, Recheck, StoreError, StoreWrapper, WriteableStore,
};

use crate::common::{SMALL, bytes_of, fill, found, id, open};

/// A store that counts the reads of values.
#[derive(Clone, Default)]
struct Counting {
    memory: MemoryStore,
    gets: Arc<AtomicU64>,
}

#[async_trait]
impl StoreWrapper for Counting {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.memory
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        if let Operation::Get(_) = operation {
            self.gets.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}

async fn read(store: &impl ReadableStore, key: &Key, range: Option<ByteRange>) -> Result<GetResult, StoreError> {
    Ok(store.get(key, range).await?.expect("a value"))
}

/// The space that the files of a directory take, and their total length.
fn size_of(path: &Path) -> (u64, u64) {
    let mut sizes = (0, 0);
    for entry in fs::read_dir(path).unwrap() {
        let (path, meta) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        let (space, len) = if meta.is_dir() { size_of(&path) } else { (meta.blocks() * 512, meta.len()) };
        sizes = (sizes.0 + space, sizes.1 + len);
    }
    sizes
}

#[tokio::test]
async fn values_are_read_from_the_disk_and_in_the_next_run_as_well() {
    let (dir, store) = (tempfile::tempdir().unwrap(), Counting::default());
    let lens = [0, 1, PIECE_LEN - 1, PIECE_LEN, PIECE_LEN + 1, 5 * PIECE_LEN + 7];
    let values = lens.map(|len| {
        let key = Key::parse(&format!("c/{len}")).unwrap();
        (key.clone(), bytes_of(&id(key.as_str(), 1, 0), len))
    });
    for (key, value) in &values {
        WriteableStore::set(&store, key, value.clone().into(), Precondition::none()).await.unwrap();
    }
    for run in 0..3 {
        let options = zarrd_disk_cache::Options { size: 64 << 20, ..SMALL };
        let cache = Arc::new(zarrd_disk_cache::DiskCache::open(dir.path(), options).await.unwrap());
        // As in another process, nothing is known of the store.
        let pieces = Pieces::new(cache.clone()).of_store("memory");
        let cached = PieceStore::new(CachedStore::new(store.clone(), Recheck::Never), pieces);
        for _ in 0..2 {
            for (key, value) in &values {
                assert!(read(&cached, key, None).await.unwrap().bytes().await.unwrap() == *value, "{key}");
                if let Some(last) = ByteRange::Last(3).resolve(value.len() as u64).filter(|range| !range.is_empty()) {
                    let found = read(&cached, key, Some(ByteRange::Last(3))).await.unwrap();
                    assert_eq!(found.range, last);
                    assert!(found.bytes().await.unwrap() == value.slice(last.start as usize..));
                }
                cache.flush().await;
            }
        }
        let gets = store.gets.swap(0, Relaxed);
        // The empty value has no piece by which it could be found in the next run.
        let expected = if run == 0 { lens.len() as u64 } else { 1 };
        let status = cache.status();
        assert_eq!(gets, expected, "run {run}: {status:?}");
        assert_eq!((status.failures, status.damaged), (0, 0), "{status:?}");
        assert_eq!(status.misses, if run == 0 { 11 } else { 0 });
        assert!(status.hits >= 11 && status.read_bytes >= 8 * PIECE_LEN, "{status:?}");
        cache.close().await;
    }
}

#[tokio::test]
async fn another_version_is_another_piece() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path()).await;
    for index in [0, 1] {
        let (old, new) = (id("c/0", 1, index), id("c/0", 2, index));
        fill(&cache, std::slice::from_ref(&old)).await;
        assert_eq!(found(&cache, std::slice::from_ref(&old)).await, 1);
        assert_eq!(cache.get(&new).await, None);
        fill(&cache, std::slice::from_ref(&new)).await;
        assert_eq!(found(&cache, std::slice::from_ref(&new)).await, 1);
        found(&cache, std::slice::from_ref(&old)).await;
        assert!(cache.may_contain_key(new.store, &new.key));
    }
    let others = [id("c/1", 1, 0), PieceId { store: zarrd_store::StoreId::of("s3://c/"), ..id("c/0", 2, 0) }];
    for other in &others {
        assert_eq!(cache.get(other).await, None);
        assert!(!cache.may_contain_key(other.store, &other.key));
    }
    assert_eq!((cache.status().damaged, cache.status().failures), (0, 0));
}

#[tokio::test]
async fn the_size_is_never_exceeded_and_the_newest_pieces_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path()).await;
    let ids: Vec<_> = (0..80).map(|number| id(&format!("c/{number}"), 1, 0)).collect();
    for some in ids.chunks(5) {
        fill(&cache, some).await;
        let (space, len) = size_of(dir.path());
        // The lock has a line of text, and a file system needs some of its own for each file.
        assert!(len <= SMALL.size + 4096 && space <= SMALL.size + 65_536, "{space} bytes for {len}");
        assert_eq!(found(&cache, some).await, some.len());
    }
    let status = cache.status();
    assert_eq!((status.failures, status.damaged), (0, 0), "{status:?}");
    assert!(status.used_bytes <= status.capacity_bytes && status.capacity_bytes == SMALL.size, "{status:?}");
    let found = found(&cache, &ids).await;
    assert!((3..=12).contains(&found), "{found} pieces in 16 MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_pieces_waits_and_none_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let options = zarrd_disk_cache::Options { size: 256 << 20, ..SMALL };
    let cache = zarrd_disk_cache::DiskCache::open(dir.path(), options).await.unwrap();
    let ids: Vec<_> = (0..150).map(|number| id(&format!("c/{number}"), 1, number % 3)).collect();
    // As many as readers have at a time.
    let inserts = stream::iter(&ids).map(|id| cache.insert(id.clone(), bytes_of(id, PIECE_LEN)));
    inserts.buffer_unordered(64).collect::<Vec<_>>().await;
    assert_eq!(found(&cache, &ids).await, 150, "found before they are written, too");
    cache.flush().await;
    assert_eq!(found(&cache, &ids).await, 150);
    let written = async {
        while cache.status().written < 150 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written).await.unwrap();
    let status = cache.status();
    assert_eq!((status.written_bytes, status.misses, status.failures), (150 * PIECE_LEN, 150, 0), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_of_a_full_cache_never_get_other_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(open(dir.path()).await);
    let task = |seed: u64| {
        let cache = Arc::clone(&cache);
        tokio::spawn(async move {
            let mut random = seed;
            for _ in 0..150 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let draw = (random >> 33) as usize;
                let id = id(&format!("c/{}", draw % 40), (draw / 40 % 2) as u128, (draw / 80 % 2) as u64);
                let len = [1, 5_000, 300_000, PIECE_LEN][id.key.as_str().len() % 2 * 2 + id.index as usize];
                match cache.get(&id).await {
                    Some(found) => assert!(found == bytes_of(&id, len), "{id:?}"),
                    None => cache.insert(id.clone(), bytes_of(&id, len)).await,
                }
            }
        })
    };
    for done in join_all((0..6).map(|seed| task(seed + 1))).await {
        done.unwrap();
    }
    assert!(cache.status().hits > 0 && cache.status().failures == 0, "{:?}", cache.status());
}

#[tokio::test]
async fn a_cache_that_cannot_write_leaves_pieces_out_and_counts_them() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Arc::new(open(dir.path()).await);
    cache.close().await;
    let store = Counting::default();
    let key = Key::parse("c/0").unwrap();
    let value = Bytes::from(vec![7; 3 * PIECE_LEN as usize]);
    WriteableStore::set(&store, &key, value.clone().into(), Precondition::none()).await.unwrap();
    let pieces = Pieces::new(cache.clone()).of_store("memory");
    let cached = PieceStore::new(CachedStore::new(store.clone(), Recheck::Never), pieces);
    for _ in 0..3 {
        assert!(read(&cached, &key, None).await.unwrap().bytes().await.unwrap() == value);
    }
    let counted = async {
        while cache.status().failures < 9 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), counted).await.unwrap();
    let status = cache.status();
    assert_eq!((status.hits, status.misses, status.written), (0, 9, 0), "{status:?}");
}
