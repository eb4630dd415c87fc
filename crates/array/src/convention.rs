//! Decoding by convention, as a step of a result.

use std::sync::Arc;

use cf::Decoding;
use codec::Elements;
use meta::{ArrayModel, NodePath, data_type::DataType};

use crate::{
    error::ArrayError,
    map::{Decode, ElementMap},
};

/// The step that decodes elements by the CF conventions.
#[derive(Debug)]
struct CfStep {
    decoding: Decoding,
    data_type: DataType,
    path: NodePath,
}

impl CfStep {
    fn new(decoding: Decoding, path: NodePath) -> Self {
        Self { data_type: decoding.data_type(), decoding, path }
    }
}

impl ElementMap for CfStep {
    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn map(&self, elements: &Elements) -> Result<Elements, ArrayError> {
        let decoded = self.decoding.decode(elements);
        decoded.map_err(|source| ArrayError::Convention { path: self.path.clone(), source })
    }
}

/// The step that decodes the elements of an array, if there is one to take.
///
/// Without a request for it, it is an error if the array's attributes say that elements have to be decoded, and
/// `depends`: if a result would be wrong otherwise.
pub(crate) fn decode_map(
    (path, model): (&NodePath, &ArrayModel),
    decode: Option<Decode>,
    depends: bool,
) -> Result<Option<Arc<dyn ElementMap>>, ArrayError> {
    match decode {
        Some(Decode::Stored) => Ok(None),
        None if depends && cf::is_undecoded(&model.attributes, &model.data_type, model.dialect) => {
            Err(ArrayError::DecodeUnspecified)
        }
        None => Ok(None),
        Some(Decode::Cf) => {
            let decoding = Decoding::of_array(model);
            let decoding = decoding.map_err(|source| ArrayError::Convention { path: path.clone(), source })?;
            Ok(decoding.map(|decoding| Arc::new(CfStep::new(decoding, path.clone())) as Arc<dyn ElementMap>))
        }
    }
}
