//! The state of the directories and files that a page of a listing is read from.

use xxhash_rust::xxh3::Xxh3;
use zarrd_store::ListingState;

use crate::{attributes::Attributes, quiet::Precision, sorted_names::follow_attributes};

/// A hash of the attributes of all directories and values of a page.
///
/// There is no state if one of them changed within the last two seconds, since the next change may leave its attributes
/// equal, if one is on a file system that does not count as precise, and if a symbolic link was followed, which may lead
/// elsewhere without any change of its directory.
pub(crate) struct StateHash(Option<Xxh3>);

impl StateHash {
    pub(crate) fn new() -> Self {
        Self(Some(Xxh3::new()))
    }

    /// Adds the file of a value, or a directory with the attributes that it had before its names were read.
    pub(crate) fn add(&mut self, path: &str, attributes: &Attributes, precision: Precision) {
        if !follow_attributes(attributes, precision) {
            self.set_unknown();
        }
        let Some(hash) = &mut self.0 else { return };
        let Attributes { id, size, modified, changed, .. } = attributes;
        for number in [path.len() as u64, id.device.0.into(), id.device.1.into(), id.inode, *size] {
            hash.update(&number.to_le_bytes());
        }
        for bytes in [path.as_bytes(), &modified.bytes(), &changed.bytes()] {
            hash.update(bytes);
        }
    }

    /// Leaves the page without a state.
    pub(crate) fn set_unknown(&mut self) {
        self.0 = None;
    }

    /// The state of everything that was added.
    pub(crate) fn finish(self) -> Option<ListingState> {
        self.0.map(|hash| ListingState::from_u128(hash.digest128()))
    }
}
