//! Errors of a request's JSON.

use std::fmt;

use super::{ItemError, ParseError, text::Excerpt};

/// The JSON of a request is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{kind}{}", PointerSuffix(pointer))]
pub struct RequestError {
    /// The location in the body as a JSON pointer (RFC 6901); empty for the body.
    pub pointer: String,
    /// The error.
    #[source]
    pub kind: RequestErrorKind,
}

/// Reasons for rejecting a request's JSON.
#[derive(Debug, thiserror::Error)]
pub enum RequestErrorKind {
    /// The body is not JSON.
    #[error("this is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// None or several of the three members are present.
    #[error("exactly one of `select`, `points` and `stack` is expected")]
    NotExactlyOneMember,
    /// A value has another type.
    #[error("{expected} is expected, not `{}`", Excerpt(found))]
    Unexpected {
        /// The expected value.
        expected: &'static str,
        /// The found value, truncated.
        found: String,
    },
    /// A member is unknown.
    #[error("`{}` is unknown, known are {known}", Excerpt(name))]
    UnknownMember {
        /// The member's name, truncated.
        name: String,
        /// The known members.
        known: &'static str,
    },
    /// A member is repeated.
    #[error("`{name}` is given twice")]
    RepeatedMember {
        /// The member's name.
        name: &'static str,
    },
    /// A limit is exceeded.
    #[error("there are at most {limit} {what}")]
    TooMany {
        /// The limited items.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A stack has no selections.
    #[error("a stack has at least one selection")]
    EmptyStack,
    /// A text is not a selection, or not a single item.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// An item cannot be added to those before it.
    #[error(transparent)]
    Item(#[from] ItemError),
}

impl RequestError {
    /// The error relative to the parent value, in which `part` is the member or index.
    pub(super) fn under(self, part: impl fmt::Display) -> Self {
        Self { pointer: format!("/{part}{}", self.pointer), ..self }
    }
}

impl<T: Into<RequestErrorKind>> From<T> for RequestError {
    fn from(kind: T) -> Self {
        Self { pointer: String::new(), kind: kind.into() }
    }
}

/// The location in an error message.
struct PointerSuffix<'a>(&'a str);

impl fmt::Display for PointerSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            pointer => write!(f, " (at {pointer} of the body)"),
        }
    }
}
