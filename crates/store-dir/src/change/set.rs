//! Setting a value.

use std::sync::Arc;

use zarrd_store::{Key, Payload, Precondition, PutResult, StoreError};

use super::{entry::settled, receive::receive};
use crate::{inner::Inner, names::is_visible};

/// Sets a value.
pub(crate) async fn set(
    inner: &Arc<Inner>,
    key: &Key,
    payload: Payload,
    precondition: Precondition,
) -> Result<PutResult, StoreError> {
    inner.writer()?;
    if !is_visible(key.as_str()) || key.is_hidden() {
        return Err(StoreError::Unsupported { what: "keys that are names of temporary files" });
    }
    let received = receive(inner, key, payload).await?;
    let settled = settled(inner, key, &precondition).await?;
    let (key, shared) = (key.clone(), Arc::clone(inner));
    inner.run(move |_| received.into_spool(&shared, &key)?.finish(&precondition, settled)).await
}
