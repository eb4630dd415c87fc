//! Attributes as bytes, in which stores keep them.
//!
//! ```text
//! fields, each: kind u8, length u16, content
//! kinds: 1 content type; 2 content encoding; 5 content language; 6 content disposition; 7 cache control; 8 expires
//!        3 metadata: name, NUL, value
//!        4 checksum: algorithm u8 (1 crc32, 2 crc32c, 3 crc64nvme, 4 sha1, 5 sha256), number of parts u16
//!          (0 if it is of the whole value), bytes
//! ```
//!
//! Numbers are big-endian.

use super::{AttributeFields, Attributes, Checksum, ChecksumAlgorithm, ChecksumKind, ContentField};

const METADATA: u8 = 3;
const CHECKSUM: u8 = 4;

impl Attributes {
    /// The attributes as bytes; none if they are empty. A store may keep them in this form, which does not change.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut push = |kind: u8, parts: &[&[u8]]| {
            let len: usize = parts.iter().map(|part| part.len()).sum();
            bytes.push(kind);
            // All fields are bounded by the constructor.
            bytes.extend_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
        };
        for field in ContentField::ALL {
            if let Some(text) = self.content(field) {
                push(kind_of(field), &[text.as_bytes()]);
            }
        }
        for (name, value) in self.metadata() {
            push(METADATA, &[name.as_bytes(), &[0], value.as_bytes()]);
        }
        if let Some(checksum) = self.checksum() {
            let parts = match checksum.kind() {
                ChecksumKind::FullObject => 0,
                ChecksumKind::Composite { parts } => u16::try_from(parts).unwrap_or(u16::MAX),
            };
            push(CHECKSUM, &[&[number_of(checksum.algorithm())], &parts.to_be_bytes(), checksum.as_bytes()]);
        }
        bytes
    }

    /// Decodes [encoded](Self::encode) attributes; `None` if they are damaged.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut fields = AttributeFields::default();
        while let Some((kind, rest)) = bytes.split_first() {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            let (content, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            bytes = rest;
            match *kind {
                METADATA => {
                    let at = content.iter().position(|byte| *byte == 0)?;
                    let (name, value) = content.split_at_checked(at)?;
                    fields.metadata.insert(text(name)?, text(value.split_first()?.1)?);
                }
                CHECKSUM => fields.checksum = Some(checksum(content)?),
                kind => {
                    let field = ContentField::ALL.into_iter().find(|known| kind_of(*known) == kind)?;
                    fields.content.insert(field, text(content)?);
                }
            }
        }
        Self::new(fields).ok()
    }
}

fn kind_of(field: ContentField) -> u8 {
    match field {
        ContentField::Type => 1,
        ContentField::Encoding => 2,
        ContentField::Language => 5,
        ContentField::Disposition => 6,
        ContentField::CacheControl => 7,
        ContentField::Expires => 8,
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn checksum(content: &[u8]) -> Option<Checksum> {
    let (algorithm, rest) = content.split_first()?;
    let algorithm = ChecksumAlgorithm::ALL.into_iter().find(|known| number_of(*known) == *algorithm)?;
    let (parts, value) = rest.split_first_chunk::<2>()?;
    let kind = match u16::from_be_bytes(*parts) {
        0 => ChecksumKind::FullObject,
        parts => ChecksumKind::Composite { parts: parts.into() },
    };
    Checksum::new(algorithm, kind, value).ok()
}

fn number_of(algorithm: ChecksumAlgorithm) -> u8 {
    match algorithm {
        ChecksumAlgorithm::Crc32 => 1,
        ChecksumAlgorithm::Crc32c => 2,
        ChecksumAlgorithm::Crc64Nvme => 3,
        ChecksumAlgorithm::Sha1 => 4,
        ChecksumAlgorithm::Sha256 => 5,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checksums() -> impl Strategy<Value = Checksum> {
        let kinds = prop_oneof![
            Just(ChecksumKind::FullObject),
            (1..=10_000_u32).prop_map(|parts| ChecksumKind::Composite { parts })
        ];
        (prop::sample::select(&ChecksumAlgorithm::ALL), kinds, any::<[u8; 32]>())
            .prop_map(|(algorithm, kind, bytes)| Checksum::new(algorithm, kind, &bytes[..algorithm.bytes()]).unwrap())
    }

    proptest! {
        #[test]
        fn attributes_round_trip(
            content in prop::collection::btree_map(prop::sample::select(&ContentField::ALL), "[!-~]([ -~]{0,20}[!-~])?", 0..7),
            metadata in prop::collection::btree_map("[a-z0-9-]{1,9}", "[!-~é]([ -~]{0,20}[!-~])?", 0..9),
            checksum in prop::option::of(checksums()),
        ) {
            let fields = AttributeFields { content, metadata, checksum };
            let attributes = Attributes::new(fields.clone()).unwrap();
            prop_assert_eq!(attributes.fields(), fields);
            let bytes = attributes.encode();
            prop_assert_eq!(bytes.is_empty(), attributes.is_empty());
            prop_assert_eq!(Attributes::decode(&bytes), Some(attributes));
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            if let Some(attributes) = Attributes::decode(&bytes) {
                prop_assert_eq!(Attributes::decode(&attributes.encode()), Some(attributes));
            }
        }
    }
}
