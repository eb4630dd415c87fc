//! Writing elements: the way from a selection and its elements to chunks.

mod error;

pub use error::WriteError;

use codec::VariableElements;
use meta::{ArrayModel, Dialect, NodePath, selection::Selection};
use store::{ByteStream, Precondition, Version};

use crate::{ArrayError, Arrays};

/// A region that is about to be written. Nothing was read but metadata.
#[derive(Debug)]
pub struct RegionWrite {
    // Private.
}

/// Elements that are about to be appended to an array.
#[derive(Debug)]
pub struct Append {
    // Private.
}

/// Elements on their way in, as [`ElementType`](meta::data_type::ElementType) has them in memory.
pub enum Incoming {
    /// Of a fixed size, in C order of the region, in pieces of any length. An error that the stream yields fails the write with that error.
    Fixed(ByteStream),
    /// Of variable length, in C order of the region.
    Variable(VariableElements),
    /// One element for all of the region.
    Scalar(Vec<u8>),
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// The version that the node has now.
    pub version: Option<Version>,
    /// The array's shape now, as people see it.
    pub shape: Vec<u64>,
    /// How many chunks (of a sharded array: shards) were stored.
    pub stored: u64,
    /// How many were erased, or left out, since they are full of the fill value.
    pub erased: u64,
    /// How many had to be done again because somebody else wrote them meanwhile.
    pub repeated: u64,
}

impl Arrays {
    /// Makes ready to write what `selection` has of the array at `path`. Repeated indices in lists are refused: it would not be said which element stays.
    ///
    /// `condition` must hold of the node's version; it is judged now, and again with the commit.
    pub async fn write(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: &Selection,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        let _ = (path, dialect, selection, condition);
        todo!()
    }

    /// Makes ready to append along a dimension (negative from the end).
    pub async fn append(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: i64,
        condition: Precondition,
    ) -> Result<Append, WriteError> {
        let _ = (path, dialect, dimension, condition);
        todo!()
    }

    /// What the node at a path is, if it is an array.
    pub async fn model(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<(ArrayModel, Version), ArrayError> {
        let _ = (path, dialect);
        todo!()
    }
}

impl RegionWrite {
    /// The array.
    pub fn model(&self) -> &ArrayModel {
        todo!()
    }

    /// The shape that the elements must have, without the dimensions of which one index is selected.
    pub fn shape(&self) -> &[u64] {
        todo!()
    }

    /// How many bytes elements of a fixed size have in all.
    pub fn byte_len(&self) -> Option<u64> {
        todo!()
    }

    /// Writes the elements: all of them become visible in one commit, or none. Memory does not grow with their number.
    pub async fn run(self, elements: Incoming) -> Result<WriteReport, WriteError> {
        let _ = elements;
        todo!()
    }
}

impl Append {
    /// The array.
    pub fn model(&self) -> &ArrayModel {
        todo!()
    }

    /// The dimension that grows.
    pub fn dimension(&self) -> usize {
        todo!()
    }

    /// Grows the array by `count` along the dimension and writes the elements, in one commit. `None` counts them by how many bytes come; with [`Incoming::Scalar`] it is one.
    pub async fn run(self, count: Option<u64>, elements: Incoming) -> Result<WriteReport, WriteError> {
        let _ = (count, elements);
        todo!()
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed",
            Self::Variable(_) => "Variable",
            Self::Scalar(_) => "Scalar",
        })
    }
}
