//! What came.

use bytes::{Buf, Bytes};
use meta::Dialect;
use store::Version;
use wire::{array, etag, headers};

use super::ArrayError;
use crate::{answer::Answer, failure::Fault};

/// What the elements of an answer are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// How many there are along each dimension of the answer. A dimension of which one index was selected is not there, and a stack
    /// has one more, the first.
    pub shape: Vec<u64>,
    /// The data type's name as Zarr v3 has it, with its parameters: `float32`, `numpy.datetime64[10us]`. `None` where it is
    /// longer than a header holds, such as that of a struct of a thousand fields.
    pub data_type: Option<String>,
    /// The names of the answer's dimensions, as many as those; empty where none has a name.
    pub dimension_names: Vec<Option<String>>,
    /// The dialect of the array.
    pub dialect: Dialect,
    /// Which answer this is: the same for the same request until the array changes. `None` where the array has so many chunks
    /// that the server would not look at all of them.
    pub version: Option<Version>,
    /// How many bytes the answer has, where the server states it beforehand. Where each element has its own length, it does so
    /// only for short answers, and not in a mere description.
    pub bytes: Option<u64>,
}

/// Elements, and what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements<C = Bytes> {
    /// What they are.
    pub description: Description,
    /// The elements themselves, in C order.
    pub content: C,
}

impl Description {
    /// How many elements there are; `None` where they are more than a `u64` counts.
    pub fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |all, &extent| all.checked_mul(extent))
    }

    /// What the head of an answer says.
    pub(super) fn of(answer: &Answer) -> Result<Self, Fault> {
        let said = |name| answer.header(name).ok_or(());
        let shape = said(headers::SHAPE).ok().and_then(array::parse_shape);
        let shape = shape.ok_or_else(|| Fault::protocol("elements came without their shape"))?;
        let dialect = said(headers::DIALECT).ok().and_then(|name| name.parse().ok());
        let dialect = dialect.ok_or_else(|| Fault::protocol("elements came without the dialect of their array"))?;
        let names = said(headers::DIMENSION_NAMES).map_or(Some(Vec::new()), array::parse_dimension_names);
        let names = names.filter(|names| names.is_empty() || names.len() == shape.len());
        Ok(Self {
            dimension_names: names.ok_or_else(|| Fault::protocol("the dimensions have other names than there are"))?,
            data_type: answer.header(headers::DATA_TYPE).map(str::to_owned),
            version: answer.header(reqwest::header::ETAG).and_then(etag::parse),
            bytes: answer.stated_length()?,
            shape,
            dialect,
        })
    }
}

impl Elements {
    /// Takes elements of variable length apart, in C order. They share the memory of what came.
    ///
    /// ```
    /// # fn example(elements: client::Elements) -> Result<(), client::ArrayError> {
    /// for bytes in elements.variable()? {
    ///     println!("{} bytes", bytes.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Fails with [`ArrayError::Protocol`] where the bytes are not elements of variable length, as many as the shape says.
    pub fn variable(&self) -> Result<Vec<Bytes>, ArrayError> {
        let mut rest = self.content.clone();
        let count = rest.try_get_u32_le().ok().filter(|&count| self.description.elements() == Some(count.into()));
        let mut found = Vec::new();
        for _ in 0..count.ok_or_else(not_variable)? {
            let len = rest.try_get_u32_le().map_err(|_| not_variable())? as usize;
            if len > rest.len() {
                return Err(not_variable());
            }
            found.push(rest.split_to(len));
        }
        if rest.is_empty() { Ok(found) } else { Err(not_variable()) }
    }

    /// Takes strings of variable length (`string`) apart, in C order.
    ///
    /// Fails with [`ArrayError::DataType`] where the array has others.
    pub fn texts(&self) -> Result<Vec<String>, ArrayError> {
        const STRING: &str = "string";
        if self.description.data_type.as_deref() != Some(STRING) {
            return Err(ArrayError::DataType { expected: STRING, found: self.description.data_type.clone() });
        }
        let text = |bytes: Bytes| String::from_utf8(bytes.into()).map_err(|_| not_variable());
        self.variable()?.into_iter().map(text).collect()
    }
}

#[cfg(feature = "ndarray")]
impl<T> Elements<Vec<T>> {
    /// The elements as an array of the crate `ndarray`, without a copy.
    ///
    /// Fails where an answer without elements has extents that do not fit the memory of this machine.
    pub fn into_ndarray(self) -> Result<ndarray::ArrayD<T>, ndarray::ShapeError> {
        let extents = self.description.shape.iter().map(|&extent| usize::try_from(extent));
        let too_large = |_| ndarray::ShapeError::from_kind(ndarray::ErrorKind::Overflow);
        let shape = extents.collect::<Result<Vec<_>, _>>().map_err(too_large)?;
        ndarray::ArrayD::from_shape_vec(shape, self.content)
    }
}

fn not_variable() -> ArrayError {
    Fault::protocol("these are not elements of variable length, as many as there are").into()
}
