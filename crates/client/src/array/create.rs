//! Declarations of arrays that are created from their elements.

use zarrd_meta::Dialect;
use zarrd_operations::IfExists;
use zarrd_store::Precondition;
use zarrd_wire::query::CreateQuery;

use super::{ArrayError, NewElements};

/// An array that is [created](crate::ArrayClient::create) from its elements. The server chooses its chunks, codecs and
/// fill value.
///
/// ```
/// use zarrd_client::NewArray;
///
/// let options = NewArray { dimension_names: Some(vec!["y".into(), "x".into()]), ..NewArray::of_shape([2, 3]) };
/// # assert_eq!(options.shape, Some(vec![2, 3]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewArray {
    /// The shape; `None` for `.npy` elements, which have one.
    pub shape: Option<Vec<u64>>,
    /// The data type: a name of v3, or a dtype of NumPy. `None` for elements that have one: numbers, strings and `.npy`.
    pub data_type: Option<String>,
    /// The names of the dimensions.
    pub dimension_names: Option<Vec<String>>,
    /// The treatment of an existing node, which is never equal. [`IfExists::Adopt`] is like [`IfExists::Fail`].
    pub if_exists: IfExists,
    /// The precondition on the version of the node.
    pub precondition: Precondition,
}

impl NewArray {
    /// An array of this shape, and of the type of its elements.
    pub fn of_shape(shape: impl Into<Vec<u64>>) -> Self {
        Self { shape: Some(shape.into()), ..Self::default() }
    }

    /// The query of a request with these elements. Fails if they have another data type than the array.
    pub(super) fn query(&self, elements: &NewElements, dialect: Option<Dialect>) -> Result<CreateQuery, ArrayError> {
        if let (Some(expected), Some(found)) = (elements.data_type, &self.data_type)
            && expected != found
        {
            return Err(ArrayError::DataType { expected, actual: Some(found.clone()) });
        }
        let dtype = self.data_type.clone().or_else(|| elements.data_type.map(str::to_owned));
        Ok(CreateQuery {
            // The server takes both or none.
            dtype: dtype.filter(|_| self.shape.is_some() || self.data_type.is_some()),
            shape: self.shape.clone(),
            dims: self.dimension_names.clone(),
            if_exists: self.if_exists,
            dialect,
        })
    }
}
