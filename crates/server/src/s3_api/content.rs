//! Headers about the content of a value, and its metadata, in requests and responses.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES, Entry},
};
use s3s::{S3Error, S3ErrorCode, s3_error};
use zarrd_s3::{METADATA_PREFIX, metadata_header};
use zarrd_store::{AttributeFields, Attributes, AttributesError, ContentField};

use super::{context::Context, error::Failure};

/// Removes the headers about the content and its metadata from a request.
pub(super) fn take(headers: &mut HeaderMap) -> HeaderMap {
    let mut taken = HeaderMap::new();
    let metadata = headers.keys().filter(|name| name.as_str().starts_with(METADATA_PREFIX)).cloned();
    let metadata: Vec<HeaderName> = metadata.collect();
    for name in ContentField::ALL.map(name).into_iter().chain(metadata) {
        if let Entry::Occupied(entry) = headers.entry(name) {
            let (name, values) = entry.remove_entry_mult();
            for value in values {
                taken.append(name.clone(), value);
            }
        }
    }
    taken
}

/// The attributes of the value that a request sets.
pub(super) fn attributes(context: &Context) -> Result<Attributes, Failure> {
    let metadata = zarrd_s3::metadata(context.content())?;
    let mut fields = AttributeFields { metadata, ..AttributeFields::default() };
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

/// The headers that show the attributes of a value, except for its checksum. `Expires` is shown as it was sent.
pub(super) fn headers(attributes: &Attributes) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let content = ContentField::ALL.into_iter().filter_map(|field| {
        let value = HeaderValue::from_str(attributes.content(field)?).ok()?;
        Some((name(field), value))
    });
    let metadata = attributes.metadata().filter_map(|(name, value)| metadata_header(name, value));
    content.chain(metadata)
}

/// The header of a field.
fn name(field: ContentField) -> HeaderName {
    match field {
        ContentField::Type => CONTENT_TYPE,
        ContentField::Encoding => CONTENT_ENCODING,
        ContentField::Language => CONTENT_LANGUAGE,
        ContentField::Disposition => CONTENT_DISPOSITION,
        ContentField::CacheControl => CACHE_CONTROL,
        ContentField::Expires => EXPIRES,
    }
}
