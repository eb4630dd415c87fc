//! Directories in which a cache is opened, or is not.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use zarrd_disk_cache::{DiskCache, OpenError, Options};

use crate::common::{SMALL, fill, found, id, open};

async fn error(path: &Path, options: Options) -> OpenError {
    match DiskCache::open(path, options).await {
        Err(error) => error,
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn directories_are_for_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let [new, existing] = ["a/b", "c"].map(|name| dir.path().join(name));
    fs::create_dir(&existing).unwrap();
    fs::set_permissions(&existing, fs::Permissions::from_mode(0o755)).unwrap();
    for path in [new, existing] {
        let cache = open(&path).await;
        assert_eq!((mode(&path), mode(&path.join("blocks"))), (0o700, 0o700));
        for block in fs::read_dir(path.join("blocks")).unwrap() {
            assert_eq!(mode(&block.unwrap().path()) & 0o077, 0);
        }
        drop(cache);
    }
}

#[tokio::test]
async fn a_directory_with_other_files_is_refused_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["thesis.txt", "blocks"] {
        let path = dir.path().join(format!("with-{name}"));
        fs::create_dir(&path).unwrap();
        fs::write(path.join(name), "important").unwrap();
        let error = error(&path, SMALL).await;
        assert!(matches!(&error, OpenError::Foreign { name: named, .. } if named == name), "{error:?}");
        assert!(error.to_string().contains(name) && error.to_string().contains("with-"), "{error}");
        assert_eq!(fs::read_to_string(path.join(name)).unwrap(), "important");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "nothing was made");
    }
    let path = dir.path().join("cache");
    drop(open(&path).await);
    for name in ["thesis.txt", "blocks/foyer-storage-direct-fs-0000000x"] {
        fs::write(path.join(name), "important").unwrap();
        let error = error(&path, SMALL).await;
        assert!(matches!(error, OpenError::Foreign { .. }), "{error:?}");
        fs::remove_file(path.join(name)).unwrap();
    }
    drop(open(&path).await);
}

#[tokio::test]
async fn a_directory_is_used_by_one_server() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path()).await;
    let error = error(dir.path(), SMALL).await;
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(error.to_string().ends_with(&format!("another server, process {}", std::process::id())), "{error}");
    drop(cache);
    drop(open(dir.path()).await);
}

#[tokio::test]
async fn what_is_no_directory_or_cannot_be_one_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = error(&path, SMALL).await;
        assert!(matches!(error, OpenError::NotADirectory { .. }), "{error:?}");
        assert!(error.to_string().contains("file"), "{error}");
    }
    let error = error(Path::new("/proc/zarrd"), SMALL).await;
    assert!(matches!(error, OpenError::Io { .. }) && error.to_string().contains("/proc/zarrd"), "{error:?}");
}

#[tokio::test]
async fn a_size_without_room_for_the_blocks_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = error(dir.path(), Options::new((256 << 20) - 1)).await;
    assert!(matches!(error, OpenError::TooSmall { min: 0x1000_0000, .. }), "{error:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let cache = DiskCache::open(dir.path(), Options::new(300 << 20)).await.unwrap();
    assert_eq!(fs::read_dir(dir.path().join("blocks")).unwrap().count(), 4, "whole blocks");
    drop(cache);
}

#[tokio::test]
async fn a_size_that_is_not_there_is_an_error_and_takes_no_space() {
    let dir = tempfile::tempdir().unwrap();
    for options in [Options { size: 1 << 62, block_len: 1 << 58 }, Options::new(1 << 50), Options::new(u64::MAX)] {
        let error = error(dir.path(), options).await;
        assert!(matches!(error, OpenError::OutOfSpace { .. }), "{error:?}");
        assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
        assert_eq!(fs::read_dir(dir.path().join("blocks")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn another_size_keeps_what_fits() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..4).map(|number| id(&format!("c/{number}"), 1, 0)).collect();
    let large = Options { size: 2 * SMALL.size, ..SMALL };
    for options in [SMALL, large, SMALL] {
        let cache = DiskCache::open(dir.path(), options).await.unwrap();
        let blocks = fs::read_dir(dir.path().join("blocks")).unwrap().count() as u64;
        assert_eq!(blocks * options.block_len, options.size);
        found(&cache, &ids).await;
        fill(&cache, &ids).await;
        assert_eq!(found(&cache, &ids).await, 4);
    }
}

#[tokio::test]
async fn entries_of_another_form_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..4).map(|number| id(&format!("c/{number}"), 1, 0)).collect();
    let cache = open(dir.path()).await;
    fill(&cache, &ids).await;
    drop(cache);
    fs::write(dir.path().join("zarrd-disk-cache"), "the disk cache of a zarrd server, form 0\n").unwrap();
    let cache = open(dir.path()).await;
    assert_eq!(found(&cache, &ids).await, 0);
    fill(&cache, &ids).await;
    drop(cache);
    assert_eq!(found(&open(dir.path()).await, &ids).await, 4);
}
