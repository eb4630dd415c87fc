//! Erasing objects.

use std::collections::BTreeMap;

use s3s::{
    dto::{DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, Error, ObjectIdentifier},
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::{Bucket, check_version, tagged_version};
use zarrd_store::{Change, Key, Precondition, ReadableStore, StoreError, VersionMatch};

use super::{buckets, context::Context, error::Failure, write};
use crate::{error::ApiError, extract::WriteConditions};

/// The maximum number of keys of one request.
const MAX_KEYS: usize = 1000;

/// `DeleteObject`: erases an object, if it exists.
pub(super) async fn one(context: &Context, bucket: &str, key: &str) -> Result<(), Failure> {
    let bucket = context.bucket(bucket)?;
    let Some(key) = context.key(&bucket, key, Right::Write)? else { return Ok(()) };
    let precondition = WriteConditions::from_headers(context.conditions())?.precondition;
    if context.app().store().head(&key).await?.is_none() {
        if precondition.if_match.is_some() {
            return Err(ApiError::no_such_key(&key).into());
        }
        return buckets::require(context, &bucket).await;
    }
    let failed = erase(context, &bucket, BTreeMap::from([(key, precondition)])).await?;
    failed.into_values().next().map_or(Ok(()), Err)
}

/// `DeleteObjects`: erases objects in one commit, except those that the caller may not erase, or whose condition fails.
pub(super) async fn many(context: &Context, input: DeleteObjectsInput) -> Result<DeleteObjectsOutput, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    if !context.has_checksum() {
        return Err(s3_error!(InvalidRequest, "the request needs Content-MD5 or a checksum of its body").into());
    }
    let objects = input.delete.objects;
    if objects.is_empty() || objects.len() > MAX_KEYS {
        return Err(s3_error!(MalformedXML, "a request erases 1 to {MAX_KEYS} keys").into());
    }
    let (mut keys, mut conditions, mut errors) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for object in objects {
        match named(context, &bucket, &object) {
            Ok(Some((key, precondition))) => {
                conditions.insert(key.clone(), precondition);
                keys.insert(object.key, Some(key));
            }
            Ok(None) => drop(keys.insert(object.key, None)),
            Err(failure) => errors.push(error(object.key, failure)),
        }
    }
    // A bucket that the caller may not change is not shown to exist.
    if !keys.is_empty() {
        buckets::require(context, &bucket).await?;
    }
    let mut failed = erase(context, &bucket, conditions).await?;
    let mut deleted = Vec::new();
    for (name, key) in keys {
        match key.and_then(|key| failed.remove(&key)) {
            Some(failure) => errors.push(error(name, failure)),
            None => deleted.push(DeletedObject { key: Some(name), ..DeletedObject::default() }),
        }
    }
    let is_quiet = input.delete.quiet.unwrap_or_default();
    Ok(DeleteObjectsOutput {
        deleted: (!is_quiet).then_some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..DeleteObjectsOutput::default()
    })
}

/// The key that an element names, with its condition.
fn named(
    context: &Context,
    bucket: &Bucket,
    object: &ObjectIdentifier,
) -> Result<Option<(Key, Precondition)>, Failure> {
    object.version_id.as_deref().map_or(Ok(()), check_version)?;
    if object.size.is_some() || object.last_modified_time.is_some() {
        return Err(s3_error!(NotImplemented, "conditions of size and time are not supported").into());
    }
    let key = context.key(bucket, &object.key, Right::Write)?;
    let expected = object.e_tag.as_ref().map(|tag| VersionMatch::OneOf(tagged_version(tag).into_iter().collect()));
    Ok(key.map(|key| (key, Precondition { if_match: expected, if_none_match: None })))
}

/// Erases keys in one commit. Returns those whose condition fails, with the failure.
async fn erase(
    context: &Context,
    bucket: &Bucket,
    mut keys: BTreeMap<Key, Precondition>,
) -> Result<BTreeMap<Key, Failure>, Failure> {
    let mut failed = BTreeMap::new();
    let record = context.names().record(bucket);
    // Each attempt but a few has one key less.
    for _ in 0..=keys.len().saturating_add(write::ATTEMPTS) {
        if keys.is_empty() {
            break;
        }
        let erase = |(key, precondition): (&Key, &Precondition)| Change::Erase {
            key: key.clone(),
            precondition: precondition.clone(),
        };
        let mut changes: Vec<Change> = keys.iter().map(erase).collect();
        changes.extend(write::record_change(context, record.as_ref()).await?);
        write::confirm(context)?;
        match context.app().commits()?.commit(changes).await {
            Ok(_) => return Ok(failed),
            Err(StoreError::PreconditionFailed { key, .. }) if Some(&key) == record.as_ref() => {}
            Err(StoreError::PreconditionFailed { key, current }) => {
                if keys.remove(&key).is_none() {
                    return Err(StoreError::PreconditionFailed { key, current }.into());
                }
                let failure = StoreError::PreconditionFailed { key: key.clone(), current }.into();
                failed.insert(key, failure);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if keys.is_empty() { Ok(failed) } else { Err(ApiError::too_many_conflicts().into()) }
}

fn error(key: String, failure: Failure) -> Error {
    let error = write::rendered(failure);
    Error {
        code: Some(error.code().as_str().to_owned()),
        key: Some(key),
        message: error.message().map(str::to_owned),
        version_id: None,
    }
}
