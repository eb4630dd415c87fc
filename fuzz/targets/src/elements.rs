//! Bodies of elements: `.npy` headers and JSON.

use serde_json::{Value, json};
use zarrd_meta::data_type::{DataType, V2Context, parse_v2, parse_v3};
use zarrd_wire::elements::{
    Extents,
    json::{Full, Parsed, parse},
    npy,
};

/// The maximum size of the elements of one body, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Parses an `.npy` header or JSON. The first byte selects which, the data type and the number of dimensions, whose
/// extents follow; one of them may be open.
pub fn elements(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    if choice & 1 == 0 {
        return head(rest);
    }
    let Some((extents, text)) = rest.split_at_checked(usize::from(choice >> 1) % 4) else { return };
    let shape: Vec<u64> = extents.iter().map(|extent| u64::from(extent % 8)).collect();
    // The open dimension may not exist.
    let extents = match choice >> 7 {
        0 => Extents::exactly(&shape),
        _ => Extents::open(&shape, usize::from(choice >> 5) % 4),
    };
    body(text, &data_type(choice >> 3), &extents);
}

fn data_type(choice: u8) -> DataType {
    let v3 = |data_type: Value| parse_v3(&data_type).expect("a known data type");
    match choice % 8 {
        0 => v3(json!("int8")),
        1 => v3(json!("float32")),
        2 => v3(json!("complex64")),
        3 => v3(json!("string")),
        4 => v3(json!("r16")),
        5 => v3(json!("bool")),
        6 => v3(json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}})),
        _ => parse_v2(&json!([["a", "<c8"], ["b", "|S2", [2]]]), V2Context::default()).expect("a known data type").0,
    }
}

fn head(bytes: &[u8]) {
    let Ok(Some(len)) = npy::header_len(bytes) else { return };
    assert!(len <= npy::MAX_HEADER_LEN);
    let Some(head) = bytes.get(..len) else { return };
    let found = match npy::parse_header(head) {
        Ok(found) => found,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    assert!(found.shape.len() <= zarrd_meta::limits::MAX_RANK);
    let Some(descr) = found.data_type.npy_descr() else { return };
    let written = npy::render_header(&descr, &found.shape);
    if written.len() <= npy::MAX_HEADER_LEN {
        let again = npy::parse_header(&written).expect("a head that we made");
        assert_eq!((again.data_type, again.shape), (found.data_type, found.shape));
    }
}

fn body(text: &[u8], data_type: &DataType, extents: &Extents) {
    let (mut count, mut left) = (0_u64, MAX_BYTES);
    let mut take = |element: &[u8]| {
        count += 1;
        left = left.checked_sub(element.len().max(1)).ok_or(Full)?;
        is_element(element, data_type);
        Ok(())
    };
    match parse(text, data_type, extents, &mut take) {
        Ok(Parsed::Nested { shape }) => {
            assert!(extents.fit(&shape));
            assert_eq!(count, shape.iter().product::<u64>());
        }
        Ok(Parsed::Scalar(element)) => is_element(&element, data_type),
        Err(error) => {
            let _ = error.to_string();
        }
    }
}

fn is_element(element: &[u8], data_type: &DataType) {
    assert_eq!(data_type.invalid_reason(element), None);
    assert!(data_type.fixed_size().is_none_or(|size| size == element.len()));
    let mut text = Vec::new();
    data_type.write_json(element, &mut text);
    let value: Value = serde_json::from_slice(&text).expect("JSON that we made");
    let mut again = Vec::new();
    data_type.parse_json(&value, &mut again).expect("an element that we wrote");
    assert_eq!(again, element);
}
