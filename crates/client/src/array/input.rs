//! Elements to be written.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;
use zarrd_store::Payload;
use zarrd_wire::array::Format;
#[cfg(feature = "ndarray")]
use zarrd_wire::elements::npy::render_header;

#[cfg(feature = "ndarray")]
use super::NpyElement;
use super::{ArrayError, Element};

/// Elements to be written, in the C order of the region.
///
/// ```
/// use zarrd_client::NewElements;
/// use serde_json::json;
///
/// let numbers = NewElements::from(&[1.5_f32, 2.5]);
/// let zero_everywhere = NewElements::from(json!(0));
/// let rows = NewElements::from(json!([[1, 2], [3, 4]]));
/// let strings = NewElements::strings(["a", "bc"])?;
/// # Ok::<(), zarrd_client::ArrayError>(())
/// ```
#[derive(Debug)]
pub struct NewElements {
    pub(super) format: Format,
    pub(super) content: Payload,
    /// The expected data type of the array, if the encoding does not imply it.
    pub(super) data_type: Option<&'static str>,
}

impl NewElements {
    /// Creates elements from their little-endian bytes, which may be a stream of any length. Elements of variable
    /// length are encoded as their number (`u32`), followed by the length in bytes (`u32`) and the bytes of each, all
    /// little-endian. The data type cannot be checked.
    pub fn raw(content: impl Into<Payload>) -> Self {
        Self { format: Format::Raw, content: content.into(), data_type: None }
    }

    /// Creates elements from an `.npy` file, which may be a stream. The server checks its shape, and converts its data
    /// type to that of the array if that preserves its kind.
    pub fn npy(content: impl Into<Payload>) -> Self {
        Self { format: Format::Npy, ..Self::raw(content) }
    }

    /// Creates strings of variable length, for arrays of the data type `string`.
    ///
    /// Fails with [`ArrayError::OutOfMemory`] if the number or the length of the strings exceeds `u32::MAX`.
    pub fn strings<T: AsRef<str>>(strings: impl IntoIterator<Item = T>) -> Result<Self, ArrayError> {
        let (mut bytes, mut count) = (BytesMut::new(), 0_usize);
        bytes.put_u32_le(0);
        for string in strings {
            let string = string.as_ref();
            bytes.put_u32_le(encoded_count(string.len())?);
            bytes.extend_from_slice(string.as_bytes());
            count = count.saturating_add(1);
        }
        let count = encoded_count(count)?.to_le_bytes();
        bytes.iter_mut().zip(count).for_each(|(placeholder, byte)| *placeholder = byte);
        Ok(Self { data_type: Some("string"), ..Self::raw(bytes.freeze()) })
    }

    /// Creates elements from an array of the `ndarray` crate. The server checks its shape and data type.
    #[cfg(feature = "ndarray")]
    pub fn ndarray<T, S, D>(array: &ndarray::ArrayBase<S, D>) -> Self
    where
        T: NpyElement,
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        let shape: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
        let mut bytes = render_header(&format!("'{}'", T::DESCR), &shape);
        bytes.reserve(array.len().saturating_mul(size_of::<T>()));
        // The iterator is in C order, whatever the memory layout.
        array.iter().for_each(|element| element.encode(&mut bytes));
        Self::npy(Payload::from_bytes(bytes))
    }
}

/// Numbers of the data type of the array, which is checked before they are sent; nothing is converted.
impl<T: Element> From<&[T]> for NewElements {
    fn from(elements: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|element| element.encode(&mut bytes));
        Self { data_type: Some(T::NAME), ..Self::raw(bytes) }
    }
}

impl<T: Element, const N: usize> From<&[T; N]> for NewElements {
    fn from(elements: &[T; N]) -> Self {
        elements.as_slice().into()
    }
}

impl<T: Element> From<&Vec<T>> for NewElements {
    fn from(elements: &Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

/// Nested lists with the shape of the region, or one scalar for all of its elements.
impl From<Value> for NewElements {
    fn from(json: Value) -> Self {
        Self { format: Format::Json, content: Payload::from_bytes(json.to_string()), data_type: None }
    }
}

impl From<Payload> for NewElements {
    fn from(content: Payload) -> Self {
        Self::raw(content)
    }
}

impl From<Bytes> for NewElements {
    fn from(bytes: Bytes) -> Self {
        Self::raw(bytes)
    }
}

/// A count or length as the `u32` of the encoding.
fn encoded_count(count: usize) -> Result<u32, ArrayError> {
    u32::try_from(count).map_err(|_| ArrayError::OutOfMemory { size: count as u64 })
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    async fn encoded(elements: NewElements) -> Vec<u8> {
        elements.content.stream.map_ok(|bytes| bytes.to_vec()).try_concat().await.unwrap_or_default()
    }

    #[tokio::test]
    async fn numbers_are_little_endian() {
        assert_eq!(encoded((&[0x0102_u16, 3]).into()).await, [2, 1, 3, 0]);
        assert_eq!(encoded((&[true, false]).into()).await, [1, 0]);
        assert_eq!(encoded((&[[1.0_f32, -2.0]]).into()).await, [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(NewElements::from(&vec![1_i64]).data_type, Some("int64"));
    }

    #[tokio::test]
    async fn strings_are_preceded_by_their_lengths() {
        let strings = NewElements::strings(["é", ""]).unwrap();
        assert_eq!(strings.data_type, Some("string"));
        assert_eq!(encoded(strings).await, "\u{2}\0\0\0\u{2}\0\0\0é\0\0\0\0".as_bytes());
        assert_eq!(encoded(NewElements::strings([""; 0]).unwrap()).await, [0; 4]);
    }

    #[cfg(feature = "ndarray")]
    #[tokio::test]
    async fn ndarrays_are_encoded_as_npy() {
        // Written by `numpy.save` of NumPy 2.5.
        let header = |text: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            bytes.extend_from_slice(format!("{text:<117}\n").as_bytes());
            bytes
        };
        let array = ndarray::array![[1_u8, 2, 3], [4, 5, 6]];
        let expected = [header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"), vec![1, 4, 2, 5, 3, 6]];
        let transposed = header("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }");
        assert_eq!(encoded(NewElements::ndarray(&array.t())).await[..128], transposed);
        assert_eq!(encoded(NewElements::ndarray(&array.t())).await[128..], expected[1]);
        let vector = ndarray::arr1(&[1.0_f64]);
        let expected = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }");
        assert_eq!(encoded(NewElements::ndarray(&vector)).await[..128], expected);
        let scalar = ndarray::arr0(7_i16);
        let expected = header("{'descr': '<i2', 'fortran_order': False, 'shape': (), }");
        assert_eq!(encoded(NewElements::ndarray(&scalar)).await, [expected, vec![7, 0]].concat());
    }
}
