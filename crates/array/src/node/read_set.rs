//! The versions of documents that a decision was based on.

use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{Change, ChangeOutcome, Key, Precondition, Snapshot, StoreError, Version};

/// The keys and versions of every document that was read, or found missing (`None`), to resolve a node.
///
/// As long as a snapshot has the same versions, the resolved node is current.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadSet {
    versions: Vec<(Key, Option<Version>)>,
    bytes: u64,
}

/// The keys and versions of the documents that a node itself has; `None` for one that is missing, such as the `.zattrs`
/// of many nodes of v2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeVersions(pub(crate) Vec<(Key, Option<Version>)>);

impl ReadSet {
    /// Records that a document of `size` bytes was read, or that none was there. The first record of a key counts.
    pub(crate) fn record(&mut self, key: &Key, document: Option<(Version, u64)>) {
        if !self.keys().any(|recorded| recorded == key) {
            self.versions.push((key.clone(), document.map(|(version, _)| version)));
            self.bytes = self.bytes.saturating_add(document.map_or(0, |(_, size)| size));
        }
    }

    /// Records all that another read set has.
    pub(crate) fn extend(&mut self, other: Self) {
        for (key, version) in other.versions {
            if !self.keys().any(|recorded| *recorded == key) {
                self.versions.push((key, version));
            }
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// The keys, each with its version.
    pub(crate) fn versions(&self) -> &[(Key, Option<Version>)] {
        &self.versions
    }

    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.versions.iter().map(|(key, _)| key)
    }

    /// The version of one document; `None` if it was not read.
    pub(crate) fn version_of(&self, key: &Key) -> Option<Option<Version>> {
        self.versions.iter().find(|(recorded, _)| recorded == key).map(|(_, version)| *version)
    }

    /// The versions of some documents that were read.
    pub(crate) fn versions_of(&self, keys: &[Key]) -> NodeVersions {
        NodeVersions(keys.iter().map(|key| (key.clone(), self.version_of(key).flatten())).collect())
    }

    /// The size of all documents in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if a snapshot has the same version of every document.
    pub(crate) async fn is_current(&self, snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
        snapshot.stat_many(self.keys()).await?;
        for (key, version) in &self.versions {
            if snapshot.meta(key).await?.map(|info| info.version) != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Preconditions that make a commit fail if any of the documents changed.
    pub(crate) fn preconditions(&self) -> Vec<Change> {
        let check = |(key, version): &(Key, Option<Version>)| Change::Check {
            key: key.clone(),
            precondition: Precondition::unchanged(*version),
        };
        self.versions.iter().map(check).collect()
    }

    /// A hash that differs whenever one of the versions does.
    pub(crate) fn hash(&self) -> u128 {
        hash_versions(&self.versions)
    }
}

impl NodeVersions {
    /// The version of the node: another one whenever one of its documents changes.
    pub(crate) fn version(&self) -> Version {
        Version::from_u128(hash_versions(&self.0))
    }

    /// The keys of the documents.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Replaces the versions by those that a commit gave to the documents, given the outcomes of their changes in order.
    pub(crate) fn advance<'a>(&mut self, outcomes: impl Iterator<Item = Option<&'a ChangeOutcome>>) {
        for ((_, version), outcome) in self.0.iter_mut().zip(outcomes) {
            match outcome {
                Some(ChangeOutcome::Set(written)) => *version = Some(written.version),
                Some(ChangeOutcome::Erased { .. }) => *version = None,
                Some(
                    ChangeOutcome::Checked
                    | ChangeOutcome::PrefixErased
                    | ChangeOutcome::IntentAdded
                    | ChangeOutcome::IntentRemoved,
                )
                | None => {}
            }
        }
    }
}

fn hash_versions(versions: &[(Key, Option<Version>)]) -> u128 {
    let mut hash = Xxh3::new();
    for (key, version) in versions {
        hash.update(key.as_bytes());
        hash.update(&[0, u8::from(version.is_some())]);
        hash.update(&version.map_or(0, Version::as_u128).to_le_bytes());
    }
    hash.digest128()
}
