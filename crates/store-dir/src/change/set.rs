//! Setting a value.

use std::sync::Arc;

use zarrd_store::{Key, Payload, Precondition, PutResult, StoreError};

use super::{
    entry::settled,
    receive::{check_settable, receive},
    received::received,
};
use crate::inner::Inner;

/// Sets a value.
pub(crate) async fn set(
    inner: &Arc<Inner>,
    key: &Key,
    payload: Payload,
    precondition: Precondition,
) -> Result<PutResult, StoreError> {
    check_settable(inner, key)?;
    if let Some(received) = received(inner, key, &payload) {
        return received.set(precondition).await;
    }
    let received = receive(inner, key, payload).await?;
    let settled = settled(inner, key, &precondition).await?;
    let (key, shared) = (key.clone(), Arc::clone(inner));
    let set = move |_: &Inner| {
        let mut spool = received.into_spool(&shared, &key)?;
        let result = spool.finish(&precondition, settled);
        spool.discard();
        result
    };
    inner.run(set).await
}
