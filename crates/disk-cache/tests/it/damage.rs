//! Files that are changed by something else, and runs that end anyhow.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use zarrd_store::PieceCache;

use crate::common::{fill, found, id, open};

fn blocks(dir: &Path) -> Vec<PathBuf> {
    let mut blocks: Vec<_> = fs::read_dir(dir.join("blocks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    blocks.sort();
    blocks
}

/// Changes bytes of each block at the positions that the function chooses.
fn damage<I: Iterator<Item = usize>>(dir: &Path, chosen: impl Fn(usize) -> I) {
    for (number, block) in blocks(dir).into_iter().enumerate() {
        let file = fs::File::options().read(true).write(true).open(&block).unwrap();
        let mut bytes = fs::read(&block).unwrap();
        let len = bytes.len();
        for at in chosen(number).take_while(|at| *at < len) {
            bytes[at] ^= 0x10;
        }
        file.write_all_at(&bytes, 0).unwrap();
    }
}

#[tokio::test]
async fn damaged_pieces_are_misses_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path()).await;
    let ids: Vec<_> = (0..6).map(|number| id(&format!("c/{number}"), 1, number)).collect();
    fill(&cache, &ids).await;
    assert_eq!(found(&cache, &ids).await, 6);
    damage(dir.path(), |_| (70_000..).step_by(500_000));
    assert_eq!(found(&cache, &ids).await, 0, "each piece has a byte that changed");
    let status = cache.status();
    assert_eq!((status.damaged, status.failures, status.hits), (6, 0, 6), "{status:?}");
    fill(&cache, &ids).await;
    assert_eq!(found(&cache, &ids).await, 6, "they are cached again");
}

#[tokio::test]
async fn a_cache_is_found_again_after_a_stop_and_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..6).map(|number| id(&format!("c/{number}"), 1, number)).collect();
    let cache = open(dir.path()).await;
    fill(&cache, &ids).await;
    // Without an end in order, what was written is there.
    drop(cache);
    let cache = open(dir.path()).await;
    assert_eq!(found(&cache, &ids).await, 6);
    cache.close().await;
    drop(cache);
    let cache = open(dir.path()).await;
    assert_eq!(found(&cache, &ids).await, 6);
    assert!(cache.status().used_bytes > 0 && cache.status().damaged == 0, "{:?}", cache.status());
}

#[tokio::test]
async fn blocks_that_are_cut_or_missing_are_misses() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..10).map(|number| id(&format!("c/{number}"), 1, 0)).collect();
    for change in ["cut", "empty", "removed", "mixed"] {
        let cache = open(dir.path()).await;
        fill(&cache, &ids).await;
        drop(cache);
        let files = blocks(dir.path());
        match change {
            "cut" => files.iter().for_each(|file| {
                fs::File::options().write(true).open(file).unwrap().set_len(2_000_000).unwrap();
            }),
            "empty" => files.iter().for_each(|file| fs::write(file, "").unwrap()),
            "removed" => files.iter().for_each(|file| fs::remove_file(file).unwrap()),
            // A block in the place of another one.
            _ => {
                let first = fs::read(&files[0]).unwrap();
                fs::copy(&files[1], &files[0]).unwrap();
                fs::write(&files[1], first).unwrap();
            }
        }
        let cache = open(dir.path()).await;
        let count = found(&cache, &ids).await;
        assert!(count < 10 || change == "mixed", "{change}: {count}");
        fill(&cache, &ids).await;
        assert!(found(&cache, &ids[5..]).await == 5, "{change}");
    }
}

#[tokio::test]
async fn a_cache_whose_blocks_are_all_full_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..20).map(|number| id(&format!("c/{number}"), 1, 0)).collect();
    let cache = open(dir.path()).await;
    fill(&cache, &ids).await;
    drop(cache);
    let files = blocks(dir.path());
    // As if the process ended before a block was free.
    let is_free = |file: &&PathBuf| fs::read(file).unwrap()[..4096].iter().all(|byte| *byte == 0);
    let full = files.iter().find(|file| !is_free(file)).unwrap();
    for file in files.iter().filter(is_free) {
        fs::copy(full, file).unwrap();
    }
    let cache = open(dir.path()).await;
    fill(&cache, &ids).await;
    assert!(found(&cache, &ids[17..]).await == 3);
    assert_eq!(cache.status().failures, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_of_the_files_gives_other_bytes(step in 1_000_usize..900_000, offset in 0_usize..5_000, open_before: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let ids: Vec<_> = (0..10).map(|number| id(&format!("c/{}", number % 6), number / 6, (number % 2) as u64)).collect();
            let cache = open(dir.path()).await;
            fill(&cache, &ids).await;
            if open_before {
                damage(dir.path(), |number| (offset + number..).step_by(step));
                found(&cache, &ids).await;
            }
            drop(cache);
            damage(dir.path(), |number| (offset * 3 + number..).step_by(step));
            let cache = open(dir.path()).await;
            found(&cache, &ids).await;
            fill(&cache, &ids).await;
            found(&cache, &ids).await;
        });
    }
}
