//! Rules for node names.
//!
//! These are the rules of the dialects, and one more: the name of a metadata document (`zarr.json`, `.zarray` …) is
//! reserved in v2 and v3, because a hierarchy can have documents of both.

use crate::{Dialect, text::truncated};

/// A dialect does not allow a node name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} does not allow the node name {name}: {reason}")]
pub struct NameError {
    /// The dialect.
    pub dialect: Dialect,
    /// The name, truncated.
    pub name: String,
    /// The reason.
    pub reason: &'static str,
}

/// The maximum length of a node name, and of a node path without its leading `/`, in bytes: a key has at most 1024
/// bytes, and the longest metadata key of v2 and v3 ends in `/zarr.json`.
pub const MAX_NAME_LEN: usize = 1014;

/// The names of the documents of v2 and v3 below the prefix of their node.
const DOCUMENT_NAMES: [&str; 5] = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// The maximum length of a node name in the draft, in characters.
const MAX_DRAFT_NAME_CHARS: usize = 255;

/// True if the document of a node, or consolidated metadata, has this name.
pub fn is_document_name(name: &str) -> bool {
    DOCUMENT_NAMES.contains(&name)
}

/// Validates the name of a new node.
///
/// - All dialects: not empty, not `.` or `..`, without `/` and control characters, at most [`MAX_NAME_LEN`] bytes.
/// - v3 ([node names](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#node-names)): not only periods,
///   without the prefix `__`. The recommended set of characters is not enforced.
/// - v2 ([logical storage paths](https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html#logical-storage-paths)):
///   without `\`, which is read as `/` there.
/// - draft ([node
///   names](https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/core/v3.0.html#node-names)): up to 255
///   of the characters `a-z`, `A-Z`, `0-9`, `-`, `_` and `.`, and not only periods.
pub fn check(dialect: Dialect, name: &str) -> Result<(), NameError> {
    let reason = violates_general_rules(name).or_else(|| match dialect {
        Dialect::V2 => v2(name),
        Dialect::V3 => v3(name),
        Dialect::Draft => draft(name),
    });
    match reason {
        Some(reason) => Err(NameError { dialect, name: truncated(name), reason }),
        None => Ok(()),
    }
}

fn violates_general_rules(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("it is a relative path"),
        _ if name.len() > MAX_NAME_LEN => Some("it is longer than 1014 bytes"),
        _ if name.contains('/') => Some("it has a \"/\""),
        _ if name.contains(char::is_control) => Some("it has a control character"),
        _ => None,
    }
}

fn v2(name: &str) -> Option<&'static str> {
    if name.contains('\\') {
        return Some("it has a \"\\\", which is read as a \"/\"");
    }
    reserved_for_documents(name)
}

fn v3(name: &str) -> Option<&'static str> {
    if name.starts_with("__") {
        return Some("it begins with \"__\", which is reserved");
    }
    has_only_periods(name).or_else(|| reserved_for_documents(name))
}

fn draft(name: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.bytes().all(allowed) {
        return Some("it has other characters than a-z, A-Z, 0-9, \"-\", \"_\" and \".\"");
    }
    if name.len() > MAX_DRAFT_NAME_CHARS {
        return Some("it is longer than 255 characters");
    }
    has_only_periods(name)
}

fn has_only_periods(name: &str) -> Option<&'static str> {
    name.bytes().all(|byte| byte == b'.').then_some("it consists of periods")
}

fn reserved_for_documents(name: &str) -> Option<&'static str> {
    is_document_name(name).then_some("it is reserved for metadata documents")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dialects that allow a name.
    fn allowed(name: &str) -> Vec<&'static str> {
        Dialect::ALL.into_iter().filter(|&dialect| check(dialect, name).is_ok()).map(Dialect::name).collect()
    }

    #[test]
    fn node_names_follow_the_rules_of_each_dialect() {
        for (name, dialects) in [
            ("foo", &["v3", "v2", "draft"][..]),
            ("Foo-1_2.3", &["v3", "v2", "draft"]),
            ("c", &["v3", "v2", "draft"]),
            ("meta", &["v3", "v2", "draft"]),
            ("0.0", &["v3", "v2", "draft"]),
            ("größe ☃", &["v3", "v2"]),
            ("a b", &["v3", "v2"]),
            ("a\\b", &["v3"]),
            ("a~b", &["v3", "v2"]),
            ("__a", &["v2", "draft"]),
            ("_a", &["v3", "v2", "draft"]),
            ("...", &["v2"]),
            ("zarr.json", &["draft"]),
            (".zarray", &["draft"]),
            (".zmetadata", &["draft"]),
            ("Zarr.json", &["v3", "v2", "draft"]),
            ("", &[]),
            (".", &[]),
            ("..", &[]),
            ("a/b", &[]),
            ("/", &[]),
            ("a\u{7}", &[]),
            ("a\u{85}", &[]),
        ] {
            assert_eq!(allowed(name), dialects, "{name:?}");
        }
    }

    #[test]
    fn node_names_have_a_maximum_length() {
        assert_eq!(allowed(&"a".repeat(255)), ["v3", "v2", "draft"]);
        assert_eq!(allowed(&"a".repeat(256)), ["v3", "v2"]);
        assert_eq!(allowed(&"a".repeat(MAX_NAME_LEN)), ["v3", "v2"]);
        assert_eq!(allowed(&"a".repeat(MAX_NAME_LEN + 1)), [""; 0]);
        let error = check(Dialect::V3, &"é".repeat(MAX_NAME_LEN)).unwrap_err();
        assert!(error.name.len() <= 160, "{error}");
    }

    #[test]
    fn error_truncates_and_escapes_the_name() {
        let error = check(Dialect::V3, "__a\n").unwrap_err();
        assert_eq!(error.to_string(), "v3 does not allow the node name __a\u{fffd}: it has a control character");
    }
}
