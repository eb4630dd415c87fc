//! Appends, compared with naive concatenation.

use crate::common::{Elements, TestArray, codecs, path, selection};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use tokio::{runtime, task::JoinSet};
use zarrd_array::{ArrayError, ElementSource, NodeError, Options, WriteError};
use zarrd_store::Precondition;

fn document(shape: &[u64], chunk: &[u64], data_type: &str, codecs: &Value, origin: &[u64]) -> Value {
    let mut document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "fill_value": crate::common::fill(data_type),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs});
    if origin.iter().any(|&origin| origin > 0) {
        document["extensions"] = json!([{"name": "example.offset", "configuration": {"offset": origin}}]);
    }
    document
}

#[derive(Clone, Debug)]
struct Case {
    document: Value,
    view: Vec<u64>,
    dimension: usize,
    /// The number of steps, the seed, and the length of the body's parts.
    appends: Vec<(u64, u16, usize)>,
    assembly: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let axis = (1..6_u64, 1..5_u64, prop_oneof![3 => Just(0), 1 => 0..4_u64]);
    let append = vec((0..7_u64, any::<u16>(), 1..40_usize), 1..4);
    let grows = (any::<prop::sample::Index>(), any::<bool>());
    (vec(axis, 1..4), append, grows, select(vec!["uint16", "string"]), select(vec![16, 64, 1 << 20])).prop_flat_map(
        |(axes, appends, (dimension, from_nothing), data_type, assembly)| {
            let dimension = dimension.index(axes.len());
            let mut view: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
            let origin: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
            if from_nothing && let Some(extent) = view.get_mut(dimension) {
                *extent = 0;
            }
            let assembly = if data_type == "string" { 1 << 14 } else { assembly };
            select(codecs(&chunk, data_type, false)).prop_map(move |codecs| {
                let shape: Vec<u64> = view.iter().zip(&origin).map(|(extent, origin)| extent + origin).collect();
                let document = document(&shape, &chunk, data_type, &codecs, &origin);
                Case { document, view: view.clone(), dimension, appends: appends.clone(), assembly }
            })
        },
    )
}

/// Concatenates an array with another one along a dimension.
fn behind(shape: &[u64], elements: &Elements, appended: &Elements, count: u64, dimension: usize) -> Elements {
    let inner: u64 = shape.iter().skip(dimension + 1).product();
    let (old, new) = (shape.get(dimension).unwrap() * inner, count * inner);
    let outer: u64 = shape.iter().take(dimension).product();
    let mut all = Vec::new();
    for block in 0..outer as usize {
        all.extend(elements.0.iter().skip(block * old as usize).take(old as usize).cloned());
        all.extend(appended.0.iter().skip(block * new as usize).take(new as usize).cloned());
    }
    Elements(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn appends_match_naive_concatenation(case in case()) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let options = Options { slab_memory: case.assembly, ..Options::default() };
            let test_array = TestArray::new(&case.document, options).await;
            let mut shape = case.view.clone();
            let all = test_array.elements(1, shape.iter().product::<u64>() as usize);
            let complete = zarrd_meta::selection::Region::full(&shape).dimensions;
            test_array.region(&complete).await.execute(test_array.incoming(&all, 64)).await.unwrap();
            let mut expected = all;
            for &(count, seed, part) in &case.appends {
                let others = shape.iter().enumerate().filter(|(axis, _)| *axis != case.dimension);
                let row_len: u64 = others.map(|(_, extent)| extent).product();
                let appended = test_array.elements(seed, (count * row_len) as usize);
                let dimension = case.dimension as i64 - if seed % 2 == 0 { shape.len() as i64 } else { 0 };
                let append = test_array.arrays.append(&path(), None, &dimension.to_string(), Precondition::none()).await.unwrap();
                prop_assert_eq!(append.dimension(), case.dimension);
                let steps = (seed % 3 == 0).then_some(count);
                let report = append.execute(steps, test_array.incoming(&appended, part)).await.unwrap();
                expected = behind(&shape, &expected, &appended, count, case.dimension);
                *shape.get_mut(case.dimension).unwrap() += count;
                prop_assert_eq!(&report.shape, &shape);
                let (model, version) = test_array.arrays.model(&path(), None).await.unwrap();
                prop_assert_eq!(model.view_shape(), shape.clone());
                prop_assert_eq!(report.version, Some(version));
                let found = test_array.read(&selection(&[]), 1 << 30).await;
                prop_assert_eq!(&found, &expected);
            }
            Ok(())
        })?;
    }
}

fn plain() -> Value {
    json!([{"name": "bytes", "configuration": {"endian": "little"}}])
}

#[tokio::test]
async fn mismatching_append_changes_nothing() {
    let test_array = TestArray::new(&document(&[2, 3], &[2, 2], "uint16", &plain(), &[]), Options::default()).await;
    let before = test_array.versions().await;
    let node = path();
    let append = |dimension| test_array.arrays.append(&node, None, dimension, Precondition::none());
    assert!(matches!(append("2").await, Err(WriteError::Dimension { dimension: 2, rank: 2 })));
    assert!(matches!(append("-3").await, Err(WriteError::Dimension { dimension: -3, rank: 2 })));
    for unknown in ["time", "+1", "", "99999999999999999999"] {
        let error = append(unknown).await.unwrap_err();
        assert!(matches!(&error, WriteError::UnknownDimension { name, .. } if name == unknown), "{error:?}");
    }
    let body = |count: usize| test_array.incoming(&test_array.elements(1, count), 5);
    let error = append("0").await.unwrap().execute(None, body(4)).await.unwrap_err();
    assert!(matches!(error, WriteError::AppendLength { dimension: 0, step: 6, found: 8 }), "{error:?}");
    let error = append("0").await.unwrap().execute(Some(2), body(3)).await.unwrap_err();
    assert!(matches!(error, WriteError::Length { expected: 12, found: 6 }), "{error:?}");
    let scalar = ElementSource::Scalar(vec![1, 2, 3]);
    let error = append("0").await.unwrap().execute(None, scalar).await.unwrap_err();
    assert!(matches!(error, WriteError::Length { expected: 2, found: 3 }), "{error:?}");
    let error =
        append("0").await.unwrap().execute(Some(u64::MAX), ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::Node(NodeError::Change(_))), "{error:?}");
    let error = append("0").await.unwrap().execute(Some(1 << 40), ElementSource::Scalar(vec![1, 2])).await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::TooManyChunks { .. })), "{error:?}");
    assert_eq!(test_array.versions().await, before);
    let mut rectilinear = document(&[5], &[1], "uint16", &plain(), &[]);
    rectilinear["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[3, 3]]}});
    let parts = TestArray::new(&rectilinear, Options::default()).await;
    for (count, fits) in [(2, false), (1, true), (1, false)] {
        let append = parts.arrays.append(&node, None, "0", Precondition::none()).await.unwrap();
        match append.execute(Some(count), ElementSource::Scalar(vec![1, 2])).await {
            Ok(report) => assert!(fits && report.shape == [6], "{report:?}"),
            Err(error) => assert!(!fits && matches!(error, WriteError::Node(NodeError::Change(_))), "{error:?}"),
        }
    }
    let report = append("1").await.unwrap().execute(Some(0), body(0)).await.unwrap();
    assert_eq!((report.shape, report.chunks_written), (vec![2, 3], 0));
    assert_eq!(test_array.versions().await, before);
}

/// Concurrent appends: each step is present once and complete, and a reader never observes a missing step.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_are_serialized() {
    const TASKS: u8 = 8;
    const STEPS: usize = 12;
    let test_array = TestArray::new(&document(&[0, 5], &[4, 2], "uint16", &plain(), &[]), Options::default()).await;
    let mut running = JoinSet::new();
    for task in 0..TASKS {
        let arrays = test_array.arrays.clone();
        running.spawn(async move {
            for step in 0..STEPS as u8 {
                let append = arrays.append(&path(), None, "0", Precondition::none()).await.unwrap();
                append.execute(None, ElementSource::Scalar(vec![task + 10, step])).await.unwrap();
            }
        });
    }
    let reader = async {
        for _ in 0..200 {
            let all = test_array.read(&selection(&[]), 1 << 30).await;
            assert!(all.0.iter().all(|element| *element != test_array.fill), "a step is missing");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(reader, async { while running.join_next().await.transpose().unwrap().is_some() {} });
    let all = test_array.read(&selection(&[]), 1 << 30).await;
    let mut steps: Vec<Vec<u8>> = all
        .0
        .chunks(5)
        .map(|step| {
            assert!(step.windows(2).all(|two| two.first() == two.last()), "a step of two appends: {step:?}");
            step.first().unwrap().clone()
        })
        .collect();
    steps.sort_unstable();
    let expected: Vec<Vec<u8>> =
        (10..10 + TASKS).flat_map(|task| (0..STEPS as u8).map(move |step| vec![task, step])).collect();
    assert_eq!(steps, expected);
}
