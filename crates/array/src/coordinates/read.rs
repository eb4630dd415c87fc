//! Reading coordinates.

use std::sync::Arc;

use bytes::BytesMut;
use cf::{Coordinate, Decoding};
use codec::{Elements, VariableBuilder};
use futures::TryStreamExt;
use meta::{
    ArrayModel, Dialect, NodePath,
    json::Json,
    selection::{ReadRequest, ResolvedSelection, Selection},
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

/// A read of all labels, which are no part of the response.
struct AllLabels;

/// A coordinate as of one version.
#[derive(Debug)]
pub(super) struct ReadCoordinate {
    pub(super) coordinate: Arc<Coordinate>,
    pub(super) attributes: Json,
    /// Another one for each version; `None` if the versions of too many chunks were needed.
    pub(super) fingerprint: Option<u128>,
    /// Its memory, unless it is that of the cache.
    pub(super) memory: Option<Permit>,
}

/// Reads, decodes and orders the coordinate at a path, or takes it from the cache.
pub(super) async fn read(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Dialect,
) -> Result<ReadCoordinate, CoordinateError> {
    let mut planned = plan(context, path, dialect).await?;
    let (fingerprint, attributes) = (planned.fingerprint(), planned.model().attributes.clone());
    if let Some(coordinate) = fingerprint.and_then(|fingerprint| context.coordinates.get(fingerprint)) {
        return Ok(ReadCoordinate { coordinate, attributes, fingerprint, memory: None });
    }
    let undecodable = |source| ArrayError::Convention { path: path.clone(), source };
    let decoding = Decoding::of_array(planned.model()).map_err(undecodable)?;
    let count = planned.elements();
    let per_label = label_memory(planned.model(), decoding.as_ref());
    let memory = planned.reserve_with_extra(count.saturating_mul(per_label)).await?;
    let data_type = planned.model().data_type.clone();
    let elements = collect(planned).await?;
    let order = move || Ok::<_, ArrayError>(Coordinate::new(&elements, &data_type, decoding.as_ref()));
    let steps = count.saturating_mul(STEPS_PER_NUMBER);
    let ordered = context.run_blocking(steps, order).await?;
    let coordinate = Arc::new(ordered.map_err(undecodable)?);
    if let Some(fingerprint) = fingerprint {
        context.coordinates.insert(fingerprint, coordinate.clone());
    }
    Ok(ReadCoordinate { coordinate, attributes, fingerprint, memory: Some(memory) })
}

/// The fingerprint of the coordinate at a path as it is now.
pub(super) async fn current_fingerprint(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Dialect,
) -> Result<Option<u128>, CoordinateError> {
    Ok(plan(context, path, dialect).await?.fingerprint())
}

async fn plan(context: &Arc<Context>, path: &NodePath, dialect: Dialect) -> Result<ArrayRead, ArrayError> {
    let all = ReadRequest::Select(Selection::default());
    plan_read(context, (path, Some(dialect)), &all, &AllLabels).await
}

impl Consumer for AllLabels {
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
