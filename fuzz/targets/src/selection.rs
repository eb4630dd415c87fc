//! Selections, as text and as JSON of a request, applied to shapes.

use zarrd_meta::selection::{
    DimensionSelection, Item, Points, ReadRequest, Region, ResolvedSelection, Selection, Slice,
};

/// The maximum extent that is iterated index by index.
const WALKED: u64 = 64;

/// Parses a selection and applies it to a shape. The first byte selects text or JSON and the number of dimensions,
/// whose extents follow.
pub fn selection(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((extents, rest)) = rest.split_at_checked(usize::from(choice >> 1) % 6) else { return };
    let shape: Vec<u64> = extents.iter().copied().map(extent).collect();
    if choice & 1 == 0 { text(&String::from_utf8_lossy(rest), &shape) } else { json(rest, &shape) }
}

/// Mostly small extents, and the largest ones.
fn extent(byte: u8) -> u64 {
    match byte {
        ..=63 => u64::from(byte),
        64..128 => 1 << (byte & 63).min(62),
        _ => i64::MAX as u64 - u64::from(byte - 128),
    }
}

fn text(text: &str, shape: &[u64]) {
    match Selection::parse(text) {
        Ok(selection) => apply(&selection, shape),
        Err(error) => {
            assert!(text.is_char_boundary(error.offset));
            let _ = error.to_string();
        }
    }
}

fn json(body: &[u8], shape: &[u64]) {
    let Ok(request) = ReadRequest::from_json(body) else { return };
    match &request {
        ReadRequest::Select(selection) => apply(selection, shape),
        ReadRequest::Stack(selections) => selections.iter().for_each(|selection| apply(selection, shape)),
        ReadRequest::Points(_) => {}
    }
    let Ok(resolved) = request.resolve(shape) else { return };
    let _ = resolved.elements();
    match &resolved {
        ResolvedSelection::Region(region) => assert_eq!(region.shape(), resolved.shape()),
        ResolvedSelection::Stack(regions) => {
            let shape = resolved.shape();
            assert!(regions.iter().all(|region| Some(region.shape().as_slice()) == shape.get(1..)));
        }
        ResolvedSelection::Points(points) => inside(points, shape),
    }
}

fn inside(points: &Points, shape: &[u64]) {
    assert_eq!((points.rank, points.coordinates.len()), (shape.len(), points.len * points.rank));
    let extents = shape.iter().cycle();
    assert!(points.coordinates.iter().zip(extents).all(|(coordinate, extent)| coordinate < extent));
}

fn apply(selection: &Selection, shape: &[u64]) {
    // The text of a selection may be longer than the JSON that it was parsed from, and too long to be parsed.
    let text = selection.to_string();
    if text.len() <= zarrd_meta::selection::MAX_TEXT_SIZE {
        assert_eq!(Selection::parse(&text).as_ref(), Ok(selection));
    }
    let region = match selection.resolve(shape) {
        Ok(region) => region,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    lies_within(&region, shape);
    assert_eq!(region.to_selection().resolve(shape).as_ref(), Ok(&region));
    for max in [1, 10, 1 << 40] {
        let shrunk = region.shrunk_to(max).expect("one element is left");
        lies_within(&shrunk, shape);
        assert!(shrunk.elements().is_some_and(|elements| elements <= max));
    }
    compare(selection, &region, shape);
}

/// Invariants of a region.
fn lies_within(region: &Region, shape: &[u64]) {
    assert_eq!(region.dimensions.len(), shape.len());
    for (dimension, &extent) in region.dimensions.iter().zip(shape) {
        match *dimension {
            DimensionSelection::Index(index) => assert!(index < extent),
            DimensionSelection::List(ref indices) => assert!(indices.iter().all(|&index| index < extent)),
            DimensionSelection::Range { start, step, len: 0 } => assert_eq!((start, step), (0, 1)),
            DimensionSelection::Range { start, step, len } => {
                let last = i128::from(start) + i128::from(step) * i128::from(len - 1);
                assert!(start < extent && (0..i128::from(extent)).contains(&last));
                assert!(step != 0 && (step == 1 || len > 1));
            }
        }
    }
}

/// Compares each small dimension with the indices that its item selects, found by iteration.
fn compare(selection: &Selection, region: &Region, shape: &[u64]) {
    let ellipsis = selection.items.iter().position(|item| *item == Item::Ellipsis);
    let named = selection.items.len() - usize::from(ellipsis.is_some());
    let whole = Item::Slice(Slice::default());
    let mut items: Vec<&Item> = selection.items.iter().filter(|item| **item != Item::Ellipsis).collect();
    for _ in named..shape.len() {
        items.insert(ellipsis.unwrap_or(named), &whole);
    }
    assert_eq!(items.len(), shape.len());
    for ((item, found), &extent) in items.into_iter().zip(&region.dimensions).zip(shape) {
        let all: Vec<u64> = (0..extent.min(WALKED)).collect();
        if all.len() as u64 == extent {
            assert_eq!(indices(found), walk(item, &all), "{item} of {extent}");
        }
    }
}

fn indices(dimension: &DimensionSelection) -> Vec<u64> {
    match *dimension {
        DimensionSelection::Index(index) => vec![index],
        DimensionSelection::List(ref indices) => indices.to_vec(),
        DimensionSelection::Range { start, step, len } => {
            (0..len).map(|n| start.wrapping_add_signed(step.wrapping_mul(n as i64))).collect()
        }
    }
}

/// The indices of a dimension that an item selects.
fn walk(item: &Item, all: &[u64]) -> Vec<u64> {
    let len = all.len() as i64;
    let from_start = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound };
    let at = |bound: i64| usize::try_from(from_start(bound)).ok().and_then(|at| all.get(at)).copied();
    match item {
        Item::Ellipsis => all.to_vec(),
        Item::Index(index) => at(*index).into_iter().collect(),
        Item::List(entries) => entries.iter().filter_map(|&entry| at(entry)).collect(),
        Item::Slice(Slice { start, stop, step }) => {
            let step = step.unwrap_or(1);
            let (start, stop) = (start.map(from_start), stop.map(from_start));
            // Every `step`th index between the bounds, in the step's direction.
            let between: Vec<u64> = if step > 0 {
                let range = start.unwrap_or(0)..stop.unwrap_or(len);
                all.iter().copied().filter(|&index| range.contains(&(index as i64))).collect()
            } else {
                let (start, stop) = (start.unwrap_or(len), stop.unwrap_or(-1));
                all.iter().copied().rev().filter(|&index| (index as i64) <= start && (index as i64) > stop).collect()
            };
            between.into_iter().step_by(usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX)).collect()
        }
    }
}
