//! `CompleteMultipartUpload`.

use std::{sync::Arc, time::Duration};

use s3s::{
    S3Error,
    dto::{CompleteMultipartUploadInput, CompleteMultipartUploadOutput},
};
use tokio::time::timeout;
use zarrd_s3::entity_tag;
use zarrd_store::{
    Checksum, Completion, Precondition, PutResult, StoreError, TransactionalStore, UploadState, UploadStore,
    UploadsError, Version,
};

use super::{
    buckets,
    context::Context,
    error::Failure,
    multipart::{CallersUpload, find},
    objects::set_checksum,
    part_list, write,
};
use crate::extract::WriteConditions;

/// The time after which the head of the response to a completion is sent, and white space until its end.
const QUIET: Duration = Duration::from_secs(5);

/// `CompleteMultipartUpload`.
pub(super) async fn complete(
    context: &Context,
    input: CompleteMultipartUploadInput,
) -> Result<CompleteMultipartUploadOutput, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    let found = find(context, &input.bucket, &input.key, &input.upload_id).await?;
    let conditions = WriteConditions::from_headers(context.conditions())?;
    let parts = part_list::requested(&input)?;
    let checksum = match found.upload.state {
        UploadState::Begun => part_list::check(context, &found, &input, &parts).await?,
        UploadState::Completed => None,
    };
    let parts: Vec<(u32, Version)> = parts.iter().map(|part| (part.number, part.version)).collect();
    write::confirm(context)?;
    buckets::record(context, &bucket).await?;
    let store = Arc::clone(context.app().commits()?);
    let precondition = conditions.precondition;
    let completing = tokio::spawn(completed(store, found, parts, precondition.clone(), checksum));
    let mut completing = Box::pin(async move {
        let result = completing.await.map_err(|_| StoreError::Closed)?;
        result.map_err(|error| match error {
            UploadsError::Store(error) => write::failed(error, &precondition),
            other => other.into(),
        })
    });
    let output = move |result: PutResult| {
        let mut output = CompleteMultipartUploadOutput {
            e_tag: Some(entity_tag(result.version)),
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..CompleteMultipartUploadOutput::default()
        };
        if let Some(checksum) = &checksum {
            set_checksum!(output, checksum);
        }
        output
    };
    match timeout(QUIET, &mut completing).await {
        Ok(result) => Ok(output(result?)),
        Err(_) => {
            let context = context.clone();
            let rest = async move { completing.await.map(output).map_err(|failure| context.fail(failure)) };
            let future: futures::future::BoxFuture<'static, Result<CompleteMultipartUploadOutput, S3Error>> =
                Box::pin(rest);
            Ok(CompleteMultipartUploadOutput { future: Some(future), ..CompleteMultipartUploadOutput::default() })
        }
    }
}

/// Completes an upload, even if the client disconnects.
async fn completed(
    store: Arc<dyn TransactionalStore>,
    found: CallersUpload,
    parts: Vec<(u32, Version)>,
    precondition: Precondition,
    checksum: Option<Checksum>,
) -> Result<PutResult, UploadsError> {
    let completion = Completion { parts: &parts, precondition, checksum };
    store.complete_upload(&found.key, found.id, &completion).await
}
