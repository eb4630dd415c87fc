//! The notation of selections by label, its limits, and the attributes that say that elements are packed.

use serde_json::{Value, json};
use zarrd_cf::{
    Coordinate, Label, LabelError, LabelSelection, LabelText, MAX_LABEL_SIZE, MAX_LABELS, MAX_SELECTION_SIZE, Match,
    TextSource, is_undecoded,
};
use zarrd_codec::Elements;
use zarrd_meta::{
    Dialect,
    data_type::parse_v3,
    documents::{v2, v3},
    json::Json,
};

fn text(text: &str) -> LabelText {
    LabelText { text: text.to_owned(), source: TextSource::Plain }
}

fn quoted(text: &str) -> LabelText {
    LabelText { text: text.to_owned(), source: TextSource::Quoted }
}

fn label(text: LabelText, matching: Match) -> Label {
    Label { text, matching }
}

fn exactly(text: LabelText) -> LabelSelection {
    LabelSelection::One(label(text, Match::Exact))
}

fn range(from: Option<LabelText>, to: Option<LabelText>) -> LabelSelection {
    LabelSelection::Range { from, to }
}

#[test]
fn every_form_is_parsed() {
    let within = |tolerance: &str| Match::Within(tolerance.to_owned());
    for (notation, expected) in [
        ("52.5", exactly(text("52.5"))),
        (" 52.5 ", exactly(text("52.5"))),
        ("-1e3~", LabelSelection::One(label(text("-1e3"), Match::Nearest))),
        ("2020-01-01~PT6H", LabelSelection::One(label(text("2020-01-01"), within("PT6H")))),
        ("1 ~ 0.5", LabelSelection::One(label(text("1"), within("0.5")))),
        ("1..2", range(Some(text("1")), Some(text("2")))),
        ("1...5", range(Some(text("1")), Some(text(".5")))),
        ("1.. 2", range(Some(text("1")), Some(text("2")))),
        ("1..", range(Some(text("1")), None)),
        ("..2", range(None, Some(text("2")))),
        ("..", range(None, None)),
        ("-P1D..", range(Some(text("-P1D")), None)),
        ("a..b..c", range(Some(text("a")), Some(text("b..c")))),
        (r#""a..b""#, exactly(quoted("a..b"))),
        (r#""a..b".."c~""#, range(Some(quoted("a..b")), Some(quoted("c~")))),
        (r#""say ""hi""""#, exactly(quoted(r#"say "hi""#))),
        (r#""""#, exactly(quoted(""))),
        (r#""(a,b)""#, exactly(quoted("(a,b)"))),
        ("()", LabelSelection::List(vec![])),
        ("(1)", LabelSelection::List(vec![label(text("1"), Match::Exact)])),
        ("(1,)", LabelSelection::List(vec![label(text("1"), Match::Exact)])),
        (
            r#"(1, 2~ ,"a,)",3~0.5)"#,
            LabelSelection::List(vec![
                label(text("1"), Match::Exact),
                label(text("2"), Match::Nearest),
                label(quoted("a,)"), Match::Exact),
                label(text("3"), within("0.5")),
            ]),
        ),
    ] {
        assert_eq!(LabelSelection::parse(notation).as_ref(), Ok(&expected), "{notation}");
        let json = Json::compact(&json!(notation));
        assert_eq!(LabelSelection::from_json(&json), Ok(expected), "{notation}");
    }
    let labels =
        vec![label(text("1.50"), Match::Exact), label(text("2"), Match::Nearest), label(quoted("b"), Match::Exact)];
    let list = Json::parse(r#"[1.50, "2~", "\"b\""]"#).unwrap();
    assert_eq!(LabelSelection::from_json(&list), Ok(LabelSelection::List(labels)));
    for bad in ["", " ", "(1", "(1)2", "(,)", "~", "~1", "\"a", "\"a\"b", "a\"b", "\"a\"\"", "1~..2", "1..2~1", "(1..2"]
    {
        assert!(matches!(LabelSelection::parse(bad), Err(LabelError::Invalid { .. })), "{bad}");
    }
    for bad in ["null", "{}", "[null]", "[[1]]", "[{}]"] {
        assert!(
            matches!(LabelSelection::from_json(&Json::parse(bad).unwrap()), Err(LabelError::Invalid { .. })),
            "{bad}"
        );
    }
}

#[test]
fn limits_are_exact() {
    let list = |count: usize| format!("({})", vec!["1"; count].join(","));
    assert!(LabelSelection::parse(&list(MAX_LABELS)).is_ok());
    assert_eq!(LabelSelection::parse(&list(MAX_LABELS + 1)), Err(LabelError::TooManyLabels));
    let json = |count| Json::compact(&json!(vec![1; count]));
    assert!(LabelSelection::from_json(&json(MAX_LABELS)).is_ok());
    assert_eq!(LabelSelection::from_json(&json(MAX_LABELS + 1)), Err(LabelError::TooManyLabels));
    assert!(LabelSelection::parse(&"9".repeat(MAX_LABEL_SIZE)).is_ok());
    for notation in ["9".repeat(MAX_LABEL_SIZE + 1), format!("1~{}", "9".repeat(MAX_LABEL_SIZE + 1))] {
        assert!(matches!(LabelSelection::parse(&notation), Err(LabelError::LabelTooLong { .. })));
    }
    let size = MAX_SELECTION_SIZE + 1;
    assert_eq!(LabelSelection::parse(&" ".repeat(size)), Err(LabelError::TooLong { size }));
}

fn coordinate(data_type: &Value, bytes: Vec<u8>) -> Coordinate {
    Coordinate::new(&Elements::Fixed(bytes.into()), &parse_v3(data_type).unwrap(), None).unwrap()
}

#[test]
fn labels_have_the_type_of_their_coordinate() {
    let floats = coordinate(&json!("float64"), [1.5_f64, f64::NAN, 3.0].map(f64::to_le_bytes).concat());
    let select = |coordinate: &Coordinate, text: &str| coordinate.select(&LabelSelection::parse(text).unwrap());
    for bad in ["north", ".5", "5.", "1e", "0x10", "NaN", "nan", "1_000", "", "+", "--1", "2020-01", "\u{661}"] {
        let notation = format!("\"{bad}\"");
        assert!(matches!(select(&floats, &notation), Err(LabelError::Invalid { .. })), "{bad}");
    }
    assert_eq!(select(&floats, "3~").unwrap(), zarrd_meta::selection::Item::Index(2));
    assert_eq!(select(&floats, "2.25~").unwrap(), zarrd_meta::selection::Item::Index(2), "the larger one");
    assert_eq!(select(&floats, "2.2499~").unwrap(), zarrd_meta::selection::Item::Index(0));
    assert!(matches!(select(&floats, "1~-0.5"), Err(LabelError::Invalid { .. })));
    assert!(matches!(select(&floats, "1~PT1H"), Err(LabelError::Invalid { .. })));
    let Err(LabelError::NotFound { label, near }) = select(&floats, "2") else { panic!() };
    assert_eq!(
        (label.as_str(), &near.nearest, &near.first, &near.last),
        ("2", &Some(json!(1.5)), &Some(json!(1.5)), &Some(json!(3.0)))
    );
    let empty = coordinate(&json!("float64"), Vec::new());
    assert!(matches!(select(&empty, "1~"), Err(LabelError::NotFound { .. })));
    assert!(matches!(select(&empty, "1"), Err(LabelError::NotFound { .. })));
    let times = json!({"name": "numpy.datetime64", "configuration": {"unit": "M", "scale_factor": 1}});
    let times = coordinate(&times, [600_i64, 601, i64::MIN].map(i64::to_le_bytes).concat());
    for bad in ["2020-13", "2020-02-30", "20200101", "2020-01-01T25", "P1D", "-P", "2020-01-01T00:00:00+99"] {
        assert!(matches!(select(&times, bad), Err(LabelError::Invalid { .. })), "{bad}");
    }
    assert_eq!(select(&times, "2020-01-01T00:00:00").unwrap(), zarrd_meta::selection::Item::Index(0));
    assert_eq!(select(&times, "-P1M").unwrap(), zarrd_meta::selection::Item::Index(0));
    assert!(matches!(select(&times, "-P9999999Y9999999Y"), Err(LabelError::Invalid { .. })));
}

#[test]
fn attributes_of_packed_elements_are_told() {
    for (data_type, dialect, attributes, expected) in [
        ("int16", Dialect::V3, r#"{}"#, false),
        ("int16", Dialect::V3, r#"{"_ARRAY_DIMENSIONS": ["x"]}"#, false),
        ("int16", Dialect::V3, r#"{"units": "days since 2000-01-01", "valid_range": [0, 1]}"#, false),
        ("int16", Dialect::V3, r#"{"_FillValue": -1}"#, true),
        ("int16", Dialect::V3, r#"{"missing_value": [1, 2]}"#, true),
        ("int16", Dialect::V3, r#"{"scale_factor": 1}"#, true),
        ("int16", Dialect::V3, r#"{"scale_factor": null, "_FillValue": null}"#, false),
        ("int16", Dialect::V3, r#"{"add_offset": 0}"#, true),
        ("int8", Dialect::V3, r#"{"_Unsigned": "true"}"#, true),
        ("float32", Dialect::V3, r#"{"_FillValue": "AAAAAAAA+H8="}"#, false),
        ("float32", Dialect::V3, r#"{"_FillValue": "AAAAAAAAMEA="}"#, true),
        ("float32", Dialect::V3, r#"{"_FillValue": NaN, "missing_value": [NaN, NaN]}"#, false),
        ("float32", Dialect::V2, r#"{"_FillValue": NaN}"#, false),
        ("float32", Dialect::V2, r#"{"_FillValue": "NaN"}"#, false),
        ("float32", Dialect::V2, r#"{"missing_value": 1e20}"#, true),
    ] {
        let model = match dialect {
            Dialect::V3 => {
                let document = json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": data_type,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "fill_value": 0,
                    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
                let document = document.to_string();
                let document = format!("{}, \"attributes\": {attributes}}}", document.trim_end_matches('}'));
                let v3::Node::Array(model) = v3::node(document).unwrap() else { panic!("a group") };
                *model
            }
            _ => v2_model("<f4", &[1], &json!(0), attributes),
        };
        assert_eq!(is_undecoded(&model), expected, "{data_type} {attributes}");
    }
}

fn v2_model(dtype: &str, shape: &[u64], fill_value: &Value, attributes: &str) -> zarrd_meta::ArrayModel {
    let document = json!({"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "compressor": null,
        "fill_value": fill_value, "order": "C", "filters": null});
    v2::array(document.to_string(), Some(attributes.to_owned().into())).unwrap()
}

/// xarray takes the fill value of v2 arrays with dimension names for missing.
#[test]
fn masked_arrays_of_v2_are_undecoded() {
    let named = r#"{"_ARRAY_DIMENSIONS": ["x"]}"#;
    for (dtype, fill_value, attributes, expected) in [
        ("<i2", json!(-9999), named, true),
        ("|u1", json!(0), named, true),
        (">i8", json!(0), named, true),
        ("<f4", json!(1e20), named, true),
        ("<f2", json!("Infinity"), named, true),
        ("<f8", json!(0.0), named, true),
        ("<M8[ns]", json!(0), named, true),
        ("<m8[s]", json!(7), named, true),
        ("<f8", json!("NaN"), named, false),
        ("<M8[ns]", json!(i64::MIN), named, false),
        ("<i2", json!(null), named, false),
        ("|b1", json!(true), named, false),
        ("<c8", json!([1.0, 0.0]), named, false),
        ("<U2", json!("x"), named, false),
        ("|S2", json!("eHg="), named, false),
        ("<i2", json!(-9999), "{}", false),
        ("<i2", json!(-9999), r#"{"_ARRAY_DIMENSIONS": ["x", "y"]}"#, false),
        ("<i2", json!(-9999), r#"{"_ARRAY_DIMENSIONS": "x"}"#, false),
    ] {
        assert_eq!(
            is_undecoded(&v2_model(dtype, &[1], &fill_value, attributes)),
            expected,
            "{dtype} {fill_value} {attributes}"
        );
    }
    for (attributes, expected) in [(r#"{"_ARRAY_DIMENSIONS": []}"#, true), ("{}", false), (named, false)] {
        assert_eq!(is_undecoded(&v2_model("<i4", &[], &json!(5), attributes)), expected, "{attributes}");
    }
}
