//! Why a body is not the elements that are wanted.

use store::{StoreError, UploadError};
use wire::{
    elements::{
        Extents,
        json::{Full, JsonError},
        npy::HeadError,
    },
    problem::{Members, Problem, ProblemType},
};

use super::BODY_FORMATS;
use crate::error::ApiError;

/// Why a body is not the elements that are wanted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// It is in none of the forms that are taken.
    #[error("elements are not taken as {found}")]
    MediaType {
        /// What it is said to be.
        found: String,
    },
    /// It has another length than the elements of the selection.
    #[error("the selection has {expected} bytes, and {found} came")]
    Length {
        /// How many bytes these have.
        expected: u64,
        /// How many came, or were about to.
        found: u64,
    },
    /// It is no whole number of steps along the dimension in which it is appended.
    #[error("one step along the dimension has {step} bytes, and {found} came")]
    Steps {
        /// How many bytes one step has.
        step: u64,
        /// How many came, or were about to.
        found: u64,
    },
    /// It has more or fewer elements than the selection.
    #[error("the selection has {expected} elements, and {found} came")]
    Count {
        /// How many the selection has.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// Its elements are no whole number of steps along the dimension in which they are appended.
    #[error("one step along the dimension has {step} elements, and {found} came")]
    CountOfSteps {
        /// How many one step has.
        step: u64,
        /// How many came.
        found: u64,
    },
    /// Elements of variable length end before, or after, the body does.
    #[error("the lengths of the elements do not add up to the {size} bytes that came")]
    Lengths {
        /// How many bytes came.
        size: u64,
    },
    /// Its elements have another shape.
    #[error("the selection has the shape {expected}, and what came has {found:?}")]
    Shape {
        /// The shape that they have to have.
        expected: Extents,
        /// The one that they have.
        found: Vec<u64>,
    },
    /// Its elements are of another type.
    #[error("the elements are {found}, and the array has {expected}")]
    ElementType {
        /// The array's type.
        expected: String,
        /// That of the elements.
        found: String,
    },
    /// Its elements are in Fortran order, and too large to be put in C order.
    #[error("the elements are in Fortran order, which is taken of up to {limit} bytes, and these have {size}")]
    Fortran {
        /// How many bytes they have.
        size: u64,
        /// How many they may have.
        limit: u64,
    },
    /// The head of the `.npy` file is not understood.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The JSON is not the elements that are wanted.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Bytes are no element.
    #[error("the element at {at:?} is none of the data type: {flaw}")]
    Element {
        /// Its indices.
        at: Vec<u64>,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// What cannot be streamed is too large.
    #[error("what cannot be streamed has at most {limit} bytes, and this has more")]
    TooLarge {
        /// How many bytes it may have.
        limit: u64,
    },
    /// It did not arrive.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no memory left for it, or the server is stopping.
    #[error("there is no room for the elements")]
    Api(ApiError),
}

impl DecodeError {
    /// As the error of a stream, out of which [`within`](Self::within) takes it again.
    pub(super) fn into_stream_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            other => StoreError::Upload(UploadError::Aborted(Box::new(other))),
        }
    }

    /// What was wrong with the elements where a stream of them failed because of that; else the error again.
    pub(crate) fn from_stream_error(error: StoreError) -> Result<Self, StoreError> {
        match error {
            StoreError::Upload(UploadError::Aborted(cause)) => match cause.downcast::<Self>() {
                Ok(found) => Ok(*found),
                Err(cause) => Err(StoreError::Upload(UploadError::Aborted(cause))),
            },
            other => Err(other),
        }
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            DecodeError::Api(error) => return error,
            DecodeError::Store(StoreError::Upload(UploadError::TooLarge { limit })) => {
                return Self::body_too_large(limit);
            }
            DecodeError::Store(error) => return error.into(),
            DecodeError::MediaType { .. } => {
                return Self::unsupported_media_type(&BODY_FORMATS.map(|format| format.media_type()));
            }
            DecodeError::Length { expected, found }
            | DecodeError::Steps { step: expected, found }
            | DecodeError::Count { expected, found }
            | DecodeError::CountOfSteps { step: expected, found }
            | DecodeError::Json(JsonError::Length { expected, found, .. }) => {
                let (expected, actual) = (Some(expected), Some(found));
                (ProblemType::BodyShapeMismatch, Members { expected, actual, ..Members::default() })
            }
            DecodeError::Shape { .. }
            | DecodeError::ElementType { .. }
            | DecodeError::Json(JsonError::NotAList { .. }) => (ProblemType::BodyShapeMismatch, Members::default()),
            DecodeError::Lengths { .. } | DecodeError::Head(_) | DecodeError::Json(JsonError::NotJson(_)) => {
                (ProblemType::InvalidBody, Members::default())
            }
            DecodeError::Element { at, .. }
            | DecodeError::Json(JsonError::Element { at, .. } | JsonError::LargeElement { at }) => {
                (ProblemType::InvalidElement, Members { element: Some(at), ..Members::default() })
            }
            DecodeError::Fortran { limit, .. } | DecodeError::TooLarge { limit } => {
                (ProblemType::BodyTooLarge, Members { limit: Some(limit), ..Members::default() })
            }
            DecodeError::Json(JsonError::Full(Full)) => (ProblemType::BodyTooLarge, Members::default()),
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}
