//! The JSON of snapshots of a prefix.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use zarrd_store::{Intent, IntentId};

/// A snapshot that was taken: everything below a prefix as of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenSnapshot {
    /// The id, with which values and listings are read: `?snapshot=` on `/store`.
    pub id: String,
    /// The prefix.
    pub prefix: String,
    /// The commit, of which equal texts are the same; they have no order.
    pub commit: String,
    /// The number of keys.
    pub keys: u64,
    /// The time without a use after which it ends, in seconds.
    pub idle_seconds: u64,
    /// The operations that are under way, for callers that may administer everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intents: Option<Vec<SnapshotIntent>>,
}

/// An operation of several commits that was under way, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotIntent {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// Its record, in base64.
    pub record: String,
}

impl SnapshotIntent {
    /// The JSON of an intent.
    pub fn new(intent: &Intent) -> Self {
        let Intent { id, record } = intent;
        Self { id: format!("{:032x}", id.as_u128()), record: BASE64_STANDARD.encode(record) }
    }

    /// The intent; `None` if a member is malformed.
    pub fn parse(&self) -> Option<Intent> {
        let id = u128::from_str_radix(&self.id, 16).ok().map(IntentId::from_u128)?;
        let record = BASE64_STANDARD.decode(&self.record).ok()?;
        Some(Intent { id, record: record.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_are_parsed_as_rendered() {
        let intent = Intent { id: IntentId::from_u128(0xab), record: vec![0, 255, 7].into() };
        let rendered = SnapshotIntent::new(&intent);
        assert_eq!(rendered.id, "000000000000000000000000000000ab");
        assert_eq!(rendered.parse(), Some(intent));
        assert_eq!(SnapshotIntent { record: "?".to_owned(), ..rendered }.parse(), None);
    }
}
