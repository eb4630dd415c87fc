//! Arrays written by the zarrs crate are read through `/array` as by zarrs.

use std::{ops::Range, sync::Arc};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};
use zarrd_client::zarrs::ZarrsStore;
use zarrs::{
    array::{Array, ArrayBytes, ArrayMetadata, ArraySubset},
    storage::{AsyncReadableWritableListableStorage, AsyncReadableWritableListableStorageTraits},
};

use tokio::task::JoinSet;

use crate::test_server::TestServer;

type Stored = Array<dyn AsyncReadableWritableListableStorageTraits>;

const SHAPE: [u64; 2] = [7, 10];
const PARTS: [[Range<u64>; 2]; 3] = [[0..7, 0..10], [1..6, 3..9], [6..7, 0..1]];

/// The fixed-size data types, with element size and fill value.
fn types() -> Vec<(Value, usize, Value)> {
    let numbers = [
        ("bool", 1, json!(true)),
        ("int8", 1, json!(-128)),
        ("int16", 2, json!(-7)),
        ("int32", 4, json!(7)),
        ("int64", 8, json!(i64::MIN)),
        ("uint8", 1, json!(255)),
        ("uint16", 2, json!(7)),
        ("uint32", 4, json!(u32::MAX)),
        ("uint64", 8, json!(u64::MAX)),
        ("float16", 2, json!("NaN")),
        ("bfloat16", 2, json!("Infinity")),
        ("float32", 4, json!("0x7fc00001")),
        ("float64", 8, json!(-0.5)),
        ("complex64", 8, json!([1.5, "NaN"])),
        ("complex128", 16, json!(["-Infinity", "0x7ff8000000000001"])),
        ("r8", 1, json!([7])),
        ("r24", 3, json!([1, 2, 3])),
    ];
    let times = [("numpy.datetime64", "us", 10), ("numpy.timedelta64", "s", 1)].map(|(name, unit, scale)| {
        let configuration = json!({ "unit": unit, "scale_factor": scale });
        (json!({ "name": name, "configuration": configuration }), 8, json!("NaT"))
    });
    let numbers = numbers.map(|(name, size, fill)| (json!(name), size, fill));
    numbers.into_iter().chain(times).collect()
}

/// Codec chains for elements of this size, with their names.
fn chains(size: usize) -> Vec<(String, Value)> {
    let bytes = |endian: &str| match size {
        1 => json!({ "name": "bytes" }),
        _ => json!({ "name": "bytes", "configuration": { "endian": endian } }),
    };
    let named = |name: &str, configuration: Value| json!({ "name": name, "configuration": configuration });
    let gzip = named("gzip", json!({ "level": 3 }));
    let zstd = named("zstd", json!({ "level": 3, "checksum": true }));
    let transpose = named("transpose", json!({ "order": [1, 0] }));
    let crc32c = json!({ "name": "crc32c" });
    let shard = |chunks: [u64; 2], codecs: Value, location: &str| {
        let index = json!([{ "name": "bytes", "configuration": { "endian": "little" } }, { "name": "crc32c" }]);
        let configuration =
            json!({ "chunk_shape": chunks, "codecs": codecs, "index_codecs": index, "index_location": location });
        named("sharding_indexed", configuration)
    };
    let inmost = shard([1, 2], json!([bytes("big"), gzip]), "start");
    let plain = [
        ("little", json!([bytes("little")])),
        ("big", json!([bytes("big")])),
        ("gzip", json!([bytes("little"), gzip])),
        ("zstd", json!([bytes("little"), zstd])),
        ("zstd_crc32c", json!([bytes("little"), zstd, crc32c])),
        ("transpose", json!([transpose, bytes("big")])),
        ("zlib", json!([bytes("little"), named("numcodecs.zlib", json!({ "level": 1 }))])),
        ("bz2", json!([bytes("little"), named("numcodecs.bz2", json!({ "level": 1 }))])),
        ("shuffle", json!([bytes("little"), named("numcodecs.shuffle", json!({ "elementsize": size })), gzip])),
        ("fletcher32", json!([bytes("little"), named("numcodecs.fletcher32", json!({}))])),
        ("adler32", json!([bytes("little"), named("numcodecs.adler32", json!({ "location": "end" }))])),
        ("shards_end", json!([shard([2, 2], json!([bytes("little"), zstd]), "end")])),
        ("shards_start", json!([shard([2, 4], json!([transpose, bytes("big"), crc32c]), "start")])),
        ("shards_of_shards", json!([shard([2, 4], json!([inmost]), "end")])),
    ];
    plain.map(|(name, chain)| (name.to_owned(), chain)).into()
}

fn document(data_type: &Value, fill: &Value, chain: &Value) -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": data_type,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [4, 4] } },
        "chunk_key_encoding": { "name": "default" },
        "fill_value": fill,
        "codecs": chain,
    })
}

/// Creates an array with zarrs and writes all of it except the first row of chunks; `None` if zarrs rejects it.
async fn written(
    storage: &AsyncReadableWritableListableStorage,
    path: &str,
    document: Value,
    elements: ArrayBytes<'static>,
) -> Option<Stored> {
    let metadata: ArrayMetadata = serde_json::from_value(document).ok()?;
    let array = Array::new_with_metadata(storage.clone(), path, metadata).ok()?;
    let written = ArraySubset::new_with_ranges(&[4..7, 0..10]);
    array.async_store_array_subset(&written, elements).await.ok()?;
    array.async_store_metadata().await.unwrap();
    Some(array)
}

/// Compares parts of the array; `raw` encodes the elements of zarrs as in a response.
async fn compare(server: &TestServer, array: &Stored, raw: impl Fn(ArrayBytes<'_>) -> Vec<u8>) {
    for part in PARTS {
        let ours = ArraySubset::new_with_ranges(&part);
        let expected = raw(array.async_retrieve_array_subset::<ArrayBytes<'_>>(&ours).await.unwrap());
        let [rows, columns] = &part;
        let select = format!("{}:{},{}:{}", rows.start, rows.end, columns.start, columns.end);
        let path = format!("/array{}?select={select}&format=raw", array.path());
        let answer = reqwest::get(format!("{}{path}", server.base)).await.unwrap();
        let status = answer.status();
        let found = answer.bytes().await.unwrap();
        assert!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&found));
        assert_eq!(found, expected, "{path}");
    }
}

/// The raw format of variable-length elements: the count, then each element after its length.
fn length_prefixed(elements: ArrayBytes<'_>) -> Vec<u8> {
    let (data, offsets) = elements.into_variable().unwrap().into_parts();
    let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let mut raw = number(offsets.len() - 1).to_vec();
    for pair in offsets.windows(2) {
        raw.extend(number(pair[1] - pair[0]));
        raw.extend_from_slice(&data[pair[0]..pair[1]]);
    }
    raw
}

fn storage(server: &TestServer) -> AsyncReadableWritableListableStorage {
    Arc::new(ZarrsStore::new(server.store.clone()))
}

/// Writes and compares an array of this type for each codec chain; returns how many were compared, and the paths of those
/// that zarrs rejects.
async fn compare_chains(
    server: &TestServer,
    (data_type, size, fill): &(Value, usize, Value),
    seed: u64,
) -> (usize, Vec<String>) {
    let storage = storage(server);
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut compared, mut rejected) = (0, Vec::new());
    let name = data_type.as_str().unwrap_or_else(|| data_type["name"].as_str().unwrap());
    for (chain, codecs) in chains(*size) {
        let path = format!("/zarrs/{name}/{chain}");
        let mut elements = vec![0; 30 * size];
        random.fill(&mut elements[..]);
        if name == "bool" {
            elements.iter_mut().for_each(|byte| *byte &= 1);
        }
        let document = document(data_type, fill, &codecs);
        match written(&storage, &path, document, ArrayBytes::new_flen(elements)).await {
            Some(array) => {
                compare(server, &array, |elements| elements.into_fixed().unwrap().into_owned()).await;
                compared += 1;
            }
            None => rejected.push(path),
        }
    }
    (compared, rejected)
}

#[tokio::test(flavor = "multi_thread")]
async fn fixed_size_types_through_every_codec_chain_match_zarrs() {
    let server = Arc::new(TestServer::start().await);
    let mut each = JoinSet::new();
    for (seed, data_type) in (5..).zip(types()) {
        let server = Arc::clone(&server);
        each.spawn(async move { compare_chains(&server, &data_type, seed).await });
    }
    let (mut compared, mut rejected) = (0, Vec::new());
    for (some, paths) in each.join_all().await {
        compared += some;
        rejected.extend(paths);
    }
    assert_eq!((compared, rejected), (266, Vec::<String>::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_bits_match_zarrs() {
    let server = TestServer::start().await;
    let storage = storage(&server);
    let mut random = SmallRng::seed_from_u64(6);
    let mut compared = 0;
    let numbers =
        ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "complex64"];
    for (data_type, size, fill) in types() {
        let Some(name) = data_type.as_str().filter(|name| numbers.contains(name)) else { continue };
        let parts = if name == "complex64" { 2 } else { 1 };
        let last = if name == "bool" { 0 } else { 5 * size / parts };
        // For partial chunks, zarrs assumes that the first bit is 0, and for whole bytes it omits the padding.
        for padding in ["none", "first_byte", "last_byte"] {
            let path = format!("/zarrs/{name}/{padding}");
            let mut elements = vec![0; 30 * size];
            random.fill(&mut elements[..]);
            if name == "bool" {
                elements.iter_mut().for_each(|byte| *byte &= 1);
            }
            let configuration = json!({ "padding_encoding": padding, "first_bit": 0, "last_bit": last });
            let packbits = json!([{ "name": "packbits", "configuration": configuration }]);
            let document = document(&data_type, &fill, &packbits);
            let array = written(&storage, &path, document, ArrayBytes::new_flen(elements)).await.unwrap();
            compare(&server, &array, |elements| elements.into_fixed().unwrap().into_owned()).await;
            compared += 1;
        }
    }
    assert_eq!(compared, 3 * numbers.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn variable_length_types_match_zarrs() {
    let server = TestServer::start().await;
    let storage = storage(&server);
    let texts: Vec<String> = (0..30).map(|n| "é𝄞".repeat(n % 5)).collect();
    let offsets: Vec<usize> =
        texts.iter().scan(0, |end, text| Some(std::mem::replace(end, *end + text.len()))).collect();
    let all = texts.concat();
    let offsets = [offsets, vec![all.len()]].concat();
    for (data_type, codec, fill) in [("string", "vlen-utf8", json!("fill")), ("bytes", "vlen-bytes", json!([1, 2]))] {
        let gzip = json!({ "name": "gzip", "configuration": { "level": 1 } });
        let elements = ArrayBytes::new_vlen(all.clone().into_bytes(), offsets.clone().try_into().unwrap()).unwrap();
        let path = format!("/zarrs/{data_type}");
        let document = document(&json!(data_type), &fill, &json!([{ "name": codec }, gzip]));
        let array = written(&storage, &path, document, elements).await.unwrap();
        compare(&server, &array, length_prefixed).await;
    }
}
