//! Conversions from the elements of a body to those of the array.

use std::sync::Arc;

use zarrd_array::ArrayError;
use zarrd_cf::{Encoding, Source};
use zarrd_compute::Conversion;
use zarrd_meta::{
    ArrayModel, NodePath,
    data_type::{Casting, DataType},
};
use zarrd_wire::query::Decode;

use super::DecodeError;

/// The conversions that a request allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversions {
    casting: Casting,
    /// The encoding of elements that are decoded ones.
    packed: Option<Arc<Encoding>>,
    /// The encoding of times, which no array of numbers has as they are.
    times: Option<Arc<Encoding>>,
}

/// The conversion of elements as they stream in.
#[derive(Clone, Debug)]
pub(super) enum ElementStep {
    /// None, but that texts are padded.
    Keep,
    Convert(Conversion),
    Encode(Arc<Encoding>, Source),
}

/// An element that the array cannot hold.
pub(super) struct RejectedElement {
    /// Its number among the elements.
    pub(super) index: u64,
    /// The reason, with its value.
    pub(super) reason: String,
}

impl Conversions {
    /// The conversions to the elements of an array. With [`Decode::Cf`] the body has decoded elements; without a
    /// convention only times are encoded.
    pub(crate) fn new(
        path: &NodePath,
        model: &ArrayModel,
        decode: Option<Decode>,
        casting: Casting,
    ) -> Result<Self, ArrayError> {
        let encoding = match decode {
            Some(Decode::None) => None,
            Some(Decode::Cf) => {
                let encoding = Encoding::of_array(model);
                encoding.map_err(|source| ArrayError::Convention { path: path.clone(), source })?
            }
            // Attributes that are invalid have no effect on elements that are stored as they are.
            None => Encoding::of_array(model).ok().flatten(),
        };
        let encoding = encoding.map(Arc::new);
        let is_packed = decode == Some(Decode::Cf);
        let times = encoding.clone().filter(|encoding| encoding.has_moments());
        Ok(Self { casting, packed: encoding.filter(|_| is_packed), times })
    }

    /// The encoding of elements that are decoded ones.
    pub(super) fn packed(&self) -> Option<&Encoding> {
        self.packed.as_deref()
    }

    /// The encoding of texts that are times, if the array has them as numbers.
    pub(super) fn times(&self) -> Option<&Arc<Encoding>> {
        self.times.as_ref()
    }

    /// The conversion of elements of a type to those of the array, whose type is `to`; `None` if they are not convertible.
    pub(super) fn step(&self, from: &DataType, to: &DataType) -> Option<ElementStep> {
        if let Some(packed) = &self.packed {
            return Some(ElementStep::Encode(packed.clone(), packed.source(from)?));
        }
        if from == to {
            return Some(ElementStep::Keep);
        }
        if let Some(conversion) = Conversion::new(from, to, self.casting) {
            return Some(ElementStep::Convert(conversion));
        }
        let times = self.times.as_ref()?;
        Some(ElementStep::Encode(times.clone(), times.source(from)?))
    }

    /// The error of elements that are not convertible.
    pub(super) fn mismatch(&self, from: &DataType, to: &DataType) -> DecodeError {
        let expected = self.packed().map_or(to, Encoding::data_type).to_string();
        let is_number = from.number().is_some() && to.number().is_some() && self.packed.is_none();
        DecodeError::ElementType { expected, found: from.to_string(), casting: is_number.then_some(self.casting) }
    }
}

impl ElementStep {
    /// Converts whole elements; `None` if they stay as they are.
    pub(super) fn apply(&self, elements: &[u8]) -> Result<Option<Vec<u8>>, RejectedElement> {
        match self {
            Self::Keep => Ok(None),
            Self::Convert(conversion) => conversion.convert(elements).map(Some).map_err(|error| {
                let reason = error.to_string();
                RejectedElement { index: error.index, reason }
            }),
            Self::Encode(encoding, source) => encoding.encode(elements, *source).map(Some).map_err(|error| {
                let reason = error.to_string();
                RejectedElement { index: error.index, reason }
            }),
        }
    }
}
