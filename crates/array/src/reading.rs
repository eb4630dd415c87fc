//! What is read.

use std::time::Duration;

use codec::Elements;
use futures::{Stream, stream};
use meta::ArrayModel;

use crate::{Array, ArrayError};

/// A selection that is ready to be read: one commit's metadata and chunk versions, and a plan. Nothing is decoded.
#[derive(Debug)]
pub struct Reading {
    array: Array,
    shape: Vec<u64>,
}

/// What a reading took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How long finding and planning took.
    pub plan: Duration,
    /// How long chunks were fetched, all added up.
    pub fetch: Duration,
    /// How long chunks were decoded, all added up.
    pub decode: Duration,
    /// How many chunks (or parts of shards) were decoded.
    pub decoded: u64,
    /// How many were in the cache.
    pub cached: u64,
}

impl Reading {
    /// The array that is read.
    pub fn model(&self) -> &ArrayModel {
        self.array.model()
    }

    /// The shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The names of the result's dimensions; where it has others than the array (points, stacks), those have none.
    pub fn dimension_names(&self) -> Vec<Option<String>> {
        Vec::new()
    }

    /// How many elements there are.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// How many bytes they have; `None` where each has its own length.
    pub fn byte_len(&self) -> Option<u64> {
        Some(self.elements().saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// A number that is another one whenever metadata, selection or any chunk concerned is another. Costs no decoding. `None` where
    /// more than 100,000 chunks are concerned.
    pub fn fingerprint(&self) -> Option<u128> {
        None
    }

    /// The elements in C order, in pieces of whole elements. After an error nothing follows.
    pub fn pieces(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        stream::empty()
    }

    /// Tells what was done so far, also while [`pieces`](Self::pieces) is being consumed.
    pub fn meter(&self) -> Meter {
        Meter
    }
}

/// Tells what a reading took so far. Clones tell of the same reading.
#[derive(Clone, Debug)]
pub struct Meter;

impl Meter {
    /// What it took so far.
    pub fn work(&self) -> Work {
        Work::default()
    }
}
