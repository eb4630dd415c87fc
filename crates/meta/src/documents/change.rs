//! Changing what is said of a node that is there.

use serde_json::{Map, Value};

use super::GroupModel;
use crate::ArrayModel;

/// What is to change of a node; `None` leaves something as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of the attributes.
    pub attributes: Option<Map<String, Value>>,
    /// The shape, as a view shows it.
    pub shape: Option<Vec<u64>>,
    /// The names of the dimensions; `Some(None)` takes them away.
    pub dimension_names: Option<Option<Vec<Option<String>>>>,
    /// Whether the elements change, so that what was counted of them is no longer true.
    pub elements: ElementsChange,
}

/// Whether the elements of an array change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementsChange {
    /// They stay.
    #[default]
    None,
    /// Some are written or go.
    Some,
}

/// Why a node is not changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer} {reason}")]
pub struct ChangeError {
    /// Where in the patch: a JSON pointer.
    pub pointer: String,
    /// What is wrong, as it continues "the member".
    pub reason: String,
}

impl Changes {
    /// Reads the body of a `PATCH`: `{attributes, shape, dimension_names}`.
    pub fn parse(json: &[u8]) -> Result<Self, ChangeError> {
        let _ = json;
        todo!()
    }

    /// The node document of an array, changed; in v2 with `attributes`. Members that nobody here knows stay as they are.
    pub fn of_array(&self, model: &ArrayModel) -> Result<Map<String, Value>, ChangeError> {
        let _ = model;
        todo!()
    }

    /// The node document of a group, changed, with its consolidated metadata where it has some.
    pub fn of_group(&self, model: &GroupModel) -> Result<Map<String, Value>, ChangeError> {
        let _ = model;
        todo!()
    }
}
