//! Headers about the content of a value, and its metadata, in requests and responses.

use std::collections::HashMap;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{EXPIRES, Entry},
};
use s3s::{S3Error, S3ErrorCode, S3Response, s3_error};
use zarrd_store::{AttributeFields, Attributes, AttributesError, ContentField};

use super::{context::Context, error::Failure};

/// Sets the members of an output that are for headers about the content. `Expires` is none of them: s3s takes it for a
/// time, while clients send other texts as well.
macro_rules! set_content {
    ($output:expr, $attributes:expr) => {{
        let attributes: &zarrd_store::Attributes = $attributes;
        let text = |field| attributes.content(field).map(str::to_owned);
        $output.cache_control = text(zarrd_store::ContentField::CacheControl);
        $output.content_disposition = text(zarrd_store::ContentField::Disposition);
        $output.content_encoding = text(zarrd_store::ContentField::Encoding);
        $output.content_language = text(zarrd_store::ContentField::Language);
    }};
}
pub(super) use set_content;

/// Removes the headers about the content from a request.
pub(super) fn take(headers: &mut HeaderMap) -> HeaderMap {
    let mut taken = HeaderMap::new();
    for field in ContentField::ALL {
        if let Entry::Occupied(entry) = headers.entry(name(field)) {
            let (name, values) = entry.remove_entry_mult();
            for value in values {
                taken.append(name.clone(), value);
            }
        }
    }
    taken
}

/// The attributes of the value that a request sets.
pub(super) fn attributes(context: &Context, metadata: Option<HashMap<String, String>>) -> Result<Attributes, Failure> {
    let metadata = metadata.unwrap_or_default();
    let mut fields = AttributeFields {
        metadata: metadata.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
        ..AttributeFields::default()
    };
    for field in ContentField::ALL {
        let mut values = context.content().get_all(name(field)).iter();
        let Some(value) = values.next() else { continue };
        if values.next().is_some() {
            return Err(s3_error!(InvalidArgument, "{field} is repeated").into());
        }
        let text = value.to_str().map_err(|_| s3_error!(InvalidArgument, "{field} is not ASCII"))?;
        // An empty one is none.
        if !text.is_empty() {
            fields.content.insert(field, text.to_owned());
        }
    }
    Attributes::new(fields).map_err(|error| {
        let code = match error {
            AttributesError::MetadataTooLong { .. } => S3ErrorCode::MetadataTooLarge,
            _ => S3ErrorCode::InvalidArgument,
        };
        S3Error::with_message(code, error.to_string()).into()
    })
}

/// The response with an output, and the time of expiry of its value as it was sent.
pub(super) fn with_expiry<T>(output: T, attributes: &Attributes) -> S3Response<T> {
    let expiry = attributes.content(ContentField::Expires).and_then(|text| HeaderValue::from_str(text).ok());
    S3Response::with_headers(output, expiry.map(|expiry| (EXPIRES, expiry)).into_iter().collect())
}

/// The header of a field.
fn name(field: ContentField) -> HeaderName {
    HeaderName::from_static(field.as_str())
}
