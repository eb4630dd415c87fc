//! The output of zarr-python 3.4.2 and 2.18.7: a data type, a fill value, the element as NumPy has it little-endian (in
//! hexadecimal), and the `descr` of its `.npy` header.

use super::*;

type Row = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const V3: &[Row] = &[
    (r#""bool""#, r#"true"#, "01", r#"'|b1'"#),
    (r#""int8""#, r#"7"#, "07", r#"'|i1'"#),
    (r#""uint8""#, r#"7"#, "07", r#"'|u1'"#),
    (r#""int16""#, r#"-2"#, "feff", r#"'<i2'"#),
    (r#""int32""#, r#"-3"#, "fdffffff", r#"'<i4'"#),
    (r#""int64""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<i8'"#),
    (r#""uint16""#, r#"65535"#, "ffff", r#"'<u2'"#),
    (r#""uint32""#, r#"4294967295"#, "ffffffff", r#"'<u4'"#),
    (r#""uint64""#, r#"18446744073709551615"#, "ffffffffffffffff", r#"'<u8'"#),
    (r#""float16""#, r#"0.0999755859375"#, "662e", r#"'<f2'"#),
    (r#""float32""#, r#"0.10000000149011612"#, "cdcccc3d", r#"'<f4'"#),
    (r#""float64""#, r#""NaN""#, "000000000000f87f", r#"'<f8'"#),
    (r#""float64""#, r#""-Infinity""#, "000000000000f0ff", r#"'<f8'"#),
    (r#""complex64""#, r#"[1.5, -2.0]"#, "0000c03f000000c0", r#"'<c8'"#),
    (r#""complex128""#, r#"["Infinity", "NaN"]"#, "000000000000f07f000000000000f87f", r#"'<c16'"#),
    (r#"{"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}"#, r#""aé""#, "61000000e900000000000000", r#"'<U3'"#),
    (r#"{"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 10}}"#, r#"5"#, "0500000000000000", r#"'<M8[10us]'"#),
    (r#"{"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}}"#, r#"-9223372036854775808"#, "0000000000000080", r#"'<M8[ns]'"#),
    (r#"{"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 1}}"#, r#"-7"#, "f9ffffffffffffff", r#"'<m8[s]'"#),
    (r#"{"name": "numpy.datetime64", "configuration": {"unit": "Y", "scale_factor": 1}}"#, r#"50"#, "3200000000000000", r#"'<M8[Y]'"#),
    (r#"{"name": "numpy.timedelta64", "configuration": {"unit": "generic", "scale_factor": 1}}"#, r#"3"#, "0300000000000000", r#"'<m8'"#),
    (r#"{"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}, {"name": "b", "data_type": "uint8"}, {"name": "n", "data_type": {"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "float64"}, {"name": "s", "data_type": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}}, {"name": "u", "data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}}]}}}, {"name": "t", "data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}}]}}"#, r#"{"a": 1, "b": 2, "n": {"x": 3.5, "s": "YWI=", "u": "xé"}, "t": 9}"#, "01000000020000000000000c4061620078000000e90000000900000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('n', [('x', '<f8'), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"{"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}}"#, r#""YWI=""#, "6162000000", r#"'|S5'"#),
    (r#"{"name": "raw_bytes", "configuration": {"length_bytes": 4}}"#, r#""YWJjZA==""#, "61626364", r#"'|V4'"#),
    (r#""string""#, r#""héy""#, "68c3a979", r#"None"#),
    (r#""variable_length_bytes""#, r#""YWIA""#, "616200", r#"None"#),
];

#[rustfmt::skip]
const V2: &[Row] = &[
    (r#""|b1""#, r#"true"#, "01", r#"'|b1'"#),
    (r#""|i1""#, r#"7"#, "07", r#"'|i1'"#),
    (r#""|u1""#, r#"7"#, "07", r#"'|u1'"#),
    (r#""<i2""#, r#"-2"#, "feff", r#"'<i2'"#),
    (r#""<i4""#, r#"-3"#, "fdffffff", r#"'<i4'"#),
    (r#""<i8""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<i8'"#),
    (r#""<u2""#, r#"65535"#, "ffff", r#"'<u2'"#),
    (r#""<u4""#, r#"4294967295"#, "ffffffff", r#"'<u4'"#),
    (r#""<u8""#, r#"18446744073709551615"#, "ffffffffffffffff", r#"'<u8'"#),
    (r#""<f2""#, r#"0.0999755859375"#, "662e", r#"'<f2'"#),
    (r#""<f4""#, r#"0.10000000149011612"#, "cdcccc3d", r#"'<f4'"#),
    (r#""<f8""#, r#""NaN""#, "000000000000f87f", r#"'<f8'"#),
    (r#""<f8""#, r#""-Infinity""#, "000000000000f0ff", r#"'<f8'"#),
    (r#""<c8""#, r#"[1.5, -2.0]"#, "0000c03f000000c0", r#"'<c8'"#),
    (r#""<c16""#, r#"["Infinity", "NaN"]"#, "000000000000f07f000000000000f87f", r#"'<c16'"#),
    (r#""<U3""#, r#""aé""#, "61000000e900000000000000", r#"'<U3'"#),
    (r#""<M8[10us]""#, r#"5"#, "0500000000000000", r#"'<M8[10us]'"#),
    (r#""<M8[ns]""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<M8[ns]'"#),
    (r#""<m8[s]""#, r#"-7"#, "f9ffffffffffffff", r#"'<m8[s]'"#),
    (r#""<M8[Y]""#, r#"50"#, "3200000000000000", r#"'<M8[Y]'"#),
    (r#""<m8""#, r#"3"#, "0300000000000000", r#"'<m8'"#),
    (r#"[["a", "<i4"], ["b", "|u1"], ["n", [["x", "<f8"], ["s", "|S3"], ["u", "<U2"]]], ["t", "<M8[s]"]]"#, r#""AQAAAAIAAAAAAAAMQGFiAHgAAADpAAAACQAAAAAAAAA=""#, "01000000020000000000000c4061620078000000e90000000900000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('n', [('x', '<f8'), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"">i2""#, r#"-2"#, "feff", r#"'<i2'"#),
    (r#"">i4""#, r#"-3"#, "fdffffff", r#"'<i4'"#),
    (r#"">i8""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<i8'"#),
    (r#"">u2""#, r#"65535"#, "ffff", r#"'<u2'"#),
    (r#"">u4""#, r#"4294967295"#, "ffffffff", r#"'<u4'"#),
    (r#"">u8""#, r#"18446744073709551615"#, "ffffffffffffffff", r#"'<u8'"#),
    (r#"">f2""#, r#"0.0999755859375"#, "662e", r#"'<f2'"#),
    (r#"">f4""#, r#"0.10000000149011612"#, "cdcccc3d", r#"'<f4'"#),
    (r#"">f8""#, r#""NaN""#, "000000000000f87f", r#"'<f8'"#),
    (r#"">f8""#, r#""-Infinity""#, "000000000000f0ff", r#"'<f8'"#),
    (r#"">c8""#, r#"[1.5, -2.0]"#, "0000c03f000000c0", r#"'<c8'"#),
    (r#"">c16""#, r#"["Infinity", "NaN"]"#, "000000000000f07f000000000000f87f", r#"'<c16'"#),
    (r#"">U3""#, r#""aé""#, "61000000e900000000000000", r#"'<U3'"#),
    (r#"">M8[10us]""#, r#"5"#, "0500000000000000", r#"'<M8[10us]'"#),
    (r#"">M8[ns]""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<M8[ns]'"#),
    (r#"">m8[s]""#, r#"-7"#, "f9ffffffffffffff", r#"'<m8[s]'"#),
    (r#"">M8[Y]""#, r#"50"#, "3200000000000000", r#"'<M8[Y]'"#),
    (r#"">m8""#, r#"3"#, "0300000000000000", r#"'<m8'"#),
    (r#"[["a", ">i4"], ["b", "|u1"], ["n", [["x", ">f8"], ["s", "|S3"], ["u", ">U2"]]], ["t", ">M8[s]"]]"#, r#""AAAAAQJADAAAAAAAAGFiAAAAAHgAAADpAAAAAAAAAAk=""#, "01000000020000000000000c4061620078000000e90000000900000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('n', [('x', '<f8'), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"[["a", ">i4"], ["b", "<i2"]]"#, r#""AAAAAQIA""#, "010000000200", r#"[('a', '<i4'), ('b', '<i2')]"#),
    (r#""|S5""#, r#""YWI=""#, "6162000000", r#"'|S5'"#),
    (r#""|V4""#, r#""YWJjZA==""#, "61626364", r#"'|V4'"#),
    (r#""<c16""#, r#"[0.0, 0.0]"#, "00000000000000000000000000000000", r#"'<c16'"#),
    (r#""<U3""#, r#""""#, "000000000000000000000000", r#"'<U3'"#),
    (r#""|S5""#, r#""""#, "0000000000", r#"'|S5'"#),
    (r#""|V4""#, r#""AAAAAA==""#, "00000000", r#"'|V4'"#),
    (r#""<M8[ns]""#, r#"0"#, "0000000000000000", r#"'<M8[ns]'"#),
    (r#""<m8[s]""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<m8[s]'"#),
    (r#"[["a", "<i4"], ["b", "|u1"], ["c", "<i2", [2, 2]], ["n", [["x", "<f8", [2]], ["s", "|S3"], ["u", "<U2"]]], ["t", "<M8[s]"]]"#, r#""AQAAAAIBAAIAAwAEAAAAAAAAAPg/AAAAAAAAAEBhYgB4AAAA6QAAAAkAAAAAAAAA""#, "01000000020100020003000400000000000000f83f000000000000004061620078000000e90000000900000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"[["a", "<i4"], ["b", "|u1"], ["c", "<i2", [2, 2]], ["n", [["x", "<f8", [2]], ["s", "|S3"], ["u", "<U2"]]], ["t", "<M8[s]"]]"#, r#""AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA""#, "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"[["a", "<i4"], ["b", "|u1"], ["c", "<i2", [2, 2]], ["n", [["x", "<f8", [2]], ["s", "|S3"], ["u", "<U2"]]], ["t", "<M8[s]"]]"#, r#"null"#, "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"">c16""#, r#"[0.0, 0.0]"#, "00000000000000000000000000000000", r#"'<c16'"#),
    (r#"">U3""#, r#""""#, "000000000000000000000000", r#"'<U3'"#),
    (r#"">M8[ns]""#, r#"0"#, "0000000000000000", r#"'<M8[ns]'"#),
    (r#"">m8[s]""#, r#"-9223372036854775808"#, "0000000000000080", r#"'<m8[s]'"#),
    (r#"[["a", ">i4"], ["b", "|u1"], ["c", ">i2", [2, 2]], ["n", [["x", ">f8", [2]], ["s", "|S3"], ["u", ">U2"]]], ["t", ">M8[s]"]]"#, r#""AAAAAQIAAQACAAMABD/4AAAAAAAAQAAAAAAAAABhYgAAAAB4AAAA6QAAAAAAAAAJ""#, "01000000020100020003000400000000000000f83f000000000000004061620078000000e90000000900000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"[["a", ">i4"], ["b", "|u1"], ["c", ">i2", [2, 2]], ["n", [["x", ">f8", [2]], ["s", "|S3"], ["u", ">U2"]]], ["t", ">M8[s]"]]"#, r#""AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA""#, "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#"[["a", ">i4"], ["b", "|u1"], ["c", ">i2", [2, 2]], ["n", [["x", ">f8", [2]], ["s", "|S3"], ["u", ">U2"]]], ["t", ">M8[s]"]]"#, r#"null"#, "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", r#"[('a', '<i4'), ('b', '|u1'), ('c', '<i2', (2, 2)), ('n', [('x', '<f8', (2,)), ('s', '|S3'), ('u', '<U2')]), ('t', '<M8[s]')]"#),
    (r#""|b1""#, r#"false"#, "00", r#"'|b1'"#),
    (r#""<i4""#, r#"null"#, "00000000", r#"'<i4'"#),
];

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2).unwrap(), 16).unwrap()).collect()
}

fn check(data_type: &DataType, element: &[u8], npy: &str) {
    assert_eq!(data_type.npy_descr().unwrap_or_else(|| "None".to_owned()), npy);
    assert_eq!(data_type.fixed_size().unwrap_or(element.len()), element.len());
    round_trip(data_type, element);
    round_trip(data_type, &data_type.zero());
}

#[test]
fn data_types_are_written_in_v3() {
    for (text, fill, element, npy) in V3 {
        let json: Value = serde_json::from_str(text).unwrap();
        let data_type = v3(json.clone());
        assert_eq!(v3(data_type.to_v3()), data_type, "{text}");
        let element = hex(element);
        let fill = serde_json::from_str(fill).unwrap();
        assert_eq!(data_type.fill_value(&fill, Dialect::V3), Ok(element.clone()), "{text}");
        check(&data_type, &element, npy);
    }
}

#[test]
fn data_types_are_written_in_v2() {
    for (text, fill, element, npy) in V2 {
        let json: Value = serde_json::from_str(text).unwrap();
        let (data_type, order) = v2(json.clone());
        assert_eq!(data_type.to_v2(&order), Ok(json), "{text}");
        let element = hex(element);
        let fill = serde_json::from_str(fill).unwrap();
        assert_eq!(data_type.stored_fill_value(&fill, Dialect::V2, &order), Ok(element.clone()), "{text} {fill}");
        check(&data_type, &element, npy);
    }
}

#[test]
fn fill_values_are_written_in_the_draft() {
    // The data types and fill values of zarr-python 2.18.7 with its experimental v3.
    for (json, fill, element) in [
        (json!("<i8"), json!(i64::MIN), "0000000000000080"),
        (json!(">u8"), json!(u64::MAX), "ffffffffffffffff"),
        (json!(">f2"), json!("-Infinity"), "00fc"),
        (json!("<f4"), json!("Infinity"), "0000807f"),
        (json!("<f8"), json!("NaN"), "000000000000f87f"),
        (json!("<f8"), json!(null), "0000000000000000"),
        (json!("i1"), json!(-7), "f9"),
        (json!("bool"), json!(true), "01"),
        (
            json!({"extension": "TODO: bytestring array protocol URL", "fallback": null, "type": "|S5"}),
            json!(""),
            "0000000000",
        ),
        (
            json!({"extension": "TODO: unicode array protocol URL", "fallback": null, "type": "<U3"}),
            json!(""),
            &"00".repeat(12),
        ),
        (
            json!({"extension": "https://purl.org/complex", "fallback": null, "type": ">c16"}),
            json!(null),
            &"00".repeat(16),
        ),
        (
            json!({"extension": "https://purl.org/datetime", "fallback": null, "type": "<M8[ns]"}),
            json!(null),
            &"00".repeat(8),
        ),
    ] {
        let (data_type, _) = draft(json);
        assert_eq!(data_type.fill_value(&fill, Dialect::Draft), Ok(hex(element)), "{data_type}");
    }
}
