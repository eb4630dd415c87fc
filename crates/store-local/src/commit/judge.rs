//! Judging the preconditions of a commit.

use store::{ChangeOutcome, IntentError, IntentId, Key, MAX_INTENTS, Prefix, PutResult, StoreError, Version};

use super::{Action, PlainChange};
use crate::{gc::ReplacedFile, record::Record};

/// The state of a key, as far as commits are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    /// The number of the change that set it.
    number: u64,
    file: Option<ReplacedFile>,
}

/// The state that a commit is judged against.
pub(crate) trait State {
    fn current(&self, key: &Key) -> Result<Option<Current>, StoreError>;

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError>;

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError>;

    /// The number of intents.
    fn intents(&self) -> Result<usize, StoreError>;
}

impl Current {
    pub(crate) fn of(record: &Record) -> Self {
        let file = record.file().map(|file| ReplacedFile { id: file.id, size: file.size });
        Self { number: record.commit, file }
    }

    pub(super) fn file(&self) -> Option<ReplacedFile> {
        self.file
    }
}

/// Judges all preconditions; what each changed key has, in the order of the changes, and `None` for those of prefixes and intents.
pub(crate) fn judge(
    changes: &[PlainChange],
    state: &impl State,
    store_id: u64,
) -> Result<Vec<Option<Current>>, StoreError> {
    let judged = changes.iter().map(|change| judge_change(change, state, store_id)).collect::<Result<_, _>>()?;
    judge_number_of_intents(changes, state)?;
    Ok(judged)
}

/// Fails if the changes would leave more intents than there may be.
pub(super) fn judge_number_of_intents(changes: &[PlainChange], state: &impl State) -> Result<(), StoreError> {
    let count = |wanted: fn(&PlainChange) -> bool| changes.iter().filter(|change| wanted(change)).count();
    let added = count(|change| matches!(change, PlainChange::Intent { record: Some(_), .. }));
    if added == 0 {
        return Ok(());
    }
    let settled = count(|change| matches!(change, PlainChange::Intent { record: None, .. }));
    if state.intents()?.saturating_add(added) > MAX_INTENTS.saturating_add(settled) {
        return Err(IntentError::TooMany { limit: MAX_INTENTS }.into());
    }
    Ok(())
}

pub(super) fn judge_change(
    change: &PlainChange,
    state: &impl State,
    store_id: u64,
) -> Result<Option<Current>, StoreError> {
    match change {
        PlainChange::Key { key, precondition, action } => {
            if let Action::Set(value) = action {
                value.check()?;
            }
            let current = state.current(key)?;
            let version = current.map(|current| version(store_id, current.number));
            if !precondition.is_met_by(version) {
                return Err(StoreError::PreconditionFailed { key: key.clone(), current: version });
            }
            Ok(current)
        }
        PlainChange::ErasePrefix(_) => Ok(None),
        PlainChange::CheckEmpty(prefix) => match state.first_below(prefix)? {
            Some(key) => Err(StoreError::NotEmpty { prefix: prefix.clone(), key }),
            None => Ok(None),
        },
        PlainChange::Intent { id, record } => match (state.has_intent(*id)?, record) {
            (true, Some(_)) => Err(IntentError::AlreadyExists { id: *id }.into()),
            (false, None) => Err(IntentError::NotFound { id: *id }.into()),
            (true, None) | (false, Some(_)) => Ok(None),
        },
    }
}

/// The outcome of a change, given the number that it got.
pub(super) fn outcome(change: &PlainChange, current: Option<Current>, number: u64, store_id: u64) -> ChangeOutcome {
    match change {
        PlainChange::Key { action: Action::Set(_), .. } => {
            ChangeOutcome::Set(PutResult { version: version(store_id, number), replaced: current.is_some() })
        }
        PlainChange::Key { action: Action::Erase, .. } => ChangeOutcome::Erased { existed: current.is_some() },
        PlainChange::Key { action: Action::Check, .. } | PlainChange::CheckEmpty(_) => ChangeOutcome::Checked,
        PlainChange::ErasePrefix(_) => ChangeOutcome::PrefixErased,
        PlainChange::Intent { record: Some(_), .. } => ChangeOutcome::IntentAdded,
        PlainChange::Intent { record: None, .. } => ChangeOutcome::IntentRemoved,
    }
}

/// The version that a change's number gives its key.
fn version(store_id: u64, number: u64) -> Version {
    Version::from_u128((u128::from(store_id) << 64) | u128::from(number))
}
