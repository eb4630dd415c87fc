//! Reading documents and listings as of one commit: they are read optimistically, and validated afterwards.

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    NodePath,
    documents::DocumentError,
    limits::{MAX_DOCUMENT_MEMORY, MAX_DOCUMENT_SIZE},
};
use zarrd_store::{Key, MountFailure, Prefix, Snapshot, StoreError, Version, Watermark};

use super::{
    ahead::ReadAhead,
    copies::TrustedCopies,
    documents::Text,
    listing::{self, Listed, PageReads},
    mode::Caching,
    named::NamedNodes,
    opened::{Opened, open},
    scan::{Purpose, Scans},
    unavailable::LeftOut,
};
use crate::{
    context::Context,
    error::ArrayError,
    memory::{claim::Permit, error::MemoryError},
    metadata::error::{NodeError, too_many_nodes},
    node::keys::node_prefix,
};

/// The memory of a document for an answer, as a multiple of its size as text.
const PARSED: u64 = 2;

/// The memory of a document's model while it is read, as a multiple of its size as text, at most.
const MODEL: u64 = 8;

/// The memory of a document and of its part of a node in addition to its text, in bytes.
const PER_DOCUMENT: u64 = 768;

/// The size up to which documents are read without a reservation of memory.
const UNRESERVED: u64 = 64 << 10;

/// The number of requests to a distant store at a time.
pub(super) const CONCURRENT_REQUESTS: usize = 64;

/// A reader that records everything it reads.
pub(crate) struct SnapshotReader<'a> {
    pub(super) context: &'a Context,
    /// True if each answer may take a round trip.
    pub(super) distant: bool,
    /// True if no answer takes a round trip to another machine.
    pub(super) near: bool,
    /// The use of the documents for later walks.
    pub(super) caching: Caching,
    /// Consolidated metadata that have nodes in place of their documents.
    pub(super) copies: TrustedCopies,
    /// Listings and documents that were read ahead.
    pub(super) ahead: ReadAhead,
    /// The versions of all documents that were read.
    pub(crate) versions_read: Vec<(Key, Option<Version>)>,
    /// The prefixes that were listed, each with a hash of its entries.
    listed: Vec<(Prefix, u128)>,
    pub(super) scans: Scans,
    /// The number of versions that were read before the first scan.
    read_before_scans: usize,
    /// The nodes that documents name, in a store without listings.
    pub(super) named: NamedNodes,
    /// The pages of listings that were read.
    pub(crate) pages: Vec<PageReads>,
    /// The prefixes of the mounts that a walk of the root may leave out, and those that it does leave out.
    pub(super) mounts: Vec<Prefix>,
    pub(super) left_out: LeftOut,
    /// The prefix of the topmost node.
    top: Prefix,
    /// The watermark of what is below it before anything was read; `None` if there is none.
    watermark: Option<Watermark>,
    entries: usize,
    /// The memory that all documents take, the part of it that is reserved, and the first reservation.
    needed: u64,
    reserved: u64,
    pub(crate) expected: u64,
    /// The part of it for the model of one document at a time.
    for_model: u64,
    /// The memory of the documents.
    pub(crate) memory: Vec<Permit>,
}

impl<'a> SnapshotReader<'a> {
    /// A reader of documents at and above a path.
    pub(crate) fn new(context: &'a Context, path: &NodePath) -> Self {
        let (near, distant) = (context.is_near_at(path), context.is_distant_at(path));
        let scans = Scans::new(near);
        Self {
            context,
            distant,
            near,
            caching: Caching::None,
            copies: TrustedCopies::default(),
            ahead: ReadAhead::default(),
            versions_read: Vec::new(),
            listed: Vec::new(),
            scans: if near && distant { scans.with_versions() } else { scans },
            read_before_scans: 0,
            named: NamedNodes::default(),
            pages: Vec::new(),
            mounts: Vec::new(),
            left_out: LeftOut::default(),
            top: Prefix::root(),
            watermark: None,
            entries: 0,
            needed: 0,
            reserved: 0,
            expected: 0,
            for_model: 0,
            memory: Vec::new(),
        }
    }

    /// A reader of the state below a node, which is to be of one commit.
    pub(crate) async fn begin(context: &'a Context, path: &NodePath) -> Result<Self, NodeError> {
        let top = node_prefix(path)?;
        let watermark = context.store.watermark_below(&top).await?;
        Ok(Self { top, watermark, ..Self::new(context, path) })
    }

    /// Prepares a walk of the root of several stores that leaves out those that fail.
    pub(super) fn leave_out_failed_mounts(&mut self, left_out: LeftOut) {
        let names = self.context.store.parts().into_iter().filter_map(|(name, _)| name);
        self.mounts = names.filter_map(|name| Prefix::parse(&format!("{name}/")).ok()).collect();
        self.left_out = left_out;
    }

    /// Records all mounts that failed among these answers, of which a walk reports the first.
    pub(super) fn note_failures<T>(&self, answers: &[Result<T, StoreError>]) {
        for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            self.context.unavailable.record(error);
        }
    }

    /// The values of documents, with their versions. One that is too large for a document is not read.
    pub(crate) async fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<(Version, Text)>>, NodeError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(values) = self.ahead.take_documents(keys) {
            return Ok(values);
        }
        if self.distant {
            return self.fetch(keys).await;
        }
        let (context, cost) = (self.context, Cost::of(Work::Lookups, keys.len() as u64));
        let (snapshot, pending) = context.run_future(cost, self.snapshot(keys)).await??;
        // A request that has a turn must not wait for memory.
        self.reserve(pending).await?;
        let read = async {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(match snapshot.meta(key).await? {
                    None => None,
                    Some(info) if is_too_large(info.size) => {
                        let size = usize::try_from(info.size).unwrap_or(usize::MAX);
                        Some((info.version, Err(DocumentError::TooLarge { size })))
                    }
                    Some(info) => self.text(&*snapshot, key, info.version).await?.map(|text| (info.version, Ok(text))),
                });
            }
            Ok::<_, NodeError>(values)
        };
        context.run_future(cost, read).await?
    }

    /// The text of a document of this version in a snapshot.
    async fn text(&self, snapshot: &dyn Snapshot, key: &Key, version: Version) -> Result<Option<Bytes>, StoreError> {
        if let Some(cached) = self.context.documents.text(key).filter(|cached| cached.version == version) {
            return Ok(Some(cached.text));
        }
        let Some(value) = snapshot.get(key, None).await? else { return Ok(None) };
        Ok(Some(self.cache_text(key, version, value.bytes().await?)))
    }

    /// Caches a text, if this walk does, and returns it. The texts of other machines are parts of larger buffers.
    fn cache_text(&self, key: &Key, version: Version, text: Bytes) -> Bytes {
        match self.near && self.caching == Caching::Documents {
            true => self.context.documents.insert_text(key, version, text),
            false => text,
        }
    }

    /// Reads documents like [`read`](Self::read), many at a time. A size is known after the first read of a key, so the
    /// memory for documents is reserved when their answers have begun.
    pub(super) async fn fetch(&mut self, keys: &[Key]) -> Result<Vec<Option<(Version, Text)>>, NodeError> {
        let snapshot = self.context.store.snapshot(keys).await?;
        let cost = Cost::of(Work::Lookups, keys.len() as u64);
        let mut values = Vec::with_capacity(keys.len());
        for batch in keys.chunks(CONCURRENT_REQUESTS) {
            let open = |key| {
                let (snapshot, mount) = (&*snapshot, self.mounts.iter().find(|mount| mount.contains(key)));
                let cached = self.context.documents.text(key).filter(|_| self.near);
                let open = open(snapshot, key, self.scans.version(key), cached);
                async move {
                    match mount {
                        Some(mount) => MountFailure::in_time(mount, open).await,
                        None => open.await,
                    }
                }
            };
            let opened = match self.mounts.is_empty() {
                true => self.context.run_future(cost, try_join_all(batch.iter().map(open))).await??,
                false => {
                    let all = self.context.run_future(cost, join_all(batch.iter().map(open))).await?;
                    self.note_failures(&all);
                    all.into_iter().collect::<Result<_, _>>()?
                }
            };
            let found: Vec<_> = opened.iter().map(|value| value.as_ref().map(Opened::version_and_size)).collect();
            let pending = self.note(batch.iter().zip(found));
            self.reserve(pending).await?;
            let this = &*self;
            let receive = batch.iter().zip(opened).map(|(key, value)| async move {
                let Some(value) = value else { return Ok(None) };
                let (version, size) = value.version_and_size();
                if is_too_large(size) {
                    let size = usize::try_from(size).unwrap_or(usize::MAX);
                    return Ok(Some((version, Err(DocumentError::TooLarge { size }))));
                }
                let text = match value {
                    Opened::Cached(cached) => cached.text,
                    Opened::Value(value) => this.cache_text(key, version, value.bytes().await?),
                };
                Ok::<_, StoreError>(Some((version, Ok(text))))
            });
            values.extend(try_join_all(receive).await?);
        }
        Ok(values)
    }

    /// A snapshot of documents, and the memory that they take.
    async fn snapshot(&mut self, keys: &[Key]) -> Result<(Box<dyn Snapshot>, u64), NodeError> {
        let snapshot = self.context.store.snapshot(keys).await?;
        snapshot.stat_many(keys).await?;
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            found.push((key, snapshot.meta(key).await?.map(|meta| (meta.version, meta.size))));
        }
        let pending = self.note(found.into_iter());
        Ok((snapshot, pending))
    }

    /// Records the versions of documents, of which the sizes are known, too; returns the memory that they take.
    fn note<'k>(&mut self, found: impl Iterator<Item = (&'k Key, Option<(Version, u64)>)>) -> u64 {
        let (mut pending, mut largest) = (0_u64, 0_u64);
        for (key, info) in found {
            self.versions_read.push((key.clone(), info.map(|(version, _)| version)));
            let size = info.map(|(_, size)| size).filter(|size| !is_too_large(*size)).unwrap_or(0);
            pending = pending.saturating_add(size.saturating_mul(PARSED));
            pending = pending.saturating_add(info.map_or(0, |_| PER_DOCUMENT));
            largest = largest.max(size);
        }
        pending.saturating_add(self.more_for_model(largest))
    }

    /// The memory that the model of a document takes, as far as it is not counted yet.
    fn more_for_model(&mut self, document: u64) -> u64 {
        if document <= UNRESERVED {
            return 0;
        }
        let model = document.saturating_mul(MODEL).min(MAX_DOCUMENT_MEMORY as u64);
        let more = model.saturating_sub(self.for_model);
        self.for_model = self.for_model.saturating_add(more);
        more
    }

    /// Reserves memory for `count` documents in `size` bytes of consolidated metadata, the largest of `largest` bytes.
    pub(super) async fn reserve_for_copies(&mut self, size: u64, count: u64, largest: u64) -> Result<(), NodeError> {
        let model = self.more_for_model(largest);
        let documents = size.saturating_mul(PARSED).saturating_add(count.saturating_mul(PER_DOCUMENT));
        self.reserve(documents.saturating_add(model)).await
    }

    /// The number of requests that are made at a time: one if the store answers at once.
    fn concurrency(&self) -> usize {
        if self.distant { CONCURRENT_REQUESTS } else { 1 }
    }

    /// Reserves memory for documents.
    async fn reserve(&mut self, bytes: u64) -> Result<(), NodeError> {
        self.needed = self.needed.saturating_add(bytes);
        let limit = self.context.max_memory();
        if self.needed > limit {
            return Err(ArrayError::from(MemoryError::TooMuch { needed: self.needed, limit }).into());
        }
        let missing = self.needed.max(self.expected).saturating_sub(self.reserved);
        if self.needed <= UNRESERVED && self.expected == 0 || missing == 0 {
            return Ok(());
        }
        self.memory.push(self.context.reserve_memory(&self.memory, missing).await?);
        self.reserved = self.reserved.saturating_add(missing);
        Ok(())
    }

    /// After a failure: the first reservation to retry with, if this walk failed only because it held some memory
    /// already, and a request that holds memory does not wait for more.
    pub(crate) fn better_expectation(&self, error: &NodeError) -> Option<u64> {
        let NodeError::Array(ArrayError::Memory(MemoryError::Busy { .. } | MemoryError::TooManyRequests { .. })) =
            error
        else {
            return None;
        };
        let better = self.needed.saturating_mul(2).min(self.context.max_memory());
        (!self.memory.is_empty() && better > self.expected).then_some(better)
    }

    /// The names directly below a prefix. Keys are those that may be documents of the draft, and may be others.
    pub(crate) async fn list(&mut self, prefix: &Prefix, purpose: Purpose) -> Result<Listed, NodeError> {
        if self.left_out.covers(prefix.as_str()) {
            return Ok(Listed { prefixes: Vec::new(), keys: Vec::new() });
        }
        let rest = listing::MAX_LISTED.saturating_sub(self.entries);
        if let Some(prefixes) = self.copies.names(prefix) {
            return self.count(Listed { prefixes, keys: Vec::new() }, rest);
        }
        if self.is_unlisted(prefix) {
            let listed = match listing::list_whole(self.context, prefix, rest).await {
                Ok((listed, hash)) => {
                    self.listed.push((prefix.clone(), hash));
                    listed
                }
                Err(NodeError::Store(StoreError::Unsupported { .. })) => self.named_children(prefix).await?,
                Err(error) => return Err(error),
            };
            return self.count(listed, rest);
        }
        let mut scanned = self.scans.listed(prefix);
        if scanned.is_none() && !self.ahead.has_listed(prefix) {
            self.scan(prefix, purpose).await?;
            scanned = self.scans.listed(prefix);
        }
        let listed = match scanned {
            Some(listed) => listed,
            None => {
                let (listed, hash) = match self.ahead.take_listed(prefix, rest) {
                    Some(found) => found,
                    None => listing::list_whole(self.context, prefix, rest).await?,
                };
                self.listed.push((prefix.clone(), hash));
                self.scans.earn();
                listed
            }
        };
        self.count(listed, rest)
    }

    /// Scans the keys below a prefix. Below the root of several stores these are asked one by one instead, so that each
    /// is known by its failure.
    pub(super) async fn scan(&mut self, prefix: &Prefix, purpose: Purpose) -> Result<(), ArrayError> {
        if prefix.is_root() && !self.mounts.is_empty() {
            return Ok(());
        }
        if self.scans.is_empty() {
            self.read_before_scans = self.versions_read.len();
        }
        self.scans.scan(self.context, prefix, purpose).await
    }

    /// Scans the members of a group, all of which a probe looks up, unless they have been scanned. Where scans record
    /// versions, that takes a call for each document that exists, instead of several for each that may exist.
    pub(super) async fn scan_many(&mut self, group: &Prefix) -> Result<(), ArrayError> {
        match self.scans.have_versions() && self.scans.listed(group).is_none() {
            true => self.scan(group, Purpose::Members(1)).await,
            false => Ok(()),
        }
    }

    /// Counts the entries of a listing. Fails if there are more than `rest`.
    fn count(&mut self, listed: Listed, rest: usize) -> Result<Listed, NodeError> {
        let entries = listed.prefixes.len().saturating_add(listed.keys.len());
        if entries > rest {
            return Err(too_many_nodes());
        }
        self.entries = self.entries.saturating_add(entries).saturating_add(1);
        Ok(listed)
    }

    /// True if everything read is of one commit, as it is if nothing was committed since. Otherwise everything is read
    /// again: first the listings, then the versions of all documents in one snapshot. A document with the same version
    /// had it all along, so also when the listings were the same.
    pub(crate) async fn validate(&mut self) -> Result<bool, NodeError> {
        let has_read_one = self.listed.is_empty() && self.scans.is_empty() && self.pages.is_empty();
        if has_read_one && self.named.is_empty() && self.copies.is_empty() {
            return Ok(true);
        }
        if self.watermark.is_some() && self.watermark == self.context.store.watermark_below(&self.top).await? {
            return Ok(true);
        }
        if let Some(unscanned) = self.read_before_unchanged_scans() {
            let cost = Cost::of(Work::Lookups, unscanned.len() as u64);
            return self.context.run_future(cost, self.are_current(unscanned)).await?;
        }
        if !self.scans.validate(self.context).await? {
            return Ok(false);
        }
        let lookups = self.versions_read.len().saturating_add(self.entries);
        self.context.run_future(Cost::of(Work::Lookups, lookups as u64), self.has_same_versions()).await?
    }

    /// The documents that no scan found, if all scans found what was there when the walk began, and if these documents had
    /// been read before. If they are still current, everything was so when the first scan began.
    fn read_before_unchanged_scans(&self) -> Option<Vec<(Key, Option<Version>)>> {
        let has_listed = !self.listed.is_empty() || !self.pages.is_empty() || !self.named.is_empty();
        if has_listed || !self.copies.is_empty() || !self.scans.are_unchanged() {
            return None;
        }
        let mut unscanned = Vec::new();
        for (at, (key, version)) in self.versions_read.iter().enumerate() {
            match self.scans.version(key) {
                Some(scanned) if scanned == *version => {}
                None if at < self.read_before_scans => unscanned.push((key.clone(), *version)),
                _ => return None,
            }
        }
        Some(unscanned)
    }

    async fn has_same_versions(&mut self) -> Result<bool, NodeError> {
        for page in &self.pages {
            if !page.validate(self.context).await? {
                return Ok(false);
            }
        }
        for batch in self.listed.chunks(self.concurrency()) {
            let lists = batch.iter().map(|(prefix, _)| listing::list_hash(self.context, prefix));
            let now = try_join_all(lists).await?;
            if batch.iter().zip(now).any(|((_, before), now)| *before != now) {
                return Ok(false);
            }
        }
        self.versions_read.sort_unstable();
        self.versions_read.dedup();
        let mut unscanned = Vec::new();
        for (key, version) in &self.versions_read {
            match self.scans.version(key) {
                None => unscanned.push((key.clone(), *version)),
                Some(now) if now == *version => {}
                Some(_) => return Ok(false),
            }
        }
        self.are_current(unscanned).await
    }

    /// True if all of these documents have these versions.
    async fn are_current(&self, documents: Vec<(Key, Option<Version>)>) -> Result<bool, NodeError> {
        let keys: Vec<Key> = documents.iter().map(|(key, _)| key.clone()).collect();
        let snapshot = self.context.store.snapshot(&keys).await?;
        snapshot.stat_many(&keys).await?;
        for (key, version) in documents {
            if snapshot.meta(&key).await?.map(|info| info.version) != version {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_too_large(size: u64) -> bool {
    size > MAX_DOCUMENT_SIZE as u64
}

/// The size of documents in bytes.
pub(super) fn weight<'a>(documents: impl Iterator<Item = &'a Text>) -> u64 {
    documents.flatten().map(|document| document.len() as u64).fold(0, u64::saturating_add)
}
