//! Datetimes and timedeltas.

use proptest::prelude::*;

use super::*;
use crate::data_type::TypeError;

fn moments(unit: &str, scale: u32) -> DataType {
    v3(json!({"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": scale}}))
}

fn durations(unit: &str, scale: u32) -> DataType {
    v3(json!({"name": "numpy.timedelta64", "configuration": {"unit": unit, "scale_factor": scale}}))
}

const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

/// Counts, and what NumPy's `datetime_as_string` makes of them.
#[rustfmt::skip]
const MOMENTS: &[(&str, i64, &str)] = &[
    ("Y", 0, "1970"),
    ("Y", -1, "1969"),
    ("Y", 123456789, "123458759"),
    ("M", 0, "1970-01"),
    ("M", -1, "1969-12"),
    ("M", 123456789, "10290035-10"),
    ("M", -9223372036854775807, "-768614336404562681-06"),
    ("M", 9223372036854775807, "768614336404566620-08"),
    ("W", 0, "1970-01-01"),
    ("W", -1, "1969-12-25"),
    ("W", 123456789, "2368062-06-15"),
    ("D", 0, "1970-01-01"),
    ("D", -1, "1969-12-31"),
    ("D", -719163, "0000-12-31"),
    ("D", -9223372036854775807, "-25252734927764585-06-08"),
    ("D", 9223372036854775807, "25252734927768524-07-27"),
    ("h", 0, "1970-01-01T00"),
    ("h", -1, "1969-12-31T23"),
    ("h", 123456789, "16053-11-18T21"),
    ("h", -9223372036854775807, "-1052197288654970-03-24T17"),
    ("h", 9223372036854775807, "1052197288658909-10-10T07"),
    ("m", 0, "1970-01-01T00:00"),
    ("m", -1, "1969-12-31T23:59"),
    ("m", 123456789, "2204-09-24T21:09"),
    ("m", -9223372036854775807, "-17536621475646-05-04T05:53"),
    ("m", 9223372036854775807, "17536621479585-08-30T18:07"),
    ("s", 0, "1970-01-01T00:00:00"),
    ("s", -1, "1969-12-31T23:59:59"),
    ("s", 123456789, "1973-11-29T21:33:09"),
    ("s", -9223372036854775807, "-292277022657-01-27T08:29:53"),
    ("s", 9223372036854775807, "292277026596-12-04T15:30:07"),
    ("ms", 0, "1970-01-01T00:00:00.000"),
    ("ms", -1, "1969-12-31T23:59:59.999"),
    ("ms", 123456789, "1970-01-02T10:17:36.789"),
    ("ms", -9223372036854775807, "-292275055-05-16T16:47:04.193"),
    ("ms", 9223372036854775807, "292278994-08-17T07:12:55.807"),
    ("us", 0, "1970-01-01T00:00:00.000000"),
    ("us", -1, "1969-12-31T23:59:59.999999"),
    ("us", 123456789, "1970-01-01T00:02:03.456789"),
    ("us", -9223372036854775807, "-290308-12-21T19:59:05.224193"),
    ("us", 9223372036854775807, "294247-01-10T04:00:54.775807"),
    ("ns", 0, "1970-01-01T00:00:00.000000000"),
    ("ns", -1, "1969-12-31T23:59:59.999999999"),
    ("ns", 123456789, "1970-01-01T00:00:00.123456789"),
    ("ns", -9223372036854775807, "1677-09-21T00:12:43.145224193"),
    ("ns", 9223372036854775807, "2262-04-11T23:47:16.854775807"),
    ("ps", 0, "1970-01-01T00:00:00.000000000000"),
    ("ps", -1, "1969-12-31T23:59:59.999999999999"),
    ("ps", 123456789, "1970-01-01T00:00:00.000123456789"),
    ("ps", -9223372036854775807, "1969-09-16T05:57:07.963145224193"),
    ("ps", 9223372036854775807, "1970-04-17T18:02:52.036854775807"),
    ("fs", 0, "1970-01-01T00:00:00.000000000000000"),
    ("fs", -1, "1969-12-31T23:59:59.999999999999999"),
    ("fs", 123456789, "1970-01-01T00:00:00.000000123456789"),
    ("fs", -9223372036854775807, "1969-12-31T21:26:16.627963145224193"),
    ("fs", 9223372036854775807, "1970-01-01T02:33:43.372036854775807"),
    ("as", 0, "1970-01-01T00:00:00.000000000000000000"),
    ("as", -1, "1969-12-31T23:59:59.999999999999999999"),
    ("as", 123456789, "1970-01-01T00:00:00.000000000123456789"),
    ("as", -9223372036854775807, "1969-12-31T23:59:50.776627963145224193"),
    ("as", 9223372036854775807, "1970-01-01T00:00:09.223372036854775807"),
    ("Y", -3940, "-1970"),
    ("Y", -1971, "-001"),
    ("Y", -1970, "0000"),
    ("Y", 8030, "10000"),
    ("D", 11016, "2000-02-29"),
    ("D", -25509, "1900-02-28"),
    ("D", -25508, "1900-03-01"),
    ("s", -62167219201, "-001-12-31T23:59:59"),
    ("s", -62167219200, "0000-01-01T00:00:00"),
];

#[test]
fn whole_seconds_are_written_without_a_fraction() {
    let data_type = DataType::moments_of_whole_seconds();
    assert_eq!((data_type.name().as_str(), data_type.is_time()), ("numpy.datetime64[ns]", true));
    for (count, expected) in [
        (0, "1970-01-01T00:00:00"),
        (-1_000_000_000, "1969-12-31T23:59:59"),
        (1, "1970-01-01T00:00:00.000000001"),
        (i64::MIN, "NaT"),
        (i64::MAX, "2262-04-11T23:47:16.854775807"),
    ] {
        assert_eq!(written(&data_type, &count.to_le_bytes()), format!("\"{expected}\""));
    }
}

#[test]
fn datetimes_are_written_like_numpy() {
    for (unit, count, text) in MOMENTS {
        let data_type = moments(unit, 1);
        assert_eq!(written(&data_type, &count.to_le_bytes()), format!("\"{text}\""), "{unit}");
    }
    for (unit, scale, text) in [
        ("us", 10, "1970-01-01T00:00:00.123450"),
        ("D", 7, "2206-08-07"),
        ("ns", 25, "1970-01-01T00:00:00.000308625"),
        ("M", 3, "5056-04"),
        ("W", 2, "2443-03-12"),
        ("s", 25, "1970-01-04T13:43:45"),
        ("as", 1000, "1970-01-01T00:00:00.000000000012345000"),
    ] {
        assert_eq!(written(&moments(unit, scale), &12345_i64.to_le_bytes()), format!("\"{text}\""));
    }
}

#[test]
fn extreme_times_do_not_overflow() {
    for unit in UNITS {
        for scale in [1, i32::MAX as u32] {
            for count in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX] {
                round_trip(&moments(unit, scale), &count.to_le_bytes());
                round_trip(&durations(unit, scale), &count.to_le_bytes());
            }
        }
    }
    // As a text, "not a time" is never meant by a time.
    assert_eq!(parsed(&moments("s", 1), &json!("-292277022657-01-27T08:29:52")), None);
    let long = "9".repeat(100_000);
    for text in [long.clone(), format!("{long}-01-01"), format!("2000-01-01T00:00:00.{long}"), "9".repeat(29)] {
        assert_eq!(parsed(&moments("s", 1), &json!(text)), None);
        assert_eq!(parsed(&moments("as", 1), &json!(text)), None);
    }
}

#[test]
fn invalid_times_are_rejected() {
    #[rustfmt::skip]
    let table = [
        ("s", json!(["", "2020-1-1", "2020-02-30", "2020-13", "2020-00", "2020-01-00", "2020-01-01T24", "2020-01T05"])),
        ("s", json!(["2020-01-01T23:60", "2020-01-01T23:59:60", "2020-01-01T23:59.5", "2020-01-01T", "2020-01-01T+1"])),
        ("s", json!(["2020-01-01T00:00:00.5", "2020-01-01T00:00:00.", "2020-01-01T00:00:00+01:00", "--1", "nat", "x"])),
        ("s", json!([1.5, 9_223_372_036_854_775_808_u64, true, null, [1], "1970-01-01T00:00:00.0000000000000000001"])),
        ("D", json!(["2020-01-01T05"])),
        ("W", json!(["1970-01-02"])),
        ("M", json!(["2020-01-02"])),
        ("Y", json!(["2020-02"])),
        ("ns", json!(["2262-04-11T23:47:16.854775808", "3000", "1970-01-01T00:00:00.0000000001"])),
        ("generic", json!(["2020"])),
    ];
    for (unit, values) in table {
        for json in values.as_array().unwrap() {
            assert_eq!(parsed(&moments(unit, 1), json), None, "{unit}: {json}");
        }
    }
    assert_eq!(parsed(&moments("s", 10), &json!("1970-01-01T00:00:05")), None);
    assert_eq!(parsed(&durations("s", 1), &json!("1970")), None);
}

#[test]
fn other_notations_of_times_are_read() {
    let day = |days: i64| Some((days * 86_400).to_le_bytes().to_vec());
    for text in ["1970-01-02", "1970-01-02T00", "1970-01-02 00:00", "1970-01-02T00:00:00Z", "+1970-01-02T00:00:00.000"]
    {
        assert_eq!(parsed(&moments("s", 1), &json!(text)), day(1), "{text}");
    }
    assert_eq!(parsed(&moments("s", 1), &json!(86_400)), day(1));
    assert_eq!(parsed(&moments("s", 1), &json!("1970")), day(0));
    assert_eq!(written(&moments("s", 1), &i64::MIN.to_le_bytes()), "\"NaT\"");
    assert_eq!(written(&moments("generic", 1), &7_i64.to_le_bytes()), "7");
    assert_eq!(written(&durations("D", 1), &(-7_i64).to_le_bytes()), "-7");
}

#[test]
fn names_of_time_types_are_read() {
    let table = [
        ("<M8[10us]", "numpy.datetime64[10us]", Some("'<M8[10us]'"), moments("us", 10)),
        ("<m8[s]", "numpy.timedelta64[s]", Some("'<m8[s]'"), durations("s", 1)),
        ("<M8", "numpy.datetime64[generic]", Some("'<M8'"), moments("generic", 1)),
        ("<m8[5generic]", "numpy.timedelta64[5generic]", None, durations("generic", 5)),
    ];
    for (dtype, name, npy, data_type) in table {
        assert_eq!(v2(json!(dtype)), (data_type.clone(), StoredOrder::Little));
        let big = dtype.replace('<', ">");
        assert_eq!(v2(json!(big)), (data_type.clone(), StoredOrder::Big));
        assert_eq!(data_type.to_v2(&StoredOrder::Big), Ok(json!(big)));
        assert_eq!(data_type.to_v2(&StoredOrder::Little), Ok(json!(dtype)));
        assert_eq!((data_type.name().as_str(), data_type.npy_descr().as_deref()), (name, npy));
        assert_eq!(v3(data_type.to_v3()), data_type);
        assert_eq!(draft(json!({"extension": "", "type": dtype, "fallback": null})).0, data_type);
    }
    assert_eq!(v2(json!("<M8[μs]")).0, moments("us", 1));
    for unit in UNITS {
        assert_eq!(v2(json!(format!("<M8[{unit}]"))).0, moments(unit, 1));
    }
    #[rustfmt::skip]
    let bad = ["<M8[", "<M8[]", "<M8[0s]", "<M8[-1s]", "<M8[2147483648s]", "<M8[x]", "<M8[1.5s]", "<M8s", "|M8[s]", "M8[s]"];
    for dtype in bad {
        assert!(matches!(parse_v2(&json!(dtype), V2Context::default()), Err(TypeError::Invalid { .. })), "{dtype}");
    }
    assert!(parse_v2(&json!(format!("<M8[{}s]", "9".repeat(1000))), V2Context::default()).is_err());
    for (unit, scale) in [(json!("x"), 1), (json!("s"), 0), (json!("s"), 1 << 31), (json!(1), 1)] {
        let bad = json!({"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": scale as u64}});
        assert!(matches!(parse_v3(&bad), Err(TypeError::Invalid { .. })), "{bad}");
    }
    assert!(parse_v3(&json!("numpy.datetime64")).is_err());
    let more = json!({"unit": "s", "scale_factor": 1, "calendar": "julian"});
    assert!(parse_v3(&json!({"name": "numpy.datetime64", "configuration": more})).is_err());
}

#[test]
fn fill_values_of_times_are_read() {
    let data_type = moments("ns", 1);
    for dialect in Dialect::ALL {
        for (json, count) in [(json!("NaT"), i64::MIN), (json!(i64::MIN), i64::MIN), (json!(-5), -5), (json!(7.0), 7)] {
            assert_eq!(data_type.fill_value(&json, dialect), Ok(count.to_le_bytes().to_vec()), "{dialect} {json}");
        }
    }
    assert_eq!(data_type.fill_value(&json!("0x0000000000000102"), Dialect::Draft), Ok(258_i64.to_le_bytes().to_vec()));
    assert_eq!(data_type.fill_value(&Value::Null, Dialect::Draft), Ok(vec![0; 8]));
    assert!(data_type.fill_value(&Value::Null, Dialect::V3).is_err());
}

proptest! {
    #[test]
    fn times_round_trip(count: i64, shift in 0_u32..64, unit in prop::sample::select(&UNITS[..]), scale in 1_u32..1000) {
        let element = (count >> shift).to_le_bytes();
        round_trip(&moments(unit, scale), &element);
        round_trip(&durations(unit, scale), &element);
    }
}

#[test]
fn null_fill_value_is_not_a_time_in_v2() {
    for data_type in [moments("s", 1), durations("ns", 1)] {
        let fill = |dialect| data_type.fill_value(&json!(null), dialect);
        assert_eq!(fill(Dialect::V2), Ok(i64::MIN.to_le_bytes().to_vec()));
        assert_eq!(fill(Dialect::Draft), Ok(vec![0; 8]));
        assert!(fill(Dialect::V3).is_err());
    }
}
