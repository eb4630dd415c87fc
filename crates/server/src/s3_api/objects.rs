//! Reading and setting objects.

use std::collections::HashMap;

use axum::response::Response;
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE},
};
use s3s::{
    Body, S3Error, S3ErrorCode, S3Response,
    dto::{
        ChecksumType, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, PutObjectInput,
        PutObjectOutput, Timestamp,
    },
    s3_error,
};
use zarrd_access::Right;
use zarrd_s3::entity_tag;
use zarrd_store::{Attributes, ContentField, Key};
use zarrd_wire::{
    attributes, etag,
    range::{self, ContentRange, RangeRequest},
    time,
};

use super::{
    buckets,
    content::{self, set_content},
    context::Context,
    error::Failure,
    write,
};
use crate::{extract::ReadConditions, store_api::get};

/// Sets the member of an output that is for checksums of an algorithm.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {{
        let checksum: &zarrd_store::Checksum = $checksum;
        $crate::s3_api::objects::set_checksum!($output, @plain checksum);
        let is_composite = checksum.kind() != zarrd_store::ChecksumKind::FullObject;
        $output.checksum_type = Some($crate::s3_api::objects::checksum_type_of(is_composite));
    }};
    ($output:expr, @plain $checksum:expr) => {{
        let checksum: &zarrd_store::Checksum = $checksum;
        let text = Some(zarrd_s3::checksum_text(checksum));
        match checksum.algorithm() {
            zarrd_store::ChecksumAlgorithm::Crc32 => $output.checksum_crc32 = text,
            zarrd_store::ChecksumAlgorithm::Crc32c => $output.checksum_crc32c = text,
            zarrd_store::ChecksumAlgorithm::Crc64Nvme => $output.checksum_crc64nvme = text,
            zarrd_store::ChecksumAlgorithm::Sha1 => $output.checksum_sha1 = text,
            zarrd_store::ChecksumAlgorithm::Sha256 => $output.checksum_sha256 = text,
        }
    }};
}
pub(super) use set_checksum;

/// The number of the part that every object has.
const ONLY_PART: i32 = 1;
const BYTES: &str = "bytes";

/// The head of a response with a value.
struct Head {
    length: Option<i64>,
    range: Option<String>,
    content_type: Option<String>,
    tag: Option<ETag>,
    modified: Option<Timestamp>,
    metadata: Option<HashMap<String, String>>,
    attributes: Attributes,
}

/// The type of a checksum, which may be of the checksums of parts.
pub(super) fn checksum_type_of(is_composite: bool) -> ChecksumType {
    ChecksumType::from_static(if is_composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT })
}

/// `GetObject`.
pub(super) async fn get(context: &Context, input: GetObjectInput) -> Result<S3Response<GetObjectOutput>, Failure> {
    check_part(input.part_number)?;
    let (key, conditions) = readable(context, &input.bucket, &input.key).await?;
    let response = match get::value(&**context.app().store(), &key, &conditions).await? {
        Some(response) => response,
        None => return Err(buckets::missing_key(context, &input.bucket).await),
    };
    let head = Head::of(&response)?;
    let body = Some(Body::http_body_unsync(response.into_body()).into());
    let mut output = GetObjectOutput {
        accept_ranges: Some(BYTES.to_owned()),
        body,
        metadata: head.metadata,
        content_length: head.length,
        content_range: head.range,
        content_type: head.content_type,
        e_tag: head.tag,
        last_modified: head.modified,
        ..GetObjectOutput::default()
    };
    set_content!(output, &head.attributes);
    // A checksum is of the whole value.
    let is_wanted = input.checksum_mode.is_some() && output.content_range.is_none();
    if let Some(checksum) = head.attributes.checksum().filter(|_| is_wanted) {
        set_checksum!(output, checksum);
    }
    let is_chosen = input.response_expires.is_some();
    Ok(if is_chosen { S3Response::new(output) } else { content::with_expiry(output, &head.attributes) })
}

/// `HeadObject`.
pub(super) async fn head(context: &Context, input: HeadObjectInput) -> Result<S3Response<HeadObjectOutput>, Failure> {
    check_part(input.part_number)?;
    let (key, conditions) = readable(context, &input.bucket, &input.key).await?;
    let response = match get::value_head(&**context.app().store(), &key, &conditions).await? {
        Some(response) => response,
        None => return Err(buckets::missing_key(context, &input.bucket).await),
    };
    let head = Head::of(&response)?;
    let mut output = HeadObjectOutput {
        accept_ranges: Some(BYTES.to_owned()),
        metadata: head.metadata,
        content_length: head.length,
        content_type: head.content_type,
        e_tag: head.tag,
        last_modified: head.modified,
        ..HeadObjectOutput::default()
    };
    set_content!(output, &head.attributes);
    let range = range_of_head(context, head.length)?;
    let is_wanted = input.checksum_mode.is_some() && range.is_none();
    if let Some(checksum) = head.attributes.checksum().filter(|_| is_wanted) {
        set_checksum!(output, checksum);
    }
    if let Some(ContentRange { range: Some(bytes), .. }) = &range {
        output.content_length = Some(size(bytes.end.saturating_sub(bytes.start)));
        output.content_range = range.as_ref().map(ContentRange::render);
    }
    Ok(content::with_expiry(output, &head.attributes))
}

/// `PutObject`.
pub(super) async fn put(context: &Context, input: PutObjectInput) -> Result<S3Response<PutObjectOutput>, Failure> {
    let bucket = context.bucket(&input.bucket)?;
    let Some(key) = context.key(&bucket, &input.key, Right::Write)? else {
        return directory(context);
    };
    let attributes = content::attributes(context, input.metadata)?;
    let (written, checksum) = write::put(context, &bucket, &key, attributes).await?;
    let mut output = PutObjectOutput { e_tag: Some(entity_tag(written.version)), ..PutObjectOutput::default() };
    if let Some(checksum) = &checksum {
        set_checksum!(output, checksum);
    }
    Ok(S3Response::new(output))
}

/// A name that ends in `/` is no key, but some clients make it before they put anything below it.
fn directory(context: &Context) -> Result<S3Response<PutObjectOutput>, Failure> {
    match context.take_body()?.length {
        Some(0) => {
            let tag = ETag::Strong("d41d8cd98f00b204e9800998ecf8427e".to_owned());
            Ok(S3Response::new(PutObjectOutput { e_tag: Some(tag), ..PutObjectOutput::default() }))
        }
        _ => Err(s3_error!(InvalidArgument, "a key that ends in `/` has no content: keys have none such").into()),
    }
}

/// The key of an object that the caller may read, and the conditions of the request.
async fn readable(context: &Context, bucket: &str, key: &str) -> Result<(Key, ReadConditions), Failure> {
    let name = context.bucket(bucket)?;
    match context.key(&name, key, Right::Read)? {
        Some(key) => Ok((key, ReadConditions::from_headers(context.conditions())?)),
        None => Err(buckets::missing_key(context, bucket).await),
    }
}

/// The range of a request for a head, which HTTP ignores, while S3 shows the head of a response with the range.
fn range_of_head(context: &Context, length: Option<i64>) -> Result<Option<ContentRange>, Failure> {
    let headers = context.conditions();
    let line = headers.get(RANGE).filter(|_| !headers.contains_key(IF_RANGE)).and_then(|line| line.to_str().ok());
    let size = length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default();
    let found = match line.map(range::parse) {
        None | Some(RangeRequest::Whole) => return Ok(None),
        Some(RangeRequest::One(range)) => range.resolve(size),
        Some(RangeRequest::Unsatisfiable) => None,
    };
    match found {
        Some(range) => Ok(Some(ContentRange { range: Some(range), size })),
        None => Err(s3_error!(InvalidRange, "the object has {size} bytes").into()),
    }
}

fn check_part(number: Option<i32>) -> Result<(), Failure> {
    match number {
        None | Some(ONLY_PART) => Ok(()),
        Some(_) => Err(s3_error!(InvalidRange, "the object has one part").into()),
    }
}

impl Head {
    /// The head of a response of `/store`. Fails if the client has the value.
    fn of(response: &Response) -> Result<Self, Failure> {
        let headers: &HeaderMap = response.headers();
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let modified = text(LAST_MODIFIED).and_then(time::parse_http_date);
        // They are those that `/store` shows, and so valid.
        let attributes = attributes::from_headers(headers).unwrap_or_default();
        let metadata: HashMap<String, String> =
            attributes.metadata().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let tag = text(ETAG).and_then(etag::parse).map(entity_tag);
        if response.status() == StatusCode::NOT_MODIFIED {
            return Err(not_modified(tag.as_ref(), headers).into());
        }
        Ok(Self {
            length: text(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
            range: text(CONTENT_RANGE).map(str::to_owned),
            content_type: attributes.content(ContentField::Type).or(text(CONTENT_TYPE)).map(str::to_owned),
            metadata: (!metadata.is_empty()).then_some(metadata),
            attributes,
            tag,
            modified: modified.map(Into::into),
        })
    }
}

/// The response to a request whose client has the value: s3s has no other form for it than an error.
fn not_modified(tag: Option<&ETag>, headers: &HeaderMap) -> S3Error {
    let mut error = S3Error::new(S3ErrorCode::NotModified);
    let mut shown: HeaderMap =
        headers.get(LAST_MODIFIED).map(|date| (LAST_MODIFIED, date.clone())).into_iter().collect();
    shown.extend(tag.and_then(|tag| tag.to_http_header().ok()).map(|tag| (ETAG, tag)));
    error.set_headers(shown);
    error.set_status_code(StatusCode::NOT_MODIFIED);
    error
}

/// The size of an object, as S3 has it.
pub(super) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
