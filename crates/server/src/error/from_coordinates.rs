//! Errors of names and labels.

use zarrd_array::CoordinateError;
use zarrd_cf::{CfError, LabelError};
use zarrd_meta::NodePath;
use zarrd_wire::{
    near::suggestion,
    problem::{Members, Problem, ProblemType},
};

use super::{ApiError, path_members};

impl From<CoordinateError> for ApiError {
    fn from(error: CoordinateError) -> Self {
        let mut detail = error.to_string();
        if let CoordinateError::UnknownDimension { name, known } = &error {
            detail.push_str(&suggestion(name, known.iter().map(String::as_str)));
        }
        let named = |name: String| Members { name: Some(name), ..Members::default() };
        let (kind, members) = match error {
            CoordinateError::Array(error) => return error.into(),
            CoordinateError::UnknownDimension { name, known } => {
                (ProblemType::UnknownDimension, Members { known: Some(known), ..named(name) })
            }
            CoordinateError::DimensionRepeated { dimension } => (ProblemType::DimensionRepeated, named(dimension)),
            CoordinateError::NoCoordinate { dimension } => (ProblemType::NoCoordinate, named(dimension)),
            CoordinateError::LabelsTooLarge { size, limit } => {
                let members = Members { size: Some(size), limit: Some(limit), ..Members::default() };
                (ProblemType::SelectionTooLarge, members)
            }
            CoordinateError::Label { dimension, source } => {
                let (kind, members) = label_problem(source);
                (kind, Members { name: Some(dimension), ..members })
            }
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl From<LabelError> for ApiError {
    fn from(error: LabelError) -> Self {
        let detail = error.to_string();
        let (kind, members) = label_problem(error);
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

/// The problem of elements that cannot be decoded by convention.
pub(super) fn convention_problem(path: &NodePath, source: &CfError) -> (ProblemType, Members) {
    let unsupported = match source {
        CfError::UnsupportedCalendar { calendar } => format!("calendar {calendar}"),
        CfError::OutOfRange { .. } => return (ProblemType::UnsuitableFormat, path_members(path)),
        CfError::InvalidAttribute { .. }
        | CfError::AttributeTooLarge { .. }
        | CfError::TooManyFillValues
        | CfError::PartialElements { .. } => return (ProblemType::InvalidMetadata, path_members(path)),
    };
    (ProblemType::UnsupportedCalendar, Members { unsupported: Some(unsupported), ..path_members(path) })
}

fn label_problem(error: LabelError) -> (ProblemType, Members) {
    let with = |label: Option<String>| Members { label, ..Members::default() };
    match error {
        LabelError::TooLong { .. } | LabelError::TooManyLabels | LabelError::TooManyIndices { .. } => {
            (ProblemType::InvalidLabel, with(None))
        }
        LabelError::LabelTooLong { label, .. } | LabelError::Invalid { label, .. } => {
            (ProblemType::InvalidLabel, with(Some(label)))
        }
        LabelError::NotFound { label, near } => {
            let members = Members { nearest: near.nearest, first: near.first, last: near.last, ..with(Some(label)) };
            (ProblemType::LabelNotFound, members)
        }
        LabelError::Ambiguous { label, .. } => (ProblemType::AmbiguousLabel, with(Some(label))),
    }
}
