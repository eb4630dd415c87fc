//! Labels select what xarray selects: `tests/clients/cf_labels.py` makes the table with xarray 2026.9.0, pandas 3.1.1
//! and cftime 1.6.6.

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd_cf::{Coordinate, Decoding, LabelError, LabelSelection};
use zarrd_codec::{Elements, VariableBuilder};
use zarrd_meta::{
    Dialect,
    data_type::parse_v3,
    json::Json,
    selection::{DimensionSelection, Item, Selection},
};

const TABLE: &str = include_str!("../data/labels.jsonl");

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn coordinate(line: &Value) -> Coordinate {
    let data_type = parse_v3(&line["data_type"]).unwrap();
    let attributes = Json::compact(&line["attributes"]);
    let elements = match &line["stored"] {
        Value::String(hex) => Elements::Fixed(Bytes::from(bytes(hex))),
        texts => {
            let mut builder = VariableBuilder::new(u64::MAX);
            texts.as_array().unwrap().iter().for_each(|text| builder.push(text.as_str().unwrap().as_bytes()).unwrap());
            Elements::Variable(builder.finish())
        }
    };
    let decoding = Decoding::of(&attributes, &data_type, None, Dialect::V3).unwrap();
    Coordinate::new(&elements, &data_type, decoding.as_ref()).unwrap()
}

/// The selected indices like the table has them.
fn select(coordinate: &Coordinate, text: &str) -> Value {
    let item = match LabelSelection::parse(text).and_then(|selection| coordinate.select(&selection)) {
        Ok(item) => item,
        Err(LabelError::NotFound { .. }) => return json!("not-found"),
        Err(LabelError::Ambiguous { .. }) => return json!("ambiguous"),
        Err(error) => return json!(error.to_string()),
    };
    if let Item::Index(index) = item {
        return json!(index);
    }
    let region = Selection { items: vec![item] }.resolve(&[coordinate.len() as u64]).unwrap();
    match &region.dimensions[0] {
        DimensionSelection::Range { start, step: 1, len } => json!((*start..start + len).collect::<Vec<_>>()),
        DimensionSelection::List(indices) => json!(**indices),
        other => panic!("{other:?}"),
    }
}

#[test]
fn labels_select_what_xarray_selects() {
    let (mut equal, mut differing) = (0, Vec::new());
    for line in TABLE.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let coordinate = coordinate(&line);
        for pair in line["selections"].as_array().unwrap() {
            let (text, expected) = (pair[0].as_str().unwrap(), &pair[1]);
            let found = select(&coordinate, text);
            match found == *expected {
                true => equal += 1,
                false => differing.push(format!(
                    "{text} of {} {} ({} to {})\n  expected {expected}\n  found    {found}",
                    line["data_type"],
                    line["attributes"],
                    coordinate.label(0).unwrap(),
                    coordinate.label(coordinate.len() - 1).unwrap(),
                )),
            }
        }
    }
    assert!(differing.is_empty(), "{equal} equal, {} differ:\n{}", differing.len(), differing.join("\n"));
    assert_eq!(equal, 25_342);
}
