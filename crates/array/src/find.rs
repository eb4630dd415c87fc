//! Finding the node at a path, in whatever dialect it has.
//!
//! A `v2` or `v3` node is found from its own path. A node of a `draft` hierarchy is found from the hierarchy's root: the nearest ancestor, or the path
//! itself, whose `zarr.json` has a URI for its format. Where a path answers in several dialects, v3 comes before v2 before the draft.
//!
//! All documents that say what is at a path are looked at as of one commit. Their versions are kept with what was found, so that as long as
//! they are the same nothing is read or parsed again.

use std::sync::Arc;

use bytes::Bytes;
use meta::{
    Dialect, NodePath,
    documents::{DocumentError, GroupModel, draft, object, v2, v3},
    json::Json,
    limits::MAX_DOCUMENT,
};
use quick_cache::{Weighter, sync::Cache};
use store::{Change, Key, Outcome, Precondition, Prefix, Snapshot, StoreError, TransactionalStore, Version};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    ArrayError,
    array::Array,
    broken::{Broken, read_v3},
    share::Permit,
    shared::Shared,
};

/// How many bytes of memory the nodes may take that are remembered.
const REMEMBERED: u64 = 64 << 20;

/// What a node takes beside its documents.
const PER_NODE: u64 = 4 << 10;

/// How many times as much memory as its text a document that was parsed takes, roughly.
const PARSED: u64 = 8;

/// Documents up to this length are parsed where the request is, without a reservation of memory.
const LIGHT: u64 = 64 << 10;

/// The arrays that were found.
#[derive(Debug)]
pub(crate) struct Found {
    arrays: Cache<(NodePath, Option<Dialect>), Arc<Sighting>, ByMemory>,
}

#[derive(Clone, Debug)]
struct ByMemory;

/// An array, and the documents that say that it is there.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) array: Array,
    pub(crate) documents: Documents,
    /// The documents that the array itself has.
    pub(crate) own: Own,
    /// The hierarchy of the draft that it is in.
    pub(crate) root: Option<Arc<DraftRoot>>,
    /// The reason why its attributes are not known, where they are not. Its elements do not need them.
    pub(crate) unread: Option<Broken>,
}

/// A group, and the documents that say that it is there.
#[derive(Clone, Debug)]
pub(crate) struct GroupSighting {
    /// What it is; `None` where it is a group of the draft because there are nodes below it.
    pub(crate) model: Option<GroupModel>,
    pub(crate) dialect: Dialect,
    pub(crate) documents: Documents,
    /// The documents that the group itself has.
    pub(crate) own: Own,
    /// The hierarchy of the draft that it is in.
    pub(crate) root: Option<Arc<DraftRoot>>,
}

/// What is at a path because its documents say so.
#[derive(Clone, Debug)]
pub(crate) enum Sight {
    Array(Arc<Sighting>),
    Group(Box<GroupSighting>),
}

/// A hierarchy of the draft.
#[derive(Clone, Debug)]
pub(crate) struct DraftRoot {
    /// Where it is.
    pub(crate) path: NodePath,
    /// What all its keys begin with.
    pub(crate) prefix: Prefix,
    pub(crate) entry: draft::EntryPoint,
}

/// The documents of one node, with their versions; `None` for a part of them that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own(pub(crate) Vec<(Key, Option<Version>)>);

/// Keys of documents, with the versions that they had; `None` for those that were not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Documents {
    versions: Vec<(Key, Option<Version>)>,
    bytes: u64,
}

impl Default for Found {
    fn default() -> Self {
        Self { arrays: Cache::with_weighter(1024, REMEMBERED, ByMemory) }
    }
}

impl Weighter<(NodePath, Option<Dialect>), Arc<Sighting>> for ByMemory {
    fn weight(&self, (path, _): &(NodePath, Option<Dialect>), sighting: &Arc<Sighting>) -> u64 {
        let fill = sighting.array.model().fill_value.len() as u64;
        let documents = sighting.documents.bytes.saturating_mul(PARSED);
        documents.saturating_add(fill.saturating_mul(2)).saturating_add(PER_NODE + path.relative().len() as u64)
    }
}

impl Sighting {
    /// Another one whenever the array's own documents are others. It does not change with those that were only looked at.
    pub(crate) fn version(&self) -> Version {
        self.own.version()
    }

    /// What has to hold in a commit for the sighting to be true still: one check for each document.
    pub(crate) fn checks(&self) -> Vec<Change> {
        let check = |(key, version): &(Key, Option<Version>)| Change::Check {
            key: key.clone(),
            precondition: Precondition::unchanged(*version),
        };
        self.documents.versions.iter().map(check).collect()
    }
}

impl Own {
    /// Another version whenever one of the documents is another.
    pub(crate) fn version(&self) -> Version {
        Version::from_u128(stamp(&self.0))
    }

    /// Takes over what a commit did, given the keys of its changes.
    pub(crate) fn committed(&mut self, keys: &[Key], outcomes: &[Outcome]) {
        for (key, version) in &mut self.0 {
            match keys.iter().zip(outcomes).find(|(changed, _)| *changed == key) {
                Some((_, Outcome::Set(written))) => *version = Some(written.version),
                Some((_, Outcome::Erased { .. })) => *version = None,
                Some((_, Outcome::Checked | Outcome::PrefixErased | Outcome::Intended | Outcome::Settled)) | None => {}
            }
        }
    }
}

impl Documents {
    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.versions.iter().map(|(key, _)| key)
    }

    /// Whether all of them are in a snapshot as they were.
    pub(crate) fn are_in(&self, snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
        for (key, version) in &self.versions {
            if snapshot.head(key)?.map(|info| info.version) != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The keys, each with the version that it had.
    pub(crate) fn versions(&self) -> &[(Key, Option<Version>)] {
        &self.versions
    }

    /// The version that a document had; `None` for one that was not looked at.
    pub(crate) fn version_of(&self, key: &Key) -> Option<Option<Version>> {
        self.versions.iter().find(|(known, _)| known == key).map(|(_, version)| *version)
    }
}

/// Another number for other versions.
fn stamp(versions: &[(Key, Option<Version>)]) -> u128 {
    let mut hash = Xxh3::new();
    for (key, version) in versions {
        hash.update(key.as_bytes());
        hash.update(&[0, u8::from(version.is_some())]);
        hash.update(&version.map_or(0, Version::as_u128).to_le_bytes());
    }
    hash.digest128()
}

impl Found {
    /// What was found at a path before. Whether it is still true is for the caller to see.
    pub(crate) fn remembered(&self, path: &NodePath, dialect: Option<Dialect>) -> Option<Arc<Sighting>> {
        self.arrays.get(&(path.clone(), dialect))
    }

    /// Looks for an array at a path.
    pub(crate) async fn look(
        &self,
        shared: &Shared,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Arc<Sighting>, ArrayError> {
        match self.see(shared, path, dialect).await? {
            Some(Sight::Array(sighting)) => Ok(sighting),
            Some(Sight::Group(_)) => Err(ArrayError::NotAnArray { path: path.clone() }),
            None => Err(ArrayError::NoSuchNode { path: path.clone() }),
        }
    }

    /// Looks at what the store has at a path. A group of v2 or v3 that has no document is not seen.
    pub(crate) async fn see(
        &self,
        shared: &Shared,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Option<Sight>, ArrayError> {
        let store = &*shared.store;
        let mut search = Search {
            shared,
            store,
            path,
            documents: Documents::default(),
            root: None,
            unread: None,
            memory: Vec::new(),
        };
        let (dialect_found, answer) = search.run(dialect).await?;
        let Search { documents, root, unread, .. } = search;
        let own =
            |keys: &[Key]| Own(keys.iter().map(|key| (key.clone(), documents.version_of(key).flatten())).collect());
        Ok(Some(match answer {
            Answer::Array(array, keys) => {
                let own = own(&keys);
                let sighting = Arc::new(Sighting { array: *array, documents, own, root, unread });
                self.arrays.insert((path.clone(), dialect), sighting.clone());
                Sight::Array(sighting)
            }
            Answer::Group(model, keys) => {
                let own = own(&keys);
                let model = model.map(|model| *model);
                Sight::Group(Box::new(GroupSighting { model, dialect: dialect_found, documents, own, root }))
            }
            Answer::Nothing => return Ok(None),
        }))
    }
}

struct Search<'a> {
    shared: &'a Shared,
    store: &'a dyn TransactionalStore,
    path: &'a NodePath,
    documents: Documents,
    /// The hierarchy of the draft in which the node was found.
    root: Option<Arc<DraftRoot>>,
    /// The reason why the attributes of an array are not known.
    unread: Option<Broken>,
    /// For large documents.
    memory: Vec<Permit>,
}

/// What one dialect has at a path.
enum Answer {
    /// With the keys of its documents.
    Array(Box<Array>, Vec<Key>),
    /// With the keys of its documents, where it has some.
    Group(Option<Box<GroupModel>>, Vec<Key>),
    Nothing,
}

impl Search<'_> {
    async fn run(&mut self, dialect: Option<Dialect>) -> Result<(Dialect, Answer), ArrayError> {
        let path = self.path;
        let own = prefix(path)?;
        let names = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];
        let [v3_key, array_key, group_key, attributes_key] = names.map(|name| key_below(&own, name));
        let roots: Vec<NodePath> = path.ancestors().collect();
        let root_keys = roots.iter().filter_map(|root| key_below(&prefix(root).ok()?, "zarr.json"));
        let keys: Vec<Key> = [&v3_key, &array_key, &group_key, &attributes_key]
            .into_iter()
            .flatten()
            .cloned()
            .chain(root_keys)
            .collect();
        let snapshot = self.store.snapshot(&keys).await?;
        for dialect in dialect.map_or(Dialect::ALL.to_vec(), |dialect| vec![dialect]) {
            let answer = match dialect {
                Dialect::V3 => self.v3(&*snapshot, v3_key.as_ref(), &own).await?,
                Dialect::V2 => self.v2(&*snapshot, [&array_key, &group_key, &attributes_key], &own).await?,
                Dialect::Draft => self.draft(&*snapshot, &roots).await?,
            };
            if !matches!(answer, Answer::Nothing) {
                return Ok((dialect, answer));
            }
        }
        Ok((Dialect::Draft, Answer::Nothing))
    }

    async fn v3(&mut self, snapshot: &dyn Snapshot, key: Option<&Key>, own: &Prefix) -> Result<Answer, ArrayError> {
        let Some(key) = key else { return Ok(Answer::Nothing) };
        let Some(document) = self.document(snapshot, key).await? else { return Ok(Answer::Nothing) };
        let parse = |document| {
            let document = object(document)?;
            if draft::has_uri(&document) { Ok(None) } else { read_v3(document).map(Some) }
        };
        match parsed(self.shared, key, document, parse).await? {
            Some(v3::Node::Array(model)) => self.array(*model, own, vec![key.clone()]),
            Some(v3::Node::Group(model)) => Ok(Answer::Group(Some(Box::new(model)), vec![key.clone()])),
            None => Ok(Answer::Nothing),
        }
    }

    async fn v2(
        &mut self,
        snapshot: &dyn Snapshot,
        [array, group, attributes]: [&Option<Key>; 3],
        own: &Prefix,
    ) -> Result<Answer, ArrayError> {
        let (Some(array), Some(group), Some(attributes)) = (array, group, attributes) else {
            return Ok(Answer::Nothing);
        };
        if let Some(document) = self.document(snapshot, array).await? {
            let (zattrs, too_large) = match self.document(snapshot, attributes).await {
                Err(ArrayError::Document { source, .. }) => (None, Some(source)),
                zattrs => (zattrs?, None),
            };
            let parse = move |document| {
                let (zattrs, unread) = match zattrs.map(object).transpose() {
                    Ok(zattrs) => (zattrs.unwrap_or_default(), too_large),
                    Err(error) => (Json::empty_object(), Some(error)),
                };
                v2::read_array(object(document)?, zattrs).map(|model| (model, unread))
            };
            let (model, unread) = parsed(self.shared, array, document, parse).await?;
            self.unread = unread.map(|error| Broken::new(attributes, &error));
            return self.array(model, own, vec![array.clone(), attributes.clone()]);
        }
        let Some(document) = self.document(snapshot, group).await? else { return Ok(Answer::Nothing) };
        let zattrs = self.document(snapshot, attributes).await?;
        let parse = move |document| v2::group(document, zattrs);
        let model = parsed(self.shared, group, document, parse).await.map_err(|error| match error {
            ArrayError::Document { source: DocumentError::Attributes(source), .. } => wrong(attributes, *source),
            error => error,
        })?;
        Ok(Answer::Group(Some(Box::new(model)), vec![group.clone(), attributes.clone()]))
    }

    async fn draft(&mut self, snapshot: &dyn Snapshot, roots: &[NodePath]) -> Result<Answer, ArrayError> {
        for root in [self.path].into_iter().chain(roots) {
            let hierarchy = prefix(root)?;
            let Some(key) = key_below(&hierarchy, "zarr.json") else { continue };
            let Some(document) = self.document(snapshot, &key).await? else { continue };
            let parse = |document: Bytes| match draft::is_entry_point(&document) {
                true => draft::entry_point(document).map(Some),
                false => Ok(None),
            };
            let Some(entry) = parsed(self.shared, &key, document, parse).await? else { continue };
            let root = Arc::new(DraftRoot { path: root.clone(), prefix: hierarchy, entry });
            self.root = Some(root.clone());
            return self.draft_node(&root, self.path.below(&root.path).unwrap_or_default()).await;
        }
        Ok(Answer::Nothing)
    }

    /// Looks for a node in a draft hierarchy: for an array, for a group, and for nodes below it, in this order.
    async fn draft_node(&mut self, root: &DraftRoot, below: &str) -> Result<Answer, ArrayError> {
        let DraftRoot { prefix: hierarchy, entry, .. } = root;
        let keys = [entry.array_key(below), entry.group_key(below)].map(|key| key_below(hierarchy, &key));
        let [Some(array), Some(group)] = keys else { return Ok(Answer::Nothing) };
        let snapshot = self.store.snapshot(&[array.clone(), group.clone()]).await?;
        if let Some(document) = self.document(&*snapshot, &array).await? {
            let below = below.to_owned();
            let parse = move |document: Bytes| draft::array(document, &below);
            return self.array(parsed(self.shared, &array, document, parse).await?, hierarchy, vec![array]);
        }
        if let Some(document) = self.document(&*snapshot, &group).await? {
            let model = parsed(self.shared, &group, document, |document: Bytes| draft::group(document)).await?;
            return Ok(Answer::Group(Some(Box::new(model)), vec![group]));
        }
        let implied = Prefix::parse(&format!("{}{}", hierarchy.as_str(), draft::children_prefix(below)));
        let Ok(implied) = implied else { return Ok(Answer::Nothing) };
        let page = self.store.list_prefix(&implied, store::Page { limit: 1, cursor: None }).await?;
        Ok(if page.keys.is_empty() { Answer::Nothing } else { Answer::Group(None, Vec::new()) })
    }

    fn array(&self, model: meta::ArrayModel, hierarchy: &Prefix, own: Vec<Key>) -> Result<Answer, ArrayError> {
        Array::new(model, self.path.clone(), hierarchy, stamp(&self.documents.versions))
            .map(|array| Answer::Array(Box::new(array), own))
    }

    /// A document, if it is there. It is one that what is found depends on, whether it is there or not.
    async fn document(&mut self, snapshot: &dyn Snapshot, key: &Key) -> Result<Option<Bytes>, ArrayError> {
        let size = self.note(snapshot, key)?;
        let Some(size) = size else { return Ok(None) };
        if size > MAX_DOCUMENT as u64 {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            return Err(wrong(key, DocumentError::TooLarge { size }));
        }
        if size > LIGHT {
            self.memory.push(self.shared.admit(&self.memory, size.saturating_mul(PARSED)).await?);
        }
        let Some(value) = snapshot.get(key, None).await? else { return Ok(None) };
        Ok(Some(value.bytes().await?))
    }

    fn note(&mut self, snapshot: &dyn Snapshot, key: &Key) -> Result<Option<u64>, ArrayError> {
        let info = snapshot.head(key)?;
        if !self.documents.keys().any(|known| known == key) {
            self.documents.versions.push((key.clone(), info.map(|info| info.version)));
            self.documents.bytes = self.documents.bytes.saturating_add(info.map_or(0, |info| info.size));
        }
        Ok(info.map(|info| info.size))
    }
}

/// What is in a document; a long one is parsed where it keeps no request waiting.
async fn parsed<T: Send + 'static>(
    shared: &Shared,
    key: &Key,
    document: Bytes,
    parse: impl FnOnce(Bytes) -> Result<T, DocumentError> + Send + 'static,
) -> Result<T, ArrayError> {
    let parsed = match document.len() as u64 {
        ..=LIGHT => parse(document),
        len => shared.on_documents(len, move || parse(document)).await?,
    };
    parsed.map_err(|source| wrong(key, source))
}

pub(crate) fn wrong(key: &Key, source: DocumentError) -> ArrayError {
    ArrayError::Document { key: key.clone(), source }
}

/// The prefix of a node. A path that no key can lie below names nothing.
pub(crate) fn prefix(path: &NodePath) -> Result<Prefix, ArrayError> {
    Prefix::parse(&path.key_prefix()).map_err(|_| ArrayError::NoSuchNode { path: path.clone() })
}

/// `None` where it would be too long to be a key, and so is not there.
pub(crate) fn key_below(prefix: &Prefix, name: &str) -> Option<Key> {
    Key::parse(&format!("{}{name}", prefix.as_str())).ok()
}
