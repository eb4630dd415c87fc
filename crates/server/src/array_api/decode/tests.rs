#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;

use bytes::BytesMut;
use futures::TryStreamExt;
use proptest::prelude::*;
use serde_json::{Value, json};
use zarrd_array::Arrays;
use zarrd_codec::VariableElements;
use zarrd_meta::data_type::{V2Context, parse_v2, parse_v3};
use zarrd_store::{MemoryStore, StoreError, UploadError};
use zarrd_wire::{elements::npy::render_header, problem::ProblemType};

use super::*;
use crate::error::ApiError;

const LIMIT: u64 = 1 << 20;

/// The decoded elements of a body.
#[derive(Clone, Debug, PartialEq)]
enum Decoded {
    Fixed(Vec<u8>, Option<u64>),
    Variable(Vec<Vec<u8>>, Option<u64>),
    Scalar(Vec<u8>, Option<u64>),
}

/// A request body.
#[derive(Clone, Copy)]
struct TestBody<'a> {
    media_type: &'a str,
    bytes: &'a [u8],
    /// The length of the pieces in which it arrives.
    piece_len: usize,
    /// The announced length.
    size: Option<u64>,
}

const RAW: &str = "application/octet-stream";
const NPY: &str = "application/x-npy";
const JSON: &str = "application/json";

fn test_body<'a>(media_type: &'a str, bytes: &'a [u8]) -> TestBody<'a> {
    TestBody { media_type, bytes, piece_len: 1 << 16, size: Some(bytes.len() as u64) }
}

fn arrays() -> Arrays {
    Arrays::new(Arc::new(MemoryStore::new()), zarrd_array::Options::default())
}

async fn decode_test_body(
    test_body: TestBody<'_>,
    data_type: DataType,
    extents: Extents,
) -> Result<Decoded, DecodeError> {
    let arrays = arrays();
    let claim = arrays.memory().claim(zarrd_array::Caller::UNKNOWN);
    let context =
        DecodeContext { text_limit: LIMIT, arrays: arrays.for_request(claim.clone(), None), claim: claim.clone() };
    let piece_len: Vec<_> =
        test_body.bytes.chunks(test_body.piece_len).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let body = ElementsBody {
        boundary: None,
        media_type: Some(test_body.media_type.to_owned()),
        size: test_body.size,
        stream: stream::iter(piece_len).boxed(),
        claim,
    };
    let DecodedBody { elements, count, .. } =
        context.decode(body, ExpectedElements { data_type, extents, conversions: Conversions::default() }).await?;
    Ok(match elements {
        ElementSource::Fixed(stream) => {
            let all = stream.try_collect::<BytesMut>().await;
            Decoded::Fixed(
                all.map_err(|error| DecodeError::from_stream_error(error).unwrap_or_else(DecodeError::Store))?.to_vec(),
                count,
            )
        }
        ElementSource::Variable(elements) => Decoded::Variable(to_vecs(&elements), count),
        ElementSource::Scalar(element) => Decoded::Scalar(element, count),
    })
}

fn to_vecs(elements: &VariableElements) -> Vec<Vec<u8>> {
    elements.iter().map(<[u8]>::to_vec).collect()
}

fn data_type_v3(data_type: &str) -> DataType {
    parse_v3(&serde_json::from_str(data_type).unwrap_or_else(|_| Value::from(data_type))).unwrap()
}

fn data_type_v2(dtype: Value) -> DataType {
    parse_v2(&dtype, V2Context::default()).unwrap().0
}

fn exactly(shape: &[u64]) -> Extents {
    Extents::exactly(shape)
}

/// Decodes a body in pieces of several lengths, with and without an announced length, and checks that all results are
/// equal.
fn decode_all(media_type: &str, bytes: &[u8], data_type: &DataType, extents: &Extents) -> Result<Decoded, DecodeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run = |test_body| runtime.block_on(decode_test_body(test_body, data_type.clone(), extents.clone()));
    let expected_result = run(test_body(media_type, bytes));
    for piece_len in [1, 3, 1 << 16] {
        let other = run(TestBody { piece_len, size: None, ..test_body(media_type, bytes) });
        match (&expected_result, other) {
            // The number of steps in raw bytes is unknown until the body ends if its length was not announced.
            (Ok(Decoded::Fixed(expected, _)), Ok(Decoded::Fixed(found, _))) => assert_eq!(expected, &found),
            (Ok(expected), Ok(found)) => assert_eq!(expected, &found),
            // With an announced length, the wrong length is reported before the invalid element.
            (Err(DecodeError::Length { .. }), Err(DecodeError::Element { .. })) => {}
            (Err(expected), Err(found)) => {
                assert_eq!(std::mem::discriminant(expected), std::mem::discriminant(&found));
            }
            (Err(DecodeError::Steps { .. }), Ok(Decoded::Fixed(found, None))) => assert_eq!(found, bytes),
            (expected, found) => panic!("{expected:?} where it was announced, else {found:?}"),
        }
    }
    expected_result
}

fn decode_error(media_type: &str, bytes: &[u8], data_type: &str, extents: &Extents) -> String {
    decode_all(media_type, bytes, &data_type_v3(data_type), extents).unwrap_err().to_string()
}

/// A `.npy` file of version 1, as NumPy 2.5 writes it: the padded header, then the elements.
fn npy(text: &str, elements: &[u8]) -> Vec<u8> {
    let text = format!("{text:<117}\n");
    [b"\x93NUMPY\x01\x00".as_slice(), &(text.len() as u16).to_le_bytes(), text.as_bytes(), elements].concat()
}

#[test]
fn raw_elements_of_fixed_size() {
    let decode_all = |bytes: &[u8], extents| decode_all(RAW, bytes, &data_type_v3("int16"), &extents);
    assert_eq!(decode_all(&[1, 2, 3, 4], exactly(&[2])).unwrap(), Decoded::Fixed(vec![1, 2, 3, 4], None));
    assert_eq!(decode_all(&[1, 2], exactly(&[])).unwrap(), Decoded::Fixed(vec![1, 2], None));
    assert_eq!(decode_all(&[], exactly(&[0, 9])).unwrap(), Decoded::Fixed(vec![], None));
    assert_eq!(
        decode_all(&[1, 2, 3, 4], Extents::open(&[9, 1], 0)).unwrap(),
        Decoded::Fixed(vec![1, 2, 3, 4], Some(2))
    );
    assert_eq!(decode_all(&[], Extents::open(&[9, 0], 0)).unwrap(), Decoded::Fixed(vec![], Some(0)));
    assert!(matches!(decode_all(&[1, 2, 3], exactly(&[2])), Err(DecodeError::Length { expected: 4, .. })));
    assert!(matches!(decode_all(&[1; 5], exactly(&[2])), Err(DecodeError::Length { expected: 4, found: 5 })));
    assert!(matches!(decode_all(&[1; 5], Extents::open(&[9, 2], 0)), Err(DecodeError::Steps { step: 4, found: 5 })));
    assert!(matches!(decode_all(&[1; 5], exactly(&[u64::MAX])), Err(DecodeError::Length { expected: u64::MAX, .. })));
    // No media type.
    assert!(matches!(body_format(None), Ok(Format::Raw)));
    assert_eq!(decode_error("text/csv", b"1,2", "int8", &exactly(&[2])), "unsupported Content-Type: text/csv");
}

#[test]
fn booleans_must_be_0_or_1() {
    let text = |bytes: &[u8], extents| {
        decode_all(RAW, bytes, &data_type_v3("bool"), &extents).map_err(|error| error.to_string())
    };
    assert_eq!(text(&[0, 1, 1, 0], exactly(&[2, 2])), Ok(Decoded::Fixed(vec![0, 1, 1, 0], None)));
    let flaw = |at| Err(format!("the element at {at} is not valid for the data type: a byte is neither 0 nor 1"));
    assert_eq!(text(&[0, 1, 2, 0], exactly(&[2, 2])), flaw("[1, 0]"));
    assert_eq!(text(&[0, 1, 1, 0, 255, 0], Extents::open(&[7, 2], 0)), flaw("[2, 0]"));
    let file = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", &[1, 3]);
    assert_eq!(
        decode_all(NPY, &file, &data_type_v3("bool"), &exactly(&[2])).map_err(|error| error.to_string()),
        flaw("[1]")
    );
}

#[test]
fn raw_elements_of_variable_length() {
    let body = b"\x02\0\0\0\x02\0\0\0ab\0\0\0\0";
    let two = vec![b"ab".to_vec(), vec![]];
    assert_eq!(
        decode_all(RAW, body, &data_type_v3("string"), &exactly(&[2])).unwrap(),
        Decoded::Variable(two.clone(), None)
    );
    assert_eq!(
        decode_all(RAW, body, &data_type_v3("bytes"), &Extents::open(&[5], 0)).unwrap(),
        Decoded::Variable(two, Some(2))
    );
    let none = decode_all(RAW, &[0; 4], &data_type_v3("string"), &Extents::open(&[0, 4], 1));
    assert_eq!(none.unwrap(), Decoded::Variable(vec![], Some(0)));
    for (body, extents, reason) in [
        (&body[..], exactly(&[3]), "the body has 2 elements, but the selection needs 3"),
        (
            body,
            Extents::open(&[3, 3], 0),
            "the body has 2 elements, which is not a multiple of one step along the dimension (3 elements)",
        ),
        (&body[..11], exactly(&[2]), "the length prefixes do not add up to the body's 11 bytes"),
        (&[body.as_slice(), b"x"].concat(), exactly(&[2]), "the length prefixes do not add up to the body's 15 bytes"),
        (b"\x02\0", exactly(&[2]), "the length prefixes do not add up to the body's 2 bytes"),
        (b"\xff\xff\xff\xff", exactly(&[0xffff_ffff]), "the length prefixes do not add up to the body's 4 bytes"),
        (b"\x01\0\0\0\xff\xff\xff\xff", exactly(&[1]), "the length prefixes do not add up to the body's 8 bytes"),
        (
            b"\x02\0\0\0\0\0\0\0\x01\0\0\0\xff",
            exactly(&[2, 1]),
            "the element at [1, 0] is not valid for the data type: a text is not UTF-8",
        ),
    ] {
        assert_eq!(decode_error(RAW, body, "string", &extents), reason);
    }
    let large = [1_u32.to_le_bytes().as_slice(), &(LIMIT as u32).to_le_bytes(), &vec![b'a'; LIMIT as usize]].concat();
    let error = decode_all(RAW, &large, &data_type_v3("bytes"), &exactly(&[1])).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: LIMIT }), "{error}");
}

#[test]
fn npy_files_decode() {
    let little: Vec<u8> = (0..6_i16).flat_map(i16::to_le_bytes).collect();
    let shape = "'shape': (2, 3), }";
    for (descr, order, elements) in [
        ("'<i2'", "False", b"\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00"),
        ("'>i2'", "False", b"\x00\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05"),
        ("'>i2'", "True", b"\x00\x00\x00\x03\x00\x01\x00\x04\x00\x02\x00\x05"),
    ] {
        let file = npy(&format!("{{'descr': {descr}, 'fortran_order': {order}, {shape}"), elements);
        let decode_all = |extents| decode_all(NPY, &file, &data_type_v3("int16"), &extents).unwrap();
        assert_eq!(decode_all(exactly(&[2, 3])), Decoded::Fixed(little.clone(), None), "{descr}");
        assert_eq!(decode_all(Extents::open(&[7, 3], 0)), Decoded::Fixed(little.clone(), Some(2)), "{descr}");
        assert_eq!(decode_all(Extents::open(&[2, 0], 1)), Decoded::Fixed(little.clone(), Some(3)), "{descr}");
    }
    let file = npy(
        "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }",
        b"\x00\x0c\x04\x10\x08\x14\x01\x0d\x05\x11\x09\x15\x02\x0e\x06\x12\x0a\x16\x03\x0f\x07\x13\x0b\x17",
    );
    let counted = Decoded::Fixed((0..24).collect(), None);
    assert_eq!(decode_all(NPY, &file, &data_type_v3("uint8"), &exactly(&[2, 3, 4])).unwrap(), counted);
    let pair = data_type_v2(json!([["a", "<i4"], ["b", "<f4"]]));
    let file = npy(
        "{'descr': [('a', '>i4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        b"\x00\x00\x00\x01\x00\x00\x20\x40",
    );
    let expected = [1_i32.to_le_bytes(), 2.5_f32.to_le_bytes()].concat();
    assert_eq!(decode_all(NPY, &file, &pair, &exactly(&[1])).unwrap(), Decoded::Fixed(expected, None));
    let file = npy("{'descr': '<i2', 'fortran_order': True, 'shape': (), }", b"\x03\x00");
    assert_eq!(
        decode_all(NPY, &file, &data_type_v3("int16"), &exactly(&[])).unwrap(),
        Decoded::Fixed(vec![3, 0], None)
    );
}

#[test]
fn fixed_length_strings_convert() {
    let text = |length| {
        data_type_v3(&json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * length}}).to_string())
    };
    let bytes = |length| {
        data_type_v3(&json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": length}}).to_string())
    };
    let utf32 = |texts: &[&str], length: usize| {
        let padded = |text: &&str| {
            let mut words: Vec<u32> = text.chars().map(u32::from).collect();
            words.resize(length, 0);
            words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>()
        };
        Decoded::Fixed(texts.iter().flat_map(padded).collect(), None)
    };
    let decode_all = |file: &[u8], data_type: &DataType| decode_all(NPY, file, data_type, &exactly(&[2]));
    let little = npy(
        "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
        b"\x61\x00\x00\x00\x62\x00\x00\x00\xe9\x00\x00\x00\x00\xf6\x01\x00",
    );
    let big = npy(
        "{'descr': '>U2', 'fortran_order': False, 'shape': (2,), }",
        b"\x00\x00\x00\x61\x00\x00\x00\x62\x00\x00\x00\xe9\x00\x00\x00\x00",
    );
    assert_eq!(decode_all(&little, &text(2)).unwrap(), utf32(&["ab", "é😀"], 2));
    assert_eq!(decode_all(&little, &text(5)).unwrap(), utf32(&["ab", "é😀"], 5));
    assert_eq!(decode_all(&big, &text(3)).unwrap(), utf32(&["ab", "é"], 3));
    let strings = |texts: &[&str]| Decoded::Variable(texts.iter().map(|text| text.as_bytes().to_vec()).collect(), None);
    assert_eq!(decode_all(&little, &data_type_v3("string")).unwrap(), strings(&["ab", "é😀"]));
    assert_eq!(decode_all(&big, &data_type_v3("string")).unwrap(), strings(&["ab", "é"]));
    let short = npy("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", b"\x61\x00\x00\x62\x63\x00");
    assert_eq!(decode_all(&short, &bytes(4)).unwrap(), Decoded::Fixed(b"a\0\0\0bc\0\0".to_vec(), None));
    assert_eq!(
        decode_all(&short, &data_type_v3("bytes")).unwrap(),
        Decoded::Variable(vec![b"a".to_vec(), b"bc".to_vec()], None)
    );
    let wrong = npy("{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }", b"\x61\x00\x00\x00\x00\xd8\x00\x00");
    let flaw = "the element at [1] is not valid for the data type: invalid code point";
    assert_eq!(decode_all(&wrong, &data_type_v3("string")).unwrap_err().to_string(), flaw);
    let empty = npy("{'descr': '<U0', 'fortran_order': False, 'shape': (2,), }", b"");
    assert_eq!(decode_all(&empty, &data_type_v3("string")).unwrap(), strings(&["", ""]));
    for (file, data_type) in [
        (&little, text(1)),
        (&empty, text(1)),
        (&short, bytes(2)),
        (&little, data_type_v3("bytes")),
        (&short, data_type_v3("string")),
    ] {
        let error = decode_all(file, &data_type).unwrap_err();
        assert!(
            matches!(&error, DecodeError::ElementType { expected, .. } if *expected == data_type.name()),
            "{error}"
        );
    }
    // Elements that grow by a factor of a million.
    let large = text(1 << 18);
    let Decoded::Fixed(all, None) = decode_all(&little, &large).unwrap() else { panic!("elements of a fixed size") };
    assert_eq!((all.len(), &all[..8]), (2 << 20, &little[128..136]));
}

#[test]
fn mismatched_npy_files_are_rejected() {
    let file = npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", &[0; 12]);
    let object = npy("{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", b"\x80\x03");
    for (file, data_type, extents, reason) in [
        (&file[..], "int16", exactly(&[3, 2]), "the body has shape [2, 3], but the selection needs [3, 2]"),
        (&file, "int16", Extents::open(&[1, 4], 0), "the body has shape [2, 3], but the selection needs [any, 4]"),
        (
            &file,
            "uint16",
            exactly(&[2, 3]),
            "the body has data type int16, but the array has uint16, and casting=same_kind does not allow to convert it",
        ),
        (&file, "string", exactly(&[2, 3]), "the body has data type int16, but the array has string"),
        (&file[..139], "int16", exactly(&[2, 3]), "the body has 11 bytes, but the selection needs 12"),
        (&file[..100], "int16", exactly(&[2, 3]), "the .npy file ends within its header"),
        (b"", "int16", exactly(&[2, 3]), "the .npy file ends within its header"),
        (b"[[1]]", "int16", exactly(&[1]), "not a .npy file: it does not begin with \\x93NUMPY"),
    ] {
        assert_eq!(decode_error(NPY, file, data_type, &extents), reason);
    }
    assert!(decode_error(NPY, &object, "string", &exactly(&[2, 3])).contains("pickled"));
    let longer = [file.as_slice(), &[0]].concat();
    let error = decode_all(NPY, &longer, &data_type_v3("int16"), &exactly(&[2, 3])).unwrap_err();
    assert!(matches!(error, DecodeError::Length { expected: 12, found: 13 }), "{error}");
    let fortran = npy("{'descr': '<i2', 'fortran_order': True, 'shape': (1024, 1024), }", &[0; 128]);
    let unannounced = TestBody { size: None, ..test_body(NPY, &fortran) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let error =
        runtime.block_on(decode_test_body(unannounced, data_type_v3("int16"), exactly(&[1024, 1024]))).unwrap_err();
    assert!(matches!(error, DecodeError::Fortran { size: 2_097_152, limit: LIMIT }), "{error}");
    // A single column in Fortran order is also in C order.
    let column = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2097152, 1), }", &vec![7; 2 << 20]);
    let streamed =
        runtime.block_on(decode_test_body(test_body(NPY, &column), data_type_v3("uint8"), exactly(&[2 << 20, 1])));
    assert_eq!(streamed.unwrap(), Decoded::Fixed(vec![7; 2 << 20], None));
    // Strings of length 0 take time, but bounded memory.
    let empties = npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }", b"");
    let error = runtime
        .block_on(decode_test_body(test_body(NPY, &empties), data_type_v3("string"), exactly(&[1_000_000_000_000])))
        .unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: LIMIT }), "{error}");
}

#[test]
fn json_lists_decode() {
    let decode_all =
        |text: &str, data_type, extents| decode_all(JSON, text.as_bytes(), &data_type_v3(data_type), &extents);
    let fixed = |elements: &[i16]| elements.iter().flat_map(|element| element.to_le_bytes()).collect::<Vec<_>>();
    let nested = decode_all("[[1,2],[3,-4]]", "int16", exactly(&[2, 2])).unwrap();
    assert_eq!(nested, Decoded::Fixed(fixed(&[1, 2, 3, -4]), None));
    let appended = decode_all("[[1,2]]", "int16", Extents::open(&[9, 2], 0)).unwrap();
    assert_eq!(appended, Decoded::Fixed(fixed(&[1, 2]), Some(1)));
    assert_eq!(decode_all("7", "int16", exactly(&[1 << 40])).unwrap(), Decoded::Scalar(fixed(&[7]), None));
    assert_eq!(decode_all("7", "int16", Extents::open(&[9], 0)).unwrap(), Decoded::Scalar(fixed(&[7]), Some(1)));
    let texts = decode_all(r#"["a","é"]"#, "string", Extents::open(&[0], 0)).unwrap();
    assert_eq!(texts, Decoded::Variable(vec![b"a".to_vec(), "é".as_bytes().to_vec()], Some(2)));
    assert_eq!(decode_all("[]", "int16", exactly(&[0])).unwrap(), Decoded::Fixed(vec![], None));
    let many: Vec<i16> = (0..100_000).map(|number| (number % 1000) as i16).collect();
    let came_of_many = decode_all(&serde_json::to_string(&many).unwrap(), "int16", exactly(&[100_000])).unwrap();
    assert_eq!(came_of_many, Decoded::Fixed(fixed(&many), None));
    // Short strings may stand for large elements.
    let wide = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 1 << 20}}).to_string();
    assert!(
        matches!(decode_all(r#"["a"]"#, &wide, exactly(&[1])).unwrap(), Decoded::Fixed(element, None) if element.len() == 1 << 20)
    );
    let error = decode_all(r#"["",""]"#, &wide, exactly(&[2])).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: LIMIT }), "{error}");
    let error = decode_all(&" ".repeat(LIMIT as usize + 1), "int16", exactly(&[1])).unwrap_err();
    assert!(matches!(error, DecodeError::TooLarge { limit: LIMIT }), "{error}");
}

#[test]
fn what_the_client_is_told() {
    for (media_type, body, data_type, shape, kind) in [
        ("image/png", &b""[..], "int8", &[2][..], ProblemType::UnsupportedMediaType),
        (RAW, b"abc", "int8", &[2], ProblemType::BodyShapeMismatch),
        (RAW, b"\x02\x03", "bool", &[2], ProblemType::InvalidElement),
        (RAW, b"\x01\0\0\0", "string", &[1], ProblemType::InvalidBody),
        (NPY, b"PK", "int8", &[2], ProblemType::InvalidBody),
        (JSON, b"[1", "int8", &[2], ProblemType::InvalidBody),
        (JSON, b"[1]", "int8", &[2], ProblemType::BodyShapeMismatch),
        (JSON, b"[1,2]", "int8", &[2, 2], ProblemType::BodyShapeMismatch),
        (JSON, b"[1,\"NaN\"]", "int8", &[2], ProblemType::InvalidElement),
        (JSON, &vec![b' '; LIMIT as usize + 1], "int8", &[2], ProblemType::BodyTooLarge),
    ] {
        let error = decode_all(media_type, body, &data_type_v3(data_type), &exactly(shape)).unwrap_err();
        assert_eq!(ApiError::from(error).problem_type(), kind);
    }
}

#[test]
fn upload_errors_are_preserved() {
    let failing = stream::iter([Ok(Bytes::from_static(b"ab")), Err(StoreError::Upload(UploadError::TimedOut))]);
    let body = ElementsBody {
        boundary: None,
        media_type: None,
        size: None,
        stream: failing.boxed(),
        claim: arrays().memory().claim(zarrd_array::Caller::UNKNOWN),
    };
    let Ok(DecodedBody { elements: ElementSource::Fixed(stream), .. }) = raw::fixed(
        body,
        &ExpectedElements {
            data_type: data_type_v3("bool"),
            extents: exactly(&[4]),
            conversions: Conversions::default(),
        },
    ) else {
        panic!("elements of a fixed size")
    };
    let error = futures::executor::block_on(stream.try_collect::<BytesMut>()).unwrap_err();
    // Elements before the end were invalid.
    assert!(matches!(DecodeError::from_stream_error(error), Ok(DecodeError::Element { at, .. }) if at == [0]));
    let other = DecodeError::from_stream_error(StoreError::Upload(UploadError::Aborted("gone".into())));
    assert!(matches!(other, Err(StoreError::Upload(UploadError::Aborted(_)))));
    assert!(matches!(DecodeError::from(StoreError::Closed).into_stream_error(), StoreError::Closed));
}

proptest! {
    #[test]
    fn fortran_order_is_transposed(shape in prop::collection::vec(1_u64..5, 0..5), big: bool) {
        let count = shape.iter().product::<u64>();
        let weights: Vec<u64> = shape.iter().scan(1, |next, extent| Some(std::mem::replace(next, *next * extent))).collect();
        // The position in Fortran order of each element in C order.
        let mut elements = vec![0_u16; count as usize];
        for number in 0..count {
            let at = indices(&shape.iter().copied().map(Some).collect::<Vec<_>>(), number);
            let position: u64 = at.iter().zip(&weights).map(|(at, weight)| at * weight).sum();
            elements[position as usize] = number as u16;
        }
        let stored: Vec<u8> =
            elements.iter().flat_map(|element| if big { element.to_be_bytes() } else { element.to_le_bytes() }).collect();
        let head = render_header(if big { "'>u2'" } else { "'<u2'" }, &shape);
        let mut head = String::from_utf8_lossy(head.get(10..).unwrap_or_default()).into_owned();
        head = head.trim_end().replace("False", "True");
        let expected: Vec<u8> = (0..count as u16).flat_map(u16::to_le_bytes).collect();
        let found = decode_all(NPY, &npy(&head, &stored), &data_type_v3("uint16"), &exactly(&shape)).unwrap();
        prop_assert_eq!(found, Decoded::Fixed(expected, None));
    }

    #[test]
    fn arbitrary_bodies_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), shape in prop::collection::vec(0_u64..3, 0..3)) {
        for media_type in [RAW, NPY, JSON] {
            for data_type in ["int8", "bool", "string", "complex64"] {
                let _ = decode_all(media_type, &bytes, &data_type_v3(data_type), &exactly(&shape));
            }
        }
    }
}
