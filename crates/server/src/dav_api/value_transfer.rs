//! Copies and moves of a value.

use zarrd_access::Right;
use zarrd_store::{Change, ChangeOutcome, Key, Precondition, ReadableStore, Staged, StoreError, Version};

use super::{
    resource::version_of,
    transfer::{ATTEMPTS, Destination, Kind, Transfer},
};
use crate::{error::ApiError, staged_copy::stage_copy};

impl Transfer {
    /// Copies or moves a value; returns whether something was replaced. `None` if the key has no value.
    pub(super) async fn key(&self, source: &Key, destination: &Destination) -> Result<Option<bool>, ApiError> {
        let mut staged: Option<(Version, Staged)> = None;
        for _ in 0..ATTEMPTS {
            let Some(meta) = self.app.store().head(source).await? else { return Ok(None) };
            let target = self.key_of_value(destination)?;
            let current = version_of(&**self.app.store(), target).await?;
            self.conditions.check(source, Some(&meta), &[(target, current)])?;
            let existing = self.existing(destination, current).await?;
            if staged.as_ref().is_none_or(|(version, _)| *version != meta.version) {
                staged = stage_copy(&self.app, source, target).await?;
            }
            // Of another version the conditions may not hold.
            let Some((version, value)) = staged.as_ref().filter(|(version, _)| *version == meta.version) else {
                continue;
            };
            let mut changes = existing.changes;
            changes.push(Change::Set { staged: value.clone(), precondition: existing.precondition });
            if self.kind == Kind::Move {
                changes.push(Change::Erase { key: source.clone(), precondition: Precondition::at(*version) });
            }
            match self.commit(changes).await {
                Ok(outcomes) => {
                    let replaced = |outcome: &ChangeOutcome| matches!(outcome, ChangeOutcome::Set(put) if put.replaced);
                    return Ok(Some(existing.has_keys_below || outcomes.iter().any(replaced)));
                }
                Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::too_many_conflicts())
    }

    /// The key that a value gets. With a slash at its end a destination stands for the prefix alone, so that the right to
    /// change the key is checked here.
    fn key_of_value<'d>(&self, destination: &'d Destination) -> Result<&'d Key, ApiError> {
        match (&destination.key, &destination.value_key) {
            (Some(key), _) => Ok(key),
            (None, Some(key)) if self.session.principal().may_key(Right::Write, key) => Ok(key),
            (None, Some(key)) => Err(ApiError::forbidden(format!("this requires the right to write {key}"))),
            (None, None) => Err(ApiError::invalid_header("Destination", "the destination is no key")),
        }
    }
}
