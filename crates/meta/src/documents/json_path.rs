//! Values of a document with their locations.

use serde_json::{Map, Value};

use super::{DocumentError, Feature};
use crate::{
    limits::MAX_EXTENT,
    text::{pointer_to, truncated},
};

/// A value of a document with its location, which errors contain.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath<'a> {
    pub(crate) value: &'a Value,
    pub(crate) pointer: String,
}

impl<'a> JsonPath<'a> {
    /// The whole document.
    pub(crate) fn root(document: &'a Value) -> Self {
        Self { value: document, pointer: String::new() }
    }

    pub(crate) fn object(&self) -> Result<&'a Map<String, Value>, DocumentError> {
        self.value.as_object().ok_or_else(|| self.invalid("is not an object"))
    }

    /// A member of an object.
    pub(crate) fn member(&self, name: &str) -> Result<Option<Self>, DocumentError> {
        let value = self.object()?.get(name);
        Ok(value.map(|value| Self { value, pointer: self.pointer_to(name) }))
    }

    /// A member of an object; `null` is treated as missing.
    pub(crate) fn member_or_null(&self, name: &str) -> Result<Option<Self>, DocumentError> {
        Ok(self.member(name)?.filter(|path| !path.value.is_null()))
    }

    pub(crate) fn required(&self, name: &str) -> Result<Self, DocumentError> {
        self.member(name)?.ok_or_else(|| DocumentError::Missing { pointer: self.pointer_to(name) })
    }

    pub(crate) fn list(&self) -> Result<&'a [Value], DocumentError> {
        self.value.as_array().map(Vec::as_slice).ok_or_else(|| self.invalid("is not a list"))
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Result<impl Iterator<Item = Self> + '_, DocumentError> {
        let item = |(index, value)| Self { value, pointer: format!("{}/{index}", self.pointer) };
        Ok(self.list()?.iter().enumerate().map(item))
    }

    pub(crate) fn text(&self) -> Result<&'a str, DocumentError> {
        self.value.as_str().ok_or_else(|| self.invalid("is not a string"))
    }

    /// An integer from 0 to [`MAX_EXTENT`].
    pub(crate) fn unsigned(&self) -> Result<u64, DocumentError> {
        match self.value.as_u64() {
            Some(number) if number <= MAX_EXTENT => Ok(number),
            Some(_) => Err(self.invalid(format!("is larger than {MAX_EXTENT}"))),
            None if self.value.is_i64() => Err(self.invalid("is negative")),
            None => Err(self.invalid(format!("is not an integer from 0 to {MAX_EXTENT}"))),
        }
    }

    /// Fails if the object has other members, which could change its meaning.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), DocumentError> {
        match self.object()?.keys().find(|name| !names.contains(&name.as_str())) {
            Some(unknown) => Err(self.invalid(format!("has the unknown member {}", truncated(unknown)))),
            None => Ok(()),
        }
    }

    /// The error for an invalid value; `reason` continues "the member".
    pub(crate) fn invalid(&self, reason: impl Into<String>) -> DocumentError {
        DocumentError::Invalid { pointer: self.pointer.clone(), reason: reason.into() }
    }

    pub(crate) fn unsupported(&self, feature: Feature, name: &str) -> DocumentError {
        DocumentError::Unsupported { pointer: self.pointer.clone(), feature, name: truncated(name) }
    }

    /// The pointer to a member.
    pub(crate) fn pointer_to(&self, name: &str) -> String {
        pointer_to(&self.pointer, name)
    }
}
