//! Large values without a condition, in parts.

use bytes::Bytes;
use object_store::{MultipartUpload, PutMultipartOptions, PutPayload, path::Path};
use tokio::{
    runtime::Handle,
    task::{JoinError, JoinSet},
};
use zarrd_store::{Key, PutResult, StoreError, UploadError, ValueMeta};

use super::{
    payload::{Incoming, MAX_PARTS},
    put::{Answer, Expected, Found, Turns, Write, WriteId},
};
use crate::{failure::Failure, http::Purpose, inner::Inner};

/// The number of parts that are sent at a time.
const CONCURRENT_PARTS: usize = 4;

/// An upload that is aborted when it is dropped, so that nothing is left of it.
struct Upload(Option<Box<dyn MultipartUpload>>);

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(mut upload), Ok(runtime)) = (self.0.take(), Handle::try_current()) else { return };
        runtime.spawn(async move {
            if let Err(error) = upload.abort().await {
                let failure = Failure::of(&error);
                tracing::warn!(%failure, "the parts of an unfinished upload to a bucket are left");
            }
        });
    }
}

/// Writes a value of which the first bytes have arrived. The last write wins.
pub(super) async fn upload(
    inner: &Inner,
    key: &Key,
    path: &Path,
    first: Vec<Bytes>,
    mut incoming: Incoming,
    id: WriteId,
) -> Result<PutResult, StoreError> {
    let write = Write { inner, key, path, payload: PutPayload::default(), id };
    let failed = |failure| write.error(failure);
    let before = Found::head(inner, key, path).await.map_err(failed)?;
    let mut upload = Upload(Some(begin(&write).await.map_err(failed)?));
    let size = send_parts(&mut upload, &write, first, &mut incoming).await?;
    let meta = complete(upload, &write, size).await?;
    Ok(PutResult { version: meta.version, replaced: before.is_some() })
}

async fn begin(write: &Write<'_>) -> Result<Box<dyn MultipartUpload>, Failure> {
    let request = || {
        let mut options = PutMultipartOptions { attributes: write.id.attributes(), ..PutMultipartOptions::default() };
        options.extensions.insert(Purpose::Object);
        write.inner.bucket.put_multipart_opts(write.path, options)
    };
    write.inner.request(request).await
}

/// Sends all parts, each of which is repeated by the client if it fails; returns the size of the value.
async fn send_parts(
    upload: &mut Upload,
    write: &Write<'_>,
    first: Vec<Bytes>,
    incoming: &mut Incoming,
) -> Result<u64, StoreError> {
    let part_size = incoming.part_size();
    // Parts are sent while the next ones arrive.
    let mut sending = JoinSet::new();
    let (mut pieces, mut size, mut parts) = (first, 0_u64, 0_u64);
    let sent = |sent: Option<Result<object_store::Result<()>, JoinError>>| match sent {
        Some(Ok(Err(error))) => Err(write.error(Failure::of(&error))),
        Some(Err(_)) => Err(write.error(Failure::Other("a part was not sent"))),
        Some(Ok(Ok(()))) | None => Ok(()),
    };
    loop {
        let gathered = len(&pieces);
        pieces.extend(incoming.read(part_size.saturating_sub(gathered)).await?);
        // All parts but the last have the same size, as some services require.
        let (part, rest) = split(pieces, part_size);
        pieces = rest;
        let len = len(&part);
        let Some(upload) = upload.0.as_mut().filter(|_| len > 0) else { break };
        if parts == MAX_PARTS {
            return Err(UploadError::TooLarge { limit: size }.into());
        }
        (size, parts) = (size.saturating_add(len), parts.saturating_add(1));
        if sending.len() >= CONCURRENT_PARTS {
            sent(sending.join_next().await)?;
        }
        sending.spawn(upload.put_part(PutPayload::from_iter(part)));
    }
    while !sending.is_empty() {
        sent(sending.join_next().await)?;
    }
    Ok(size)
}

/// Completes an upload. If the answer is lost, the object says whether it was.
async fn complete(mut upload: Upload, write: &Write<'_>, size: u64) -> Result<ValueMeta, StoreError> {
    let meta = match request_completion(&mut upload, write, size).await {
        Answer::Done(meta) => meta,
        // An upload that is gone may have been completed.
        Answer::Refused(failure) if failure.status() != Some(404) => return Err(write.error(failure)),
        Answer::Refused(doubt) | Answer::NotMade(doubt) | Answer::Conflict(doubt) | Answer::Lost(doubt) => {
            match write.request_state(&mut Turns::new(write.inner.settle), &doubt).await? {
                Some(found) if found.was_made_by(&write.id) => found.meta,
                _ => return Err(write.unknown(&doubt)),
            }
        }
    };
    upload.0 = None;
    Ok(meta)
}

async fn request_completion(upload: &mut Upload, write: &Write<'_>, size: u64) -> Answer {
    let completing = async {
        match &mut upload.0 {
            Some(upload) => upload.complete().await.map_err(|error| Failure::of(&error)),
            None => Err(Failure::Other("the upload was completed before")),
        }
    };
    // Services need time to join the parts, but much less than it took to send them.
    match write.inner.request_once(size / 64, completing).await {
        Ok(put) => write.made(put, size).map_or_else(Answer::Lost, Answer::Done),
        Err(failure) => Answer::of(failure, &Expected::Any),
    }
}

fn len(pieces: &[Bytes]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Splits pieces after this many bytes.
fn split(pieces: Vec<Bytes>, size: u64) -> (Vec<Bytes>, Vec<Bytes>) {
    let (mut part, mut rest, mut taken) = (Vec::new(), Vec::new(), 0_u64);
    for mut piece in pieces {
        let room = usize::try_from(size.saturating_sub(taken)).unwrap_or(usize::MAX).min(piece.len());
        taken = taken.saturating_add(room as u64);
        let taken_piece = piece.split_to(room);
        if !taken_piece.is_empty() {
            part.push(taken_piece);
        }
        if !piece.is_empty() {
            rest.push(piece);
        }
    }
    (part, rest)
}
