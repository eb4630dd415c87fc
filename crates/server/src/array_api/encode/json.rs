//! `format=json`: nested lists, or a bare value for a scalar.

use zarrd_meta::data_type::DataType;

use super::{encoder::ElementEncoder, numpy_json, slice::ArraySlice};

/// Encodes elements as JSON.
pub(super) struct JsonEncoder {
    brackets: Brackets,
    leaf: Leaf,
}

enum Leaf {
    Element(DataType),
    /// An element that NumPy converts back to its type.
    NumpyElement(DataType),
    /// The innermost list of a shape with an empty dimension, written in place of elements.
    EmptyList,
}

/// Writes the brackets and commas of nested lists.
struct Brackets {
    shape: Vec<u64>,
    /// The position of the next element; all zeros before the first and after the last.
    at: Vec<u64>,
    progress: bool,
}

impl JsonEncoder {
    pub(super) fn new(slice: &ArraySlice) -> Self {
        Self::of_leaves(slice, Leaf::Element(slice.data_type.clone()))
    }

    /// An encoder of elements that NumPy converts back to their type.
    pub(super) fn for_numpy(slice: &ArraySlice) -> Self {
        Self::of_leaves(slice, Leaf::NumpyElement(slice.data_type.clone()))
    }

    fn of_leaves(slice: &ArraySlice, leaf: Leaf) -> Self {
        match slice.outer_extents() {
            Some(outer_extents) => Self { brackets: Brackets::new(outer_extents), leaf: Leaf::EmptyList },
            None => Self { brackets: Brackets::new(&slice.shape), leaf },
        }
    }
}

impl ElementEncoder for JsonEncoder {
    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>) {
        self.brackets.open(out);
        match &self.leaf {
            Leaf::Element(data_type) => data_type.write_json(element, out),
            Leaf::NumpyElement(data_type) => numpy_json::write(data_type, element, out),
            Leaf::EmptyList => out.extend_from_slice(b"[]"),
        }
        self.brackets.close(out);
    }
}

impl Brackets {
    fn new(shape: &[u64]) -> Self {
        Self { shape: shape.to_vec(), at: vec![0; shape.len()], progress: false }
    }

    /// Writes the text before the next element.
    fn open(&mut self, out: &mut Vec<u8>) {
        if self.progress {
            out.push(b',');
        }
        self.progress = true;
        // Most elements are within a list.
        if self.at.last().is_some_and(|&at| at > 0) {
            return;
        }
        let opening = self.at.iter().rev().take_while(|&&at| at == 0).count();
        out.resize(out.len() + opening, b'[');
    }

    /// Writes the text after it.
    fn close(&mut self, out: &mut Vec<u8>) {
        for (at, &extent) in self.at.iter_mut().zip(&self.shape).rev() {
            *at += 1;
            if *at < extent {
                return;
            }
            *at = 0;
            out.push(b']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{encoded, slice};
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn json(shape: &[u64], elements: &[u8]) -> String {
        let elements: Vec<&[u8]> = elements.chunks(1).collect();
        encoded(JsonEncoder::new(&slice("int8", shape)), &elements)
    }

    #[test]
    fn lists_are_nested() {
        assert_eq!(json(&[], &[7]), "7");
        assert_eq!(json(&[3], &[1, 2, 255]), "[1,2,-1]");
        assert_eq!(json(&[2, 2], &[1, 2, 3, 4]), "[[1,2],[3,4]]");
        assert_eq!(json(&[1, 2, 1], &[1, 2]), "[[[1],[2]]]");
    }

    #[test]
    fn empty_dimensions_are_empty_lists() {
        // The encoder receives one empty text for each placeholder of `ArraySlice::placeholders`.
        for (shape, text) in [(&[0][..], "[]"), (&[0, 3], "[]"), (&[2, 0], "[[],[]]"), (&[2, 1, 0, 5], "[[[]],[[]]]")] {
            let slice = slice("int8", shape);
            let placeholders = vec![&b""[..]; slice.placeholders().unwrap() as usize];
            assert_eq!(encoded(JsonEncoder::new(&slice), &placeholders), text, "{shape:?}");
        }
    }

    #[test]
    fn elements_are_written_by_their_type() {
        let floats = [1.5_f32, f32::NAN, f32::NEG_INFINITY].map(f32::to_le_bytes);
        let floats: Vec<&[u8]> = floats.iter().map(|float| &float[..]).collect();
        assert_eq!(encoded(JsonEncoder::new(&slice("float32", &[3])), &floats), r#"[1.5,"NaN","-Infinity"]"#);
        let text = encoded(JsonEncoder::new(&slice("string", &[2])), &[b"a\"b", "é\n".as_bytes()]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!(["a\"b", "é\n"]));
    }

    proptest! {
        #[test]
        fn nesting_matches_numpy(shape in prop::collection::vec(1_u64..4, 0..5)) {
            let count = shape.iter().product::<u64>() as usize;
            let elements: Vec<u8> = (0..count).map(|element| (element % 100) as u8).collect();
            let mut nested: Vec<Value> = elements.iter().map(|&element| json!(element)).collect();
            for &extent in shape.iter().rev() {
                nested = nested.chunks(extent as usize).map(|list| Value::from(list.to_vec())).collect();
            }
            let read: Value = serde_json::from_str(&json(&shape, &elements)).unwrap();
            prop_assert_eq!(Some(&read), nested.first());
        }
    }
}
