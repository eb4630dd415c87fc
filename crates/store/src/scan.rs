//! Scans: listings of all keys that begin with a text.

use crate::{Entry, Key, Prefix};

/// A request for one page of the keys that begin with a text, which need not be a whole segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// What the keys begin with.
    pub prefix: String,
    /// The text after which keys and folded prefixes are listed, by their bytes. It need not be a key.
    pub after: String,
    /// The treatment of keys with a `/` after [`prefix`](Self::prefix).
    pub fold: Fold,
    /// The maximum number of entries, clamped to 1..=[`MAX_PAGE_ENTRIES`](crate::MAX_PAGE_ENTRIES).
    pub limit: usize,
    /// The keys that are listed: no text from outside begins hidden ones.
    keys: Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Visible,
    Hidden,
}

/// The treatment of keys with a `/` after the prefix of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// They are listed as all others.
    Nothing,
    /// All that are the same up to that `/` are one prefix, which ends with it.
    Slash,
}

/// A page of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// Keys and folded prefixes, in one order by their bytes.
    pub entries: Vec<Scanned>,
    /// True if there are more. The next page is after the text of the last entry.
    pub more: bool,
}

/// An entry of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// A key.
    Key(Entry),
    /// The common prefix of keys.
    Prefix(Prefix),
}

impl Scanned {
    /// The text of the key or prefix.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Key(entry) => entry.key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

impl Scan {
    /// A scan of the keys that begin with `prefix`, after the text `after`.
    pub fn new(prefix: impl Into<String>, after: impl Into<String>, fold: Fold, limit: usize) -> Self {
        Self { prefix: prefix.into(), after: after.into(), fold, limit, keys: Keys::Visible }
    }

    /// A scan of the hidden keys whose texts begin with the text of a key or prefix, after another text.
    pub(crate) fn hidden(prefix: String, after: String, limit: usize) -> Self {
        Self { prefix, after, fold: Fold::Nothing, limit, keys: Keys::Hidden }
    }

    /// The limit, clamped to its bounds.
    pub fn limit(&self) -> usize {
        self.limit.clamp(1, crate::MAX_PAGE_ENTRIES)
    }

    /// The prefix that contains all keys of the scan; `None` if no key can begin so. For implementations of
    /// [`scan`](crate::ListableStore::scan), as the other methods.
    pub fn parent(&self) -> Option<Prefix> {
        let end = self.prefix.rfind('/').map_or(0, |slash| slash.saturating_add(1));
        let text = self.prefix.get(..end)?;
        match self.keys {
            Keys::Visible => Prefix::parse(text).ok(),
            Keys::Hidden => Prefix::from_stored(text.as_bytes()).ok(),
        }
    }

    /// The least text that a key of the scan can have.
    pub fn start(&self) -> String {
        let least = if self.keys == Keys::Visible { " " } else { "" };
        let first = self.prefix.as_str().max(least);
        if self.after.as_str() < first {
            return first.to_owned();
        }
        match self.folded(&self.after).and_then(|prefix| prefix.upper_bound()) {
            Some(end) => end,
            None => format!("{}\0", self.after),
        }
    }

    /// True if a key at or after the [start](Self::start) is one of the scan.
    pub fn contains(&self, key: &Key) -> bool {
        key.as_str().starts_with(&self.prefix)
    }

    /// The folded prefix that contains a key.
    pub fn folded(&self, key: &str) -> Option<Prefix> {
        if self.fold == Fold::Nothing {
            return None;
        }
        let (name, _) = key.strip_prefix(self.prefix.as_str())?.split_once('/')?;
        Prefix::parse(&format!("{}{name}/", self.prefix)).ok()
    }
}
