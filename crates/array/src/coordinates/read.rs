//! Reading coordinates.

use std::sync::Arc;

use bytes::BytesMut;
use cf::{Coordinate, Decoding};
use codec::{Elements, VariableBuilder};
use futures::TryStreamExt;
use meta::{
    ArrayModel, Dialect, NodePath,
    json::Json,
    selection::{DimensionSelection, ReadRequest, Region, ResolvedSelection, Selection},
};

use super::error::CoordinateError;
use crate::{
    context::Context,
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
const MAX_COORDINATE_SIZE: u64 = 64 << 20;

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

/// The memory of a coordinate up to which all labels are read even if few are wanted, since it may be cached, in bytes.
const MAX_WHOLE: u64 = 8 << 20;

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
    /// All labels, or those that were wanted and maybe some others.
    pub(super) coordinate: Arc<Coordinate>,
    /// The number of all labels.
    pub(super) extent: u64,
    /// The place of the wanted labels in the coordinate.
    pub(super) wanted: Option<DimensionSelection>,
    pub(super) attributes: Json,
    /// Another one for each version; `None` if the versions of too many chunks were needed.
    pub(super) fingerprint: Option<u128>,
    /// Its memory, unless it is that of the cache.
    pub(super) memory: Option<Permit>,
}

/// Reads, decodes and orders the coordinate at a path, or takes it from the cache. Of a large one only the `wanted` labels
/// are read, if these are few.
pub(super) async fn read(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Dialect),
    wanted: Option<&DimensionSelection>,
) -> Result<ReadCoordinate, CoordinateError> {
    let mut planned = plan(context, (path, dialect), None).await?;
    let (fingerprint, attributes) = (planned.fingerprint(), planned.model().attributes.clone());
    let extent = planned.elements();
    let found =
        |coordinate, wanted, memory| ReadCoordinate { coordinate, extent, wanted, attributes, fingerprint, memory };
    if let Some(coordinate) = fingerprint.and_then(|fingerprint| context.coordinates.get(fingerprint)) {
        return Ok(found(coordinate, wanted.cloned(), None));
    }
    let undecodable = |source| ArrayError::Convention { path: path.clone(), source };
    let decoding = Decoding::of_array(planned.model()).map_err(undecodable)?;
    let per_label = label_memory(planned.model(), decoding.as_ref());
    let mut some = wanted.and_then(|wanted| SomeLabels::of(wanted, &planned, (per_label, decoding.as_ref())));
    if let Some(SomeLabels { read, .. }) = &some {
        match plan(context, (path, dialect), Some(read)).await {
            Ok(part) => planned = part,
            // It may have become shorter.
            Err(_) => some = None,
        }
    }
    let count = planned.elements();
    let memory = planned.reserve_with_extra(count.saturating_mul(per_label)).await?;
    let data_type = planned.model().data_type.clone();
    let elements = collect(planned).await?;
    let order = move || Ok::<_, ArrayError>(Coordinate::new(&elements, &data_type, decoding.as_ref()));
    let steps = count.saturating_mul(STEPS_PER_NUMBER);
    let ordered = context.run_blocking(steps, order).await?;
    let coordinate = Arc::new(ordered.map_err(undecodable)?);
    if let Some(SomeLabels { wanted, .. }) = some {
        return Ok(found(coordinate, Some(wanted), Some(memory)));
    }
    if let Some(fingerprint) = fingerprint {
        context.coordinates.insert(fingerprint, coordinate.clone());
    }
    Ok(found(coordinate, wanted.cloned(), Some(memory)))
}

/// The fingerprint of the coordinate at a path as it is now.
pub(super) async fn current_fingerprint(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Dialect,
) -> Result<Option<u128>, CoordinateError> {
    Ok(plan(context, (path, dialect), None).await?.fingerprint())
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

impl SomeLabels {
    /// The labels that are read instead of all; `None` if they are most, if all take little memory, or if the type of the
    /// labels depends on all of them.
    fn of(
        wanted: &DimensionSelection,
        all: &ArrayRead,
        (per_label, decoding): (u64, Option<&Decoding>),
    ) -> Option<Self> {
        let &[count] = all.shape() else { return None };
        let stored = all.cost().stored.map_or(0, |stored| stored.bytes);
        let memory = count.saturating_mul(per_label).saturating_add(stored);
        let greatest = match wanted {
            DimensionSelection::Index(index) => Some(*index),
            DimensionSelection::Range { start, step, len } => {
                let steps = i64::try_from(len.saturating_sub(1)).ok()?;
                start.checked_add_signed(step.saturating_mul(steps)).map(|end| end.max(*start))
            }
            DimensionSelection::List(indices) => indices.iter().max().copied(),
        };
        let is_small = memory <= MAX_WHOLE || wanted.len() > count / 2;
        if is_small || greatest.is_none_or(|greatest| greatest >= count) || decoding.is_some_and(becomes_text) {
            return None;
        }
        let range = |start, step, len| DimensionSelection::Range { start, step, len };
        Some(match wanted {
            &DimensionSelection::Index(index) => {
                Self { read: range(index, 1, 1), wanted: DimensionSelection::Index(0) }
            }
            DimensionSelection::Range { len, .. } => Self { read: wanted.clone(), wanted: range(0, 1, *len) },
            DimensionSelection::List(indices) => {
                let mut once = indices.to_vec();
                once.sort_unstable();
                once.dedup();
                let place = |index| once.binary_search(index).ok().map(|place| place as u64);
                let places = indices.iter().filter_map(place).collect();
                Self { wanted: DimensionSelection::List(places), read: DimensionSelection::List(once.into()) }
            }
        })
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
