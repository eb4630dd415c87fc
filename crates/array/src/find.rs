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
    context::Context,
    memory::Permit,
};

/// How many bytes of memory the nodes may take that are remembered.
const CACHE_CAPACITY: u64 = 64 << 20;

/// What a node takes beside its documents.
const NODE_OVERHEAD: u64 = 4 << 10;

/// How many times as much memory as its text a document that was parsed takes, roughly.
const PARSED_SIZE_FACTOR: u64 = 8;

/// Documents up to this length are parsed where the request is, without a reservation of memory.
const INLINE_PARSE_LIMIT: u64 = 64 << 10;

/// The arrays that were found.
#[derive(Debug)]
pub(crate) struct NodeCache {
    arrays: Cache<(NodePath, Option<Dialect>), Arc<ResolvedArray>, ByteWeighter>,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

/// An array, and the documents that say that it is there.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedArray {
    pub(crate) array: Array,
    pub(crate) read_set: ReadSet,
    /// The documents that the array itself has.
    pub(crate) versions: NodeVersions,
    /// The hierarchy of the draft that it is in.
    pub(crate) hierarchy: Option<Arc<DraftHierarchy>>,
    /// The reason why its attributes are not known, where they are not. Its elements do not need them.
    pub(crate) unreadable_attributes: Option<Broken>,
}

/// A group, and the documents that say that it is there.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedGroup {
    /// What it is; `None` where it is a group of the draft because there are nodes below it.
    pub(crate) model: Option<GroupModel>,
    pub(crate) dialect: Dialect,
    pub(crate) read_set: ReadSet,
    /// The documents that the group itself has.
    pub(crate) versions: NodeVersions,
    /// The hierarchy of the draft that it is in.
    pub(crate) hierarchy: Option<Arc<DraftHierarchy>>,
}

/// What is at a path because its documents say so.
#[derive(Clone, Debug)]
pub(crate) enum ResolvedNode {
    Array(Arc<ResolvedArray>),
    Group(Box<ResolvedGroup>),
}

/// A hierarchy of the draft.
#[derive(Clone, Debug)]
pub(crate) struct DraftHierarchy {
    /// Where it is.
    pub(crate) path: NodePath,
    /// What all its keys begin with.
    pub(crate) prefix: Prefix,
    pub(crate) entry_point: draft::EntryPoint,
}

/// The documents of one node, with their versions; `None` for a part of them that is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeVersions(pub(crate) Vec<(Key, Option<Version>)>);

/// Keys of documents, with the versions that they had; `None` for those that were not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadSet {
    versions: Vec<(Key, Option<Version>)>,
    bytes: u64,
}

impl Default for NodeCache {
    fn default() -> Self {
        Self { arrays: Cache::with_weighter(1024, CACHE_CAPACITY, ByteWeighter) }
    }
}

impl Weighter<(NodePath, Option<Dialect>), Arc<ResolvedArray>> for ByteWeighter {
    fn weight(&self, (path, _): &(NodePath, Option<Dialect>), resolved: &Arc<ResolvedArray>) -> u64 {
        let fill = resolved.array.model().fill_value.len() as u64;
        let documents = resolved.read_set.bytes.saturating_mul(PARSED_SIZE_FACTOR);
        documents.saturating_add(fill.saturating_mul(2)).saturating_add(NODE_OVERHEAD + path.relative().len() as u64)
    }
}

impl ResolvedArray {
    /// Another one whenever the array's own documents are others. It does not change with those that were only looked at.
    pub(crate) fn version(&self) -> Version {
        self.versions.version()
    }

    /// What has to hold in a commit for the sighting to be true still: one check for each document.
    pub(crate) fn preconditions(&self) -> Vec<Change> {
        let check = |(key, version): &(Key, Option<Version>)| Change::Check {
            key: key.clone(),
            precondition: Precondition::unchanged(*version),
        };
        self.read_set.versions.iter().map(check).collect()
    }
}

impl NodeVersions {
    /// Another version whenever one of the documents is another.
    pub(crate) fn version(&self) -> Version {
        Version::from_u128(hash_versions(&self.0))
    }

    /// Takes over what a commit did, given the keys of its changes.
    pub(crate) fn advance(&mut self, keys: &[Key], outcomes: &[Outcome]) {
        for (key, version) in &mut self.0 {
            match keys.iter().zip(outcomes).find(|(changed, _)| *changed == key) {
                Some((_, Outcome::Set(written))) => *version = Some(written.version),
                Some((_, Outcome::Erased { .. })) => *version = None,
                Some((_, Outcome::Checked | Outcome::PrefixErased | Outcome::Intended | Outcome::Settled)) | None => {}
            }
        }
    }
}

impl ReadSet {
    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.versions.iter().map(|(key, _)| key)
    }

    /// Whether all of them are in a snapshot as they were.
    pub(crate) fn is_current(&self, snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
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
fn hash_versions(versions: &[(Key, Option<Version>)]) -> u128 {
    let mut hash = Xxh3::new();
    for (key, version) in versions {
        hash.update(key.as_bytes());
        hash.update(&[0, u8::from(version.is_some())]);
        hash.update(&version.map_or(0, Version::as_u128).to_le_bytes());
    }
    hash.digest128()
}

impl NodeCache {
    /// What was found at a path before. Whether it is still true is for the caller to see.
    pub(crate) fn get(&self, path: &NodePath, dialect: Option<Dialect>) -> Option<Arc<ResolvedArray>> {
        self.arrays.get(&(path.clone(), dialect))
    }

    /// Looks for an array at a path.
    pub(crate) async fn resolve_array(
        &self,
        context: &Context,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Arc<ResolvedArray>, ArrayError> {
        match self.resolve_node(context, path, dialect).await? {
            Some(ResolvedNode::Array(resolved)) => Ok(resolved),
            Some(ResolvedNode::Group(_)) => Err(ArrayError::NotAnArray { path: path.clone() }),
            None => Err(ArrayError::NoSuchNode { path: path.clone() }),
        }
    }

    /// Looks at what the store has at a path. A group of v2 or v3 that has no document is not seen.
    pub(crate) async fn resolve_node(
        &self,
        context: &Context,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Option<ResolvedNode>, ArrayError> {
        let store = &*context.store;
        let mut search = Resolver {
            context,
            store,
            path,
            read_set: ReadSet::default(),
            hierarchy: None,
            unreadable_attributes: None,
            memory: Vec::new(),
        };
        let (dialect_found, answer) = search.run(dialect).await?;
        let Resolver { read_set: documents, hierarchy: root, unreadable_attributes: unread, .. } = search;
        let own = |keys: &[Key]| {
            NodeVersions(keys.iter().map(|key| (key.clone(), documents.version_of(key).flatten())).collect())
        };
        Ok(Some(match answer {
            DialectMatch::Array(array, keys) => {
                let own = own(&keys);
                let resolved = Arc::new(ResolvedArray {
                    array: *array,
                    read_set: documents,
                    versions: own,
                    hierarchy: root,
                    unreadable_attributes: unread,
                });
                self.arrays.insert((path.clone(), dialect), resolved.clone());
                ResolvedNode::Array(resolved)
            }
            DialectMatch::Group(model, keys) => {
                let own = own(&keys);
                let model = model.map(|model| *model);
                ResolvedNode::Group(Box::new(ResolvedGroup {
                    model,
                    dialect: dialect_found,
                    read_set: documents,
                    versions: own,
                    hierarchy: root,
                }))
            }
            DialectMatch::Missing => return Ok(None),
        }))
    }
}

struct Resolver<'a> {
    context: &'a Context,
    store: &'a dyn TransactionalStore,
    path: &'a NodePath,
    read_set: ReadSet,
    /// The hierarchy of the draft in which the node was found.
    hierarchy: Option<Arc<DraftHierarchy>>,
    /// The reason why the attributes of an array are not known.
    unreadable_attributes: Option<Broken>,
    /// For large documents.
    memory: Vec<Permit>,
}

/// What one dialect has at a path.
enum DialectMatch {
    /// With the keys of its documents.
    Array(Box<Array>, Vec<Key>),
    /// With the keys of its documents, where it has some.
    Group(Option<Box<GroupModel>>, Vec<Key>),
    Missing,
}

impl Resolver<'_> {
    async fn run(&mut self, dialect: Option<Dialect>) -> Result<(Dialect, DialectMatch), ArrayError> {
        let path = self.path;
        let own = node_prefix(path)?;
        let names = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];
        let [v3_key, array_key, group_key, attributes_key] = names.map(|name| join_key(&own, name));
        let roots: Vec<NodePath> = path.ancestors().collect();
        let root_keys = roots.iter().filter_map(|root| join_key(&node_prefix(root).ok()?, "zarr.json"));
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
            if !matches!(answer, DialectMatch::Missing) {
                return Ok((dialect, answer));
            }
        }
        Ok((Dialect::Draft, DialectMatch::Missing))
    }

    async fn v3(
        &mut self,
        snapshot: &dyn Snapshot,
        key: Option<&Key>,
        own: &Prefix,
    ) -> Result<DialectMatch, ArrayError> {
        let Some(key) = key else { return Ok(DialectMatch::Missing) };
        let Some(document) = self.document(snapshot, key).await? else { return Ok(DialectMatch::Missing) };
        let parse = |document| {
            let document = object(document)?;
            if draft::has_uri(&document) { Ok(None) } else { read_v3(document).map(Some) }
        };
        match parse_document(self.context, key, document, parse).await? {
            Some(v3::Node::Array(model)) => self.array(*model, own, vec![key.clone()]),
            Some(v3::Node::Group(model)) => Ok(DialectMatch::Group(Some(Box::new(model)), vec![key.clone()])),
            None => Ok(DialectMatch::Missing),
        }
    }

    async fn v2(
        &mut self,
        snapshot: &dyn Snapshot,
        [array, group, attributes]: [&Option<Key>; 3],
        own: &Prefix,
    ) -> Result<DialectMatch, ArrayError> {
        let (Some(array), Some(group), Some(attributes)) = (array, group, attributes) else {
            return Ok(DialectMatch::Missing);
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
            let (model, unread) = parse_document(self.context, array, document, parse).await?;
            self.unreadable_attributes = unread.map(|error| Broken::new(attributes, &error));
            return self.array(model, own, vec![array.clone(), attributes.clone()]);
        }
        let Some(document) = self.document(snapshot, group).await? else { return Ok(DialectMatch::Missing) };
        let zattrs = self.document(snapshot, attributes).await?;
        let parse = move |document| v2::group(document, zattrs);
        let model = parse_document(self.context, group, document, parse).await.map_err(|error| match error {
            ArrayError::Document { source: DocumentError::Attributes(source), .. } => {
                invalid_document(attributes, *source)
            }
            error => error,
        })?;
        Ok(DialectMatch::Group(Some(Box::new(model)), vec![group.clone(), attributes.clone()]))
    }

    async fn draft(&mut self, snapshot: &dyn Snapshot, roots: &[NodePath]) -> Result<DialectMatch, ArrayError> {
        for root in [self.path].into_iter().chain(roots) {
            let hierarchy = node_prefix(root)?;
            let Some(key) = join_key(&hierarchy, "zarr.json") else { continue };
            let Some(document) = self.document(snapshot, &key).await? else { continue };
            let parse = |document: Bytes| match draft::is_entry_point(&document) {
                true => draft::entry_point(document).map(Some),
                false => Ok(None),
            };
            let Some(entry) = parse_document(self.context, &key, document, parse).await? else { continue };
            let root = Arc::new(DraftHierarchy { path: root.clone(), prefix: hierarchy, entry_point: entry });
            self.hierarchy = Some(root.clone());
            return self.draft_node(&root, self.path.below(&root.path).unwrap_or_default()).await;
        }
        Ok(DialectMatch::Missing)
    }

    /// Looks for a node in a draft hierarchy: for an array, for a group, and for nodes below it, in this order.
    async fn draft_node(&mut self, root: &DraftHierarchy, below: &str) -> Result<DialectMatch, ArrayError> {
        let DraftHierarchy { prefix: hierarchy, entry_point: entry, .. } = root;
        let keys = [entry.array_key(below), entry.group_key(below)].map(|key| join_key(hierarchy, &key));
        let [Some(array), Some(group)] = keys else { return Ok(DialectMatch::Missing) };
        let snapshot = self.store.snapshot(&[array.clone(), group.clone()]).await?;
        if let Some(document) = self.document(&*snapshot, &array).await? {
            let below = below.to_owned();
            let parse = move |document: Bytes| draft::array(document, &below);
            return self.array(parse_document(self.context, &array, document, parse).await?, hierarchy, vec![array]);
        }
        if let Some(document) = self.document(&*snapshot, &group).await? {
            let model =
                parse_document(self.context, &group, document, |document: Bytes| draft::group(document)).await?;
            return Ok(DialectMatch::Group(Some(Box::new(model)), vec![group]));
        }
        let implied = Prefix::parse(&format!("{}{}", hierarchy.as_str(), draft::children_prefix(below)));
        let Ok(implied) = implied else { return Ok(DialectMatch::Missing) };
        let page = self.store.list_prefix(&implied, store::Page { limit: 1, cursor: None }).await?;
        Ok(if page.keys.is_empty() { DialectMatch::Missing } else { DialectMatch::Group(None, Vec::new()) })
    }

    fn array(&self, model: meta::ArrayModel, hierarchy: &Prefix, own: Vec<Key>) -> Result<DialectMatch, ArrayError> {
        Array::new(model, self.path.clone(), hierarchy, hash_versions(&self.read_set.versions))
            .map(|array| DialectMatch::Array(Box::new(array), own))
    }

    /// A document, if it is there. It is one that what is found depends on, whether it is there or not.
    async fn document(&mut self, snapshot: &dyn Snapshot, key: &Key) -> Result<Option<Bytes>, ArrayError> {
        let size = self.record(snapshot, key)?;
        let Some(size) = size else { return Ok(None) };
        if size > MAX_DOCUMENT as u64 {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            return Err(invalid_document(key, DocumentError::TooLarge { size }));
        }
        if size > INLINE_PARSE_LIMIT {
            self.memory.push(self.context.reserve_memory(&self.memory, size.saturating_mul(PARSED_SIZE_FACTOR)).await?);
        }
        let Some(value) = snapshot.get(key, None).await? else { return Ok(None) };
        Ok(Some(value.bytes().await?))
    }

    fn record(&mut self, snapshot: &dyn Snapshot, key: &Key) -> Result<Option<u64>, ArrayError> {
        let info = snapshot.head(key)?;
        if !self.read_set.keys().any(|known| known == key) {
            self.read_set.versions.push((key.clone(), info.map(|info| info.version)));
            self.read_set.bytes = self.read_set.bytes.saturating_add(info.map_or(0, |info| info.size));
        }
        Ok(info.map(|info| info.size))
    }
}

/// What is in a document; a long one is parsed where it keeps no request waiting.
async fn parse_document<T: Send + 'static>(
    context: &Context,
    key: &Key,
    document: Bytes,
    parse: impl FnOnce(Bytes) -> Result<T, DocumentError> + Send + 'static,
) -> Result<T, ArrayError> {
    let parsed = match document.len() as u64 {
        ..=INLINE_PARSE_LIMIT => parse(document),
        len => context.run_on_documents(len, move || parse(document)).await?,
    };
    parsed.map_err(|source| invalid_document(key, source))
}

pub(crate) fn invalid_document(key: &Key, source: DocumentError) -> ArrayError {
    ArrayError::Document { key: key.clone(), source }
}

/// The prefix of a node. A path that no key can lie below names nothing.
pub(crate) fn node_prefix(path: &NodePath) -> Result<Prefix, ArrayError> {
    Prefix::parse(&path.key_prefix()).map_err(|_| ArrayError::NoSuchNode { path: path.clone() })
}

/// `None` where it would be too long to be a key, and so is not there.
pub(crate) fn join_key(prefix: &Prefix, name: &str) -> Option<Key> {
    Key::parse(&format!("{}{name}", prefix.as_str())).ok()
}
