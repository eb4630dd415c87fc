//! Listing many groups with one scan over their keys.
//!
//! Listing the names directly below a prefix costs a seek, and another for each child. A scan goes from key to key, and
//! is far cheaper if most keys are documents. The number of scanned keys is bounded by what they save: documents and
//! children earn credit, all other keys spend it. Once it is spent the scan stops, and prefixes that it did not finish
//! are listed by seeks.
//!
//! Of a near store that is read key by key, such as a directory, scans also record the versions of documents: to look up each
//! takes several system calls, and as many again to validate it.

use std::{collections::HashMap, time::Instant};

use xxhash_rust::xxh3::Xxh3;
use zarrd_executor::{Cost, Work};
use zarrd_store::{Key, ListingState, MAX_PAGE_ENTRIES, PageRequest, Prefix, Version};

use super::{
    listing::Listed,
    scanned_part::{ScannedPart, note},
    scanned_versions::{ScannedVersions, is_recorded},
};
use crate::{context::Context, error::ArrayError, memory::claim::Permit, metadata::keys::NAMES};

/// The initial credit of a walk, in keys.
const FIRST_CREDIT: u64 = 64;

/// The credit for a child or node found: it saves a look-up that costs about as much as so many keys.
const PER_NODE: u64 = 8;

/// The credit for a listing without a scan. A scan spends at least twice as much, so at most every second listing
/// starts one in vain.
const PER_LISTING: u64 = 8;

/// The smallest page, in keys.
const SMALLEST: u64 = 16;

/// The most memory for the findings of one walk's scans, in bytes.
const MAX_MEMORY: u64 = 64 << 20;

/// The memory of a directory in addition to its name, in bytes.
const DIRECTORY: u64 = 160;

/// The memory that is reserved at a time, in bytes.
const RESERVED_AT_ONCE: u64 = 1 << 20;

/// The purpose of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// To find the members of a group, those of its members, and so on, so many levels down.
    Members(u32),
    /// To find the first node below the prefix.
    FirstNode,
}

impl Purpose {
    /// The levels below the prefix that are listed; `None` up to the first node.
    fn levels(self) -> Option<u32> {
        match self {
            Self::Members(levels) => Some(levels),
            Self::FirstNode => None,
        }
    }
}

/// The findings of the scans of one walk.
pub(crate) struct Scans {
    directories: Vec<Directory>,
    /// The prefixes where scans started.
    roots: HashMap<String, usize>,
    /// The parts of the keys that were scanned.
    parts: Vec<ScannedPart>,
    /// The versions of the scanned documents, if these are recorded.
    versions: Option<ScannedVersions>,
    /// True if all that was scanned had been recorded with the same state when the first scan began.
    unchanged: bool,
    began: Instant,
    credit: u64,
    /// True if no page takes a round trip.
    near: bool,
    memory: u64,
    reserved: u64,
    permits: Vec<Permit>,
}

/// A prefix with keys below it.
struct Directory {
    name: Box<str>,
    /// The directories directly below it, in key order.
    below: Vec<usize>,
    /// The bits of the [`NAMES`] that it has.
    documents: u8,
    /// The keys directly below it that may be documents of the draft.
    others: Vec<Box<str>>,
    /// True if the scan finished it.
    complete: bool,
}

/// The findings about a prefix that a scan finished.
enum ScannedPrefix<'s> {
    /// There are keys below it.
    Directory(&'s Directory),
    /// There are none.
    Nothing,
}

/// The directories that a scan is in, the outermost first, each with the length of its prefix.
struct Place {
    text: String,
    open: Vec<(usize, usize)>,
}

/// A scan in progress.
struct Scan {
    purpose: Purpose,
    place: Place,
    part: ScannedPart,
    hash: Xxh3,
    /// The states of the pages so far.
    states: Vec<Option<ListingState>>,
    /// The next page; `None` once the scan is done.
    page: Option<PageRequest>,
}

impl Default for Scans {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            roots: HashMap::new(),
            parts: Vec::new(),
            versions: None,
            unchanged: true,
            began: Instant::now(),
            credit: FIRST_CREDIT,
            near: true,
            memory: 0,
            reserved: 0,
            permits: Vec::new(),
        }
    }
}

impl Scans {
    /// The scans of a store, each page of which takes a round trip unless it is near.
    pub(crate) fn new(near: bool) -> Self {
        Self { near, ..Self::default() }
    }

    /// The same scans, which record the versions of documents, too.
    pub(crate) fn with_versions(self) -> Self {
        Self { versions: Some(ScannedVersions::default()), ..self }
    }

    /// True if the versions of documents are recorded.
    pub(crate) fn have_versions(&self) -> bool {
        self.versions.is_some()
    }

    /// The version of a document, `None` inside if there is none, as scans found it: the last time when they were
    /// [validated](Self::validate), if they were.
    pub(crate) fn version(&self, document: &Key) -> Option<Option<Version>> {
        let found = self.versions.as_ref()?.get(document);
        let is_known = || is_recorded(document) && self.find(document.parent().as_str()).is_some();
        (found.is_some() || is_known()).then_some(found)
    }

    /// The names directly below a prefix, if a scan finished it. Keys are those that may be documents of the draft.
    pub(crate) fn listed(&self, prefix: &Prefix) -> Option<Listed> {
        Some(match self.find(prefix.as_str())? {
            ScannedPrefix::Nothing => Listed { prefixes: Vec::new(), keys: Vec::new() },
            ScannedPrefix::Directory(directory) => Listed {
                prefixes: directory
                    .below
                    .iter()
                    .filter_map(|id| Some(self.directories.get(*id)?.name.to_string()))
                    .collect(),
                keys: directory.others.iter().map(ToString::to_string).collect(),
            },
        })
    }

    /// The [`NAMES`] directly below a prefix, one bit for each, if a scan finished it.
    pub(crate) fn documents(&self, prefix: &str) -> Option<u8> {
        Some(match self.find(prefix)? {
            ScannedPrefix::Nothing => 0,
            ScannedPrefix::Directory(directory) => directory.documents,
        })
    }

    /// Earns the credit of a listing without a scan.
    pub(crate) fn earn(&mut self) {
        self.credit = self.credit.saturating_add(PER_LISTING);
    }

    /// True if nothing was scanned.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Scans the keys below a prefix as far as the credit goes: a first part at once, the rest in turn.
    pub(crate) async fn scan(
        &mut self,
        context: &Context,
        prefix: &Prefix,
        purpose: Purpose,
    ) -> Result<(), ArrayError> {
        if self.credit < SMALLEST || self.memory >= MAX_MEMORY {
            return Ok(());
        }
        let mut scan = Scan {
            purpose,
            place: self.begin(prefix),
            part: ScannedPart { prefix: prefix.clone(), last: None, keys: 0, hash: 0 },
            hash: Xxh3::new(),
            states: Vec::new(),
            page: Some(PageRequest::first(self.page(purpose, 0))),
        };
        let few = Work::Scan.limits().at_once.and_then(|keys| usize::try_from(keys).ok()).unwrap_or(0);
        self.advance(context, &mut scan, few).await?;
        if scan.page.is_some() {
            context.run_future(Cost::of(Work::Scan, u64::MAX), self.advance(context, &mut scan, usize::MAX)).await??;
        }
        let Scan { mut part, mut place, hash, states, .. } = scan;
        if part.last.is_none() {
            self.close(&mut place, 0);
        }
        let state = ListingState::of_pages(states);
        let record = |state| context.listing_states.record(prefix, purpose.levels(), state, self.began);
        self.unchanged &= state.is_some_and(record);
        part.hash = hash.digest128();
        self.parts.push(part);
        Ok(())
    }

    /// Continues a scan until it is done, or for so many keys.
    async fn advance(&mut self, context: &Context, scan: &mut Scan, keys: usize) -> Result<(), ArrayError> {
        while scan.part.keys < keys
            && let Some(page) = scan.page.take()
        {
            let limit = page.limit.min(keys.saturating_sub(scan.part.keys));
            let page = PageRequest { limit, ..page };
            let found = context.store.list_prefix(&scan.part.prefix, page).await?;
            scan.states.push(found.state);
            let mut nodes = false;
            for entry in &found.keys {
                note(&mut scan.hash, &entry.key);
                nodes |= self.take(&mut scan.place, &entry.key, scan.purpose);
                let memory = self.versions.as_mut().map_or(0, |versions| versions.record(entry));
                self.memory = self.memory.saturating_add(memory);
            }
            scan.part.keys = scan.part.keys.saturating_add(found.keys.len());
            scan.part.last = found.keys.last().map(|entry| entry.key.clone()).filter(|_| found.cursor.is_some());
            let enough = nodes && matches!(scan.purpose, Purpose::FirstNode);
            let continues = self.credit >= SMALLEST && !enough && self.reserve(context);
            let page = self.page(scan.purpose, scan.part.keys);
            scan.page = found.cursor.filter(|_| continues).map(|cursor| PageRequest::after(page, cursor));
        }
        Ok(())
    }

    /// True if all that was scanned, and the versions of its documents, were the same at the start of the walk.
    pub(crate) fn are_unchanged(&self) -> bool {
        self.unchanged
    }

    /// True if all that was scanned has the same keys now. Then the recorded versions are current, too.
    pub(crate) async fn validate(&mut self, context: &Context) -> Result<bool, ArrayError> {
        let mut versions = self.versions.take().map(|_| ScannedVersions::default());
        for part in &self.parts {
            let cost = Cost::of(Work::Lookups, part.keys as u64);
            if !context.run_future(cost, part.is_current(context, versions.as_mut())).await?? {
                return Ok(false);
            }
        }
        self.versions = versions;
        Ok(true)
    }

    /// The number of keys of the next page of a scan with `before` keys before it. The first node below a prefix is
    /// mostly among its first keys.
    fn page(&self, purpose: Purpose, before: usize) -> usize {
        let page = usize::try_from(self.credit.max(SMALLEST)).unwrap_or(MAX_PAGE_ENTRIES).min(MAX_PAGE_ENTRIES);
        match purpose {
            Purpose::FirstNode if self.near => {
                page.min(before.max(usize::try_from(SMALLEST).unwrap_or(MAX_PAGE_ENTRIES)))
            }
            Purpose::FirstNode | Purpose::Members(_) => page,
        }
    }

    fn begin(&mut self, prefix: &Prefix) -> Place {
        let text = prefix.as_str().to_owned();
        let root = self.directory("");
        self.roots.insert(text.clone(), root);
        Place { open: vec![(root, text.len())], text }
    }

    fn directory(&mut self, name: &str) -> usize {
        self.memory = self.memory.saturating_add(DIRECTORY + name.len() as u64);
        self.directories.push(Directory {
            name: name.into(),
            below: Vec::new(),
            documents: 0,
            others: Vec::new(),
            complete: false,
        });
        self.directories.len().saturating_sub(1)
    }

    /// Adds the next key of a scan; returns whether it is the document of a node.
    fn take(&mut self, place: &mut Place, key: &Key, purpose: Purpose) -> bool {
        let key = key.as_str();
        let context =
            place.open.iter().take_while(|(_, length)| place.text.get(..*length) == key.get(..*length)).count();
        self.close(place, context);
        let from = place.open.last().map_or(0, |(_, length)| *length);
        place.text.truncate(from);
        let (directories, name) =
            key.get(from..).and_then(|rest| rest.rsplit_once('/')).unwrap_or(("", key.get(from..).unwrap_or_default()));
        let mut found = 0;
        for segment in directories.split('/').filter(|segment| !segment.is_empty()) {
            // A name directly below the start of the scan would be looked up on its own.
            found += u64::from(place.open.len() == 1);
            let id = self.directory(segment);
            if let Some(above) = place.open.last().and_then(|(above, _)| self.directories.get_mut(*above)) {
                above.below.push(id);
            }
            place.text.push_str(segment);
            place.text.push('/');
            place.open.push((id, place.text.len()));
        }
        let levels = purpose.levels().map_or(usize::MAX, |levels| levels as usize);
        let within = place.open.len().saturating_sub(1) <= levels;
        let Some(directory) = place.open.last().and_then(|(id, _)| self.directories.get_mut(*id)) else { return false };
        let document = NAMES.iter().position(|candidate| *candidate == name);
        match document {
            Some(bit) => {
                found += u64::from(directory.documents == 0 && within);
                directory.documents |= 1 << bit;
            }
            None if name.contains(".array") || name.contains(".group") => {
                self.memory = self.memory.saturating_add(32 + name.len() as u64);
                directory.others.push(name.into());
            }
            None => {}
        }
        let costs = document.is_none() || !within;
        self.credit = self.credit.saturating_add(found * PER_NODE).saturating_sub(u64::from(costs));
        document.is_some()
    }

    /// Leaves all directories but the outermost `stay`.
    fn close(&mut self, place: &mut Place, stay: usize) {
        for (id, _) in place.open.drain(stay.min(place.open.len())..) {
            if let Some(directory) = self.directories.get_mut(id) {
                directory.complete = true;
            }
        }
    }

    /// Reserves memory for the findings; false if there is no room for more.
    fn reserve(&mut self, context: &Context) -> bool {
        while self.reserved < self.memory {
            let Some(permit) = context.try_reserve_memory(RESERVED_AT_ONCE) else { return false };
            self.permits.push(permit);
            self.reserved = self.reserved.saturating_add(RESERVED_AT_ONCE);
        }
        self.memory < MAX_MEMORY
    }

    /// The findings about a prefix; `None` if no scan finished it.
    fn find(&self, prefix: &str) -> Option<ScannedPrefix<'_>> {
        if self.roots.is_empty() {
            return None;
        }
        let mut at = prefix;
        loop {
            let root = self.roots.get(at).and_then(|root| self.directories.get(*root));
            let finding = root.and_then(|root| self.find_below(root, prefix.get(at.len()..).unwrap_or_default()));
            if finding.is_some() || at.is_empty() {
                return finding;
            }
            let above = at.strip_suffix('/').and_then(|at| at.rfind('/')).map_or(0, |slash| slash + 1);
            at = at.get(..above).unwrap_or_default();
        }
    }

    fn find_below<'s>(&'s self, root: &'s Directory, below: &str) -> Option<ScannedPrefix<'s>> {
        let mut directory = root;
        for segment in below.split_terminator('/') {
            match self.child(directory, segment) {
                Some(child) => directory = child,
                None => return directory.complete.then_some(ScannedPrefix::Nothing),
            }
        }
        directory.complete.then_some(ScannedPrefix::Directory(directory))
    }

    fn child(&self, directory: &Directory, name: &str) -> Option<&Directory> {
        // Keys are sorted with the slash that follows the name.
        let wanted = || name.bytes().chain([b'/']);
        let found = directory.below.binary_search_by(|id| {
            let name = self.directories.get(*id).map(|below| &*below.name).unwrap_or_default();
            name.bytes().chain([b'/']).cmp(wanted())
        });
        found.ok().and_then(|at| directory.below.get(at)).and_then(|id| self.directories.get(*id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(keys: &[&str], complete: bool) -> Scans {
        let mut scans = Scans::default();
        let mut place = scans.begin(&Prefix::parse("g/").unwrap());
        for key in keys {
            scans.take(&mut place, &Key::parse(key).unwrap(), Purpose::Members(64));
        }
        if complete {
            scans.close(&mut place, 0);
        }
        scans
    }

    const KEYS: &[&str] = &[
        "g/a-b/c/zarr.json",
        "g/a-b/zarr.json",
        "g/a/.zattrs",
        "g/a/.zgroup",
        "g/a/b/deep/blob",
        "g/ab/zarr.json",
        "g/blob",
        "g/x.array.json",
        "g/zarr.json",
    ];

    fn names(scans: &Scans, prefix: &str) -> Option<Vec<String>> {
        Some(scans.listed(&Prefix::parse(prefix).unwrap())?.prefixes)
    }

    #[test]
    fn complete_scan_lists_every_child() {
        let scans = scanned(KEYS, true);
        assert_eq!(names(&scans, "g/").unwrap(), ["a-b", "a", "ab"]);
        assert_eq!(names(&scans, "g/a-b/").unwrap(), ["c"]);
        assert_eq!(names(&scans, "g/a/b/").unwrap(), ["deep"]);
        for none in ["g/c/", "g/a/b/other/", "g/ab/", "g/blob/", "g/zz/z/"] {
            assert!(names(&scans, none).unwrap().is_empty(), "{none}");
        }
        assert_eq!(scans.listed(&Prefix::parse("g/").unwrap()).unwrap().keys, ["x.array.json"]);
        assert_eq!(names(&scans, "h/"), None);
        assert_eq!(names(&scans, ""), None);
        let documents = [("g/", 1), ("g/a/", 0b1100), ("g/a-b/c/", 1), ("g/a/b/", 0), ("g/none/", 0)];
        for (prefix, expected) in documents {
            assert_eq!(scans.documents(prefix), Some(expected), "{prefix}");
        }
    }

    #[test]
    fn incomplete_scan_leaves_its_tail_unknown() {
        let scans = scanned(&KEYS[..5], false);
        for unknown in ["g/", "g/a/", "g/a/b/", "g/a/b/deep/", "g/ab/", "g/a/z/"] {
            assert_eq!(names(&scans, unknown), None, "{unknown}");
            assert_eq!(scans.documents(unknown), None, "{unknown}");
        }
        assert_eq!(names(&scans, "g/a-b/").unwrap(), ["c"]);
        assert_eq!(scans.documents("g/a-b/c/"), Some(1));
    }

    #[test]
    fn non_document_keys_spend_the_scan_credit() {
        let mut scans = Scans::default();
        let mut place = scans.begin(&Prefix::parse("g/").unwrap());
        for chunk in 0..1_000 {
            let key = Key::parse(&format!("g/a/c/{chunk:04}/0")).unwrap();
            scans.take(&mut place, &key, Purpose::Members(64));
        }
        assert_eq!(scans.credit, 0);
        scans.take(&mut place, &Key::parse("g/a/zarr.json").unwrap(), Purpose::Members(64));
        assert_eq!(scans.credit, PER_NODE);
        // A document deeper than requested counts as any other key.
        scans.take(&mut place, &Key::parse("g/b/c/zarr.json").unwrap(), Purpose::Members(1));
        assert_eq!(scans.credit, 2 * PER_NODE - 1);
    }
}
