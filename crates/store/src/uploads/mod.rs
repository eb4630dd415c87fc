//! Uploads of values in parts.
//!
//! ```text
//! \3uploads/<key>\1<id>     an upload under way: owner and note, with the attributes that the value gets
//! \3parts/<id>/<number>     a part, an ordinary value with its own version, checksum and file
//! \3completed/<key>\1<id>   a completed upload: owner and note, the parts, and the version that the value got
//! ```
//!
//! These are hidden keys, which no text from outside is and no listing has. An upload is made of the commits that a
//! [`TransactionalStore`] has already: it survives restarts, and is whole or absent after a crash, as everything else.

mod error;
mod id;
mod names;
mod record;
mod types;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use self::{
    error::UploadsError,
    id::{UploadId, UploadIdError},
    types::{
        COMPLETION_MEMORY, Completion, MAX_UPLOAD_NOTE_LEN, NewUpload, Part, PartPage, UPLOAD_RETENTION, Upload,
        UploadPage, UploadState, UploadsAfter,
    },
};
use self::{
    names::Names,
    record::{CompletedRecord, UploadRecord, digest_of},
};
use crate::{
    Attributes, Change, ChangeOutcome, Checksum, Key, MAX_PARTS, Payload, Precondition, PutResult, Scan, Scanned,
    Staged, StoreError, TransactionalStore, Version,
};

/// The number of keys that a sweep lists at a time.
const SWEEP_PAGE: usize = 1000;

/// A part whose bytes are stored, and which the upload does not have yet.
#[derive(Clone, Debug)]
pub struct StagedPart {
    names: Names,
    upload: Version,
    number: u32,
    staged: Staged,
}

/// Uploads values in parts, which become one value in one commit.
///
/// ```text
/// begin_upload ──▶ stage_part, put_part … ──▶ complete_upload ──▶ the value; the parts are gone
///                                       └──▶ abort_upload, or nothing for a week ──▶ nothing
/// ```
///
/// - Every [`TransactionalStore`] has it. What is under way survives a restart if values do.
/// - Parts count as used space, and take as much while the upload lasts as any value.
/// - Completing [joins](crate::BatchStore::stage_joined) the parts before its commit. A store that copies them for that takes
///   the time of writing the value once more, and the space of parts and value together until the parts are removed after
///   it. If it fails, for example with [`StoreError::OutOfSpace`], the upload is as before.
/// - Numbers and sizes of parts are the caller's to judge, except that numbers are 1 to [`MAX_PARTS`] and ascend. Who may
///   go on with an upload is as well ([`Upload::owner`]).
/// - Uploads are in no listing, snapshot, backup or copy of the store. Erasing the key, or everything, does not end them.
#[async_trait]
pub trait UploadStore: TransactionalStore {
    /// Begins an upload of the value of a key.
    async fn begin_upload(&self, key: &Key, new: &NewUpload) -> Result<UploadId, UploadsError> {
        let value = UploadRecord::encode(&new.owner, &new.note)?;
        let names = Names::new(key, UploadId::random());
        let payload = Payload::from_bytes(value).with_attributes(new.attributes.with_checksum(None));
        self.set(&names.upload()?, payload, Precondition::absent()).await?;
        Ok(names.id())
    }

    /// Returns an upload that is under way, or was completed in the last [`COMPLETION_MEMORY`]. Fails with
    /// [`UploadsError::NotFound`] if there is none of this key.
    async fn upload(&self, key: &Key, id: UploadId) -> Result<Upload, UploadsError> {
        let names = Names::new(key, id);
        if let Some(value) = self.get(&names.upload()?, None).await? {
            let (since, attributes) = (value.meta.modified, value.meta.attributes.clone());
            let UploadRecord { owner, note } = UploadRecord::decode(value.bytes().await?, &names)?;
            return Ok(Upload { key: key.clone(), id, state: UploadState::Begun, owner, note, since, attributes });
        }
        let Some(value) = self.get(&names.completed()?, None).await? else { return Err(names.not_found()) };
        let (since, attributes) = (value.meta.modified, Attributes::NONE);
        let UploadRecord { owner, note } = CompletedRecord::decode(value.bytes().await?, &names)?.upload;
        Ok(Upload { key: key.clone(), id, state: UploadState::Completed, owner, note, since, attributes })
    }

    /// Stores the bytes of a part. The part is one of the upload when it is [put](Self::put_part), which is separate since
    /// a checksum may arrive after the bytes. Attributes of the payload are ignored.
    async fn stage_part(
        &self,
        key: &Key,
        id: UploadId,
        number: u32,
        payload: Payload,
    ) -> Result<StagedPart, UploadsError> {
        let names = Names::new(key, id);
        let part = names.part(number)?;
        let upload = self.head(&names.upload()?).await?.ok_or_else(|| names.not_found())?.version;
        let staged = self.stage(&part, payload.with_attributes(Attributes::NONE)).await?;
        Ok(StagedPart { names, upload, number, staged })
    }

    /// Adds a part to its upload, in place of one of the same number. Fails with [`UploadsError::NotFound`] if the upload
    /// has ended.
    async fn put_part(&self, part: StagedPart, checksum: Option<Checksum>) -> Result<Part, UploadsError> {
        let StagedPart { names, upload, number, staged } = part;
        let size = staged.size();
        let staged = staged.with_attributes(Attributes::NONE.with_checksum(checksum));
        let check = Change::Check { key: names.upload()?, precondition: Precondition::at(upload) };
        let set = Change::Set { staged, precondition: Precondition::none() };
        match self.commit(vec![check, set]).await {
            Ok(outcomes) => {
                let version = version_set(&outcomes).ok_or(StoreError::Closed)?;
                Ok(Part { number, size, version, modified: SystemTime::now(), checksum })
            }
            Err(StoreError::PreconditionFailed { .. }) => Err(names.not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the parts of an upload after a number.
    async fn upload_parts(&self, key: &Key, id: UploadId, after: u32, limit: usize) -> Result<PartPage, UploadsError> {
        let names = Names::new(key, id);
        if self.head(&names.upload()?).await?.is_none() {
            return Err(names.not_found());
        }
        let page = self.scan(&names.scan_parts(after, limit)?).await?;
        let parts = page.entries.into_iter().filter_map(|found| match found {
            Scanned::Key(entry) => Some(Part {
                number: names.number_of(&entry.key)?,
                size: entry.meta.size,
                version: entry.meta.version,
                modified: entry.meta.modified,
                checksum: entry.meta.attributes.checksum().copied(),
            }),
            Scanned::Prefix(_) => None,
        });
        Ok(PartPage { parts: parts.collect(), more: page.more })
    }

    /// Lists the uploads under way whose keys begin with a text.
    async fn uploads(&self, prefix: &str, after: UploadsAfter<'_>, limit: usize) -> Result<UploadPage, UploadsError> {
        let page = self.scan(&names::scan_uploads(prefix, after, limit)).await?;
        let mut uploads = Vec::with_capacity(page.entries.len());
        for found in page.entries {
            let Some(names) = Names::of_upload(found.as_str()) else { continue };
            match self.upload(names.key(), names.id()).await {
                Ok(upload) if upload.state == UploadState::Begun => uploads.push(upload),
                // It has ended since.
                Ok(_) | Err(UploadsError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(UploadPage { uploads, more: page.more })
    }

    /// Makes the parts the value of the key, and ends the upload, in one commit.
    ///
    /// Completing once more with the same parts, in the next [`COMPLETION_MEMORY`], returns the same result and changes
    /// nothing, whatever became of the value since. Of two completions at once, one is such a repetition.
    ///
    /// # Errors
    ///
    /// The upload goes on if this fails.
    ///
    /// - [`UploadsError::NotFound`] if there is no such upload, or if it was completed with other parts.
    /// - [`UploadsError::NoParts`], [`UploadsError::PartOrder`], or [`UploadsError::InvalidPart`] for the first part that the
    ///   upload does not have at this version.
    /// - [`StoreError::PreconditionFailed`], and whatever [`stage_joined`](crate::BatchStore::stage_joined) fails with.
    async fn complete_upload(
        &self,
        key: &Key,
        id: UploadId,
        completion: &Completion<'_>,
    ) -> Result<PutResult, UploadsError> {
        let names = Names::new(key, id);
        check_order(completion.parts)?;
        let failed = match complete_once(self, &names, completion).await {
            Ok(result) => return Ok(result),
            Err(failed) => failed,
        };
        // Whichever of its conditions failed, another completion may have been the cause.
        let may_be_overtaken = matches!(
            failed,
            UploadsError::NotFound { .. }
                | UploadsError::InvalidPart { .. }
                | UploadsError::Store(StoreError::PreconditionFailed { .. })
        );
        match may_be_overtaken && self.head(&names.upload()?).await?.is_none() {
            true => repeated(self, &names, completion.parts).await,
            false => Err(failed),
        }
    }

    /// Ends an upload and removes its parts. Fails with [`UploadsError::NotFound`] if it is not under way.
    async fn abort_upload(&self, key: &Key, id: UploadId) -> Result<(), UploadsError> {
        let names = Names::new(key, id);
        let changes = vec![
            Change::Erase { key: names.upload()?, precondition: Precondition::present() },
            Change::ErasePrefix { prefix: names.parts()? },
        ];
        match self.commit(changes).await {
            Ok(_) => Ok(()),
            Err(StoreError::PreconditionFailed { .. }) => Err(names.not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the uploads to which nothing was added for the time `abandoned`, and removes the notes of uploads completed before
    /// [`COMPLETION_MEMORY`]. Returns the number of uploads that were ended.
    async fn sweep_uploads(&self, abandoned: Duration) -> Result<u64, UploadsError> {
        let now = SystemTime::now();
        let is_older = |modified: SystemTime, age: Duration| now.duration_since(modified).is_ok_and(|past| past >= age);
        let (mut ended, mut after) = (0_u64, names::UPLOADS.to_owned());
        while let Some((entries, last)) = sweep_page(self, names::UPLOADS, after).await? {
            for (key, _, begun) in entries {
                let Some(names) = Names::of_upload(key.as_str()).filter(|_| is_older(begun, abandoned)) else {
                    continue;
                };
                let parts = self.scan(&names.scan_parts(0, MAX_PARTS as usize)?).await?.entries;
                let is_used =
                    |part: &Scanned| matches!(part, Scanned::Key(entry) if !is_older(entry.meta.modified, abandoned));
                if parts.iter().any(is_used) {
                    continue;
                }
                match self.abort_upload(names.key(), names.id()).await {
                    Ok(()) => ended = ended.saturating_add(1),
                    Err(UploadsError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            after = last;
        }
        after = names::COMPLETED.to_owned();
        while let Some((entries, last)) = sweep_page(self, names::COMPLETED, after).await? {
            let old = entries.into_iter().filter(|(_, _, modified)| is_older(*modified, COMPLETION_MEMORY));
            let erases = old.map(|(key, _, _)| Change::Erase { key, precondition: Precondition::none() });
            let erases: Vec<Change> = erases.collect();
            if !erases.is_empty() {
                self.commit(erases).await?;
            }
            after = last;
        }
        Ok(ended)
    }
}

impl<S: TransactionalStore + ?Sized> UploadStore for S {}

/// Some hidden keys after a text with their versions and times, and the text after which the next ones are.
type SweepPage = (Vec<(Key, Version, SystemTime)>, String);

async fn sweep_page<S: TransactionalStore + ?Sized>(
    store: &S,
    prefix: &str,
    after: String,
) -> Result<Option<SweepPage>, StoreError> {
    let page = store.scan(&Scan::hidden(prefix.to_owned(), after, SWEEP_PAGE)).await?;
    let Some(last) = page.entries.last().map(|last| last.as_str().to_owned()) else { return Ok(None) };
    let entries = page.entries.into_iter().filter_map(|found| match found {
        Scanned::Key(entry) => Some((entry.key, entry.meta.version, entry.meta.modified)),
        Scanned::Prefix(_) => None,
    });
    Ok(Some((entries.collect(), last)))
}

/// Completes an upload that is under way. Fails with one of its conditions if another completion ends it meanwhile.
async fn complete_once<S: TransactionalStore + ?Sized>(
    store: &S,
    names: &Names,
    completion: &Completion<'_>,
) -> Result<PutResult, UploadsError> {
    let found = store.get(&names.upload()?, None).await?.ok_or_else(|| names.not_found())?;
    let (upload, attributes) = (found.meta.version, found.meta.attributes.clone());
    let record = UploadRecord::decode(found.bytes().await?, names)?;
    let current = store.head(names.key()).await?.map(|meta| meta.version);
    completion.precondition.check(names.key(), current)?;
    let staged = joined(store, names, completion.parts).await?;
    let staged = staged.with_attributes(attributes.with_checksum(completion.checksum));
    let completed = CompletedRecord { upload: record, digest: digest_of(completion.parts), version: None };
    let changes = vec![
        Change::Erase { key: names.upload()?, precondition: Precondition::at(upload) },
        Change::ErasePrefix { prefix: names.parts()? },
        Change::Set { staged, precondition: completion.precondition.clone() },
        Change::Put { key: names.completed()?, value: completed.encode(), precondition: Precondition::none() },
    ];
    let outcomes = store.commit(changes).await?;
    let mut written = outcomes.iter().filter_map(put_result);
    let (result, noted) = (written.next().ok_or(StoreError::Closed)?, written.next());
    note_version(store, names, completed, result.version, noted).await;
    Ok(result)
}

/// Stages the parts as one value.
async fn joined<S: TransactionalStore + ?Sized>(
    store: &S,
    names: &Names,
    parts: &[(u32, Version)],
) -> Result<Staged, UploadsError> {
    let keys = parts.iter().map(|(number, version)| Ok((names.part(*number)?, *version)));
    let keys = keys.collect::<Result<Vec<_>, UploadsError>>()?;
    store.stage_joined(names.key(), &keys).await.map_err(|error| match error {
        StoreError::PreconditionFailed { key, .. } => {
            UploadsError::InvalidPart { number: names.number_of(&key).unwrap_or_default() }
        }
        error => error.into(),
    })
}

/// The result of a completion with the same parts.
async fn repeated<S: TransactionalStore + ?Sized>(
    store: &S,
    names: &Names,
    parts: &[(u32, Version)],
) -> Result<PutResult, UploadsError> {
    let Some(found) = store.get(&names.completed()?, None).await? else { return Err(names.not_found()) };
    let meta = found.meta.clone();
    let completed = CompletedRecord::decode(found.bytes().await?, names)?;
    if completed.digest != digest_of(parts) {
        return Err(names.not_found());
    }
    let replaced = false;
    if let Some(version) = completed.version {
        return Ok(PutResult { version, replaced });
    }
    // The process ended before it noted the version. The value of the same commit has the same time; if there is another
    // one since, the version is one that no value has.
    let current = store.head(names.key()).await?.filter(|current| current.modified == meta.modified);
    Ok(PutResult { version: current.map_or(meta.version, |current| current.version), replaced })
}

/// Notes the version that the value got, which is known only after its commit. If this fails, it is found out by time.
async fn note_version<S: TransactionalStore + ?Sized>(
    store: &S,
    names: &Names,
    completed: CompletedRecord,
    version: Version,
    noted: Option<PutResult>,
) {
    let value = CompletedRecord { version: Some(version), ..completed }.encode();
    if let (Some(noted), Ok(key)) = (noted, names.completed()) {
        let precondition = Precondition::at(noted.version);
        // See above.
        let _ = store.commit(vec![Change::Put { key, value, precondition }]).await;
    }
}

fn check_order(parts: &[(u32, Version)]) -> Result<(), UploadsError> {
    if parts.is_empty() {
        return Err(UploadsError::NoParts);
    }
    match parts.is_sorted_by(|(one, _), (other, _)| one < other) {
        true => Ok(()),
        false => Err(UploadsError::PartOrder),
    }
}

fn version_set(outcomes: &[ChangeOutcome]) -> Option<Version> {
    outcomes.iter().find_map(put_result).map(|result| result.version)
}

fn put_result(outcome: &ChangeOutcome) -> Option<PutResult> {
    match outcome {
        ChangeOutcome::Set(result) => Some(*result),
        _ => None,
    }
}
