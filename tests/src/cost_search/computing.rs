//! Requests that compute with elements: reductions, statistics, pictures, and maps of chunks.

use http::Method;
use serde_json::{Value, json};

use super::{
    arrays::Array,
    genome::{Gene, Genome},
    requests::{JSON, Request, Trial, array_get},
    selections,
};

/// As many functions as a request may have.
const MANY: &str = "sum,mean,min,max,std,var,argmin,argmax,any,all,count,first,nansum,nanmean,nanstd,nanargmax";
/// Those of them that packed elements and times have, too.
const POSITIONS: &str = "min,max,argmin,argmax,nanmin,nanmax,nanargmin,nanargmax,count,first";
const FUNCTIONS: &[&str] = &[
    "sum",
    "mean",
    "std",
    "max",
    MANY,
    POSITIONS,
    "min",
    "var",
    "argmin",
    "argmax",
    "any",
    "all",
    "count",
    "first",
    "mode",
    "nansum",
    "nanmean",
    "nanmin",
    "nanmax",
    "nanstd",
    "nanvar",
    "nanargmin",
    "nanargmax",
];

/// A reduction.
pub(super) fn reduce(genome: &Genome) -> Trial {
    let array = packed(genome);
    let rank = array.shape.len();
    let mut query = vec![format!("reduce={}", genome.pick(Gene::Kind, FUNCTIONS))];
    query.extend(axes(genome, rank));
    query.extend(windows(genome, &array));
    if genome.has(Gene::Flags, 0) {
        query.push("keepdims".to_owned());
    }
    if genome.has(Gene::Flags, 1) {
        query.push("ddof=1".to_owned());
    }
    query.extend(genome.pick(Gene::Dialect, &[None, Some("float64"), Some("uint8"), Some("complex128")]).map(astype));
    query.extend(decode(genome));
    let formats = ["raw", "npy", "json", "csv", "png", "xarray"];
    query.push(format!("format={}", genome.pick(Gene::Format, &formats)));
    asked(genome, array, &query)
}

/// Statistics.
pub(super) fn stats(genome: &Genome) -> Trial {
    let array = packed(genome);
    let mut query = vec!["stats".to_owned()];
    let spread = |count: u32| (0..count).map(move |part| (f64::from(part) / f64::from(count)).to_string());
    query.extend(match genome.pick(Gene::Kind, &[None, Some(64), Some(0), Some(1)]) {
        None => None,
        Some(0) => Some("quantiles=".to_owned()),
        Some(count) => Some(format!("quantiles={}", spread(count).collect::<Vec<_>>().join(","))),
    });
    query.extend(genome.pick(Gene::Size, &[None, Some(4096), Some(0), Some(1)]).map(|bins| format!("bins={bins}")));
    let ranges = [None, Some("0,1"), Some("-1e308,1e308"), Some("7,7"), Some("1e-320,1e-310")];
    query.extend(genome.pick(Gene::Depth, &ranges).map(|range| format!("range={range}")));
    query.extend(decode(genome));
    asked(genome, array, &query)
}

/// A picture, or its thresholds.
pub(super) fn picture(genome: &Genome) -> Trial {
    let array = packed(genome);
    let mut query = vec!["format=png".to_owned()];
    let parameters = [
        (Gene::Kind, [None, Some("cmap=viridis"), Some("cmap=RdBu_r"), Some("rgb")]),
        (Gene::Size, [None, Some("scale=log"), Some("scale=symlog&linthresh=1e-300"), Some("scale=linear")]),
        (Gene::Depth, [None, Some("limits=robust"), Some("limits=minmax"), Some("min=0&max=1")]),
        (Gene::Select, [None, Some("under=ff000080"), Some("over=00ff00&nan=12345678"), Some("reduce=mean&axis=0")]),
        (Gene::Dialect, [None, Some("thresholds"), None, Some("thresholds")]),
    ];
    query.extend(parameters.iter().filter_map(|(gene, choices)| genome.pick(*gene, choices)).map(str::to_owned));
    query.extend(decode(genome));
    asked(genome, array, &query)
}

/// The chunks that a selection touches.
pub(super) fn chunks(genome: &Genome) -> Trial {
    let array = Array::of(genome);
    let forms = [
        "",
        "&limit=10000",
        "&bins=512",
        "&bins=512,512&axis=0",
        "&bins=1,512&axis=0,1",
        "&limit=1",
        "&bins=512&axis=1,0",
        "&bins=7,511",
    ];
    let select = match genome.has(Gene::Flags, 0) {
        true => String::new(),
        false => format!("&select={}", selections::text(genome, &array).0),
    };
    let method = if genome.has(Gene::Flags, 7) { Method::HEAD } else { Method::GET };
    let target = format!("/array/{}?chunks{}{select}", array.name, genome.pick(Gene::Kind, &forms));
    Trial { request: array_get(genome, Request::new(method, target)), ..Trial::of_array(array) }
}

/// The array of a genome, with attributes by which elements are decoded.
fn packed(genome: &Genome) -> Array {
    let attributes = [
        json!({}),
        json!({"_FillValue": 7}),
        json!({"scale_factor": 0.1, "add_offset": -5.5, "_FillValue": 3, "valid_range": [0, 100]}),
        json!({"units": "days since 1950-01-01", "calendar": "noleap"}),
        json!({"units": "seconds since 1950-01-01"}),
        json!({"_Unsigned": "true", "missing_value": (0..64).collect::<Vec<_>>()}),
    ];
    let at = genome.pick(Gene::Conditions, &[0, 0, 1, 2, 3, 4, 5]);
    Array::of(genome).with_attributes(&attributes.get(at).cloned().unwrap_or(Value::Null))
}

fn decode(genome: &Genome) -> Option<String> {
    genome.pick(Gene::Name, &[None, Some("decode=cf"), Some("decode=none")]).map(str::to_owned)
}

fn astype(name: &str) -> String {
    format!("astype={name}")
}

fn axes(genome: &Genome, rank: usize) -> Option<String> {
    let list = |axes: std::ops::Range<usize>| axes.map(|axis| axis.to_string()).collect::<Vec<_>>().join(",");
    let axes = match genome.pick(Gene::Select, &[0, 1, 2, 3, 4]) {
        0 => return None,
        1 => list(0..1),
        2 => list(rank.saturating_sub(1)..rank),
        3 => list(1..rank.max(1)),
        _ => String::new(),
    };
    Some(format!("axis={axes}"))
}

fn windows(genome: &Genome, array: &Array) -> Vec<String> {
    let first = array.chunk.first().copied().unwrap_or(1);
    let window = |axis: usize, window: u64| format!("coarsen.{axis}={window}");
    let all = |size: u64| (0..array.shape.len()).map(|axis| window(axis, size)).collect();
    let mut windows: Vec<String> = match genome.pick(Gene::Size, &[0, 0, 1, 2, 3, 4, 5, 6]) {
        0 => Vec::new(),
        1 => all(2),
        2 => all(7),
        3 => vec![window(0, 1)],
        4 => vec![window(0, first.saturating_add(1))],
        5 => all(u64::MAX >> 1),
        _ => all(1),
    };
    if !windows.is_empty() {
        windows.extend(genome.pick(Gene::Depth, &[None, Some("edge=trim"), Some("edge=exact")]).map(str::to_owned));
    }
    windows
}

/// A request for what a query computes of the elements that the genome selects.
fn asked(genome: &Genome, array: Array, query: &[String]) -> Trial {
    let query = query.join("&");
    let request = match genome.has(Gene::Flags, 6) && genome.has(Gene::Flags, 5) {
        true => {
            let body = selections::body(genome, &array).to_string();
            Request::new(Method::POST, format!("/array/{}?read&{query}", array.name)).body(JSON, body)
        }
        false => {
            let select = match genome.has(Gene::Flags, 5) {
                true => String::new(),
                false => format!("select={}&", selections::text(genome, &array).0),
            };
            Request::new(Method::GET, format!("/array/{}?{select}{query}", array.name))
        }
    };
    Trial { request: array_get(genome, request), ..Trial::of_array(array) }
}
