//! The elements of a write.

use zarrd_codec::VariableElements;
use zarrd_store::ByteStream;

/// The elements of a write, in the memory layout of their [`ElementType`](zarrd_meta::data_type::ElementType).
pub enum ElementSource {
    /// Elements of a fixed size, in C order of the region, in buffers of any length. The write fails with an error that
    /// the stream yields.
    Fixed(ByteStream),
    /// Elements of variable length, in C order of the region.
    Variable(VariableElements),
    /// One element for the whole region.
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
