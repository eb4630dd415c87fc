//! Writing values.

mod erase;
mod multipart;
mod payload;
mod probe;
mod put;
mod writer;

use std::sync::Arc;

use zarrd_store::{Conditions, Key, Payload, Precondition, PutResult, StoreError, VersionMatch};

pub(crate) use self::{
    erase::{erase, erase_prefix},
    probe::Probed,
    writer::{Declared, PROBE, Writer},
};
use self::{
    payload::{Body, Incoming},
    put::{Expected, Found, Put, Write, WriteId},
};
use crate::{inner::Inner, location::Service, validators::Pin};

/// The number of times that a write is planned anew after another client changed the object.
const MAX_ROUNDS: usize = 16;

/// Sets the value of a key.
pub(crate) async fn set(
    inner: &Arc<Inner>,
    conditions: Conditions,
    key: &Key,
    payload: Payload,
    precondition: Precondition,
) -> Result<PutResult, StoreError> {
    let is_conditional = precondition != Precondition::none();
    if is_conditional && conditions != Conditions::Atomic {
        return Err(StoreError::Unsupported { what: "conditions of changes" });
    }
    let path = inner.path(key).ok_or(StoreError::Unsupported { what: "keys of this length" })?;
    let mut incoming = Incoming::new(payload)?;
    let id = WriteId::random();
    match incoming.gather(inner, is_conditional).await? {
        Body::Whole(payload, _permit) => {
            let write = Write { inner, key, path: &path, payload, id };
            match conditions {
                Conditions::Atomic => compare_and_swap(&write, &precondition).await,
                _ => overwrite(&write).await,
            }
        }
        Body::Begun(first) => multipart::upload(inner, key, &path, first, incoming, id).await,
    }
}

/// Makes a write on condition of the state that was found, which has to meet the precondition.
///
/// A write without a precondition is conditioned as well: if its answer is lost and it is sent again, the first one may
/// arrive later, and must not replace what other clients wrote since.
async fn compare_and_swap(write: &Write<'_>, precondition: &Precondition) -> Result<PutResult, StoreError> {
    let Write { inner, key, .. } = *write;
    let mut expected = match known(inner, precondition) {
        Some(expected) => expected,
        None => Expected::of(head(write).await?.as_ref()),
    };
    for _ in 0..MAX_ROUNDS {
        let current = expected.version();
        precondition.check(key, current)?;
        if let Put::Done(meta) = write.settle(&expected).await? {
            return Ok(PutResult { version: meta.version, replaced: current.is_some() });
        }
        let found = head(write).await?;
        if let Some(found) = found.as_ref().filter(|found| found.was_made_by(&write.id)) {
            // The request was duplicated on its way, and the answer is that to the second one.
            return Ok(PutResult { version: found.meta.version, replaced: current.is_some() });
        }
        expected = Expected::of(found.as_ref());
    }
    match *precondition == Precondition::none() {
        true => overwrite(write).await,
        false => Err(StoreError::Busy { retry_after: None }),
    }
}

/// Makes a write without a condition, so that the last one wins.
async fn overwrite(write: &Write<'_>) -> Result<PutResult, StoreError> {
    let before = head(write).await?;
    match write.settle(&Expected::Any).await? {
        Put::Done(meta) => Ok(PutResult { version: meta.version, replaced: before.is_some() }),
        Put::Conflict => Err(StoreError::Busy { retry_after: None }),
    }
}

/// The state of the object that a precondition names, if it is known without a request.
fn known(inner: &Inner, precondition: &Precondition) -> Option<Expected> {
    if *precondition == Precondition::absent() {
        return Some(Expected::Absent);
    }
    let Precondition { if_match: Some(VersionMatch::OneOf(versions)), if_none_match: None } = precondition else {
        return None;
    };
    let [version] = versions.as_slice() else { return None };
    // Google's conditions are on generations, which reads do not have to return.
    match inner.validators.pin(*version).filter(|_| inner.location.service != Service::Google)? {
        Pin::ETag(etag) => {
            Some(Expected::At(*version, object_store::UpdateVersion { e_tag: Some(etag.to_string()), version: None }))
        }
        Pin::Version(_) => None,
    }
}

async fn head(write: &Write<'_>) -> Result<Option<Found>, StoreError> {
    Found::head(write.inner, write.key, write.path).await.map_err(|failure| write.error(failure))
}
