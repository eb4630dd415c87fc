//! The codecs for elements of variable length: the number of elements, then each element after its length, all numbers
//! little-endian `u32`.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use zarrd_meta::codecs::CodecSpec;

use crate::{
    ArrayToBytes, ByteSwap, ChainError, Codec, CodecError, CodecInput, Cost, Elements, EncodedSizeBound,
    VariableBuilder, factory::invalid_configuration,
};

/// A codec that stores the length before each element.
#[derive(Debug)]
pub(super) struct VlenCodec {
    name: &'static str,
    elements: u64,
    kind: ElementKind,
}

/// The kind of elements.
#[derive(Clone, Debug)]
pub(super) enum ElementKind {
    /// Strings, in UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// Arrays of inner elements of this size, at least 1, with this byte swap.
    Array { size: usize, swap: ByteSwap },
}

/// The size of a length in bytes.
const LENGTH_SIZE: u64 = size_of::<u32>() as u64;

/// Creates the codec for its position in a chain.
pub(super) fn create(
    name: &'static str,
    spec: &CodecSpec,
    input: CodecInput<'_>,
    kind: ElementKind,
) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    if array.data_type().fixed_size().is_some() {
        return Err(invalid_configuration(spec, format!("does not support elements of {}", array.data_type())));
    }
    Ok(Codec::ArrayToBytes(Arc::new(VlenCodec { name, elements: array.num_elements(), kind })))
}

impl VlenCodec {
    fn malformed(&self, reason: &'static str) -> CodecError {
        CodecError::Malformed { codec: self.name, reason }
    }

    /// Reads a length; fails if it is incomplete.
    fn read_length(&self, bytes: &mut &[u8]) -> Result<usize, CodecError> {
        let length = bytes.try_get_u32_le().map_err(|_| self.malformed("the bytes end before the elements"))?;
        usize::try_from(length).map_err(|_| self.malformed("an element is longer than the bytes"))
    }

    /// The reason why an element is invalid; `None` if it is valid.
    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        match self.kind {
            ElementKind::Text if std::str::from_utf8(element).is_err() => Some("a string is not UTF-8"),
            ElementKind::Array { size, .. } if !element.len().is_multiple_of(size) => {
                Some("an inner array has an incomplete element")
            }
            _ => None,
        }
    }
}

impl ArrayToBytes for VlenCodec {
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let mut bytes = &*encoded;
        // Both are checked before anything is allocated: the number of elements, and that each has a length.
        if self.read_length(&mut bytes)? as u64 != self.elements {
            return Err(self.malformed("the number of elements does not match the chunk"));
        }
        if self.elements.saturating_mul(LENGTH_SIZE) > bytes.len() as u64 {
            return Err(self.malformed("the bytes end before the elements"));
        }
        let mut elements = VariableBuilder::new(budget);
        let mut swapped = Vec::new();
        for _ in 0..self.elements {
            let length = self.read_length(&mut bytes)?;
            let (element, rest) =
                bytes.split_at_checked(length).ok_or_else(|| self.malformed("an element is longer than the bytes"))?;
            bytes = rest;
            if let Some(reason) = self.invalid_reason(element) {
                return Err(self.malformed(reason));
            }
            let pushed = match &self.kind {
                ElementKind::Array { swap, .. } if *swap != ByteSwap::None => {
                    swapped.clear();
                    swapped.extend_from_slice(element);
                    swap.apply_in_place(&mut swapped);
                    elements.push(&swapped)
                }
                _ => elements.push(element),
            };
            pushed.map_err(|_| CodecError::BudgetExceeded { codec: self.name, budget })?;
        }
        match bytes {
            [] => Ok(Elements::Variable(elements.finish())),
            _ => Err(self.malformed("bytes follow the last element")),
        }
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let Elements::Variable(elements) = decoded else {
            return Err(self.malformed("the elements have a fixed size"));
        };
        let count = u32::try_from(elements.len()).map_err(|_| self.malformed("the chunk has 2^32 or more elements"))?;
        let mut out = BytesMut::new();
        out.put_u32_le(count);
        for (index, element) in (0..).zip(elements.iter()) {
            let invalid_element = |reason| CodecError::InvalidElement { codec: self.name, index, reason };
            let length = u32::try_from(element.len()).map_err(|_| invalid_element("it has 2^32 bytes or more"))?;
            if let Some(reason) = self.invalid_reason(element) {
                return Err(invalid_element(reason));
            }
            out.put_u32_le(length);
            let start = out.len();
            out.put_slice(element);
            if let ElementKind::Array { swap, .. } = &self.kind {
                out.get_mut(start..).into_iter().for_each(|element| swap.apply_in_place(element));
            }
        }
        Ok(out.freeze())
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(4)
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        None
    }
}
