//! Arrays of every layout, read with small and large buffers, compared with naive indexing.

use std::{sync::Arc, time::Duration};

use crate::common::{bytes, indices, set, sharded};
use futures::StreamExt;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use tokio::runtime;
use zarrd_array::{ArrayError, Arrays, Options};
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements};
use zarrd_meta::{
    NodePath,
    codecs::CodecSpec,
    data_type::parse_v3,
    selection::{DimensionSelection, ReadRequest, Region},
};
use zarrd_store::MemoryStore;

/// An array of `uint16` whose elements are their own indices, except in missing chunks.
#[derive(Clone, Debug)]
struct Case {
    /// The stored shape.
    shape: Vec<u64>,
    /// The origin of the view.
    origin: Vec<u64>,
    chunk: Vec<u64>,
    codecs: Value,
    /// Every `gaps`th chunk is missing.
    gaps: u64,
    request: Vec<DimensionSelection>,
    assembly: u64,
    cache: u64,
}

const FILL: u16 = 65_000;

fn codecs(chunk: &[u64]) -> Vec<Value> {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let order: Vec<usize> = (0..chunk.len()).rev().collect();
    let transpose = json!({"name": "transpose", "configuration": {"order": order}});
    let half: Vec<u64> = chunk.iter().map(|&len| if len % 2 == 0 { len / 2 } else { len }).collect();
    let one = vec![1; chunk.len()];
    let inner = json!([bytes("big"), gzip]);
    vec![
        json!([bytes("little")]),
        json!([bytes("big")]),
        json!([bytes("little"), gzip]),
        json!([transpose, bytes("big"), gzip]),
        json!([sharded(&half, &json!([bytes("little")]), "end")]),
        json!([sharded(&half, &inner, "start")]),
        json!([sharded(&half, &json!([sharded(&one, &json!([bytes("big")]), "start")]), "end")]),
        json!([sharded(&one, &inner, "end"), gzip]),
    ]
}

fn dimension(extent: u64) -> impl Strategy<Value = DimensionSelection> {
    let range = (0..extent, 1..=extent, any::<bool>()).prop_map(move |(start, step, back)| {
        let len = if back { start } else { extent - 1 - start } / step + 1;
        let step = if len == 1 { 1 } else { step as i64 };
        DimensionSelection::Range { start, step: if back && len > 1 { -step } else { step }, len }
    });
    prop_oneof![
        (0..extent).prop_map(DimensionSelection::Index),
        range,
        Just(DimensionSelection::Range { start: 0, step: 1, len: extent }),
        vec(0..extent, 1..6).prop_map(|list| DimensionSelection::List(list.into())),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    // Half of the arrays are views.
    let offset = prop_oneof![Just(0), 0..6_u64];
    let axis = (1..12_u64, 1..7_u64, offset)
        .prop_map(|(view_element, chunk, offset)| (offset + view_element, (offset, chunk)));
    vec(axis, 0..4).prop_flat_map(|axes| {
        let (shape, rest): (Vec<u64>, Vec<(u64, u64)>) = axes.into_iter().unzip();
        let (origin, chunk): (Vec<u64>, Vec<u64>) = rest.into_iter().unzip();
        let request = shape.iter().zip(&origin).map(|(extent, origin)| dimension(extent - origin)).collect::<Vec<_>>();
        (
            (Just(shape), Just(origin)),
            select(codecs(&chunk)),
            Just(chunk),
            2..5_u64,
            request,
            select(vec![64, 300, 1 << 20]),
            select(vec![0, 1 << 20]),
        )
            .prop_map(|((shape, origin), codecs, chunk, gaps, request, assembly, cache)| Case {
                shape,
                origin,
                chunk,
                codecs,
                gaps,
                request,
                assembly,
                cache,
            })
    })
}

fn positions(grid: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let count: u64 = grid.iter().product();
    (0..count).map(|number| unravel(number, grid))
}

fn unravel(number: u64, shape: &[u64]) -> Vec<u64> {
    let mut remainder = number;
    let mut position: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let index = remainder % extent;
            remainder /= extent;
            index
        })
        .collect();
    position.reverse();
    position
}

fn ravel(position: &[u64], shape: &[u64]) -> u64 {
    position.iter().zip(shape).fold(0, |number, (index, extent)| number * extent + index)
}

impl Case {
    fn grid(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect()
    }

    fn view(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.origin).map(|(extent, origin)| extent - origin).collect()
    }

    fn is_stored(&self, chunk: &[u64]) -> bool {
        !(ravel(chunk, &self.grid()) + 1).is_multiple_of(self.gaps)
    }

    fn element(&self, position: &[u64]) -> u16 {
        let chunk: Vec<u64> = position.iter().zip(&self.chunk).map(|(index, chunk)| index / chunk).collect();
        if self.is_stored(&chunk) { ravel(position, &self.shape) as u16 } else { FILL }
    }

    async fn store(&self) -> Arc<MemoryStore> {
        let store = Arc::new(MemoryStore::new());
        let mut document = json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": "uint16", "fill_value": FILL,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default"}, "codecs": self.codecs});
        if self.origin.iter().any(|&origin| origin > 0) {
            document["extensions"] = json!([{"name": "example.offset", "configuration": {"offset": self.origin}}]);
        }
        set(&store, "a/zarr.json", document.to_string().into_bytes()).await;
        let specs: Vec<CodecSpec> =
            self.codecs.as_array().unwrap().iter().map(|codec| CodecSpec::parse_v3(codec).unwrap()).collect();
        let array = ChunkRepresentation::new(
            parse_v3(&json!("uint16")).unwrap(),
            self.chunk.clone(),
            FILL.to_le_bytes().to_vec(),
        );
        let chain = CodecChain::new(&specs, array.unwrap()).unwrap();
        for chunk in positions(&self.grid()).filter(|chunk| self.is_stored(chunk)) {
            let elements: Vec<u8> = positions(&self.chunk)
                .flat_map(|within| {
                    let position: Vec<u64> =
                        within.iter().zip(&chunk).zip(&self.chunk).map(|((i, c), len)| c * len + i).collect();
                    (ravel(&position, &self.shape) as u16).to_le_bytes()
                })
                .collect();
            let key = chunk.iter().fold("a/c".to_owned(), |key, index| format!("{key}/{index}"));
            set(&store, &key, chain.encode(Elements::Fixed(elements.into())).unwrap().to_vec()).await;
        }
        store
    }

    /// An element of the view.
    fn view_element(&self, position: &[u64]) -> u16 {
        self.element(&position.iter().zip(&self.origin).map(|(at, origin)| at + origin).collect::<Vec<_>>())
    }

    fn expected(&self) -> Vec<u16> {
        let axes: Vec<Vec<u64>> = self.request.iter().map(indices).collect();
        let shape: Vec<u64> = axes.iter().map(|axis| axis.len() as u64).collect();
        let at = |place: Vec<u64>| place.iter().zip(&axes).map(|(&i, axis)| axis[i as usize]).collect::<Vec<u64>>();
        positions(&shape).map(|place| self.view_element(&at(place))).collect()
    }
}

async fn read(arrays: &Arrays, path: &str, request: &ReadRequest) -> (Vec<u64>, Vec<u8>) {
    let reading = arrays.read(&NodePath::parse(path).unwrap(), None, request, 1 << 30).await.unwrap();
    let shape = reading.shape().to_vec();
    let mut all = Vec::new();
    let mut parts = Box::pin(reading.into_stream());
    while let Some(part) = parts.next().await {
        let Elements::Fixed(bytes) = part.unwrap() else { panic!("elements of variable length") };
        all.extend_from_slice(&bytes);
    }
    (shape, all)
}

fn options(assembly: u64, cache: u64) -> Options {
    Options {
        slab_memory: assembly,
        cache_capacity: cache,
        max_memory: 64 << 20,
        memory_timeout: Duration::from_secs(5),
        ..Options::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn slices_match_naive_indexing(case in case()) {
        runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
            let arrays = Arrays::new(case.store().await, options(case.assembly, case.cache));
            let region = Region { dimensions: case.request.clone() };
            let expected: Vec<u8> = case.expected().iter().flat_map(|element| element.to_le_bytes()).collect();
            let request = ReadRequest::Select(region.to_selection());
            // The second read is served from the cache.
            for _ in 0..2 {
                let (shape, elements) = read(&arrays, "/a", &request).await;
                prop_assert_eq!(&shape, &region.shape());
                prop_assert_eq!(&elements, &expected);
            }
            let stack = ReadRequest::Stack(vec![region.to_selection(), region.to_selection()]);
            let (shape, elements) = read(&arrays, "/a", &stack).await;
            prop_assert_eq!(shape, [vec![2], region.shape()].concat());
            prop_assert_eq!(elements, [expected.clone(), expected].concat());
            Ok(())
        })?;
    }

    #[test]
    fn points_match_naive_indexing(case in case(), seed in vec(vec(any::<u64>(), 3), 1..30)) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let arrays = Arrays::new(case.store().await, options(case.assembly, case.cache));
            let index = |(seed, extent): (&u64, u64)| (seed % extent) as i64 - (seed / 2 % 2 * extent) as i64;
            let point = |seed: &Vec<u64>| seed.iter().zip(case.view()).map(index).collect::<Vec<_>>();
            let points: Vec<Vec<i64>> = seed.iter().map(point).collect();
            let element = |point: &Vec<i64>| {
                let from_start = |(&index, extent)| if index < 0 { index + extent as i64 } else { index } as u64;
                case.view_element(&point.iter().zip(case.view()).map(from_start).collect::<Vec<_>>())
            };
            let expected: Vec<u8> = points.iter().flat_map(|point| element(point).to_le_bytes()).collect();
            let (shape, elements) = read(&arrays, "/a", &ReadRequest::Points(points.clone())).await;
            prop_assert_eq!(shape, [points.len() as u64]);
            prop_assert_eq!(elements, expected);
            Ok(())
        })?;
    }
}

/// Contiguous runs as long as the slab buffer, and longer.
#[tokio::test(flavor = "multi_thread")]
async fn runs_longer_than_the_slab_buffer_are_read() {
    let gzip = json!([bytes("little"), {"name": "gzip", "configuration": {"level": 1}}]);
    for (shape, chunk) in
        [(vec![700_000], vec![170_000]), (vec![900, 512], vec![130, 512]), (vec![3, 300_000], vec![2, 300_000])]
    {
        for codecs in [json!([bytes("little")]), json!([bytes("big")]), gzip.clone()] {
            let complete: Vec<DimensionSelection> = Region::full(&shape).dimensions;
            let mut cases = vec![complete.clone(), complete];
            // A range that starts and ends within chunks.
            cases[1][0] = DimensionSelection::Range { start: 1, step: 1, len: shape[0] - 2 };
            let mut case = Case {
                shape: shape.clone(),
                origin: vec![0; shape.len()],
                chunk: chunk.clone(),
                codecs,
                gaps: 4,
                request: Vec::new(),
                assembly: 2 << 20,
                cache: 0,
            };
            let arrays = Arrays::new(case.store().await, options(case.assembly, case.cache));
            for request in cases {
                case.request = request;
                let region = Region { dimensions: case.request.clone() };
                let (_, elements) = read(&arrays, "/a", &ReadRequest::Select(region.to_selection())).await;
                let expected: Vec<u8> = case.expected().iter().flat_map(|element| element.to_le_bytes()).collect();
                assert!(elements == expected, "{shape:?} {chunk:?} {}", region.to_selection());
            }
        }
    }
}

/// A view starts at its origin and has its own indices; another origin yields other elements.
#[tokio::test(flavor = "multi_thread")]
async fn view_is_indexed_from_its_origin() {
    let case = |origin: u64| Case {
        shape: vec![10],
        origin: vec![origin],
        chunk: vec![4],
        codecs: json!([bytes("little")]),
        gaps: 9,
        request: Vec::new(),
        assembly: 1 << 20,
        cache: 0,
    };
    let arrays = async |origin| Arrays::new(case(origin).store().await, options(1 << 20, 0));
    let path = NodePath::parse("/a").unwrap();
    let (view, full) = (arrays(3).await, arrays(10).await);
    for (selection, shape, expected) in [
        ("", vec![7], (3..10).collect::<Vec<u16>>()),
        ("0", vec![], vec![3]),
        ("-1", vec![], vec![9]),
        ("-7", vec![], vec![3]),
        ("6:100", vec![1], vec![9]),
        ("::-3", vec![3], vec![9, 6, 3]),
        ("(0,-1,0)", vec![3], vec![3, 9, 3]),
        ("2:2", vec![0], vec![]),
    ] {
        let request = ReadRequest::Select(selection.parse().unwrap());
        let expected: Vec<u8> = expected.iter().flat_map(|element| element.to_le_bytes()).collect();
        assert_eq!(read(&view, "/a", &request).await, (shape, expected), "{selection}");
    }
    for selection in ["7", "-8"] {
        let request = ReadRequest::Select(selection.parse().unwrap());
        let error = view.read(&path, None, &request, 1 << 20).await.unwrap_err();
        assert!(error.to_string().contains("whose bounds are -7..7"), "{error}");
    }
    let complete = ReadRequest::Select("".parse().unwrap());
    assert_eq!(read(&full, "/a", &complete).await, (vec![0], vec![]));
    // The smaller selection suggested by the error is relative to the view.
    let error = view.read(&path, None, &complete, 4).await.unwrap_err();
    assert!(
        matches!(error, ArrayError::SelectionTooLarge { smaller: Some(smaller), .. } if smaller.to_string() == "0:2")
    );
    let mut fingerprints = Vec::new();
    for origin in [0, 3, 4] {
        let reading = arrays(origin).await.read(&path, None, &complete, 1 << 20).await.unwrap();
        fingerprints.push(reading.fingerprint().unwrap());
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3);
}
