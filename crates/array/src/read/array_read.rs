//! A planned read.

use std::{ops::Range, sync::Arc};

use futures::Stream;
use zarrd_codec::Elements;
use zarrd_meta::{
    ArrayModel, NodePath,
    relation::DialectRelation,
    selection::{Region, ResolvedSelection, Selection},
};

use super::{assemble, context::ReadContext, cost::ReadCost, metrics::ReadMetrics, plan::ReadPlan};
use crate::{
    error::ArrayError,
    grid::{
        range::{Cover, cover},
        slab::Slabs,
    },
    memory::claim::Permit,
    work,
};

/// A planned read of a selection: metadata and chunk versions of one commit. Nothing is decoded yet.
#[derive(Debug)]
pub struct ArrayRead {
    pub(crate) source: Arc<ReadContext>,
    pub(crate) prepared: ReadPlan,
    pub(crate) shape: Vec<u64>,
    pub(crate) fingerprint: Option<u128>,
    pub(crate) cost: ReadCost,
    /// The relation of the documents of v2 and v3.
    pub(crate) relation: Option<DialectRelation>,
    /// The only parts to read, one after the other; `None` for everything.
    pub(crate) parts: Option<Vec<Region>>,
}

impl ArrayRead {
    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.source.array.model()
    }

    /// True if the array's elements are packed or some mean missing, see [`zarrd_cf::is_undecoded`].
    pub fn is_undecoded(&self) -> bool {
        self.source.array.is_undecoded()
    }

    /// The path of the array.
    pub fn path(&self) -> &NodePath {
        self.source.array.path()
    }

    /// The relation of the documents that v2 and v3 have at the path; `None` if one of them has none, or if reading them would
    /// take a request.
    pub fn relation(&self) -> Option<DialectRelation> {
        self.relation
    }

    /// The shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The selection in the array's stored coordinates: those of a view are shifted by its offset.
    pub fn resolved(&self) -> &ResolvedSelection {
        &self.prepared.resolved
    }

    /// The dimension names of the result. Dimensions that the array does not have, those of points and of a stack, have
    /// none.
    pub fn dimension_names(&self) -> Vec<Option<String>> {
        let names = &self.model().dimension_names;
        let names_of = |region: &zarrd_meta::selection::Region| {
            let dimensions = region.dimensions.iter().zip(names).filter(|(dimension, _)| dimension.extent().is_some());
            dimensions.map(|(_, name)| name.clone()).collect::<Vec<_>>()
        };
        match self.resolved() {
            ResolvedSelection::Region(region) => names_of(region),
            ResolvedSelection::Points(_) => vec![None],
            ResolvedSelection::Stack(regions) => {
                [None].into_iter().chain(regions.first().map(names_of).unwrap_or_default()).collect()
            }
        }
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// The size of all elements in bytes; `None` if they have variable length.
    pub fn byte_len(&self) -> Option<u64> {
        Some(self.elements().saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// A leading part of the selection whose result has a shape that fits; `None` if none is known that a client could
    /// select.
    pub fn smaller(&self, fits: impl Fn(&[u64]) -> bool) -> Option<Selection> {
        let ResolvedSelection::Region(region) = self.resolved() else { return None };
        // The indices of a view do not start where its shape does.
        let starts_at_origin = self.model().view_offset.iter().all(|&origin| origin == 0);
        starts_at_origin.then(|| work::largest_fitting_part(region, |part| fits(&part.shape()))).flatten()
    }

    /// A hash that differs whenever the metadata, the selection or any of the chunks does; `None` for more than 100,000
    /// chunks, or if the versions of some are not known: of up to 64 they are fetched, and of up to 10,000 for a request
    /// that [compares](crate::Purpose::Comparison) it.
    pub fn fingerprint(&self) -> Option<u128> {
        self.fingerprint
    }

    /// The stored values that the read needs.
    pub fn cost(&self) -> ReadCost {
        self.cost
    }

    /// The metrics of the read, which are updated while [`into_stream`](Self::into_stream) is consumed.
    pub fn metrics(&self) -> ReadMetrics {
        self.source.metrics.clone()
    }

    /// Reserves the minimum memory of the read, and `bytes` more for its caller, in one step, so that a request that
    /// needs both waits for both.
    pub async fn reserve_with_extra(&mut self, bytes: u64) -> Result<Permit, ArrayError> {
        let options = &self.source.context.options;
        Ok(self.prepared.memory.reserve_with_extra(options, bytes).await?)
    }

    /// Reserves the minimum memory of the read.
    pub(crate) async fn reserve(&mut self) -> Result<(), ArrayError> {
        let least = self.prepared.memory.min_bytes(&self.source.context.options);
        Ok(self.prepared.memory.account.reserve(least).await?)
    }

    /// Narrows the read to a range of its elements, counted in C order, and the few more that it takes to begin and end
    /// there. Returns the index of the first element of the [stream](Self::into_stream). All other properties stay
    /// those of the full selection.
    ///
    /// Points and stacks cannot be narrowed: they are read from their first element on.
    pub fn narrow(&mut self, elements: Range<u64>) -> u64 {
        let ResolvedSelection::Region(region) = self.resolved() else { return 0 };
        let Some(Cover { parts, first }) = cover(region, elements) else { return 0 };
        let count = parts.iter().filter_map(Region::elements).fold(0, u64::saturating_add);
        self.prepared.memory.needs.limit_to(count.saturating_mul(self.source.element_size()));
        self.parts = Some(parts);
        first
    }

    /// The elements in C order, in buffers of whole elements. An error ends the stream.
    ///
    /// Nothing is read before the stream is polled. If it is dropped, running jobs finish and no new ones start.
    pub fn into_stream(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        let options = &self.source.context.options;
        let most = options.slab_memory / 2 / self.source.element_size().max(1);
        let grid = self.source.array.grid().clone();
        let slabs = match self.parts {
            Some(parts) => Slabs::of_parts(parts, grid, most),
            None => Slabs::new(self.prepared.resolved, grid, most),
        };
        assemble::stream_slabs(self.source, slabs, self.prepared.memory)
    }
}
