//! What is to be written.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;
use store::Payload;
use wire::array::Format;

use super::{ArrayError, Element};
#[cfg(feature = "ndarray")]
use super::{NpyElement, element::sealed::Npy};

/// Elements that are to be written, in C order of the region.
///
/// ```
/// use client::NewElements;
/// use serde_json::json;
///
/// let numbers = NewElements::from(&[1.5_f32, 2.5]);
/// let zero_everywhere = NewElements::from(json!(0));
/// let rows = NewElements::from(json!([[1, 2], [3, 4]]));
/// let words = NewElements::texts(["a", "bc"])?;
/// # Ok::<(), client::ArrayError>(())
/// ```
#[derive(Debug)]
pub struct NewElements {
    pub(super) format: Format,
    pub(super) content: Payload,
    /// The name of the data type that these are, where the bytes do not say it.
    pub(super) data_type: Option<&'static str>,
}

impl NewElements {
    /// The elements' bytes, every word little-endian; they may come as a stream of any length. Of variable length: their number as a `u32`, and of each
    /// its length in bytes as a `u32` and its bytes, all numbers little-endian. Nobody can tell from bytes which data type they were meant to be.
    pub fn raw(content: impl Into<Payload>) -> Self {
        Self { format: Format::Raw, content: content.into(), data_type: None }
    }

    /// Strings, for arrays of strings of variable length (`string`).
    ///
    /// Fails with [`ArrayError::Memory`] where there are more, or longer ones, than a `u32` counts.
    pub fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, ArrayError> {
        let (mut bytes, mut count) = (BytesMut::new(), 0_usize);
        bytes.put_u32_le(0);
        for text in texts {
            let text = text.as_ref();
            bytes.put_u32_le(counted(text.len())?);
            bytes.extend_from_slice(text.as_bytes());
            count = count.saturating_add(1);
        }
        let count = counted(count)?.to_le_bytes();
        bytes.iter_mut().zip(count).for_each(|(byte, of_count)| *byte = of_count);
        Ok(Self { data_type: Some("string"), ..Self::raw(bytes.freeze()) })
    }

    /// An array of the crate `ndarray`. The server refuses it where its shape is not that of the region, or its data type not the array's.
    #[cfg(feature = "ndarray")]
    pub fn ndarray<T, S, D>(array: &ndarray::ArrayBase<S, D>) -> Self
    where
        T: NpyElement,
        S: ndarray::Data<Elem = T>,
        D: ndarray::Dimension,
    {
        let mut bytes = npy_header::<T>(array.shape());
        bytes.reserve(array.len().saturating_mul(size_of::<T>()));
        // In the order of their indices, which is C order whatever the order in memory.
        array.iter().for_each(|element| element.encode(&mut bytes));
        Self { format: Format::Npy, content: Payload::from_bytes(bytes), data_type: None }
    }
}

/// Numbers, of the very data type of the array: that is asked for before they are sent, and nothing is converted.
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

/// Nested lists of the region's shape, or one scalar for all of it.
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

fn counted(number: usize) -> Result<u32, ArrayError> {
    u32::try_from(number).map_err(|_| ArrayError::Memory { size: number as u64 })
}

/// The head of a [`.npy` file](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) of version 1.0, or 2.0 where it is longer.
#[cfg(feature = "ndarray")]
fn npy_header<T: Npy>(shape: &[usize]) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    let extents = format!("{}{comma}", extents.join(", "));
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({extents}), }}", T::DESCR);
    let (version, length_bytes) = if text.len() < 65_000 { (1, 2) } else { (2, 4) };
    // Elements begin at a multiple of 64 bytes, as NumPy writes it.
    let unpadded = 8 + length_bytes + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend_from_slice(&[version, 0]);
    bytes.extend(text.len().to_le_bytes().into_iter().take(length_bytes));
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    async fn bytes(elements: NewElements) -> Vec<u8> {
        elements.content.stream.map_ok(|piece| piece.to_vec()).try_concat().await.unwrap_or_default()
    }

    #[tokio::test]
    async fn numbers_are_little_endian() {
        assert_eq!(bytes((&[0x0102_u16, 3]).into()).await, [2, 1, 3, 0]);
        assert_eq!(bytes((&[true, false]).into()).await, [1, 0]);
        assert_eq!(bytes((&[[1.0_f32, -2.0]]).into()).await, [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(NewElements::from(&vec![1_i64]).data_type, Some("int64"));
    }

    #[tokio::test]
    async fn strings_are_counted() {
        let words = NewElements::texts(["é", ""]).unwrap();
        assert_eq!(words.data_type, Some("string"));
        assert_eq!(bytes(words).await, "\u{2}\0\0\0\u{2}\0\0\0é\0\0\0\0".as_bytes());
        assert_eq!(bytes(NewElements::texts([""; 0]).unwrap()).await, [0; 4]);
    }

    #[cfg(feature = "ndarray")]
    #[tokio::test]
    async fn arrays_of_ndarray_are_npy_files() {
        // Made by `numpy.save` of NumPy 2.5.
        let header = |text: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            bytes.extend_from_slice(format!("{text:<117}\n").as_bytes());
            bytes
        };
        let array = ndarray::array![[1_u8, 2, 3], [4, 5, 6]];
        let expected = [header("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"), vec![1, 4, 2, 5, 3, 6]];
        let transposed = header("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }");
        assert_eq!(bytes(NewElements::ndarray(&array.t())).await[..128], transposed);
        assert_eq!(bytes(NewElements::ndarray(&array.t())).await[128..], expected[1]);
        let one = ndarray::arr1(&[1.0_f64]);
        let expected = header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }");
        assert_eq!(bytes(NewElements::ndarray(&one)).await[..128], expected);
        let none = ndarray::arr0(7_i16);
        let expected = header("{'descr': '<i2', 'fortran_order': False, 'shape': (), }");
        assert_eq!(bytes(NewElements::ndarray(&none)).await, [expected, vec![7, 0]].concat());
    }
}
