//! Attributes of values as headers.
//!
//! ```text
//! zarr-content-type: text/csv
//! zarr-content-encoding: gzip
//! zarr-meta-NAME: VALUE
//! zarr-checksum: crc32c=:BASE64:             of all bytes
//! zarr-checksum: crc32c=:BASE64:;parts=3     of the checksums of three parts
//! ```
//!
//! They are headers of their own since `Content-Type` and `Content-Encoding` are those of the answer: a browser executes
//! what some of the former say, and clients decode what the latter says, which would not be the bytes that are stored.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use zarrd_store::{AttributeFields, Attributes, AttributesError, Checksum, ChecksumKind};

use crate::headers::{CHECKSUM, META_PREFIX, VALUE_CONTENT_ENCODING, VALUE_CONTENT_TYPE};

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
    let fields = [
        (VALUE_CONTENT_TYPE, attributes.content_type().map(str::to_owned)),
        (VALUE_CONTENT_ENCODING, attributes.content_encoding().map(str::to_owned)),
        (CHECKSUM, attributes.checksum().map(render_checksum)),
    ];
    let fields = fields.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text?).ok()?)));
    let metadata = attributes.metadata().filter_map(|(name, value)| {
        let name = HeaderName::try_from(format!("{META_PREFIX}{name}")).ok()?;
        Some((name, HeaderValue::from_bytes(value.as_bytes()).ok()?))
    });
    fields.chain(metadata)
}

/// The attributes that headers say.
pub fn from_headers(headers: &HeaderMap) -> Result<Attributes, AttributeHeaderError> {
    let content_type = single(headers, &VALUE_CONTENT_TYPE)?;
    let content_encoding = single(headers, &VALUE_CONTENT_ENCODING)?;
    let checksum = single(headers, &CHECKSUM)?.map(|text| parse_checksum(&text)).transpose()?;
    let mut metadata = BTreeMap::new();
    for name in headers.keys() {
        if let Some(field) = name.as_str().strip_prefix(META_PREFIX) {
            metadata.extend(single(headers, name)?.map(|value| (field.to_owned(), value)));
        }
    }
    Ok(Attributes::new(AttributeFields { content_type, content_encoding, metadata, checksum })?)
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
                content_type: Some("text/csv; header=present".into()),
                content_encoding: Some("gzip".into()),
                metadata: [("mtime", "17.5"), ("a-b", "ä"), ("empty", "")]
                    .map(|(name, value)| (name.into(), value.into()))
                    .into(),
                checksum: Some(Checksum::new(ChecksumAlgorithm::Crc64Nvme, kind, &[7; 8]).unwrap()),
            };
            let attributes = Attributes::new(fields).unwrap();
            let headers: HeaderMap = to_headers(&attributes).collect();
            assert_eq!(headers.len(), 6);
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
