//! Attributes of values: what their writers say about them in addition to the bytes.

mod bytes;
mod checksum;
mod content;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub use self::{
    checksum::{Checksum, ChecksumAlgorithm, ChecksumKind, UnknownAlgorithm},
    content::ContentField,
};

/// The maximum length of user metadata, in bytes of all names and values.
pub const MAX_METADATA_LEN: usize = 2048;
/// The maximum number of fields of user metadata: each is a header of requests and answers.
pub const MAX_METADATA_FIELDS: usize = 64;
/// The maximum length of a [`ContentField`], in bytes: names of files that are percent-encoded have up to 765.
pub const MAX_CONTENT_FIELD_LEN: usize = 1024;
/// The maximum number of parts that a checksum can be of.
pub const MAX_PARTS: u32 = 10_000;

/// What the writer of a value said about it: headers about its content, metadata of its own, a checksum.
///
/// Attributes are set with a value ([`Payload::attributes`](crate::Payload::attributes)), belong to its version, and
/// are part of its [metadata](crate::ValueMeta::attributes). A store never interprets them. Empty ones, which almost
/// all values have, are a null pointer; clones of others share their memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attributes(Option<Arc<AttributeFields>>);

/// The fields of [`Attributes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributeFields {
    /// Headers about the content.
    pub content: BTreeMap<ContentField, String>,
    /// Metadata of the writer. Names are lower-case tokens of HTTP; values are what a header can have.
    pub metadata: BTreeMap<String, String>,
    /// A checksum of the bytes, which the writer made or had verified.
    pub checksum: Option<Checksum>,
}

/// The reason why fields are not valid [`Attributes`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttributesError {
    /// The user metadata are longer than [`MAX_METADATA_LEN`].
    #[error("metadata of {len} bytes exceed the limit of {MAX_METADATA_LEN}")]
    MetadataTooLong {
        /// Their length in bytes.
        len: usize,
    },
    /// There are more fields of user metadata than [`MAX_METADATA_FIELDS`].
    #[error("metadata of {fields} fields exceed the limit of {MAX_METADATA_FIELDS}")]
    TooManyFields {
        /// Their number.
        fields: usize,
    },
    /// A header about the content is empty, longer than [`MAX_CONTENT_FIELD_LEN`], or not ASCII.
    #[error("{field} is 1 to {MAX_CONTENT_FIELD_LEN} visible ASCII characters and spaces")]
    ContentField {
        /// The header.
        field: ContentField,
    },
    /// A name in the metadata is not a lower-case token.
    #[error("{name:?} is not a lower-case token")]
    MetadataName {
        /// The name.
        name: String,
    },
    /// A value in the metadata has a control character, or space at its ends.
    #[error("the value of {name:?} has a control character, or begins or ends with space")]
    MetadataValue {
        /// Its name.
        name: String,
    },
    /// A checksum has another length than its algorithm.
    #[error("a checksum of {algorithm} has {expected} bytes, not {found}")]
    ChecksumLength {
        /// The algorithm.
        algorithm: ChecksumAlgorithm,
        /// The length of its checksums.
        expected: usize,
        /// The length that was found.
        found: usize,
    },
    /// A checksum is of no parts, or of more than [`MAX_PARTS`].
    #[error("a checksum is of 1 to {MAX_PARTS} parts")]
    ChecksumParts,
}

impl Attributes {
    /// No attributes.
    pub const NONE: Self = Self(None);

    /// Attributes with these fields, if they are valid.
    pub fn new(fields: AttributeFields) -> Result<Self, AttributesError> {
        let AttributeFields { content, metadata, checksum: _ } = &fields;
        content.iter().try_for_each(|(field, text)| check_content(*field, text))?;
        // Names and values are short enough for their sum not to overflow.
        let len = metadata.iter().map(|(name, value)| name.len().saturating_add(value.len())).sum();
        if len > MAX_METADATA_LEN {
            return Err(AttributesError::MetadataTooLong { len });
        }
        if metadata.len() > MAX_METADATA_FIELDS {
            return Err(AttributesError::TooManyFields { fields: metadata.len() });
        }
        metadata.iter().try_for_each(|(name, value)| check_metadata(name, value))?;
        Ok(match fields == AttributeFields::default() {
            true => Self::NONE,
            false => Self(Some(Arc::new(fields))),
        })
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A header about the content.
    pub fn content(&self, field: ContentField) -> Option<&str> {
        self.0.as_ref()?.content.get(&field).map(String::as_str)
    }

    /// The metadata of the writer, in the order of their names.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|fields| &fields.metadata).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The checksum.
    pub fn checksum(&self) -> Option<&Checksum> {
        self.0.as_ref()?.checksum.as_ref()
    }

    /// A copy of the fields, to be changed.
    pub fn fields(&self) -> AttributeFields {
        self.0.as_deref().cloned().unwrap_or_default()
    }

    /// The same attributes with another checksum, or without one.
    #[must_use]
    pub fn with_checksum(&self, checksum: Option<Checksum>) -> Self {
        let fields = AttributeFields { checksum, ..self.fields() };
        if fields == AttributeFields::default() { Self::NONE } else { Self(Some(Arc::new(fields))) }
    }
}

/// The fields that are set.
impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(fields) => fields.fmt(f),
            None => f.write_str("Attributes::NONE"),
        }
    }
}

fn check_content(field: ContentField, text: &str) -> Result<(), AttributesError> {
    let is_visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    match !text.is_empty() && text.len() <= MAX_CONTENT_FIELD_LEN && is_visible && text.trim() == text {
        true => Ok(()),
        false => Err(AttributesError::ContentField { field }),
    }
}

fn check_metadata(name: &str, value: &str) -> Result<(), AttributesError> {
    let is_token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(AttributesError::MetadataName { name: name.to_owned() });
    }
    if value.chars().any(char::is_control) || value.trim() != value {
        return Err(AttributesError::MetadataValue { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(name: &str, value: &str) -> Result<Attributes, AttributesError> {
        let metadata = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Attributes::new(AttributeFields { metadata, ..Default::default() })
    }

    #[test]
    fn attributes_are_what_headers_can_have() {
        for (name, value) in [("mtime", "1700000000.5"), ("a-b", ""), ("x_1", "ä ö")] {
            assert!(metadata(name, value).is_ok(), "{name:?}: {value:?}");
        }
        for (name, value) in [("", "a"), ("A", "a"), ("a b", "a"), ("a:", "a"), ("é", "a"), ("a\n", "a")] {
            assert!(matches!(metadata(name, value), Err(AttributesError::MetadataName { .. })), "{name:?}");
        }
        for value in ["a\nb", "\0", "\u{7f}", "\u{85}", " a", "a ", "a\t"] {
            assert!(matches!(metadata("a", value), Err(AttributesError::MetadataValue { .. })), "{value:?}");
        }
        for field in ContentField::ALL {
            let content = |text: &str| {
                let content = BTreeMap::from([(field, text.to_owned())]);
                Attributes::new(AttributeFields { content, ..Default::default() })
            };
            for text in ["text/plain; charset=utf-8", "0", &"a".repeat(MAX_CONTENT_FIELD_LEN)] {
                assert_eq!(content(text).unwrap().content(field), Some(text));
            }
            for text in ["", " a", "a\r\nb", "ä", &"a".repeat(MAX_CONTENT_FIELD_LEN + 1)] {
                assert_eq!(content(text), Err(AttributesError::ContentField { field }), "{text:?}");
            }
        }
    }

    #[test]
    fn metadata_are_bounded() {
        assert!(metadata("a", &"b".repeat(MAX_METADATA_LEN - 1)).is_ok());
        let error = metadata("a", &"b".repeat(MAX_METADATA_LEN)).unwrap_err();
        assert_eq!(error, AttributesError::MetadataTooLong { len: MAX_METADATA_LEN + 1 });
        let fields = |count: usize| {
            let metadata = (0..count).map(|number| (number.to_string(), String::new())).collect();
            Attributes::new(AttributeFields { metadata, ..Default::default() })
        };
        assert!(fields(MAX_METADATA_FIELDS).is_ok());
        assert_eq!(fields(65), Err(AttributesError::TooManyFields { fields: 65 }));
    }

    #[test]
    fn no_fields_are_no_attributes() {
        assert_eq!(Attributes::new(AttributeFields::default()), Ok(Attributes::NONE));
        assert_eq!(size_of::<Attributes>(), size_of::<usize>());
        let sum = Checksum::new(ChecksumAlgorithm::Crc32, ChecksumKind::FullObject, &[1, 2, 3, 4]).unwrap();
        let with = Attributes::NONE.with_checksum(Some(sum));
        assert_eq!(with.checksum(), Some(&sum));
        assert!(with.with_checksum(None).is_empty());
    }
}
