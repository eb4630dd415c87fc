//! Arrays decode as with `xarray.open_zarr`: `tests/clients/cf_decoding.py` makes the table with xarray 2026.9.0.

use bytes::Bytes;
use half::f16;
use serde_json::Value;
use zarrd_cf::{CfError, Decoding};
use zarrd_codec::Elements;
use zarrd_meta::{Dialect, data_type::parse_v3, json::Json};

const TABLE: &str = include_str!("../data/decoding.jsonl");

/// The outcome of decoding, as the table has it.
#[derive(Debug, PartialEq)]
enum Outcome {
    Elements(String, Vec<u8>),
    Texts(Vec<String>),
    Error,
}

struct Case {
    /// The dialect, data type and attributes.
    attributes: String,
    calendar: String,
    /// An integer as scale factor with fill values, and fill values that `_Unsigned` wraps around.
    fails_in_xarray_alone: bool,
    expected: Outcome,
    found: Result<Outcome, CfError>,
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn texts(elements: impl Iterator<Item = String>) -> Outcome {
    Outcome::Texts(elements.collect())
}

fn decode(line: &Value, dialect: Dialect) -> Result<Outcome, CfError> {
    let data_type = parse_v3(&line["data_type"]).unwrap();
    let attributes = Json::parse(line["attributes"].as_str().unwrap().to_owned()).unwrap();
    let stored = bytes(line["stored"].as_str().unwrap());
    let fill_value = line["fill_value"].as_str().map(bytes);
    let Some(decoding) = Decoding::of(&attributes, &data_type, fill_value.as_deref(), dialect)? else {
        return Ok(Outcome::Elements(data_type.name(), stored));
    };
    // In two parts, since chunks come one by one.
    let size = data_type.fixed_size().unwrap();
    let (first, second) = stored.split_at(stored.len() / size / 2 * size);
    let parts = [first, second].map(|part| decoding.decode(&Elements::Fixed(Bytes::copy_from_slice(part))));
    let [first, second] = parts;
    match (first?, second?) {
        (Elements::Fixed(first), Elements::Fixed(second)) => {
            Ok(Outcome::Elements(decoding.data_type().name(), [first, second].concat()))
        }
        (Elements::Variable(first), Elements::Variable(second)) => {
            Ok(texts(first.iter().chain(second.iter()).map(|text| String::from_utf8(text.to_vec()).unwrap())))
        }
        _ => panic!("elements are of one form"),
    }
}

fn expected(line: &Value) -> Outcome {
    if let Some(elements) = line["decoded"].as_str() {
        return Outcome::Elements(line["decoded_type"].as_str().unwrap().to_owned(), bytes(elements));
    }
    match line["texts"].as_array() {
        Some(elements) => texts(elements.iter().map(|text| text.as_str().unwrap().to_owned())),
        None => Outcome::Error,
    }
}

fn cases() -> impl Iterator<Item = Case> {
    TABLE.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let dialect = if line["dialect"] == "v2" { Dialect::V2 } else { Dialect::V3 };
        let attributes: Value = serde_json::from_str(line["attributes"].as_str().unwrap()).unwrap();
        Case {
            attributes: format!("{dialect} {} {attributes}", line["data_type"]),
            calendar: attributes["calendar"].as_str().unwrap_or_default().to_owned(),
            fails_in_xarray_alone: attributes["scale_factor"].is_i64() || !attributes["_Unsigned"].is_null(),
            expected: expected(&line),
            found: decode(&line, dialect),
        }
    })
}

/// The elements with one representation of NaN.
fn canonical(outcome: Outcome) -> Outcome {
    let Outcome::Elements(name, mut bytes) = outcome else { return outcome };
    let is_nan: fn(&[u8]) -> bool = match name.as_str() {
        "float16" => |bytes| f16::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        "float32" => |bytes| f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        "float64" => |bytes| f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => |_| false,
    };
    let size = if name.starts_with("numpy") {
        8
    } else {
        name.trim_start_matches(char::is_alphabetic).parse().unwrap_or(8) / 8
    };
    bytes.chunks_exact_mut(size).filter(|bytes| is_nan(bytes)).for_each(|bytes| bytes.fill(0xff));
    Outcome::Elements(name, bytes)
}

#[test]
fn arrays_decode_as_with_xarray() {
    let (mut equal, mut out_of_range, mut failed, mut differing) = (0, 0, 0, Vec::new());
    for case in cases() {
        // xarray makes objects of all elements, which no data type has.
        let gregorian = !["day", "julian", "leap"].iter().any(|word| case.calendar.contains(word));
        if let (Outcome::Texts(_), true, Err(CfError::OutOfRange { .. })) = (&case.expected, gregorian, &case.found) {
            out_of_range += 1;
            continue;
        }
        let found = case.found.map_or(Outcome::Error, canonical);
        let expected = canonical(case.expected);
        match (found == expected, &expected) {
            (true, _) => equal += 1,
            // There is nothing to compare with if xarray fails.
            (_, Outcome::Error) if case.fails_in_xarray_alone => failed += 1,
            _ => differing.push(format!("{}\n  expected {expected:?}\n  found    {found:?}", case.attributes)),
        }
    }
    println!(
        "{equal} equal, {out_of_range} out of range, {failed} that only fail in xarray, {} differ",
        differing.len()
    );
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert_eq!((equal, out_of_range, failed), (3268, 195, 336));
}
