//! Elements as they are put together from pieces.

use bytes::{Bytes, BytesMut};

use super::{ArrayError, Description, element::sealed::Decode};
use crate::failure::Fault;

/// Puts the elements of an answer together.
pub(super) trait Gather: Sized + Send {
    /// What becomes of them.
    type Content;

    /// Begins with elements that are described so.
    fn begin(description: &Description) -> Result<Self, ArrayError>;

    /// Takes the next bytes.
    fn take(&mut self, piece: &[u8]) -> Result<(), ArrayError>;

    /// Ends: there are no more bytes.
    fn finish(self) -> Result<Self::Content, ArrayError>;
}

/// Elements as bytes.
pub(super) struct Pieces {
    all: Vec<u8>,
}

/// Elements as numbers.
pub(super) struct Numbers<T> {
    all: Vec<T>,
    /// The beginning of a number whose end has not come yet.
    begun: BytesMut,
    /// How many there are.
    count: usize,
}

impl Gather for Pieces {
    type Content = Bytes;

    fn begin(description: &Description) -> Result<Self, ArrayError> {
        Ok(Self { all: with_room(description.bytes.unwrap_or(0), 1)? })
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), ArrayError> {
        let size = (self.all.len() as u64).saturating_add(piece.len() as u64);
        self.all.try_reserve(piece.len()).map_err(|_| ArrayError::Memory { size })?;
        self.all.extend_from_slice(piece);
        Ok(())
    }

    fn finish(self) -> Result<Bytes, ArrayError> {
        Ok(self.all.into())
    }
}

impl<T: Decode> Gather for Numbers<T> {
    type Content = Vec<T>;

    fn begin(description: &Description) -> Result<Self, ArrayError> {
        if description.data_type.as_deref() != Some(T::NAME) {
            return Err(ArrayError::DataType { expected: T::NAME, found: description.data_type.clone() });
        }
        let size = description.elements().and_then(|count| count.checked_mul(T::SIZE as u64));
        if size.is_none() || description.bytes.is_some_and(|stated| Some(stated) != size) {
            return Err(Fault::protocol("the answer has another length than its shape").into());
        }
        let count = description.elements().unwrap_or_default();
        let all = with_room(count, T::SIZE as u64)?;
        Ok(Self { all, begun: BytesMut::new(), count: usize::try_from(count).unwrap_or(usize::MAX) })
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), ArrayError> {
        let missing = if self.begun.is_empty() { 0 } else { T::SIZE.saturating_sub(self.begun.len()) };
        let (first, rest) = piece.split_at_checked(missing).unwrap_or((piece, &[]));
        self.begun.extend_from_slice(first);
        if self.begun.len() == T::SIZE {
            T::decode(&self.begun, &mut self.all);
            self.begun.clear();
        }
        let room = self.count.saturating_sub(self.all.len());
        if rest.len().div_ceil(T::SIZE) > room {
            return Err(other_count());
        }
        let (whole, begun) = rest.split_at_checked(rest.len() / T::SIZE * T::SIZE).unwrap_or((rest, &[]));
        T::decode(whole, &mut self.all);
        self.begun.extend_from_slice(begun);
        Ok(())
    }

    fn finish(self) -> Result<Vec<T>, ArrayError> {
        if self.all.len() != self.count || !self.begun.is_empty() {
            return Err(other_count());
        }
        Ok(self.all)
    }
}

/// Room for `count` values of `size` bytes each, which a server claims that there are.
fn with_room<T>(count: u64, size: u64) -> Result<Vec<T>, ArrayError> {
    let mut all = Vec::new();
    let reserved = usize::try_from(count).ok().map(|count| all.try_reserve_exact(count));
    match reserved {
        Some(Ok(())) => Ok(all),
        _ => Err(ArrayError::Memory { size: count.saturating_mul(size) }),
    }
}

fn other_count() -> ArrayError {
    Fault::protocol("other elements came than the shape says").into()
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use meta::Dialect;

    use super::*;

    fn description(data_type: &str, shape: &[u64], bytes: Option<u64>) -> Description {
        Description {
            shape: shape.to_vec(),
            data_type: Some(data_type.to_owned()),
            dimension_names: Vec::new(),
            dialect: Dialect::V3,
            version: None,
            bytes,
        }
    }

    /// The numbers that the bytes are, however they are cut into pieces.
    fn numbers<T: Decode + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Vec<T> {
        let shape = [(bytes.len() / T::SIZE) as u64];
        let mut found: Vec<Vec<T>> = Vec::new();
        for pieces in 1..=bytes.len() + 1 {
            let mut gather = Numbers::<T>::begin(&description(T::NAME, &shape, None)).unwrap();
            bytes.chunks(pieces).for_each(|piece| gather.take(piece).unwrap());
            gather.take(&[]).unwrap();
            found.push(gather.finish().unwrap());
        }
        found.dedup();
        assert_eq!(found.len(), 1);
        found.pop().unwrap()
    }

    #[test]
    fn numbers_are_little_endian_however_they_come() {
        let bytes: Vec<u8> = (1..=32).collect();
        assert_eq!(numbers::<u8>(&bytes), bytes);
        assert_eq!(numbers::<i8>(&[0x7f, 0x80]), [127, -128]);
        assert_eq!(numbers::<bool>(&[0, 1, 1]), [false, true, true]);
        assert_eq!(numbers::<u16>(&bytes[..4]), [0x0201, 0x0403]);
        assert_eq!(numbers::<i16>(&[0xff, 0xff, 0, 0x80]), [-1, i16::MIN]);
        assert_eq!(numbers::<u32>(&bytes[..8]), [0x0403_0201, 0x0807_0605]);
        assert_eq!(numbers::<i32>(&[0xfe, 0xff, 0xff, 0xff]), [-2]);
        assert_eq!(numbers::<u64>(&bytes[..8]), [0x0807_0605_0403_0201]);
        assert_eq!(numbers::<i64>(&(-5_i64).to_le_bytes().repeat(3)), [-5; 3]);
        assert_eq!(numbers::<f16>(&[0x00, 0x3c, 0x00, 0xc0]), [f16::ONE, f16::from_f32(-2.0)]);
        assert_eq!(numbers::<bf16>(&[0x80, 0x3f]), [bf16::ONE]);
        assert_eq!(numbers::<f32>(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]), [1.0, -2.0]);
        assert_eq!(numbers::<f64>(&1.5_f64.to_le_bytes()), [1.5]);
        assert_eq!(numbers::<[f32; 2]>(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]), [[1.0, -2.0]]);
        let complex = [0.5_f64, -3.0, 7.0, 8.0].map(f64::to_le_bytes).concat();
        assert_eq!(numbers::<[f64; 2]>(&complex), [[0.5, -3.0], [7.0, 8.0]]);
        assert!(numbers::<f64>(&[]).is_empty());
    }

    #[test]
    fn a_nan_keeps_its_payload() {
        let bits = 0xffb0_1234_u32;
        assert_eq!(numbers_of_bits(bits), bits);
    }

    fn numbers_of_bits(bits: u32) -> u32 {
        let mut gather = Numbers::<f32>::begin(&description("float32", &[], Some(4))).unwrap();
        gather.take(&bits.to_le_bytes()).unwrap();
        gather.finish().unwrap()[0].to_bits()
    }

    #[test]
    fn more_or_less_than_the_shape_says() {
        for (pieces, shape) in [(&[4][..], &[2][..]), (&[12], &[2]), (&[8, 4], &[2]), (&[7], &[2]), (&[3, 3, 3], &[2])]
        {
            let mut gather = Numbers::<f32>::begin(&description("float32", shape, None)).unwrap();
            let taken = pieces.iter().try_for_each(|&len| gather.take(&vec![0; len]));
            let error = taken.and_then(|()| gather.finish()).unwrap_err();
            assert!(matches!(error, ArrayError::Protocol { .. }), "{pieces:?}: {error:?}");
        }
        for (shape, bytes) in [(&[2][..], Some(9)), (&[u64::MAX, 2], None), (&[u64::MAX], None)] {
            let error = Numbers::<f32>::begin(&description("float32", shape, bytes)).map(drop).unwrap_err();
            assert!(matches!(error, ArrayError::Protocol { .. }), "{shape:?}: {error:?}");
        }
    }

    #[test]
    fn what_no_machine_holds() {
        let error = Numbers::<u8>::begin(&description("uint8", &[u64::MAX], None)).map(drop).unwrap_err();
        assert!(matches!(error, ArrayError::Memory { size: u64::MAX }), "{error:?}");
        let error = Pieces::begin(&description("uint8", &[], Some(u64::MAX))).map(drop).unwrap_err();
        assert!(matches!(error, ArrayError::Memory { size: u64::MAX }), "{error:?}");
        assert!(Numbers::<u8>::begin(&description("uint8", &[u64::MAX, 0], None)).is_ok(), "there are none");
    }

    #[test]
    fn nothing_is_converted() {
        for found in [Some("float64".to_owned()), None] {
            let described = Description { data_type: found.clone(), ..description("", &[2], None) };
            match Numbers::<f32>::begin(&described).map(drop).unwrap_err() {
                ArrayError::DataType { expected, found: told } => assert_eq!((expected, told), ("float32", found)),
                other => panic!("{other:?}"),
            }
        }
    }
}
