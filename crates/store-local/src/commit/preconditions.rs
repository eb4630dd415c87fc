//! Checking the preconditions of a commit.

use zarrd_store::{
    ChangeOutcome, Intent, IntentError, IntentId, Key, MAX_INTENTS, Prefix, PutResult, StoreError, Version,
};

use super::{Action, KeyCondition, PlainChange};
use crate::{gc::ReplacedFile, record::Record};

/// The state of a key that preconditions refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyState {
    /// The number of the change that set the key; `None` if its record is damaged.
    number: Option<u64>,
    file: Option<ReplacedFile>,
}

/// The state that a commit is checked against.
pub(crate) trait State {
    fn current(&self, key: &Key) -> Result<Option<KeyState>, StoreError>;

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError>;

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError>;

    /// All intents.
    fn intents(&self) -> Result<Vec<Intent>, StoreError>;
}

impl KeyState {
    pub(crate) fn of(record: &Record) -> Self {
        let file = record.file().map(|file| ReplacedFile { id: file.id, size: file.size });
        Self { number: Some(record.commit), file }
    }

    /// The state of a key whose record is damaged. A value file of it becomes an orphan when it is replaced.
    pub(crate) const DAMAGED: Self = Self { number: None, file: None };

    pub(super) fn file(&self) -> Option<ReplacedFile> {
        self.file
    }
}

/// Checks all preconditions. Returns the current state of each change's key, in the order of the changes; `None` for
/// keys without a value, prefixes and intents.
pub(crate) fn check_changes(
    changes: &[PlainChange],
    state: &impl State,
    store_id: u64,
) -> Result<Vec<Option<KeyState>>, StoreError> {
    let mut checked = Vec::with_capacity(changes.len());
    for change in changes {
        checked.push(check_change(change, state, store_id)?);
    }
    check_intent_limit(changes, state)?;
    Ok(checked)
}

/// Checks all preconditions.
pub(crate) fn check_preconditions(
    changes: &[PlainChange],
    state: &impl State,
    store_id: u64,
) -> Result<(), StoreError> {
    changes.iter().try_for_each(|change| check_change(change, state, store_id).map(drop))?;
    check_intent_limit(changes, state)
}

/// Fails if the store would have more than [`MAX_INTENTS`] intents.
pub(super) fn check_intent_limit(changes: &[PlainChange], state: &impl State) -> Result<(), StoreError> {
    let count = |wanted: fn(&PlainChange) -> bool| changes.iter().filter(|change| wanted(change)).count();
    let added = count(|change| matches!(change, PlainChange::Intent { record: Some(_), .. }));
    if added == 0 {
        return Ok(());
    }
    let removed = count(|change| matches!(change, PlainChange::Intent { record: None, .. }));
    if state.intents()?.len().saturating_add(added) > MAX_INTENTS.saturating_add(removed) {
        return Err(IntentError::TooMany { limit: MAX_INTENTS }.into());
    }
    Ok(())
}

pub(super) fn check_change(
    change: &PlainChange,
    state: &impl State,
    store_id: u64,
) -> Result<Option<KeyState>, StoreError> {
    match change {
        PlainChange::Key { key, condition, action } => {
            if let Action::Set(value, _) = action {
                value.check()?;
            }
            let current = match state.current(key) {
                // What does not depend on its version replaces it.
                Err(StoreError::Corrupt { .. }) if *condition == KeyCondition::None => Some(KeyState::DAMAGED),
                current => current?,
            };
            let version = current.and_then(|current| current.number).map(|number| version(store_id, number));
            if !condition.is_met_by(version) {
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
        PlainChange::CheckIntent(id) => match state.has_intent(*id)? {
            true => Ok(None),
            false => Err(IntentError::NotFound { id: *id }.into()),
        },
        PlainChange::CheckNoIntent(filter) => {
            match state.intents()?.into_iter().find(|intent| filter.matches(&intent.record)) {
                Some(Intent { id, .. }) => Err(IntentError::Excludes { id }.into()),
                None => Ok(None),
            }
        }
    }
}

/// The outcome of the change with this number.
pub(super) fn outcome(change: &PlainChange, current: Option<KeyState>, number: u64, store_id: u64) -> ChangeOutcome {
    match change {
        PlainChange::Key { action: Action::Set(..) | Action::Put(_) | Action::Written, .. } => {
            ChangeOutcome::Set(PutResult { version: version(store_id, number), replaced: current.is_some() })
        }
        PlainChange::Key { action: Action::Erase, .. } => ChangeOutcome::Erased { existed: current.is_some() },
        PlainChange::Key { action: Action::Check, .. } | PlainChange::CheckEmpty(_) => ChangeOutcome::Checked,
        PlainChange::CheckIntent(_) | PlainChange::CheckNoIntent(_) => ChangeOutcome::Checked,
        PlainChange::ErasePrefix(_) => ChangeOutcome::PrefixErased,
        PlainChange::Intent { record: Some(_), .. } => ChangeOutcome::IntentAdded,
        PlainChange::Intent { record: None, .. } => ChangeOutcome::IntentRemoved,
    }
}

/// The version that the change with this number assigns.
fn version(store_id: u64, number: u64) -> Version {
    Version::from_u128((u128::from(store_id) << 64) | u128::from(number))
}
