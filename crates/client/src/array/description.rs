//! Elements and their descriptions.

use bytes::{Buf, Bytes};
use reqwest::header::ETAG;
use zarrd_meta::Dialect;
use zarrd_store::Version;
use zarrd_wire::{array, etag, headers};

use super::ArrayError;
use crate::{error::RequestError, response::Response};

/// Shape, data type and other properties of the elements of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The shape of the elements. A dimension of which a single index was selected is dropped; a stack has an
    /// additional first dimension.
    pub shape: Vec<u64>,
    /// The name of the data type in Zarr v3, with its parameters: `float32`, `numpy.datetime64[10us]`. `None` if it is
    /// too long for a header, such as that of a struct with a thousand fields.
    pub data_type: Option<String>,
    /// The names of the dimensions of `shape`; empty if none has a name.
    pub dimension_names: Vec<Option<String>>,
    /// The dialect of the array.
    pub dialect: Dialect,
    /// The version of the response: equal for equal requests until the array changes. `None` if the selection has too
    /// many chunks for the server to compute it.
    pub version: Option<Version>,
    /// The size of the elements in bytes, if the server states it in advance. For elements of variable length it does
    /// so only in short responses, and never in a description alone.
    pub bytes: Option<u64>,
    /// The elements are as they are stored, and packed or some of them mean missing: `decode=cf` gives their values.
    pub is_undecoded: bool,
    /// Of a picture, the dimension along which its rows go north, so that the south is at the top.
    pub northward_rows: Option<String>,
}

/// Elements with their description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements<C = Bytes> {
    /// Shape, data type and other properties.
    pub description: Description,
    /// The elements themselves, in C order.
    pub content: C,
}

impl Description {
    /// The number of elements; `None` if it exceeds `u64::MAX`.
    pub fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent))
    }

    /// Parses the headers of a response.
    pub(super) fn from_response(response: &Response) -> Result<Self, RequestError> {
        let shape = response.header(headers::SHAPE).and_then(array::parse_shape);
        let shape = shape.ok_or_else(|| RequestError::protocol("elements without a valid shape"))?;
        let dialect = response.header(headers::DIALECT).and_then(|name| name.parse().ok());
        let dialect = dialect.ok_or_else(|| RequestError::protocol("elements without the dialect of their array"))?;
        let names = response.header(headers::DIMENSION_NAMES).map_or(Some(Vec::new()), array::parse_dimension_names);
        let names = names.filter(|names| names.is_empty() || names.len() == shape.len());
        Ok(Self {
            dimension_names: names
                .ok_or_else(|| RequestError::protocol("the dimension names do not match the shape"))?,
            data_type: response.header(headers::DATA_TYPE).map(str::to_owned),
            version: response.header(ETAG).and_then(etag::parse),
            bytes: response.content_length()?,
            is_undecoded: response.header(headers::UNDECODED).is_some(),
            northward_rows: response.header(headers::NORTHWARD_ROWS).and_then(array::parse_dimension_name),
            shape,
            dialect,
        })
    }
}

impl Elements {
    /// Splits elements of variable length, in C order. They share the memory of the response.
    ///
    /// ```
    /// # fn example(elements: zarrd_client::Elements) -> Result<(), zarrd_client::ArrayError> {
    /// for bytes in elements.byte_strings()? {
    ///     println!("{} bytes", bytes.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Fails with [`RemoteError::InvalidResponse`](crate::RemoteError::InvalidResponse) if the bytes do not encode as many elements of variable length as the shape
    /// has.
    pub fn byte_strings(&self) -> Result<Vec<Bytes>, ArrayError> {
        let mut rest = self.content.clone();
        let count = rest.try_get_u32_le().ok().filter(|&count| self.description.elements() == Some(count.into()));
        let mut elements = Vec::new();
        for _ in 0..count.ok_or_else(not_variable)? {
            let len = rest.try_get_u32_le().map_err(|_| not_variable())? as usize;
            if len > rest.len() {
                return Err(not_variable());
            }
            elements.push(rest.split_to(len));
        }
        if rest.is_empty() { Ok(elements) } else { Err(not_variable()) }
    }

    /// Decodes strings of variable length (`string`), in C order.
    ///
    /// Fails with [`ArrayError::DataType`] if the elements have another data type.
    pub fn strings(&self) -> Result<Vec<String>, ArrayError> {
        const STRING: &str = "string";
        if self.description.data_type.as_deref() != Some(STRING) {
            return Err(ArrayError::DataType { expected: STRING, actual: self.description.data_type.clone() });
        }
        let string = |bytes: Bytes| String::from_utf8(bytes.into()).map_err(|_| not_variable());
        self.byte_strings()?.into_iter().map(string).collect()
    }
}

#[cfg(feature = "ndarray")]
impl<T> Elements<Vec<T>> {
    /// Converts the elements into an array of the `ndarray` crate, without a copy.
    ///
    /// Fails if there are no elements and their shape has extents that overflow `usize`.
    pub fn into_ndarray(self) -> Result<ndarray::ArrayD<T>, ndarray::ShapeError> {
        let extents = self.description.shape.iter().map(|&extent| usize::try_from(extent));
        let too_large = |_| ndarray::ShapeError::from_kind(ndarray::ErrorKind::Overflow);
        let shape = extents.collect::<Result<Vec<_>, _>>().map_err(too_large)?;
        ndarray::ArrayD::from_shape_vec(shape, self.content)
    }
}

fn not_variable() -> ArrayError {
    RequestError::protocol("the body does not encode as many elements of variable length as the shape has").into()
}
