//! The names that nodes may have.

use crate::Dialect;

/// A dialect does not allow a node of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} allows no node {name}: {reason}")]
pub struct NameError {
    /// The dialect.
    pub dialect: Dialect,
    /// The name, cut to a length that can be shown.
    pub name: String,
    /// Why.
    pub reason: &'static str,
}

/// Checks the name of a node that is to be created.
pub fn check(dialect: Dialect, name: &str) -> Result<(), NameError> {
    let _ = (dialect, name);
    todo!()
}
