//! Buckets: a bucket exists if it has a record, or a key.

use std::{collections::BTreeMap, time::SystemTime};

use s3s::{
    S3ErrorCode,
    dto::{
        Bucket as ListedBucket, CreateBucketOutput, HeadBucketOutput, ListBucketsInput, ListBucketsOutput, Timestamp,
    },
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::{Bucket, BucketNames};
use zarrd_store::{Change, Prefix, ReadableStore, StoreError};

use super::{context::Context, error::Failure, owner::owner, write};
use crate::{
    app::App,
    pager::{Pager, first_below},
};

/// The region that all buckets are in.
pub(super) const REGION: &str = "us-east-1";
/// The maximum number of buckets in a response.
const MAX_BUCKETS: usize = 10_000;
/// The number of entries of a page of a listing.
const PAGE_ENTRIES: usize = 1000;

/// True if a bucket exists.
async fn exists(context: &Context, bucket: &Bucket) -> Result<bool, Failure> {
    let Some(record) = context.names().record(bucket) else { return Ok(true) };
    if context.exists(&record).await? {
        return Ok(true);
    }
    let prefix = context.names().prefix(bucket);
    context.check_listed(&prefix)?;
    Ok(first_below(context.app(), &prefix).await?.is_some())
}

/// Fails unless a bucket exists.
pub(super) async fn require(context: &Context, bucket: &Bucket) -> Result<(), Failure> {
    match exists(context, bucket).await? {
        true => Ok(()),
        false => Err(S3ErrorCode::NoSuchBucket.into()),
    }
}

/// The failure of a request for an object that does not exist.
pub(super) async fn missing_key(context: &Context, bucket: &str) -> Failure {
    let bucket = match context.bucket(bucket) {
        Ok(bucket) => bucket,
        Err(failure) => return failure,
    };
    match require(context, &bucket).await {
        Ok(()) => S3ErrorCode::NoSuchKey.into(),
        Err(failure) => failure,
    }
}

/// A bucket that exists, of which the caller may list something.
pub(super) async fn listable(context: &Context, name: &str) -> Result<Bucket, Failure> {
    let bucket = context.bucket(name)?;
    context.children_towards(&context.names().prefix(&bucket))?;
    require(context, &bucket).await?;
    Ok(bucket)
}

/// `HeadBucket`.
pub(super) async fn head(context: &Context, name: &str) -> Result<HeadBucketOutput, Failure> {
    listable(context, name).await?;
    Ok(HeadBucketOutput { bucket_region: Some(REGION.to_owned()), ..HeadBucketOutput::default() })
}

/// `CreateBucket`: makes the record of a bucket, unless it exists.
pub(super) async fn create(context: &Context, name: &str) -> Result<CreateBucketOutput, Failure> {
    let bucket = context.bucket(name)?;
    context.require(Right::Write, &context.names().prefix(&bucket))?;
    record(context, &bucket).await?;
    Ok(CreateBucketOutput { location: Some(format!("/{name}")) })
}

/// Makes the record of a bucket, unless it has one.
pub(super) async fn record(context: &Context, bucket: &Bucket) -> Result<(), Failure> {
    let record = context.names().record(bucket);
    let Some(change @ Change::Put { .. }) = write::record_change(context, record.as_ref()).await? else {
        return Ok(());
    };
    write::confirm(context)?;
    match context.app().commits()?.commit(vec![change]).await {
        // Another request made it.
        Ok(_) | Err(StoreError::PreconditionFailed { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `DeleteBucket`: removes the record of an empty bucket.
pub(super) async fn delete(context: &Context, name: &str) -> Result<(), Failure> {
    let bucket = context.bucket(name)?;
    let prefix = context.names().prefix(&bucket);
    context.require(Right::Write, &prefix)?;
    let Some(record) = context.names().record(&bucket) else {
        return Err(s3_error!(MethodNotAllowed, "the bucket is the whole store, which cannot be deleted").into());
    };
    require(context, &bucket).await?;
    let erase = Change::Erase { key: record, precondition: zarrd_store::Precondition::none() };
    write::confirm(context)?;
    context.app().commits()?.commit(vec![Change::CheckEmpty { prefix }, erase]).await?;
    Ok(())
}

/// `ListBuckets`: the buckets of which the caller may list something, sorted.
pub(super) async fn list(context: &Context, input: ListBucketsInput) -> Result<ListBucketsOutput, Failure> {
    let found = match context.children_towards(&Prefix::root()) {
        Ok(None) => all(context).await?,
        Ok(Some(children)) => {
            let mut found = BTreeMap::new();
            for bucket in children.iter().filter_map(bucket_of) {
                if exists(context, &bucket).await? {
                    let modified = created(context, &bucket).await?;
                    found.insert(bucket.as_str().to_owned(), modified);
                }
            }
            found
        }
        // A caller without any right sees no bucket, like one who is not identified.
        Err(failure) if !context.session().is_identified() => return Err(failure),
        Err(_) => BTreeMap::new(),
    };
    let max = input.max_buckets.and_then(|max| usize::try_from(max).ok()).unwrap_or(MAX_BUCKETS).clamp(1, MAX_BUCKETS);
    let after = input.continuation_token.unwrap_or_default();
    let prefix = input.prefix.clone().unwrap_or_default();
    let mut listed = found.into_iter().filter(|(name, _)| name.starts_with(&prefix) && *name > after);
    let bucket = |(name, created): (String, SystemTime)| ListedBucket {
        bucket_region: Some(REGION.to_owned()),
        creation_date: Some(Timestamp::from(created)),
        name: Some(name),
    };
    let buckets: Vec<ListedBucket> = listed.by_ref().take(max).map(bucket).collect();
    let more = listed.next().and_then(|_| buckets.last()?.name.clone());
    Ok(ListBucketsOutput {
        buckets: Some(buckets),
        continuation_token: more,
        owner: Some(owner()),
        prefix: input.prefix,
    })
}

/// All buckets with the times of their records.
async fn all(context: &Context) -> Result<BTreeMap<String, SystemTime>, Failure> {
    let (app, root) = (context.app(), Prefix::root());
    context.check_listed(&root)?;
    let mut found = BTreeMap::new();
    if let Some(root) = context.names().root() {
        found.insert(root.as_str().to_owned(), unknown_time());
    }
    let mut pages = pager(app, root);
    while let Some(page) = pages.children().await?
        && found.len() < MAX_BUCKETS
    {
        found.extend(
            page.prefixes.iter().filter_map(bucket_of).map(|bucket| (bucket.as_str().to_owned(), unknown_time())),
        );
    }
    let records = BucketNames::records();
    let mut pages = pager(app, records.clone());
    while let Some(page) = pages.keys().await?
        && found.len() < MAX_BUCKETS
    {
        let record = |entry: &zarrd_store::Entry| Some((records.strip(&entry.key)?.to_owned(), entry.meta.modified));
        found.extend(page.keys.iter().filter_map(record));
    }
    Ok(found)
}

fn pager(app: &App, prefix: Prefix) -> Pager {
    let source = app.store().clone();
    Pager { app: app.clone(), source, prefix, page_len: PAGE_ENTRIES, remaining: None, next: Some(None) }
}

/// The bucket that a prefix of the root, or below one, is in.
fn bucket_of(prefix: &Prefix) -> Option<Bucket> {
    prefix.as_str().split('/').next()?.parse().ok()
}

async fn created(context: &Context, bucket: &Bucket) -> Result<SystemTime, Failure> {
    let Some(record) = context.names().record(bucket) else { return Ok(unknown_time()) };
    Ok(context.app().store().head(&record).await?.map_or_else(unknown_time, |meta| meta.modified))
}

/// The time of buckets that no request to the S3 surface has written to.
fn unknown_time() -> SystemTime {
    SystemTime::UNIX_EPOCH
}
