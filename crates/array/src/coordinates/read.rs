//! Reading coordinates.

use std::sync::Arc;

use bytes::BytesMut;
use futures::TryStreamExt;
use zarrd_cf::{Coordinate, Decoding, is_characters, joined_type};
use zarrd_codec::{Elements, VariableBuilder};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    json::Json,
    selection::{DimensionSelection, ReadRequest, Region, ResolvedSelection, Selection},
};

use super::error::CoordinateError;
use crate::{
    context::Context,
    coordinate_cache::MAX_CACHED,
    error::ArrayError,
    memory::claim::Permit,
    node::array::Array,
    read::{
        array_read::ArrayRead,
        consumer::{Consumer, Consumption, ConsumptionCost, check_size},
        current::plan_read,
    },
};

/// The largest coordinate in bytes of its stored elements.
pub(super) const MAX_COORDINATE_SIZE: u64 = 64 << 20;

/// The memory of a label in addition to its stored and decoded element, in bytes: its place in the order, with an
/// integer that is compared while that is made, and the moment of a time that is a text.
const LABEL_OVERHEAD: u64 = 28;

/// The memory of a label of variable length, decoded or not, in bytes.
const VARIABLE_LABEL: u64 = 96;

/// The memory of a time as text, in bytes.
const TIME_LABEL: u64 = 64;

/// The work of decoding and ordering a label, in steps: of a number, and of a text, which it may become.
const STEPS_PER_NUMBER: u64 = 128;
const STEPS_PER_TEXT: u64 = 512;

/// The indices of a list up to which only their labels are read.
const MAX_LISTED: usize = 1 << 16;

/// The work of finding the place of a listed index, in steps.
const STEPS_PER_PLACE: u64 = 64;

/// A read of labels, which are no part of the response.
struct ReadLabels;

/// Some labels of a coordinate, each of which is read once.
struct SomeLabels {
    read: DimensionSelection,
    /// The wanted labels among those that are read.
    wanted: DimensionSelection,
}

/// A coordinate as of one version.
#[derive(Debug)]
pub(super) struct ReadCoordinate {
    /// The labels that were read.
    pub(super) coordinate: Arc<Coordinate>,
    /// The number of all labels.
    pub(super) extent: u64,
    /// The wanted labels among those that were read.
    pub(super) wanted: Option<DimensionSelection>,
    pub(super) attributes: Json,
    pub(super) version: CoordinateVersion,
    /// Its memory, unless it is that of the cache.
    pub(super) memory: Option<Permit>,
}

/// A coordinate as it was used.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinateVersion {
    /// The path of the coordinate, or of the level of an image that has it.
    path: NodePath,
    dialect: Dialect,
    of: VersionOf,
    /// Another one for each version of them; `None` if the versions of too many chunks were needed.
    fingerprint: Option<u128>,
}

/// The source of a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum VersionOf {
    /// An array, and the labels of it that were read; `None` for all.
    Array(Option<DimensionSelection>),
    /// An image, for a dimension of its level, given its name or number.
    Image(String),
}

impl CoordinateVersion {
    pub(super) fn new((path, dialect): (&NodePath, Dialect), of: VersionOf, fingerprint: Option<u128>) -> Self {
        Self { path: path.clone(), dialect, of, fingerprint }
    }

    /// A hash that is another one for each version; `None` if the version is not known.
    pub(super) fn fingerprint(&self) -> Option<u128> {
        self.fingerprint
    }

    /// The level of an image, and the dimension of it, that the coordinate is of; `None` if it is an array.
    pub(super) fn of_image(&self) -> Option<(&NodePath, Dialect, &str)> {
        match &self.of {
            VersionOf::Image(name) => Some((&self.path, self.dialect, name)),
            VersionOf::Array(_) => None,
        }
    }

    /// True if the coordinate, if it is an array, is still this one, as far as that is known.
    pub(super) async fn is_current(&self, context: &Arc<Context>) -> Result<bool, CoordinateError> {
        if self.fingerprint.is_none() {
            return Ok(true);
        }
        let VersionOf::Array(labels) = &self.of else { return Ok(true) };
        match plan(context, (&self.path, self.dialect), labels.as_ref()).await {
            Ok(now) => Ok(now.fingerprint() == self.fingerprint),
            // It has become shorter.
            Err(ArrayError::Selection(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads, decodes and orders the coordinate at a path, or takes it from the cache. Of one that is too large for that
/// only the `wanted` labels are read, if these are few.
pub(super) async fn read(
    context: &Arc<Context>,
    at: (&NodePath, Dialect),
    wanted: Option<&DimensionSelection>,
) -> Result<ReadCoordinate, CoordinateError> {
    let all = plan(context, at, None).await?;
    let cached = all.fingerprint().and_then(|fingerprint| context.coordinates.get(fingerprint));
    let some = match wanted.filter(|wanted| cached.is_none() && are_read_alone(wanted, &all)).cloned() {
        Some(wanted) => {
            let cost = Cost::of(Work::Compute, wanted.len().saturating_mul(STEPS_PER_PLACE));
            Some(context.run(cost, move || SomeLabels::new(wanted)).await?)
        }
        None => None,
    };
    let Some(SomeLabels { read, wanted: places }) = some else {
        return finish(context, at, (all, None), (cached, wanted.cloned())).await;
    };
    // A request that holds memory does not get more as easily.
    drop(all);
    match plan(context, at, Some(&read)).await {
        Ok(part) => finish(context, at, (part, Some(read)), (None, Some(places))).await,
        // It has become shorter.
        Err(ArrayError::Selection(_)) => {
            finish(context, at, (plan(context, at, None).await?, None), (None, wanted.cloned())).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads the planned labels, unless they are cached.
async fn finish(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Dialect),
    (mut planned, labels): (ArrayRead, Option<DimensionSelection>),
    (cached, wanted): (Option<Arc<Coordinate>>, Option<DimensionSelection>),
) -> Result<ReadCoordinate, CoordinateError> {
    let (fingerprint, model) = (planned.fingerprint(), planned.model().clone());
    let extent = model.view_shape().first().copied().unwrap_or(1);
    let are_all = labels.is_none();
    let version = CoordinateVersion::new((path, dialect), VersionOf::Array(labels), fingerprint);
    let found = |coordinate, memory| {
        let attributes = model.attributes.clone();
        ReadCoordinate { coordinate, extent, wanted, attributes, version, memory }
    };
    if let Some(coordinate) = cached {
        return Ok(found(coordinate, None));
    }
    let undecodable = |source| ArrayError::Convention { path: path.clone(), source };
    let decoding = Decoding::of_array(&model).map_err(undecodable)?;
    let count = planned.elements();
    let memory = planned.reserve_with_extra(count.saturating_mul(label_memory(&model, decoding.as_ref()))).await?;
    let data_type = match (is_characters(&model), model.view_shape().get(1)) {
        (true, Some(width)) => joined_type(*width).unwrap_or_else(|| model.data_type.clone()),
        _ => model.data_type.clone(),
    };
    let elements = collect(planned).await?;
    let order = move || Coordinate::new(&elements, &data_type, decoding.as_ref());
    let ordered = context.run(Cost::codec(count.saturating_mul(STEPS_PER_NUMBER)), order).await?;
    let coordinate = Arc::new(ordered.map_err(undecodable)?);
    if let Some(fingerprint) = fingerprint.filter(|_| are_all) {
        context.coordinates.insert(fingerprint, coordinate.clone());
    }
    Ok(found(coordinate, Some(memory)))
}

async fn plan(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Dialect),
    labels: Option<&DimensionSelection>,
) -> Result<ArrayRead, ArrayError> {
    let selection = labels.map_or_else(Selection::default, |labels| {
        let region = Region { dimensions: vec![labels.clone()] };
        region.to_selection()
    });
    plan_read(context, (path, Some(dialect)), &ReadRequest::Select(selection), &ReadLabels).await
}

/// True if wanted labels are read without the others: if they are not most, if all would not be cached, and if the type
/// of the labels does not depend on all of them.
fn are_read_alone(wanted: &DimensionSelection, all: &ArrayRead) -> bool {
    let &[count] = all.shape() else { return false };
    // Attributes that are invalid are an error later.
    let Ok(decoding) = Decoding::of_array(all.model()) else { return false };
    let size = decoding.as_ref().map_or_else(|| all.model().data_type.clone(), Decoding::data_type).fixed_size();
    let stored = all.cost().stored.map_or(0, |stored| stored.bytes);
    // Texts may take less when they are cached; that is not known before they are read.
    let memory = match size {
        Some(size) => count.saturating_mul(size as u64),
        None => count.saturating_mul(label_memory(all.model(), decoding.as_ref())).saturating_add(stored),
    };
    let is_listed = matches!(wanted, DimensionSelection::List(indices) if indices.len() > MAX_LISTED);
    let is_small = memory <= MAX_CACHED || wanted.len() > count / 2;
    !is_small && !is_listed && !decoding.as_ref().is_some_and(becomes_text)
}

impl SomeLabels {
    fn new(wanted: DimensionSelection) -> Self {
        let range = |start, step, len| DimensionSelection::Range { start, step, len };
        match wanted {
            DimensionSelection::Index(index) => Self { read: range(index, 1, 1), wanted: DimensionSelection::Index(0) },
            DimensionSelection::Range { len, .. } => Self { read: wanted, wanted: range(0, 1, len) },
            DimensionSelection::List(indices) => {
                let mut once = indices.to_vec();
                once.sort_unstable();
                once.dedup();
                let place = |index| once.binary_search(index).ok().map(|place| place as u64);
                let places = indices.iter().filter_map(place).collect();
                Self { wanted: DimensionSelection::List(places), read: DimensionSelection::List(once.into()) }
            }
        }
    }
}

impl Consumer for ReadLabels {
    fn plan(&self, array: &Array, selection: ResolvedSelection) -> Result<Consumption, ArrayError> {
        check_size(array, &selection, MAX_COORDINATE_SIZE)?;
        let model = array.model();
        // Attributes that are invalid are an error later.
        let decoding = Decoding::of_array(model).ok().flatten();
        let has_texts = decoding.as_ref().map_or(model.data_type.number().is_none(), becomes_text);
        let work_per_element = if has_texts { STEPS_PER_TEXT } else { STEPS_PER_NUMBER };
        Ok(Consumption { selection, cost: ConsumptionCost::Kept { work_per_element } })
    }
}

/// True if decoded elements are texts, or times that are decoded to texts if one is out of range.
fn becomes_text(decoding: &Decoding) -> bool {
    decoding.text_calendar().is_some() || decoding.data_type().name().starts_with("numpy.datetime64")
}

fn label_memory(model: &ArrayModel, decoding: Option<&Decoding>) -> u64 {
    let size = |fixed: Option<usize>| fixed.map_or(VARIABLE_LABEL, |size| size as u64);
    let stored = size(model.data_type.fixed_size());
    let decoded = decoding.map_or(0, |decoding| match becomes_text(decoding) {
        true => TIME_LABEL,
        false => size(decoding.data_type().fixed_size()),
    });
    // Texts of a fixed size are compared as UTF-8.
    let texts = if model.data_type.number().is_none() { stored.saturating_add(VARIABLE_LABEL) } else { 0 };
    stored.saturating_mul(2).saturating_add(decoded).saturating_add(texts).saturating_add(LABEL_OVERHEAD)
}

/// All elements of a read.
async fn collect(planned: ArrayRead) -> Result<Elements, ArrayError> {
    let capacity = planned.byte_len();
    let stored = planned.cost().stored.map_or(0, |stored| stored.bytes);
    let mut stream = std::pin::pin!(planned.into_stream());
    match capacity.map(usize::try_from) {
        Some(capacity) => {
            let mut bytes = BytesMut::with_capacity(capacity.unwrap_or(0));
            while let Some(elements) = stream.try_next().await? {
                if let Elements::Fixed(part) = elements {
                    bytes.extend_from_slice(&part);
                }
            }
            Ok(Elements::Fixed(bytes.freeze()))
        }
        None => {
            let mut builder = VariableBuilder::new(MAX_COORDINATE_SIZE);
            builder.reserve(stored);
            while let Some(elements) = stream.try_next().await? {
                if let Elements::Variable(part) = elements {
                    for element in part.iter() {
                        let pushed = builder.push(element);
                        pushed.map_err(|_| ArrayError::OverBudget { budget: MAX_COORDINATE_SIZE })?;
                    }
                }
            }
            Ok(Elements::Variable(builder.finish()))
        }
    }
}
