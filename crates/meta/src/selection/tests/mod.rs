//! Selections against NumPy, against Python's slices, and against a model of them that walks.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::limits::MAX_EXTENT;

fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

fn numbers(text: &str, separator: char) -> Vec<u64> {
    text.split(separator).filter(|number| !number.is_empty()).map(|number| number.parse().unwrap()).collect()
}

/// The indices of one dimension, one by one.
fn indices(dimension: &DimensionSelection) -> Vec<u64> {
    match dimension {
        DimensionSelection::Index(index) => vec![*index],
        DimensionSelection::List(indices) => indices.to_vec(),
        DimensionSelection::Range { start, step, len } => {
            let at = |n| i128::from(*start) + i128::from(*step) * i128::from(n);
            (0..*len).map(|n| u64::try_from(at(n)).unwrap()).collect()
        }
    }
}

/// The selected elements of an array that holds its elements' positions in C order.
fn elements(region: &Region, shape: &[u64]) -> Vec<u64> {
    region.dimensions.iter().zip(shape).fold(vec![0], |found, (dimension, extent)| {
        let indices = indices(dimension);
        found.iter().flat_map(|outer| indices.iter().map(move |index| outer * extent + index)).collect()
    })
}

/// The indices that Python's slice selects from `0..extent`, one by one.
fn walked(slice: Slice, extent: i64) -> Vec<u64> {
    let step = slice.step.unwrap_or(1);
    let place = |bound: i64, lowest: i64, highest: i64| {
        let counted = if bound < 0 { bound.saturating_add(extent) } else { bound };
        if counted < lowest {
            lowest
        } else if counted > highest {
            highest
        } else {
            counted
        }
    };
    let mut found = Vec::new();
    if step > 0 {
        let mut at = slice.start.map_or(0, |start| place(start, 0, extent));
        let stop = slice.stop.map_or(extent, |stop| place(stop, 0, extent));
        while at < stop {
            found.push(at as u64);
            at = at.saturating_add(step);
        }
    } else {
        let mut at = slice.start.map_or(extent - 1, |start| place(start, -1, extent - 1));
        let stop = slice.stop.map_or(-1, |stop| place(stop, -1, extent - 1));
        while at > stop {
            found.push(at as u64);
            at = at.saturating_add(step);
        }
    }
    found
}

/// The invariants of a region.
fn check(region: &Region, shape: &[u64]) {
    assert_eq!(region.dimensions.len(), shape.len());
    for (dimension, &extent) in region.dimensions.iter().zip(shape) {
        match dimension {
            DimensionSelection::Index(index) => assert!(*index < extent),
            DimensionSelection::List(indices) => assert!(indices.iter().all(|index| *index < extent)),
            DimensionSelection::Range { start, step, len } => {
                let last = i128::from(*start) + i128::from(*step) * (i128::from(*len) - 1);
                assert!(*step != 0 && (*len > 1 || *step == 1));
                assert!(if *len == 0 { *start == 0 } else { *start < extent && (0..extent.into()).contains(&last) });
            }
        }
    }
}

#[test]
fn selections_match_numpy() {
    let mut compared = 0;
    for line in lines(include_str!("elements.txt")) {
        let (shape, text, expected) = (numbers(line[0].trim_matches('.'), 'x'), line[1], line[2]);
        let found = Selection::parse(text).unwrap().resolve(&shape);
        if expected == "out" {
            assert!(
                matches!(found, Err(SelectionError::OutOfBounds { .. } | SelectionError::TooManyItems { .. })),
                "{line:?}: {found:?}"
            );
        } else {
            let region = found.unwrap_or_else(|error| panic!("{line:?}: {error}"));
            let (result, values) = expected.split_once('=').unwrap();
            assert_eq!(region.shape(), numbers(result, 'x'), "{line:?}");
            assert_eq!(elements(&region, &shape), numbers(values, ','), "{line:?}");
            check(&region, &shape);
        }
        compared += 1;
    }
    assert_eq!(compared, 501);
}

#[test]
fn slices_of_the_largest_extents_match_python() {
    let mut compared = 0;
    for line in lines(include_str!("slices.txt")) {
        let extent: u64 = line[0].parse().unwrap();
        let region = Selection::parse(line[1]).unwrap().resolve(&[extent]).unwrap();
        let (start, step, len) = (line[2].parse().unwrap(), line[3].parse().unwrap(), line[4].parse().unwrap());
        assert_eq!(region.dimensions, [DimensionSelection::Range { start, step, len }], "{line:?}");
        check(&region, &[extent]);
        compared += 1;
    }
    assert_eq!(compared, 150);
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -8..=8_i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn slice() -> impl Strategy<Value = Slice> {
    let step = option::of(number().prop_filter("a slice moves", |step| *step != 0));
    (option::of(number()), option::of(number()), step).prop_map(|(start, stop, step)| Slice { start, stop, step })
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![number().prop_map(Item::Index), slice().prop_map(Item::Slice), vec(number(), 0..5).prop_map(Item::List)]
}

fn selection() -> impl Strategy<Value = Selection> {
    (vec(item(), 0..5), option::of(0..5_usize)).prop_map(|(mut items, ellipsis)| {
        if let Some(at) = ellipsis {
            items.insert(at.min(items.len()), Item::Ellipsis);
        }
        Selection { items }
    })
}

/// A selection of which nothing is out of bounds, and its shape.
fn fitting() -> impl Strategy<Value = (Selection, Vec<u64>)> {
    let dimension = (1..7_i64).prop_flat_map(|extent| {
        let index = -extent..extent;
        let item = prop_oneof![
            2 => index.clone().prop_map(Item::Index),
            3 => slice().prop_map(Item::Slice),
            2 => vec(index, 0..5).prop_map(Item::List)
        ];
        (item, Just(extent as u64))
    });
    vec(dimension, 0..5).prop_map(|dimensions| {
        let (items, shape) = dimensions.into_iter().unzip();
        (Selection { items }, shape)
    })
}

/// A request that is within all limits.
fn request() -> impl Strategy<Value = ReadRequest> {
    prop_oneof![
        selection().prop_map(ReadRequest::Select),
        vec(vec(number(), 0..4), 0..5).prop_map(ReadRequest::Points),
        vec(selection(), 1..4).prop_map(ReadRequest::Stack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn requests_roundtrip_through_json(request in request()) {
        prop_assert_eq!(ReadRequest::from_json(&request.to_json()).unwrap(), request);
    }

    #[test]
    fn slices_match_the_reference(slice in slice(), extent in 0..9_u64) {
        let region = Selection { items: vec![Item::Slice(slice)] }.resolve(&[extent]).unwrap();
        prop_assert_eq!(indices(&region.dimensions[0]), walked(slice, extent as i64));
    }

    #[test]
    fn selections_roundtrip_through_text(selection in selection()) {
        prop_assert_eq!(selection.to_string().parse(), Ok(selection));
    }

    #[test]
    fn regions_lie_within_the_shape(
        selection in selection(),
        shape in vec(prop_oneof![0..9_u64, Just(MAX_EXTENT), 0..MAX_EXTENT], 0..6),
    ) {
        if let Ok(region) = selection.resolve(&shape) {
            check(&region, &shape);
            prop_assert_eq!(region.to_selection().resolve(&shape), Ok(region));
        }
    }

    #[test]
    fn each_dimension_is_resolved_independently((selection, shape) in fitting()) {
        let region = selection.resolve(&shape).unwrap();
        for ((item, found), &extent) in selection.items.iter().zip(&region.dimensions).zip(&shape) {
            let counted = |index: &i64| if *index < 0 { extent - index.unsigned_abs() } else { *index as u64 };
            let expected = match item {
                Item::Index(index) => vec![counted(index)],
                Item::Slice(slice) => walked(*slice, extent as i64),
                Item::List(indices) => indices.iter().map(counted).collect(),
                Item::Ellipsis => panic!("none was made"),
            };
            prop_assert_eq!(indices(found), expected);
        }
        prop_assert_eq!(region.to_selection().resolve(&shape), Ok(region));
    }

    #[test]
    fn shifted_regions_select_from_the_array((selection, view) in fitting(), origin in vec(0..9_u64, 6)) {
        let region = selection.resolve(&view).unwrap();
        let shifted = region.clone().shifted(&origin);
        let shape: Vec<u64> = view.iter().zip(&origin).map(|(extent, origin)| extent + origin).collect();
        check(&shifted, &shape);
        for ((shifted, dimension), origin) in shifted.dimensions.iter().zip(&region.dimensions).zip(&origin) {
            let expected: Vec<u64> = indices(dimension).iter().map(|index| index + origin).collect();
            prop_assert_eq!(indices(shifted), expected);
        }
    }

    #[test]
    fn shrunk_regions_are_leading_parts_that_fit((selection, shape) in fitting(), max in 1..60_u64) {
        let region = selection.resolve(&shape).unwrap();
        let shrunk = region.shrunk_to(max).unwrap();
        check(&shrunk, &shape);
        prop_assert!(shrunk.elements().unwrap() <= max);
        prop_assert_eq!(shrunk == region, region.elements().unwrap() <= max);
        let mut cut = false;
        for (part, all) in shrunk.dimensions.iter().zip(&region.dimensions) {
            prop_assert!(indices(all).starts_with(&indices(part)));
            // Nothing is cut below a dimension of which more than one index is left.
            prop_assert!(!cut || part == all);
            cut |= part.len() > 1;
        }
        // One more along the dimension that was cut would be too many.
        let grown = shrunk.dimensions.iter().zip(&region.dimensions).find(|(part, all)| part.len() < all.len());
        if let Some((part, _)) = grown {
            prop_assert!(shrunk.elements().unwrap() / part.len() * (part.len() + 1) > max || part.len() == 1);
        }
    }

    #[test]
    fn random_text_has_an_error_offset_within_the_text(text in "[-+0-9:.,()\\[\\] \ta-cé]{0,40}") {
        if let Err(error) = Selection::parse(&text) {
            let rest = text.get(error.offset..).unwrap();
            prop_assert!(rest.starts_with(error.found.trim_end_matches('…')));
        }
    }

    #[test]
    fn random_bodies_never_panic(
        body in r#"\{"(select|points|stack)": ?(\[(\[[-0-9,]{0,4}\]|"[0-9:,.]{0,4}"|\{("start":[0-9])?\}|[-0-9,]{1,3}),?\]|"[0-9:,]{0,5}")\}"#,
    ) {
        let Ok(request) = ReadRequest::from_json(body.as_bytes()) else { return Ok(()) };
        if let Ok(ResolvedSelection::Region(region)) = request.resolve(&[4, 5]) {
            check(&region, &[4, 5]);
        }
    }

    #[test]
    fn json_and_text_selections_are_equal(selection in selection()) {
        let text = serde_json::json!({ "select": selection.to_string() });
        let items: Vec<_> = selection.items.iter().map(|item| match item {
            Item::Index(index) => serde_json::json!(index),
            Item::Slice(slice) => serde_json::json!({ "start": slice.start, "stop": slice.stop, "step": slice.step }),
            Item::List(indices) => serde_json::json!(indices),
            Item::Ellipsis => serde_json::json!("..."),
        }).collect();
        for body in [text, serde_json::json!({ "select": items })] {
            let request = ReadRequest::from_json(body.to_string().as_bytes()).unwrap();
            prop_assert_eq!(request, ReadRequest::Select(selection.clone()));
        }
    }
}

#[test]
fn shrinking_huge_regions_does_not_overflow() {
    let region = Region::full(&[MAX_EXTENT; 64]);
    assert_eq!(region.elements(), None);
    let shrunk = region.shrunk_to(1 << 30).unwrap();
    assert_eq!(shrunk.elements(), Some(1 << 30));
    assert_eq!(shrunk.to_selection().to_string(), format!("{}0:1073741824", "0:1,".repeat(63)));
    assert_eq!(region.shrunk_to(0), None);
    assert_eq!(Region::full(&[0, 5]).shrunk_to(0), Some(Region::full(&[0, 5])));
}

#[test]
fn suggested_selection_is_a_leading_part() {
    for (asked, max, suggested) in [
        ("", 1000, "0:10,0:100"),
        ("", 999, "0:9,0:100"),
        ("", 99, "0:1,0:99"),
        ("::-2", 200, "9:6:-2,0:100"),
        ("3,::7", 4, "3,0:22:7"),
        ("(5,1,5),(0,-1)", 5, "(5,1),(0,99)"),
        ("(5,1,5),(0,-1)", 1, "(5),(0)"),
        ("-1::-1,1::-1", 100, "9::-1,1::-1"),
    ] {
        let region = Selection::parse(asked).unwrap().resolve(&[10, 100]).unwrap();
        assert_eq!(region.shrunk_to(max).unwrap().to_selection().to_string(), suggested, "{asked}");
    }
}

#[test]
fn selection_errors_have_a_reason() {
    for (text, shape, expected) in [
        ("3", &[3][..], "index 3 is out of bounds for dimension 0, whose bounds are -3..3"),
        (":,-4", &[5, 3], "index -4 is out of bounds for dimension 1, whose bounds are -3..3"),
        ("...,(0,9)", &[5, 3], "index 9 is out of bounds for dimension 1, whose bounds are -3..3"),
        ("0", &[0], "index 0 is out of bounds for dimension 0, which is empty"),
        (
            "100000000000000000000",
            &[MAX_EXTENT],
            "index 9223372036854775807 (or more) is out of bounds for dimension 0, \
             whose bounds are -9223372036854775807..9223372036854775807",
        ),
        (
            "-9223372036854775808",
            &[MAX_EXTENT],
            "index -9223372036854775808 (or less) is out of bounds for dimension 0, \
             whose bounds are -9223372036854775807..9223372036854775807",
        ),
        ("1,2", &[3], "selection has 2 items, but the array has 1 dimensions"),
        ("1,...", &[], "selection has 1 items, but the array has 0 dimensions"),
    ] {
        let error = Selection::parse(text).unwrap().resolve(shape).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let twice = Selection { items: vec![Item::Ellipsis, Item::Ellipsis] };
    assert_eq!(twice.resolve(&[3, 3]), Err(SelectionError::SecondEllipsis));
    let still = Selection { items: vec![Item::Slice(Slice { step: Some(0), ..Slice::default() })] };
    assert_eq!(still.resolve(&[3]), Err(SelectionError::ZeroStep { dimension: 0 }));
}

#[test]
fn lists_of_a_selection_are_limited_together() {
    let list = |len: usize| Item::List(vec![0; len]);
    let of = |lens: &[usize]| Selection { items: lens.iter().map(|&len| list(len)).collect() }.resolve(&[1, 1]);
    let half = MAX_LIST_LEN / 2;
    assert!(of(&[half, half]).is_ok() && of(&[MAX_LIST_LEN]).is_ok());
    assert_eq!(of(&[half, half + 1]), Err(SelectionError::TooManyIndices { found: MAX_LIST_LEN + 1 }));
}
