//! Steps that replace each element by another one.

use std::hash::{Hash, Hasher};

use zarrd_codec::Elements;
use zarrd_compute::Cast;
use zarrd_meta::data_type::DataType;

use crate::error::ArrayError;

/// A step that replaces each element by another one, such as decoding by conventions, or a cast.
pub trait ElementMap: std::fmt::Debug + Send + Sync {
    /// The data type of the new elements.
    fn data_type(&self) -> &DataType;

    /// Replaces elements; the result has as many.
    fn map(&self, elements: &Elements) -> Result<Elements, ArrayError>;
}

/// The decoding of elements by the conventions for climate data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decode {
    /// Elements are what is stored.
    #[default]
    Stored,
    /// Elements are decoded by the attributes of their array.
    Cf,
    /// The same, with texts in place of `datetime64`, since some times are outside of its range.
    CfTexts,
}

impl ElementMap for Cast {
    fn data_type(&self) -> &DataType {
        self.data_type()
    }

    fn map(&self, elements: &Elements) -> Result<Elements, ArrayError> {
        Ok(self.apply(elements)?)
    }
}

/// A hash of a value that is the same in every process.
pub(crate) fn stable_hash(value: &impl Hash) -> u128 {
    struct Stable(xxhash_rust::xxh3::Xxh3);
    impl Hasher for Stable {
        fn finish(&self) -> u64 {
            self.0.digest()
        }

        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut hasher = Stable(xxhash_rust::xxh3::Xxh3::new());
    value.hash(&mut hasher);
    hasher.0.digest128()
}
