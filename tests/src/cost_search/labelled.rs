//! Arrays with coordinates, and requests for their labels.

use http::Method;
use serde_json::{Value, json};

use super::{
    arrays::{Array, Content, path},
    genome::{Gene, Genome},
    requests::{JSON, Request, Trial, array_get},
};

/// The data types of coordinates, with the size and one element of each, and attributes.
fn types() -> [(Value, u64, Value, Value); 13] {
    let times = |units: &str, calendar: &str| json!({"units": units, "calendar": calendar});
    let characters = |count: u64| json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * count}});
    [
        (json!("float64"), 8, json!(7.5), json!({})),
        (json!("int64"), 8, json!(7), json!({})),
        (json!("string"), 16, json!("x"), json!({})),
        (json!("int64"), 8, json!(7), times("days since 1850-01-01", "noleap")),
        (json!("int32"), 4, json!(7), times("hours since 2000-01-01", "360_day")),
        (json!("float64"), 8, json!(7.25), times("days since 1950-01-01T12:00:00", "julian")),
        (json!("int64"), 8, json!(7), times("seconds since 1970-01-01", "standard")),
        (json!("float32"), 4, json!(7.5), json!({"scale_factor": 0.1, "add_offset": 3, "_FillValue": 0})),
        (json!("uint8"), 1, json!(7), json!({})),
        (characters(100), 400, json!("y".repeat(100)), json!({})),
        (json!("string"), 16, json!("long".repeat(256)), json!({})),
        (json!("string"), 16, json!("\u{1}".repeat(1 << 20)), json!({})),
        (characters(1 << 18), 1 << 20, json!("\u{1}".repeat(1 << 18)), json!({})),
    ]
}

/// A request for labels, or one that selects by them.
pub(super) fn labels(genome: &Genome) -> Trial {
    let coordinate = coordinate(genome);
    let array = data(&coordinate);
    let coordinate = Array { name: format!("{}/x", group(&array.name)), ..coordinate };
    let at = &array.name;
    let picked = genome.pick(Gene::Select, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let mut query = Vec::new();
    let mut body = None;
    match picked {
        0 => query.push(format!("sel.x={}", label(genome))),
        1 => query.push(format!("sel.x={}..{}", label(genome), "9".repeat(3))),
        2 => query.push(format!("sel.x=({})", vec![label(genome); 500].join(","))),
        3 => {
            let count = genome.pick(Gene::Count, &[1, 1000, 65_536]);
            let list: Vec<String> = (0..count).map(|number| format!("{}{}", label(genome), number % 7)).collect();
            body = Some(json!({"sel": {"x": list}}).to_string());
        }
        4 => query.push("isel.x=::-1".to_owned()),
        7 => query.push(format!("isel.x=({})", vec!["0"; genome.pick(Gene::Count, &[1, 100, 4000])].join(","))),
        5 => query.push(format!("isel.x=0:{}", genome.pick(Gene::Count, &[1, 1000, 100_000, 1 << 20]))),
        _ => {}
    }
    let others = [
        &[][..],
        &["labels=x"],
        &["format=xarray"],
        &["format=csv", "header=labels"],
        &["labels=x", "format=raw"],
        &["labels=x", "format=csv"],
        &["reduce=mean", "coarsen.x=2", "format=xarray"],
        &["reduce=max", "axis=y", "format=csv", "header=labels"],
        &["labels=x", "reduce=first", "coarsen.x=3"],
        &["stats"],
        &["format=xarray", "decode=cf"],
    ];
    let others = genome.pick(Gene::Format, &others);
    query.extend(others.iter().map(|other| (*other).to_owned()));
    let request = match body {
        Some(body) => Request::new(Method::POST, format!("/array/{at}?read&{}", query.join("&"))).body(JSON, body),
        None => Request::new(Method::GET, format!("/array/{at}?{}", query.join("&"))),
    };
    let request = array_get(genome, request);
    Trial { coordinate: Some(coordinate), request, ..Trial::of_array(array) }
}

fn label(genome: &Genome) -> &'static str {
    let labels = [
        "7.5",
        "7",
        "7~",
        "x",
        "x~",
        "2000",
        "2000-01",
        "1850-01-08T00:00:00",
        "-P1D",
        "7.4~0.2",
        "longlong",
        "1e300~",
        "2262-04-11T23:47:16~P400D",
    ];
    genome.pick(Gene::Kind, &labels)
}

/// The coordinate that a genome selects.
fn coordinate(genome: &Genome) -> Array {
    let all = types();
    let at = genome.pick(Gene::DataType, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let (data_type, size, element, attributes) = all[at].clone();
    let labels: u64 = match at {
        11 | 12 => genome.pick(Gene::Size, &[1, 2, 16, 60]),
        _ => genome.pick(Gene::Size, &[1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 23]),
    };
    let chunks = genome.pick(Gene::Chunks, &[1, 16, 256, 2048]).min(labels);
    let stored = genome.pick(Gene::Spread, &[chunks, chunks / 2, 1, 0]);
    let chunk = labels.div_ceil(chunks);
    let is_text = at == 2 || at >= 9;
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let codecs = json!([if data_type == "string" { json!({"name": "vlen-utf8"}) } else { bytes }, zstd]);
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [labels], "data_type": data_type,
        "fill_value": if is_text { json!("") } else { json!(0) }, "dimension_names": ["x"], "attributes": attributes,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs});
    let content = match genome.pick(Gene::Data, &[0, 1, 2]) {
        1 if !is_text => Content::Pattern,
        2 if !is_text => Content::Noise,
        _ => Content::Same(element),
    };
    Array { name: String::new(), document, shape: vec![labels], chunk: vec![chunk], size, stored, content }
}

/// An array over a coordinate, of which nothing is stored.
fn data(coordinate: &Array) -> Array {
    let text = format!("{}{}{:?}", coordinate.document, coordinate.stored, coordinate.content);
    let name = format!("{}/data", path(&text));
    let labels = coordinate.shape.first().copied().unwrap_or(1);
    let (shape, chunk) = (vec![labels, 4], vec![labels.min(1 << 16), 4]);
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "int16",
        "fill_value": 3, "dimension_names": ["x", "y"], "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
    Array { name, document, shape, chunk, size: 2, stored: 0, content: Content::Same(json!(3)) }
}

fn group(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(group, _)| group)
}
