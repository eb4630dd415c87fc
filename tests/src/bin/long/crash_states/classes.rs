//! Classes of files by their role in the store, and the scenario that must detect their missing syncs.

use zarrd_store_local::IndexKind;

/// A class of files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// Path patterns relative to the store's directory: `*` matches any text without a slash, `**` any text.
    patterns: &'static [&'static str],
    /// The kind of run that fails without the syncs; `None` if nothing depends on them.
    pub(crate) noticed_by: Option<&'static str>,
}

/// All classes. Each one with a kind is a negative control.
pub(crate) const CLASSES: &[Class] = &[
    Class { name: "log", patterns: &["log/**"], noticed_by: LOG },
    Class { name: "log-dir", patterns: &["log"], noticed_by: LOG },
    Class { name: "log-spare", patterns: &["log/spare-*"], noticed_by: Some("start") },
    Class { name: "log-bulk", patterns: &["log/*.bulk"], noticed_by: Some("large") },
    Class { name: "value", patterns: &["values/*/*"], noticed_by: Some("steady") },
    Class { name: "value-parts", patterns: &["values/*/*/*"], noticed_by: Some("uploads") },
    Class { name: "value-dirs", patterns: &["values/*"], noticed_by: Some("steady") },
    Class { name: "values-dir", patterns: &["values"], noticed_by: Some("create") },
    Class { name: "index", patterns: &["index*/**"], noticed_by: Some("steady") },
    Class { name: "index-dirs", patterns: &["index*"], noticed_by: Some("create") },
    Class { name: "root-dir", patterns: &[""], noticed_by: Some("create") },
    Class { name: "identity", patterns: &["zarrd.*"], noticed_by: Some("create") },
    Class { name: "sled-db", patterns: &["index*/db"], noticed_by: Some("reuse") },
    Class { name: "sled-blobs", patterns: &["index*/blobs/*", "index*/blobs"], noticed_by: Some("blobs") },
    Class { name: "sled-snapshots", patterns: &["index*/snap.*"], noticed_by: Some("start") },
    Class { name: "sled-conf", patterns: &["index*/conf"], noticed_by: Some("create") },
    // A torn or missing marker only costs a check of all entries.
    Class { name: "clean-shutdown", patterns: &["clean-shutdown*"], noticed_by: None },
    Class { name: "generation", patterns: &["generation*"], noticed_by: Some("compact") },
];

/// The kind that detects missing syncs of the log.
const LOG: Option<&str> = Some("steady");

/// The store's directory within the recorded one.
pub(crate) const STORE: &str = "store";

impl Class {
    pub(crate) fn named(name: &str) -> &'static Self {
        let known = || CLASSES.iter().map(|class| class.name).collect::<Vec<_>>().join(", ");
        CLASSES
            .iter()
            .find(|class| class.name == name)
            .unwrap_or_else(|| panic!("unknown class {name}; known classes: {}", known()))
    }

    /// True if stores with this index have files of this class.
    pub(crate) fn concerns(&self, index: IndexKind) -> bool {
        index == IndexKind::Sled || !self.name.starts_with("sled-")
    }

    /// True if a path of the recorded directory belongs to this class.
    pub(crate) fn has(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(STORE) else { return false };
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        self.patterns.iter().any(|pattern| matches(pattern, rest))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("**") {
        return (0..=text.len()).any(|end| text.is_char_boundary(end) && matches(rest, &text[end..]));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        let end = text.find('/').unwrap_or(text.len());
        return (0..=end).any(|end| text.is_char_boundary(end) && matches(rest, &text[end..]));
    }
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some(one), Some(other)) if one == other => matches(&pattern[one.len_utf8()..], &text[one.len_utf8()..]),
        _ => false,
    }
}
