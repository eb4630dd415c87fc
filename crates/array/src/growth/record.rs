//! The record in a claim's key.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use zarrd_store::{Key, Precondition, RunId, StoreError, Version, WriteableStore, not_before};

use crate::{context::Context, node::resolved::ResolvedArray};

/// The size of a record up to which it is read, in bytes.
const MAX_SIZE: u64 = 64 << 10;

/// The content of a claim's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The id of the change that holds the claim.
    holder: String,
    /// The number of its renewals, by which equal records differ.
    renewals: u64,
    /// The shape of the array from which the change starts.
    shape: Vec<u64>,
    /// The version of its documents.
    version: String,
    /// True once the change is over, so that the claim may be swapped at once.
    is_free: bool,
}

/// A claim that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) version: Version,
    /// The time of its last renewal, by the clock of the store.
    pub(super) modified: SystemTime,
    /// Its record; `None` if it cannot be read, so that the claim is held until it expires.
    pub(super) record: Option<Record>,
}

impl Record {
    /// The record of a new change of an array.
    pub(super) fn new(resolved: &ResolvedArray) -> Self {
        Self::of_creation().renewed(Some(resolved))
    }

    /// The record of a creation, which starts from no array.
    pub(super) fn of_creation() -> Self {
        let holder = format!("{}{}", RunId::random(), RunId::random());
        Self { holder, renewals: 0, shape: Vec::new(), version: String::new(), is_free: false }
    }

    /// The same record once more, of a change that starts from an array.
    pub(super) fn renewed(&self, start: Option<&ResolvedArray>) -> Self {
        let mut record = Self { renewals: self.renewals.saturating_add(1), ..self.clone() };
        if let Some(start) = start {
            record.shape.clone_from(&start.array.model().shape);
            record.version = start.version().to_string();
        }
        record
    }

    /// The record of a claim that is free.
    pub(super) fn freed(&self) -> Self {
        Self { is_free: true, ..self.renewed(None) }
    }

    /// True if both are of one change.
    pub(super) fn has_holder_of(&self, other: &Self) -> bool {
        self.holder == other.holder
    }

    /// True if the change is over.
    pub(super) fn is_free(&self) -> bool {
        self.is_free
    }

    /// Sets the record; returns its version.
    pub(super) async fn set(
        &self,
        context: &Context,
        key: &Key,
        precondition: Precondition,
    ) -> Result<Version, StoreError> {
        let text = serde_json::to_vec(self)
            .map_err(|error| StoreError::backend(zarrd_store::BackendErrorKind::Internal, error))?;
        Ok(context.writes()?.set(key, text.into(), precondition).await?.version)
    }
}

impl Found {
    /// Reads a claim as it is now.
    pub(super) async fn read(context: &Context, key: &Key) -> Result<Option<Self>, StoreError> {
        let now = Some(Instant::now());
        not_before(now, async {
            let Some(found) = context.store.get(key, None).await? else { return Ok(None) };
            let (version, modified) = (found.meta.version, found.meta.modified);
            let record = match found.meta.size <= MAX_SIZE {
                true => serde_json::from_slice(&found.bytes().await?).ok(),
                false => None,
            };
            Ok(Some(Self { version, modified, record }))
        })
        .await
    }

    /// True if the claim is of the change with this record.
    pub(super) fn is_of(&self, record: &Record) -> bool {
        self.record.as_ref().is_some_and(|found| found.has_holder_of(record))
    }

    /// True if no change holds the claim.
    pub(super) fn is_free(&self) -> bool {
        self.record.as_ref().is_some_and(Record::is_free)
    }
}
