//! Regions of arrays of every layout, written with small and large buffers, compared with naive indexing.

use std::sync::Arc;

use crate::common::{Elements, TestArray, codecs, dimension, path, selection};
use bytes::Bytes;
use futures::{StreamExt, stream};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use tokio::{runtime, task::JoinSet};
use zarrd_array::{ArrayError, ElementSource, EmptyChunks, Options, WriteError, WriteReport};
use zarrd_meta::selection::Selection;
use zarrd_store::{Key, MemoryStore, Precondition, ReadableStore, StoreError, UploadError, Version};

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) selection: Vec<zarrd_meta::selection::DimensionSelection>,
    pub(crate) seed: u16,
    /// The length of the body's parts.
    pub(crate) part: usize,
    pub(crate) scalar: bool,
}

/// An array with any layout and any codecs, and writes to it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) document: Value,
    /// The shape of the view.
    pub(crate) view: Vec<u64>,
    /// The memory of a slab in bytes.
    pub(crate) assembly: u64,
    pub(crate) writes: Vec<Write>,
}

fn grid(extent: u64, chunk: u64, rectilinear: bool) -> Value {
    match rectilinear {
        // Chunks of growing length, the last one beyond the array.
        true => {
            let mut lengths = Vec::new();
            while lengths.iter().sum::<u64>() < extent {
                lengths.push(chunk + lengths.len() as u64);
            }
            json!(lengths)
        }
        false => json!(chunk),
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let offset = prop_oneof![3 => Just(0), 1 => 0..6_u64];
    let axis = (1..12_u64, 1..7_u64, offset).prop_map(|(seen, chunk, offset)| (seen, (offset, chunk)));
    (vec(axis, 0..4), any::<bool>(), select(vec!["uint16", "string", "float64", "r24"])).prop_flat_map(
        |(axes, rectilinear, data_type)| {
            let (view, rest): (Vec<u64>, Vec<(u64, u64)>) = axes.into_iter().unzip();
            let (origin, chunk): (Vec<u64>, Vec<u64>) = rest.into_iter().unzip();
            let write = (
                view.iter().map(|&extent| dimension(extent)).collect::<Vec<_>>(),
                any::<u16>(),
                1..40_usize,
                proptest::bool::weighted(0.2),
            )
                .prop_map(|(selection, seed, part, scalar)| Write { selection, seed, part, scalar });
            let rectilinear = rectilinear && !view.is_empty();
            (select(codecs(&chunk, data_type, rectilinear)), vec(write, 1..4), select(vec![16, 64, 300, 1 << 20]))
                .prop_map(move |(codecs, writes, assembly)| {
                    let shape: Vec<u64> = view.iter().zip(&origin).map(|(extent, origin)| extent + origin).collect();
                    let shapes: Vec<Value> =
                        shape.iter().zip(&chunk).map(|(&extent, &chunk)| grid(extent, chunk, rectilinear)).collect();
                    let chunk_grid = match rectilinear {
                        true => {
                            json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}})
                        }
                        false => json!({"name": "regular", "configuration": {"chunk_shape": chunk}}),
                    };
                    let mut document = json!({
                        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
                        "fill_value": crate::common::fill(data_type), "chunk_grid": chunk_grid,
                        "chunk_key_encoding": {"name": "default"}, "codecs": codecs});
                    if origin.iter().any(|&origin| origin > 0) {
                        document["extensions"] =
                            json!([{"name": "example.offset", "configuration": {"offset": origin}}]);
                    }
                    // Elements of variable length are also decoded within this memory.
                    let assembly = if data_type == "string" { assembly.max(1 << 14) } else { assembly };
                    Case { document, view: view.clone(), assembly, writes }
                })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn region_writes_match_naive_indexing(case in case()) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let options = Options { slab_memory: case.assembly, ..Options::default() };
            let test_array = TestArray::new(&case.document, options).await;
            let reader = TestArray::over(test_array.store.clone(), Options::default()).await;
            let mut expected = test_array.filled(&case.view);
            for write in &case.writes {
                let region = test_array.region(&write.selection).await;
                let shape = region.shape().to_vec();
                let (elements, incoming) = if write.scalar {
                    let one = test_array.elements(write.seed, 1);
                    let count = shape.iter().product::<u64>() as usize;
                    (Elements(vec![one.0[0].clone(); count]), ElementSource::Scalar(one.0[0].clone()))
                } else {
                    let elements = test_array.elements(write.seed, shape.iter().product::<u64>() as usize);
                    let incoming = test_array.incoming(&elements, write.part);
                    (elements, incoming)
                };
                let report = region.execute(incoming).await.unwrap();
                prop_assert_eq!(report.shape, case.view.clone());
                expected.set(&case.view, &write.selection, &elements);
                let found = reader.read(&selection(&[]), 1 << 30).await;
                prop_assert_eq!(&found, &expected);
            }
            Ok(())
        })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn point_writes_match_naive_indexing(
        case in case(),
        writes in vec((vec(vec(any::<u64>(), 3), 0..30), any::<u16>(), 1..40_usize, any::<bool>()), 1..4),
    ) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let options = Options { slab_memory: case.assembly, ..Options::default() };
            let test_array = TestArray::new(&case.document, options).await;
            let reader = TestArray::over(test_array.store.clone(), Options::default()).await;
            let mut expected = test_array.filled(&case.view);
            for (random, seed, part, scalar) in writes {
                let at: Vec<Vec<u64>> = random
                    .iter()
                    .map(|point| point.iter().zip(&case.view).map(|(at, extent)| at % extent).collect())
                    .collect();
                let signed = |(at, extent): (&u64, &u64)| if scalar { *at as i64 } else { *at as i64 - *extent as i64 };
                let points = at.iter().map(|at| at.iter().zip(&case.view).map(signed).collect()).collect();
                let write =
                    test_array.arrays.write_points(&path(), None, points, Precondition::none()).await.unwrap();
                prop_assert_eq!(write.shape(), &[at.len() as u64]);
                let mut elements = test_array.elements(seed, at.len().max(1));
                let incoming = if scalar {
                    let one = elements.0[0].clone();
                    elements.0.fill(one.clone());
                    ElementSource::Scalar(one)
                } else {
                    elements.0.truncate(at.len());
                    test_array.incoming(&elements, part)
                };
                write.execute(incoming).await.unwrap();
                for (at, element) in at.iter().zip(&elements.0) {
                    let number = at.iter().zip(&case.view).fold(0, |number, (at, extent)| number * extent + at);
                    expected.0[number as usize] = element.clone();
                }
                prop_assert_eq!(&reader.read(&selection(&[]), 1 << 30).await, &expected);
            }
            Ok(())
        })?;
    }
}

fn document(shape: &[u64], chunk: &[u64], codecs: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint16", "fill_value": 7,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}})
}

fn gzip() -> Value {
    json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}])
}

async fn write(test_array: &TestArray, select: &str, incoming: ElementSource) -> Result<WriteReport, WriteError> {
    let selection = Selection::parse(select).unwrap();
    test_array.arrays.write(&path(), None, &selection, Precondition::none()).await?.execute(incoming).await
}

#[tokio::test]
async fn mismatching_write_changes_nothing() {
    let test_array = TestArray::new(&document(&[8, 8], &[4, 4], &gzip()), Options::default()).await;
    write(&test_array, "", test_array.incoming(&test_array.elements(1, 64), 10)).await.unwrap();
    let before = test_array.versions().await;
    let body = |count: usize| test_array.incoming(&test_array.elements(2, count), 5);
    for (count, found) in [(63, 126), (65, 130), (0, 0)] {
        let error = write(&test_array, "", body(count)).await.unwrap_err();
        assert!(
            matches!(error, WriteError::Length { expected: 128, found: annotated } if annotated == found),
            "{error:?}"
        );
    }
    let error = write(&test_array, "0:0", body(1)).await.unwrap_err();
    assert!(matches!(error, WriteError::Length { expected: 0, found: 2 }), "{error:?}");
    let error = write(&test_array, "[1,2,1]", body(24)).await.unwrap_err();
    assert!(matches!(error, WriteError::RepeatedIndex { dimension: 0, index: 1 }), "{error:?}");
    let error = write(&test_array, "8", body(8)).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::Selection(_))), "{error:?}");
    let path = path();
    let points = |at: Vec<Vec<i64>>| test_array.arrays.write_points(&path, None, at, Precondition::none());
    let error = points(vec![vec![0, 0], vec![8, 0]]).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::Selection(_))), "{error:?}");
    let error = points(vec![vec![0, 0], vec![7, 7]]).await.unwrap().execute(body(3)).await.unwrap_err();
    assert!(matches!(error, WriteError::Length { expected: 4, .. }), "{error:?}");
    let error = write(&test_array, "", ElementSource::Scalar(vec![1])).await.unwrap_err();
    assert!(matches!(error, WriteError::Length { expected: 2, found: 1 }), "{error:?}");
    let broken = stream::iter([Ok(Bytes::from_static(&[1; 100])), Err(UploadError::TimedOut.into())]).boxed();
    let error = write(&test_array, "", ElementSource::Fixed(broken)).await.unwrap_err();
    assert!(matches!(error, WriteError::Store(StoreError::Upload(UploadError::TimedOut))), "{error:?}");
    let stale = Precondition::at(Version::from_u128(1));
    let error = test_array.arrays.write(&path, None, &Selection::default(), stale).await.unwrap_err();
    assert!(matches!(error, WriteError::PreconditionFailed { current: Some(_), .. }), "{error:?}");
    assert_eq!(test_array.versions().await, before);
    let report = write(&test_array, "3:3", body(0)).await.unwrap();
    assert_eq!((report.chunks_written, report.chunks_erased), (0, 0));
    assert_eq!(test_array.versions().await, before);
}

#[tokio::test]
async fn partial_write_to_a_corrupt_chunk_fails() {
    let test_array = TestArray::new(&document(&[8], &[4], &gzip()), Options::default()).await;
    crate::common::set(&test_array.store, "a/c/1", b"damage".to_vec()).await;
    let before = test_array.versions().await;
    let error = write(&test_array, "3:5", ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::Chunk { .. })), "{error:?}");
    assert_eq!(test_array.versions().await, before);
    write(&test_array, "4:", ElementSource::Scalar(vec![1, 2])).await.unwrap();
    assert_eq!(test_array.read(&selection(&[]), 100).await.0.concat(), [[7, 0].repeat(4), [1, 2].repeat(4)].concat());
}

#[tokio::test]
async fn too_many_or_too_large_chunks_are_rejected() {
    let test_array = TestArray::new(&document(&[1 << 40], &[1], &gzip()), Options::default()).await;
    let error = write(&test_array, "", ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::TooManyChunks { .. })), "{error:?}");
    write(&test_array, "[0,1099511627775]", ElementSource::Scalar(vec![1, 2])).await.unwrap();
    let test_array = TestArray::new(&document(&[1 << 40], &[1 << 36], &gzip()), Options::default()).await;
    let error = write(&test_array, "5", ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::ChunkTooLarge { .. })), "{error:?}");
}

#[tokio::test]
async fn empty_chunks_are_stored_only_if_configured() {
    for (empty_chunks, extension, stored) in
        [(EmptyChunks::Omit, false, 1), (EmptyChunks::Store, false, 2), (EmptyChunks::Store, true, 1)]
    {
        let mut document = document(&[8], &[4], &gzip());
        if extension {
            document["extensions"] = json!(["example.skip_empty_chunks"]);
        }
        let test_array = TestArray::new(&document, Options { empty_chunks, ..Options::default() }).await;
        write(&test_array, "", ElementSource::Scalar(vec![1, 1])).await.unwrap();
        let elements = [[7, 0].repeat(4), [1, 2].repeat(4)].concat();
        let incoming = ElementSource::Fixed(stream::iter([Ok(Bytes::from(elements.clone()))]).boxed());
        let report = write(&test_array, "", incoming).await.unwrap();
        assert_eq!((report.chunks_written, report.chunks_erased), (stored, 2 - stored), "{empty_chunks:?} {extension}");
        assert_eq!(test_array.versions().await.len() as u64, 1 + stored);
        assert_eq!(test_array.read(&selection(&[]), 100).await.0.concat(), elements);
        // The same for partial writes.
        let report = write(&test_array, "5:", ElementSource::Scalar(vec![7, 0])).await.unwrap();
        assert_eq!((report.chunks_written, report.chunks_erased), (1, 0));
        let report = write(&test_array, "4", ElementSource::Scalar(vec![7, 0])).await.unwrap();
        assert_eq!(report.chunks_written, stored - 1);
    }
}

/// If unwritten elements are undefined, or readers disagree about missing chunks, written chunks are stored.
#[tokio::test]
async fn empty_chunks_are_stored_if_missing_ones_are_ambiguous() {
    for (dtype, filters, fill, stored) in [
        ("<i2", json!(null), json!(0), 0),
        ("<i2", json!(null), json!(null), 2),
        ("|O", json!([{"id": "vlen-utf8"}]), json!(""), 0),
        ("|O", json!([{"id": "vlen-utf8"}]), json!(0), 2),
        ("|O", json!([{"id": "vlen-utf8"}]), json!(null), 2),
    ] {
        let document = json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "fill_value": fill,
            "order": "C",
            "filters": filters, "compressor": null});
        let store = Arc::new(MemoryStore::new());
        crate::common::set(&store, "a/.zarray", document.to_string().into_bytes()).await;
        let test_array = TestArray::over(store, Options::default()).await;
        let element = if dtype == "|O" { Vec::new() } else { vec![0, 0] };
        let report = write(&test_array, "", ElementSource::Scalar(element)).await.unwrap();
        assert_eq!((report.chunks_written, report.chunks_erased), (stored, 2 - stored), "{document}");
    }
}

/// zarr-python 2.x expects the chunk of a zero-dimensional array at another key than the draft specifies.
#[tokio::test]
async fn draft_scalar_chunk_moves_to_the_zarr_python_key() {
    let store = Arc::new(MemoryStore::new());
    let entry = json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
        "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json",
        "extensions": []});
    let array = json!({"shape": [], "data_type": "<u2", "chunk_grid": {"type": "regular", "chunk_shape": [],
        "separator": "/"},
        "chunk_memory_layout": "C", "fill_value": 7, "extensions": [], "attributes": {}});
    crate::common::set(&store, "zarr.json", entry.to_string().into_bytes()).await;
    crate::common::set(&store, "meta/root/a.array.json", array.to_string().into_bytes()).await;
    crate::common::set(&store, "data/root/a/c", vec![1, 2]).await;
    let test_array = TestArray::over(store, Options::default()).await;
    assert_eq!(test_array.read(&selection(&[]), 100).await.0, [[1, 2]]);
    write(&test_array, "", ElementSource::Scalar(vec![3, 4])).await.unwrap();
    assert_eq!(test_array.read(&selection(&[]), 100).await.0, [[3, 4]]);
    let keys: Vec<String> = test_array.versions().await.into_keys().collect();
    assert_eq!(keys, ["data/root/a/c0", "meta/root/a.array.json", "zarr.json"]);
}

/// Arrays of v2 and the draft, in both memory orders, are written and appended to.
#[tokio::test]
async fn v2_and_draft_arrays_are_written_and_appended_to() {
    let entry = json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
        "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json",
        "extensions": []});
    for order in ["C", "F"] {
        let v2 = json!({"zarr_format": 2, "shape": [5, 7], "chunks": [2, 3], "dtype": ">u2",
            "compressor": {"id": "zlib", "level": 1},
            "fill_value": 7, "order": order, "filters": [{"id": "delta", "dtype": ">u2"}], "dimension_separator": "/"});
        let draft = json!({"shape": [5, 7], "data_type": ">u2", "chunk_memory_layout": order, "fill_value": 7,
            "extensions": [],
            "chunk_grid": {"type": "regular", "chunk_shape": [2, 3], "separator": "/"}, "attributes": {}});
        let draft = [("zarr.json", &entry), ("meta/root/a.array.json", &draft)];
        for documents in [&[("a/.zarray", &v2)][..], &draft] {
            let store = Arc::new(MemoryStore::new());
            for (key, document) in documents {
                crate::common::set(&store, key, document.to_string().into_bytes()).await;
            }
            let test_array = TestArray::over(store, Options { slab_memory: 64, ..Options::default() }).await;
            let mut expected = test_array.filled(&[5, 7]);
            for (seed, select) in [(1, "1:4,2:7"), (2, ""), (3, "::-2,[6,0,3]")] {
                let select = Selection::parse(select).unwrap();
                let region = test_array.arrays.write(&path(), None, &select, Precondition::none()).await.unwrap();
                let elements = test_array.elements(seed, region.shape().iter().product::<u64>() as usize);
                region.execute(test_array.incoming(&elements, 11)).await.unwrap();
                expected.set(&[5, 7], &select.resolve(&[5, 7]).unwrap().dimensions, &elements);
                assert_eq!(test_array.read(&selection(&[]), 1 << 20).await, expected);
            }
            let more = test_array.elements(4, 21);
            let append = test_array.arrays.append(&path(), None, "0", Precondition::none()).await.unwrap();
            assert_eq!(append.execute(None, test_array.incoming(&more, 5)).await.unwrap().shape, [8, 7]);
            expected.0.extend(more.0);
            assert_eq!(test_array.read(&selection(&[]), 1 << 20).await, expected);
        }
    }
}

/// The document changes while the body arrives.
#[tokio::test]
async fn write_fails_if_the_selected_region_changed() {
    let before = document(&[8, 8], &[4, 4], &gzip());
    let mut annotated = before.clone();
    annotated["attributes"] = json!({"unit": "m"});
    let grown = document(&[12, 8], &[4, 4], &gzip());
    let mut finer = before.clone();
    finer["chunk_grid"]["configuration"]["chunk_shape"] = json!([2, 2]);
    // The new document, the selection, and whether the write still applies.
    let cases = [
        (&annotated, "", true),
        (&annotated, "1:5", true),
        (&grown, "", false),
        (&grown, "0:8", true),
        (&grown, "2:3", true),
        (&grown, "-1", false),
        (&finer, "0:4", false),
    ];
    for (after, select, fits) in cases {
        let test_array = TestArray::new(&before, Options::default()).await;
        let region =
            test_array.arrays.write(&path(), None, &Selection::parse(select).unwrap(), Precondition::none()).await;
        let region = region.unwrap();
        let count = region.shape().iter().product::<u64>() as usize;
        let elements = test_array.elements(3, count);
        crate::common::set(&test_array.store, "a/zarr.json", after.to_string().into_bytes()).await;
        let versions = test_array.versions().await;
        match region.execute(test_array.incoming(&elements, 7)).await {
            Ok(_) => {
                assert!(fits, "{select}");
                assert_eq!(test_array.read(&Selection::parse(select).unwrap(), 1 << 20).await, elements);
            }
            Err(WriteError::ShapeChanged { .. }) => {
                assert!(!fits, "{select}");
                assert_eq!(test_array.versions().await, versions);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    let test_array = TestArray::new(&before, Options::default()).await;
    let (_, version) = test_array.arrays.model(&path(), None).await.unwrap();
    let region =
        test_array.arrays.write(&path(), None, &Selection::default(), Precondition::at(version)).await.unwrap();
    crate::common::set(&test_array.store, "a/zarr.json", annotated.to_string().into_bytes()).await;
    let error = region.execute(ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::PreconditionFailed { .. }), "{error:?}");
}

/// Each of many writers adds to its own elements, which share chunks with those of others, so that a lost update would
/// be noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_of_the_same_chunks_lose_no_update() {
    const WRITERS: u64 = 16;
    let test_array = Arc::new(TestArray::new(&document(&[64, 6], &[16, 4], &gzip()), Options::default()).await);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut running = JoinSet::new();
    for writer in 0..WRITERS {
        let test_array = test_array.clone();
        running.spawn(async move {
            let mut repeated = 0;
            for round in 1..=15_u8 {
                // Every 16th row, so that all writers change all chunks.
                let report = write(
                    &test_array,
                    &format!("{writer}::{WRITERS}"),
                    ElementSource::Scalar(vec![writer as u8, round]),
                )
                .await;
                repeated += report.unwrap().conflicts_retried;
                let found = test_array.read(&Selection::parse(&format!("{writer}::{WRITERS}")).unwrap(), 1 << 20).await;
                assert!(found.0.iter().all(|element| *element == [writer as u8, round]), "{writer} {round}: {found:?}");
            }
            repeated
        });
    }
    let reader = tokio::spawn({
        let (test_array, stop) = (test_array.clone(), stop.clone());
        async move {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let all = test_array.read(&selection(&[]), 1 << 20).await;
                for writer in 0..WRITERS as usize {
                    let rows = all.0.chunks(6).skip(writer).step_by(WRITERS as usize);
                    let elements: Vec<&Vec<u8>> = rows.flatten().collect();
                    assert!(elements.windows(2).all(|two| two[0] == two[1]), "a slice of two commits: {elements:?}");
                }
                tokio::task::yield_now().await;
            }
        }
    });
    let repeated: u64 = running.join_all().await.into_iter().sum();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    reader.await.unwrap();
    assert!(repeated > 0, "no two writers met");
    let all = test_array.read(&selection(&[]), 1 << 20).await;
    for (row, elements) in all.0.chunks(6).enumerate() {
        assert!(elements.iter().all(|element| *element == [(row as u64 % WRITERS) as u8, 15]), "{row}: {elements:?}");
    }
}

/// Inner chunks outside of a write are copied verbatim, even if they cannot be decoded.
#[tokio::test]
async fn untouched_inner_chunks_are_copied_verbatim() {
    let shards = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [4], "codecs": gzip(),
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}}]);
    let test_array = TestArray::new(&document(&[20], &[12], &shards), Options::default()).await;
    write(&test_array, "", ElementSource::Scalar(vec![1, 0])).await.unwrap();
    let key = Key::parse("a/c/0").unwrap();
    let mut shard = test_array.store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap().to_vec();
    let second = (shard.len() - 48) / 3;
    // The magic number of the second inner chunk's gzip.
    shard[second] ^= 0xff;
    crate::common::set(&test_array.store, "a/c/0", shard.clone()).await;
    write(&test_array, "2:4", ElementSource::Scalar(vec![2, 0])).await.unwrap();
    let expected = [[1, 0].repeat(2), [2, 0].repeat(2)].concat();
    assert_eq!(test_array.read(&Selection::parse("0:4").unwrap(), 100).await.0.concat(), expected);
    assert_eq!(test_array.read(&Selection::parse("8:12").unwrap(), 100).await.0.concat(), [1, 0].repeat(4));
    let error = write(&test_array, "5", ElementSource::Scalar(vec![2, 0])).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::Chunk { .. })), "{error:?}");
    // A complete inner chunk does not depend on the current content.
    write(&test_array, "4:8", ElementSource::Scalar(vec![3, 0])).await.unwrap();
    assert_eq!(test_array.read(&Selection::parse("4:8").unwrap(), 100).await.0.concat(), [3, 0].repeat(4));
    // A shard without remaining inner chunks is erased, also at the edge of the array.
    write(&test_array, "12:15", ElementSource::Scalar(vec![7, 0])).await.unwrap();
    let report = write(&test_array, "15:", ElementSource::Scalar(vec![7, 0])).await.unwrap();
    assert_eq!((report.chunks_written, report.chunks_erased), (0, 1));
    assert_eq!(test_array.versions().await.into_keys().collect::<Vec<_>>(), ["a/c/0", "a/zarr.json"]);
}

#[tokio::test]
async fn element_that_would_be_encoded_a_million_times_is_rejected() {
    let shards = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2],
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "numcodecs.bz2", "configuration": {"level": 9}},
        ],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }}]);
    let test_array = TestArray::new(&document(&[1 << 21], &[1 << 13], &shards), Options::default()).await;
    let scalar = || ElementSource::Scalar(vec![1, 2]);
    let error = write(&test_array, "", scalar()).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::WorkTooLarge { .. })), "{error}");
    let report = write(&test_array, ":1000", scalar()).await.unwrap();
    assert_eq!(report.chunks_written, 1);
}
