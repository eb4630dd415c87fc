//! The hidden keys of an upload.

use super::{error::UploadsError, id::UploadId, types::UploadsAfter};
use crate::{Key, MAX_PARTS, Prefix, Scan, key::SEPARATOR};

/// The texts with which the hidden keys of uploads and of completed uploads begin.
pub(super) const UPLOADS: &str = "\u{3}uploads/";
pub(super) const COMPLETED: &str = "\u{3}completed/";

/// The hidden keys of an upload.
#[derive(Clone, Debug)]
pub(super) struct Names {
    key: Key,
    id: UploadId,
}

impl Names {
    pub(super) fn new(key: &Key, id: UploadId) -> Self {
        Self { key: key.clone(), id }
    }

    /// The hidden keys of the upload with this one.
    pub(super) fn of_upload(hidden: &str) -> Option<Self> {
        let (key, id) = hidden.strip_prefix(UPLOADS)?.rsplit_once(SEPARATOR)?;
        Some(Self { key: Key::parse(key).ok()?, id: id.parse().ok()? })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn id(&self) -> UploadId {
        self.id
    }

    pub(super) fn not_found(&self) -> UploadsError {
        UploadsError::NotFound { key: self.key.clone(), id: self.id }
    }

    pub(super) fn upload(&self) -> Result<Key, UploadsError> {
        Ok(Key::from_stored(format!("{UPLOADS}{}{SEPARATOR}{}", self.key, self.id).as_bytes())?)
    }

    pub(super) fn completed(&self) -> Result<Key, UploadsError> {
        Ok(Key::from_stored(format!("{COMPLETED}{}{SEPARATOR}{}", self.key, self.id).as_bytes())?)
    }

    /// The prefix of the parts.
    pub(super) fn parts(&self) -> Result<Prefix, UploadsError> {
        Ok(Prefix::hidden(&format!("parts/{}/", self.id))?)
    }

    pub(super) fn part(&self, number: u32) -> Result<Key, UploadsError> {
        match (1..=MAX_PARTS).contains(&number) {
            true => Ok(Key::hidden(&format!("parts/{}/{number:05}", self.id))?),
            false => Err(UploadsError::PartNumber { number }),
        }
    }

    /// The number of a part.
    pub(super) fn number_of(&self, part: &Key) -> Option<u32> {
        part.name().parse().ok()
    }

    /// A scan of the parts after a number.
    pub(super) fn scan_parts(&self, after: u32, limit: usize) -> Result<Scan, UploadsError> {
        let prefix = self.parts()?;
        let after = format!("{prefix}{:05}", after.min(MAX_PARTS));
        Ok(Scan::hidden(prefix.as_str().to_owned(), after, limit))
    }
}

/// A scan of the uploads whose keys begin with a text.
pub(super) fn scan_uploads(prefix: &str, after: UploadsAfter<'_>, limit: usize) -> Scan {
    let after = match after {
        UploadsAfter::Nothing => String::new(),
        // No id has a greater character.
        UploadsAfter::Key(key) => format!("{UPLOADS}{key}{SEPARATOR}g"),
        UploadsAfter::Upload(key, id) => format!("{UPLOADS}{key}{SEPARATOR}{id}"),
        // The root has all of them.
        UploadsAfter::Below(prefix) => format!("{UPLOADS}{}", prefix.upper_bound().unwrap_or_else(|| char::MAX.into())),
    };
    Scan::hidden(format!("{UPLOADS}{prefix}"), after, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_KEY_LEN;

    #[test]
    fn the_longest_key_has_uploads() {
        let key = Key::parse(&"a".repeat(MAX_KEY_LEN)).unwrap();
        let names = Names::new(&key, UploadId::random());
        assert!(names.completed().is_ok() && names.part(MAX_PARTS).is_ok());
        let found = Names::of_upload(names.upload().unwrap().as_str()).unwrap();
        assert_eq!((found.key(), found.id()), (&key, names.id()));
        assert_eq!(names.number_of(&names.part(17).unwrap()), Some(17));
        assert!(names.part(0).is_err() && names.part(MAX_PARTS + 1).is_err());
    }
}
