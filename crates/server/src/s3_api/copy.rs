//! `CopyObject`.

use std::time::SystemTime;

use s3s::{
    dto::{CopyObjectInput, CopyObjectOutput, CopyObjectResult, MetadataDirective},
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::entity_tag;
use zarrd_store::{Key, ReadableStore, Staged, StoreError, ValueMeta, Version};

use super::{buckets, content, context::Context, error::Failure, write};
use crate::{
    error::ApiError,
    extract::{ConditionOutcome, ReadConditions, WriteConditions},
    staged_copy::stage_copy,
};

/// The number of attempts of a copy whose source changes meanwhile.
const ATTEMPTS: usize = 3;
/// The maximum size of what is copied at once, in bytes.
const MAX_COPY: u64 = 5 << 30;

/// `CopyObject`: sets an object to the value of another one.
pub(super) async fn copy(context: &Context, input: CopyObjectInput) -> Result<CopyObjectOutput, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    let (source, conditions) = context.source()?;
    // A caller that may not read the source learns nothing about it.
    let from = context.key(&source.bucket, &source.key, Right::Read)?;
    let to = context.key(&bucket, &input.key, Right::Write)?;
    let to = to.ok_or_else(|| s3_error!(InvalidArgument, "a key that ends in `/` has no content"))?;
    let Some(from) = from else { return Err(buckets::missing_key(context, source.bucket.as_str()).await) };
    let replaces = match input.metadata_directive.as_ref().map(MetadataDirective::as_str) {
        None | Some(MetadataDirective::COPY) => false,
        Some(MetadataDirective::REPLACE) => true,
        Some(_) => return Err(s3_error!(InvalidArgument, "x-amz-metadata-directive is COPY or REPLACE").into()),
    };
    if from == to && !replaces {
        return Err(s3_error!(InvalidRequest, "a copy onto itself needs x-amz-metadata-directive: REPLACE").into());
    }
    let replacement = if replaces { Some(content::attributes(context)?) } else { None };
    let conditions = ReadConditions::from_headers(conditions)?;
    let mut staged: Option<(Version, Staged)> = None;
    for _ in 0..ATTEMPTS {
        let Some(meta) = context.app().store().head(&from).await? else {
            return Err(buckets::missing_key(context, source.bucket.as_str()).await);
        };
        check(&conditions, &from, &meta, meta.size)?;
        let precondition = WriteConditions::from_headers(context.conditions())?.precondition;
        if staged.as_ref().is_none_or(|(version, _)| *version != meta.version) {
            staged = stage_copy(context.app(), &from, &to).await?;
        }
        // Of another version the conditions may not hold.
        let Some((_, value)) = staged.as_ref().filter(|(version, _)| *version == meta.version) else { continue };
        let value = match &replacement {
            Some(attributes) => {
                value.clone().with_attributes(attributes.with_checksum(value.attributes().checksum().copied()))
            }
            None => value.clone(),
        };
        let written = write::commit(context, &bucket, value, precondition).await?;
        let current = context.app().store().head(&to).await?.filter(|meta| meta.version == written.version);
        let result = CopyObjectResult {
            e_tag: Some(entity_tag(written.version)),
            // It may have been replaced since.
            last_modified: Some(current.map_or_else(SystemTime::now, |meta| meta.modified).into()),
            ..CopyObjectResult::default()
        };
        return Ok(CopyObjectOutput { copy_object_result: Some(result), ..CopyObjectOutput::default() });
    }
    Err(ApiError::too_many_conflicts().into())
}

/// Fails unless this number of bytes of the source can be copied, and its conditions hold. One for which a reader would get
/// 304 does not.
pub(super) fn check(conditions: &ReadConditions, key: &Key, meta: &ValueMeta, size: u64) -> Result<(), Failure> {
    if size > MAX_COPY {
        return Err(s3_error!(InvalidRequest, "the source has more than {MAX_COPY} bytes: copy it in parts").into());
    }
    match conditions.evaluate(meta) {
        ConditionOutcome::Proceed => Ok(()),
        ConditionOutcome::NotModified | ConditionOutcome::PreconditionFailed => {
            Err(StoreError::PreconditionFailed { key: key.clone(), current: Some(meta.version) }.into())
        }
    }
}
