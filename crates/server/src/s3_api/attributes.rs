//! `GetObjectAttributes`.

use s3s::dto::{Checksum, GetObjectAttributesInput, GetObjectAttributesOutput, ObjectAttributes, StorageClass};
use zarrd_access::Right;
use zarrd_s3::entity_tag;
use zarrd_store::ReadableStore;

use super::{
    buckets,
    context::Context,
    error::Failure,
    objects::{set_checksum, size},
};

/// `GetObjectAttributes`.
pub(super) async fn get(
    context: &Context,
    input: GetObjectAttributesInput,
) -> Result<GetObjectAttributesOutput, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    let key = context.key(&bucket, &input.key, Right::Read)?;
    let meta = match &key {
        Some(key) => context.app().store().head(key).await?,
        None => None,
    };
    let Some(meta) = meta else { return Err(buckets::missing_key(context, &input.bucket).await) };
    let wanted: Vec<&str> = input.object_attributes.iter().flat_map(|wanted| wanted.as_str().split(',')).collect();
    let wants = |name: &str| wanted.iter().any(|wanted| wanted.trim() == name);
    let standard = || StorageClass::from_static(StorageClass::STANDARD);
    let checksum = meta.attributes.checksum().filter(|_| wants(ObjectAttributes::CHECKSUM)).map(|checksum| {
        let mut shown = Checksum::default();
        set_checksum!(shown, checksum);
        shown
    });
    Ok(GetObjectAttributesOutput {
        checksum,
        e_tag: wants(ObjectAttributes::ETAG).then(|| entity_tag(meta.version)),
        object_size: wants(ObjectAttributes::OBJECT_SIZE).then(|| size(meta.size)),
        storage_class: wants(ObjectAttributes::STORAGE_CLASS).then(standard),
        last_modified: Some(meta.modified.into()),
        ..GetObjectAttributesOutput::default()
    })
}
