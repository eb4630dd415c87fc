//! Uploads in parts.

use std::collections::BTreeMap;

use s3s::{
    S3Error, S3ErrorCode,
    dto::{
        AbortMultipartUploadInput, ChecksumAlgorithm as NamedAlgorithm, CopyPartResult, CreateMultipartUploadInput,
        CreateMultipartUploadOutput, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
    },
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::{Trailers, Verifier, entity_tag};
use zarrd_store::{
    ByteRange, Checksum, ChecksumAlgorithm, ChecksumKind, Key, NewUpload, Part, ReadableStore, StoreError, Upload,
    UploadId, UploadState, UploadStore, UploadsError,
};
use zarrd_wire::range::{self, RangeRequest};

use super::{
    buckets, content,
    context::Context,
    copy,
    error::Failure,
    objects::{checksum_type_of, set_checksum},
    write,
};
use crate::extract::ReadConditions;

/// The minimum size of every part but the last one, in bytes.
const MIN_PART: u64 = 5 << 20;
/// The number of parts of a page.
const PAGE_PARTS: usize = 1000;

/// The checksums of an upload, as it notes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksums {
    pub(super) algorithm: ChecksumAlgorithm,
    pub(super) is_composite: bool,
}

/// An upload that the caller started.
pub(super) struct CallersUpload {
    pub(super) key: Key,
    pub(super) id: UploadId,
    pub(super) upload: Upload,
    pub(super) checksums: Option<Checksums>,
}

/// `CreateMultipartUpload`.
pub(super) async fn create(
    context: &Context,
    input: CreateMultipartUploadInput,
) -> Result<CreateMultipartUploadOutput, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    let key = object(context, &input.bucket, &input.key)?;
    let checksums = Checksums::requested(&input)?;
    let new = NewUpload {
        attributes: content::attributes(context)?,
        owner: context.session().principal().id.to_string(),
        note: checksums.map(Checksums::note).unwrap_or_default(),
    };
    buckets::record(context, &bucket).await?;
    let id = context.app().commits()?.begin_upload(&key, &new).await?;
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(id.to_string()),
        checksum_algorithm: checksums.map(Checksums::name),
        checksum_type: checksums.map(|checksums| checksum_type_of(checksums.is_composite)),
        ..CreateMultipartUploadOutput::default()
    })
}

/// `UploadPart`.
pub(super) async fn part(context: &Context, input: UploadPartInput) -> Result<UploadPartOutput, Failure> {
    let found = find(context, &input.bucket, &input.key, &input.upload_id).await?.under_way()?;
    let number = number(input.part_number)?;
    let verified = write::payload(context, write::MAX_PUT, found.algorithm())?;
    let part = put_part(context, &found, number, verified).await?;
    let mut output = UploadPartOutput { e_tag: Some(entity_tag(part.version)), ..UploadPartOutput::default() };
    if let Some(checksum) = &part.checksum {
        set_checksum!(output, @plain checksum);
    }
    Ok(output)
}

/// `UploadPartCopy`.
pub(super) async fn part_copy(context: &Context, input: UploadPartCopyInput) -> Result<UploadPartCopyOutput, Failure> {
    let (source, conditions) = context.source()?;
    // A caller that may not read the source learns nothing about it.
    let from = context.key(&source.bucket, &source.key, Right::Read)?;
    let found = find(context, &input.bucket, &input.key, &input.upload_id).await?.under_way()?;
    let number = number(input.part_number)?;
    let missing = buckets::missing_key(context, source.bucket.as_str());
    let Some(from) = from else { return Err(missing.await) };
    let Some(meta) = context.app().store().head(&from).await? else { return Err(missing.await) };
    let range = copied_range(context, meta.size)?;
    let copied = range.map_or(meta.size, |(start, end)| end.saturating_sub(start));
    copy::check(&ReadConditions::from_headers(conditions)?, &from, &meta, copied)?;
    let range = range.and_then(|(start, end)| ByteRange::bounded(start, end).ok());
    let value = context.app().store().get_if_match(&from, range, meta.version).await?;
    let value = value.ok_or(StoreError::PreconditionFailed { key: from, current: None })?;
    let mut verifier = Verifier::default();
    found.algorithm().into_iter().for_each(|algorithm| verifier.compute(algorithm));
    let verified = write::verified(value.into_payload(), verifier, Trailers::default());
    let part = put_part(context, &found, number, verified).await?;
    let mut result = CopyPartResult {
        e_tag: Some(entity_tag(part.version)),
        last_modified: Some(part.modified.into()),
        ..CopyPartResult::default()
    };
    if let Some(checksum) = &part.checksum {
        set_checksum!(result, @plain checksum);
    }
    Ok(UploadPartCopyOutput { copy_part_result: Some(result), ..UploadPartCopyOutput::default() })
}

/// Adds a part to an upload, with the checksum that is known at the end of its payload.
async fn put_part(
    context: &Context,
    found: &CallersUpload,
    number: u32,
    (payload, checksum): write::VerifiedPayload,
) -> Result<Part, Failure> {
    let store = context.app().commits()?;
    let staged = store.stage_part(&found.key, found.id, number, payload).await?;
    write::confirm(context)?;
    Ok(store.put_part(staged, checksum.await.ok().flatten()).await?)
}

/// `AbortMultipartUpload`.
pub(super) async fn abort(context: &Context, input: AbortMultipartUploadInput) -> Result<(), Failure> {
    let found = find(context, &input.bucket, &input.key, &input.upload_id).await?.under_way()?;
    write::confirm(context)?;
    Ok(context.app().commits()?.abort_upload(&found.key, found.id).await?)
}

/// The upload that a request names, which the caller began.
pub(super) async fn find(context: &Context, bucket: &str, key: &str, id: &str) -> Result<CallersUpload, Failure> {
    let key = object(context, bucket, key)?;
    let id: UploadId = id.parse().map_err(|_| S3ErrorCode::NoSuchUpload)?;
    let upload = context.app().commits()?.upload(&key, id).await?;
    // Those of others are not shown to exist.
    if *upload.owner != *context.session().principal().id {
        return Err(S3ErrorCode::NoSuchUpload.into());
    }
    let checksums = Checksums::noted(&upload.note);
    Ok(CallersUpload { key, id, upload, checksums })
}

/// All parts of an upload, by their numbers.
pub(super) async fn all_parts(context: &Context, found: &CallersUpload) -> Result<BTreeMap<u32, Part>, Failure> {
    let (mut parts, mut after) = (BTreeMap::new(), 0);
    loop {
        let page = context.app().commits()?.upload_parts(&found.key, found.id, after, PAGE_PARTS).await?;
        after = page.parts.last().map_or(after, |part| part.number);
        parts.extend(page.parts.into_iter().map(|part| (part.number, part)));
        if !page.more {
            return Ok(parts);
        }
    }
}

/// The minimum size of a part that is not the last one, in bytes.
pub(super) fn is_too_small(part: &Part) -> bool {
    part.size < MIN_PART
}

/// The key of an object that the caller may change.
fn object(context: &Context, bucket: &str, key: &str) -> Result<Key, Failure> {
    let bucket = context.bucket(bucket)?;
    let key = context.key(&bucket, key, Right::Write)?;
    key.ok_or_else(|| s3_error!(InvalidArgument, "a key that ends in `/` has no content").into())
}

fn number(number: i32) -> Result<u32, Failure> {
    u32::try_from(number).map_err(|_| s3_error!(InvalidArgument, "partNumber is negative").into())
}

/// The range of the source that a part is copied from, as start and end.
fn copied_range(context: &Context, size: u64) -> Result<Option<(u64, u64)>, Failure> {
    let Some(line) = context.copied_range() else { return Ok(None) };
    match line.to_str().map(range::parse) {
        Ok(RangeRequest::One(ByteRange::Bounded { start, end })) if end <= size => Ok(Some((start, end))),
        Ok(RangeRequest::One(ByteRange::Bounded { .. })) => {
            Err(s3_error!(InvalidRange, "the source has {size} bytes").into())
        }
        _ => Err(s3_error!(InvalidArgument, "x-amz-copy-source-range has the form bytes=0-9").into()),
    }
}

impl CallersUpload {
    /// Fails if the upload was completed.
    pub(super) fn under_way(self) -> Result<Self, Failure> {
        match self.upload.state {
            UploadState::Begun => Ok(self),
            UploadState::Completed => Err(S3ErrorCode::NoSuchUpload.into()),
        }
    }

    fn algorithm(&self) -> Option<ChecksumAlgorithm> {
        self.checksums.map(|checksums| checksums.algorithm)
    }
}

impl Checksums {
    /// The checksums that a request asks for.
    fn requested(input: &CreateMultipartUploadInput) -> Result<Option<Self>, Failure> {
        let Some(named) = &input.checksum_algorithm else { return Ok(None) };
        let algorithm: ChecksumAlgorithm = named
            .as_str()
            .parse()
            .map_err(|_| s3_error!(InvalidRequest, "the algorithm of checksums is not supported"))?;
        let is_hash = matches!(algorithm, ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256);
        let requested = input.checksum_type.as_ref().map(|kind| kind.as_str() == "COMPOSITE");
        let is_composite = match (algorithm, requested) {
            (ChecksumAlgorithm::Crc64Nvme, Some(true)) => {
                return Err(s3_error!(InvalidRequest, "a checksum CRC64NVME is of the full object").into());
            }
            (_, Some(false)) if is_hash => {
                return Err(s3_error!(InvalidRequest, "a checksum {algorithm} of parts is composite").into());
            }
            (ChecksumAlgorithm::Crc64Nvme, _) => false,
            (_, requested) => requested.unwrap_or(true),
        };
        Ok(Some(Self { algorithm, is_composite }))
    }

    fn note(self) -> String {
        format!("{} {}", self.algorithm, if self.is_composite { "composite" } else { "full" })
    }

    pub(super) fn noted(note: &str) -> Option<Self> {
        let (algorithm, kind) = note.split_once(' ')?;
        Some(Self { algorithm: algorithm.parse().ok()?, is_composite: kind == "composite" })
    }

    pub(super) fn name(self) -> NamedAlgorithm {
        NamedAlgorithm::from(self.algorithm.as_str().to_ascii_uppercase())
    }

    /// The checksum of the object that the parts are joined to.
    pub(super) fn joined(self, parts: &[&Part]) -> Option<Checksum> {
        let all: Option<Vec<(Checksum, u64)>> = parts.iter().map(|part| Some((part.checksum?, part.size))).collect();
        if !self.is_composite {
            return zarrd_s3::joined_checksum(all?);
        }
        let bytes: Vec<u8> = all?.iter().flat_map(|(checksum, _)| checksum.as_bytes().to_vec()).collect();
        let joined = zarrd_s3::checksum_of(self.algorithm, &bytes)?;
        let parts = u32::try_from(parts.len()).ok()?;
        Checksum::new(self.algorithm, ChecksumKind::Composite { parts }, joined.as_bytes()).ok()
    }
}

impl From<UploadsError> for Failure {
    fn from(error: UploadsError) -> Self {
        let code = match error {
            UploadsError::NotFound { .. } => S3ErrorCode::NoSuchUpload,
            UploadsError::InvalidPart { .. } => S3ErrorCode::InvalidPart,
            UploadsError::PartOrder => S3ErrorCode::InvalidPartOrder,
            UploadsError::NoParts => S3ErrorCode::MalformedXML,
            UploadsError::PartNumber { .. } | UploadsError::NoteTooLong | UploadsError::Name(_) => {
                S3ErrorCode::InvalidArgument
            }
            UploadsError::Store(error) => return error.into(),
        };
        S3Error::with_message(code, error.to_string()).into()
    }
}
