//! Errors of computing with elements.

use zarrd_compute::ComputeError;
use zarrd_wire::{
    problem::{Members, Problem, ProblemType},
    query::ASTYPE,
};

use super::ApiError;

impl From<ComputeError> for ApiError {
    fn from(error: ComputeError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            ComputeError::Unsuitable { .. } | ComputeError::Inexact { .. } => {
                (ProblemType::UnsuitableReduction, Members::default())
            }
            ComputeError::UnknownDimension { name, .. } | ComputeError::DroppedDimension { name } => {
                (ProblemType::UnknownDimension, Members { name: Some(name), ..Members::default() })
            }
            ComputeError::RepeatedDimension { name } => {
                (ProblemType::DimensionRepeated, Members { name: Some(name), ..Members::default() })
            }
            ComputeError::UnevenWindow { dimension, extent, .. } => {
                let members = Members { name: Some(dimension), extent: Some(extent), ..Members::default() };
                (ProblemType::UnevenWindow, members)
            }
            ComputeError::Empty { .. } => (ProblemType::EmptyReduction, Members::default()),
            ComputeError::SumOverflow { .. } => (ProblemType::SumOverflow, Members::default()),
            ComputeError::Cast { .. } => {
                let members = Members { parameter: Some(ASTYPE.to_owned()), ..Members::default() };
                (ProblemType::InvalidParameter, members)
            }
            ComputeError::TooManyGroups { size, limit, .. } => {
                let members = Members { size: Some(size), limit: Some(limit), ..Members::default() };
                (ProblemType::TooMuchMemory, members)
            }
            ComputeError::SumsTooWide { limit, .. } => {
                (ProblemType::TooMuchMemory, Members { limit: Some(limit), ..Members::default() })
            }
            ComputeError::Internal => return Self::with_cause(ProblemType::Internal, error),
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}
