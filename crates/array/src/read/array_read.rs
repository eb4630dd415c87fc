//! A selection that is ready to be read.

use std::sync::Arc;

use codec::Elements;
use futures::Stream;
use meta::{
    ArrayModel,
    selection::{Resolved, Selection},
};

use super::{assemble, context::ReadContext, metrics::ReadMetrics, plan::ReadPlan};
use crate::{error::ArrayError, grid::slab::Slabs, memory::claim::Permit, work};

/// A selection that is ready to be read: one commit's metadata and chunk versions. Nothing is decoded.
#[derive(Debug)]
pub struct ArrayRead {
    pub(crate) source: Arc<ReadContext>,
    pub(crate) prepared: ReadPlan,
    pub(crate) shape: Vec<u64>,
    pub(crate) fingerprint: Option<u128>,
}

impl ArrayRead {
    /// The array that is read.
    pub fn model(&self) -> &ArrayModel {
        self.source.array.model()
    }

    /// The shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// What is read, by where it is stored: of a view, in the indices of the array that it begins within.
    pub fn resolved(&self) -> &Resolved {
        &self.prepared.resolved
    }

    /// The names of the result's dimensions. Those that the array does not have, of points and of a stack, have none.
    pub fn dimension_names(&self) -> Vec<Option<String>> {
        let names = &self.model().dimension_names;
        let kept = |region: &meta::selection::Region| {
            let kept = region.dimensions.iter().zip(names).filter(|(dimension, _)| dimension.extent().is_some());
            kept.map(|(_, name)| name.clone()).collect::<Vec<_>>()
        };
        match self.resolved() {
            Resolved::Region(region) => kept(region),
            Resolved::Points(_) => vec![None],
            Resolved::Stack(regions) => {
                [None].into_iter().chain(regions.first().map(kept).unwrap_or_default()).collect()
            }
        }
    }

    /// How many elements there are.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// How many bytes they have; `None` where each has its own length.
    pub fn byte_len(&self) -> Option<u64> {
        Some(self.elements().saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// A leading part of the selection whose result has a shape that fits; `None` where none is known that can be asked for.
    pub fn smaller(&self, fits: impl Fn(&[u64]) -> bool) -> Option<Selection> {
        let Resolved::Region(region) = self.resolved() else { return None };
        // Of a view, indices are counted from elsewhere.
        let seen = self.model().origin.iter().all(|&origin| origin == 0);
        seen.then(|| work::largest_fitting_part(region, |part| fits(&part.shape()))).flatten()
    }

    /// A number that is another one whenever the metadata, the selection or any chunk concerned is another. `None` where more than
    /// 100,000 chunks are concerned.
    pub fn fingerprint(&self) -> Option<u128> {
        self.fingerprint
    }

    /// Tells what was done so far, also while [`pieces`](Self::pieces) is being consumed.
    pub fn metrics(&self) -> ReadMetrics {
        self.source.metrics.clone()
    }

    /// Reserves the memory that reading takes at the least, and beside it `bytes` for what is made of the elements, all at once: so that whoever needs both
    /// waits for both.
    pub async fn reserve_with_extra(&mut self, bytes: u64) -> Result<Permit, ArrayError> {
        let options = &self.source.context.options;
        Ok(self.prepared.memory.reserve_with_extra(options, bytes).await?)
    }

    /// The elements in C order, in pieces of whole elements. After an error nothing follows.
    ///
    /// Nothing is read before it is polled. When it is dropped, what is being decoded is finished and no more is begun.
    pub fn into_stream(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        let options = &self.source.context.options;
        let most = options.slab_memory / 2 / self.source.element_size().max(1);
        let slabs = Slabs::new(self.prepared.resolved, self.source.array.grid().clone(), most);
        assemble::stream_slabs(self.source, slabs, self.prepared.memory)
    }
}
