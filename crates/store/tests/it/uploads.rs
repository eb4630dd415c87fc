//! Completions of uploads that another completion overtakes.

use std::sync::atomic::{AtomicIsize, Ordering};

use async_trait::async_trait;
use zarrd_store::{
    Completion, Key, MemoryStore, NewUpload, Operation, Payload, Precondition, ReadableStore, StoreError, StoreWrapper,
    UploadId, UploadStore, Version,
};

/// A store in which another request completes the upload of the key just before one of the operations.
struct Overtaken<'a> {
    inner: MemoryStore,
    operations_before: AtomicIsize,
    key: &'a Key,
    id: UploadId,
    completion: &'a Completion<'a>,
}

#[async_trait]
impl StoreWrapper for Overtaken<'_> {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    async fn before(&self, _: Operation<'_>) -> Result<(), StoreError> {
        if self.operations_before.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.inner.complete_upload(self.key, self.id, self.completion).await.unwrap();
        }
        Ok(())
    }
}

async fn upload(store: &MemoryStore, key: &Key) -> (UploadId, Vec<(u32, Version)>) {
    let id = store.begin_upload(key, &NewUpload::default()).await.unwrap();
    let staged = store.stage_part(key, id, 1, Payload::from_bytes("part")).await.unwrap();
    let part = store.put_part(staged, None).await.unwrap();
    (id, vec![(part.number, part.version)])
}

#[tokio::test]
async fn a_completion_that_is_overtaken_at_any_step_is_a_repetition() {
    let key = Key::parse("a").unwrap();
    let mut overtaken = 0;
    for step in 1.. {
        let inner = MemoryStore::new();
        let (id, parts) = upload(&inner, &key).await;
        let completion = Completion { parts: &parts, precondition: Precondition::absent(), checksum: None };
        let operations_before = AtomicIsize::new(step);
        let store = Overtaken { inner, operations_before, key: &key, id, completion: &completion };
        let completed = store.complete_upload(&key, id, &completion).await;
        let value = ReadableStore::head(&store.inner, &key).await.unwrap().unwrap();
        assert_eq!(completed.unwrap().version, value.version, "overtaken before operation {step}");
        if store.operations_before.load(Ordering::Relaxed) > 0 {
            break;
        }
        overtaken += 1;
    }
    assert!(overtaken >= 5, "{overtaken} operations");
}
