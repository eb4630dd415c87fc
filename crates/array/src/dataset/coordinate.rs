//! Comparing the new labels of a coordinate with those that it has.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_cf::Decoding;
use zarrd_codec::Elements;
use zarrd_meta::{
    ArrayModel, NodePath,
    selection::{DimensionSelection, ReadRequest, Region},
};

use super::{
    continuity::{Continuity, Discontinuity, DiscontinuityKind},
    error::{DatasetError, DiscontinuousLabel},
};
use crate::{
    context::Context,
    error::ArrayError,
    node::resolved::ResolvedArray,
    read::{consumer::ElementLimit, current::plan_read},
    write::{buffered::BufferedElements, error::WriteError, source::ElementSource},
};

/// The number of labels, from the end, that show the order of a coordinate.
const LABELS: u64 = 1024;
/// The most bytes of them.
const MAX_LABELS_SIZE: u64 = 16 << 20;

/// Fails unless the new labels of a coordinate continue those that it has.
pub(super) async fn check(
    context: &Arc<Context>,
    (group, name): (&NodePath, &str),
    resolved: &ResolvedArray,
    new: &BufferedElements,
) -> Result<(), DatasetError> {
    let model = resolved.array.model();
    let existing = last_labels(context, resolved).await?;
    let mut continuity = Continuity::after(&model.data_type, existing.iter().map(Bytes::as_ref));
    if continuity.is_free() {
        return Ok(());
    }
    let discontinuous = |found: Discontinuity| discontinuous((group, name), model, &found);
    let failed = |source| DatasetError::Array { array: name.to_owned(), source: Box::new(source) };
    match new.source(context)? {
        ElementSource::Variable(elements) => elements.iter().try_for_each(|label| continuity.check(label)),
        ElementSource::Scalar(label) => continuity.check(&label),
        ElementSource::Fixed(mut stream) => {
            let size = model.data_type.fixed_size().unwrap_or(0).max(1);
            let mut rest = Vec::new();
            while let Some(piece) = stream.try_next().await.map_err(|error| failed(WriteError::from(error)))? {
                rest.extend_from_slice(&piece);
                let whole = rest.len() - rest.len() % size;
                let checked = rest.get(..whole).unwrap_or_default().chunks_exact(size);
                if let Err(found) = { checked }.try_for_each(|label| continuity.check(label)) {
                    return Err(discontinuous(found));
                }
                rest.drain(..whole);
            }
            Ok(())
        }
    }
    .map_err(discontinuous)
}

/// The last labels of a coordinate.
async fn last_labels(context: &Arc<Context>, resolved: &ResolvedArray) -> Result<Vec<Bytes>, DatasetError> {
    let model = resolved.array.model();
    let extent = model.view_shape().first().copied().unwrap_or(0);
    let start = extent.saturating_sub(LABELS);
    if extent == 0 {
        return Ok(Vec::new());
    }
    let range = DimensionSelection::Range { start, step: 1, len: extent - start };
    let request = ReadRequest::Select(Region { dimensions: vec![range] }.to_selection());
    let at = (resolved.array.path(), Some(model.dialect));
    let planned = match plan_read(context, at, &request, &ElementLimit(MAX_LABELS_SIZE)).await {
        Ok(planned) => planned,
        // It has become shorter, so the append is planned anew.
        Err(ArrayError::Selection(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let size = model.data_type.fixed_size().unwrap_or(0).max(1);
    let mut labels = Vec::new();
    let mut stream = std::pin::pin!(planned.into_stream());
    while let Some(elements) = stream.try_next().await? {
        match elements {
            Elements::Fixed(bytes) => {
                let starts = (0..bytes.len()).step_by(size);
                labels.extend(starts.map(|start| bytes.slice(start..start.saturating_add(size).min(bytes.len()))));
            }
            Elements::Variable(elements) => labels.extend(elements.iter().map(Bytes::copy_from_slice)),
        }
    }
    Ok(labels)
}

fn discontinuous((group, name): (&NodePath, &str), model: &ArrayModel, found: &Discontinuity) -> DatasetError {
    let label = shown(model, &found.label);
    let last = found.last.as_ref().map(|last| shown(model, last));
    let before = last.as_deref().unwrap_or("it");
    let at = found.index;
    let reason = match found.kind {
        DiscontinuityKind::NotGreater => format!("it increases, and the new label {label} at [{at}] follows {before}"),
        DiscontinuityKind::NotLess => format!("it decreases, and the new label {label} at [{at}] follows {before}"),
        DiscontinuityKind::Repeated => format!("it has the new label {label} at [{at}] already"),
        DiscontinuityKind::Missing => format!("the new label at [{at}] is {label}"),
    };
    let (path, name) = (group.clone(), name.to_owned());
    DatasetError::Discontinuous(Box::new(DiscontinuousLabel { path, name, reason, index: at, label, last }))
}

/// A label as a text, decoded by the conventions where that is possible.
fn shown(model: &ArrayModel, label: &[u8]) -> String {
    let stored = || {
        let mut json = Vec::new();
        model.data_type.write_json(label, &mut json);
        String::from_utf8_lossy(&json).into_owned()
    };
    let decoding = Decoding::of_array(model).ok().flatten();
    let decoded = decoding.and_then(|decoding| {
        let elements = decoding.decode(&Elements::Fixed(Bytes::copy_from_slice(label))).ok()?;
        Some(match elements {
            Elements::Fixed(element) => {
                let mut json = Vec::new();
                decoding.data_type().write_json(&element, &mut json);
                String::from_utf8_lossy(&json).into_owned()
            }
            Elements::Variable(texts) => String::from_utf8_lossy(texts.iter().next()?).into_owned(),
        })
    });
    decoded.unwrap_or_else(stored).trim_matches('"').chars().take(64).collect()
}
