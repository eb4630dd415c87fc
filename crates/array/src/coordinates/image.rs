//! Coordinates of the levels of images of OME-Zarr, as the transformations of the image say: `translation + index · scale`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use xxhash_rust::xxh3::Xxh3;
use zarrd_cf::Coordinate;
use zarrd_codec::Elements;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    data_type::parse_v3,
    json::Json,
    ome::{Image, Level},
};
use zarrd_store::{Precondition, until_unchanged};

use super::{
    error::CoordinateError,
    find::dimension_of,
    read::{CoordinateVersion, MAX_COORDINATE_SIZE, ReadCoordinate, VersionOf},
};
use crate::{context::Context, error::ArrayError, node::resolved::ResolvedNode, write::commit::WriteTarget};

/// The groups above an array that can have it as a level.
const GROUPS_ABOVE: usize = 2;

/// The work of making a label, in steps.
const STEPS_PER_LABEL: u64 = 16;

/// The size of a label in bytes: a 64-bit float.
const LABEL_SIZE: u64 = 8;

/// A coordinate without an array: the labels of a dimension are `first + index · step`.
#[derive(Clone, Debug, PartialEq)]
struct Linear {
    dimension: usize,
    first: f64,
    step: f64,
    extent: u64,
    unit: Option<String>,
}

/// The image that the attributes of the group at a path describe; `None` for an array, and for other groups.
pub(crate) async fn image_at(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
) -> Result<Option<Image>, ArrayError> {
    match until_unchanged(|| context.resolve_node(path, dialect)).await? {
        Some(ResolvedNode::Group(group)) => Ok(group.model.and_then(|group| Image::of(&group.attributes))),
        Some(ResolvedNode::Array(_)) | None => Ok(None),
    }
}

/// The image above the array at a path, if the caller may read its group, and the level that the array is: an image in
/// whose group it is, or one of which it is a level. Groups whose documents cannot be read describe none.
pub(crate) async fn image_above(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
) -> Result<Option<(Image, Option<Level>)>, ArrayError> {
    for group in path.ancestors().take(GROUPS_ABOVE).filter(|group| context.can_read(group)) {
        let image = match image_at(context, &group, dialect).await {
            Err(ArrayError::Document { .. } | ArrayError::Broken(_)) => None,
            image => image?,
        };
        let Some(image) = image else { continue };
        let own = path.relative_to(&group);
        let level = image.levels.iter().find(|level| Some(level.path.as_str()) == own).cloned();
        if level.is_some() || path.parent() == Some(group) {
            return Ok(Some((image, level)));
        }
    }
    Ok(None)
}

/// The number of the dimension that an image calls by a name, if the array is one of its levels.
pub(super) async fn axis(
    context: &Context,
    (path, model): (&NodePath, &ArrayModel),
    name: &str,
) -> Result<Option<usize>, ArrayError> {
    let found = image_above(context, path, Some(model.dialect)).await?;
    Ok(found.and_then(|(image, level)| {
        level?;
        place_of(&image, model, name)
    }))
}

/// Makes the coordinate of a dimension, given its name or number, of an array that is a level of an image, and returns it
/// with the number; `None` for other arrays, for channels, and without a scale.
pub(super) async fn make(
    context: &Context,
    (path, model): (&NodePath, &ArrayModel),
    name: &str,
) -> Result<Option<(usize, ReadCoordinate)>, CoordinateError> {
    let Some(linear) = linear(context, (path, model), name).await? else { return Ok(None) };
    let fingerprint = linear.fingerprint();
    let size = linear.extent.saturating_mul(LABEL_SIZE);
    let (labels, memory) = match context.coordinates.get(fingerprint) {
        Some(labels) => (labels, None),
        None => {
            let memory = context.reserve_memory(&[], size.saturating_mul(2)).await?;
            let cost = Cost::of(Work::Compute, linear.extent.saturating_mul(STEPS_PER_LABEL));
            let made = linear.clone();
            let Some(labels) = context.run(cost, move || made.labels()).await?.map(Arc::new) else {
                return Ok(None);
            };
            context.coordinates.insert(fingerprint, labels.clone());
            (labels, Some(memory))
        }
    };
    let unit = linear.unit.as_ref();
    let attributes = unit.map_or_else(Json::default, |unit| Json::compact(&json!({"units": unit})));
    let version = CoordinateVersion::new((path, model.dialect), VersionOf::Image(name.to_owned()), Some(fingerprint));
    let (dimension, extent) = (linear.dimension, linear.extent);
    Ok(Some((dimension, ReadCoordinate { coordinate: labels, extent, wanted: None, attributes, version, memory })))
}

/// The fingerprint of the coordinate of a dimension; `None` if there is none.
pub(super) async fn fingerprint(
    context: &Context,
    (path, dialect): (&NodePath, Dialect),
    name: &str,
) -> Result<Option<u128>, ArrayError> {
    let resolved = WriteTarget { path: path.clone(), dialect: Some(dialect), condition: Precondition::none() };
    let resolved = resolved.resolve_current(context).await?;
    Ok(linear(context, (path, resolved.array.model()), name).await?.map(|linear| linear.fingerprint()))
}

async fn linear(
    context: &Context,
    (path, model): (&NodePath, &ArrayModel),
    name: &str,
) -> Result<Option<Linear>, ArrayError> {
    let found = image_above(context, path, Some(model.dialect)).await?;
    Ok(found.and_then(|(image, level)| Linear::new(&image, &level?, model, name)))
}

/// The number of the dimension that an array or its image calls by a name.
fn place_of(image: &Image, model: &ArrayModel, name: &str) -> Option<usize> {
    let of_axis = || image.axes.iter().position(|axis| axis.name == name);
    dimension_of(model, name).or_else(of_axis).filter(|dimension| *dimension < model.shape.len())
}

impl Linear {
    fn new(image: &Image, level: &Level, model: &ArrayModel, name: &str) -> Option<Self> {
        let dimension = place_of(image, model, name)?;
        let step = level.scale.get(dimension).copied().filter(|step| step.is_finite() && *step != 0.0)?;
        let first = level.translation.get(dimension).copied().unwrap_or_default();
        let extent = model.view_shape().get(dimension).copied()?;
        let stored = model.view_offset.get(dimension).copied().unwrap_or_default();
        let first = first + stored as f64 * step;
        let is_bounded = extent <= MAX_COORDINATE_SIZE / LABEL_SIZE && first.is_finite();
        let has_labels = is_bounded && image.channel_dimension() != Some(dimension);
        let unit = image.axes.get(dimension).and_then(|axis| axis.unit.clone());
        has_labels.then_some(Self { dimension, first, step, extent, unit })
    }

    /// A hash that is another one for other labels.
    fn fingerprint(&self) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(b"linear");
        for bits in [self.first.to_bits(), self.step.to_bits(), self.extent] {
            hash.update(&bits.to_le_bytes());
        }
        hash.digest128()
    }

    fn labels(&self) -> Option<Coordinate> {
        let label = |index: u64| self.first + index as f64 * self.step;
        let bytes: Vec<u8> = (0..self.extent).flat_map(|index| label(index).to_le_bytes()).collect();
        let float = parse_v3(&"float64".into()).ok()?;
        Coordinate::new(&Elements::Fixed(Bytes::from(bytes)), &float, None).ok()
    }
}
