//! Requests for reductions, and their plans.

use zarrd_compute::{GroupGrid, Input, Reduction, ReductionRequest, SPILL_MEMORY, Windows};
use zarrd_meta::{
    ArrayModel,
    data_type::DataType,
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Region, ResolvedSelection},
};

use super::slabs::Slabs;
use crate::{
    convention::{Steps, steps_around},
    error::ArrayError,
    grid::slab::slice_dimension,
    map::{Decode, stable_hash},
    node::array::Array,
    options::Options,
    read::consumer::{Consumer, Consumption, ConsumptionCost, ResultCost},
};

/// The steps of adding an element to a group, for each function.
const STEPS_PER_ELEMENT: u64 = 2;

/// The steps of adding a number of fill values to a group, for each function.
const STEPS_PER_FILLED_GROUP: u64 = 32;

/// The memory of the state and results of a slab up to which it is not worth splitting, in bytes: what is updated at
/// the same time is near the processor's caches, and a request does not take more memory than it has to.
const SLAB_MEMORY: u64 = 8 << 20;

/// The number of such slabs, at most, so that planning them takes no long time.
const MAX_SMALL_SLABS: u64 = 256;

/// The memory of a time as text, in bytes.
const TEXT_SIZE: u64 = 64;

/// A reduction of selected elements: they are decoded, reduced, and the results are cast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceRequest {
    /// The reduction.
    pub reduction: ReductionRequest,
    /// The decoding; `None` if it was not specified, which is an error if it would change the results.
    pub decode: Option<Decode>,
    /// The number type of the results, by its name.
    pub astype: Option<String>,
}

/// The plan of a reduction.
#[derive(Clone, Debug)]
pub(crate) struct ReducePlan {
    pub(crate) reduction: Reduction,
    pub(crate) steps: Steps,
    /// The selected elements: those of windows that are left out are not.
    pub(crate) region: Region,
    /// The number of groups of a slab, at most.
    pub(crate) max_groups: u64,
}

/// A consumer that reduces.
pub(crate) struct ReduceConsumer<'a> {
    pub(crate) request: &'a ReduceRequest,
    pub(crate) options: &'a Options,
    /// The size of the result in bytes, at most.
    pub(crate) limit: u64,
    /// The maximum size of a cached result, in bytes.
    pub(crate) max_cached: u64,
}

impl ReduceRequest {
    /// A hash of the request that is the same in every process.
    pub(crate) fn fingerprint(&self) -> u128 {
        /// Changes whenever results do.
        const VERSION: u32 = 2;
        stable_hash(&(VERSION, self))
    }

    /// The plan of the reduction of a selection; `limit` is the size of its result in bytes.
    pub(crate) fn plan(
        &self,
        array: &Array,
        selection: &ResolvedSelection,
        (options, limit): (&Options, u64),
    ) -> Result<ReducePlan, ArrayError> {
        let ResolvedSelection::Region(region) = selection else { return Err(ArrayError::ReducesPoints) };
        let model = array.model();
        let depends = self.reduction.functions.iter().any(|function| function.depends_on_decoding());
        let steps = steps_around(array, self.decode, depends)?;
        let data_type = steps.decode.as_ref().map_or(&model.data_type, |map| map.data_type());
        let astype = self.astype.as_deref().map(number_type).transpose()?;
        let input = input(model, data_type, region);
        let reduction = Reduction::new(&self.reduction, &input, astype.as_ref())?;
        // Counts and positions stay numbers.
        let texts = steps.texts.filter(|_| reduction.data_type() == data_type);
        let steps = Steps { decode: steps.decode.clone(), texts };
        let windows = reduction.windows();
        let region = trimmed(region, &windows);
        let size = reduction.shape().into_iter().map(u128::from).fold(1, u128::saturating_mul);
        let per_result = match steps.texts {
            Some(_) => TEXT_SIZE,
            None => reduction.data_type().fixed_size().unwrap_or(0) as u64,
        };
        let size = size.saturating_mul(per_result.into());
        if size > limit.into() {
            return Err(ArrayError::SelectionTooLarge { size, limit, smaller: None });
        }
        let plan = ReducePlan { reduction, steps, region, max_groups: u64::MAX };
        let per_group = plan.reduction.size_per_group().saturating_add(plan.result_size()).max(1);
        let max_groups = (max_state(options) / per_group).max(1);
        let groups = windows.iter().map(|windows| windows.count().max(1)).fold(1, u64::saturating_mul);
        if plan.reduction.functions().len() > 1 && groups > max_groups {
            let size = groups.saturating_mul(per_group);
            let limit = max_state(options);
            return Err(zarrd_compute::ComputeError::TooManyGroups { groups, size, limit }.into());
        }
        let largest = ReducePlan { max_groups, ..plan };
        let memory = groups.saturating_mul(per_group);
        // Each slab has lists of its own, and one pass is all that several functions have.
        let is_listed = largest.region.dimensions.iter().any(|one| matches!(one, DimensionSelection::List(_)));
        let is_split = memory > SLAB_MEMORY && memory / SLAB_MEMORY <= MAX_SMALL_SLABS;
        if !is_split || is_listed || largest.reduction.functions().len() > 1 {
            return Ok(largest);
        }
        let small = ReducePlan { max_groups: (SLAB_MEMORY / per_group).clamp(1, max_groups), ..largest.clone() };
        let is_as_fast = small.slabs(array).passes() <= largest.slabs(array).passes();
        Ok(if is_as_fast { small } else { largest })
    }
}

impl ReducePlan {
    /// The data type of the results.
    pub(crate) fn data_type(&self) -> &DataType {
        self.steps.texts.as_ref().map_or(self.reduction.data_type(), |texts| texts.data_type())
    }

    /// The size of all results in bytes; `None` for texts.
    pub(crate) fn len(&self) -> Option<u64> {
        let size = self.data_type().fixed_size()? as u64;
        Some(self.reduction.shape().into_iter().fold(size, u64::saturating_mul))
    }

    /// The memory of the results of a group, in bytes.
    fn result_size(&self) -> u64 {
        let texts = self.steps.texts.as_ref().map_or(0, |_| TEXT_SIZE);
        self.reduction.result_size().saturating_add(texts.saturating_mul(self.reduction.functions().len() as u64))
    }

    /// The memory of the state for the groups of a slab, in bytes.
    pub(crate) fn state(&self) -> u64 {
        let windows = self.reduction.windows();
        let groups = GroupGrid::new(&windows).map_or(u64::MAX, |grid| grid.groups() as u64).min(self.max_groups);
        groups.saturating_mul(self.reduction.size_per_group())
    }

    /// The memory of a slab's state and results, in bytes.
    fn slab_memory(&self) -> u64 {
        let windows = self.reduction.windows();
        let groups = GroupGrid::new(&windows).map_or(u64::MAX, |grid| grid.groups() as u64).min(self.max_groups);
        self.state().saturating_add(groups.saturating_mul(self.result_size())).saturating_add(SPILL_MEMORY)
    }

    /// The number of groups that a chunk touches, at most.
    fn groups_per_chunk(&self, grid: &ChunkGrid) -> u64 {
        let windows = self.reduction.windows();
        let touched = windows.iter().zip(grid.dimensions()).map(|(windows, dimension)| match dimension {
            // Windows at both ends may be cut.
            DimensionGrid::Regular { length } => (length / windows.window.max(1)).saturating_add(2).min(*length),
            DimensionGrid::Rectilinear { .. } => u64::MAX,
        });
        let touched = touched.zip(&windows).map(|(touched, windows)| touched.min(windows.count()).max(1));
        touched.fold(1, u64::saturating_mul).min(self.max_groups)
    }

    /// The slabs, for an array with this grid.
    pub(crate) fn slabs(&self, array: &Array) -> Slabs {
        Slabs::new(self.region.clone(), self.reduction.windows(), array.grid().clone(), self.max_groups)
    }
}

impl Consumer for ReduceConsumer<'_> {
    fn plan(&self, array: &Array, selection: ResolvedSelection) -> Result<Consumption, ArrayError> {
        let plan = self.request.plan(array, &selection, (self.options, self.limit))?;
        let stored = array.model().data_type.fixed_size().unwrap_or(1).max(1) as u64;
        let decode = plan.steps.decode.as_ref();
        let decoded_size = decode.map_or(0, |map| map.data_type().fixed_size().unwrap_or(0) as u64);
        let cost = ResultCost {
            size: plan.reduction.shape().into_iter().fold(plan.result_size(), u64::saturating_mul),
            // The parts of a result that is to be cached are buffered until all are complete.
            state: plan.slab_memory().saturating_add(plan.len().filter(|&len| len <= self.max_cached).unwrap_or(0)),
            decoded_per_byte: decoded_size.div_ceil(stored),
            passes: plan.slabs(array).passes(),
            work_per_element: STEPS_PER_ELEMENT.saturating_mul(
                (self.request.reduction.functions.len() as u64).saturating_add(decode.map_or(0, |_| 1)),
            ),
            work_per_missing_chunk: STEPS_PER_FILLED_GROUP
                .saturating_mul(self.request.reduction.functions.len() as u64)
                .saturating_mul(plan.groups_per_chunk(array.grid())),
        };
        Ok(Consumption { selection: ResolvedSelection::Region(plan.region), cost: ConsumptionCost::Result(cost) })
    }
}

/// The memory of the state and results of a slab, in bytes, at most.
fn max_state(options: &Options) -> u64 {
    options.max_read_memory() / 4
}

/// The elements of a region as the input of a reduction.
pub(crate) fn input(model: &ArrayModel, data_type: &DataType, region: &Region) -> Input {
    let mut names = model.dimension_names.clone();
    names.resize(region.dimensions.len(), None);
    Input {
        data_type: data_type.clone(),
        extents: region.dimensions.iter().map(DimensionSelection::extent).collect(),
        names,
    }
}

/// The data type of numbers with a name.
pub(crate) fn number_type(name: &str) -> Result<DataType, ArrayError> {
    let data_type = zarrd_meta::data_type::parse_v3(&serde_json::Value::from(name)).ok();
    data_type
        .filter(|data_type| data_type.number().is_some())
        .ok_or_else(|| ArrayError::UnknownNumberType { name: name.chars().take(100).collect() })
}

/// The leading part of a region that has these windows.
fn trimmed(region: &Region, windows: &[Windows]) -> Region {
    let dimensions =
        region.dimensions.iter().zip(windows).map(|(dimension, windows)| match windows.extent < dimension.len() {
            true => slice_dimension(dimension, 0..windows.extent).unwrap_or_else(|| dimension.clone()),
            false => dimension.clone(),
        });
    Region { dimensions: dimensions.collect() }
}
