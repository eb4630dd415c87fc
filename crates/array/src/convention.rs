//! Decoding by convention, as a step of a result.

use std::sync::Arc;

use zarrd_cf::{CalendarTexts, Decoding};
use zarrd_codec::Elements;
use zarrd_meta::{ArrayModel, NodePath, data_type::DataType};

use crate::{
    error::ArrayError,
    map::{Decode, ElementMap},
    node::array::Array,
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

/// The step that writes moments of a calendar as texts.
#[derive(Debug)]
struct TextStep {
    texts: CalendarTexts,
    data_type: DataType,
    path: NodePath,
}

impl ElementMap for TextStep {
    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn map(&self, elements: &Elements) -> Result<Elements, ArrayError> {
        let written = self.texts.write(elements);
        written.map_err(|source| ArrayError::Convention { path: self.path.clone(), source })
    }
}

/// The steps around a computation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// Decodes elements before.
    pub(crate) decode: Option<Arc<dyn ElementMap>>,
    /// Makes texts of results that have the decoded elements' type: times of some calendars are computed with as
    /// numbers.
    pub(crate) texts: Option<Arc<dyn ElementMap>>,
}

/// The step that decodes the elements of an array, if there is one to take.
pub(crate) fn decode_map(
    at: (&NodePath, &ArrayModel),
    decode: Decode,
) -> Result<Option<Arc<dyn ElementMap>>, ArrayError> {
    let step = |decoding| Arc::new(CfStep::new(decoding, at.0.clone())) as Arc<dyn ElementMap>;
    Ok(decoding(at, decode)?.map(step))
}

/// The steps around a computation with the elements of an array.
///
/// Without a request for decoding, it is an error if the array's elements have to be decoded, and
/// `depends`: if a result would be wrong otherwise.
pub(crate) fn steps_around(array: &Array, decode: Option<Decode>, depends: bool) -> Result<Steps, ArrayError> {
    let path = array.path();
    if decode.is_none() && depends && array.is_undecoded() {
        return Err(ArrayError::DecodeUnspecified);
    }
    let Some(decoding) = decoding((path, array.model()), decode.unwrap_or_default())? else {
        return Ok(Steps::default());
    };
    let step = |decoding| Some(Arc::new(CfStep::new(decoding, path.clone())) as Arc<dyn ElementMap>);
    Ok(match decoding.as_moments() {
        None => Steps { decode: step(decoding), texts: None },
        Some((moments, texts)) => {
            let texts = TextStep { texts, data_type: decoding.data_type(), path: path.clone() };
            Steps { decode: step(moments), texts: Some(Arc::new(texts)) }
        }
    })
}

fn decoding((path, model): (&NodePath, &ArrayModel), decode: Decode) -> Result<Option<Decoding>, ArrayError> {
    let decoding = || Decoding::of_array(model).map_err(|source| ArrayError::Convention { path: path.clone(), source });
    match decode {
        Decode::Stored => Ok(None),
        Decode::Cf => decoding(),
        Decode::CfTexts => Ok(decoding()?.map(Decoding::with_text_times)),
    }
}
