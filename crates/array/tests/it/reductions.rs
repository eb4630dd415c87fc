//! Results of reductions do not depend on the number of threads, nor on the order in which chunks arrive: they are the
//! same bits.

use std::sync::Arc;

use futures::TryStreamExt;
use serde_json::json;
use tokio::runtime;
use zarrd_array::{Arrays, Options, ReduceRequest};
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements};
use zarrd_compute::{Edge, Function, ReducedDimensions, ReductionRequest};
use zarrd_meta::{
    NodePath,
    codecs::CodecSpec,
    data_type::parse_v3,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{Key, MemoryStore, Precondition, WriteableStore};

const ROWS: u64 = 64;
const COLUMNS: u64 = 256;
const CHUNK: [u64; 2] = [16, 64];

/// The threads with which results are made. Each number is that of a runtime's workers and of the jobs of a read.
const THREADS: [usize; 3] = [1, 2, 8];

/// The repetitions, in which chunks arrive in other orders.
const ROUNDS: usize = 2;

/// Numbers whose naive sums depend on the order: of all magnitudes, most with an opposite, both zeros, and NaN of
/// several bits.
fn hard(index: u64) -> f64 {
    let hash =
        ((index / 2) ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let sign = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
    match hash % 97 {
        0 => 0.0 * sign,
        // Few columns, and no whole reduction that skips NaN, have them only.
        1 if index / COLUMNS % 50 == 7 => f64::from_bits(0x7ff8_0000_0000_0000 | (hash % 1000) | ((index % 2) << 63)),
        2 => 1.0,
        _ => {
            let exponent = i32::try_from(hash % 61).unwrap() - 30;
            sign * (1.0 + (hash >> 12) as f64 / (1_u64 << 52) as f64) * 2_f64.powi(exponent * 8)
        }
    }
}

/// `/floats` of hard numbers, and `/integers` of few numbers, so that there are ties. One chunk of each is missing.
fn store(runtime: &runtime::Runtime) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let codecs = [json!({"name": "bytes", "configuration": {"endian": "little"}}), gzip];
    for (name, data_type) in [("floats", "float64"), ("integers", "int8")] {
        let document = json!({"zarr_format": 3, "node_type": "array", "shape": [ROWS, COLUMNS], "data_type": data_type,
            "fill_value": 1, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": codecs});
        let set = |key: String, value: Vec<u8>| {
            let key = Key::parse(&key).unwrap();
            runtime.block_on(store.set(&key, value.into(), Precondition::none())).unwrap();
        };
        set(format!("{name}/zarr.json"), document.to_string().into_bytes());
        let size = if data_type == "int8" { 1 } else { 8 };
        let chunk = ChunkRepresentation::new(parse_v3(&json!(data_type)).unwrap(), CHUNK.to_vec(), vec![0; size]);
        let specs: Vec<CodecSpec> = codecs.iter().map(|spec| CodecSpec::parse_v3(spec).unwrap()).collect();
        let chain = CodecChain::new(&specs, chunk.unwrap()).unwrap();
        for (row, column) in
            (0..ROWS / CHUNK[0]).flat_map(|row| (0..COLUMNS / CHUNK[1]).map(move |column| (row, column)))
        {
            if (row, column) == (1, 2) {
                continue;
            }
            let elements = (0..CHUNK[0]).flat_map(|y| (0..CHUNK[1]).map(move |x| (y, x))).flat_map(|(y, x)| {
                let index = (row * CHUNK[0] + y) * COLUMNS + column * CHUNK[1] + x;
                match data_type {
                    "int8" => vec![(index.wrapping_mul(2_654_435_761) >> 20) as u8 % 5],
                    _ => hard(index).to_le_bytes().to_vec(),
                }
            });
            let elements = Elements::Fixed(elements.collect::<Vec<u8>>().into());
            set(format!("{name}/c/{row}/{column}"), chain.encode(elements).unwrap().to_vec());
        }
    }
    store
}

/// Every function, over all elements, along each dimension, and in windows that end in chunks.
fn requests() -> Vec<ReductionRequest> {
    let names = Function::names().filter(|name| *name != "mode");
    let functions: Vec<Function> = names.map(|name| name.parse().unwrap()).collect();
    let axes = [None, Some(vec!["0".to_owned()]), Some(vec!["1".to_owned()])];
    let windows = [vec![], vec![("0".to_owned(), 19), ("1".to_owned(), 200)]];
    let mut all = Vec::new();
    for function in functions {
        for (axes, windows) in axes.iter().flat_map(|axes| windows.iter().map(move |windows| (axes, windows))) {
            // Positions are not defined for windows.
            if !windows.is_empty() && (axes.is_some() || function.name().contains("arg")) {
                continue;
            }
            all.push(ReductionRequest {
                functions: vec![function],
                axes: axes.clone(),
                windows: windows.clone(),
                edge: Edge::Partial,
                reduced_dimensions: ReducedDimensions::Drop,
                ddof: 1,
            });
        }
    }
    all
}

/// The results of all requests by so many threads, which remember nothing.
fn results(store: &Arc<MemoryStore>, threads: usize) -> Vec<Vec<u8>> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let options = Options { parallelism: threads, cache_capacity: 0, result_cache: 0, ..Options::default() };
    let arrays = Arrays::new(store.clone(), options);
    let result = async |path: &str, reduction: &ReductionRequest| {
        let reduce = ReduceRequest { reduction: reduction.clone(), decode: None, astype: None };
        let all = ReadRequest::Select(Selection::default());
        let path = NodePath::parse(path).unwrap();
        let planned = arrays.reduce(&path, None, (&all, &reduce), 1 << 30).await.unwrap();
        let parts: Vec<Elements> = planned.into_stream().try_collect().await.unwrap();
        let bytes = parts.into_iter().flat_map(|part| match part {
            Elements::Fixed(bytes) => bytes.to_vec(),
            Elements::Variable(_) => panic!("numbers have a fixed size"),
        });
        bytes.collect::<Vec<u8>>()
    };
    runtime.block_on(async {
        let mut all = Vec::new();
        for reduction in requests() {
            for path in ["/floats", "/integers"] {
                all.push(result(path, &reduction).await);
            }
        }
        all
    })
}

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = store(&runtime);
    let expected = results(&store, 1);
    let of = |at: usize| (requests()[at / 2].clone(), ["floats", "integers"][at % 2]);
    for round in 0..ROUNDS {
        for threads in THREADS {
            for (at, found) in results(&store, threads).iter().enumerate() {
                assert!(*found == expected[at], "round {round}, {threads} threads: {:?}", of(at));
            }
        }
    }
}

#[test]
fn views_are_reduced_from_their_offset() {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Arc::new(MemoryStore::new());
    let set = |key: &str, value: Vec<u8>| {
        let key = Key::parse(key).unwrap();
        runtime.block_on(store.set(&key, value.into(), Precondition::none())).unwrap();
    };
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "int8", "fill_value": 100,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
        "extensions": [{"name": "example.offset", "configuration": {"offset": [3]}}]});
    set("v/zarr.json", document.to_string().into_bytes());
    set("v/c/0", vec![0, 1, 2, 3]);
    set("v/c/1", vec![4, 5, 6, 7]);
    // The view has the elements 3 to 9, of which the last two are in a missing chunk.
    let arrays = Arrays::new(store.clone(), Options::default());
    let reduced = |text: &str, windows: Vec<(String, u64)>| {
        let reduction = ReductionRequest {
            functions: vec!["sum".parse().unwrap()],
            axes: None,
            windows,
            edge: Edge::Partial,
            reduced_dimensions: ReducedDimensions::Drop,
            ddof: 0,
        };
        let reduce = ReduceRequest { reduction, decode: None, astype: None };
        let request = ReadRequest::Select(Selection::parse(text).unwrap());
        runtime.block_on(async {
            let path = NodePath::parse("/v").unwrap();
            let planned = arrays.reduce(&path, None, (&request, &reduce), 1 << 30).await.unwrap();
            let parts: Vec<Elements> = planned.into_stream().try_collect().await.unwrap();
            let Elements::Fixed(bytes) = &parts[0] else { panic!() };
            bytes.chunks_exact(8).map(|sum| i64::from_le_bytes(sum.try_into().unwrap())).collect::<Vec<_>>()
        })
    };
    let (model, _) = runtime.block_on(arrays.model(&NodePath::parse("/v").unwrap(), None)).unwrap();
    assert_eq!(model.view_shape(), [7]);
    assert_eq!(reduced("", vec![]), [3 + 4 + 5 + 6 + 7 + 100 + 100]);
    assert_eq!(reduced("1:3", vec![]), [4 + 5]);
    assert_eq!(reduced("::-1", vec![("0".to_owned(), 3)]), [100 + 100 + 7, 6 + 5 + 4, 3]);
}

/// Requests for the same results decode each chunk once, and those for others do not wait for them.
#[test]
fn equal_requests_decode_each_chunk_once() {
    const REQUESTS: usize = 8;
    let runtime = runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let store = store(&runtime);
    let decoded = |result_cache: u64| {
        let arrays = Arrays::new(store.clone(), Options { cache_capacity: 0, result_cache, ..Options::default() });
        let request = |function: &'static str| {
            let arrays = arrays.clone();
            async move {
                let reduction = ReductionRequest {
                    functions: vec![function.parse().unwrap()],
                    axes: None,
                    windows: Vec::new(),
                    edge: Edge::Partial,
                    reduced_dimensions: ReducedDimensions::Drop,
                    ddof: 0,
                };
                let reduce = ReduceRequest { reduction, decode: None, astype: None };
                let (all, path) = (ReadRequest::Select(Selection::default()), NodePath::parse("/integers").unwrap());
                let planned = arrays.reduce(&path, None, (&all, &reduce), 1 << 30).await.unwrap();
                let metrics = planned.metrics();
                let parts: Vec<Elements> = planned.into_stream().try_collect().await.unwrap();
                (parts, metrics.stats().decoded)
            }
        };
        runtime.block_on(async {
            let equal = futures::future::join_all((0..REQUESTS).map(|_| request("mean")));
            let (equal, (other, decoded_for_other)) = tokio::join!(equal, request("max"));
            assert!(equal.iter().all(|(parts, _)| *parts == equal[0].0) && other != equal[0].0);
            assert!(decoded_for_other > 0);
            equal.iter().map(|(_, decoded)| decoded).sum::<u64>()
        })
    };
    // One chunk is missing.
    let chunks = (ROWS / CHUNK[0]) * (COLUMNS / CHUNK[1]) - 1;
    assert_eq!(decoded(1 << 20), chunks);
    assert_eq!(decoded(0), chunks * REQUESTS as u64, "without a cache there is nothing to share");
}
