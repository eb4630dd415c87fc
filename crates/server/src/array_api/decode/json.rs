//! JSON: nested lists in the shape of the selection, or one value for all of it.

use array::ElementSource;
use bytes::BytesMut;
use wire::elements::json::{Full, JsonError, Parsed, parse};

use super::{
    Arrived, Bounds, IncomingError, Wanted,
    buffered::{SMALL, Whole, made},
    here,
    variable::Collector,
};
use crate::request_body::ElementsBody;

/// What an element of variable length takes beside its bytes.
const NOMINAL: u64 = 16;

pub(super) async fn arrive(bounds: &Bounds, body: ElementsBody, wanted: Wanted) -> Result<Arrived, IncomingError> {
    let (limit, size) = (bounds.text, wanted.data_type.fixed_size().map_or(NOMINAL, |size| size as u64));
    // An element has a character and a comma, or is alone; a vector that grows takes as much again.
    let made_of = move |text: u64| (text / 2).saturating_add(1).saturating_mul(size).min(limit).saturating_mul(2);
    let needed = |text: u64| text.saturating_mul(2).saturating_add(made_of(text));
    let Whole { bytes, memory } = bounds.whole(BytesMut::new(), body.stream, body.size, needed).await?;
    let len = bytes.len() as u64;
    let work = if memory.is_some() { len.max(SMALL + 1) } else { len };
    let (elements, count) = made(work, move || parsed(&bytes, &wanted, limit)).await?;
    Ok(Arrived { elements, count, memory })
}

fn parsed(text: &[u8], wanted: &Wanted, limit: u64) -> Result<(ElementSource, Option<u64>), IncomingError> {
    let (data_type, extents) = (&wanted.data_type, &wanted.extents);
    if data_type.fixed_size().is_some() {
        let mut elements = Vec::new();
        let mut take = |element: &[u8]| match (elements.len() as u64).saturating_add(element.len() as u64) {
            len if len <= limit => {
                elements.extend_from_slice(element);
                Ok(())
            }
            _ => Err(Full),
        };
        let parsed = parse(text, data_type, extents, &mut take).map_err(|error| too_large(error, limit))?;
        return Ok(match parsed {
            Parsed::Scalar(element) => scalar(element, wanted),
            Parsed::Nested { shape } => (ElementSource::Fixed(here(elements)), wanted.count(&shape)),
        });
    }
    let mut elements = Collector::new(data_type, limit);
    let mut take = |element: &[u8]| elements.push(element, &[]).map_err(|_| Full);
    let parsed = parse(text, data_type, extents, &mut take).map_err(|error| too_large(error, limit))?;
    Ok(match parsed {
        Parsed::Scalar(element) => scalar(element, wanted),
        Parsed::Nested { shape } => (ElementSource::Variable(elements.finish()), wanted.count(&shape)),
    })
}

/// One element for all of the selection; appended, it is one step.
fn scalar(element: Vec<u8>, wanted: &Wanted) -> (ElementSource, Option<u64>) {
    (ElementSource::Scalar(element), wanted.extents.is_open().then_some(1))
}

fn too_large(error: JsonError, limit: u64) -> IncomingError {
    match error {
        JsonError::Full(Full) => IncomingError::TooLarge { limit },
        other => other.into(),
    }
}
