//! The operations to which s3s routes requests.

use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result, dto};

use super::{
    attributes, buckets, completion, context::Context, copy, delete, error::Failure, listing, multipart, part_list,
    probes, upload_list,
};

/// The operations.
pub(super) struct Operations;

macro_rules! operations {
    ($($name:literal: fn $method:ident($context:ident, $input:ident: $in:ident) -> $out:ident { $outcome:expr })*) => {
        /// The names of the operations. s3s answers others by itself.
        pub(super) const NAMES: &[&str] = &[$($name),*];

        #[async_trait::async_trait]
        impl S3 for Operations {
            $(async fn $method(&self, request: S3Request<dto::$in>) -> S3Result<S3Response<dto::$out>> {
                let $context = &Context::of(&request)?;
                let $input = request.input;
                let outcome: Result<S3Response<dto::$out>, Failure> = $outcome;
                outcome.map_err(|failure| $context.fail(failure))
            })*
        }
    };
}

operations! {
    "DeleteObject": fn delete_object(context, input: DeleteObjectInput) -> DeleteObjectOutput {
        delete::one(context, &input.bucket, &input.key).await.map(|()| S3Response::new(dto::DeleteObjectOutput::default()))
    }
    "DeleteObjects": fn delete_objects(context, input: DeleteObjectsInput) -> DeleteObjectsOutput {
        delete::many(context, input).await.map(S3Response::new)
    }
    "CopyObject": fn copy_object(context, input: CopyObjectInput) -> CopyObjectOutput {
        copy::copy(context, input).await.map(S3Response::new)
    }
    "GetObjectAttributes": fn get_object_attributes(context, input: GetObjectAttributesInput) -> GetObjectAttributesOutput {
        attributes::get(context, input).await.map(S3Response::new)
    }
    "CreateMultipartUpload": fn create_multipart_upload(context, input: CreateMultipartUploadInput) -> CreateMultipartUploadOutput {
        multipart::create(context, input).await.map(S3Response::new)
    }
    "UploadPart": fn upload_part(context, input: UploadPartInput) -> UploadPartOutput {
        multipart::part(context, input).await.map(S3Response::new)
    }
    "UploadPartCopy": fn upload_part_copy(context, input: UploadPartCopyInput) -> UploadPartCopyOutput {
        multipart::part_copy(context, input).await.map(S3Response::new)
    }
    "CompleteMultipartUpload": fn complete_multipart_upload(context, input: CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput {
        completion::complete(context, input).await.map(S3Response::new)
    }
    "AbortMultipartUpload": fn abort_multipart_upload(context, input: AbortMultipartUploadInput) -> AbortMultipartUploadOutput {
        multipart::abort(context, input).await.map(|()| S3Response::new(dto::AbortMultipartUploadOutput::default()))
    }
    "ListParts": fn list_parts(context, input: ListPartsInput) -> ListPartsOutput {
        part_list::parts(context, input).await.map(S3Response::new)
    }
    "ListMultipartUploads": fn list_multipart_uploads(context, input: ListMultipartUploadsInput) -> ListMultipartUploadsOutput {
        upload_list::uploads(context, input).await.map(S3Response::new)
    }
    "ListObjects": fn list_objects(context, input: ListObjectsInput) -> ListObjectsOutput {
        listing::v1(context, input).await.map(S3Response::new)
    }
    "ListObjectsV2": fn list_objects_v2(context, input: ListObjectsV2Input) -> ListObjectsV2Output {
        listing::v2(context, input).await.map(S3Response::new)
    }
    "ListObjectVersions": fn list_object_versions(context, input: ListObjectVersionsInput) -> ListObjectVersionsOutput {
        listing::versions(context, input).await.map(S3Response::new)
    }
    "ListBuckets": fn list_buckets(context, input: ListBucketsInput) -> ListBucketsOutput {
        buckets::list(context, input).await.map(S3Response::new)
    }
    "HeadBucket": fn head_bucket(context, input: HeadBucketInput) -> HeadBucketOutput {
        buckets::head(context, &input.bucket).await.map(S3Response::new)
    }
    "CreateBucket": fn create_bucket(context, input: CreateBucketInput) -> CreateBucketOutput {
        buckets::create(context, &input.bucket).await.map(S3Response::new)
    }
    "DeleteBucket": fn delete_bucket(context, input: DeleteBucketInput) -> DeleteBucketOutput {
        buckets::delete(context, &input.bucket).await.map(|()| S3Response::new(dto::DeleteBucketOutput::default()))
    }
    "GetBucketLocation": fn get_bucket_location(context, input: GetBucketLocationInput) -> GetBucketLocationOutput {
        probes::location(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketAcl": fn get_bucket_acl(context, input: GetBucketAclInput) -> GetBucketAclOutput {
        probes::bucket_acl(context, &input.bucket).await.map(S3Response::new)
    }
    "GetObjectAcl": fn get_object_acl(context, input: GetObjectAclInput) -> GetObjectAclOutput {
        probes::object_acl(context, &input.bucket, &input.key).await.map(S3Response::new)
    }
    "GetObjectTagging": fn get_object_tagging(context, input: GetObjectTaggingInput) -> GetObjectTaggingOutput {
        probes::object_tags(context, &input.bucket, &input.key).await.map(S3Response::new)
    }
    "GetBucketVersioning": fn get_bucket_versioning(context, input: GetBucketVersioningInput) -> GetBucketVersioningOutput {
        probes::none(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketLogging": fn get_bucket_logging(context, input: GetBucketLoggingInput) -> GetBucketLoggingOutput {
        probes::none(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketNotificationConfiguration": fn get_bucket_notification_configuration(context, input: GetBucketNotificationConfigurationInput) -> GetBucketNotificationConfigurationOutput {
        probes::none(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketAccelerateConfiguration": fn get_bucket_accelerate_configuration(context, input: GetBucketAccelerateConfigurationInput) -> GetBucketAccelerateConfigurationOutput {
        probes::none(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketPolicyStatus": fn get_bucket_policy_status(context, input: GetBucketPolicyStatusInput) -> GetBucketPolicyStatusOutput {
        probes::policy_status(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketRequestPayment": fn get_bucket_request_payment(context, input: GetBucketRequestPaymentInput) -> GetBucketRequestPaymentOutput {
        probes::payment(context, &input.bucket).await.map(S3Response::new)
    }
    "GetBucketTagging": fn get_bucket_tagging(context, input: GetBucketTaggingInput) -> GetBucketTaggingOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::NoSuchTagSet).await.map(S3Response::new)
    }
    "GetBucketPolicy": fn get_bucket_policy(context, input: GetBucketPolicyInput) -> GetBucketPolicyOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::NoSuchBucketPolicy).await.map(S3Response::new)
    }
    "GetBucketLifecycleConfiguration": fn get_bucket_lifecycle_configuration(context, input: GetBucketLifecycleConfigurationInput) -> GetBucketLifecycleConfigurationOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::NoSuchLifecycleConfiguration).await.map(S3Response::new)
    }
    "GetBucketCors": fn get_bucket_cors(context, input: GetBucketCorsInput) -> GetBucketCorsOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::NoSuchCORSConfiguration).await.map(S3Response::new)
    }
    "GetBucketEncryption": fn get_bucket_encryption(context, input: GetBucketEncryptionInput) -> GetBucketEncryptionOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::ServerSideEncryptionConfigurationNotFoundError).await.map(S3Response::new)
    }
    "GetBucketReplication": fn get_bucket_replication(context, input: GetBucketReplicationInput) -> GetBucketReplicationOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::ReplicationConfigurationNotFoundError).await.map(S3Response::new)
    }
    "GetObjectLockConfiguration": fn get_object_lock_configuration(context, input: GetObjectLockConfigurationInput) -> GetObjectLockConfigurationOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::ObjectLockConfigurationNotFoundError).await.map(S3Response::new)
    }
    "GetPublicAccessBlock": fn get_public_access_block(context, input: GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::Custom("NoSuchPublicAccessBlockConfiguration".into())).await.map(S3Response::new)
    }
    "GetBucketWebsite": fn get_bucket_website(context, input: GetBucketWebsiteInput) -> GetBucketWebsiteOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::NoSuchWebsiteConfiguration).await.map(S3Response::new)
    }
    "GetBucketOwnershipControls": fn get_bucket_ownership_controls(context, input: GetBucketOwnershipControlsInput) -> GetBucketOwnershipControlsOutput {
        probes::missing(context, &input.bucket, S3ErrorCode::OwnershipControlsNotFoundError).await.map(S3Response::new)
    }
}
