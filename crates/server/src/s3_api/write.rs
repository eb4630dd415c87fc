//! Setting objects, with the records of their buckets.

use futures::{StreamExt, stream};
use s3s::{S3Error, s3_error};
use tokio::sync::oneshot;
use zarrd_s3::{Bucket, Trailers, Verifier};
use zarrd_store::{
    Attributes, ByteStream, Change, ChangeOutcome, Checksum, ChecksumAlgorithm, Key, Payload, Precondition, PutResult,
    ReadableStore, Staged, StoreError, UploadError,
};

use super::{
    context::{Context, ObjectBody},
    error::Failure,
};
use crate::{
    error::ApiError,
    extract::WriteConditions,
    request_body::{Upload, limited_payload},
    store_api::put,
};

/// The maximum size of an object that is set at once, in bytes.
pub(super) const MAX_PUT: u64 = 5 << 30;
/// The number of attempts of a commit that others interrupt by making or removing the bucket.
pub(super) const ATTEMPTS: usize = 5;

/// A payload, and its checksum, which is sent when all of it was read and compared.
pub(super) type VerifiedPayload = (Payload, oneshot::Receiver<Option<Checksum>>);

/// Sets an object to the body of the request, on its conditions. Returns the checksum that was announced, too.
pub(super) async fn put(
    context: &Context,
    bucket: &Bucket,
    key: &Key,
    attributes: Attributes,
) -> Result<(PutResult, Option<Checksum>), Failure> {
    let precondition = precondition(context, key).await?;
    let (payload, checksum) = payload(context, MAX_PUT, None)?;
    let staged = context.app().commits()?.stage(key, payload).await?;
    let checksum = checksum.await.ok().flatten();
    let staged = staged.with_attributes(attributes.with_checksum(checksum));
    Ok((commit(context, bucket, staged, precondition).await?, checksum))
}

/// The body of the request as a payload, and its checksum, which is known when all of it was read: the one that was
/// announced, or one of an algorithm that is wanted.
pub(super) fn payload(
    context: &Context,
    max: u64,
    wanted: Option<ChecksumAlgorithm>,
) -> Result<VerifiedPayload, Failure> {
    let ObjectBody { body, length, mut verifier, trailers } = context.take_body()?;
    let limit = context.app().settings().limits.value.min(max);
    if length.is_some_and(|length| length > limit) {
        return Err(ApiError::from(UploadError::TooLarge { limit }).into());
    }
    match (verifier.algorithm(), wanted) {
        (Some(announced), Some(wanted)) if announced != wanted => {
            return Err(s3_error!(InvalidRequest, "the checksum is not of the algorithm {wanted}").into());
        }
        (_, Some(wanted)) => verifier.compute(wanted),
        (_, None) => {}
    }
    let upload = Upload::decoded(body, length, context.session().clone());
    Ok(verified(limited_payload(context.app(), upload, limit), verifier, trailers))
}

/// The condition on which an object is set. It is checked before the body is requested, and again by the commit.
pub(super) async fn precondition(context: &Context, key: &Key) -> Result<Precondition, Failure> {
    let conditions = WriteConditions::from_headers(context.conditions())?;
    if conditions.is_conditional() {
        let meta = context.app().store().head(key).await?;
        conditions.check(key, meta.as_ref(), &[]).map_err(|error| failed(error, &conditions.precondition))?;
    }
    Ok(put::precondition(context.app(), key, conditions).await?)
}

/// A failed condition: a version is expected of a key that has none, which is missing then.
pub(super) fn failed(error: StoreError, precondition: &Precondition) -> Failure {
    match &error {
        StoreError::PreconditionFailed { key, current: None } if precondition.if_match.is_some() => {
            ApiError::no_such_key(key).into()
        }
        _ => error.into(),
    }
}

/// Commits a value, and makes the record of its bucket if it has none.
pub(super) async fn commit(
    context: &Context,
    bucket: &Bucket,
    staged: Staged,
    precondition: Precondition,
) -> Result<PutResult, Failure> {
    let set = || Change::Set { staged: staged.clone(), precondition: precondition.clone() };
    for _ in 0..ATTEMPTS {
        let mut changes = vec![set()];
        let record = context.names().record(bucket);
        changes.extend(record_change(context, record.as_ref()).await?);
        confirm(context)?;
        match context.app().commits()?.commit(changes).await {
            Ok(outcomes) => match outcomes.first() {
                Some(ChangeOutcome::Set(result)) => return Ok(*result),
                _ => return Err(StoreError::InvalidStaged.into()),
            },
            // Another request made or removed the bucket.
            Err(StoreError::PreconditionFailed { key, .. }) if Some(&key) == record.as_ref() => {}
            Err(error) => return Err(failed(error, &precondition)),
        }
    }
    Err(ApiError::too_many_conflicts().into())
}

/// The change with which the record of a bucket exists.
pub(super) async fn record_change(context: &Context, record: Option<&Key>) -> Result<Option<Change>, Failure> {
    let Some(key) = record.cloned() else { return Ok(None) };
    Ok(Some(match context.app().store().head(&key).await? {
        Some(_) => Change::Check { key, precondition: Precondition::present() },
        None => Change::Put { key, value: bytes::Bytes::new(), precondition: Precondition::absent() },
    }))
}

/// Fails if the caller has lost its rights since the request began.
pub(super) fn confirm(context: &Context) -> Result<(), Failure> {
    context.session().confirm(context.app()).map_err(|lost| ApiError::from(lost).into())
}

/// A payload that ends with an error unless it matches its checksums, and then sends its checksum.
pub(super) fn verified(payload: Payload, verifier: Verifier, trailers: Trailers) -> VerifiedPayload {
    let (sender, receiver) = oneshot::channel();
    let Payload { size, stream, attributes, .. } = payload;
    let state = (stream, Some((verifier, sender)), trailers);
    let stream = stream::try_unfold(state, |(mut stream, mut end, trailers): (ByteStream, _, _)| async move {
        if let Some(data) = stream.next().await.transpose()? {
            if let Some((verifier, _)) = &mut end {
                Verifier::update(verifier, &data);
            }
            return Ok(Some((data, (stream, end, trailers))));
        }
        if let Some((verifier, sender)) = end {
            let checksum = verifier.finish(&trailers);
            let checksum = checksum.map_err(|error| StoreError::Upload(UploadError::Aborted(Box::new(error))))?;
            // The receiver is dropped if the request is.
            let _ = sender.send(checksum);
        }
        Ok(None)
    });
    (Payload { size, ..Payload::from_stream(stream) }.with_attributes(attributes), receiver)
}

impl From<UploadError> for Failure {
    fn from(error: UploadError) -> Self {
        StoreError::Upload(error).into()
    }
}

/// An error of one of several keys.
pub(super) fn rendered(failure: Failure) -> S3Error {
    failure.into_parts().0
}
