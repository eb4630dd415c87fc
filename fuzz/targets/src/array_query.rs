//! The queries of arrays: their parameters, labels and items.

use bytes::Bytes;
use zarrd_cf::{Coordinate, LabelSelection};
use zarrd_codec::Elements;
use zarrd_meta::{
    data_type::{DataType, Number},
    json::Json,
    selection::Item,
};
use zarrd_wire::query::{ElementsQuery, SelectBy};

/// The parsers of the query of an array. The first byte selects one.
pub fn array_query(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match choice % 4 {
        0 => query(&text),
        1 => labels(LabelSelection::parse(&text)),
        2 => {
            if let Ok(json) = Json::parse(Bytes::copy_from_slice(rest)) {
                labels(LabelSelection::from_json(&json));
            }
        }
        _ => item(&text),
    }
}

/// A query renders to one that parses to the same.
fn query(text: &str) {
    for parse in [ElementsQuery::parse, ElementsQuery::parse_post] {
        let parsed = match parse(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let _ = error.to_string();
                continue;
            }
        };
        for parameter in &parsed.dimensions {
            match parameter.by {
                SelectBy::Index => item(&parameter.text),
                SelectBy::Label => labels(LabelSelection::parse(&parameter.text)),
            }
        }
        let rendered = parsed.render();
        assert_eq!(ElementsQuery::parse(&rendered).as_ref(), Ok(&parsed), "{rendered}");
    }
}

/// Labels are searched among some of each kind.
fn labels<E: std::fmt::Display>(parsed: Result<LabelSelection, E>) {
    let selection = match parsed {
        Ok(selection) => selection,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    let floats = [-0.5_f64, 0.0, f64::NAN, 7.0, 7.0, 1e300].map(f64::to_le_bytes).concat();
    let integers = [9_i64, 4, 4, 0, i64::MIN].map(i64::to_le_bytes).concat();
    for (number, elements) in [(Number::Float64, floats), (Number::Int64, integers)] {
        let data_type = DataType::of_number(number);
        let coordinate = Coordinate::new(&Elements::Fixed(elements.into()), &data_type, None).expect("numbers");
        match coordinate.select(&selection) {
            Ok(found) => item(&found.to_string()),
            Err(error) => {
                let _ = error.to_string();
            }
        }
    }
}

/// An item renders to text that parses to the same.
fn item(text: &str) {
    if let Ok(item) = Item::parse(text) {
        let rendered = item.to_string();
        if rendered.len() <= zarrd_meta::selection::MAX_TEXT_SIZE {
            assert_eq!(Item::parse(&rendered).as_ref(), Ok(&item), "{rendered}");
        }
    }
}
