//! The steps from selected elements to those of a response: decode, reduce, cast.

use zarrd_array::{ArrayError, ArrayResult, Decode, ReduceRequest, label_means};
use zarrd_compute::{ComputeError, Edge, Function, ReducedDimensions, ReductionRequest, find_dimension};
use zarrd_meta::{Dialect, NodePath, selection::ReadRequest};
use zarrd_wire::query::{self, ElementsQuery, Keepdims, QueryError, REDUCE};

use crate::{engine::Engine, error::ApiError};

/// The steps that a request asks for. They are applied in this order, whatever that of the parameters.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    decode: Option<Decode>,
    reduce: Option<ReduceRequest>,
    astype: Option<String>,
}

impl Steps {
    /// The steps in a query.
    pub(super) fn new(query: &ElementsQuery) -> Result<Self, ApiError> {
        let decode = decode_of(query);
        let astype = query.compute.astype.clone();
        let reduce = if query.compute.reduces() {
            Some(ReduceRequest { reduction: reduction(query)?, decode, astype: astype.clone() })
        } else {
            None
        };
        Ok(Self { decode, reduce, astype })
    }

    /// The number of functions; 0 without a reduction.
    pub(super) fn functions(&self) -> usize {
        self.reduce.as_ref().map_or(0, |reduce| reduce.reduction.functions.len())
    }

    /// True if elements are returned as they are stored because nothing else is specified. A reduction has its own
    /// rule.
    pub(super) fn leaves_decoding_open(&self) -> bool {
        self.decode.is_none() && self.reduce.is_none()
    }

    /// Plans the response's elements, of at most `limit` bytes.
    pub(super) async fn plan(
        &self,
        engine: &Engine,
        (path, dialect): (&NodePath, Option<Dialect>),
        request: &ReadRequest,
        limit: u64,
    ) -> Result<ArrayResult, ArrayError> {
        if let Some(reduce) = &self.reduce {
            return Box::pin(engine.arrays.reduce(path, dialect, (request, reduce), limit)).await;
        }
        let decode = self.decode.unwrap_or_default();
        let decoded = engine.arrays.read_decoded(path, dialect, (request, decode), limit).await?;
        let result = match &self.astype {
            Some(astype) => decoded.cast(astype)?,
            None => decoded,
        };
        result.checked(limit)
    }

    /// Plans the labels that results have along dimension `axis` of the array, in which it is called `names`: those
    /// that `request` selects from its coordinate, or the means of their windows.
    pub(super) async fn plan_labels(
        &self,
        engine: &Engine,
        (coordinate, dialect): (&NodePath, Dialect),
        (request, axis, names): (&ReadRequest, usize, &[Option<String>]),
        limit: u64,
    ) -> Result<ArrayResult, ArrayError> {
        let window = self.window(axis, names)?;
        let Some((window, edge)) = window else {
            let decoded = engine.arrays.read_decoded(coordinate, Some(dialect), (request, Decode::Cf), limit).await?;
            return Ok(decoded.as_labels());
        };
        let reduction = label_means(window, edge);
        let reduce = ReduceRequest { reduction, decode: Some(Decode::Cf), astype: None };
        engine.arrays.reduce(coordinate, Some(dialect), (request, &reduce), limit).await
    }

    /// The windows of a dimension of the array, if it has some. Fails if it is reduced as a whole.
    fn window(&self, axis: usize, names: &[Option<String>]) -> Result<Option<(u64, Edge)>, ArrayError> {
        let Some(ReduceRequest { reduction, .. }) = &self.reduce else { return Ok(None) };
        for (name, window) in &reduction.windows {
            if find_dimension(name, names)? == axis {
                // Windows of one element have its label.
                return Ok(Some((*window, reduction.edge)).filter(|(window, _)| *window > 1));
            }
        }
        let is_reduced = match &reduction.axes {
            None => reduction.windows.is_empty(),
            Some(axes) => {
                let mut found = false;
                for name in axes {
                    found |= find_dimension(name, names)? == axis;
                }
                found
            }
        };
        match is_reduced {
            true => {
                let name = names.get(axis).cloned().flatten().unwrap_or_else(|| axis.to_string());
                Err(ComputeError::DroppedDimension { name }.into())
            }
            false => Ok(None),
        }
    }
}

/// The decoding in a query, if it is specified.
pub(super) fn decode_of(query: &ElementsQuery) -> Option<Decode> {
    query.decode.map(|decode| match decode {
        query::Decode::None => Decode::Stored,
        query::Decode::Cf => Decode::Cf,
    })
}

fn reduction(query: &ElementsQuery) -> Result<ReductionRequest, QueryError> {
    let compute = &query.compute;
    let functions = compute.reduce.iter().map(|name| {
        let expected = "is a list of sum, mean, min, max, std, var, argmin, argmax, any, all, count, first, mode, and \
                        nansum, nanmean, nanmin, nanmax, nanstd, nanvar, nanargmin, nanargmax";
        name.parse::<Function>().map_err(|_| QueryError::Invalid { name: REDUCE, expected })
    });
    Ok(ReductionRequest {
        functions: functions.collect::<Result<_, _>>()?,
        axes: compute.axis.clone(),
        windows: compute.coarsen.clone(),
        edge: match compute.edge {
            query::Edge::Partial => Edge::Partial,
            query::Edge::Exact => Edge::Exact,
            query::Edge::Trim => Edge::Trim,
        },
        reduced_dimensions: match compute.keepdims {
            Keepdims::Drop => ReducedDimensions::Drop,
            Keepdims::Keep => ReducedDimensions::Keep,
        },
        ddof: compute.ddof,
    })
}
