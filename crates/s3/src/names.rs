//! Names of buckets and of the objects in them, as prefixes and keys of a store.

use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::{S3Error, S3ErrorCode, s3_error};
use zarrd_store::{Key, KeyError, Prefix};

/// The maximum length of the name of a bucket.
const MAX_BUCKET_LEN: usize = 255;
/// The first segment of keys that are the server's own, and no bucket.
const OWN: &str = ".zarrd";
/// The prefix of the records of buckets.
const RECORDS: &str = ".zarrd/buckets/";
/// The characters that `encoding-type=url` encodes.
const LISTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The name of a bucket: 1 to 255 letters, digits, `.`, `_` and `-`, but neither `.` nor `..` nor the server's own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(String);

/// The mapping of buckets to a store: each first segment of keys is a bucket, and the whole store is one if it has a name.
#[derive(Clone, Debug, Default)]
pub struct BucketNames {
    root: Option<Bucket>,
}

/// The meaning of the key of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectName {
    /// A key of the store.
    Key(Key),
    /// A name that ends in `/`, which some clients take for a directory. No key of a store has such a name.
    Directory,
}

impl Bucket {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not the name of a [`Bucket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bucket has a name of 1 to 255 letters, digits, `.`, `_` and `-`, which is not `.`, `..` or `.zarrd`")]
pub struct BucketError;

impl From<BucketError> for S3Error {
    fn from(error: BucketError) -> Self {
        Self::with_message(S3ErrorCode::InvalidBucketName, error.to_string())
    }
}

impl FromStr for Bucket {
    type Err = BucketError;

    fn from_str(name: &str) -> Result<Self, BucketError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_valid = (1..=MAX_BUCKET_LEN).contains(&name.len()) && name.bytes().all(is_plain);
        match is_valid && ![".", "..", OWN].contains(&name) {
            true => Ok(Self(name.to_owned())),
            false => Err(BucketError),
        }
    }
}

impl BucketNames {
    /// The buckets of a store, which is also one as a whole if a name for it is given.
    pub fn new(root: Option<Bucket>) -> Self {
        Self { root }
    }

    /// The bucket that the whole store is.
    pub fn root(&self) -> Option<&Bucket> {
        self.root.as_ref()
    }

    /// True if the bucket is the whole store, which always exists.
    pub fn is_root(&self, bucket: &Bucket) -> bool {
        self.root.as_ref() == Some(bucket)
    }

    /// The prefix of the keys in a bucket.
    pub fn prefix(&self, bucket: &Bucket) -> Prefix {
        if self.is_root(bucket) {
            return Prefix::root();
        }
        // The name is a valid segment, and far shorter than a key.
        Prefix::parse(&format!("{}/", bucket.0)).unwrap_or_else(|_| Prefix::root())
    }

    /// The key whose value records that the bucket exists although no key may be in it; `None` for the whole store.
    pub fn record(&self, bucket: &Bucket) -> Option<Key> {
        if self.is_root(bucket) {
            return None;
        }
        Key::parse(&format!("{RECORDS}{}", bucket.0)).ok()
    }

    /// The prefix of all records of buckets.
    pub fn records() -> Prefix {
        // The text is a valid prefix.
        Prefix::parse(RECORDS).unwrap_or_else(|_| Prefix::root())
    }

    /// True if a key or prefix is the server's own, and not shown in listings.
    pub fn is_own(name: &str) -> bool {
        name.strip_prefix(OWN).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The meaning of the key of an object in a bucket.
    pub fn object(&self, bucket: &Bucket, key: &str) -> Result<ObjectName, S3Error> {
        let prefix = self.prefix(bucket);
        if let Some(directory) = key.strip_suffix('/') {
            return prefix.join(directory).map(|_| ObjectName::Directory).map_err(invalid_key);
        }
        prefix.join(key).map(ObjectName::Key).map_err(invalid_key)
    }
}

fn invalid_key(error: KeyError) -> S3Error {
    match error {
        KeyError::TooLong { .. } => {
            S3Error::with_message(S3ErrorCode::KeyTooLongError, format!("with bucket and `/`, {error}"))
        }
        _ => s3_error!(InvalidArgument, "with bucket and `/`, {error}"),
    }
}

/// Encodes a name in a listing with `encoding-type=url`.
pub fn encode_listed(name: &str) -> String {
    utf8_percent_encode(name, LISTED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_buckets_are_segments() {
        for good in ["a", "Lab_1", "a.b-c", &"x".repeat(255)] {
            assert_eq!(good.parse::<Bucket>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".zarrd", "a/b", "é", "a b", &"x".repeat(256)] {
            assert_eq!(bad.parse::<Bucket>(), Err(BucketError), "{bad}");
        }
    }

    #[test]
    fn objects_are_keys_below_their_bucket() {
        let (lab, all): (Bucket, Bucket) = ("lab".parse().unwrap(), "all".parse().unwrap());
        let names = BucketNames::new(Some(all.clone()));
        let key = |text: &str| ObjectName::Key(Key::parse(text).unwrap());
        assert_eq!(names.object(&lab, "a/b").unwrap(), key("lab/a/b"));
        assert_eq!(names.object(&all, "a/b").unwrap(), key("a/b"));
        assert_eq!(names.object(&lab, "a/").unwrap(), ObjectName::Directory);
        assert_eq!((names.record(&lab), names.record(&all)), (Key::parse(".zarrd/buckets/lab").ok(), None));
        for (bad, code) in [
            ("a//b", S3ErrorCode::InvalidArgument),
            ("../b", S3ErrorCode::InvalidArgument),
            ("a/./b", S3ErrorCode::InvalidArgument),
            ("a\u{1}", S3ErrorCode::InvalidArgument),
            ("//", S3ErrorCode::InvalidArgument),
            (&"x".repeat(1021), S3ErrorCode::KeyTooLongError),
        ] {
            assert_eq!(*names.object(&lab, bad).unwrap_err().code(), code, "{bad}");
        }
        assert!(names.object(&lab, &"x".repeat(1020)).is_ok());
        assert!(BucketNames::is_own(".zarrd/buckets/") && !BucketNames::is_own(".zarrd") && !BucketNames::is_own("a/"));
    }

    #[test]
    fn listed_names_are_encoded_but_for_unreserved_characters() {
        assert_eq!(encode_listed("a-b_c.d~e/f g+h%é"), "a-b_c.d~e/f%20g%2Bh%25%C3%A9");
    }
}
