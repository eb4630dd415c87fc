//! Value files that the operating system cannot read.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// What can be in place of a value file, and whether the system can open it.
const ODD_FILES: [&str; 5] = ["a sector that cannot be read", "a directory", "a pipe", "a loop of links", "a socket"];

/// Replaces a file by one that cannot be read.
fn replace(file: &Path, kind: &str) {
    fs::remove_file(file).unwrap();
    match kind {
        // Reads of it fail with EIO, as those of an unreadable sector do.
        "a sector that cannot be read" => symlink("/proc/self/mem", file).unwrap(),
        "a directory" => fs::create_dir(file).unwrap(),
        // A program that makes it would be a fork of this one, and have the locks of stores that other tests close.
        "a pipe" => mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        "a loop of links" => symlink(file, file).unwrap(),
        _ => drop(std::os::unix::net::UnixListener::bind(file).unwrap()),
    }
}

#[tokio::test]
async fn unreadable_value_files_are_damage_that_names_key_and_file() {
    for (number, odd) in ODD_FILES.into_iter().enumerate() {
        let dir = closed_store(KINDS[number % 2]).await;
        let file = value_files(dir.path()).remove(0);
        replace(&file, odd);
        let store = open(dir.path(), KINDS[number % 2]).await.unwrap();
        let name = file.strip_prefix(dir.path()).unwrap().to_str().unwrap();
        match store.get(&key("large"), None).await {
            Err(StoreError::Corrupt { key: named, cause }) => {
                assert_eq!(named, key("large"), "{odd}");
                match cause.downcast_ref() {
                    Some(ValueCorruption::Unreadable { file, .. }) => assert_eq!(file, name, "{odd}"),
                    other => panic!("{odd}: {other:?}"),
                }
            }
            other => panic!("{odd}: {other:?}"),
        }
        let Checked { report, corrupt, .. } = store.check(|_| ()).await.unwrap();
        assert_eq!((report.keys, report.corrupt, corrupt.len()), (101, 1, 1), "{odd}");
        assert_eq!(corrupt[0].key, key("large"), "{odd}");
    }
}
