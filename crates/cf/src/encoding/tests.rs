//! Expected values are those of `xarray.conventions.encode_cf_variable` of xarray 2026.9.0.

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zarrd_codec::Elements;
use zarrd_meta::data_type::{V2Context, parse_v2};

use super::*;

fn model(data_type: &str, attributes: Json) -> ArrayModel {
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}, "fill_value": 0,
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attributes});
    let document = zarrd_meta::json::Json::parse(document.to_string().into_bytes()).unwrap();
    match zarrd_meta::documents::v3::read(document).unwrap() {
        zarrd_meta::documents::v3::Node::Array(model) => *model,
        zarrd_meta::documents::v3::Node::Group(_) => panic!("an array"),
    }
}

fn encoding(data_type: &str, attributes: Json) -> Encoding {
    Encoding::of_array(&model(data_type, attributes)).unwrap().unwrap()
}

fn dtype(name: &str) -> DataType {
    parse_v2(&json!(name), V2Context::default()).unwrap().0
}

fn encode(encoding: &Encoding, from: &str, elements: &[u8]) -> Result<Vec<u8>, String> {
    let source = encoding.source(&dtype(from)).unwrap();
    encoding.encode(elements, source).map_err(|error| format!("{}: {error}", error.index))
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn singles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect()
}

fn counts(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn shorts(values: &[i16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn numbers_are_packed_as_xarray_does() {
    let packed = encoding("int16", json!({"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}));
    let values = [273.15, 280.005, 279.995, 250.0, 300.125, f64::NAN, 273.165, 273.175];
    let expected = [0, 686, 685, -2315, 2698, -32768, 2];
    assert_eq!(encode(&packed, "<f8", &doubles(&values)), Ok(shorts(&[&expected[..], &[3]].concat())));
    // In float32 the last one is another.
    assert_eq!(encode(&packed, "<f4", &singles(&values)), Ok(shorts(&[&expected[..], &[2]].concat())));
    let beyond = encode(&packed, "<f8", &doubles(&[280.0, 1000.0]));
    assert_eq!(beyond, Err("1: 1000 is beyond the range of the stored int16".into()));
    let rounded = encoding("int32", json!({"_FillValue": -1}));
    let bytes: Vec<u8> = [0_i32, 2, 2, 0, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(encode(&rounded, "<f8", &doubles(&[0.5, 1.5, 2.5, -0.5, 3.49])), Ok(bytes));
    let offset = encoding("uint8", json!({"scale_factor": 0.5, "add_offset": -10.0}));
    assert_eq!(encode(&offset, "<f8", &doubles(&[1.0, 2.5])), Ok(vec![22, 25]));
    // xarray stores 18.
    assert!(encode(&offset, "<f8", &doubles(&[255.0])).is_err());
    let lacking = encode(&offset, "<f8", &doubles(&[0.0, f64::NAN])).unwrap_err();
    assert!(lacking.starts_with("1: NaN is missing") && lacking.contains("_FillValue"), "{lacking}");
    let unsigned = encoding("int8", json!({"_Unsigned": "true", "_FillValue": -1}));
    assert_eq!(encode(&unsigned, "<f8", &doubles(&[1.0, 250.0, f64::NAN])), Ok(vec![1, 250, 255]));
    let floats = encoding("float32", json!({"_FillValue": -9.0}));
    assert_eq!(encode(&floats, "<f8", &doubles(&[0.1, f64::NAN])), Ok(singles(&[0.1, -9.0])));
    assert!(encode(&floats, "<f8", &doubles(&[1e300])).is_err());
    assert!(floats.source(&dtype("<c8")).is_none() && floats.source(&dtype("<M8[s]")).is_none());
}

#[test]
fn times_are_counted_in_the_units_of_the_array() {
    let hours = encoding("int64", json!({"units": "hours since 2020-01-01", "calendar": "proleptic_gregorian"}));
    // 2020-01-01, 2020-01-01T06 and 2020-03-01T12.
    let moments: Vec<i64> = [0_i64, 6, 1452].iter().map(|hour| (438_288 + hour) * 3600).collect();
    assert_eq!(encode(&hours, "<M8[s]", &counts(&moments)), Ok(counts(&[0, 6, 1452])));
    let nanoseconds: Vec<i64> = moments.iter().map(|moment| moment * 1_000_000_000).collect();
    assert_eq!(encode(&hours, "<M8[ns]", &counts(&nanoseconds)), Ok(counts(&[0, 6, 1452])));
    let uneven = encode(&hours, "<M8[s]", &counts(&[moments[0], moments[0] + 1])).unwrap_err();
    assert!(uneven.starts_with("1: 2020-01-01T00:00:01 is no whole number of the units `hours since"), "{uneven}");
    assert_eq!(encode(&hours, "<M8[s]", &counts(&[i64::MIN])), Ok(counts(&[i64::MIN])));
    let days = encoding("float64", json!({"units": "days since 2020-01-01"}));
    let found = encode(&days, "<M8[s]", &counts(&[&moments[..], &[i64::MIN]].concat())).unwrap();
    assert_eq!(found[..24], doubles(&[0.0, 0.25, 60.5]));
    assert!(f64::from_le_bytes(found[24..].try_into().unwrap()).is_nan());
    let filled = encoding("int32", json!({"units": "hours since 2020-01-01", "_FillValue": -999}));
    assert_eq!(encode(&filled, "<M8[s]", &counts(&[i64::MIN])), Ok((-999_i32).to_le_bytes().into()));
    let bare = encoding("int32", json!({"units": "hours since 2020-01-01"}));
    assert!(encode(&bare, "<M8[s]", &counts(&[i64::MIN])).is_err());
    let durations = encoding("float32", json!({"units": "days", "dtype": "timedelta64[ns]"}));
    let expected = singles(&[f64::from(0.041_666_668_f32), f64::from(0.083_333_336_f32)]);
    assert_eq!(encode(&durations, "<m8[s]", &counts(&[3600, 7200])), Ok(expected));
    assert!(hours.source(&dtype("<m8[s]")).is_none() && durations.source(&dtype("<M8[s]")).is_none());
}

#[test]
fn texts_of_any_calendar_are_times() {
    let text = |encoding: &Encoding, text: &str| {
        let mut out = Vec::new();
        encoding.encode_text(text, &mut out).map(|()| i64::from_le_bytes(out.try_into().unwrap()))
    };
    let of = |calendar| encoding("int64", json!({"units": "days since 2000-01-01", "calendar": calendar}));
    let standard = of("standard");
    assert_eq!(text(&standard, "2000-03-01"), Ok(60));
    assert_eq!(text(&standard, "2000-03-01T00:00:00Z"), Ok(60));
    assert_eq!(text(&standard, "NaT"), Ok(i64::MIN));
    assert_eq!(text(&of("noleap"), "2000-03-01"), Ok(59));
    assert_eq!(text(&of("360_day"), "2000-02-30"), Ok(59));
    for bad in ["2000-02-30", "yesterday", "", "2000-03-01T12"] {
        let error = text(&standard, bad).unwrap_err();
        assert!(error.value.contains(bad), "{error}");
    }
    assert!(of("noleap").has_moments() && of("noleap").source(&dtype("<M8[s]")).is_none());
    assert!(encoding("int16", json!({"scale_factor": 2.0})).encode_text("2000-01-01", &mut Vec::new()).is_err());
}

#[test]
fn encoding_inverts_decoding() {
    for (data_type, attributes, stored) in [
        ("int16", json!({"scale_factor": 0.1, "add_offset": -5.5, "_FillValue": 7}), shorts(&[0, 1, -32767, 7])),
        ("int64", json!({"units": "seconds since 1970-01-01"}), counts(&[0, -1, 1 << 32])),
        ("int16", json!({"units": "minutes", "dtype": "timedelta64[s]"}), shorts(&[0, -1, 300])),
        ("uint8", json!({"_Unsigned": "false"}), vec![0, 127, 128, 255]),
        ("int8", json!({"dtype": "bool"}), vec![0, 1]),
    ] {
        let model = model(data_type, attributes);
        let decoding = Decoding::of_array(&model).unwrap().unwrap();
        let encoding = Encoding::of_array(&model).unwrap().unwrap();
        let Elements::Fixed(decoded) = decoding.decode(&Elements::Fixed(Bytes::from(stored.clone()))).unwrap() else {
            panic!("of a fixed size")
        };
        assert_eq!(encoding.data_type(), &decoding.data_type());
        let source = encoding.source(encoding.data_type()).unwrap();
        assert_eq!(encoding.encode(&decoded, source), Ok(stored), "{data_type}");
    }
    assert_eq!(Encoding::of_array(&model("int16", json!({}))), Ok(None));
}
