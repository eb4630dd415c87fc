//! Errors of a request's JSON.

use std::fmt;

use super::{ItemError, ParseError, text::Excerpt};

/// The reason why the JSON of a request is invalid, and its location.
#[derive(Debug, thiserror::Error)]
#[error("{kind}{}", PointerSuffix(pointer))]
pub struct RequestError {
    /// The place in the body, as a JSON Pointer (RFC 6901); empty for the body itself.
    pub pointer: String,
    /// The error.
    #[source]
    pub kind: RequestErrorKind,
}

/// The error of a request's JSON.
#[derive(Debug, thiserror::Error)]
pub enum RequestErrorKind {
    /// The body is not JSON.
    #[error("this is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// Not one of the three members, or more than one.
    #[error("exactly one of `select`, `points` and `stack` is expected")]
    NotExactlyOneMember,
    /// A value of another kind.
    #[error("{expected} is expected, not `{}`", Excerpt(found))]
    Unexpected {
        /// The expected value.
        expected: &'static str,
        /// The beginning of what was found.
        found: String,
    },
    /// A member that a request does not have.
    #[error("`{}` is unknown, known are {known}", Excerpt(name))]
    UnknownMember {
        /// The beginning of the member's name.
        name: String,
        /// The members that there are.
        known: &'static str,
    },
    /// A member is repeated.
    #[error("`{name}` is given twice")]
    RepeatedMember {
        /// The member's name.
        name: &'static str,
    },
    /// Too many of something.
    #[error("there are at most {limit} {what}")]
    TooMany {
        /// The excess items.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A stack of nothing, which has no shape.
    #[error("a stack has at least one selection")]
    EmptyStack,
    /// A text is not a selection, or not one item of one.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// An item cannot be added to those before it.
    #[error(transparent)]
    Item(#[from] ItemError),
}

impl RequestError {
    /// The same error, seen from the value whose member or element `part` holds it.
    pub(super) fn under(self, part: impl fmt::Display) -> Self {
        Self { pointer: format!("/{part}{}", self.pointer), ..self }
    }
}

impl<T: Into<RequestErrorKind>> From<T> for RequestError {
    fn from(kind: T) -> Self {
        Self { pointer: String::new(), kind: kind.into() }
    }
}

/// The location, in the text of an error.
struct PointerSuffix<'a>(&'a str);

impl fmt::Display for PointerSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            pointer => write!(f, " (at {pointer} of the body)"),
        }
    }
}
