//! Errors of decoding the elements in a request body.

use zarrd_meta::data_type::Casting;
use zarrd_store::{StoreError, UploadError};
use zarrd_wire::{
    elements::{
        Extents,
        json::{Full, JsonError},
        npy::NpyHeaderError,
        npz::NpzError,
    },
    problem::{Members, Problem, ProblemType},
};

use super::{
    BODY_FORMATS,
    part_errors::{FormError, PointsError},
};
use crate::{error::ApiError, request_body::FORM_MEDIA_TYPE};

/// Errors of decoding the elements in a request body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The media type is not supported.
    #[error("unsupported Content-Type: {found}")]
    MediaType {
        /// The media type of the body.
        found: String,
    },
    /// The body's length differs from that of the selected elements.
    #[error("the body has {found} bytes, but the selection needs {expected}")]
    Length {
        /// The length of the selected elements, in bytes.
        expected: u64,
        /// The received or announced length, in bytes.
        found: u64,
    },
    /// The body's length is not a multiple of one step along the append dimension.
    #[error("the body has {found} bytes, which is not a multiple of one step along the dimension ({step} bytes)")]
    Steps {
        /// The length of one step, in bytes.
        step: u64,
        /// The received or announced length, in bytes.
        found: u64,
    },
    /// The number of elements differs from that of the selection.
    #[error("the body has {found} elements, but the selection needs {expected}")]
    Count {
        /// The number of selected elements.
        expected: u64,
        /// The number of received elements.
        found: u64,
    },
    /// The number of elements is not a multiple of one step along the append dimension.
    #[error("the body has {found} elements, which is not a multiple of one step along the dimension ({step} elements)")]
    CountOfSteps {
        /// The number of elements in one step.
        step: u64,
        /// The number of received elements.
        found: u64,
    },
    /// The length prefixes do not match the body's length.
    #[error("the length prefixes do not add up to the body's {size} bytes")]
    Lengths {
        /// The length of the body, in bytes.
        size: u64,
    },
    /// The shape differs from that of the selection.
    #[error("the body has shape {found:?}, but the selection needs {expected}")]
    Shape {
        /// The expected shape.
        expected: Extents,
        /// The shape of the received elements.
        found: Vec<u64>,
    },
    /// The data type differs from that of the array.
    #[error("the body has data type {found}, but the array has {expected}{}", unallowed(*.casting))]
    ElementType {
        /// The array's data type.
        expected: String,
        /// The data type of the received elements.
        found: String,
        /// The rule that does not allow the conversion, if another one would.
        casting: Option<Casting>,
    },
    /// The array cannot hold a value.
    #[error("the element at {at:?}: {reason}")]
    Unrepresentable {
        /// The indices of the element.
        at: Vec<u64>,
        /// The reason, with the value.
        reason: String,
    },
    /// The elements are in Fortran order and too large to transpose in memory.
    #[error(
        "the {size} bytes in Fortran order exceed the limit of {limit} (`--max-text-selection`); C order is streamed"
    )]
    Fortran {
        /// The size of the elements, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The points before the elements are invalid.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// The `.npz` file is invalid.
    #[error(transparent)]
    Archive(#[from] NpzError),
    /// The form is invalid.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The body has two arrays of one name.
    #[error("the body has the array {name:?} twice")]
    RepeatedMember {
        /// The name.
        name: String,
    },
    /// The header of the `.npy` file is invalid.
    #[error(transparent)]
    Header(#[from] NpyHeaderError),
    /// The JSON does not hold the expected elements.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A value is not valid for the data type.
    #[error("the element at {at:?} is not valid for the data type: {flaw}")]
    Element {
        /// The indices of the element.
        at: Vec<u64>,
        /// The reason.
        flaw: &'static str,
    },
    /// A body that cannot be streamed exceeds its limit.
    #[error("the body exceeds the limit of {limit} bytes for formats that cannot be streamed (`--max-text-selection`)")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The body was not received completely.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A memory permit was denied, or the server is shutting down.
    #[error("no memory is available for the elements")]
    Api(ApiError),
}

/// The end of a message about types that a rule keeps apart.
fn unallowed(casting: Option<Casting>) -> String {
    casting.map_or_else(String::new, |casting| format!(", and casting={casting} does not allow to convert it"))
}

impl DecodeError {
    /// Wraps the error for a body stream; [`from_stream_error`](Self::from_stream_error) unwraps it.
    pub(in crate::array_api) fn into_stream_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            other => StoreError::Upload(UploadError::Aborted(Box::new(other))),
        }
    }

    /// Unwraps the decoding error that made a body stream fail; returns any other error unchanged.
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
            DecodeError::Store(error) => {
                return DecodeError::from_stream_error(error).map_or_else(Self::from, Self::from);
            }
            DecodeError::MediaType { found } => {
                let known = BODY_FORMATS.map(|format| format.media_type());
                return match found == FORM_MEDIA_TYPE {
                    true => Self::form_media_type(&known),
                    false => Self::unsupported_media_type(&known),
                };
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
            DecodeError::Archive(NpzError::TooLarge { limit }) => return Self::body_too_large(limit),
            DecodeError::Points(PointsError::Type { .. } | PointsError::Shape { .. } | PointsError::TooMany { .. }) => {
                (ProblemType::InvalidSelection, Members::default())
            }
            DecodeError::Form(FormError::Boundary) => return Self::invalid_header("Content-Type", detail),
            DecodeError::Lengths { .. }
            | DecodeError::Form(_)
            | DecodeError::Points(PointsError::Ended { .. })
            | DecodeError::Archive(_)
            | DecodeError::RepeatedMember { .. }
            | DecodeError::Header(_)
            | DecodeError::Json(JsonError::NotJson(_)) => (ProblemType::InvalidBody, Members::default()),
            DecodeError::Element { at, .. }
            | DecodeError::Unrepresentable { at, .. }
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
