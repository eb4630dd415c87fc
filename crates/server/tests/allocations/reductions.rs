//! Reductions, statistics, labels, decoded elements, chunk maps and thresholds.

use http::Method;
use serde_json::{Value, json};

use crate::{
    Bound, Case,
    common::nodes::{v3_array, with},
};

/// Bounds for results of large arrays: four chunks that are decoded at a time, each with a state of groups.
/// "decoded" may have all 32 MiB that are stored, in slabs that are read ahead, and few of them decoded, to 128 MiB.
#[rustfmt::skip]
pub(crate) const BOUNDS: &[Bound] = &[
    ("mean", "26 chunks of 4 MiB", 200, 18_957_000, 1_750),
    ("mode", "26 chunks of 4 MiB", 200, 18_965_000, 1_690),
    ("coarsened", "26 chunks of 4 MiB", 200, 20_725_000, 100_090),
    ("mean", "2^36 fill values", 200, 1_925_000, 235_500),
    ("statistics", "2^36 fill values", 200, 3_329_000, 526_840),
    ("a window of 2^63", "2^36 fill values", 200, 1_925_000, 235_540),
    ("windows of 1", "2^36 fill values", 413, 27_000, 410),
    ("chunks", "2^36 fill values", 200, 637_000, 15_420),
    ("binned chunks", "2^36 fill values", 200, 2_558_000, 55_730),
    ("labels", "2^36 fill values", 400, 27_000, 420),
    ("any of each", "2^23 fill values", 200, 25_195_000, 630),
    ("mean of columns", "10^4 missing rows", 413, 4_948_000, 390_260),
    ("sum of columns", "numbers of 15 magnitudes", 200, 5_840_000, 280_500),
    ("sum of columns", "numbers of 25 magnitudes", 413, 10_851_000, 6_120),
    ("decoded", "packed elements", 200, 36_000_000, 2_940),
    ("decoded mean", "packed elements", 200, 62_000, 1_960),
    ("thresholds", "2^20 labels", 200, 72_000, 1_040),
    ("one label", "2^20 labels", 400, 9_533_000, 1_574_610),
    ("labels", "2^20 labels", 200, 95_000, 1_690),
    ("repeated labels", "a label of 1 MiB", 413, 4_831_000, 980),
];

/// Each kind of result.
pub(crate) fn cases() -> Vec<Case> {
    let sparse = |data_type, shape: &[u64], chunk: &[u64]| v3_array(data_type, shape, chunk);
    let huge = sparse("float64", &[1 << 36], &[1 << 24]);
    let flags = sparse("uint8", &[8 << 20], &[8 << 20]);
    let packed = with(sparse("int8", &[32 << 20], &[1 << 20]), "/attributes", json!({"scale_factor": 0.5}));
    let named = with(sparse("int32", &[1 << 20], &[1 << 16]), "/dimension_names", json!(["a"]));
    let wide = |magnitudes: i32| {
        let shape = [magnitudes as u64, 20_000];
        let row = |row: i32| (0..20_000).flat_map(move |_| 2_f64.powi(row * 75 - 900).to_le_bytes());
        (sparse("float64", &shape, &shape), vec![("a/c/0/0".to_owned(), (0..magnitudes).flat_map(row).collect())])
    };
    let columns = sparse("float64", &[10_000, 1_000_000], &[1, 1_000_000]);
    let labelled = with(sparse("int8", &[2], &[2]), "/dimension_names", json!(["x"]));
    let repeated = format!("format=xarray&select=({})", ["0"; 2000].join(","));
    let none = Vec::new;
    vec![
        case("mean", "26 chunks of 4 MiB", stored(), "reduce=mean"),
        case("mode", "26 chunks of 4 MiB", stored(), "reduce=mode"),
        case("coarsened", "26 chunks of 4 MiB", stored(), "reduce=mean&coarsen.1=4096&format=raw"),
        case("mean", "2^36 fill values", (huge.clone(), none()), "reduce=mean"),
        case("statistics", "2^36 fill values", (huge.clone(), none()), "stats&quantiles=0.5"),
        case(
            "a window of 2^63",
            "2^36 fill values",
            (huge.clone(), none()),
            "reduce=std&coarsen.0=9223372036854775808",
        ),
        case("windows of 1", "2^36 fill values", (huge.clone(), none()), "reduce=std&coarsen.0=1"),
        case("chunks", "2^36 fill values", (huge.clone(), none()), "chunks"),
        case("binned chunks", "2^36 fill values", (huge.clone(), none()), "chunks&bins=512"),
        case("labels", "2^36 fill values", (huge, none()), "labels=0"),
        case("any of each", "2^23 fill values", (flags, none()), "reduce=any&coarsen.0=1&format=raw"),
        case("mean of columns", "10^4 missing rows", (columns, none()), "reduce=mean&axis=0&format=raw"),
        case("sum of columns", "numbers of 15 magnitudes", wide(15), "reduce=sum&axis=0&format=raw"),
        case("sum of columns", "numbers of 25 magnitudes", wide(25), "reduce=sum&axis=0&format=raw"),
        case("decoded", "packed elements", (packed.clone(), none()), "decode=cf&format=raw"),
        case("decoded mean", "packed elements", (packed, none()), "decode=cf&reduce=mean"),
        case("thresholds", "2^20 labels", (named.clone(), none()), "thresholds&select=:1000"),
        case("one label", "2^20 labels", (named.clone(), none()), "sel.a=5"),
        case("labels", "2^20 labels", (named, none()), "labels=a&reduce=max&coarsen.a=1024&format=raw"),
        case("repeated labels", "a label of 1 MiB", (labelled, large_label()), &repeated),
    ]
}

/// An array whose chunks are read as a whole, with its chunks: more than the cache takes of a read.
fn stored() -> (Value, Vec<(String, Vec<u8>)>) {
    let filter = json!({"name": "numcodecs.fixedscaleoffset", "configuration": {"scale": 1, "offset": 0}});
    let document =
        with(v3_array("uint8", &[26, 4 << 20], &[1, 4 << 20]), "/codecs", json!([filter, {"name": "bytes"}]));
    (document, (0..26).map(|chunk| (format!("a/c/{chunk}/0"), vec![7; 4 << 20])).collect())
}

/// A coordinate of two labels, the first of which has 1 MiB.
fn large_label() -> Vec<(String, Vec<u8>)> {
    let strings = with(v3_array("string", &[2], &[2]), "/codecs", json!([{"name": "vlen-utf8"}]));
    let document = with(with(strings, "/fill_value", json!("")), "/dimension_names", json!(["x"]));
    let number = |number: u32| number.to_le_bytes().to_vec();
    let chunk = [number(2), number(1 << 20), vec![b'a'; 1 << 20], number(0)].concat();
    vec![("x/zarr.json".to_owned(), document.to_string().into_bytes()), ("x/c/0".to_owned(), chunk)]
}

fn case(
    operation: &'static str,
    of: &'static str,
    (document, chunks): (Value, Vec<(String, Vec<u8>)>),
    query: &str,
) -> Case {
    let document = ("a/zarr.json".to_owned(), document.to_string().into_bytes());
    Case {
        operation,
        of,
        keys: [document].into_iter().chain(chunks).collect(),
        method: Method::GET,
        target: format!("/array/a?{query}"),
        media_type: "application/json",
        body: Vec::new(),
    }
}
