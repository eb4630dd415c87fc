//! Uploads in parts, as steps of a run and in the states after crashes.

use zarrd_store::{
    Completion, NewUpload, Precondition, ReadableStore, StoreError, UploadId, UploadStore, UploadsAfter, UploadsError,
    Version, WriteableStore,
};
use zarrd_store_local::LocalStore;

use crate::crash_states::workload::{key, value};

/// The end of an upload in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Aborted,
    /// Nothing: it is left.
    Open,
}

/// An upload whose parts make up a value.
pub(crate) struct Uploaded {
    key: String,
    id: UploadId,
    parts: Vec<(u32, Version)>,
}

impl Uploaded {
    /// Uploads a value in three parts, of which one is replaced.
    pub(crate) async fn new(store: &LocalStore, operation: u64, name: &str, len: u32) -> Result<Self, StoreError> {
        let bytes = value(operation, name, len);
        let id = store.begin_upload(&key(name), &NewUpload::default()).await.map_err(failed)?;
        let mut parts = Vec::new();
        let third = bytes.len().div_ceil(3).max(1);
        let part = async |number, bytes: &[u8]| {
            let staged = store.stage_part(&key(name), id, number, bytes.to_vec().into()).await.map_err(failed)?;
            store.put_part(staged, None).await.map_err(failed)
        };
        part(1, b"replaced").await?;
        for (number, chunk) in (1..).zip(bytes.chunks(third)) {
            parts.push((number, part(number, chunk).await?.version));
        }
        Ok(Self { key: name.to_owned(), id, parts })
    }

    /// Makes the parts the value, or ends the upload without.
    pub(crate) async fn end(&self, store: &LocalStore, end: End) -> Result<(), StoreError> {
        let key = key(&self.key);
        match end {
            End::Completed => {
                let completion = Completion { parts: &self.parts, ..Completion::default() };
                store.complete_upload(&key, self.id, &completion).await.map(drop).map_err(failed)
            }
            End::Aborted => store.abort_upload(&key, self.id).await.map_err(failed),
            End::Open => Ok(()),
        }
    }
}

/// Ends all uploads that a state has. Fails if one of them is not whole, or if that leaves something.
pub(crate) async fn end_all(store: &LocalStore) -> Result<(), String> {
    let failed = |error: UploadsError| format!("uploads: {error:?}");
    let found = store.uploads("", UploadsAfter::Nothing, 10_000).await.map_err(failed)?;
    for upload in &found.uploads {
        let parts = store.upload_parts(&upload.key, upload.id, 0, 10_000).await.map_err(failed)?.parts;
        let named: Vec<_> = parts.iter().map(|part| (part.number, part.version)).collect();
        let size: u64 = parts.iter().map(|part| part.size).sum();
        let completion = Completion { parts: &named, ..Completion::default() };
        if named.is_empty() {
            store.abort_upload(&upload.key, upload.id).await.map_err(failed)?;
            continue;
        }
        let before = store.get(&upload.key, None).await.map_err(|error| format!("{error:?}"))?;
        let before = match before {
            Some(value) => Some(value.bytes().await.map_err(|error| format!("{error:?}"))?),
            None => None,
        };
        store.complete_upload(&upload.key, upload.id, &completion).await.map_err(failed)?;
        let meta = store.head(&upload.key).await.map_err(|error| format!("{error:?}"))?;
        if meta.map(|meta| meta.size) != Some(size) {
            return Err(format!("{} has another size than the parts of its upload", upload.key));
        }
        let none = Precondition::none;
        let restored = match before {
            Some(bytes) => store.set(&upload.key, bytes.into(), none()).await.map(drop),
            None => store.erase(&upload.key, none()).await.map(drop),
        };
        restored.map_err(|error| format!("{error:?}"))?;
    }
    let left = store.sweep_uploads(std::time::Duration::ZERO).await.map_err(failed)?;
    match left {
        0 => Ok(()),
        left => Err(format!("{left} uploads were left")),
    }
}

fn failed(error: UploadsError) -> StoreError {
    match error {
        UploadsError::Store(error) => error,
        error => panic!("an upload: {error:?}"),
    }
}
