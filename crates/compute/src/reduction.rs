//! Reductions: what is asked for, and what follows for the result.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_codec::Elements;
use zarrd_meta::data_type::DataType;

use crate::{
    accumulate::{Computation, spill_of_each},
    cast::{self, Cast},
    error::{ComputeError, shown},
    function::{Function, Operation, is_float},
    grid::{GroupGrid, Windows},
    kind::Kind,
    partial::Partial,
};

/// The name of the first dimension of the results of several functions.
pub const FUNCTION_DIMENSION: &str = "function";

/// A reduction as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReductionRequest {
    /// The functions; the results of several are stacked along a new first dimension.
    pub functions: Vec<Function>,
    /// The dimensions that are reduced, by name or number; by default all, or none if there are windows.
    pub axes: Option<Vec<String>>,
    /// Windows: a dimension, by name or number, and the number of its elements in each.
    pub windows: Vec<(String, u64)>,
    /// The treatment of a last window that is not full.
    pub edge: Edge,
    /// The treatment of the dimensions in `axes`.
    pub reduced_dimensions: ReducedDimensions,
    /// The elements by which variances have fewer degrees of freedom.
    pub ddof: u64,
}

/// The treatment of a last window that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Edge {
    /// It is reduced as it is.
    #[default]
    Partial,
    /// It is an error.
    Exact,
    /// It is left out.
    Trim,
}

/// The treatment of dimensions that are reduced as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReducedDimensions {
    /// The result does not have them.
    #[default]
    Drop,
    /// They have an extent of 1.
    Keep,
}

/// What a result has of a dimension of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultDimension {
    /// A dimension of windows of this size, as it was asked for: it may exceed the extent, of which there is one window
    /// then.
    Windows(u64),
    /// A dimension of extent 1: it was reduced as a whole.
    Whole,
    /// Nothing: it was reduced as a whole, or dropped by the selection.
    Absent,
}

/// The elements that are reduced.
#[derive(Clone, Debug)]
pub struct Input {
    /// The data type.
    pub data_type: DataType,
    /// The selected extent of each dimension of the array; `None` if the selection drops it.
    pub extents: Vec<Option<u64>>,
    /// The names of the array's dimensions.
    pub names: Vec<Option<String>>,
}

/// A reduction of an input, with the properties of its result.
#[derive(Clone, Debug)]
pub struct Reduction {
    computations: Vec<Computation>,
    dimensions: Vec<Dimension>,
    /// The data type of the results: the one that they are cast to, or the one that the functions share.
    data_type: DataType,
    /// True if the results are cast, each function's on its own.
    is_cast: bool,
    size: Option<usize>,
}

/// One dimension of the input.
#[derive(Clone, Debug)]
struct Dimension {
    windows: Windows,
    /// The size of windows that was asked for, which may exceed the extent; otherwise 1.
    requested: u64,
    name: Option<String>,
    /// True if the result has it.
    is_shown: bool,
    /// True if it is reduced as a whole.
    is_whole: bool,
}

impl Reduction {
    /// The reduction of an input, and a cast of its results to `astype`.
    pub fn new(request: &ReductionRequest, input: &Input, astype: Option<&DataType>) -> Result<Self, ComputeError> {
        let mut dimensions: Vec<_> = input
            .extents
            .iter()
            .zip(&input.names)
            .map(|(extent, name)| Dimension {
                windows: Windows::kept(extent.unwrap_or(1)),
                requested: 1,
                name: name.clone(),
                is_shown: extent.is_some(),
                is_whole: false,
            })
            .collect();
        let mut used = vec![false; dimensions.len()];
        let mut find = |name: &str| {
            let axis = find_dimension(name, &input.names)?;
            if input.extents.get(axis).is_none_or(Option::is_none) {
                return Err(ComputeError::DroppedDimension { name: name.to_owned() });
            }
            match used.get_mut(axis).filter(|used| !**used) {
                Some(used) => *used = true,
                None => return Err(ComputeError::RepeatedDimension { name: name.to_owned() }),
            }
            Ok(axis)
        };
        for (name, window) in &request.windows {
            let axis = find(name)?;
            if let Some(dimension) = dimensions.get_mut(axis) {
                dimension.requested = (*window).max(1);
                dimension.windows = windowed(name, dimension.windows.extent, dimension.requested, request.edge)?;
            }
        }
        let all = || (0..dimensions.len()).filter(|&axis| input.extents.get(axis).is_some_and(Option::is_some));
        let axes: Vec<usize> = match &request.axes {
            Some(axes) => axes.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
            None if request.windows.is_empty() => all().collect(),
            None => Vec::new(),
        };
        for axis in axes {
            if let Some(dimension) = dimensions.get_mut(axis) {
                dimension.windows = Windows::whole(dimension.windows.extent);
                dimension.is_whole = true;
                dimension.is_shown = request.reduced_dimensions == ReducedDimensions::Keep;
            }
        }
        Self::of_dimensions(request, input, dimensions, astype)
    }

    fn of_dimensions(
        request: &ReductionRequest,
        input: &Input,
        dimensions: Vec<Dimension>,
        astype: Option<&DataType>,
    ) -> Result<Self, ComputeError> {
        let reduced = dimensions.iter().filter(|dimension| dimension.windows.window > 1).count();
        let group_size = dimensions.iter().fold(1_u64, |size, dimension| {
            size.saturating_mul(dimension.windows.window.min(dimension.windows.extent.max(1)))
        });
        let is_empty = dimensions.iter().any(|dimension| dimension.windows.extent == 0);
        let has_groups = dimensions.iter().all(|dimension| dimension.windows.extent > 0 || !dimension.is_kept());
        let spill = spill_of_each(request.functions.iter().copied(), &input.data_type);
        let mut computations = Vec::with_capacity(request.functions.len());
        for &function in &request.functions {
            let result = function.result_type(&input.data_type)?;
            check_dimensions(function, request, reduced, &dimensions, &input.data_type)?;
            if is_empty && has_groups && function.needs_elements() {
                return Err(ComputeError::Empty {
                    function: function.name().to_owned(),
                    reason: "the selection is empty",
                });
            }
            computations.push(Computation {
                function,
                data_type: input.data_type.clone(),
                result,
                ddof: request.ddof,
                group_size,
                spill,
            });
        }
        let data_type = match astype {
            Some(astype) => {
                computations.iter_mut().try_for_each(|computation| cast_to(computation, astype))?;
                astype.clone()
            }
            None => common_type(&computations)?,
        };
        let is_cast = astype.is_some();
        Ok(Self { computations, dimensions, data_type, is_cast, size: input.data_type.fixed_size() })
    }

    /// The data type of the result.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The shape of the result.
    pub fn shape(&self) -> Vec<u64> {
        let functions = (self.computations.len() > 1).then_some(self.computations.len() as u64);
        let shown = self.dimensions.iter().filter(|dimension| dimension.is_shown);
        let count = |dimension: &Dimension| match dimension.is_kept() {
            true => dimension.windows.count(),
            false => dimension.windows.count().max(u64::from(dimension.windows.is_single())),
        };
        functions.into_iter().chain(shown.map(count)).collect()
    }

    /// The names of the result's dimensions.
    pub fn dimension_names(&self) -> Vec<Option<String>> {
        let shown = self.dimensions.iter().filter(|dimension| dimension.is_shown);
        self.function_dimension().map(Some).into_iter().chain(shown.map(|dimension| dimension.name.clone())).collect()
    }

    /// The name of the dimension of several functions: [`FUNCTION_DIMENSION`], after underscores if a dimension of the
    /// array is called so. `None` with one function.
    pub fn function_dimension(&self) -> Option<String> {
        let is_taken = |name: &str| self.dimensions.iter().any(|dimension| dimension.name.as_deref() == Some(name));
        let mut name = FUNCTION_DIMENSION.to_owned();
        while is_taken(&name) {
            name.insert(0, '_');
        }
        (self.computations.len() > 1).then_some(name)
    }

    /// The functions.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = Function> {
        self.computations.iter().map(|computation| computation.function)
    }

    /// The windows of each dimension of the array. The selection has to be cut to their extents, since windows that are
    /// not full may be left out.
    pub fn windows(&self) -> Vec<Windows> {
        self.dimensions.iter().map(|dimension| dimension.windows).collect()
    }

    /// What the result has of each dimension of the array.
    pub fn result_dimensions(&self) -> Vec<ResultDimension> {
        let of = |dimension: &Dimension| match (dimension.is_shown, dimension.is_whole) {
            (false, _) => ResultDimension::Absent,
            (true, true) => ResultDimension::Whole,
            (true, false) => ResultDimension::Windows(dimension.requested),
        };
        self.dimensions.iter().map(of).collect()
    }

    /// The memory of the state of a group, in bytes.
    pub fn size_per_group(&self) -> u64 {
        self.computations.iter().map(Computation::size_per_group).fold(0, u64::saturating_add)
    }

    /// The size of a group's results, in bytes.
    pub fn result_size(&self) -> u64 {
        let of = |data_type: &DataType| data_type.fixed_size().unwrap_or(0) as u64;
        let own: u64 = self.computations.iter().map(|one| of(&one.result)).sum();
        own.saturating_add(of(&self.data_type) * self.computations.len() as u64)
    }

    /// A partial result without elements, for groups that are some or all of those of the reduction.
    pub fn partial(&self, grid: Arc<GroupGrid>) -> Result<Partial, ComputeError> {
        let groups = grid.groups();
        let accumulators = self.computations.iter().map(|one| one.accumulator(groups)).collect::<Result<_, _>>()?;
        let needs_order = self
            .computations
            .iter()
            .any(|one| matches!(one.function.operation, Operation::ArgMin | Operation::ArgMax | Operation::First));
        Ok(Partial::new(accumulators, grid, self.size, needs_order))
    }

    /// The results of all groups of a partial result, in C order, those of the first function first.
    pub fn finish(&self, partial: &Partial, groups: usize) -> Result<Elements, ComputeError> {
        let mut all = Vec::new();
        for (computation, accumulator) in self.computations.iter().zip(&partial.accumulators) {
            let size = computation.result.fixed_size().unwrap_or(0);
            let mut results = Vec::with_capacity(groups.saturating_mul(size));
            accumulator.finish(0..groups, &mut results)?;
            let results = match self.is_cast {
                true => cast::cast_result(results, computation, &self.data_type)?,
                false => cast::promote(results, &computation.result, &self.data_type)?,
            };
            match self.computations.len() {
                1 => all = results,
                _ => all.extend_from_slice(&results),
            }
        }
        Ok(Elements::Fixed(Bytes::from(all)))
    }
}

impl Dimension {
    /// True if each of its elements has results of its own.
    fn is_kept(&self) -> bool {
        !self.is_whole && self.windows.window == 1 && self.is_shown
    }
}

/// Casts the results of a computation. The sum of integers has that type itself, since it may exceed 64 bits.
fn cast_to(computation: &mut Computation, astype: &DataType) -> Result<(), ComputeError> {
    Cast::new(&computation.result, astype)?;
    let is_integer_sum = computation.function.operation == Operation::Sum
        && matches!(Kind::of(&computation.data_type), Kind::Number(number) if !is_float(number));
    if is_integer_sum && matches!(Kind::of(astype), Kind::Number(_)) {
        computation.result = astype.clone();
    }
    Ok(())
}

/// The data type that the functions share.
fn common_type(computations: &[Computation]) -> Result<DataType, ComputeError> {
    let mut types = computations.iter().map(|one| one.result.clone());
    let first = types.next().ok_or(ComputeError::Internal)?;
    types.try_fold(first, |common, next| {
        cast::promoted(&common, &next).ok_or_else(|| ComputeError::Unsuitable {
            function: "reduce".to_owned(),
            data_type: shown(&common),
            reason: format!("the functions' results have no common data type with {}", shown(&next)),
        })
    })
}

/// The dimension with a name, or else a number.
pub fn find_dimension(name: &str, names: &[Option<String>]) -> Result<usize, ComputeError> {
    let named = names.iter().position(|one| one.as_deref() == Some(name));
    let numbered = || name.parse::<usize>().ok().filter(|axis| *axis < names.len() && axis.to_string() == name);
    named.or_else(numbered).ok_or_else(|| {
        let known = (0..).zip(names).map(|(axis, name)| match name {
            Some(name) => format!("{name:?} ({axis})"),
            None => i32::to_string(&axis),
        });
        let known: Vec<_> = known.collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ComputeError::UnknownDimension { name: name.chars().take(100).collect(), known }
    })
}

fn windowed(name: &str, extent: u64, window: u64, edge: Edge) -> Result<Windows, ComputeError> {
    let rest = extent % window;
    match edge {
        Edge::Exact if rest != 0 => Err(ComputeError::UnevenWindow { dimension: name.to_owned(), extent, window }),
        // Without a full window, there is none.
        Edge::Trim if extent < window => Ok(Windows::kept(0)),
        Edge::Trim => Ok(Windows { extent: extent - rest, window }),
        Edge::Exact | Edge::Partial => Ok(Windows { extent, window: window.min(extent.max(1)) }),
    }
}

fn check_dimensions(
    function: Function,
    request: &ReductionRequest,
    reduced: usize,
    dimensions: &[Dimension],
    data_type: &DataType,
) -> Result<(), ComputeError> {
    let is_position = matches!(function.operation, Operation::ArgMin | Operation::ArgMax);
    if is_position && !request.windows.is_empty() {
        return Err(ComputeError::unsuitable(function, data_type, "it is not defined for windows"));
    }
    let is_partial =
        reduced > 1 && dimensions.iter().any(|dimension| dimension.is_kept() && dimension.windows.extent > 1);
    if is_position && is_partial {
        let reason = "its result is an index along one dimension, or among all elements: reduce one dimension, or all";
        return Err(ComputeError::unsuitable(function, data_type, reason));
    }
    Ok(())
}
