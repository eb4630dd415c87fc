//! Statistics of all elements: moments, extremes, exact quantiles, and a histogram.
//!
//! They take several passes over the elements: the first one counts them, and fixes the range of the histogram; each
//! pass fixes up to 16 bits more of the elements at the ranks of the quantiles. Only counters are in memory. Integers of up
//! to 16 bits take one pass, which counts each of them: quantiles, range and histogram follow from that.

mod bins;
mod guess;
mod numbers;
mod quantiles;
mod ranks;

use std::sync::Arc;

#[cfg(test)]
use zarrd_codec::Elements;
use zarrd_meta::data_type::{DataType, Number};

use crate::{
    accumulate::{Accumulator, Computation, SPILL_MEMORY},
    error::ComputeError,
    function::{Function, Missing, Operation},
    grid::{GroupGrid, Windows},
    kind::Kind,
    partial::Partial,
};
use bins::{Bounds, Edges};
use numbers::{Counted, FiniteRange, counts_of, number_of_rank, of_numbers};
use quantiles::{interpolated, position, ranks};
use ranks::{RankPass, RankSearch};

/// Statistics as they are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsRequest {
    /// The quantiles, from 0 to 1.
    pub quantiles: Vec<f64>,
    /// The number of bins of the histogram; 0 for none.
    pub bins: u64,
    /// The range of the histogram; by default from the least to the greatest finite element.
    pub range: Option<(f64, f64)>,
}

/// Statistics of elements, of which those that are NaN are left out and counted as missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The number of elements that are not missing.
    pub count: u64,
    /// The number of elements that are missing.
    pub missing: u64,
    /// The least and the greatest element, in the data type of the elements; `None` without elements.
    pub extremes: Option<(Vec<u8>, Vec<u8>)>,
    /// The sum, in its data type; `None` if it exceeds that.
    pub sum: Option<(DataType, Vec<u8>)>,
    /// The mean and the standard deviation; NaN without elements.
    pub mean: f64,
    /// The standard deviation of all elements.
    pub std: f64,
    /// The quantiles with their values, interpolated linearly; NaN without elements.
    pub quantiles: Vec<(f64, f64)>,
    /// The edges and counts of the histogram of finite elements, if one was asked for and there are any, or a range.
    pub histogram: Option<(Vec<f64>, Vec<u64>)>,
}

/// A computation of statistics, pass by pass.
#[derive(Debug)]
pub struct StatisticsPasses {
    request: StatisticsRequest,
    data_type: DataType,
    number: Number,
    search: RankSearch,
    /// The passes done.
    done: u32,
    moments: Option<Moments>,
    rank_pass: Option<Arc<RankPass>>,
    edges: Option<Arc<Edges>>,
    /// True if the last pass counts the bins.
    counts_bins: bool,
    bins: Option<Vec<u64>>,
    /// The ranks of the quantiles, increasing.
    ranks: Vec<u64>,
    elements: u64,
}

/// The results of the first pass.
#[derive(Debug)]
struct Moments {
    count: u64,
    extremes: Option<(Vec<u8>, Vec<u8>)>,
    sum: Option<(DataType, Vec<u8>)>,
    mean: f64,
    std: f64,
    /// The least and the greatest finite element.
    finite: Option<(f64, f64)>,
}

/// One pass: the maker of its partial results.
#[derive(Clone, Debug)]
pub struct StatisticsPass {
    computations: Vec<Computation>,
    /// True if the pass finds the range of the histogram.
    needs_finite_range: bool,
    number: Number,
    rank_pass: Option<Arc<RankPass>>,
    edges: Option<Arc<Edges>>,
    grid: Arc<GroupGrid>,
    size: Option<usize>,
}

/// The functions of the first pass.
const FUNCTIONS: [Operation; 4] = [Operation::Count, Operation::Min, Operation::Max, Operation::Std];
/// The functions whose state is a part of that of the last one.
const PARTS: [Operation; 2] = [Operation::Sum, Operation::Mean];

impl StatisticsRequest {
    /// The number of passes over elements of a type, at most.
    pub fn passes(&self, data_type: &DataType) -> u64 {
        let width = data_type.fixed_size().unwrap_or(8) as u64 * 8;
        if let Kind::Number(number) = Kind::of(data_type)
            && is_counted_whole(number)
        {
            return 1;
        }
        let of_quantiles = if self.quantiles.is_empty() { 1 } else { width.div_ceil(12) };
        of_quantiles.max(if self.bins > 0 && self.range.is_none() { 2 } else { 1 })
    }

    /// True if the range of the histogram is that of the finite elements.
    fn needs_finite_range(&self) -> bool {
        self.bins > 0 && self.range.is_none()
    }

    /// The memory of a partial result, in bytes, at most.
    pub fn state_size(&self) -> u64 {
        /// That of moments, extremes, and tables of few bins.
        const BASE: u64 = 128 << 10;
        /// That of the counters of a bin.
        const PER_BIN: u64 = 48;
        /// The memory of the counters of all numbers of 16 bits.
        const OF_NUMBERS: u64 = 8 << ranks::FIRST_BITS;
        let of_numbers = if self.needs_finite_range() { OF_NUMBERS } else { 0 };
        BASE + ranks::counters_size(self.quantiles.len() as u64).max(of_numbers) + self.bins * PER_BIN
    }
}

impl StatisticsPasses {
    /// Statistics of a selection whose dimensions have these extents.
    pub fn new(request: StatisticsRequest, data_type: &DataType, extents: &[u64]) -> Result<Self, ComputeError> {
        let Kind::Number(number) = Kind::of(data_type) else {
            return Err(ComputeError::Unsuitable {
                function: "stats".to_owned(),
                data_type: data_type.name(),
                reason: "statistics are defined for real numbers and booleans".to_owned(),
            });
        };
        let width = u32::try_from(number.size() * 8).unwrap_or(64);
        Ok(Self {
            request,
            data_type: data_type.clone(),
            number,
            search: RankSearch::new(width),
            done: 0,
            moments: None,
            rank_pass: None,
            edges: None,
            counts_bins: false,
            bins: None,
            ranks: Vec::new(),
            elements: extents.iter().fold(1, |all, &extent| all.saturating_mul(extent)),
        })
    }

    /// The next pass; `None` when there is none left. Its result is passed to [`add`](Self::add).
    pub fn next(&mut self, windows: &[Windows]) -> Result<Option<StatisticsPass>, ComputeError> {
        let is_first = self.done == 0;
        let has_ranks = match is_first {
            true => !self.request.quantiles.is_empty() || self.bins_follow(),
            false => !self.ranks.is_empty(),
        };
        self.rank_pass = if has_ranks { self.search.pass().map(Arc::new) } else { None };
        let edges = self.next_edges().map(Arc::new);
        self.counts_bins = edges.is_some();
        if !is_first && self.rank_pass.is_none() && edges.is_none() {
            return Ok(None);
        }
        self.done += 1;
        self.edges = edges.clone().or(self.edges.take());
        let computations = if is_first { self.computations(&FUNCTIONS)? } else { Vec::new() };
        Ok(Some(StatisticsPass {
            computations,
            needs_finite_range: is_first && self.needs_finite_range(),
            number: self.number,
            rank_pass: self.rank_pass.clone(),
            edges,
            grid: Arc::new(GroupGrid::new(windows).ok_or(ComputeError::Internal)?),
            size: self.data_type.fixed_size(),
        }))
    }

    /// True if no pass follows the one that [`next`](Self::next) has returned.
    pub fn is_last(&self) -> bool {
        let has_bins =
            !self.request.needs_finite_range() || self.counts_bins || self.bins_follow() || self.bins.is_some();
        has_bins && self.rank_pass.as_ref().is_none_or(|pass| self.search.is_last(pass))
    }

    /// Adds the merged result of the last pass.
    pub fn add(&mut self, partial: Partial) -> Result<(), ComputeError> {
        let mut accumulators = partial.accumulators.into_iter();
        if self.moments.is_none() {
            let moments = self.first_results(&mut accumulators)?;
            self.ranks = ranks(&self.request.quantiles, moments.count);
            self.search.set_ranks(&self.ranks);
            self.moments = Some(moments);
        }
        if let Some(pass) = self.rank_pass.take() {
            let counts = counts_of(accumulators.next())?;
            if !self.ranks.is_empty() {
                self.search.narrow(&pass, &counts)?;
            }
            if self.bins_follow() {
                self.count_bins(&counts);
            }
        }
        if self.counts_bins {
            self.bins = Some(counts_of(accumulators.next())?);
        }
        Ok(())
    }

    /// The statistics, after all passes.
    pub fn finish(self) -> Result<Statistics, ComputeError> {
        let moments = self.moments.ok_or(ComputeError::Internal)?;
        let values: Vec<f64> = self.search.keys().map(|key| number_of_rank(self.number, key)).collect();
        let value = |rank: u64| {
            let at = self.ranks.binary_search(&rank).ok()?;
            values.get(at).copied()
        };
        let quantile = |&quantile: &f64| {
            let (low, high, part) = position(quantile, moments.count);
            let value = value(low).zip(value(high)).map_or(f64::NAN, |(low, high)| interpolated(low, high, part));
            (quantile, value)
        };
        let edges = self.edges.map(|edges| edges.values().to_vec());
        Ok(Statistics {
            count: moments.count,
            missing: self.elements.saturating_sub(moments.count),
            extremes: moments.extremes,
            sum: moments.sum,
            mean: moments.mean,
            std: moments.std,
            quantiles: self.request.quantiles.iter().map(quantile).collect(),
            histogram: edges.zip(self.bins),
        })
    }

    /// The edges of the histogram, if it is counted next.
    fn next_edges(&self) -> Option<Edges> {
        if self.request.bins == 0 {
            return None;
        }
        if self.bins.is_some() {
            return None;
        }
        let (range, bounds) = match self.request.range {
            Some(range) => (range, Bounds::Given),
            None => (self.moments.as_ref()?.finite?, Bounds::Elements),
        };
        Some(Edges::new(self.request.bins, range, self.number, bounds))
    }

    /// True if the first pass counts each number, and the histogram between elements follows from that.
    fn bins_follow(&self) -> bool {
        self.request.needs_finite_range() && is_counted_whole(self.number)
    }

    /// True if the first pass has to find the range of the histogram by itself.
    fn needs_finite_range(&self) -> bool {
        self.request.needs_finite_range() && !self.bins_follow()
    }

    /// Counts the bins of the histogram, given the count of each number, in increasing order.
    fn count_bins(&mut self, counts: &[u64]) {
        let found = (0..).zip(counts).filter(|(_, count)| **count > 0);
        let mut numbers = found.map(|(rank, &count)| (number_of_rank(self.number, rank), count));
        let Some(least) = numbers.next() else { return };
        let numbers: Vec<(f64, u64)> = std::iter::once(least).chain(numbers).collect();
        let greatest = numbers.last().map_or(least.0, |last| last.0);
        let edges = Edges::new(self.request.bins, (least.0, greatest), self.number, Bounds::Elements);
        self.bins = Some(edges.count(&numbers));
        self.edges = Some(Arc::new(edges));
    }

    fn computations(&self, operations: &[Operation]) -> Result<Vec<Computation>, ComputeError> {
        let mut computations = Vec::with_capacity(operations.len());
        for &operation in operations {
            let function = Function { operation, missing: Missing::Skip };
            computations.push(Computation {
                function,
                data_type: self.data_type.clone(),
                result: function.result_type(&self.data_type)?,
                ddof: 0,
                group_size: self.elements,
                spill: SPILL_MEMORY,
            });
        }
        Ok(computations)
    }

    fn first_results(
        &self,
        accumulators: &mut impl Iterator<Item = Box<dyn Accumulator>>,
    ) -> Result<Moments, ComputeError> {
        let result = |accumulator: &dyn Accumulator, computation: &Computation| {
            let mut out = Vec::new();
            match accumulator.finish_as(computation, 0..1, &mut out) {
                Ok(()) => Ok(Some((computation.result.clone(), out))),
                Err(ComputeError::SumOverflow { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let mut results = Vec::with_capacity(FUNCTIONS.len() + PARTS.len());
        let mut last = None;
        for computation in &self.computations(&FUNCTIONS)? {
            let accumulator = accumulators.next().ok_or(ComputeError::Internal)?;
            results.push(result(&*accumulator, computation)?);
            last = Some(accumulator);
        }
        let last = last.ok_or(ComputeError::Internal)?;
        for computation in &self.computations(&PARTS)? {
            results.push(result(&*last, computation)?);
        }
        let mut finite = Vec::new();
        if self.needs_finite_range() {
            accumulators.next().ok_or(ComputeError::Internal)?.finish(0..1, &mut finite)?;
        }
        let number = |result: Option<&Option<(DataType, Vec<u8>)>>| {
            result.and_then(Option::as_ref).and_then(|(data_type, bytes)| data_type.to_f64(bytes)).unwrap_or(f64::NAN)
        };
        let count = number(results.first()) as u64;
        let bytes = |at: usize| results.get(at).and_then(Option::as_ref).map(|(_, bytes)| bytes.clone());
        Ok(Moments {
            count,
            extremes: bytes(1).zip(bytes(2)).filter(|_| count > 0),
            sum: results.get(4).cloned().flatten(),
            mean: number(results.get(5)),
            std: number(results.get(3)),
            finite: FiniteRange::read(&finite),
        })
    }
}

impl StatisticsPass {
    /// A partial result without elements.
    pub fn partial(&self) -> Result<Partial, ComputeError> {
        let mut accumulators = Vec::new();
        for computation in &self.computations {
            accumulators.push(computation.accumulator(1)?);
        }
        if self.needs_finite_range {
            accumulators.push(of_numbers(self.number, &Counted::Finite));
        }
        accumulators.extend(self.rank_pass.as_ref().map(|pass| of_numbers(self.number, &Counted::Ranks(pass.clone()))));
        accumulators.extend(self.edges.as_ref().map(|edges| of_numbers(self.number, &Counted::Bins(edges.clone()))));
        Ok(Partial::new(accumulators, self.grid.clone(), self.size, false))
    }

    /// The groups of the pass: one.
    pub fn grid(&self) -> Arc<GroupGrid> {
        self.grid.clone()
    }
}

/// True if one pass counts each number that elements of this type may be.
fn is_counted_whole(number: Number) -> bool {
    number != Number::Float16 && number.size() * 8 <= ranks::FIRST_BITS as usize
}

/// Statistics of all of some elements at once.
#[cfg(test)]
fn statistics(request: StatisticsRequest, data_type: &DataType, elements: &Elements) -> Statistics {
    let Elements::Fixed(bytes) = elements else { panic!("elements of a fixed size") };
    let count = bytes.len() as u64 / data_type.fixed_size().unwrap() as u64;
    let windows = [Windows::whole(count)];
    let mut passes = StatisticsPasses::new(request, data_type, &[count]).unwrap();
    while let Some(pass) = passes.next(&windows).unwrap() {
        let mut partial = pass.partial().unwrap();
        let axes = [crate::AxisPositions::Strided { first: 0, step: 1, len: count, out: 0 }];
        partial.add(&[count], &axes, elements).unwrap();
        passes.add(partial).unwrap();
    }
    passes.finish().unwrap()
}

#[cfg(test)]
mod tests;
