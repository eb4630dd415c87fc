//! Results that NumPy has, of few elements in one part and in several.

use std::sync::Arc;

use serde_json::json;
use zarrd_codec::Elements;
use zarrd_compute::{
    AxisPositions, ComputeError, Edge, GroupGrid, Input, ReducedDimensions, Reduction, ReductionRequest,
};
use zarrd_meta::data_type::DataType;

const NAN: f64 = f64::NAN;

/// The results of a function of elements, of which each part has `part` and is merged with the parts before.
fn results(
    (name, ddof, window): (&str, u64, Option<u64>),
    (data_type, values): (&str, &[Vec<u8>]),
    part: usize,
) -> (String, Vec<u8>) {
    let request = ReductionRequest {
        functions: vec![name.parse().unwrap()],
        axes: None,
        windows: window.map(|window| ("0".to_owned(), window)).into_iter().collect(),
        edge: Edge::Partial,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof,
    };
    let data_type: DataType = zarrd_meta::data_type::parse_v3(&json!(data_type)).unwrap();
    let input = Input { data_type, extents: vec![Some(values.len() as u64)], names: vec![None] };
    let reduction = Reduction::new(&request, &input, None).unwrap();
    let grid = Arc::new(GroupGrid::new(&reduction.windows()).unwrap());
    let mut all = reduction.partial(grid.clone()).unwrap();
    // Parts that come last are added first.
    for (number, values) in values.chunks(part).enumerate().collect::<Vec<_>>().into_iter().rev() {
        let mut one = reduction.partial(grid.clone()).unwrap();
        let len = values.len() as u64;
        let positions = AxisPositions::Strided { first: 0, step: 1, len, out: (number * part) as u64 };
        one.add(&[len], &[positions], &Elements::Fixed(values.concat().into())).unwrap();
        one.merge(all);
        all = one;
    }
    let Elements::Fixed(found) = reduction.finish(&all, grid.groups()).unwrap() else { panic!() };
    (reduction.data_type().name(), found.to_vec())
}

fn check(
    function: (&str, u64, Option<u64>),
    (data_type, values): (&str, Vec<Vec<u8>>),
    (result_type, expected): (&str, Vec<Vec<u8>>),
) {
    for part in [1, 2, 3, values.len()] {
        let (found_type, found) = results(function, (data_type, &values), part);
        assert_eq!((found_type.as_str(), &found), (result_type, &expected.concat()), "{function:?} in parts of {part}");
    }
}

fn floats(values: &[f64]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_le_bytes().to_vec()).collect()
}

fn bytes(values: &[i8]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_le_bytes().to_vec()).collect()
}

fn integers(values: &[i64]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_le_bytes().to_vec()).collect()
}

#[test]
fn ddof_is_subtracted_from_the_count() {
    let values = || ("float64", floats(&[1.0, 2.0, 3.0, 5.0]));
    for (name, ddof, expected) in
        [("var", 0, 2.1875), ("var", 1, 2.916_666_666_666_666_5), ("var", 3, 8.75), ("std", 1, 1.707_825_127_659_933)]
    {
        check((name, ddof, None), values(), ("float64", floats(&[expected])));
    }
    check(("nanvar", 1, None), ("float64", floats(&[1.0, NAN, 3.0])), ("float64", floats(&[2.0])));
    check(("var", 1, None), ("int8", bytes(&[1, 2, 3, 5])), ("float64", floats(&[2.916_666_666_666_666_5])));
    check(("var", 1, Some(2)), ("int8", bytes(&[1, 3, 5, 9])), ("float64", floats(&[2.0, 8.0])));
}

#[test]
fn zeros_keep_their_sign_unless_they_are_sums() {
    for name in ["min", "max", "first", "nanmin", "nanmax"] {
        let zeros = || ("float64", floats(&[-0.0, -0.0, -0.0]));
        check((name, 0, None), zeros(), ("float64", floats(&[-0.0])));
        check((name, 0, Some(2)), zeros(), ("float64", floats(&[-0.0, -0.0])));
    }
    for name in ["sum", "nansum", "mean"] {
        // As with `math.fsum`, whose zeros do not depend on the order either.
        check((name, 0, None), ("float64", floats(&[-0.0, -0.0])), ("float64", floats(&[0.0])));
    }
    check(("min", 0, None), ("float64", floats(&[0.0, -0.0, 0.0])), ("float64", floats(&[-0.0])));
    check(("max", 0, None), ("float64", floats(&[-0.0, 0.0, -0.0])), ("float64", floats(&[0.0])));
}

#[test]
fn the_first_of_equal_elements_is_taken() {
    let values = || ("float64", floats(&[3.0, 1.0, 3.0, 1.0, 1.0, 3.0]));
    for (name, expected) in [("argmin", 1), ("argmax", 0), ("nanargmin", 1), ("nanargmax", 0)] {
        check((name, 0, None), values(), ("int64", integers(&[expected])));
    }
    check(("argmin", 0, None), ("float64", floats(&[0.0, -0.0])), ("int64", integers(&[0])));
    check(("argmax", 0, None), ("float64", floats(&[1.0, NAN, 2.0, NAN])), ("int64", integers(&[1])));
    check(("argmin", 0, None), ("int8", bytes(&[5, -5, 5, -5])), ("int64", integers(&[1])));
    check(("mode", 0, None), ("int8", bytes(&[5, 7, 7, 5, 9])), ("int8", bytes(&[5])));
}

#[test]
fn only_the_nan_forms_skip_nan() {
    let values = || ("float64", floats(&[4.0, NAN, 2.0, NAN, 3.0]));
    for (name, expected) in
        [("nanmin", 2.0), ("nanmax", 4.0), ("nansum", 9.0), ("nanmean", 3.0), ("min", NAN), ("max", NAN), ("sum", NAN)]
    {
        check((name, 0, None), values(), ("float64", floats(&[expected])));
    }
    for (name, expected) in [("nanargmin", 2), ("nanargmax", 0), ("argmin", 1), ("argmax", 1), ("count", 3)] {
        check((name, 0, None), values(), ("int64", integers(&[expected])));
    }
}

#[test]
fn windows_begin_at_multiples_of_their_size() {
    let values = || ("int8", bytes(&[1, 2, 4, 8, 16, 32, 64]));
    for (window, expected) in [
        (1, vec![1, 2, 4, 8, 16, 32, 64]),
        (2, vec![3, 12, 48, 64]),
        (3, vec![7, 56, 64]),
        (6, vec![63, 64]),
        (7, vec![127]),
        (8, vec![127]),
    ] {
        check(("sum", 0, Some(window)), values(), ("int64", integers(&expected)));
    }
}

#[test]
fn small_integers_are_reduced_in_wide_types() {
    let values = || ("int8", bytes(&[127, 127, 127, -128]));
    check(("sum", 0, None), values(), ("int64", integers(&[253])));
    check(("mean", 0, None), values(), ("float64", floats(&[63.25])));
    check(("mean", 0, Some(2)), values(), ("float64", floats(&[127.0, -0.5])));
    check(("var", 0, None), values(), ("float64", floats(&[12192.1875])));
}

/// The result of a sum, or of several functions, of elements of 64 bits after a cast.
fn cast(functions: &[&str], elements: (&str, &[i64]), astype: &str) -> Result<(String, Vec<u8>), ComputeError> {
    of_integers(functions, elements, Some(astype))
}

/// The results of functions of elements of 64 bits.
fn of_integers(
    functions: &[&str],
    (data_type, values): (&str, &[i64]),
    astype: Option<&str>,
) -> Result<(String, Vec<u8>), ComputeError> {
    let of = |name: &str| zarrd_meta::data_type::parse_v3(&json!(name)).unwrap();
    let request = ReductionRequest {
        functions: functions.iter().map(|name| name.parse().unwrap()).collect(),
        axes: None,
        windows: Vec::new(),
        edge: Edge::Partial,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof: 0,
    };
    let len = values.len() as u64;
    let input = Input { data_type: of(data_type), extents: vec![Some(len)], names: vec![None] };
    let reduction = Reduction::new(&request, &input, astype.map(of).as_ref())?;
    let grid = Arc::new(GroupGrid::new(&reduction.windows()).unwrap());
    let mut partial = reduction.partial(grid.clone())?;
    let elements = Elements::Fixed(integers(values).concat().into());
    partial.add(&[len], &[AxisPositions::Strided { first: 0, step: 1, len, out: 0 }], &elements)?;
    let Elements::Fixed(found) = reduction.finish(&partial, grid.groups())? else { panic!() };
    Ok((reduction.data_type().name(), found.to_vec()))
}

#[test]
fn overflow_of_a_sum_is_judged_after_the_cast() {
    let large = [i64::MAX, i64::MAX, 1];
    let float = |value: f64| Ok(("float64".to_owned(), value.to_le_bytes().to_vec()));
    // 2⁶⁴ - 1, and 2⁶⁵ - 2.
    assert_eq!(cast(&["sum"], ("int64", &large), "float64"), float(2_f64.powi(64)));
    assert_eq!(cast(&["sum"], ("uint64", &[-1, -1]), "float64"), float(2_f64.powi(65)));
    for (values, astype, fits) in
        [(&large[..], "int64", false), (&[127], "int8", true), (&[128], "int8", false), (&[-129], "int8", false)]
    {
        let found = cast(&["sum"], ("int64", values), astype);
        assert_eq!(found.is_ok(), fits, "{values:?} {astype}: {found:?}");
        assert!(fits || matches!(found, Err(ComputeError::SumOverflow { .. })), "{found:?}");
    }
}

#[test]
fn only_integers_that_a_float_lacks_are_refused_beside_a_mean() {
    for (value, exact) in [(1 << 60, true), ((1 << 53) + 1, false), (-(1 << 53), true), (i64::MAX, false)] {
        let found = of_integers(&["max", "mean"], ("int64", &[value]), None);
        assert_eq!(found.is_ok(), exact, "{value}: {found:?}");
        // A cast that was asked for rounds.
        assert!(cast(&["max", "mean"], ("int64", &[value]), "float64").is_ok());
    }
}

#[test]
fn each_of_several_functions_is_cast_by_itself() {
    let bytes = |values: &[u8]| Ok(("uint8".to_owned(), values.to_vec()));
    assert_eq!(cast(&["sum", "max"], ("uint64", &[200, 55]), "uint8"), bytes(&[255, 200]));
    let overflows = |functions: &[&str], values: (&str, &[i64]), astype| {
        matches!(cast(functions, values, astype), Err(ComputeError::SumOverflow { .. }))
    };
    assert!(overflows(&["sum", "max"], ("uint64", &[200, 56]), "uint8"));
    assert!(overflows(&["max", "nansum"], ("int64", &[100, 28]), "int8"));
    assert!(overflows(&["count"], ("int64", &[0; 128]), "int8"));
    assert!(overflows(&["argmax"], ("int64", &[[0; 200].as_slice(), &[1]].concat()), "int8"));
    assert_eq!(cast(&["count", "argmax"], ("int64", &[0, 9]), "int8"), Ok(("int8".to_owned(), vec![2, 1])));
    let floats = [2_f64.powi(63), (i64::MAX - 1) as f64].map(f64::to_le_bytes).concat();
    assert_eq!(cast(&["sum", "max"], ("int64", &[i64::MAX - 1, 2]), "float64"), Ok(("float64".to_owned(), floats)));
}
