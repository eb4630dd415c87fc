//! Selections by dimension names and labels.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde_json::json;
use xxhash_rust::xxh3::Xxh3;
use zarrd_cf::{Coordinate, LabelSelection};
use zarrd_codec::{Elements, VariableBuilder};
use zarrd_compute::{
    AxisPositions, Edge, Function, GroupGrid, Input, Missing, Operation, ReducedDimensions, Reduction,
    ReductionRequest, ResultDimension,
};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    ArrayModel, NodePath,
    data_type::{DataType, parse_v3},
    json::Json,
    selection::{DimensionSelection, Item, Region, Selection, Slice},
};

use super::{
    error::CoordinateError,
    find::{Located, dimension_of, locate, locate_of, name_of, unknown_dimension},
    image,
    read::{CoordinateVersion, ReadCoordinate, read},
};
use crate::{context::Context, memory::claim::Permit};

/// The selection along one dimension, by its name or number, or by the name of another coordinate over it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSelection {
    /// The name.
    pub name: String,
    /// The indices.
    pub indices: Indices,
}

/// Indices along a dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Indices {
    /// As numbers.
    Item(Item),
    /// By labels of the coordinate.
    Labels(LabelSelection),
}

/// A selection that was made by names and labels, with the versions of the coordinates that it was made with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// The selection.
    pub selection: Selection,
    /// The dimensions that were named, in the order of the array, with their items.
    pub dimensions: Vec<(String, Item)>,
    /// The numbers of the dimensions along which one date without seconds was selected, which is an interval.
    pub dates: Vec<usize>,
    /// The coordinates that were used.
    pub coordinates: Vec<CoordinateVersion>,
}

/// The labels of a result along a dimension of the array.
#[derive(Debug)]
pub struct LabelledDimension {
    /// The name of the dimension.
    pub name: String,
    /// The number of the result's dimension; `None` if it was dropped.
    pub dimension: Option<usize>,
    /// The labels; `None` if there is no coordinate.
    pub labels: Option<Labels>,
}

/// Labels, decoded.
#[derive(Debug)]
pub struct Labels {
    /// Their data type.
    pub data_type: DataType,
    /// The labels.
    pub elements: Elements,
    /// The attributes of the coordinate.
    pub attributes: Json,
    _memory: Option<Permit>,
}

/// The decoded coordinate of a dimension.
#[derive(Debug)]
pub struct DimensionCoordinate {
    /// The number of the dimension.
    pub dimension: usize,
    /// The path of the coordinate, or of the level of an image that has it.
    pub path: NodePath,
    /// All labels.
    pub labels: Arc<Coordinate>,
    /// The attributes of the coordinate.
    pub attributes: Json,
    /// The version of the coordinate.
    pub version: CoordinateVersion,
    /// The memory of the labels, unless they are cached.
    _memory: Option<Permit>,
}

impl Selected {
    /// Drops the dimensions along which a date selects one index. Returns false if there are none.
    pub fn drop_single_dates(&mut self) -> bool {
        let mut is_changed = false;
        for dimension in &self.dates {
            if let Some(item) = self.selection.items.get_mut(*dimension)
                && let Item::Slice(Slice { start: Some(start), stop: Some(stop), step: None | Some(1) }) = *item
                && start.checked_add(1) == Some(stop)
            {
                *item = Item::Index(start);
                is_changed = true;
            }
        }
        is_changed
    }

    /// A hash that differs whenever one of the coordinates does; `None` if the version of one is not known.
    pub fn fingerprint(&self) -> Option<u128> {
        hash_versions(&self.coordinates)
    }
}

/// A hash that differs whenever one of the coordinates does; `None` if the version of one is not known.
pub fn hash_versions(coordinates: &[CoordinateVersion]) -> Option<u128> {
    let mut hash = Xxh3::new();
    for coordinate in coordinates {
        hash.update(&coordinate.fingerprint()?.to_le_bytes());
    }
    Some(hash.digest128())
}

/// Makes a selection by names and labels.
pub(crate) async fn select(
    context: &Arc<Context>,
    (path, model): (&NodePath, &ArrayModel),
    dimensions: &[NamedSelection],
) -> Result<Selected, CoordinateError> {
    let mut items: Vec<Option<Item>> = vec![None; model.shape.len()];
    let mut selected = Selected::default();
    for NamedSelection { name, indices } in dimensions {
        let (dimension, item) = match indices {
            Indices::Item(item) => {
                let known = match dimension_of(model, name) {
                    None => image::axis(context, (path, model), name).await?,
                    known => known,
                };
                (known.ok_or_else(|| unknown_dimension(model, name))?, item.clone())
            }
            Indices::Labels(labels) => {
                let coordinate = coordinate(context, (path, model), name).await?;
                let item = coordinate.labels.select(labels);
                let item = item.map_err(|source| CoordinateError::Label { dimension: name.clone(), source })?;
                selected.coordinates.push(coordinate.version);
                if matches!((labels, &item), (LabelSelection::One(_), Item::Slice(_))) {
                    selected.dates.push(coordinate.dimension);
                }
                (coordinate.dimension, item)
            }
        };
        let repeated = || CoordinateError::DimensionRepeated { dimension: name_of(model, dimension) };
        match items.get_mut(dimension) {
            Some(place) if place.is_none() => *place = Some(item),
            _ => return Err(repeated()),
        }
    }
    for (dimension, item) in items.iter().enumerate() {
        selected.dimensions.extend(item.clone().map(|item| (name_of(model, dimension), item)));
    }
    let last = items.iter().rposition(Option::is_some).map_or(0, |last| last.saturating_add(1));
    let all = || Item::Slice(Slice::default());
    selected.selection.items = items.into_iter().take(last).map(|item| item.unwrap_or_else(all)).collect();
    Ok(selected)
}

/// Reads the coordinate of a dimension, or another one over one dimension. A level of an image has those that its
/// transformations say, unless there are arrays of them.
pub(crate) async fn coordinate(
    context: &Arc<Context>,
    (path, model): (&NodePath, &ArrayModel),
    name: &str,
) -> Result<DimensionCoordinate, CoordinateError> {
    let (dimension, path, found) = match locate(context, path, model, name).await {
        Err(error @ (CoordinateError::NoCoordinate { .. } | CoordinateError::UnknownDimension { .. })) => {
            let Some((dimension, made)) = image::make(context, (path, model), name).await? else {
                let axis = image::axis(context, (path, model), name).await?;
                let without = |dimension| CoordinateError::NoCoordinate { dimension: name_of(model, dimension) };
                return Err(axis.map_or(error, without));
            };
            (dimension, path.clone(), made)
        }
        located => {
            let located = located?;
            let found = labels_at(context, model, &located, None).await?;
            (located.dimension, located.coordinate, found)
        }
    };
    let ReadCoordinate { coordinate: labels, attributes, version, memory, .. } = found;
    Ok(DimensionCoordinate { dimension, path, labels, attributes, version, _memory: memory })
}

/// Reads a coordinate, or of a large one only the `wanted` labels.
async fn labels_at(
    context: &Arc<Context>,
    model: &ArrayModel,
    located: &Located,
    wanted: Option<&DimensionSelection>,
) -> Result<ReadCoordinate, CoordinateError> {
    let found = read(context, (&located.coordinate, model.dialect), wanted).await?;
    match model.view_shape().get(located.dimension) == Some(&found.extent) {
        true => Ok(found),
        false => Err(CoordinateError::NoCoordinate { dimension: name_of(model, located.dimension) }),
    }
}

/// The steps of taking a label, or of adding it to a mean.
const STEPS_PER_LABEL: u64 = 16;

/// The labels of a region, or of results of its reduction, along all dimensions that have a name, and the versions of
/// the coordinates that have them. Fails if those of the region have more than `limit` bytes.
pub(crate) async fn labels_of(
    context: &Arc<Context>,
    (path, model): (&NodePath, &ArrayModel),
    (region, reduction): (&Region, Option<&Reduction>),
    mut limit: u64,
) -> Result<(Vec<LabelledDimension>, Vec<CoordinateVersion>), CoordinateError> {
    let (mut labelled, mut versions) = (Vec::new(), Vec::new());
    labelled.extend(reduction.and_then(function_labels));
    for LabelledAxis { axis, selected, dimension, window } in labelled_axes(region, reduction) {
        let Some(name) = model.dimension_names.get(axis).cloned().flatten() else { continue };
        let found =
            async { labels_at(context, model, &locate_of(context, path, model, axis).await?, Some(selected)).await };
        let labels = match found.await {
            Ok(found) => {
                versions.push(found.version.clone());
                let (labels, size) = taken(context, found, (selected, window), limit).await?;
                limit = limit.saturating_sub(size);
                labels
            }
            Err(CoordinateError::NoCoordinate { .. }) => None,
            Err(error) => return Err(error),
        };
        labelled.push(LabelledDimension { name, dimension, labels });
    }
    Ok((labelled, versions))
}

/// A dimension of an array along which a result has labels.
struct LabelledAxis<'a> {
    axis: usize,
    selected: &'a DimensionSelection,
    /// The number of the result's dimension; `None` if it was dropped.
    dimension: Option<usize>,
    /// The number of positions that share a label.
    window: u64,
}

/// The dimensions along which a region, or results of its reduction, can have labels: those that are not reduced.
fn labelled_axes<'a>(region: &'a Region, reduction: Option<&Reduction>) -> Vec<LabelledAxis<'a>> {
    let mut kept = usize::from(reduction.is_some_and(|reduction| reduction.function_dimension().is_some()));
    let dimensions = reduction.map(Reduction::result_dimensions);
    let mut axes = Vec::new();
    for (axis, selected) in region.dimensions.iter().enumerate() {
        let dimension = dimensions.as_ref().and_then(|dimensions| dimensions.get(axis));
        let window = match dimension.unwrap_or(&ResultDimension::Windows(1)) {
            ResultDimension::Windows(window) => *window,
            ResultDimension::Whole => {
                kept = kept.saturating_add(1);
                continue;
            }
            ResultDimension::Absent if selected.extent().is_some() => continue,
            ResultDimension::Absent => 1,
        };
        let dimension = selected.extent().is_some().then_some(kept);
        kept = kept.saturating_add(usize::from(dimension.is_some()));
        axes.push(LabelledAxis { axis, selected, dimension, window });
    }
    axes
}

/// The name of the first dimension of a result if its labels go north: latitudes, of which the first is the least.
pub(crate) async fn northward_rows(
    context: &Arc<Context>,
    (path, model): (&NodePath, &ArrayModel),
    (region, reduction): (&Region, Option<&Reduction>),
) -> Result<Option<String>, CoordinateError> {
    let Some(LabelledAxis { axis, selected, .. }) =
        labelled_axes(region, reduction).into_iter().find(|axis| axis.dimension == Some(0))
    else {
        return Ok(None);
    };
    let (Some(first), Some(last)) = (selected.first(), selected.last()) else { return Ok(None) };
    let located = locate_of(context, path, model, axis).await?;
    if !zarrd_cf::is_northward(&located.attributes) {
        return Ok(None);
    }
    let found = labels_at(context, model, &located, Some(&DimensionSelection::List([first, last].into()))).await?;
    let wanted = match &found.wanted {
        Some(DimensionSelection::List(places)) => places.clone(),
        _ => [first, last].into(),
    };
    let labels = &found.coordinate;
    let value = |place: &u64| labels.data_type().to_f64(labels.element(usize::try_from(*place).ok()?)?);
    let values: Option<Vec<f64>> = wanted.iter().map(value).collect();
    let goes_north = matches!(values.as_deref(), Some([first, last]) if first < last);
    Ok(model.dimension_names.get(axis).cloned().flatten().filter(|_| goes_north))
}

/// The labels of a selection, in windows, and their size before. Labels may be selected many times, so their size is
/// compared with a limit, and reserved, before they are copied.
async fn taken(
    context: &Context,
    found: ReadCoordinate,
    (selected, window): (&DimensionSelection, u64),
    limit: u64,
) -> Result<(Option<Labels>, u64), CoordinateError> {
    let selected = found.wanted.as_ref().unwrap_or(selected);
    let (labels, selection) = (found.coordinate.clone(), selected.clone());
    let steps = selected.len().saturating_mul(STEPS_PER_LABEL);
    let size = context.run(Cost::of(Work::Compute, steps), move || labels.taken_size(&selection)).await?;
    if size > limit {
        return Err(CoordinateError::LabelsTooLarge { size, limit });
    }
    // A vector grows to twice its size, and means are beside the labels.
    let memory = context.reserve_memory(&[], size.saturating_mul(2)).await?;
    let (labels, selection) = (found.coordinate.clone(), selected.clone());
    let steps = steps.saturating_add(size);
    let means = move || means(&labels, &selection, window);
    let means = context.run(Cost::of(Work::Compute, steps), means).await?;
    let labels =
        |(elements, data_type)| Labels { data_type, elements, attributes: found.attributes, _memory: Some(memory) };
    Ok((means.map(labels), size))
}

/// The labels of the results of several functions: their names. `None` with one function.
pub(crate) fn function_labels(reduction: &Reduction) -> Option<LabelledDimension> {
    let name = reduction.function_dimension()?;
    let mut names = VariableBuilder::new(u64::MAX);
    for function in reduction.functions() {
        names.push(function.name().as_bytes()).ok()?;
    }
    let data_type = parse_v3(&"string".into()).ok()?;
    let elements = Elements::Variable(names.finish());
    let labels = Labels { data_type, elements, attributes: Json::default(), _memory: None };
    Some(LabelledDimension { name, dimension: Some(0), labels: Some(labels) })
}

/// The labels of windows: the mean of those of their positions, as far as they are not missing; `None` if they have no
/// mean.
fn means(labels: &Coordinate, selection: &DimensionSelection, window: u64) -> Option<(Elements, DataType)> {
    if window == 1 {
        return Some((labels.take(selection), labels.data_type().clone()));
    }
    if let Some((moments, texts)) = labels.take_moments(selection) {
        let data_type =
            parse_v3(&json!({"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 1}}));
        let (means, _) = means_of_fixed(&moments, &data_type.ok()?, window)?;
        return Some((texts.write(&means).ok()?, labels.data_type().clone()));
    }
    means_of_fixed(&labels.take(selection), labels.data_type(), window)
}

/// The means of windows, some at a time, since their sums take several times the memory of the means.
fn means_of_fixed(labels: &Elements, data_type: &DataType, window: u64) -> Option<(Elements, DataType)> {
    const WINDOWS: u64 = 1 << 12;
    let Elements::Fixed(bytes) = labels else { return None };
    let size = data_type.fixed_size()?.max(1) as u64;
    let part = usize::try_from(window.saturating_mul(WINDOWS).saturating_mul(size)).unwrap_or(usize::MAX);
    let mut rest = bytes.clone();
    let (first, of_means) = means_of_part(rest.split_to(part.min(rest.len())), data_type, window)?;
    let parts = rest.len() / part.max(1) + 2;
    let mut means = BytesMut::with_capacity(first.len().saturating_mul(parts));
    means.extend_from_slice(&first);
    while !rest.is_empty() {
        let (next, _) = means_of_part(rest.split_to(part.min(rest.len())), data_type, window)?;
        means.extend_from_slice(&next);
    }
    Some((Elements::Fixed(means.freeze()), of_means))
}

fn means_of_part(labels: Bytes, data_type: &DataType, window: u64) -> Option<(Bytes, DataType)> {
    let count = (labels.len() / data_type.fixed_size()?.max(1)) as u64;
    let request = label_means(window, Edge::Partial);
    let input = Input { data_type: data_type.clone(), extents: vec![Some(count)], names: vec![None] };
    let reduction = Reduction::new(&request, &input, None).ok()?;
    let grid = Arc::new(GroupGrid::new(&reduction.windows())?);
    let mut partial = reduction.partial(grid.clone()).ok()?;
    let positions = AxisPositions::Strided { first: 0, step: 1, len: count, out: 0 };
    partial.add(&[count], &[positions], &Elements::Fixed(labels)).ok()?;
    let Elements::Fixed(means) = reduction.finish(&partial, grid.groups()).ok()? else { return None };
    Some((means, reduction.data_type().clone()))
}

/// The reduction of a coordinate to the labels of windows: as with xarray, the mean of those that are not missing.
pub fn label_means(window: u64, edge: Edge) -> ReductionRequest {
    ReductionRequest {
        functions: vec![Function { operation: Operation::Mean, missing: Missing::Skip }],
        axes: None,
        windows: vec![("0".to_owned(), window)],
        edge,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof: 0,
    }
}

/// True if coordinates are still those that were used, as far as their versions are known.
pub(crate) async fn are_current(
    context: &Arc<Context>,
    coordinates: &[CoordinateVersion],
) -> Result<bool, CoordinateError> {
    for coordinate in coordinates {
        let is_current = match coordinate.of_image() {
            Some((path, dialect, name)) => {
                image::fingerprint(context, (path, dialect), name).await? == coordinate.fingerprint()
            }
            None => coordinate.is_current(context).await?,
        };
        if !is_current {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_made_in_parts_are_those_of_all_windows() {
        let float = parse_v3(&"float64".into()).unwrap();
        for (count, window) in [(0_u32, 3), (1, 3), (3 << 12, 3), ((3 << 12) + 2, 3), (20_001, 2), (5, u64::MAX)] {
            let labels: Vec<f64> = (0..count).map(f64::from).collect();
            let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
            let (means, data_type) = means_of_fixed(&Elements::Fixed(bytes.into()), &float, window).unwrap();
            let mean = |window: &[f64]| window.iter().sum::<f64>() / window.len() as f64;
            let windows = labels.chunks(usize::try_from(window).unwrap());
            let expected: Vec<u8> = windows.flat_map(|window| mean(window).to_le_bytes()).collect();
            assert_eq!((means, data_type), (Elements::Fixed(expected.into()), float.clone()), "{count} by {window}");
        }
    }
}
