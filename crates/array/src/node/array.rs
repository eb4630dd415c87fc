//! Arrays as of one commit.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use zarrd_codec::{ChunkRepresentation, CodecChain};
use zarrd_meta::{
    ArrayModel, NodePath,
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Region},
};
use zarrd_store::{Key, Prefix};

use crate::error::ArrayError;

/// An array as of one commit. Clones are cheap and share its codec chains.
#[derive(Clone, Debug)]
pub(crate) struct Array(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    model: ArrayModel,
    grid: Arc<ChunkGrid>,
    path: NodePath,
    /// The prefix of the keys of all chunks.
    prefix: String,
    /// A hash that differs whenever the metadata does.
    metadata_hash: u128,
    /// The codec chains by chunk shape; a regular grid has one.
    chains: Mutex<HashMap<Vec<u64>, Arc<CodecChain>>>,
    /// The chain of the largest chunk, which is that of all chunks of a regular grid; `None` without chunks.
    largest_chain: OnceLock<Option<Arc<CodecChain>>>,
    /// True if computations need decoded elements. Attributes can be long, so they are searched once.
    is_undecoded: OnceLock<bool>,
}

/// The number of chunk shapes whose chains are cached.
const MAX_CACHED_CHAINS: usize = 256;

impl Array {
    /// The array of `model` at `path`, whose chunk keys lie below `hierarchy`: the node's own prefix, or in the draft
    /// that of the root. Fails if its codec chain is invalid.
    pub(crate) fn new(model: ArrayModel, path: NodePath, hierarchy: &Prefix, stamp: u128) -> Result<Self, ArrayError> {
        let prefix = format!("{}{}", hierarchy.as_str(), model.chunk_prefix);
        let grid = Arc::new(model.grid.clone());
        let (chains, largest_chain, is_undecoded) = (Mutex::default(), OnceLock::new(), OnceLock::new());
        let array = Self(Arc::new(Inner {
            model,
            grid,
            path,
            prefix,
            metadata_hash: stamp,
            chains,
            largest_chain,
            is_undecoded,
        }));
        array.largest_chain()?;
        Ok(array)
    }

    /// The same array with another shape.
    pub(crate) fn reshaped(&self, shape: Vec<u64>) -> Self {
        let inner = &*self.0;
        Self(Arc::new(Inner {
            model: ArrayModel { shape, ..inner.model.clone() },
            grid: inner.grid.clone(),
            path: inner.path.clone(),
            prefix: inner.prefix.clone(),
            metadata_hash: inner.metadata_hash,
            chains: Mutex::new(inner.chains.lock().clone()),
            largest_chain: inner.largest_chain.clone(),
            is_undecoded: inner.is_undecoded.clone(),
        }))
    }

    /// The array's path.
    pub(crate) fn path(&self) -> &NodePath {
        &self.0.path
    }

    /// The array's model.
    pub(crate) fn model(&self) -> &ArrayModel {
        &self.0.model
    }

    /// True if elements are packed or some mean missing, see [`zarrd_cf::is_undecoded`].
    pub(crate) fn is_undecoded(&self) -> bool {
        *self.0.is_undecoded.get_or_init(|| zarrd_cf::is_undecoded(&self.0.model))
    }

    pub(crate) fn grid(&self) -> &Arc<ChunkGrid> {
        &self.0.grid
    }

    pub(crate) fn metadata_hash(&self) -> u128 {
        self.0.metadata_hash
    }

    /// The prefix that all chunk keys share.
    pub(crate) fn key_prefix(&self) -> &str {
        &self.0.prefix
    }

    /// The keys under which a chunk may be stored, in order of preference: the first that exists counts. A key that
    /// would be too long is left out, since it cannot exist.
    pub(crate) fn chunk_keys(&self, position: &[u64]) -> impl Iterator<Item = Key> {
        let encoding = self.0.model.chunk_keys;
        let names = [Some(encoding.key(position)), encoding.fallback_key(position).map(str::to_owned)];
        let prefix = &self.0.prefix;
        names.into_iter().flatten().filter_map(move |name| Key::parse(&[prefix, &*name].concat()).ok())
    }

    /// Fails if the key of a chunk that a region touches would be too long.
    pub(crate) fn check_keys(&self, region: &Region) -> Result<(), ArrayError> {
        let axes = region.dimensions.iter().zip(self.grid().dimensions());
        let furthest = axes.map(|(dimension, grid)| grid.chunk_index(max_index(dimension)?));
        let Some(position) = furthest.collect::<Option<Vec<_>>>() else { return Ok(()) };
        match self.chunk_keys(&position).next() {
            Some(_) => Ok(()),
            None => Err(ArrayError::ChunkKey { path: self.0.path.clone() }),
        }
    }

    /// The codec chain of chunks with this shape.
    pub(crate) fn chain(&self, shape: &[u64]) -> Result<Arc<CodecChain>, ArrayError> {
        if let Some(Some(largest)) = self.0.largest_chain.get()
            && largest.representation().shape() == shape
        {
            return Ok(largest.clone());
        }
        let mut chains = self.0.chains.lock();
        if let Some(chain) = chains.get(shape) {
            return Ok(chain.clone());
        }
        let model = &self.0.model;
        let wrong = |source| ArrayError::Chain { path: self.0.path.clone(), source };
        let chunk = ChunkRepresentation::new(model.data_type.clone(), shape.to_vec(), model.fill_value.clone())
            .map_err(wrong)?;
        let chain = Arc::new(CodecChain::new(&model.codecs, chunk).map_err(wrong)?);
        if chains.len() >= MAX_CACHED_CHAINS {
            chains.clear();
        }
        chains.insert(shape.to_vec(), chain.clone());
        Ok(chain)
    }

    /// The codec chain of the largest chunk; `None` if the grid has no chunks.
    pub(crate) fn largest_chain(&self) -> Result<Option<Arc<CodecChain>>, ArrayError> {
        if let Some(chain) = self.0.largest_chain.get() {
            return Ok(chain.clone());
        }
        let shape: Option<Vec<u64>> = self.0.grid.dimensions().iter().map(DimensionGrid::longest_chunk).collect();
        let chain = shape.map(|shape| self.chain(&shape)).transpose()?;
        Ok(self.0.largest_chain.get_or_init(|| chain).clone())
    }
}

/// The largest index; `None` for an empty selection.
fn max_index(dimension: &DimensionSelection) -> Option<u64> {
    match dimension {
        DimensionSelection::Index(index) => Some(*index),
        DimensionSelection::Range { start, step, len } => {
            let last = len.checked_sub(1)?;
            if *step < 0 { Some(*start) } else { start.checked_add(step.unsigned_abs().checked_mul(last)?) }
        }
        DimensionSelection::List(indices) => indices.iter().max().copied(),
    }
}
