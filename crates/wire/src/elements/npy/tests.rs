use proptest::prelude::*;
use serde_json::json;
use zarrd_meta::data_type::{WordRun, parse_v3};

use super::*;

/// A head of version 1 with this text.
fn with_text(text: &str) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00".as_slice(), &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
}

fn read(descr: &str, rest: &str) -> Result<NpyHeader, NpyHeaderError> {
    parse_header(&with_text(&format!("{{'descr': {descr}, {rest}}}\n")))
}

/// Headers written by NumPy 2.5.
#[test]
fn headers_of_numpy_are_read() {
    let numpy = |version: u8, text: &str| {
        let len = text.len() as u32;
        let len = len.to_le_bytes();
        let len = if version == 1 { &len[..2] } else { &len[..] };
        [b"\x93NUMPY".as_slice(), &[version, 0], len, text.as_bytes()].concat()
    };
    let big = numpy(1, NUMPY_FORTRAN);
    assert_eq!((header_len(&big), big.len()), (Ok(Some(128)), 128));
    let expected = NpyHeader {
        data_type: parse_v3(&json!("int16")).unwrap(),
        order: StoredOrder::Big,
        fortran_order: true,
        shape: vec![2, 3],
    };
    assert_eq!(parse_header(&big), Ok(expected));
    let structs = parse_header(&numpy(1, NUMPY_STRUCT)).unwrap();
    assert_eq!(structs.data_type.name(), "struct{a:int32,b:null_terminated_bytes[3],c:float64[2]}");
    assert_eq!(structs.order, StoredOrder::Mixed(vec![WordRun { offset: 0, width: 4, count: 1 }]));
    let second = parse_header(&numpy(2, NUMPY_VERSION_2)).unwrap();
    assert_eq!((second.data_type.name().as_str(), second.shape.as_slice()), ("numpy.datetime64[10us]", &[1][..]));
    let third = parse_header(&numpy(3, NUMPY_VERSION_3)).unwrap();
    assert_eq!(third.data_type.name(), r#"struct{"\u03a9":uint16}"#);
    assert_eq!(parse_header(&numpy(3, NUMPY_VERSION_3)[..100]), Err(NpyHeaderError::Ended));
    assert_eq!(read("'|b1'", "'fortran_order': False, 'shape': ()").unwrap().shape, [0_u64; 0]);
}

const NUMPY_FORTRAN: &str = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }                                                           \n";
const NUMPY_STRUCT: &str = "{'descr': [('a', '>i4'), ('b', '|S3'), ('c', '<f8', (2,))], 'fortran_order': False, 'shape': (1,), }                                                                                 \n";
const NUMPY_VERSION_2: &str = "{'descr': '<M8[10us]', 'fortran_order': False, 'shape': (1,), }                                                    \n";
const NUMPY_VERSION_3: &str = "{'descr': [('Ω', '<u2')], 'fortran_order': False, 'shape': (0,), }                                                \n";

/// Headers written by `np.save` of NumPy 2.5.
#[test]
fn headers_equal_those_of_numpy() {
    for (descr, shape, text) in [
        ("'<f4'", &[2, 3][..], NUMPY_F4),
        ("'|b1'", &[], NUMPY_B1),
        ("[('a', '<i4'), ('b', '|S3')]", &[10], NUMPY_PAIR),
    ] {
        assert_eq!(render_header(descr, shape), with_text(text), "{descr}");
    }
}

const NUMPY_F4: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                          \n";
const NUMPY_B1: &str = "{'descr': '|b1', 'fortran_order': False, 'shape': (), }                                                              \n";
const NUMPY_PAIR: &str = "{'descr': [('a', '<i4'), ('b', '|S3')], 'fortran_order': False, 'shape': (10,), }                                    \n";

#[test]
fn versions_2_and_3_are_read() {
    let long = render_header(&format!("'{}'", "x".repeat(70_000)), &[1]);
    assert_eq!((&long[..8], long.len() % 64), (&b"\x93NUMPY\x02\x00"[..], 0));
    assert_eq!(u32::from_le_bytes(long[8..12].try_into().unwrap()) as usize, long.len() - 12);
    let beyond = render_header("[('Ω', '<i4')]", &[]);
    assert_eq!((&beyond[..8], beyond.len() % 64), (&b"\x93NUMPY\x03\x00"[..], 0));
    assert_eq!(header_len(&beyond), Ok(Some(beyond.len())));
    for len in 65_350..65_550 {
        let head = render_header(&"x".repeat(len), &[]);
        let size = if head[6] == 1 { 2 } else { 4 };
        let mut length = [0; 4];
        length[..size].copy_from_slice(&head[8..8 + size]);
        assert_eq!(u32::from_le_bytes(length) as usize, head.len() - 8 - size, "{len}");
    }
}

#[test]
fn invalid_headers_are_rejected() {
    for (beginning, found) in [
        (&b""[..], Ok(None)),
        (b"\x93NUM", Ok(None)),
        (b"\x93NUMPY\x01\x00\x76", Ok(None)),
        (b"\x93NUMPY\x02\x00\x76\x00\x00", Ok(None)),
        (b"\x93NUMPY\x01\x00\x76\x00", Ok(Some(128))),
        (b"PK\x03\x04", Err(NpyHeaderError::Magic)),
        (b"\x93NUMPY\x04\x00", Err(NpyHeaderError::Version(4, 0))),
        (b"\x93NUMPY\x01\x01", Err(NpyHeaderError::Version(1, 1))),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", Err(NpyHeaderError::TooLong { len: (1 << 32) + 11 })),
    ] {
        assert_eq!(header_len(beginning), found, "{beginning:?}");
    }
    for (descr, rest, why) in [
        ("'<i4'", "'shape': (1,)", "in the header of the .npy file, fortran_order is missing"),
        ("'<i4'", "'fortran_order': False", "in the header of the .npy file, shape is missing"),
        (
            "'<i4'",
            "'fortran_order': 0, 'shape': ()",
            "in the header of the .npy file, fortran_order is neither True nor False",
        ),
        ("'<i4'", "'fortran_order': False, 'shape': 3", "in the header of the .npy file, shape is no tuple"),
        (
            "'<i4'",
            "'fortran_order': False, 'shape': ('a',)",
            "in the header of the .npy file, shape has what is no extent",
        ),
        (
            "'<i4'",
            "'fortran_order': False, 'shape': (), 'more': 1",
            "in the header of the .npy file, more is not known",
        ),
        (
            "'<q4'",
            "'fortran_order': False, 'shape': ()",
            "the data type of the .npy file is unknown: unknown data type \"<q4\"",
        ),
        ("'<i4'", "oops", "the header of the .npy file is not a Python dictionary: expected a key at character 17"),
    ] {
        assert_eq!(read(descr, rest).unwrap_err().to_string(), why, "{descr} {rest}");
    }
    let ranks = format!("'fortran_order': False, 'shape': ({})", "1, ".repeat(65));
    assert_eq!(read("'<i4'", &ranks), Err(member("shape", "has more than 64 dimensions")));
    let not_utf8 = [b"\x93NUMPY\x03\x00\x01\x00\x00\x00".as_slice(), b"\xff"].concat();
    assert_eq!(parse_header(&not_utf8), Err(NpyHeaderError::Encoding));
}

proptest! {
    #[test]
    fn written_headers_are_read(shape in prop::collection::vec(any::<u64>(), 0..6)) {
        let bytes = render_header("'<f4'", &shape);
        let read = parse_header(&bytes).unwrap();
        prop_assert_eq!((read.shape, read.fortran_order, read.order), (shape, false, StoredOrder::Little));
    }

    #[test]
    fn arbitrary_headers_never_panic(text in "[{}'descrfotan_hp:,(\\[)\\] 0-9<|LTFalue\\\\x]{0,80}") {
        let _ = parse_header(&with_text(&text));
    }
}
