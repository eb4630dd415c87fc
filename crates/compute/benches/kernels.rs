//! The time that each function takes for an element of a chunk in memory.
//!
//! ```text
//! cargo bench -p zarrd-compute --bench kernels -- [NAME…]
//! ```
//!
//! Each line is the least time of many short repeats, of which some are undisturbed. To compare two versions, run the built programs in turn.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use zarrd_codec::Elements;
use zarrd_compute::{
    AxisPositions, Edge, GroupGrid, Input, Partial, ReducedDimensions, Reduction, ReductionRequest, StatisticsPasses,
    StatisticsRequest,
};
use zarrd_meta::data_type::{DataType, Number};

/// The chunk: 2^20 elements.
const SHAPE: [u64; 3] = [4, 512, 512];
const ELEMENTS: u32 = 1 << 20;
/// The time for the repeats of one function.
const TIME: Duration = Duration::from_millis(250);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let measure = |name: &str, run: &mut dyn FnMut()| {
        if wanted.is_empty() || wanted.iter().any(|one| name.contains(one.as_str())) {
            let (begin, mut least) = (Instant::now(), Duration::MAX);
            while begin.elapsed() < TIME {
                let repeat = Instant::now();
                run();
                least = least.min(repeat.elapsed());
            }
            println!("{name:<34} {:7.3} ns", least.as_nanos() as f64 / f64::from(ELEMENTS));
        }
    };
    for (name, number, elements) in inputs() {
        for function in ["count", "sum", "mean", "std", "min", "nanmax", "nanmean", "nanstd", "argmax"] {
            measure(&format!("{name} {function}"), &mut reduction(function, &[], number, &elements));
        }
        for (windows, of) in
            [("1,8,8", [1, 8, 8]), ("2,2,2", [2, 2, 2]), ("512,1,1", [4, 1, 1]), ("1,1,512", [1, 1, 512])]
        {
            measure(&format!("{name} mean of {windows}"), &mut reduction("mean", &of, number, &elements));
        }
        measure(&format!("{name} max of 1,8,8"), &mut reduction("max", &[1, 8, 8], number, &elements));
        measure(&format!("{name} stats of 64 bins"), &mut statistics(64, number, &elements));
        measure(&format!("{name} stats"), &mut statistics(0, number, &elements));
    }
}

/// Elements by name: normally distributed, with and without NaN, and integers.
fn inputs() -> Vec<(&'static str, Number, Elements)> {
    let mut state = 1_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 11) as f64 / 2_f64.powi(53)
    };
    let normal = |_| (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let numbers: Vec<f64> = (0..ELEMENTS).map(normal).collect();
    let of =
        |bytes: &mut dyn Iterator<Item = Vec<u8>>| Elements::Fixed(Bytes::from(bytes.collect::<Vec<_>>().concat()));
    let single = |value: f64| (value as f32).to_le_bytes().to_vec();
    let with_nan = |(at, &value): (usize, &f64)| single(if at % 64 < 16 { f64::NAN } else { value });
    vec![
        ("float32", Number::Float32, of(&mut numbers.iter().map(|&value| single(value)))),
        ("float32 with NaN", Number::Float32, of(&mut numbers.iter().enumerate().map(with_nan))),
        ("float64", Number::Float64, of(&mut numbers.iter().map(|value| value.to_le_bytes().to_vec()))),
        ("int16", Number::Int16, of(&mut numbers.iter().map(|value| ((value * 1e3) as i16).to_le_bytes().to_vec()))),
    ]
}

/// A reduction of a chunk, of which everything but the chunk is made anew.
fn reduction<'a>(name: &str, windows: &[u64], number: Number, elements: &'a Elements) -> impl FnMut() + 'a {
    let window = |(axis, &window): (usize, &u64)| (axis.to_string(), window);
    let request = ReductionRequest {
        functions: vec![name.parse().unwrap()],
        axes: None,
        windows: windows.iter().enumerate().map(window).collect(),
        edge: Edge::Exact,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof: 0,
    };
    let input = Input {
        data_type: DataType::of_number(number),
        extents: SHAPE.map(Some).to_vec(),
        names: vec![None; SHAPE.len()],
    };
    let reduction = Reduction::new(&request, &input, None).unwrap();
    let grid = Arc::new(GroupGrid::new(&reduction.windows()).unwrap());
    move || {
        let mut partial = reduction.partial(grid.clone()).unwrap();
        add(&mut partial, elements);
        std::hint::black_box(reduction.finish(&partial, grid.groups()).unwrap());
    }
}

/// The first pass of statistics of a chunk.
fn statistics(bins: u64, number: Number, elements: &Elements) -> impl FnMut() + '_ {
    move || {
        let request = StatisticsRequest { quantiles: Vec::new(), bins, range: Some((-4.0, 4.0)) };
        let mut passes = StatisticsPasses::new(request, &DataType::of_number(number), &SHAPE).unwrap();
        let pass = passes.next(&SHAPE.map(zarrd_compute::Windows::whole)).unwrap().unwrap();
        let mut partial = pass.partial().unwrap();
        add(&mut partial, elements);
        passes.add(partial).unwrap();
        std::hint::black_box(passes.finish().unwrap());
    }
}

fn add(partial: &mut Partial, elements: &Elements) {
    let axes = SHAPE.map(|len| AxisPositions::Strided { first: 0, step: 1, len, out: 0 });
    partial.add(&SHAPE, &axes, std::hint::black_box(elements)).unwrap();
}
