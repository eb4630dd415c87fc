//! Chunk projections compared with naive indexing.

use std::{collections::BTreeMap, sync::Arc};

use proptest::{collection::vec, prelude::*};
use zarrd_meta::{
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Points, Region, ResolvedSelection},
};

use super::{
    dimension::DimIndexer,
    projection::{ChunkProjections, EdgePolicy, ElementSelection, StackEntry, VisitOrder},
    slab::Slabs,
};

/// For each output position, the chunk index and the position within the chunk.
type Placed = BTreeMap<Vec<u64>, (Vec<u64>, Vec<u64>)>;

fn indices(axis: &DimIndexer) -> Vec<(u64, u64)> {
    match axis {
        DimIndexer::Strided { first, step, len, out } => {
            (0..*len).map(|i| (first.checked_add_signed(step * i as i64).unwrap(), out + i)).collect()
        }
        DimIndexer::Listed(pairs) => pairs.clone(),
    }
}

/// All combinations of one of each.
fn product<T: Clone>(axes: &[Vec<T>]) -> Vec<Vec<T>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer =
            |some: &Vec<T>| axis.iter().map(|one| [some.clone(), vec![one.clone()]].concat()).collect::<Vec<_>>();
        all.iter().flat_map(longer).collect()
    })
}

fn placed(cut: ChunkProjections) -> Placed {
    let mut all = Placed::new();
    for piece in cut {
        let elements: Vec<(Vec<u64>, Vec<u64>)> = match &piece.selection {
            ElementSelection::Orthogonal(axes) => product(&axes.iter().map(indices).collect::<Vec<_>>())
                .into_iter()
                .map(|pairs| pairs.into_iter().map(|(index, out)| (out, index)).unzip())
                .collect(),
            ElementSelection::Points(points) => points.iter().map(|(at, out)| (vec![out], at.to_vec())).collect(),
            ElementSelection::Stacked(entries) => {
                let of_entry = |entry: &StackEntry| {
                    let pairs = product(&entry.axes.iter().map(indices).collect::<Vec<_>>());
                    let placed = pairs.into_iter().map(|pairs| {
                        let (at, out): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
                        ([vec![entry.out], out].concat(), at)
                    });
                    placed.collect::<Vec<_>>()
                };
                entries.iter().flat_map(of_entry).collect()
            }
        };
        for (out, at) in elements {
            assert!(at.iter().zip(&piece.shape).all(|(at, extent)| at < extent), "{at:?} in {piece:?}");
            assert!(all.insert(out.clone(), (piece.index.clone(), at)).is_none(), "{out:?} twice");
        }
    }
    all
}

fn selected(dimension: &DimensionSelection) -> Vec<u64> {
    match dimension {
        DimensionSelection::Index(index) => vec![*index],
        DimensionSelection::Range { start, step, len } => {
            (0..*len).map(|i| start.checked_add_signed(step * i as i64).unwrap()).collect()
        }
        DimensionSelection::List(list) => list.to_vec(),
    }
}

/// The chunk index of an index, and the position within the chunk, found by iterating over the chunks.
fn walked(grid: &DimensionGrid, index: u64) -> (u64, u64) {
    let piece = (0..).find(|&piece| grid.chunk_bounds(piece).unwrap().contains(&index)).unwrap();
    (piece, index - grid.chunk_bounds(piece).unwrap().start)
}

fn naive(region: &Region, grid: &ChunkGrid) -> Placed {
    let axes: Vec<Vec<(u64, u64)>> =
        region.dimensions.iter().map(|dimension| selected(dimension).into_iter().zip(0..).collect()).collect();
    let place = |pairs: Vec<(u64, u64)>| {
        let out = pairs.iter().map(|pair| pair.1).collect();
        (out, pairs.iter().zip(grid.dimensions()).map(|(pair, grid)| walked(grid, pair.0)).unzip())
    };
    product(&axes).into_iter().map(place).collect()
}

/// True if the grid has a piece for every index.
fn naive_is_within(region: &Region, grid: &ChunkGrid) -> bool {
    let axes = region.dimensions.iter().zip(grid.dimensions());
    axes.into_iter().all(|(dimension, grid)| selected(dimension).iter().all(|&index| grid.chunk_index(index).is_some()))
}

fn dimension(extent: u64) -> impl Strategy<Value = DimensionSelection> {
    let range = (0..extent, 1..=extent, any::<bool>()).prop_map(move |(start, step, back)| {
        let distance = if back { start } else { extent - 1 - start };
        let step = if back { -(step as i64) } else { step as i64 };
        (start, step, distance / step.unsigned_abs() + 1)
    });
    prop_oneof![
        (0..extent).prop_map(DimensionSelection::Index),
        (range, 0..3_u64).prop_map(|((start, step, len), less)| DimensionSelection::Range {
            start,
            step,
            len: (len - less.min(len - 1))
        }),
        vec(0..extent, 1..6).prop_map(|list| DimensionSelection::List(list.into())),
    ]
}

fn grid(extent: u64) -> impl Strategy<Value = DimensionGrid> {
    let ends = vec(1..4_u64, 1..12).prop_map(move |lens| {
        let mut ends: Vec<u64> = lens
            .iter()
            .scan(0, |end, len| {
                *end += len;
                Some(*end)
            })
            .collect();
        let last = *ends.last().unwrap();
        ends.extend((last < extent).then_some(extent));
        DimensionGrid::Rectilinear { ends: ends.into() }
    });
    prop_oneof![(1..=extent + 1).prop_map(|length| DimensionGrid::Regular { length }), ends]
}

fn case() -> impl Strategy<Value = (Vec<u64>, Region, ChunkGrid)> {
    vec(1..14_u64, 0..4).prop_flat_map(|shape| {
        let dimensions = shape.iter().map(|&extent| dimension(extent)).collect::<Vec<_>>();
        let grids = shape.iter().map(|&extent| grid(extent)).collect::<Vec<_>>();
        (Just(shape), dimensions, grids)
            .prop_map(|(shape, dimensions, grids)| (shape, Region { dimensions }, ChunkGrid::new(grids)))
    })
}

proptest! {
    #[test]
    fn projections_match_naive_indexing((_, region, grid) in case()) {
        let selection = ElementSelection::of(&region).unwrap();
        prop_assert_eq!(placed(selection.project(&grid, EdgePolicy::Full)), naive(&region, &grid));
        prop_assert!(selection.project(&grid, EdgePolicy::Full).count() as u128 <= selection.max_chunks(&grid));
    }

    #[test]
    fn clipped_chunks_end_at_the_shape((shape, region, grid) in case()) {
        for piece in ElementSelection::of(&region).unwrap().project(&grid, EdgePolicy::Clip(&shape)) {
            for ((&index, &len), (grid, &extent)) in piece.index.iter().zip(&piece.shape).zip(grid.dimensions().iter().zip(&shape)) {
                let range = grid.chunk_bounds(index).unwrap();
                prop_assert_eq!(len, range.end.min(extent) - range.start);
            }
        }
    }

    #[test]
    fn nested_projections_match_naive_indexing((_, region, outer) in case(), lens in vec(1..4_u64, 4)) {
        // Shards: outer chunks are projected onto the inner grid, and nothing is lost or moved.
        let inner = |rank: usize| ChunkGrid::regular(&lens[..rank]).unwrap();
        let mut all = Placed::new();
        for piece in ElementSelection::of(&region).unwrap().project(&outer, EdgePolicy::Full) {
            let grid = inner(piece.index.len());
            for (out, (position, at)) in placed(piece.selection.project(&grid, EdgePolicy::Clip(&piece.shape))) {
                let within = position.iter().zip(&at).zip(&lens).map(|((position, at), len)| position * len + at).collect();
                all.insert(out, (piece.index.clone(), within));
            }
        }
        prop_assert_eq!(all, naive(&region, &outer));
    }

    #[test]
    fn slabs_cover_the_selection_in_order((_, region, grid) in case(), most in 1..40_u64) {
        let resolved = Arc::new(ResolvedSelection::Region(region.clone()));
        let mut all = Vec::new();
        for slab in Slabs::new(resolved, Arc::new(grid.clone()), most) {
            let elements: u64 = slab.extents.iter().product();
            prop_assert!(elements <= most);
            prop_assert_eq!(slab.selection.len(), elements);
            all.extend(placed(slab.selection.project(&grid, EdgePolicy::Full)).into_values());
        }
        prop_assert_eq!(all, naive(&region, &grid).into_values().collect::<Vec<_>>());
    }

    #[test]
    fn stack_matches_its_entries((_, region, grid) in case(), moves in vec(0..3_u64, 1..5), most in 1..40_u64) {
        let regions: Vec<Region> = moves.iter().map(|&by| region.clone().shifted(&vec![by; region.dimensions.len()])).collect();
        let within = |region: &Region| naive_is_within(region, &grid);
        prop_assume!(regions.iter().all(within));
        let resolved = Arc::new(ResolvedSelection::Stack(regions.clone()));
        let mut all = Vec::new();
        for slab in Slabs::new(resolved, Arc::new(grid.clone()), most) {
            prop_assert!(slab.extents.iter().product::<u64>() <= most && slab.selection.len() <= most);
            let mut indices = std::collections::HashSet::new();
            let once = slab.selection.project(&grid, EdgePolicy::Full).all(|piece| indices.insert(piece.index));
            prop_assert!(once, "a chunk comes once for all entries");
            all.extend(placed(slab.selection.project(&grid, EdgePolicy::Full)).into_values());
        }
        let wanted: Vec<_> = regions.iter().flat_map(|region| naive(region, &grid).into_values()).collect();
        prop_assert_eq!(all, wanted);
    }

    #[test]
    fn order_of_visits_is_a_rotation_and_its_reverse((_, region, grid) in case(), from in vec(0..4_u64, 4)) {
        let Some(selection) = ElementSelection::of(&region) else { return Ok(()) };
        let visited = |order: &VisitOrder| -> Vec<_> {
            selection.project(&grid, EdgePolicy::Full).in_order(order).map(|piece| piece.index).collect()
        };
        let (from, all) = (from[..region.dimensions.len()].to_vec(), visited(&VisitOrder::default()));
        prop_assert_eq!(selection.project(&grid, EdgePolicy::Full).known_len(), Some(all.len() as u64));
        let rotated = visited(&VisitOrder { from: Some(from.clone()), reversed: false });
        let at = all.iter().position(|index| *index == rotated[0]).unwrap();
        prop_assert_eq!(&rotated, &[&all[at..], &all[..at]].concat());
        if all.contains(&from) {
            prop_assert_eq!(&rotated[0], &from);
        }
        let back = visited(&VisitOrder { from: Some(from), reversed: true });
        prop_assert_eq!(back, rotated.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn points_match_naive_indexing(lens in vec(1..5_u64, 1..4), seed in vec(vec(0..20_u64, 3), 0..20), most in 1..7_u64) {
        let rank = lens.len();
        let grid = ChunkGrid::regular(&lens).unwrap();
        let coordinates = seed.iter().flat_map(|point| point[..rank].to_vec()).collect();
        let resolved = Arc::new(ResolvedSelection::Points(Points { len: seed.len(), rank, coordinates }));
        let mut found = Vec::new();
        for slab in Slabs::new(resolved, Arc::new(grid.clone()), most) {
            prop_assert!(slab.extents[0] <= most);
            found.extend(placed(slab.selection.project(&grid, EdgePolicy::Full)).into_values());
        }
        let wanted: Vec<_> = seed
            .iter()
            .map(|point| point[..rank].iter().zip(grid.dimensions()).map(|(&at, grid)| walked(grid, at)).unzip())
            .collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn slabs_end_at_chunk_boundaries() {
    let region = Region::full(&[100, 10]);
    let grid = Arc::new(ChunkGrid::regular(&[8, 10]).unwrap());
    let extents = |most| -> Vec<u64> {
        Slabs::new(Arc::new(ResolvedSelection::Region(region.clone())), grid.clone(), most)
            .map(|slab| slab.extents[0])
            .collect()
    };
    assert_eq!(extents(1000), [100]);
    assert_eq!(extents(300), [24, 24, 24, 28]);
    assert_eq!(extents(80), [8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4]);
    // If not even one chunk fits, its rows are taken as far as they fit, without rows of the next chunk.
    assert_eq!(extents(50)[..4], [5, 3, 5, 3]);
    // If not even one row fits, it is split along the next axis.
    let cut: Vec<_> = Slabs::new(Arc::new(ResolvedSelection::Region(Region::full(&[2, 10]))), grid, 6)
        .map(|slab| slab.extents)
        .collect();
    assert_eq!(cut, [[1, 6], [1, 4], [1, 6], [1, 4]]);
}

#[test]
fn lists_touch_no_more_chunks_than_there_are_around_their_indices() {
    let grid = ChunkGrid::regular(&[10, 1000]).unwrap();
    let lists = |lists: [&[u64]; 2]| {
        let dimensions = lists.map(|list| DimensionSelection::List(list.into())).to_vec();
        ElementSelection::of(&Region { dimensions }).unwrap().max_chunks(&grid)
    };
    assert_eq!(lists([&[5, 3, 9, 0, 5], &[999, 0, 7]]), 1);
    assert_eq!(lists([&[25, 3, 29, 10, 5], &[0, 999]]), 3);
    assert_eq!(lists([&[0, 1, 2, 1_000_000, 1_000_001], &[5]]), 2);
}

#[test]
fn size_of_a_huge_selection_is_computed_without_enumeration() {
    let grid = ChunkGrid::regular(&[1, 1]).unwrap();
    let region = Region::full(&[i64::MAX as u64, i64::MAX as u64]);
    let selection = ElementSelection::of(&region).unwrap();
    assert_eq!(selection.max_chunks(&grid), (i64::MAX as u128).pow(2));
    assert_eq!(selection.len(), u64::MAX);
}
