//! Copies of values that are staged for another key.

use zarrd_store::{Key, ReadError, ReadableStore, Staged, Version};

use crate::{app::App, error::ApiError};

/// Stages the value of a key for another one. Returns the version that was read; `None` if the value was erased, or changed
/// while it was read.
pub(crate) async fn stage_copy(app: &App, source: &Key, target: &Key) -> Result<Option<(Version, Staged)>, ApiError> {
    let Some(value) = app.store().get(source, None).await? else { return Ok(None) };
    let version = value.meta.version;
    match app.commits()?.stage(target, value.into_payload()).await {
        Ok(staged) => Ok(Some((version, staged))),
        Err(error) if error.is_changed() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
