//! Collectors of streamed elements.

use bytes::{Bytes, BytesMut};

use super::{ArrayError, Description, element::sealed::Number};
use crate::error::RequestError;

/// Collects the bytes of a response into elements.
pub(super) trait Collect: Sized + Send {
    /// The collected elements.
    type Content;

    /// Starts collecting the elements of a description.
    fn start(description: &Description) -> Result<Self, ArrayError>;

    /// Adds the next bytes.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ArrayError>;

    /// Returns the elements, after the last bytes.
    fn finish(self) -> Result<Self::Content, ArrayError>;
}

/// Collects elements as bytes.
pub(super) struct BytesCollector {
    bytes: Vec<u8>,
}

/// Collects elements as numbers.
pub(super) struct TypedCollector<T> {
    elements: Vec<T>,
    /// The bytes of an incomplete element.
    partial: BytesMut,
    /// The expected number of elements.
    count: usize,
}

impl Collect for BytesCollector {
    type Content = Bytes;

    fn start(description: &Description) -> Result<Self, ArrayError> {
        Ok(Self { bytes: reserve(description.bytes.unwrap_or(0), 1)? })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ArrayError> {
        let size = (self.bytes.len() as u64).saturating_add(bytes.len() as u64);
        self.bytes.try_reserve(bytes.len()).map_err(|_| ArrayError::OutOfMemory { size })?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self) -> Result<Bytes, ArrayError> {
        Ok(self.bytes.into())
    }
}

impl<T: Number> Collect for TypedCollector<T> {
    type Content = Vec<T>;

    fn start(description: &Description) -> Result<Self, ArrayError> {
        if description.data_type.as_deref() != Some(T::NAME) {
            return Err(ArrayError::DataType { expected: T::NAME, actual: description.data_type.clone() });
        }
        let size = description.elements().and_then(|count| count.checked_mul(T::SIZE as u64));
        if size.is_none() || description.bytes.is_some_and(|bytes| Some(bytes) != size) {
            return Err(RequestError::protocol("the length of the body does not match the shape").into());
        }
        let count = description.elements().unwrap_or_default();
        let elements = reserve(count, T::SIZE as u64)?;
        Ok(Self { elements, partial: BytesMut::new(), count: usize::try_from(count).unwrap_or(usize::MAX) })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ArrayError> {
        let missing = if self.partial.is_empty() { 0 } else { T::SIZE.saturating_sub(self.partial.len()) };
        let (first, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
        self.partial.extend_from_slice(first);
        if self.partial.len() == T::SIZE {
            T::decode(&self.partial, &mut self.elements);
            self.partial.clear();
        }
        let remaining = self.count.saturating_sub(self.elements.len());
        if rest.len().div_ceil(T::SIZE) > remaining {
            return Err(count_mismatch());
        }
        let (complete, partial) = rest.split_at_checked(rest.len() / T::SIZE * T::SIZE).unwrap_or((rest, &[]));
        T::decode(complete, &mut self.elements);
        self.partial.extend_from_slice(partial);
        Ok(())
    }

    fn finish(self) -> Result<Vec<T>, ArrayError> {
        if self.elements.len() != self.count || !self.partial.is_empty() {
            return Err(count_mismatch());
        }
        Ok(self.elements)
    }
}

/// Allocates memory for `count` items of `size` bytes, as announced by the server.
fn reserve<T>(count: u64, size: u64) -> Result<Vec<T>, ArrayError> {
    let mut items = Vec::new();
    let reserved = usize::try_from(count).ok().map(|count| items.try_reserve_exact(count));
    match reserved {
        Some(Ok(())) => Ok(items),
        _ => Err(ArrayError::OutOfMemory { size: count.saturating_mul(size) }),
    }
}

fn count_mismatch() -> ArrayError {
    RequestError::protocol("the number of elements does not match the shape").into()
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use zarrd_meta::Dialect;

    use super::*;
    use crate::remote::RemoteError;

    fn description(data_type: &str, shape: &[u64], bytes: Option<u64>) -> Description {
        Description {
            shape: shape.to_vec(),
            data_type: Some(data_type.to_owned()),
            dimension_names: Vec::new(),
            dialect: Dialect::V3,
            version: None,
            bytes,
            is_undecoded: false,
            northward_rows: None,
        }
    }

    /// Decodes bytes in buffers of every size.
    fn collect<T: Number + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Vec<T> {
        let shape = [(bytes.len() / T::SIZE) as u64];
        let mut collected: Vec<Vec<T>> = Vec::new();
        for len in 1..=bytes.len() + 1 {
            let mut collector = TypedCollector::<T>::start(&description(T::NAME, &shape, None)).unwrap();
            bytes.chunks(len).for_each(|bytes| collector.push(bytes).unwrap());
            collector.push(&[]).unwrap();
            collected.push(collector.finish().unwrap());
        }
        collected.dedup();
        assert_eq!(collected.len(), 1);
        collected.pop().unwrap()
    }

    #[test]
    fn elements_are_decoded_from_buffers_of_any_size() {
        let bytes: Vec<u8> = (1..=32).collect();
        assert_eq!(collect::<u8>(&bytes), bytes);
        assert_eq!(collect::<i8>(&[0x7f, 0x80]), [127, -128]);
        assert_eq!(collect::<bool>(&[0, 1, 1]), [false, true, true]);
        assert_eq!(collect::<u16>(&bytes[..4]), [0x0201, 0x0403]);
        assert_eq!(collect::<i16>(&[0xff, 0xff, 0, 0x80]), [-1, i16::MIN]);
        assert_eq!(collect::<u32>(&bytes[..8]), [0x0403_0201, 0x0807_0605]);
        assert_eq!(collect::<i32>(&[0xfe, 0xff, 0xff, 0xff]), [-2]);
        assert_eq!(collect::<u64>(&bytes[..8]), [0x0807_0605_0403_0201]);
        assert_eq!(collect::<i64>(&(-5_i64).to_le_bytes().repeat(3)), [-5; 3]);
        assert_eq!(collect::<f16>(&[0x00, 0x3c, 0x00, 0xc0]), [f16::ONE, f16::from_f32(-2.0)]);
        assert_eq!(collect::<bf16>(&[0x80, 0x3f]), [bf16::ONE]);
        assert_eq!(collect::<f32>(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]), [1.0, -2.0]);
        assert_eq!(collect::<f64>(&1.5_f64.to_le_bytes()), [1.5]);
        assert_eq!(collect::<[f32; 2]>(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]), [[1.0, -2.0]]);
        let complex = [0.5_f64, -3.0, 7.0, 8.0].map(f64::to_le_bytes).concat();
        assert_eq!(collect::<[f64; 2]>(&complex), [[0.5, -3.0], [7.0, 8.0]]);
        assert!(collect::<f64>(&[]).is_empty());
    }

    #[test]
    fn nan_payload_is_preserved() {
        let bits = 0xffb0_1234_u32;
        let mut collector = TypedCollector::<f32>::start(&description("float32", &[], Some(4))).unwrap();
        collector.push(&bits.to_le_bytes()).unwrap();
        assert_eq!(collector.finish().unwrap()[0].to_bits(), bits);
    }

    #[test]
    fn body_length_must_match_the_shape() {
        for (buffers, shape) in [(&[4][..], &[2][..]), (&[12], &[2]), (&[8, 4], &[2]), (&[7], &[2]), (&[3, 3, 3], &[2])]
        {
            let mut collector = TypedCollector::<f32>::start(&description("float32", shape, None)).unwrap();
            let pushed = buffers.iter().try_for_each(|&len| collector.push(&vec![0; len]));
            let error = pushed.and_then(|()| collector.finish()).unwrap_err();
            assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{buffers:?}: {error:?}");
        }
        for (shape, bytes) in [(&[2][..], Some(9)), (&[u64::MAX, 2], None), (&[u64::MAX], None)] {
            let error = TypedCollector::<f32>::start(&description("float32", shape, bytes)).map(drop).unwrap_err();
            assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{shape:?}: {error:?}");
        }
    }

    #[test]
    fn elements_larger_than_memory_are_an_error() {
        let error = TypedCollector::<u8>::start(&description("uint8", &[u64::MAX], None)).map(drop).unwrap_err();
        assert!(matches!(error, ArrayError::OutOfMemory { size: u64::MAX }), "{error:?}");
        let error = BytesCollector::start(&description("uint8", &[], Some(u64::MAX))).map(drop).unwrap_err();
        assert!(matches!(error, ArrayError::OutOfMemory { size: u64::MAX }), "{error:?}");
        assert!(TypedCollector::<u8>::start(&description("uint8", &[u64::MAX, 0], None)).is_ok(), "an empty array");
    }

    #[test]
    fn other_data_types_are_an_error() {
        for data_type in [Some("float64".to_owned()), None] {
            let description = Description { data_type: data_type.clone(), ..self::description("", &[2], None) };
            match TypedCollector::<f32>::start(&description).map(drop).unwrap_err() {
                ArrayError::DataType { expected, actual } => assert_eq!((expected, actual), ("float32", data_type)),
                other => panic!("{other:?}"),
            }
        }
    }
}
