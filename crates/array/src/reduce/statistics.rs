//! Statistics of what a read selects.

use std::{hash::Hash, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use zarrd_compute::{ComputeError, SPILL_MEMORY, Statistics, StatisticsPasses, StatisticsRequest, Windows};
use zarrd_meta::{
    ArrayModel, NodePath,
    data_type::DataType,
    relation::DialectRelation,
    selection::{DimensionSelection, Region, ResolvedSelection},
};

use super::run::Reducer;
use crate::{
    convention::steps_around,
    coordinates::select::Selected,
    error::ArrayError,
    map::{Decode, ElementMap, stable_hash},
    node::array::Array,
    read::{
        array_read::ArrayRead,
        consumer::{Consumer, Consumption, ConsumptionCost, ResultCost},
        metrics::ReadMetrics,
    },
    result_cache::{Compute, ResultKey},
};

/// The steps of counting an element, for each pass.
const STEPS_PER_ELEMENT: u64 = 12;

/// The size of a response without its histogram, in bytes.
const RESPONSE_SIZE: u64 = 8 << 10;

/// Statistics of the elements that a request selects.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsOf {
    /// The statistics.
    pub statistics: StatisticsRequest,
    /// The decoding; `None` if it was not specified, which is an error if it would change the results.
    pub decode: Option<Decode>,
}

/// Planned statistics. Nothing is decoded yet.
#[derive(Debug)]
pub struct StatisticsRead {
    read: ArrayRead,
    request: StatisticsRequest,
    decode: Option<Arc<dyn ElementMap>>,
    key: Option<ResultKey>,
}

impl StatisticsOf {
    /// A hash that is the same in every process.
    fn fingerprint(&self) -> u128 {
        /// Changes whenever results do.
        const VERSION: u32 = 2;
        let StatisticsRequest { quantiles, bins, range } = &self.statistics;
        let quantiles: Vec<u64> = quantiles.iter().map(|quantile| quantile.to_bits()).collect();
        let range = range.map(|(low, high)| (low.to_bits(), high.to_bits()));
        stable_hash(&Identity { version: VERSION, quantiles, bins: *bins, range, decode: self.decode })
    }

    /// The step that decodes the elements. Times have no statistics, so texts of them are made of none.
    fn decode_step(&self, array: &Array) -> Result<Option<Arc<dyn ElementMap>>, ArrayError> {
        Ok(steps_around(array, self.decode, true)?.decode)
    }
}

#[derive(Hash)]
struct Identity {
    version: u32,
    quantiles: Vec<u64>,
    bins: u64,
    range: Option<(u64, u64)>,
    decode: Option<Decode>,
}

impl Consumer for StatisticsOf {
    fn plan(&self, array: &Array, selection: ResolvedSelection) -> Result<Consumption, ArrayError> {
        let ResolvedSelection::Region(region) = &selection else { return Err(ArrayError::ReducesPoints) };
        let decode = self.decode_step(array)?;
        let data_type = decoded_type(decode.as_deref(), array.model());
        StatisticsPasses::new(self.statistics.clone(), data_type, &extents(region))?;
        let stored = array.model().data_type.fixed_size().unwrap_or(1).max(1) as u64;
        let decoded = if decode.is_none() { 0 } else { data_type.fixed_size().unwrap_or(0) as u64 };
        let cost = ResultCost {
            size: RESPONSE_SIZE.saturating_add(self.statistics.bins.saturating_mul(40)),
            state: self.statistics.state_size().saturating_add(SPILL_MEMORY),
            decoded_per_byte: decoded.div_ceil(stored),
            passes: self.statistics.passes(data_type),
            work_per_element: STEPS_PER_ELEMENT,
            // There is one group.
            work_per_missing_chunk: 0,
        };
        Ok(Consumption { selection, cost: ConsumptionCost::Result(cost) })
    }
}

impl StatisticsRead {
    pub(crate) fn new(read: ArrayRead, request: &StatisticsOf) -> Result<Self, ArrayError> {
        let decode = request.decode_step(&read.source.array)?;
        let key = read.fingerprint().map(|input| ResultKey { input, computation: request.fingerprint() });
        Ok(Self { read, request: request.statistics.clone(), decode, key })
    }

    /// The statistics of a selection by names.
    #[must_use]
    pub fn with_selected(self, selected: &Selected) -> Self {
        let coordinates = selected.fingerprint();
        let key = self
            .key
            .zip(coordinates)
            .map(|(key, coordinates)| ResultKey { computation: stable_hash(&(key.computation, coordinates)), ..key });
        Self { key, ..self }
    }

    /// The relation of the documents of v2 and v3; see [`ArrayRead::relation`].
    pub fn relation(&self) -> Option<DialectRelation> {
        self.read.relation()
    }

    /// The shape of the selection.
    pub fn shape(&self) -> &[u64] {
        self.read.shape()
    }

    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.read.model()
    }

    /// The path of the array.
    pub fn path(&self) -> &NodePath {
        self.read.path()
    }

    /// The data type of the elements, decoded.
    pub fn data_type(&self) -> &DataType {
        decoded_type(self.decode.as_deref(), self.model())
    }

    /// The metrics of the read.
    pub fn metrics(&self) -> ReadMetrics {
        self.read.metrics()
    }

    /// A hash that differs whenever the statistics may; see [`ArrayRead::fingerprint`].
    pub fn fingerprint(&self) -> Option<u128> {
        self.key.as_ref().map(stable_hash)
    }

    /// Computes the statistics and renders them, or returns what is cached or rendered for another request.
    pub async fn run(self, render: impl FnOnce(Statistics) -> Vec<u8> + Send + 'static) -> Result<Bytes, ArrayError> {
        let (results, key) = (self.read.source.context.results.clone(), self.key);
        let mut compute = ComputeStatistics(Some((self, render)));
        match key {
            Some(key) => results.get_or_compute(key, &mut compute).await,
            None => compute.start().await,
        }
    }

    async fn compute(self) -> Result<Statistics, ArrayError> {
        let ResolvedSelection::Region(region) = self.read.resolved() else { return Err(ArrayError::ReducesPoints) };
        let region = region.clone();
        let extents = extents(&region);
        let windows: Vec<Windows> = extents.iter().map(|&extent| Windows::whole(extent)).collect();
        let mut passes = StatisticsPasses::new(self.request.clone(), self.data_type(), &extents)?;
        let reducer = Reducer::new(self.read, self.request.state_size()).await?;
        let mut order = reducer.first_order(true);
        while let Some(pass) = passes.next(&windows)? {
            order.is_repeated = !passes.is_last();
            let grid = pass.grid();
            let make = Box::new(move || pass.partial());
            let partial = reducer.pass((&region, &order), grid, self.decode.clone(), make).await?;
            passes.add(partial)?;
            // It begins with the chunks that were read last, of which many are still decoded.
            order.visits.reversed = !order.visits.reversed;
        }
        Ok(passes.finish()?)
    }
}

/// The computation of statistics, which are then rendered.
struct ComputeStatistics<R>(Option<(StatisticsRead, R)>);

#[async_trait]
impl<R: FnOnce(Statistics) -> Vec<u8> + Send + 'static> Compute for ComputeStatistics<R> {
    async fn prepare(&mut self) -> Result<(), ArrayError> {
        match &mut self.0 {
            Some((statistics, _)) => statistics.read.reserve().await,
            None => Ok(()),
        }
    }

    fn start(&mut self) -> BoxFuture<'static, Result<Bytes, ArrayError>> {
        let statistics = self.0.take();
        let compute = async move {
            let (statistics, render) = statistics.ok_or(ComputeError::Internal)?;
            Ok(Bytes::from(render(statistics.compute().await?)))
        };
        compute.boxed()
    }
}

fn decoded_type<'a>(decode: Option<&'a dyn ElementMap>, model: &'a ArrayModel) -> &'a DataType {
    decode.map_or(&model.data_type, |decode| decode.data_type())
}

fn extents(region: &Region) -> Vec<u64> {
    region.dimensions.iter().map(DimensionSelection::len).collect()
}
