//! The elements that a client sends.

use codec::VariableElements;
use store::ByteStream;

/// Elements on their way in, as [`ElementType`](meta::data_type::ElementType) has them in memory.
pub enum ElementSource {
    /// Of a fixed size, in C order of the region, in pieces of any length. An error that the stream yields fails the write with that error.
    Fixed(ByteStream),
    /// Of variable length, in C order of the region.
    Variable(VariableElements),
    /// One element for all of the region.
    Scalar(Vec<u8>),
}

impl std::fmt::Debug for ElementSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed",
            Self::Variable(_) => "Variable",
            Self::Scalar(_) => "Scalar",
        })
    }
}
