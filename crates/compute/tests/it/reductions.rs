//! Reductions of chunked selections, compared with a naive model, and with each other.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use proptest::prelude::*;
use zarrd_codec::Elements;
use zarrd_compute::{AxisPositions, Edge, GroupGrid, Input, ReducedDimensions, Reduction, ReductionRequest, Windows};
use zarrd_meta::data_type::{DataType, Number};

/// One dimension: its chunk size, the selected indices, and its windows.
#[derive(Clone, Debug)]
struct Dimension {
    chunk: u64,
    extent: u64,
    selected: Vec<u64>,
    is_list: bool,
    windows: Treatment,
}

#[derive(Clone, Copy, Debug)]
enum Treatment {
    Keep,
    Whole,
    Window(u64),
}

fn dimension() -> impl Strategy<Value = Dimension> {
    let treatment = prop_oneof![Just(Treatment::Keep), Just(Treatment::Whole), (1..5_u64).prop_map(Treatment::Window)];
    (1..5_u64, 1..9_u64, any::<(u8, u8, u8)>(), treatment, 0..4_u8).prop_map(
        |(chunk, extent, (a, b, c), windows, kind)| {
            let step = u64::from(c % 3) + 1;
            let (start, stop) = (u64::from(a) % extent, u64::from(b) % (extent + 1));
            let mut selected: Vec<u64> = match kind {
                0 | 1 => (0..extent).collect(),
                2 => (start.min(stop)..start.max(stop).max(1)).step_by(usize::try_from(step).unwrap()).collect(),
                _ => vec![start, u64::from(c) % extent, start],
            };
            if kind == 2 && a % 2 == 0 {
                selected.reverse();
            }
            Dimension { chunk, extent, selected, is_list: kind > 2, windows }
        },
    )
}

/// The positions of the selected indices in a chunk, as a reader passes them.
fn positions(dimension: &Dimension, chunk: u64, extent: u64) -> Option<AxisPositions> {
    let range = chunk * dimension.chunk..(chunk + 1) * dimension.chunk;
    let pairs: Vec<(u64, u64)> = (0..extent)
        .map(|out| (dimension.selected[usize::try_from(out).unwrap()], out))
        .filter(|(index, _)| range.contains(index))
        .map(|(index, out)| (index - range.start, out))
        .collect();
    let &(first, out) = pairs.first()?;
    if dimension.is_list {
        return Some(AxisPositions::Listed(pairs));
    }
    let step = pairs.get(1).map_or(1, |next| next.0 as i64 - first as i64);
    Some(AxisPositions::Strided { first, step, len: pairs.len() as u64, out })
}

fn combinations(extents: &[u64]) -> Vec<Vec<u64>> {
    extents.iter().fold(vec![vec![]], |all, &extent| {
        all.iter().flat_map(|one| (0..extent).map(move |at| [one.as_slice(), &[at]].concat())).collect()
    })
}

/// Whole numbers, so that naive sums are exact.
fn value(seed: u64, index: &[u64]) -> i16 {
    let hash = index.iter().fold(seed, |hash, at| (hash ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    i16::try_from(hash % 7).unwrap() - 3
}

fn naive(name: &str, values: &[i16]) -> f64 {
    let numbers = values.iter().map(|&value| f64::from(value));
    let count = values.len() as f64;
    let (sum, squares): (f64, f64) = (numbers.clone().sum(), numbers.map(|value| value * value).sum());
    let variance = (squares - sum * sum / count) / count;
    let best = |key: fn(i16) -> i16| {
        let most = values.iter().map(|&value| key(value)).max().unwrap();
        values.iter().position(|&value| key(value) == most).unwrap() as f64
    };
    match name {
        "sum" => sum,
        "mean" => sum / count,
        "var" => variance,
        "std" => variance.sqrt(),
        "min" => f64::from(*values.iter().min().unwrap()),
        "max" => f64::from(*values.iter().max().unwrap()),
        "argmin" => best(|value| -value),
        "argmax" => best(|value| value),
        "any" => f64::from(u8::from(values.iter().any(|&value| value != 0))),
        "all" => f64::from(u8::from(values.iter().all(|&value| value != 0))),
        "count" => count,
        "first" => f64::from(values[0]),
        "mode" => {
            let mut counts = BTreeMap::new();
            values.iter().for_each(|&value| *counts.entry(value).or_insert(0) += 1);
            let most = *counts.values().max().unwrap();
            f64::from(*counts.iter().find(|(_, count)| **count == most).unwrap().0)
        }
        _ => panic!("{name}"),
    }
}

fn encode(number: Number, value: i16) -> Vec<u8> {
    match number {
        Number::Int16 => value.to_le_bytes().to_vec(),
        Number::Int8 => i8::try_from(value).unwrap().to_le_bytes().to_vec(),
        Number::Int64 => i64::from(value).to_le_bytes().to_vec(),
        Number::Float16 => half::f16::from_f32(value.into()).to_le_bytes().to_vec(),
        Number::Float32 => f32::from(value).to_le_bytes().to_vec(),
        Number::Float64 => f64::from(value).to_le_bytes().to_vec(),
        _ => panic!("{number:?}"),
    }
}

fn decode(data_type: &DataType, bytes: &[u8]) -> Vec<f64> {
    let size = data_type.fixed_size().unwrap();
    bytes.chunks_exact(size).map(|element| data_type.to_f64(element).unwrap()).collect()
}

#[test]
fn chunked_reductions_equal_a_naive_model() {
    let names = prop::sample::select(
        [
            "sum",
            "mean",
            "var",
            "std",
            "min",
            "max",
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
            "nanargmax",
            "nanstd",
        ]
        .as_slice(),
    );
    let numbers = prop::sample::select(
        [Number::Int8, Number::Int16, Number::Int64, Number::Float16, Number::Float32, Number::Float64].as_slice(),
    );
    let dimensions = proptest::collection::vec(dimension(), 0..4);
    let (mut compared, mut refused) = (0_u32, 0_u32);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(3000));
    let strategy = (dimensions, names, numbers, any::<(u64, u8, bool)>());
    let state = std::cell::RefCell::new((&mut compared, &mut refused));
    runner
        .run(&strategy, |(dimensions, name, number, (seed, parts, fills))| {
            let counted = check(&dimensions, name, number, (seed, parts, fills))?;
            let mut state = state.borrow_mut();
            match counted {
                true => *state.0 += 1,
                false => *state.1 += 1,
            }
            Ok(())
        })
        .unwrap();
    assert!(compared > 2000, "{compared} compared, {refused} refused");
}

/// Compares one reduction; false if it is refused.
fn check(
    dimensions: &[Dimension],
    name: &str,
    number: Number,
    (seed, parts, fills): (u64, u8, bool),
) -> Result<bool, TestCaseError> {
    let mut windows = Vec::new();
    let mut axes = Vec::new();
    for (axis, dimension) in dimensions.iter().enumerate() {
        match dimension.windows {
            Treatment::Keep => {}
            Treatment::Whole => axes.push(axis.to_string()),
            Treatment::Window(window) => windows.push((axis.to_string(), window)),
        }
    }
    let request = ReductionRequest {
        functions: vec![name.parse().unwrap()],
        axes: Some(axes),
        windows,
        edge: Edge::Partial,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof: 0,
    };
    let data_type = DataType::of_number(number);
    let input = Input {
        data_type: data_type.clone(),
        extents: dimensions.iter().map(|dimension| Some(dimension.selected.len() as u64)).collect(),
        names: vec![None; dimensions.len()],
    };
    let Ok(reduction) = Reduction::new(&request, &input, None) else { return Ok(false) };
    let windows = reduction.windows();
    let grid = Arc::new(GroupGrid::new(&windows).unwrap());
    let mut partials: Vec<_> = (0..=parts % 3).map(|_| reduction.partial(grid.clone()).unwrap()).collect();
    let counts: Vec<u64> = dimensions.iter().map(|dimension| dimension.extent.div_ceil(dimension.chunk)).collect();
    let value = |index: &[u64]| if fills { 2 } else { value(seed, index) };
    for chunk in combinations(&counts) {
        let axes: Option<Vec<_>> = dimensions
            .iter()
            .zip(&chunk)
            .zip(&windows)
            .map(|((dimension, &chunk), windows)| positions(dimension, chunk, windows.extent))
            .collect();
        let Some(axes) = axes else { continue };
        let shape: Vec<u64> = dimensions.iter().map(|dimension| dimension.chunk).collect();
        let partial = chunk.iter().sum::<u64>() as usize % partials.len();
        if fills {
            partials[partial].add_repeated(&axes, &encode(number, 2)).unwrap();
            continue;
        }
        let absolute = |at: Vec<u64>| -> Vec<u64> {
            at.iter().zip(&chunk).zip(&shape).map(|((at, chunk), extent)| chunk * extent + at).collect()
        };
        let elements: Vec<u8> =
            combinations(&shape).into_iter().flat_map(|at| encode(number, value(&absolute(at)))).collect();
        partials[partial].add(&shape, &axes, &Elements::Fixed(Bytes::from(elements))).unwrap();
    }
    let mut all = partials.pop().unwrap();
    partials.into_iter().for_each(|partial| all.merge(partial));
    let Elements::Fixed(found) = reduction.finish(&all, grid.groups()).unwrap() else { panic!() };
    let found = decode(reduction.data_type(), &found);
    // Elements that are reduced as a whole are one group, even if there are none.
    let count = |(windows, dimension): (&Windows, &Dimension)| match dimension.windows {
        Treatment::Whole => 1,
        _ => windows.count(),
    };
    let counts: Vec<u64> = windows.iter().zip(dimensions).map(count).collect();
    let mut groups: BTreeMap<Vec<u64>, Vec<i16>> =
        combinations(&counts).into_iter().map(|group| (group, Vec::new())).collect();
    let extents: Vec<u64> = windows.iter().map(|windows: &Windows| windows.extent).collect();
    for at in combinations(&extents) {
        let group = at.iter().zip(&windows).map(|(at, windows)| at / windows.window).collect();
        let index: Vec<u64> =
            at.iter().zip(dimensions).map(|(&at, dimension)| dimension.selected[at as usize]).collect();
        groups.entry(group).or_default().push(value(&index));
    }
    let plain = name.strip_prefix("nan").unwrap_or(name);
    let expected: Vec<f64> = groups.values().map(|values| naive(plain, values)).collect();
    prop_assert_eq!(found.len(), expected.len());
    prop_assert_eq!(reduction.shape().iter().product::<u64>(), expected.len() as u64);
    for (found, expected) in found.iter().zip(&expected) {
        let tolerance = match number {
            Number::Float16 => 1e-3,
            Number::Float32 => 1e-6,
            _ => 1e-12,
        };
        let is_equal =
            found.is_nan() && expected.is_nan() || (found - expected).abs() <= tolerance * expected.abs().max(1.0);
        prop_assert!(is_equal, "{found} instead of {expected}");
    }
    Ok(true)
}

/// Floats of any magnitude, or of one, with NaN among them.
fn float(seed: u64, index: &[u64]) -> f64 {
    let hash = index.iter().fold(seed, |hash, at| (hash ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    match seed % 3 {
        0 => f64::from_bits(hash),
        1 => (hash >> 11) as f64 * 1e-3,
        _ => f64::from_bits(hash & !(0x7f << 56) | 0x3f << 56),
    }
}

/// The results of a reduction of an array in chunks of these sizes.
fn results(dimensions: &[Dimension], chunks: &[u64], reduction: &Reduction, (seed, parts): (u64, u8)) -> Vec<u8> {
    let windows = reduction.windows();
    let grid = Arc::new(GroupGrid::new(&windows).unwrap());
    let mut partials: Vec<_> = (0..=parts % 4).map(|_| reduction.partial(grid.clone()).unwrap()).collect();
    let counts: Vec<u64> =
        dimensions.iter().zip(chunks).map(|(dimension, chunk)| dimension.extent.div_ceil(*chunk)).collect();
    let mut all: Vec<_> = combinations(&counts);
    if parts > 100 {
        all.reverse();
    }
    for (number, chunk) in all.into_iter().enumerate() {
        let axes: Option<Vec<_>> = dimensions
            .iter()
            .zip(chunks)
            .zip(chunk.iter().zip(&windows))
            .map(|((dimension, &size), (&chunk, windows))| {
                positions(&Dimension { chunk: size, ..dimension.clone() }, chunk, windows.extent)
            })
            .collect();
        let Some(axes) = axes else { continue };
        let elements: Vec<u8> = combinations(chunks)
            .into_iter()
            .flat_map(|at| {
                let index: Vec<u64> =
                    at.iter().zip(&chunk).zip(chunks).map(|((at, chunk), size)| chunk * size + at).collect();
                float(seed, &index).to_le_bytes()
            })
            .collect();
        let partial = number % partials.len();
        partials[partial].add(chunks, &axes, &Elements::Fixed(Bytes::from(elements))).unwrap();
    }
    let mut merged = partials.pop().unwrap();
    partials.into_iter().for_each(|partial| merged.merge(partial));
    let Elements::Fixed(found) = reduction.finish(&merged, grid.groups()).unwrap() else { panic!() };
    found.to_vec()
}

#[test]
fn results_are_the_same_bits_however_elements_are_divided() {
    let names =
        prop::sample::select(["sum", "mean", "var", "std", "nanstd", "nansum", "min", "max", "first"].as_slice());
    let chunks = proptest::collection::vec((1..6_u64, 1..9_u64), 3);
    let dimensions = proptest::collection::vec(dimension(), 1..4);
    proptest!(ProptestConfig::with_cases(1500), |(dimensions in dimensions, name in names, chunks in chunks, seed: (u64, u8, u8))| {
        let (seed, parts, others) = seed;
        let axes = dimensions.iter().enumerate().filter(|(_, one)| matches!(one.windows, Treatment::Whole));
        let windows = dimensions.iter().enumerate().filter_map(|(axis, one)| match one.windows {
            Treatment::Window(window) => Some((axis.to_string(), window)),
            Treatment::Keep | Treatment::Whole => None,
        });
        let request = ReductionRequest {
            functions: vec![name.parse().unwrap()],
            axes: Some(axes.map(|(axis, _)| axis.to_string()).collect()),
            windows: windows.collect(),
            edge: Edge::Partial,
            reduced_dimensions: ReducedDimensions::Drop,
            ddof: 0,
        };
        let input = Input {
            data_type: DataType::of_number(Number::Float64),
            extents: dimensions.iter().map(|dimension| Some(dimension.selected.len() as u64)).collect(),
            names: vec![None; dimensions.len()],
        };
        let reduction = Reduction::new(&request, &input, None);
        prop_assume!(reduction.is_ok());
        let reduction = reduction.unwrap();
        let (one, other): (Vec<u64>, Vec<u64>) = chunks.into_iter().take(dimensions.len()).unzip();
        let first = results(&dimensions, &one, &reduction, (seed, parts));
        let second = results(&dimensions, &other, &reduction, (seed, others));
        prop_assert_eq!(first, second);
    });
}

/// Rows that are longer, and more of them, than are added at a time.
#[test]
fn wide_rows_are_reduced_as_single_elements_are() {
    const SHAPE: [u64; 2] = [37, 1301];
    let treatments = [[0, 1], [1, 0], [2, 2], [8, 8], [20, 1], [1, 700], [5, 600]];
    let names = ["mean", "nanmean", "sum", "std", "max", "first"];
    // Numbers whose sums are exact, such as have far exponents, and such as are not numbers.
    let rare = [
        [0.5, 0.5],
        [1e-30, 0.5],
        [f32::NAN, 0.5],
        [f32::NAN, f32::NAN],
        [f32::NAN, f32::INFINITY],
        [f32::NEG_INFINITY, f32::NAN],
        [1e-30, f32::NAN],
    ];
    for (([first, second], name), rare) in treatments
        .iter()
        .flat_map(|windows| names.map(|name| (windows, name)))
        .flat_map(|case| rare.map(|rare| (case, rare)))
    {
        let windows = [(0, first), (1, second)].into_iter().filter(|(_, window)| **window > 1);
        let whole = [(0, first), (1, second)].into_iter().filter(|(_, window)| **window == 0);
        let request = ReductionRequest {
            functions: vec![name.parse().unwrap()],
            axes: Some(whole.map(|(axis, _)| axis.to_string()).collect()),
            windows: windows.map(|(axis, &window)| (axis.to_string(), window)).collect(),
            edge: Edge::Partial,
            reduced_dimensions: ReducedDimensions::Drop,
            ddof: 0,
        };
        let input = Input {
            data_type: DataType::of_number(Number::Float32),
            extents: SHAPE.map(Some).to_vec(),
            names: vec![None; 2],
        };
        let reduction = Reduction::new(&request, &input, None).unwrap();
        let value = |at: u64| {
            if at % 509 == 508 { rare[(at / 509 % 2) as usize] } else { (at * 7919 % 4001) as f32 / 3.0 - 600.0 }
        };
        let bytes: Vec<u8> = (0..SHAPE[0] * SHAPE[1]).flat_map(|at| value(at).to_le_bytes()).collect();
        let elements = Elements::Fixed(Bytes::from(bytes));
        let grid = Arc::new(GroupGrid::new(&reduction.windows()).unwrap());
        let some = |first: u64, len: u64| AxisPositions::Strided { first, step: 1, len, out: first };
        let mut together = reduction.partial(grid.clone()).unwrap();
        together.add(&SHAPE, &SHAPE.map(|len| some(0, len)), &elements).unwrap();
        let mut apart = reduction.partial(grid.clone()).unwrap();
        for column in 0..SHAPE[1] {
            for row in 0..SHAPE[0] {
                apart.add(&SHAPE, &[some(row, 1), some(column, 1)], &elements).unwrap();
            }
        }
        let [together, apart] = [together, apart].map(|partial| reduction.finish(&partial, grid.groups()).unwrap());
        assert_eq!(decode(reduction.data_type(), &fixed(&together)).len(), grid.groups());
        assert_eq!(fixed(&together), fixed(&apart), "{name} of windows of {first} and {second}, with {rare:?}");
    }
}

fn fixed(elements: &Elements) -> Bytes {
    let Elements::Fixed(bytes) = elements else { panic!("variable length") };
    bytes.clone()
}
