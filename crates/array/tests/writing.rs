//! Regions of arrays of every layout, written through small and large memory, against naive indexing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "what a test prepares has to be there")]

mod written;

use array::{Incoming, Options};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use tokio::runtime;
use written::{Elements, Site, codecs, dimension, selection};

/// One write.
#[derive(Clone, Debug)]
struct Write {
    selection: Vec<meta::selection::DimensionSelection>,
    seed: u16,
    /// The length of the pieces in which the elements come.
    piece: usize,
    scalar: bool,
}

#[derive(Clone, Debug)]
struct Case {
    document: Value,
    view: Vec<u64>,
    assembly: u64,
    writes: Vec<Write>,
}

fn grid(extent: u64, chunk: u64, rectilinear: bool) -> Value {
    match rectilinear {
        // Pieces of growing length, and one beyond the array.
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

fn case() -> impl Strategy<Value = Case> {
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
                .prop_map(|(selection, seed, piece, scalar)| Write { selection, seed, piece, scalar });
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
                        "fill_value": written::fill(data_type), "chunk_grid": chunk_grid,
                        "chunk_key_encoding": {"name": "default"}, "codecs": codecs});
                    if origin.iter().any(|&origin| origin > 0) {
                        document["extensions"] =
                            json!([{"name": "example.offset", "configuration": {"offset": origin}}]);
                    }
                    // Elements of variable length are decoded in this memory as well.
                    let assembly = if data_type == "string" { assembly.max(1 << 14) } else { assembly };
                    Case { document, view: view.clone(), assembly, writes }
                })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn regions_are_written(case in case()) {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let options = Options { assembly: case.assembly, ..Options::default() };
            let site = Site::new(&case.document, options).await;
            let mut expected = site.filled(&case.view);
            for write in &case.writes {
                let region = site.region(&write.selection).await;
                let shape = region.shape().to_vec();
                let (elements, incoming) = if write.scalar {
                    let one = site.elements(write.seed, 1);
                    let count = shape.iter().product::<u64>() as usize;
                    (Elements(vec![one.0[0].clone(); count]), Incoming::Scalar(one.0[0].clone()))
                } else {
                    let elements = site.elements(write.seed, shape.iter().product::<u64>() as usize);
                    let incoming = site.incoming(&elements, write.piece);
                    (elements, incoming)
                };
                let report = region.run(incoming).await.unwrap();
                prop_assert_eq!(report.shape, case.view.clone());
                expected.set(&case.view, &write.selection, &elements);
                let found = site.read(&selection(&[]), 1 << 30).await;
                prop_assert_eq!(&found, &expected);
            }
            Ok(())
        })?;
    }
}
