//! Copies of a store, whole ones and those that lack a part.

use super::*;

#[tokio::test]
async fn log_segment_that_was_cut_short_is_rejected() {
    for kind in KINDS {
        let dir = crashed_store(kind).await;
        let segment = last_segment(dir.path());
        let sound = fs::read(&segment).unwrap();
        let end = sound.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        // In the header, among the frames, and in the zeros behind them, which cannot be told from lost frames.
        for len in [4000, 4096, end / 2, end + 100, sound.len() as u64 - 1] {
            File::options().write(true).open(&segment).unwrap().set_len(len).unwrap();
            let before = contents(dir.path());
            match open(dir.path(), kind).await {
                Err(OpenError::Corrupt { file, cause: FileCorruption::CutShort { found, expected } }) => {
                    assert_eq!((file, found, expected), (segment.clone(), len, sound.len() as u64));
                }
                other => panic!("{kind}: {other:?}"),
            }
            assert_eq!(contents(dir.path()), before, "{kind}");
            fs::write(&segment, &sound).unwrap();
        }
        // Earlier versions left the size out of the header.
        let file = File::options().write(true).open(&segment).unwrap();
        file.write_all_at(&[0; 16], 60).unwrap();
        expect_all(&open(dir.path(), kind).await.unwrap()).await;
    }
}

#[tokio::test]
async fn versions_and_value_files_of_copies_do_not_repeat() {
    for kind in KINDS {
        let original = closed_store(kind).await;
        let before = value_files(original.path());
        // Two copies, such as a backup that is restored twice, and the original, which goes on.
        let mut copies = vec![original];
        for _ in 0..2 {
            let copy = tempfile::tempdir().unwrap();
            copy_index(copies[0].path(), copy.path());
            copies.push(copy);
        }
        let (mut versions, mut files) = (Vec::new(), Vec::new());
        let mut stores = Vec::new();
        for copy in &copies {
            let store = open(copy.path(), kind).await.unwrap();
            for number in 0..100_u8 {
                let name = format!("small/{number}");
                set(&store, &name, vec![number + 1; 100]).await;
                versions.push(store.head(&key(&name)).await.unwrap().unwrap().version);
            }
            set(&store, "more", vec![7; 1_000_000]).await;
            let new = value_files(copy.path()).into_iter().map(|file| file.file_name().unwrap().to_owned());
            files.extend(new.filter(|name| before.iter().all(|file| file.file_name() != Some(name))));
            stores.push(store);
        }
        assert_eq!(versions.iter().collect::<std::collections::HashSet<_>>().len(), 300, "{kind}");
        assert_eq!(files.iter().collect::<std::collections::HashSet<_>>().len(), 3, "{kind}: {files:?}");
        // A condition on a version that another copy gave is not met.
        let condition = Precondition::at(versions[150]);
        let payload = Payload::from_bytes(vec![1]);
        let refused = stores[0].set(&key("small/50"), payload, condition).await;
        assert!(matches!(refused, Err(zarrd_store::StoreError::PreconditionFailed { .. })), "{refused:?}");
    }
}
