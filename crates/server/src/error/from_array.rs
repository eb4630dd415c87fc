//! Errors of arrays and selections.

use zarrd_array::{ArrayError, Broken, DialectsDiffer, MemoryError};
use zarrd_codec::{ChainError, CodecError};
use zarrd_meta::{
    data_type::TypeError,
    documents::DocumentError,
    limits::MAX_CHUNK_SIZE,
    selection::{ParseError, RequestError, RequestErrorKind, Selection, SelectionError},
};
use zarrd_wire::{
    array::Format,
    problem::{Members, Problem, ProblemType},
    query::{ASTYPE, DECODE},
};

use super::{ApiError, from_coordinates::convention_problem, path_members};

impl ApiError {
    /// No supported format is acceptable to the client.
    pub(crate) fn not_acceptable() -> Self {
        let known = Format::ALL.iter().filter(|format| **format != Format::Xarray);
        let known = known.map(|format| format.media_type().to_owned()).collect();
        let members = Members { header: Some("Accept".to_owned()), known: Some(known), ..Members::default() };
        Self::new(Problem::new(ProblemType::NotAcceptable).with_members(members))
    }

    /// The format cannot represent the selection; `able` lists formats that can.
    pub(crate) fn format_not_supported(format: Format, reason: &str, supported: &[Format]) -> Self {
        let known = supported.iter().map(|format| format.name().to_owned()).collect();
        let members = Members { known: Some(known), ..Members::default() };
        let detail = format!("{format} {reason}");
        Self::new(Problem::new(ProblemType::UnsuitableFormat).with_detail(detail).with_members(members))
    }

    /// The response would exceed a limit; `size` is given if known, and `smaller` is a selection within the limit.
    pub(crate) fn selection_too_large(
        size: Option<u64>,
        limit: u64,
        smaller: Option<&Selection>,
        detail: String,
    ) -> Self {
        let smaller = smaller.map(Selection::to_string);
        let members = Members { size, limit: Some(limit), smaller, ..Members::default() };
        Self::new(Problem::new(ProblemType::SelectionTooLarge).with_detail(detail).with_members(members))
    }

    /// An error of a read whose size the limit of `flag` bounds; `smaller` is a selection within it.
    pub(crate) fn of_limited_read(error: ArrayError, flag: &str, smaller: Option<&Selection>) -> Self {
        match error {
            ArrayError::SelectionTooLarge { size, limit, .. } => {
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                Self::selection_too_large(Some(size), limit, smaller, format!("{error} (`{flag}`)"))
            }
            error => error.into(),
        }
    }
}

impl From<ArrayError> for ApiError {
    fn from(error: ArrayError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            ArrayError::Selection(error) => return error.into(),
            ArrayError::Document { key, source } => return document_error(key.to_string(), &source),
            ArrayError::Broken(Broken { key, .. }) => {
                (ProblemType::InvalidMetadata, Members { key: Some(key.to_string()), ..Members::default() })
            }
            ArrayError::DialectsDiffer(differ) => return dialects_differ(&differ),
            ArrayError::Chain { path, source } => return chain_error(path.to_string(), source),
            ArrayError::Chunk { key, source } => return chunk_error(key.to_string(), source),
            ArrayError::Store(error) => return error.into(),
            ArrayError::Memory(error) => return error.into(),
            ArrayError::Busy => return Self::retry_later(ProblemType::Busy, detail),
            ArrayError::TooManyRequests => return Self::retry_later(ProblemType::TooManyRequests, detail),
            ArrayError::TooManyConflicts { .. } | ArrayError::Unfinished { .. } | ArrayError::Claimed { .. } => {
                return Self::retry_later(ProblemType::TooManyConflicts, detail);
            }
            ArrayError::Compute(error) => return error.into(),
            ArrayError::ReducesPoints => (ProblemType::UnsuitableReduction, Members::default()),
            ArrayError::DecodeUnspecified => {
                let members = Members { parameter: Some(DECODE.to_owned()), ..Members::default() };
                (ProblemType::DecodeUnspecified, members)
            }
            ArrayError::UnknownNumberType { .. } => {
                let members = Members { parameter: Some(ASTYPE.to_owned()), ..Members::default() };
                (ProblemType::InvalidParameter, members)
            }
            ArrayError::Misplaced { .. } => return Self::with_cause(ProblemType::Internal, error),
            ArrayError::ShuttingDown => return Self::with_cause(ProblemType::ShuttingDown, error),
            ArrayError::NoSuchNode { path } => (ProblemType::NoSuchNode, path_members(&path)),
            ArrayError::NotAnArray { path } => (ProblemType::NotAnArray, path_members(&path)),
            ArrayError::SelectionTooLarge { size, limit, smaller } => {
                let members = Members {
                    size: Some(u64::try_from(size).unwrap_or(u64::MAX)),
                    limit: Some(limit),
                    smaller: smaller.map(|selection| selection.to_string()),
                    ..Members::default()
                };
                (ProblemType::SelectionTooLarge, members)
            }
            ArrayError::ChunkKey { path } => (ProblemType::InvalidPath, path_members(&path)),
            ArrayError::TooManyChunks { chunks, limit } => {
                let chunks = Some(u64::try_from(chunks).unwrap_or(u64::MAX));
                (ProblemType::TooManyChunks, Members { chunks, limit: Some(limit), ..Members::default() })
            }
            ArrayError::ChunkTooLarge { path, size, limit } => {
                (ProblemType::ChunkTooLarge, Members { size: Some(size), limit: Some(limit), ..path_members(&path) })
            }
            ArrayError::WorkTooLarge { work, limit, smaller } => {
                let smaller = smaller.map(|selection| selection.to_string());
                (
                    ProblemType::WorkTooLarge,
                    Members { size: Some(work), limit: Some(limit), smaller, ..Members::default() },
                )
            }
            ArrayError::Convention { path, source } => convention_problem(&path, &source),
            ArrayError::OverBudget { budget } => {
                (ProblemType::SelectionTooLarge, Members { limit: Some(budget), ..Members::default() })
            }
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        let detail = error.to_string();
        match error {
            MemoryError::TooMuch { needed, limit } => {
                let members = Members { size: Some(needed), limit: Some(limit), ..Members::default() };
                Self::new(Problem::new(ProblemType::TooMuchMemory).with_detail(detail).with_members(members))
            }
            MemoryError::Busy { .. } => Self::retry_later(ProblemType::Busy, detail),
            MemoryError::TooManyRequests { .. } => Self::retry_later(ProblemType::TooManyRequests, detail),
        }
    }
}

impl From<SelectionError> for ApiError {
    fn from(error: SelectionError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match innermost(error) {
            SelectionError::OutOfBounds { dimension, index, extent } => {
                let dimension = Some(dimension as u64);
                let members = Members { dimension, index: Some(index), extent: Some(extent), ..Members::default() };
                (ProblemType::IndexOutOfBounds, members)
            }
            SelectionError::ZeroStep { dimension } => {
                (ProblemType::InvalidSelection, Members { dimension: Some(dimension as u64), ..Members::default() })
            }
            SelectionError::TooManyItems { .. } | SelectionError::PointRank { .. } => {
                (ProblemType::SelectionRankMismatch, Members::default())
            }
            SelectionError::SecondEllipsis
            | SelectionError::Point { .. }
            | SelectionError::EmptyStack
            | SelectionError::StackTooLarge { .. }
            | SelectionError::TooManyIndices { .. }
            | SelectionError::Stacked { .. }
            | SelectionError::ShapesDiffer { .. } => (ProblemType::InvalidSelection, Members::default()),
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl From<ParseError> for ApiError {
    fn from(error: ParseError) -> Self {
        let members = Members {
            parameter: Some(zarrd_wire::query::SELECT.to_owned()),
            position: Some(error.offset as u64),
            ..Members::default()
        };
        Self::new(Problem::new(ProblemType::InvalidSelection).with_detail(error.to_string()).with_members(members))
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        let position = match &error.kind {
            RequestErrorKind::Text(error) => Some(error.offset as u64),
            _ => None,
        };
        let members = Members { pointer: Some(error.pointer), position, ..Members::default() };
        Self::new(Problem::new(ProblemType::InvalidSelection).with_detail(detail).with_members(members))
    }
}

/// The error of the innermost point or stacked selection.
fn innermost(mut error: SelectionError) -> SelectionError {
    while let SelectionError::Point { source, .. } | SelectionError::Stacked { source, .. } = error {
        error = *source;
    }
    error
}

/// An unsupported or invalid metadata document.
///
/// Clients set its bytes, so neither is a failure of the server.
fn document_error(key: String, error: &DocumentError) -> ApiError {
    let unsupported = match error {
        DocumentError::Extension { name, .. } => Some(format!("the extension {name}")),
        DocumentError::Unsupported { feature, name, .. } => Some(format!("the {feature} {name}")),
        DocumentError::DataType { source: TypeError::Unknown { name }, .. } => Some(format!("the data type {name}")),
        _ => None,
    };
    let kind = if unsupported.is_some() { ProblemType::UnsupportedNode } else { ProblemType::InvalidMetadata };
    let members = Members { key: Some(key), unsupported, ..Members::default() };
    ApiError::new(Problem::new(kind).with_detail(error.to_string()).with_members(members))
}

/// The problem of documents of v2 and v3 that differ, with the ways out.
fn dialects_differ(differ: &DialectsDiffer) -> ApiError {
    let DialectsDiffer { path, relation, keys: (own, other) } = differ;
    let [kept, written] = if own.name() == "zarr.json" { ["v3", "v2"] } else { ["v2", "v3"] };
    let detail = format!(
        "{differ}. Name the `dialect` to read, or make them agree: write {other} anew from {own} with \
         `POST /node{path}?dialect={kept}&convert={written}&overwrite`, or the other way round; erase one of them with \
         `DELETE /store/{own}` or `DELETE /store/{other}`; or replace the node with `PUT /node{path}?overwrite`"
    );
    let keys = vec![own.to_string(), other.to_string()];
    let members = Members { keys, relation: Some(relation.to_string()), ..path_members(path) };
    ApiError::new(Problem::new(ProblemType::DialectsDiffer).with_detail(detail).with_members(members))
}

fn chain_error(path: String, error: ChainError) -> ApiError {
    let detail = error.to_string();
    let members = Members { path: Some(path), ..Members::default() };
    let (kind, members) = match error {
        ChainError::UnknownCodec { codec } | ChainError::UnsupportedCodec { codec, .. } => {
            let unsupported = Some(format!("the codec {codec}"));
            (ProblemType::UnsupportedNode, Members { unsupported, codec: Some(codec), ..members })
        }
        ChainError::TooManyCodecs { .. } | ChainError::ShardsTooDeep => {
            (ProblemType::UnsupportedNode, Members { unsupported: Some(detail.clone()), ..members })
        }
        ChainError::InvalidConfiguration { codec, .. }
        | ChainError::MalformedConfiguration { codec, .. }
        | ChainError::MalformedInnerCodec { codec, .. }
        | ChainError::InvalidPosition { codec, .. } => {
            (ProblemType::InvalidMetadata, Members { codec: Some(codec), ..members })
        }
        ChainError::NoArrayToBytes => (ProblemType::InvalidMetadata, members),
        ChainError::ChunkTooLarge => (ProblemType::ChunkTooLarge, Members { limit: Some(MAX_CHUNK_SIZE), ..members }),
    };
    ApiError::new(Problem::new(kind).with_detail(detail).with_members(members))
}

fn chunk_error(key: String, error: CodecError) -> ApiError {
    let members = Members { key: Some(key), codec: Some(error.codec().to_owned()), ..Members::default() };
    if let CodecError::BudgetExceeded { budget, .. } = error {
        let problem = Problem::new(ProblemType::ChunkTooLarge).with_detail(error.to_string());
        return ApiError::new(problem.with_members(Members { limit: Some(budget), ..members }));
    }
    let problem = Problem::new(ProblemType::UndecodableChunk).with_detail(error.to_string()).with_members(members);
    ApiError::build(problem, Vec::new(), Some(error.into()))
}
