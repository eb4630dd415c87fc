//! Errors of writing elements.

use zarrd_array::WriteError;
use zarrd_meta::NodePath;
use zarrd_store::{StoreError, UploadError};
use zarrd_wire::{
    etag,
    problem::{Members, Problem, ProblemType},
    query::APPEND,
};

use super::{ApiError, path_members, unencodable_chunk};
use crate::array_api::DecodeError;

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            WriteError::Array(error) => return error.into(),
            WriteError::Node(error) => return error.into(),
            WriteError::Store(StoreError::Upload(UploadError::TooLarge { limit })) => {
                return Self::body_too_large(limit);
            }
            WriteError::Store(error) => {
                return DecodeError::from_stream_error(error).map_or_else(Self::from, Self::from);
            }
            WriteError::Length { expected, found } | WriteError::Count { expected, found } => {
                (ProblemType::BodyShapeMismatch, length_mismatch(expected, found))
            }
            WriteError::AppendLength { dimension, step, found } => (
                ProblemType::BodyShapeMismatch,
                Members { dimension: Some(dimension as u64), ..length_mismatch(step, found) },
            ),
            WriteError::Dimension { .. } => {
                (ProblemType::InvalidParameter, Members { parameter: Some(APPEND.to_owned()), ..Members::default() })
            }
            WriteError::UnknownDimension { name, known } => {
                (ProblemType::UnknownDimension, Members { name: Some(name), known: Some(known), ..Members::default() })
            }
            WriteError::RepeatedIndex { dimension, index } => {
                let (dimension, index) = (Some(dimension as u64), i64::try_from(index).ok());
                (ProblemType::InvalidSelection, Members { dimension, index, ..Members::default() })
            }
            WriteError::ShapeChanged { path } => (ProblemType::ShapeChanged, path_members(&path)),
            WriteError::PreconditionFailed { path, current } => {
                (ProblemType::PreconditionFailed, Members { current: current.map(etag::text), ..path_members(&path) })
            }
            WriteError::PartlyWritten { path, source, .. } => {
                return Self::partly_written(&path, detail, source);
            }
            WriteError::Encode { key, source } => return unencodable_chunk(&key, &source),
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl ApiError {
    /// Some elements were written, and others not.
    fn partly_written(path: &NodePath, detail: String, source: Box<WriteError>) -> Self {
        let kind = match source.is_conflict() {
            true => ProblemType::ChangedWhileWritten,
            false => ProblemType::PartlyWritten,
        };
        let key = match &*source {
            WriteError::Store(StoreError::PreconditionFailed { key, .. }) => Some(key.to_string()),
            _ => None,
        };
        Self::partly(kind, Members { key, ..path_members(path) }, detail, source)
    }
}

fn length_mismatch(expected: u64, found: u64) -> Members {
    Members { expected: Some(expected), actual: Some(found), ..Members::default() }
}
