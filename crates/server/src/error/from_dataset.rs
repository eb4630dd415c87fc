//! Errors of appends to datasets.

use serde_json::Value;
use zarrd_array::{DatasetError, DiscontinuousLabel};
use zarrd_meta::NodePath;
use zarrd_wire::{
    near::suggestion,
    problem::{Members, Problem, ProblemType},
};

use super::{ApiError, path_members};

impl From<DatasetError> for ApiError {
    fn from(error: DatasetError) -> Self {
        let mut detail = error.to_string();
        if let DatasetError::UnknownDimension { name, known, .. } = &error {
            detail.push_str(&suggestion(name, known.iter().map(String::as_str)));
        }
        let of = |path: &NodePath, name: String| Members { name: Some(name), ..path_members(path) };
        let (kind, members) = match error {
            DatasetError::Node(error) => return error.into(),
            DatasetError::Array { array, source } => return Self::from(*source).in_array(&array),
            DatasetError::NotAGroup { path } => (ProblemType::NotAGroup, path_members(&path)),
            DatasetError::UnknownDimension { path, name, known } => {
                (ProblemType::UnknownDimension, Members { known: Some(known), ..of(&path, name) })
            }
            DatasetError::RepeatedDimension { path, name, .. }
            | DatasetError::UnequalExtents { path, name, .. }
            | DatasetError::UnequalCounts { path, name, .. } => (ProblemType::DatasetMismatch, of(&path, name)),
            DatasetError::Unexpected { path, name, array } => {
                (ProblemType::DatasetMismatch, Members { unexpected: vec![array], ..of(&path, name) })
            }
            DatasetError::Missing { path, name, arrays } => {
                (ProblemType::DatasetMismatch, Members { missing: arrays, ..of(&path, name) })
            }
            DatasetError::Discontinuous(found) => {
                let DiscontinuousLabel { path, name, index, label, last, .. } = *found;
                let (label, last) = (Some(label), last.map(Value::from));
                let members = Members { label, last, element: Some(vec![index]), ..of(&path, name) };
                (ProblemType::DiscontinuousCoordinate, members)
            }
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}
