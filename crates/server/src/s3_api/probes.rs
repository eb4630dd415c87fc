//! What clients ask of buckets and objects that zarrd has no settings for.

use s3s::{
    S3Error, S3ErrorCode,
    dto::{
        GetBucketAclOutput, GetBucketLocationOutput, GetBucketPolicyStatusOutput, GetBucketRequestPaymentOutput,
        GetObjectAclOutput, GetObjectTaggingOutput, Grant, Grantee, Payer, Permission, PolicyStatus, Type,
    },
};
use zarrd_access::Right;

use super::{
    buckets,
    context::Context,
    error::Failure,
    owner::{OWNER, owner},
};

/// `GetBucketLocation`: the region whose name is empty.
pub(super) async fn location(context: &Context, bucket: &str) -> Result<GetBucketLocationOutput, Failure> {
    buckets::listable(context, bucket).await?;
    Ok(GetBucketLocationOutput::default())
}

/// `GetBucketAcl`.
pub(super) async fn bucket_acl(context: &Context, bucket: &str) -> Result<GetBucketAclOutput, Failure> {
    buckets::listable(context, bucket).await?;
    Ok(GetBucketAclOutput { grants: Some(vec![full_control()]), owner: Some(owner()) })
}

/// `GetObjectAcl`.
pub(super) async fn object_acl(context: &Context, bucket: &str, key: &str) -> Result<GetObjectAclOutput, Failure> {
    existing(context, bucket, key).await?;
    Ok(GetObjectAclOutput { grants: Some(vec![full_control()]), owner: Some(owner()), ..GetObjectAclOutput::default() })
}

/// `GetObjectTagging`: no tags.
pub(super) async fn object_tags(context: &Context, bucket: &str, key: &str) -> Result<GetObjectTaggingOutput, Failure> {
    existing(context, bucket, key).await?;
    Ok(GetObjectTaggingOutput::default())
}

/// `GetBucketPolicyStatus`: no bucket is public by a policy.
pub(super) async fn policy_status(context: &Context, bucket: &str) -> Result<GetBucketPolicyStatusOutput, Failure> {
    buckets::listable(context, bucket).await?;
    Ok(GetBucketPolicyStatusOutput { policy_status: Some(PolicyStatus { is_public: Some(false) }) })
}

/// `GetBucketRequestPayment`.
pub(super) async fn payment(context: &Context, bucket: &str) -> Result<GetBucketRequestPaymentOutput, Failure> {
    buckets::listable(context, bucket).await?;
    Ok(GetBucketRequestPaymentOutput { payer: Some(Payer::from_static(Payer::BUCKET_OWNER)) })
}

/// The answer to a request for settings that no bucket has.
pub(super) async fn none<T: Default>(context: &Context, bucket: &str) -> Result<T, Failure> {
    buckets::listable(context, bucket).await?;
    Ok(T::default())
}

/// The answer to a request for a document that no bucket has.
pub(super) async fn missing<T>(context: &Context, bucket: &str, code: S3ErrorCode) -> Result<T, Failure> {
    buckets::listable(context, bucket).await?;
    let mut error = S3Error::with_message(code, "the bucket has no such configuration");
    error.set_status_code(http::StatusCode::NOT_FOUND);
    Err(error.into())
}

/// Fails unless an object exists that the caller may read.
async fn existing(context: &Context, bucket: &str, key: &str) -> Result<(), Failure> {
    let name = context.bucket(bucket)?;
    match context.key(&name, key, Right::Read)? {
        Some(key) if context.exists(&key).await? => Ok(()),
        _ => Err(buckets::missing_key(context, bucket).await),
    }
}

fn full_control() -> Grant {
    let grantee = Grantee {
        display_name: Some(OWNER.to_owned()),
        email_address: None,
        id: Some(OWNER.to_owned()),
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    Grant { grantee: Some(grantee), permission: Some(Permission::from_static(Permission::FULL_CONTROL)) }
}
