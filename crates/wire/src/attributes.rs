//! Attributes of values as headers.
//!
//! ```text
//! zarr-content-type: text/csv
//! zarr-content-encoding: gzip              also -language, -disposition, zarr-cache-control, zarr-expires
//! zarr-meta-NAME: VALUE
//! zarr-checksum: crc32c=:BASE64:             of all bytes
//! zarr-checksum: crc32c=:BASE64:;parts=3     of the checksums of three parts
//! ```
//!
//! They are headers of their own since `Content-Type` and the like are those of the answer: a browser executes what some
//! content types say, clients decode what `Content-Encoding` says, which would not be the bytes that are stored, and
//! caches are told of versions by the server.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use zarrd_store::{AttributeFields, Attributes, AttributesError, Checksum, ChecksumKind, ContentField};

use crate::headers::{
    CHECKSUM, META_PREFIX, VALUE_CACHE_CONTROL, VALUE_CONTENT_DISPOSITION, VALUE_CONTENT_ENCODING,
    VALUE_CONTENT_LANGUAGE, VALUE_CONTENT_TYPE, VALUE_EXPIRES,
};

/// The reason why headers are no attributes.
#[derive(Debug, thiserror::Error)]
pub enum AttributeHeaderError {
    /// A header is repeated.
    #[error("{name} is repeated")]
    Repeated {
        /// Its name.
        name: HeaderName,
    },
    /// A header is not UTF-8.
    #[error("{name} is not UTF-8")]
    NotUtf8 {
        /// Its name.
        name: HeaderName,
    },
    /// A checksum has another form.
    #[error("a checksum has the form ALGORITHM=:BASE64: or ALGORITHM=:BASE64:;parts=N")]
    Checksum,
    /// The attributes are invalid.
    #[error(transparent)]
    Invalid(#[from] AttributesError),
}

/// The headers that show attributes.
pub fn to_headers(attributes: &Attributes) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let content = ContentField::ALL.into_iter().filter_map(|field| {
        let value = HeaderValue::from_str(attributes.content(field)?).ok()?;
        Some((content_header(field), value))
    });
    let checksum = attributes.checksum().and_then(|checksum| HeaderValue::try_from(render_checksum(checksum)).ok());
    let checksum = checksum.map(|checksum| (CHECKSUM, checksum));
    let metadata = attributes.metadata().filter_map(|(name, value)| {
        let name = HeaderName::try_from(format!("{META_PREFIX}{name}")).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    content.chain(checksum).chain(metadata)
}

/// The attributes that headers say.
pub fn from_headers(headers: &HeaderMap) -> Result<Attributes, AttributeHeaderError> {
    let mut content = BTreeMap::new();
    for field in ContentField::ALL {
        content.extend(single(headers, &content_header(field))?.map(|text| (field, text)));
    }
    let checksum = single(headers, &CHECKSUM)?.map(|text| parse_checksum(&text)).transpose()?;
    let mut metadata = BTreeMap::new();
    for name in headers.keys() {
        if let Some(field) = name.as_str().strip_prefix(META_PREFIX) {
            metadata.extend(single(headers, name)?.map(|value| (field.to_owned(), value)));
        }
    }
    Ok(Attributes::new(AttributeFields { content, metadata, checksum })?)
}

/// The header that shows a header about the content.
fn content_header(field: ContentField) -> HeaderName {
    match field {
        ContentField::Type => VALUE_CONTENT_TYPE,
        ContentField::Encoding => VALUE_CONTENT_ENCODING,
        ContentField::Language => VALUE_CONTENT_LANGUAGE,
        ContentField::Disposition => VALUE_CONTENT_DISPOSITION,
        ContentField::CacheControl => VALUE_CACHE_CONTROL,
        ContentField::Expires => VALUE_EXPIRES,
    }
}

fn single(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, AttributeHeaderError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(AttributeHeaderError::Repeated { name: name.clone() });
    }
    let text = std::str::from_utf8(value.as_bytes());
    text.map(|text| Some(text.to_owned())).map_err(|_| AttributeHeaderError::NotUtf8 { name: name.clone() })
}

fn render_checksum(checksum: &Checksum) -> String {
    let value = BASE64_STANDARD.encode(checksum.as_bytes());
    match checksum.kind() {
        ChecksumKind::FullObject => format!("{}=:{value}:", checksum.algorithm()),
        ChecksumKind::Composite { parts } => format!("{}=:{value}:;parts={parts}", checksum.algorithm()),
    }
}

fn parse_checksum(text: &str) -> Result<Checksum, AttributeHeaderError> {
    let parts = || {
        let (algorithm, rest) = text.split_once("=:")?;
        let (value, parameter) = rest.split_once(':')?;
        let kind = match parameter.strip_prefix(";parts=") {
            Some(parts) => ChecksumKind::Composite { parts: parts.parse().ok()? },
            None if parameter.is_empty() => ChecksumKind::FullObject,
            None => return None,
        };
        Some((algorithm.parse().ok()?, kind, BASE64_STANDARD.decode(value).ok()?))
    };
    let (algorithm, kind, value) = parts().ok_or(AttributeHeaderError::Checksum)?;
    Ok(Checksum::new(algorithm, kind, &value)?)
}

#[cfg(test)]
mod tests {
    use zarrd_store::ChecksumAlgorithm;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn attributes_are_the_same_after_a_transfer() {
        for kind in [ChecksumKind::FullObject, ChecksumKind::Composite { parts: 3 }] {
            let fields = AttributeFields {
                content: ContentField::ALL.map(|field| (field, format!("{field}; header=present"))).into(),
                metadata: [("mtime", "17.5"), ("a-b", "ä"), ("empty", "")]
                    .map(|(name, value)| (name.into(), value.into()))
                    .into(),
                checksum: Some(Checksum::new(ChecksumAlgorithm::Crc64Nvme, kind, &[7; 8]).unwrap()),
            };
            let attributes = Attributes::new(fields).unwrap();
            let headers: HeaderMap = to_headers(&attributes).collect();
            assert_eq!(headers.len(), 10);
            assert_eq!(from_headers(&headers).unwrap(), attributes);
        }
        assert_eq!(to_headers(&Attributes::NONE).count(), 0);
        assert!(from_headers(&headers(&[("content-type", "text/html"), ("zarr-shape", "1")])).unwrap().is_empty());
    }

    #[test]
    fn headers_that_are_no_attributes_are_errors() {
        for pairs in [
            &[("zarr-meta-a", "1"), ("zarr-meta-a", "2")][..],
            &[("zarr-meta-", "1")],
            &[("zarr-content-type", "ä")],
            &[("zarr-content-type", "")],
            &[("zarr-expires", "0"), ("zarr-expires", "0")],
            &[("zarr-checksum", "crc32=:AAAA:")],
            &[("zarr-checksum", "crc32=:AAAAAA==:;parts=0")],
            &[("zarr-checksum", "crc32=:AAAAAA==:;part=1")],
            &[("zarr-checksum", "md5=:AAAAAA==:")],
            &[("zarr-checksum", "crc32=AAAAAA==")],
        ] {
            assert!(from_headers(&headers(pairs)).is_err(), "{pairs:?}");
        }
    }
}
