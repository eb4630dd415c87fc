use proptest::prelude::*;
use serde_json::json;
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{V2Context, parse_v2, parse_v3},
};

use super::*;

fn data_type(name: &str) -> DataType {
    parse_v3(&json!(name)).unwrap()
}

fn read_as(data_type: &DataType, extents: &Extents, text: &str) -> Result<(Parsed, Vec<Vec<u8>>), JsonError> {
    let mut elements = Vec::new();
    let mut take = |element: &[u8]| {
        elements.push(element.to_vec());
        Ok(())
    };
    let parsed = parse(text.as_bytes(), data_type, extents, &mut take)?;
    Ok((parsed, elements))
}

fn read(name: &str, shape: &[u64], text: &str) -> Result<(Parsed, Vec<Vec<u8>>), JsonError> {
    read_as(&data_type(name), &Extents::exactly(shape), text)
}

fn refusal(name: &str, shape: &[u64], text: &str) -> String {
    read(name, shape, text).unwrap_err().to_string()
}

fn nested_in(shape: &[u64]) -> Parsed {
    Parsed::Nested { shape: shape.to_vec() }
}

fn bytes(elements: &[i16]) -> Vec<Vec<u8>> {
    elements.iter().map(|element| element.to_le_bytes().to_vec()).collect()
}

#[test]
fn nested_lists() {
    for (shape, text, elements) in [
        (&[][..], "7", &[7][..]),
        (&[3], " [1,\n2, -3 ] ", &[1, 2, -3]),
        (&[2, 2], "[[1,2],[3,4]]", &[1, 2, 3, 4]),
        (&[1, 2, 1], "[ [[1], [2.0]]]", &[1, 2]),
        (&[0], "[]", &[]),
        (&[0, 5], "[]", &[]),
        (&[2, 0], "[[],[]]", &[]),
    ] {
        assert_eq!(read("int16", shape, text).unwrap(), (nested_in(shape), bytes(elements)), "{text}");
    }
}

#[test]
fn one_value_for_all() {
    for (name, text, element) in [
        ("int16", "-2", vec![0xfe, 0xff]),
        ("string", r#""é""#, "é".as_bytes().to_vec()),
        ("float32", r#""NaN""#, f32::NAN.to_le_bytes().to_vec()),
        ("complex64", "[1, 2]", [1_f32, 2.0].map(f32::to_le_bytes).concat()),
        ("r16", "[1, 2]", vec![1, 2]),
        ("r16", r#""AQI=""#, vec![1, 2]),
    ] {
        for shape in [&[4][..], &[2, 2], &[1], &[0]] {
            assert_eq!(read(name, shape, text).unwrap(), (Parsed::Scalar(element.clone()), vec![]), "{name} {shape:?}");
        }
        assert_eq!(read(name, &[], text).unwrap(), (nested_in(&[]), vec![element]), "{name}");
    }
}

/// For elements that are lists, the depth decides.
#[test]
fn elements_that_are_lists() {
    let complex = |re: f32, im: f32| [re, im].map(f32::to_le_bytes).concat();
    let two = vec![complex(1.0, 2.0), complex(3.0, 4.0)];
    assert_eq!(read("complex64", &[2], "[[1,2],[3,4]]").unwrap(), (nested_in(&[2]), two));
    assert_eq!(read("r16", &[2], "[[1,2],[3,4]]").unwrap().1, [[1, 2], [3, 4]]);
    assert_eq!(read("r16", &[2], r#"["AQI=", "AwQ="]"#).unwrap(), (nested_in(&[2]), vec![vec![1, 2], vec![3, 4]]));
    assert_eq!(read("complex64", &[0], "[]").unwrap().0, nested_in(&[0]));
    let pair = parse_v2(&json!([["a", "<c8"], ["b", "|u1"]]), V2Context::default()).unwrap().0;
    let element = [complex(1.0, 2.0), vec![3]].concat();
    for (shape, text, parsed) in [
        (&[1][..], "[[[1,2],3]]", nested_in(&[1])),
        (&[1, 1], "[[[[1,2],3]]]", nested_in(&[1, 1])),
        (&[1, 1], "[[1,2],3]", Parsed::Scalar(element.clone())),
    ] {
        let (found, elements) = read_as(&pair, &Extents::exactly(shape), text).unwrap();
        assert_eq!((found == parsed, elements.first().unwrap_or(&element)), (true, &element), "{text}");
    }
    assert_eq!(
        refusal("complex64", &[2], "[1,2,3]"),
        "the element at the top: an array of 3 is no complex64: it is an array of the real and the imaginary part"
    );
    let filter = CodecSpec::numcodecs("vlen-array", json!({"dtype": "<i2"}).as_object().unwrap().clone());
    let ragged = parse_v2(&json!("|O"), V2Context { object_codec: Some(&filter) }).unwrap().0;
    let extents = Extents::exactly(&[2]);
    assert_eq!(read_as(&ragged, &extents, "[[], [1]]").unwrap(), (nested_in(&[2]), vec![vec![], vec![1, 0]]));
    assert_eq!(read_as(&ragged, &extents, "[1, 2]").unwrap().0, Parsed::Scalar(vec![1, 0, 2, 0]));
}

#[test]
fn open_dimensions() {
    let open = |dimension, text| read_as(&data_type("int16"), &Extents::open(&[9, 2], dimension), text);
    assert_eq!(open(0, "[[1,2],[3,4],[5,6]]").unwrap(), (nested_in(&[3, 2]), bytes(&[1, 2, 3, 4, 5, 6])));
    assert_eq!(open(0, "[]").unwrap().0, nested_in(&[0, 2]));
    assert_eq!(open(0, "5").unwrap().0, Parsed::Scalar(vec![5, 0]));
    let open = |text| read_as(&data_type("int16"), &Extents::open(&[2, 9], 1), text);
    assert_eq!(open("[[1],[2]]").unwrap(), (nested_in(&[2, 1]), bytes(&[1, 2])));
    assert_eq!(open("[[1],[2,3]]").unwrap_err().to_string(), "the list at [1] has 2 entries, but the shape needs 1");
    let empty = read_as(&data_type("int16"), &Extents::open(&[0, 9], 1), "[]");
    assert_eq!(empty.unwrap().0, nested_in(&[0, 0]));
}

#[test]
fn errors_name_the_indices() {
    for (name, shape, text, why) in [
        ("int8", &[2][..], "[1]", "the list at the top has 1 entries, but the shape needs 2"),
        ("int8", &[2], "[1,2,3,4]", "the list at the top has 3 entries, but the shape needs 2"),
        ("int8", &[0], "[1]", "the list at the top has 1 entries, but the shape needs 0"),
        ("int8", &[2, 2], "[[1,2],[3]]", "the list at [1] has 1 entries, but the shape needs 2"),
        ("int8", &[2, 2], "[[1,2],3]", "expected a list at [1], for a shape of 2 dimensions"),
        ("int8", &[2, 2], "[1,2]", "expected a list at [0], for a shape of 2 dimensions"),
        ("int8", &[2], "[1,[2]]", "the element at [1]: an array of 1 is no int8: it is an integer"),
        ("int8", &[], "[1]", "the element at the top: an array of 1 is no int8: it is an integer"),
        ("int8", &[2, 2], "[[1,2],[3,200]]", "the element at [1, 1]: 200 is no int8: it is out of range"),
        ("int8", &[1], r#"["NaN"]"#, "the element at [0]: \"NaN\" is no int8: it is an integer"),
        ("int8", &[2], "null", "the element at the top: null is no int8: it is an integer"),
        ("bool", &[1], "[1]", "the element at [0]: 1 is no bool: it is true or false"),
        ("string", &[1], "[{\"a\": 1}]", "the element at [0]: an object of 1 is no string: it is a text"),
        ("int8", &[1], "[1", "the body is not JSON: EOF while parsing a list at line 1 column 2"),
        ("int8", &[1], "[1] 2", "the body is not JSON: trailing characters at line 1 column 5"),
        ("float32", &[1], "[NaN]", "the body is not JSON: expected value at line 1 column 2"),
        ("int8", &[1], "", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        ("float64", &[1], "[1e999]", "the body is not JSON: number out of range at line 1 column 6"),
    ] {
        assert_eq!(refusal(name, shape, text), why, "{name} {shape:?} {text}");
    }
}

#[test]
fn what_is_hostile() {
    let deep = "[".repeat(1 << 20);
    for shape in [&[][..], &[1], &[1; 64]] {
        assert!(matches!(read("int8", shape, &deep), Err(JsonError::NotJson(_))), "{shape:?}");
    }
    let wide = format!("[[{}0]]", "0,".repeat(3 << 20));
    assert!(matches!(read("int8", &[1], &wide), Err(JsonError::LargeElement { at }) if at == [0]));
    let members = format!("[{{{}\"\":0}}]", "\"\":0,".repeat(1 << 20));
    assert!(matches!(read("int8", &[1], &members), Err(JsonError::LargeElement { .. })));
    let mut left = 3;
    let mut take = |_: &[u8]| {
        left -= 1;
        if left == 0 { Err(Full) } else { Ok(()) }
    };
    let full = parse(b"[1,2,3,4]", &data_type("int8"), &Extents::exactly(&[4]), &mut take);
    assert!(matches!(full, Err(JsonError::Full(Full))));
}

fn shaped(shape: &[u64], elements: &[i16]) -> Value {
    let mut nested: Vec<Value> = elements.iter().map(|&element| json!(element)).collect();
    for &extent in shape.iter().rev() {
        nested = nested.chunks(extent as usize).map(|list| Value::from(list.to_vec())).collect();
    }
    nested.swap_remove(0)
}

proptest! {
    #[test]
    fn generated_elements_round_trip(shape in prop::collection::vec(1_u64..4, 0..5), seed in any::<i16>()) {
        let count = shape.iter().product::<u64>() as i16;
        let elements: Vec<i16> = (0..count).map(|element| element.wrapping_mul(seed)).collect();
        let found = read("int16", &shape, &shaped(&shape, &elements).to_string()).unwrap();
        prop_assert_eq!(found, (nested_in(&shape), bytes(&elements)));
        for dimension in 0..shape.len() {
            let text = shaped(&shape, &elements).to_string();
            let found = read_as(&data_type("int16"), &Extents::open(&shape, dimension), &text).unwrap();
            prop_assert_eq!(found, (nested_in(&shape), bytes(&elements)));
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[\\[\\],0-9\"e. {}:ntrue-]{0,40}", shape in prop::collection::vec(0_u64..3, 0..4)) {
        for name in ["int8", "complex64", "string", "r16"] {
            if let Ok((Parsed::Nested { shape: found }, elements)) = read(name, &shape, &text) {
                prop_assert_eq!(found, shape.clone());
                prop_assert_eq!(elements.len() as u64, shape.iter().product::<u64>());
            }
        }
    }
}
