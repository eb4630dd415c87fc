//! Malicious metadata and chunks: each one is answered with a problem document, the server keeps running, and its
//! memory stays within the budget.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use zarrd_tests::{
    server::{Launch, Server},
    skip::note,
};
use zarrd_wire::problem::{Problem, ProblemType};

const MIB: u64 = 1 << 20;

/// The configured array memory of the server, and an allowance for everything else.
const ARRAYS: u64 = 64 * MIB;
const CACHE: u64 = 16 * MIB;
const ELSE: u64 = 96 * MIB;

/// A server and the number of requests sent to it.
struct FuzzCase {
    server: Server,
    requests: usize,
}

impl FuzzCase {
    fn start() -> Self {
        let launch = Launch::of("memory:").arg("--max-memory").arg("64MiB").arg("--chunk-cache").arg("16MiB");
        Self { server: launch.start(), requests: 0 }
    }

    async fn put(&self, key: &str, value: impl Into<Vec<u8>>) {
        let answer = self.server.put(&format!("/store/{key}"), value.into()).await;
        assert!(answer.status().is_success(), "{key}: {}", answer.status());
    }

    /// Reads the whole array at `path`, which must fail with one of these problem types.
    async fn rejected(&mut self, path: &str, query: &str, kinds: &[ProblemType]) -> Problem {
        self.requests += 1;
        let answer = self.server.get(&format!("/array/{path}?{query}")).await;
        let (status, body) = (answer.status(), answer.bytes().await.unwrap());
        let text = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
        let problem = Problem::from_json(&body).unwrap_or_else(|| panic!("{path}?{query}: {status} {text}"));
        assert!(kinds.contains(&problem.kind), "{path}?{query}: {status} {text}");
        problem
    }

    async fn undecodable(&mut self, path: &str) -> Problem {
        let problem =
            self.rejected(path, "format=raw", &[ProblemType::UndecodableChunk, ProblemType::ChunkTooLarge]).await;
        if problem.kind == ProblemType::UndecodableChunk {
            assert!(problem.members.key.is_some() && problem.members.codec.is_some(), "{path}: {problem:?}");
        }
        problem
    }

    fn end(self, what: &str) {
        let peak = self.server.peak_memory();
        note(format!("{what}: {} requests, peak memory {} MiB", self.requests, peak / MIB));
        assert!(peak < ARRAYS + CACHE + ELSE, "{} MiB", peak / MIB);
        self.server.stop();
    }
}

fn v2(elements: u64, compressor: &Value, filters: &Value) -> String {
    json!({"zarr_format": 2, "shape": [elements], "chunks": [elements], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": filters, "compressor": compressor})
    .to_string()
}

fn v3(shape: &[u64], chunk: &[u64], codecs: &Value) -> String {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}})
    .to_string()
}

/// Compresses `mib` MiB of zeros.
fn gzip(mib: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![0; 1 << 20];
    (0..mib).for_each(|_| encoder.write_all(&block).unwrap());
    encoder.finish().unwrap()
}

/// A zstd frame with one block of a repeated byte that declares a size of 2⁴⁷ bytes.
fn zstd_that_declares_too_much() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    frame.extend((1_u64 << 47).to_le_bytes());
    frame.extend([0x03, 0x00]);
    frame
}

fn compressors() -> Vec<Value> {
    vec![
        json!({"id": "zlib"}),
        json!({"id": "gzip"}),
        json!({"id": "zstd"}),
        json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        json!({"id": "lz4"}),
        json!({"id": "bz2"}),
        json!({"id": "lzma"}),
        json!({"id": "crc32"}),
        json!({"id": "crc32c"}),
        json!({"id": "adler32"}),
        json!({"id": "fletcher32"}),
        json!({"id": "jenkins_lookup3"}),
        json!({"id": "shuffle", "elementsize": 4}),
        json!({"id": "delta", "dtype": "|u1"}),
        json!({"id": "fixedscaleoffset", "scale": 10, "offset": 1, "dtype": "<f8", "astype": "|u1"}),
        json!({"id": "quantize", "digits": 1, "dtype": "<f8"}),
        json!({"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"}),
        json!({"id": "packbits"}),
    ]
}

/// Bytes that start like various formats and declare far more data than a chunk holds.
fn lies() -> Vec<Vec<u8>> {
    let mut blosc = vec![2, 1, 0x21, 4];
    blosc.extend([0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 200, 0, 0, 0]);
    let mut lz4 = vec![0xff, 0xff, 0xff, 0x7f];
    lz4.extend([0x1f, 0, 1, 0, 255, 255, 255, 255]);
    vec![
        Vec::new(),
        vec![0],
        vec![0xff; 40],
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec(),
        b"BZh91AY&SY\xff\xff\xff\xff".to_vec(),
        b"\xfd7zXZ\x00\x00\x04\xff\xff\xff\xff\xff\xff".to_vec(),
        b"\x5d\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00".to_vec(),
        zstd_that_declares_too_much(),
        blosc,
        lz4,
        (0..=255).cycle().take(5000).collect(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_chunks_are_rejected() {
    let mut case = FuzzCase::start();
    for (number, compressor) in compressors().iter().enumerate() {
        for (position, is_filter) in [("c", false), ("f", true)] {
            let path = format!("{position}{number}");
            let filters = if is_filter { json!([compressor]) } else { Value::Null };
            let compressor = if is_filter { &Value::Null } else { compressor };
            case.put(&format!("{path}/.zarray"), v2(1000, compressor, &filters)).await;
            for lie in lies() {
                case.put(&format!("{path}/0"), lie).await;
                case.undecodable(&path).await;
            }
        }
    }
    case.end("chunks that lie");
}

#[tokio::test(flavor = "multi_thread")]
async fn decompression_bombs_are_rejected() {
    let mut case = FuzzCase::start();
    // 4 MB that expand to 4 GB in 512 members, for a chunk of 16 bytes.
    let bomb = gzip(8).repeat(512);
    case.put("gzip/.zarray", v2(16, &json!({"id": "gzip"}), &Value::Null)).await;
    case.put("gzip/0", bomb.clone()).await;
    case.undecodable("gzip").await;
    case.put("gzip/0", gzip(8)).await;
    case.undecodable("gzip").await;
    case.put("zstd/.zarray", v2(16, &json!({"id": "zstd"}), &Value::Null)).await;
    case.put("zstd/0", zstd_that_declares_too_much()).await;
    case.undecodable("zstd").await;
    // The same for elements of variable length, where the chunk size gives no bound.
    let strings = json!({"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "fill_value": "", "order": "C",
        "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "gzip"}});
    case.put("strings/.zarray", strings.to_string()).await;
    for chunk in [bomb, gzip(16)] {
        case.put("strings/0", chunk).await;
        case.undecodable("strings").await;
    }
    let mut lengths = vec![2, 0, 0, 0];
    lengths.extend([0xff, 0xff, 0xff, 0x7f]);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&lengths).unwrap();
    case.put("strings/0", encoder.finish().unwrap()).await;
    case.undecodable("strings").await;
    case.end("bombs");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_shards_are_rejected() {
    let mut case = FuzzCase::start();
    let bytes = json!({"name": "bytes"});
    let little = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let shard = |chunk: &[u64], inner: &Value, location: &str| {
        json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk, "codecs": inner, "index_codecs": little, "index_location": location}}])
    };
    let entry = |offset: u64, length: u64| [offset.to_le_bytes(), length.to_le_bytes()].concat();
    let gzip_inner = json!([bytes, {"name": "gzip", "configuration": {"level": 1}}]);
    for (location, inner) in
        [("start", json!([bytes])), ("end", json!([bytes])), ("start", gzip_inner.clone()), ("end", gzip_inner)]
    {
        case.put("s/zarr.json", v3(&[8], &[8], &shard(&[4], &inner, location))).await;
        for (offset, length) in [
            (u64::MAX - 1, 4),
            (u64::MAX, 4),
            (4, u64::MAX),
            (0, u64::MAX - 1),
            (1 << 63, 1 << 63),
            (1000, 4),
            (0, 5),
            (0, 1000),
        ] {
            let index = [entry(offset, length), entry(offset, length)].concat();
            let value = if location == "start" { [index, vec![7; 8]].concat() } else { [vec![7; 8], index].concat() };
            case.put("s/c/0", value).await;
            case.undecodable("s").await;
        }
        for short in [0, 1, 31] {
            case.put("s/c/0", vec![0; short]).await;
            case.undecodable("s").await;
        }
    }
    // An index of 2⁴⁰ entries, and more inner chunks than can be counted.
    case.put("s/zarr.json", v3(&[1 << 40], &[1 << 40], &shard(&[1], &json!([bytes]), "end"))).await;
    case.put("s/c/0", vec![0; 1000]).await;
    case.rejected(
        "s",
        "select=5",
        &[
            ProblemType::UndecodableChunk,
            ProblemType::ChunkTooLarge,
            ProblemType::UnsupportedNode,
            ProblemType::InvalidMetadata,
        ],
    )
    .await;
    // Nested shards, as text, since a tree of this depth would overflow the stack of this test.
    let around = |inner: &str| shard(&[1], &json!("inner"), "end").to_string().replace("\"inner\"", inner);
    let deep = (0..300).fold(json!([bytes]).to_string(), |inner, _| around(&inner));
    case.put(
        "d/zarr.json",
        v3(&[1], &[1], &json!("codecs")).replace("\"codecs\":\"codecs\"", &format!("\"codecs\":{deep}")),
    )
    .await;
    case.rejected("d", "", &[ProblemType::InvalidMetadata, ProblemType::UnsupportedNode]).await;
    let nested = (0..20).fold(json!([bytes]), |inner, _| shard(&[1], &inner, "end"));
    case.put("d/zarr.json", v3(&[1], &[1], &nested)).await;
    case.rejected("d", "", &[ProblemType::InvalidMetadata, ProblemType::UnsupportedNode]).await;
    case.end("shards that lie");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_metadata_is_rejected() {
    let mut case = FuzzCase::start();
    let document = |change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(&v3(&[4], &[4], &json!([{"name": "bytes"}]))).unwrap();
        change(&mut document);
        document.to_string()
    };
    let shapes = [
        json!([-1]),
        json!([1.5]),
        json!([1e300]),
        json!(["4"]),
        json!(4),
        json!([[4]]),
        json!([4, 4]),
        json!([u64::MAX]),
        json!(vec![1; 5000]),
        Value::Null,
    ];
    for shape in shapes {
        case.put("m/zarr.json", document(&|document| document["shape"] = shape.clone())).await;
        case.rejected("m", "", &[ProblemType::InvalidMetadata]).await;
    }
    for chunk in [json!([0]), json!([-4]), json!([4, 4]), json!([]), json!([u64::MAX]), json!("4")] {
        let change = |document: &mut Value| document["chunk_grid"]["configuration"]["chunk_shape"] = chunk.clone();
        case.put("m/zarr.json", document(&change)).await;
        case.rejected("m", "", &[ProblemType::InvalidMetadata]).await;
    }
    let types = ["r8589934592", "r7", "float31", "|S99999999999", "{}", "string[]"];
    for data_type in types {
        case.put("m/zarr.json", document(&|document| document["data_type"] = json!(data_type))).await;
        case.rejected("m", "", &[ProblemType::InvalidMetadata, ProblemType::UnsupportedNode]).await;
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let texts = ["", "{", "null", "[]", "\"zarr\"", "{}", &deep, "\u{feff}{}", "{\"zarr_format\": 3}"];
    for text in texts {
        case.put("m/zarr.json", text).await;
        case.rejected("m", "", &[ProblemType::InvalidMetadata]).await;
    }
    // 40 MB of small values would take gigabytes as a tree.
    let many = format!("{{\"zarr_format\": 3, \"attributes\": [{}0]}}", "0,".repeat(20 << 20));
    case.put("m/zarr.json", many).await;
    case.rejected("m", "", &[ProblemType::InvalidMetadata, ProblemType::Busy]).await;
    // More elements than can be counted, of which only the selected ones are read.
    let full = i64::MAX as u64;
    case.put("m/zarr.json", v3(&[full, full], &[full, full], &json!([{"name": "bytes"}]))).await;
    case.rejected(
        "m",
        "select=5,5",
        &[ProblemType::InvalidMetadata, ProblemType::UnsupportedNode, ProblemType::ChunkTooLarge],
    )
    .await;
    case.put("m/zarr.json", v3(&[full, full], &[1, 1], &json!([{"name": "bytes"}]))).await;
    let answer = case.server.get("/array/m?select=-1,-1").await;
    assert_eq!(answer.text().await.unwrap(), "0");
    case.end("metadata that lies");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_selections_are_rejected() {
    let mut case = FuzzCase::start();
    let full = i64::MAX as u64;
    case.put("a/zarr.json", v3(&[full, 1000], &[1, 1], &json!([{"name": "bytes"}]))).await;
    let list = |count: u64| format!("({})", (0..count).map(|index| index.to_string()).collect::<Vec<_>>().join(","));
    let lists = |count: usize| vec!["(0)"; count].join(",");
    let selections = [
        ("9223372036854775807", ProblemType::IndexOutOfBounds),
        ("-9223372036854775808", ProblemType::IndexOutOfBounds),
        ("99999999999999999999999999", ProblemType::IndexOutOfBounds),
        ("::0", ProblemType::InvalidSelection),
        ("0,0,0", ProblemType::SelectionRankMismatch),
        ("...,...", ProblemType::InvalidSelection),
        ("0:", ProblemType::SelectionTooLarge),
        ("::2", ProblemType::SelectionTooLarge),
        (":10000", ProblemType::TooManyChunks),
        ("garbage", ProblemType::InvalidSelection),
        ("[[0]]", ProblemType::InvalidSelection),
        ("(((((((((((((((((((((((((((((((((((((((", ProblemType::InvalidSelection),
        ("0x10", ProblemType::InvalidSelection),
        ("1e3", ProblemType::InvalidSelection),
        ("%F0%9F%A6%80", ProblemType::InvalidSelection),
        ("%FF", ProblemType::InvalidParameter),
        (&lists(10_000), ProblemType::InvalidSelection),
    ];
    for (selection, kind) in selections {
        case.rejected("a", &format!("select={selection}&format=raw"), &[kind]).await;
    }
    let long = list(4000);
    case.rejected("a", &format!("select={long},{}&format=raw", list(1000)), &[ProblemType::TooManyChunks]).await;
    let client = reqwest::Client::new();
    let post = async |body: String| {
        let url = case.server.url("/array/a?read&format=raw");
        let answer = client.post(url).header("content-type", "application/json").body(body).send().await.unwrap();
        (answer.status().as_u16(), Problem::from_json(&answer.bytes().await.unwrap()))
    };
    let deep = "[".repeat(1 << 20);
    for body in [
        String::new(),
        "{}".into(),
        "{\"points\": [[0]]}".into(),
        format!("{{\"points\": {deep}"),
        format!("{{\"select\": \"{}\"}}", lists(20_000)),
        format!("{{\"stack\": [{}\"0\"]}}", "\"0\",".repeat(100_000)),
        format!("{{\"points\": [{}[0,0]]}}", "[0,0],".repeat(1_100_000)),
    ] {
        let (status, problem) = post(body).await;
        assert!((400..500).contains(&status) && problem.is_some(), "{status} {problem:?}");
    }
    // The maximum number of points, each in a missing chunk of its own.
    let (status, problem) = post(format!("{{\"points\": [{}[0,0]]}}", "[1,1],".repeat(200_000))).await;
    assert!(matches!(status, 200 | 503 | 413), "{status} {problem:?}");
    case.end("selections that lie");
}
