//! Reading and setting objects.

use std::time::SystemTime;

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE},
};
use s3s::{dto::ChecksumType, s3_error};
use zarrd_access::Right;
use zarrd_s3::{ObjectOperation, ObjectRequest, checksum_header, checksum_text, entity_tag_header};
use zarrd_store::{Checksum, ChecksumAlgorithm, ChecksumKind, Key, ValueMeta};
use zarrd_wire::{
    range::{self, ContentRange, RangeRequest},
    time,
};

use super::{buckets, content, context::Context, error::Failure, write};
use crate::{
    extract::ReadConditions,
    store_api::{
        content_type,
        get::{self, ValueHeaders},
    },
};

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

const BYTES: HeaderValue = HeaderValue::from_static("bytes");
/// The MD5 of no bytes.
const TAG_OF_NOTHING: HeaderValue = HeaderValue::from_static("\"d41d8cd98f00b204e9800998ecf8427e\"");
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");

/// The headers of an object in the response to a request.
struct ObjectHeaders<'a>(&'a ObjectRequest);

/// The type of a checksum, which may be of the checksums of parts.
pub(super) fn checksum_type_of(is_composite: bool) -> ChecksumType {
    ChecksumType::from_static(if is_composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT })
}

/// Handles a request that reads or sets an object.
pub(super) async fn handle(context: &Context, request: &ObjectRequest) -> Result<Response, Failure> {
    match request.operation {
        ObjectOperation::Get | ObjectOperation::Head => get(context, request).await,
        ObjectOperation::Put => put(context, request).await,
    }
}

/// `GetObject` and `HeadObject`.
async fn get(context: &Context, request: &ObjectRequest) -> Result<Response, Failure> {
    let (key, conditions) = readable(context, &request.bucket, &request.key).await?;
    let (store, described) = (&**context.app().store(), &ObjectHeaders(request));
    let response = match request.operation {
        ObjectOperation::Head => get::value_head(store, &key, &conditions, described).await?,
        _ => get::value(store, &key, &conditions, described).await?,
    };
    let Some(response) = response else { return Err(buckets::missing_key(context, &request.bucket).await) };
    match request.operation {
        ObjectOperation::Head if response.status() == StatusCode::OK => with_range_of_head(context, response),
        _ => Ok(response),
    }
}

/// `PutObject`.
async fn put(context: &Context, request: &ObjectRequest) -> Result<Response, Failure> {
    let bucket = context.bucket(&request.bucket)?;
    let Some(key) = context.key(&bucket, &request.key, Right::Write)? else { return directory(context) };
    let attributes = content::attributes(context)?;
    let (written, checksum) = write::put(context, &bucket, &key, attributes).await?;
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(ETAG, entity_tag_header(written.version));
    headers.extend(checksum.iter().flat_map(checksum_headers));
    Ok(response)
}

/// A name that ends in `/` is no key, but some clients make it before they put anything below it.
fn directory(context: &Context) -> Result<Response, Failure> {
    match context.take_body()?.length {
        Some(0) => {
            let mut response = Response::new(Body::empty());
            response.headers_mut().insert(ETAG, TAG_OF_NOTHING);
            Ok(response)
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

/// The head of a response with the range of the request, which HTTP ignores for a head, while S3 shows it.
fn with_range_of_head(context: &Context, mut response: Response) -> Result<Response, Failure> {
    let conditions = context.conditions();
    let line = conditions.get(RANGE).filter(|_| !conditions.contains_key(IF_RANGE)).and_then(|line| line.to_str().ok());
    let length = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let size = length.and_then(|length| length.parse().ok()).unwrap_or_default();
    let found = match line.map(range::parse) {
        None | Some(RangeRequest::Whole) => return Ok(response),
        Some(RangeRequest::One(range)) => range.resolve(size),
        Some(RangeRequest::Unsatisfiable) => None,
    };
    let Some(range) = found else { return Err(s3_error!(InvalidRange, "the object has {size} bytes").into()) };
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let headers = response.headers_mut();
    // A checksum is of the whole object.
    for algorithm in ChecksumAlgorithm::ALL {
        headers.remove(checksum_header(algorithm));
    }
    headers.remove(CHECKSUM_TYPE);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(range.end.saturating_sub(range.start)));
    let text = ContentRange { range: Some(range), size }.render();
    headers.extend(HeaderValue::try_from(text).map(|value| (CONTENT_RANGE, value)));
    Ok(response)
}

impl ValueHeaders for ObjectHeaders<'_> {
    fn of_value(&self, key: &Key, meta: &ValueMeta, modified: SystemTime, status: StatusCode) -> HeaderMap {
        let mut headers = self.of_unmodified(meta, modified);
        headers.insert(CONTENT_TYPE, content_type::for_key(key));
        headers.insert(ACCEPT_RANGES, BYTES);
        for (name, value) in content::headers(&meta.attributes) {
            headers.insert(name, value);
        }
        // A checksum is of the whole object.
        let checksum = meta.attributes.checksum().filter(|_| self.0.shows_checksum && status == StatusCode::OK);
        headers.extend(checksum.into_iter().flat_map(checksum_headers));
        for (name, value) in &self.0.overridden {
            headers.insert(name, value.clone());
        }
        headers
    }

    fn of_unmodified(&self, meta: &ValueMeta, modified: SystemTime) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(16);
        headers.insert(ETAG, entity_tag_header(meta.version));
        headers.extend(HeaderValue::try_from(time::http_date(modified)).map(|date| (LAST_MODIFIED, date)));
        headers
    }
}

/// The headers with a checksum and its type.
fn checksum_headers(checksum: &Checksum) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let kind = checksum_type_of(checksum.kind() != ChecksumKind::FullObject);
    let texts = [
        (checksum_header(checksum.algorithm()).clone(), checksum_text(checksum)),
        (CHECKSUM_TYPE, kind.as_str().to_owned()),
    ];
    texts.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
}

/// The size of an object, as S3 has it.
pub(super) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
