//! An array as it was at one commit.

use std::{collections::HashMap, sync::Arc};

use codec::{Chain, Representation};
use meta::{
    ArrayModel, NodePath,
    grid::{ChunkGrid, DimensionGrid},
};
use parking_lot::Mutex;
use store::{Key, Prefix};

use crate::error::ArrayError;

/// An array as it was at one commit. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Array(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    model: ArrayModel,
    grid: Arc<ChunkGrid>,
    path: NodePath,
    /// What the keys of chunks begin with.
    prefix: String,
    /// Another number for other metadata.
    metadata_hash: u128,
    /// The chains of the shapes that chunks have; regular grids have one.
    chains: Mutex<HashMap<Vec<u64>, Arc<Chain>>>,
}

/// How many shapes of chunks have their chains kept.
const MAX_CACHED_CHAINS: usize = 256;

impl Array {
    /// The array of `model` at `path`, whose chunks' keys are below `hierarchy`: the node's own prefix, or in the draft that of the root.
    /// Fails where a chain of its codecs cannot be made.
    pub(crate) fn new(model: ArrayModel, path: NodePath, hierarchy: &Prefix, stamp: u128) -> Result<Self, ArrayError> {
        let prefix = format!("{}{}", hierarchy.as_str(), model.chunk_prefix);
        let grid = Arc::new(model.grid.clone());
        let array = Self(Arc::new(Inner { model, grid, path, prefix, metadata_hash: stamp, chains: Mutex::default() }));
        array.largest_chain()?;
        Ok(array)
    }

    /// The same array with another shape.
    pub(crate) fn reshaped(&self, shape: Vec<u64>) -> Self {
        let Inner { model, grid, path, prefix, metadata_hash: stamp, chains } = &*self.0;
        let model = ArrayModel { shape, ..model.clone() };
        let chains = Mutex::new(chains.lock().clone());
        let (grid, path, prefix) = (grid.clone(), path.clone(), prefix.clone());
        Self(Arc::new(Inner { model, grid, path, prefix, metadata_hash: *stamp, chains }))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &NodePath {
        &self.0.path
    }

    /// What it is.
    pub(crate) fn model(&self) -> &ArrayModel {
        &self.0.model
    }

    pub(crate) fn grid(&self) -> &Arc<ChunkGrid> {
        &self.0.grid
    }

    pub(crate) fn metadata_hash(&self) -> u128 {
        self.0.metadata_hash
    }

    /// How many bytes the keys of all chunks begin with.
    pub(crate) fn key_prefix_len(&self) -> u64 {
        self.0.prefix.len() as u64
    }

    /// The keys under which a chunk may be, the first that has a value counts. A key that is too long has none, ever.
    pub(crate) fn chunk_keys(&self, position: &[u64]) -> impl Iterator<Item = Key> {
        let encoding = self.0.model.chunk_keys;
        let names = [Some(encoding.key(position)), encoding.fallback_key(position).map(str::to_owned)];
        let prefix = &self.0.prefix;
        names.into_iter().flatten().filter_map(move |name| Key::parse(&format!("{prefix}{name}")).ok())
    }

    /// The chain for chunks of a shape.
    pub(crate) fn chain(&self, shape: &[u64]) -> Result<Arc<Chain>, ArrayError> {
        let mut chains = self.0.chains.lock();
        if let Some(chain) = chains.get(shape) {
            return Ok(chain.clone());
        }
        let model = &self.0.model;
        let wrong = |source| ArrayError::Chain { path: self.0.path.clone(), source };
        let chunk =
            Representation::new(model.data_type.clone(), shape.to_vec(), model.fill_value.clone()).map_err(wrong)?;
        let chain = Arc::new(Chain::resolve(&model.codecs, chunk).map_err(wrong)?);
        if chains.len() >= MAX_CACHED_CHAINS {
            chains.clear();
        }
        chains.insert(shape.to_vec(), chain.clone());
        Ok(chain)
    }

    /// The chain of its largest chunk; `None` for a grid without chunks.
    pub(crate) fn largest_chain(&self) -> Result<Option<Arc<Chain>>, ArrayError> {
        let longest = |grid: &DimensionGrid| match grid {
            DimensionGrid::Regular { length } => Some(*length),
            DimensionGrid::Rectilinear { ends } => {
                let starts = [0].into_iter().chain(ends.iter().copied());
                ends.iter().zip(starts).map(|(end, start)| end - start).max()
            }
        };
        let shape: Option<Vec<u64>> = self.0.grid.dimensions().iter().map(longest).collect();
        shape.map(|shape| self.chain(&shape)).transpose()
    }
}
