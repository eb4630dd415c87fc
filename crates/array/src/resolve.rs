//! From a path to the node that the metadata describes there, in whatever dialect.
//!
//! A node of v2 or v3 is resolved from the documents at its own path. A node of a `draft` hierarchy is resolved from
//! the hierarchy's root: the nearest ancestor, or the path itself, whose `zarr.json` has a URI for its format. If
//! several dialects have a node at the path, v3 comes before v2 before the draft.
//!
//! The documents that the other one of v2 and v3 has at the path are read and compared with the node's, unless each
//! would take a round trip: what a program did to them decides which changes of the node are safe.
//!
//! All documents are read in one snapshot. Their versions are returned as the [read
//! set](crate::node::read_set::ReadSet), so that nothing is read or parsed again as long as they are current.

use std::sync::Arc;

use bytes::Bytes;
use futures::future;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    ArrayModel, BoundedTimes, Dialect, NodePath,
    documents::{DocumentError, GroupModel, draft, parse_object, v2, v3},
    json::Json,
    limits::MAX_DOCUMENT_SIZE,
    relation::{ComparedNode, DialectRelation},
};
use zarrd_store::{CachedMeta, GetResult, Key, Listing, Prefix, Snapshot, SnapshotStore, StoreError, ValueMeta};

use crate::{
    context::Context,
    error::ArrayError,
    memory::claim::Permit,
    node::{
        array::Array,
        broken::{Broken, read_v3},
        cache::PARSED_SIZE_FACTOR,
        counterpart::{Counterpart, CounterpartNode},
        keys::{invalid_document, join_key, node_prefix},
        read_set::ReadSet,
        resolved::{DraftHierarchy, ResolvedArray, ResolvedGroup, ResolvedNode},
    },
};

/// The size up to which a document is parsed without a reservation of memory.
const UNRESERVED_DOCUMENT: u64 = 64 << 10;

impl Context {
    /// Resolves the array at a path, and caches it.
    ///
    /// # Errors
    ///
    /// [`ArrayError::NoSuchNode`] or [`ArrayError::NotAnArray`] if there is none, [`ArrayError::Document`] if its
    /// metadata is invalid.
    pub(crate) async fn resolve_array(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Arc<ResolvedArray>, ArrayError> {
        match self.resolve_node(path, dialect).await? {
            Some(ResolvedNode::Array(resolved)) => Ok(resolved),
            Some(ResolvedNode::Group(_)) => Err(ArrayError::NotAnArray { path: path.clone() }),
            None => Err(ArrayError::NoSuchNode { path: path.clone() }),
        }
    }

    /// The array that was last resolved at a path, which may have changed since; not one that was resolved with a
    /// document that the request may not read.
    pub(crate) fn cached_array(&self, path: &NodePath, dialect: Option<Dialect>) -> Option<Arc<ResolvedArray>> {
        let cached = self.nodes.get(path, dialect);
        cached.filter(|resolved| resolved.times.as_ref().is_none_or(|times| self.can_read(times)))
    }

    /// Resolves the node at a path, and caches it if it is an array; `None` if there is no document, as for an implicit
    /// group of v2 or v3.
    ///
    /// Fails with [`StoreError::Changed`](zarrd_store::StoreError::Changed) if another program changes a document meanwhile.
    /// The operation that needs the node is repeated then, not its resolution alone.
    pub(crate) async fn resolve_node(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Option<ResolvedNode>, ArrayError> {
        let mut resolver = Resolver::new(self, path);
        let Resolution { dialect: found_dialect, mut found, mut metadata_hash, counterpart } =
            resolver.run(dialect).await?;
        let mut times = None;
        if let DialectMatch::Array(model, _) = &mut found
            && let Some(found) = resolver.times_of_bounds(model).await?
        {
            model.bounded_times = Some(found.attributes);
            times = Some(found.path);
            metadata_hash = resolver.read_set.hash();
        }
        let Resolver { read_set, hierarchy, unreadable_attributes, is_cacheable, .. } = resolver;
        let versions = |keys: &[Key]| read_set.versions_of(keys);
        Ok(Some(match found {
            DialectMatch::Array(model, keys) => {
                let versions = versions(&keys);
                let own = match (&hierarchy, found_dialect) {
                    (Some(root), Dialect::Draft) => root.prefix.clone(),
                    _ => node_prefix(path)?,
                };
                let array = Array::new(*model, path.clone(), &own, metadata_hash)?;
                let resolved = ResolvedArray {
                    array,
                    read_set,
                    versions,
                    hierarchy,
                    unreadable_attributes,
                    counterpart,
                    document_shape: None,
                    times,
                };
                let resolved = Arc::new(resolved);
                if is_cacheable {
                    self.nodes.insert(path, dialect, resolved.clone());
                }
                ResolvedNode::Array(resolved)
            }
            DialectMatch::Group(model, keys) => {
                let versions = versions(&keys);
                let model = model.map(|model| *model);
                ResolvedNode::Group(Box::new(ResolvedGroup {
                    model,
                    dialect: found_dialect,
                    read_set,
                    versions,
                    hierarchy,
                    counterpart,
                }))
            }
            DialectMatch::Missing => return Ok(None),
        }))
    }
}

/// One resolution of a path.
struct Resolver<'a> {
    context: &'a Context,
    store: &'a dyn SnapshotStore,
    path: &'a NodePath,
    read_set: ReadSet,
    /// The draft hierarchy in which the node was found.
    hierarchy: Option<Arc<DraftHierarchy>>,
    /// The error of an array's attributes, if they cannot be read.
    unreadable_attributes: Option<Broken>,
    /// The documents that are being fetched; `None` for one that does not exist.
    opened: Vec<(Key, Option<GetResult>)>,
    /// The reservations for large documents.
    memory: Vec<Permit>,
    /// False if the array may be another one for a request with more rights.
    is_cacheable: bool,
}

/// The node at the path.
struct Resolution {
    dialect: Dialect,
    found: DialectMatch,
    /// The hash of the documents that it was found with.
    metadata_hash: u128,
    counterpart: Option<Arc<Counterpart>>,
}

/// The node that one dialect has at the path.
enum DialectMatch {
    /// With the keys of its documents.
    Array(Box<ArrayModel>, Vec<Key>),
    /// With the keys of its documents; without a model for an implicit group, which has none.
    Group(Option<Box<GroupModel>>, Vec<Key>),
    Missing,
}

/// The times of whose cells an array has the bounds.
struct Times {
    path: NodePath,
    attributes: BoundedTimes,
}

impl<'a> Resolver<'a> {
    fn new(context: &'a Context, path: &'a NodePath) -> Self {
        Self {
            context,
            store: &*context.store,
            path,
            read_set: ReadSet::default(),
            hierarchy: None,
            unreadable_attributes: None,
            opened: Vec::new(),
            memory: Vec::new(),
            is_cacheable: true,
        }
    }

    /// The times that name an array of numbers as their bounds, if it may be such bounds and has no units itself. Their
    /// documents join the read set.
    ///
    /// Looked for in the array's group, under the names of its dimensions, and under its own without `_bnds`,
    /// `_bounds` or `_bound`.
    async fn times_of_bounds(&mut self, model: &ArrayModel) -> Result<Option<Times>, ArrayError> {
        let (Some(group), Some(name)) = (self.path.parent(), self.path.name()) else { return Ok(None) };
        for candidate in names_of_times(model, name) {
            let Ok(path) = group.member(&candidate) else { continue };
            if !self.context.can_read(&path) {
                self.is_cacheable = false;
                continue;
            }
            let mut resolver = Resolver::new(self.context, &path);
            let found = match resolver.run(Some(model.dialect)).await {
                Ok(resolution) => resolution.found,
                Err(ArrayError::Document { .. } | ArrayError::Broken(_)) => DialectMatch::Missing,
                Err(error) => return Err(error),
            };
            self.read_set.extend(resolver.read_set);
            if let DialectMatch::Array(times, _) = found
                && let Some(attributes) = zarrd_cf::bounded_times(&times.attributes, name)
            {
                return Ok(Some(Times { path, attributes }));
            }
        }
        Ok(None)
    }

    async fn run(&mut self, dialect: Option<Dialect>) -> Result<Resolution, ArrayError> {
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
        let v2_keys = [&array_key, &group_key, &attributes_key];
        let snapshot = self.store.snapshot(&keys).await?;
        for dialect in dialect.map_or(Dialect::ALL.to_vec(), |dialect| vec![dialect]) {
            let found = match dialect {
                Dialect::V3 => self.v3(&*snapshot, v3_key.as_ref()).await?,
                Dialect::V2 => self.v2(&*snapshot, v2_keys).await?,
                Dialect::Draft => self.draft(&*snapshot, &roots).await?,
            };
            if !matches!(found, DialectMatch::Missing) {
                let metadata_hash = self.read_set.hash();
                let unreadable_attributes = self.unreadable_attributes.take();
                let counterpart = match dialect {
                    // More requests would be needed. Those who write need them, since both documents are changed.
                    _ if self.context.is_distant_at(path) && !self.context.is_written_at(path) => None,
                    Dialect::V3 => {
                        let other = self.v2(&*snapshot, v2_keys).await;
                        self.counterpart(&found, other)?
                    }
                    Dialect::V2 => {
                        let other = self.v3(&*snapshot, v3_key.as_ref()).await;
                        self.counterpart(&found, other)?
                    }
                    Dialect::Draft => None,
                };
                self.unreadable_attributes = unreadable_attributes;
                return Ok(Resolution { dialect, found, metadata_hash, counterpart });
            }
        }
        let found = DialectMatch::Missing;
        Ok(Resolution { dialect: Dialect::Draft, found, metadata_hash: 0, counterpart: None })
    }

    /// The node that the other one of v2 and v3 has at the path, compared with the resolved one.
    fn counterpart(
        &mut self,
        found: &DialectMatch,
        other: Result<DialectMatch, ArrayError>,
    ) -> Result<Option<Arc<Counterpart>>, ArrayError> {
        let (node, keys) = match other {
            Ok(DialectMatch::Array(model, keys)) => (CounterpartNode::Array(model), keys),
            Ok(DialectMatch::Group(Some(model), keys)) => (CounterpartNode::Group(model), keys),
            Ok(DialectMatch::Group(None, _) | DialectMatch::Missing) => return Ok(None),
            Err(ArrayError::Document { key, .. }) => (CounterpartNode::Unreadable, vec![key]),
            Err(error) => return Err(error),
        };
        let resolved = match found {
            DialectMatch::Array(model, _) => ComparedNode::Array(model),
            DialectMatch::Group(Some(model), _) => ComparedNode::Group(model),
            DialectMatch::Group(None, _) | DialectMatch::Missing => return Ok(None),
        };
        let relation = DialectRelation::between(resolved, node.compared());
        let versions = self.read_set.versions_of(&keys);
        let unreadable_attributes = self.unreadable_attributes.take();
        Ok(Some(Arc::new(Counterpart { relation, node, versions, unreadable_attributes })))
    }

    async fn v3(&mut self, snapshot: &dyn Snapshot, key: Option<&Key>) -> Result<DialectMatch, ArrayError> {
        let Some(key) = key else { return Ok(DialectMatch::Missing) };
        let Some(document) = self.document(snapshot, key).await? else { return Ok(DialectMatch::Missing) };
        let parse = |document| {
            let document = parse_object(document)?;
            if draft::has_uri(&document) { Ok(None) } else { read_v3(document).map(Some) }
        };
        match parse_document(self.context, key, document, parse).await? {
            Some(v3::Node::Array(model)) => Ok(DialectMatch::Array(model, vec![key.clone()])),
            Some(v3::Node::Group(model)) => Ok(DialectMatch::Group(Some(Box::new(model)), vec![key.clone()])),
            None => Ok(DialectMatch::Missing),
        }
    }

    async fn v2(
        &mut self,
        snapshot: &dyn Snapshot,
        [array, group, attributes]: [&Option<Key>; 3],
    ) -> Result<DialectMatch, ArrayError> {
        let (Some(array), Some(group), Some(attributes)) = (array, group, attributes) else {
            return Ok(DialectMatch::Missing);
        };
        self.open(snapshot, &[array, group, attributes]).await?;
        if let Some(document) = self.document(snapshot, array).await? {
            let (zattrs, too_large) = match self.document(snapshot, attributes).await {
                Err(ArrayError::Document { source, .. }) => (None, Some(source)),
                zattrs => (zattrs?, None),
            };
            let parse = move |document| {
                let (zattrs, unread) = match zattrs.map(parse_object).transpose() {
                    Ok(zattrs) => (zattrs.unwrap_or_default(), too_large),
                    Err(error) => (Json::empty_object(), Some(error)),
                };
                v2::read_array(parse_object(document)?, zattrs).map(|model| (model, unread))
            };
            let (model, unread) = parse_document(self.context, array, document, parse).await?;
            self.unreadable_attributes = unread.map(|error| Broken::new(attributes, &error));
            return Ok(DialectMatch::Array(Box::new(model), vec![array.clone(), attributes.clone()]));
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
        let mut places = Vec::new();
        for root in [self.path].into_iter().chain(roots) {
            let hierarchy = node_prefix(root)?;
            let Some(key) = join_key(&hierarchy, "zarr.json") else { continue };
            places.push((root, hierarchy, key));
        }
        self.open(snapshot, &places.iter().map(|(.., key)| key).collect::<Vec<_>>()).await?;
        for (root, hierarchy, key) in places {
            let Some(document) = self.document(snapshot, &key).await? else { continue };
            let parse = |document: Bytes| match draft::is_entry_point(&document) {
                true => draft::entry_point(document).map(Some),
                false => Ok(None),
            };
            let Some(entry) = parse_document(self.context, &key, document, parse).await? else { continue };
            let root = Arc::new(DraftHierarchy { path: root.clone(), prefix: hierarchy, entry_point: entry });
            self.hierarchy = Some(root.clone());
            return self.draft_node(&root, self.path.relative_to(&root.path).unwrap_or_default()).await;
        }
        Ok(DialectMatch::Missing)
    }

    /// Resolves a node of a draft hierarchy: an array, else a group, else an implicit group with nodes below it.
    async fn draft_node(&mut self, root: &DraftHierarchy, below: &str) -> Result<DialectMatch, ArrayError> {
        let DraftHierarchy { prefix: hierarchy, entry_point: entry, .. } = root;
        let keys = [entry.array_key(below), entry.group_key(below)].map(|key| join_key(hierarchy, &key));
        let [Some(array), Some(group)] = keys else { return Ok(DialectMatch::Missing) };
        let snapshot = self.store.snapshot(&[array.clone(), group.clone()]).await?;
        self.open(&*snapshot, &[&array, &group]).await?;
        if let Some(document) = self.document(&*snapshot, &array).await? {
            let below = below.to_owned();
            let parse = move |document: Bytes| draft::array(document, &below);
            let model = parse_document(self.context, &array, document, parse).await?;
            return Ok(DialectMatch::Array(Box::new(model), vec![array]));
        }
        if let Some(document) = self.document(&*snapshot, &group).await? {
            let model =
                parse_document(self.context, &group, document, |document: Bytes| draft::group(document)).await?;
            return Ok(DialectMatch::Group(Some(Box::new(model)), vec![group]));
        }
        let implied = Prefix::parse(&format!("{}{}", hierarchy.as_str(), draft::children_prefix(below)));
        let Ok(implied) = implied else { return Ok(DialectMatch::Missing) };
        // Only a listing shows that a group without a document exists.
        if self.store.guarantees_below(&implied).listing == Listing::None {
            return Ok(DialectMatch::Missing);
        }
        let page = self.store.list_prefix(&implied, zarrd_store::PageRequest { limit: 1, cursor: None }).await?;
        Ok(if page.keys.is_empty() { DialectMatch::Missing } else { DialectMatch::Group(None, Vec::new()) })
    }

    /// Begins to read documents of unknown versions, all at a time, since each takes a round trip.
    async fn open(&mut self, snapshot: &dyn Snapshot, keys: &[&Key]) -> Result<(), ArrayError> {
        let mut unknown = Vec::new();
        for &key in keys {
            if snapshot.cached(key)? == CachedMeta::Unknown {
                unknown.push(async move { Ok::<_, StoreError>((key.clone(), snapshot.get(key, None).await?)) });
            }
        }
        if !unknown.is_empty() {
            self.opened.extend(future::try_join_all(unknown).await?);
        }
        Ok(())
    }

    /// Reads a document, if it exists, and records it in the read set either way.
    async fn document(&mut self, snapshot: &dyn Snapshot, key: &Key) -> Result<Option<Bytes>, ArrayError> {
        let mut opened =
            self.opened.iter().position(|(opened, _)| opened == key).map(|at| self.opened.swap_remove(at).1);
        let cached = snapshot.cached(key)?;
        if opened.is_none() && cached == CachedMeta::Unknown {
            // Version and size are known after the first read of a key.
            opened = Some(snapshot.get(key, None).await?);
        }
        let known = |info: &ValueMeta| (info.version, info.size);
        let info = match (&opened, &cached) {
            (Some(value), _) => value.as_ref().map(|value| known(&value.meta)),
            (None, CachedMeta::Known(info)) => info.as_ref().map(known),
            (None, CachedMeta::Unknown) => None,
        };
        self.read_set.record(key, info);
        let Some((_, size)) = info else { return Ok(None) };
        if size > MAX_DOCUMENT_SIZE as u64 {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            return Err(invalid_document(key, DocumentError::TooLarge { size }));
        }
        if size > UNRESERVED_DOCUMENT {
            self.memory.push(self.context.reserve_memory(&self.memory, size.saturating_mul(PARSED_SIZE_FACTOR)).await?);
        }
        let value = match opened {
            Some(value) => value,
            None => snapshot.get(key, None).await?,
        };
        let Some(value) = value else { return Ok(None) };
        Ok(Some(value.bytes().await?))
    }
}

/// The names of times that may have an array as bounds: it has a pair of numbers for each, and no units.
fn names_of_times(model: &ArrayModel, name: &str) -> Vec<String> {
    const MAX_RANK: usize = 3;
    let is_pairs = (1..=MAX_RANK).contains(&model.shape.len()) && model.view_shape().last() == Some(&2);
    let is_number = model.data_type.number().is_some();
    if !is_pairs || !is_number || model.attributes.get("units").is_some() {
        return Vec::new();
    }
    let dimensions = model.dimension_names.iter().rev().skip(1).rev().flatten().cloned();
    let stem = ["_bnds", "_bounds", "_bound"].iter().find_map(|suffix| name.strip_suffix(suffix));
    let mut names: Vec<String> = dimensions.chain(stem.map(str::to_owned)).filter(|other| other != name).collect();
    names.dedup();
    names
}

/// Parses a document; a large one on another thread, so that it delays no other request.
async fn parse_document<T: Send + 'static>(
    context: &Context,
    key: &Key,
    document: Bytes,
    parse: impl FnOnce(Bytes) -> Result<T, DocumentError> + Send + 'static,
) -> Result<T, ArrayError> {
    let parsed = context.run(Cost::of(Work::Documents, document.len() as u64), move || parse(document)).await?;
    parsed.map_err(|source| invalid_document(key, source))
}
