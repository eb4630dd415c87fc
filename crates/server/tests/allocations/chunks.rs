//! Reads of a few elements of large chunks.

use http::Method;
use serde_json::{Value, json};

use crate::{Bound, Case};

/// Bounds for reads of a few elements of large chunks, without the encoded chunks, which the store in memory has: those
/// of a filter's input and output, and of as many chunks at a time as take 64 MiB.
#[rustfmt::skip]
pub(crate) const BOUNDS: &[Bound] = &[
    ("read elements", "a chunk of 4 MiB and 10 filters", 200, 8_900_000, 1_100),
    ("read elements", "8 chunks of 16 MiB", 200, 35_300_000, 900),
];

/// Each kind of read.
pub(crate) fn cases() -> Vec<Case> {
    let (filter, transpose) = (
        json!({"name": "numcodecs.fixedscaleoffset", "configuration": {"scale": 1, "offset": 0}}),
        json!({"name": "transpose", "configuration": {"order": [1, 0]}}),
    );
    let filters = |count: usize| (0..count).flat_map(|_| [transpose.clone(), filter.clone()]).collect::<Vec<_>>();
    vec![
        Case { target: "/array/a?select=0,0".to_owned(), ..case("a chunk of 4 MiB and 10 filters", 4, 1, filters(10)) },
        Case {
            method: Method::POST,
            target: "/array/a?read".to_owned(),
            body: br#"{"points":[[0,0],[1,0],[2,0],[3,0],[4,0],[5,0],[6,0],[7,0]]}"#.to_vec(),
            ..case("8 chunks of 16 MiB", 16, 8, vec![filter.clone()])
        },
    ]
}

fn case(of: &'static str, mib: u64, chunks: u64, filters: Vec<Value>) -> Case {
    let (length, mut codecs) = (mib << 20, filters);
    codecs.push(json!({"name": "bytes"}));
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [chunks, length], "data_type": "uint8",
        "fill_value": 0, "codecs": codecs, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, length]}}});
    let stored = (0..chunks).map(|chunk| (format!("a/c/{chunk}/0"), vec![7; length as usize]));
    let keys = [("a/zarr.json".to_owned(), document.to_string().into_bytes())].into_iter().chain(stored).collect();
    let (operation, media_type) = ("read elements", "application/json");
    Case { operation, of, keys, method: Method::GET, target: String::new(), media_type, body: Vec::new() }
}
