//! The paths of resources.
//!
//! A key is percent-encoded in a path, except for the unreserved characters of RFC 3986 and `/`.

use std::{borrow::Cow, fmt};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use zarrd_meta::{NodePath, zom};
use zarrd_store::{Key, KeyError, Prefix};

/// Liveness.
pub const HEALTH: &str = "/healthz";
/// Readiness: whether the store accepts writes, see [`Readiness`](crate::health::Readiness).
pub const READY: &str = "/readyz";
/// The metrics.
pub const METRICS: &str = "/metrics";
/// The description of the HTTP contract.
pub const OPENAPI: &str = "/openapi.yaml";
/// The page, for clients that prefer HTML.
pub const PAGE: &str = "/";
/// The path of the page on the root node, as is [`BROWSE_ROOT`].
pub const BROWSE: &str = "/browse";
/// The start of the paths of the page on a node.
pub const BROWSE_ROOT: &str = "/browse/";
/// The template of the path of the page on a node. The path may be empty, which is the root's.
pub const BROWSE_PATH: &str = "/browse/{path}";
/// The start of the paths of the page's files.
pub const ASSETS_ROOT: &str = "/assets/";
/// The template of the path of a file of the page.
pub const ASSET: &str = "/assets/{file}";
/// The path of the store without its slash, which redirects to [`STORE_ROOT`].
pub const STORE: &str = "/store";
/// The path of the root prefix, with which the path of each key begins.
pub const STORE_ROOT: &str = "/store/";
/// The template of the path of a key.
pub const STORE_KEY: &str = "/store/{key}";
/// The template of the path of a prefix other than the root.
pub const STORE_PREFIX: &str = "/store/{prefix}/";
/// The path of the root's elements, as is [`ARRAY_ROOT`].
pub const ARRAY: &str = "/array";
/// The start of the paths of arrays' elements.
pub const ARRAY_ROOT: &str = "/array/";
/// The template of the path of an array's elements. The path may be empty, which is the root's.
pub const ARRAY_PATH: &str = "/array/{path}";
/// The path of the root as a node, as is [`NODE_ROOT`].
pub const NODE: &str = "/node";
/// The start of the paths of nodes.
pub const NODE_ROOT: &str = "/node/";
/// The template of the path of a node. The path may be empty, which is the root's.
pub const NODE_PATH: &str = "/node/{path}";
/// The tokens that the caller administers.
pub const TOKENS: &str = "/token";
/// The template of the path of a token.
pub const TOKEN: &str = "/token/{id}";
/// The share links that the caller made or administers.
pub const SHARES: &str = "/share";
/// The template of the path of a share link as a resource.
pub const SHARE: &str = "/share/{id}";
/// The snapshots of prefixes.
pub const SNAPSHOTS: &str = "/snapshot";
/// The template of the path of a snapshot.
pub const SNAPSHOT: &str = "/snapshot/{id}";
/// The start of the paths that begin with a share link, which precedes the usual path.
pub const SHARE_LINK_ROOT: &str = "/s/";
/// The template of the path of the JSON Schema of a ZOM.
pub const SCHEMA_ZOM: &str = "/schema/zom/{version}";

/// The paths of all resources, and their templates.
pub const TEMPLATES: &[&str] = &[
    HEALTH,
    READY,
    METRICS,
    OPENAPI,
    PAGE,
    BROWSE_PATH,
    ASSET,
    STORE,
    STORE_ROOT,
    STORE_KEY,
    STORE_PREFIX,
    ARRAY_PATH,
    NODE_PATH,
    TOKENS,
    TOKEN,
    SHARES,
    SHARE,
    SNAPSHOTS,
    SNAPSHOT,
    SCHEMA_ZOM,
];

/// The start of the paths of the ZOM's JSON Schemas.
const SCHEMA_ZOM_ROOT: &str = "/schema/zom/";

/// Everything but the unreserved characters and `/`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// True for the first segments of the paths of resources and of those with a share link.
pub fn is_first_segment(segment: &str) -> bool {
    let templates = TEMPLATES.iter().chain([&SHARE_LINK_ROOT]);
    templates.filter_map(|path| path.split('/').nth(1)).any(|first| first == segment)
}

/// The target of a path below [`STORE_ROOT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTarget {
    /// A key.
    Key(Key),
    /// A prefix: the path ends in `/`, or is the root's.
    Prefix(Prefix),
}

/// The treatment of repeated literal `/` in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slashes {
    /// A run counts as one, as clients that join URLs carelessly expect from reads.
    Collapse,
    /// A run is an empty segment, which no key has: an unset shell variable must not change the target of a write.
    Refuse,
}

/// The reason why a path names neither a key nor a prefix, or no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A `%` without two hexadecimal digits after it.
    #[error("the `%` at byte {at} is not followed by two hexadecimal digits")]
    PercentEncoding {
        /// The offset of the `%`.
        at: usize,
    },
    /// The decoded text is not a key or prefix.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The decoded text is not the path of a node.
    #[error(transparent)]
    Node(#[from] zarrd_meta::PathError),
    /// The decoded text is not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
}

/// The path of a key.
pub fn key_path(key: &Key) -> String {
    format!("{STORE_ROOT}{}", encode(key.as_str()))
}

/// The path of a prefix, which ends in `/`.
pub fn prefix_path(prefix: &Prefix) -> String {
    format!("{STORE_ROOT}{}", encode(prefix.as_str()))
}

/// The path of an array's elements.
pub fn array_path(path: &NodePath) -> String {
    format!("{ARRAY_ROOT}{}", encode(path.relative()))
}

/// The path of a node.
pub fn node_path(path: &NodePath) -> String {
    format!("{NODE_ROOT}{}", encode(path.relative()))
}

/// The path of the JSON Schema of a ZOM.
pub fn schema_path(version: zom::ZomFormat) -> String {
    format!("{SCHEMA_ZOM_ROOT}{}", version.dialect())
}

/// Percent-encodes a key, a prefix or a part of one. Of a single segment this is a relative reference, since a `:` is
/// encoded too.
pub fn encode(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, RESERVED)
}

/// Parses the part of a request's path after [`STORE_ROOT`], as received: percent-encoded.
pub fn parse_store(rest: &str, slashes: Slashes) -> Result<StoreTarget, PathError> {
    let rest = match slashes {
        Slashes::Collapse => collapse(rest),
        Slashes::Refuse => Cow::Borrowed(rest),
    };
    let decoded = decode(&rest)?;
    if decoded.is_empty() || decoded.ends_with(b"/") {
        return Ok(StoreTarget::Prefix(Prefix::from_bytes(&decoded)?));
    }
    Ok(StoreTarget::Key(Key::from_bytes(&decoded)?))
}

/// Parses the path of a request for an array's elements, as received: [`ARRAY`], or [`ARRAY_ROOT`] and more. One `/` at
/// the end is ignored.
pub fn parse_array(path: &str, slashes: Slashes) -> Result<NodePath, PathError> {
    parse_node_path(path.strip_prefix(ARRAY_ROOT).unwrap_or_default(), slashes)
}

/// Parses the path of a request for a node, as [`parse_array`] does: [`NODE`], or [`NODE_ROOT`] and what follows it.
pub fn parse_node(path: &str, slashes: Slashes) -> Result<NodePath, PathError> {
    parse_node_path(path.strip_prefix(NODE_ROOT).unwrap_or_default(), slashes)
}

/// The path of a share link as a resource.
pub fn share_path(id: &str) -> String {
    format!("{SHARES}/{}", encode(id))
}

/// The path of a share link as a credential, which precedes the usual path.
pub fn share_link_path(link: &str) -> String {
    format!("{SHARE_LINK_ROOT}{link}")
}

/// The id in the path of a token or share link.
pub fn parse_credential_id(path: &str) -> Option<&str> {
    let below = |parent: &str| path.strip_prefix(parent)?.strip_prefix('/');
    below(TOKENS).or_else(|| below(SHARES)).filter(|id| !id.is_empty() && !id.contains('/'))
}

/// The path of a snapshot.
pub fn snapshot_path(id: &str) -> String {
    format!("{SNAPSHOTS}/{}", encode(id))
}

/// The id in the path of a snapshot.
pub fn parse_snapshot_id(path: &str) -> Option<&str> {
    path.strip_prefix(SNAPSHOTS)?.strip_prefix('/').filter(|id| !id.is_empty() && !id.contains('/'))
}

/// The name in the path of a file of the page.
pub fn parse_asset(path: &str) -> Option<&str> {
    path.strip_prefix(ASSETS_ROOT).filter(|name| !name.is_empty() && !name.contains('/'))
}

/// The model whose JSON Schema a path names.
pub fn parse_schema(path: &str) -> Option<zom::ZomFormat> {
    let name = path.strip_prefix(SCHEMA_ZOM_ROOT)?;
    [zom::ZomFormat::V2, zom::ZomFormat::V3].into_iter().find(|version| version.dialect().name() == name)
}

fn parse_node_path(rest: &str, slashes: Slashes) -> Result<NodePath, PathError> {
    let rest = match slashes {
        Slashes::Collapse => collapse(rest),
        Slashes::Refuse => Cow::Borrowed(rest),
    };
    let decoded = decode(&rest)?;
    let text = std::str::from_utf8(&decoded).map_err(|_| PathError::NotUtf8)?;
    // A leading `/` that the parser of paths would take for the root's is an empty segment here.
    if text.starts_with('/') {
        return Err(zarrd_meta::PathError::EmptySegment.into());
    }
    Ok(NodePath::parse(text)?)
}

/// Percent-decodes a text once. Unlike browsers, rejects a `%` that is not an escape.
pub fn decode(text: &str) -> Result<Cow<'_, [u8]>, PathError> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'%') {
        return Ok(Cow::Borrowed(bytes));
    }
    for (at, _) in text.match_indices('%') {
        let is_hex = |offset: usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
        if !(is_hex(1) && is_hex(2)) {
            return Err(PathError::PercentEncoding { at });
        }
    }
    Ok(percent_decode_str(text).into())
}

fn collapse(path: &str) -> Cow<'_, str> {
    if !path.starts_with('/') && !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut before = '/';
    let collapsed = path.chars().filter(|&next| std::mem::replace(&mut before, next) != '/' || next != '/');
    Cow::Owned(collapsed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Result<StoreTarget, PathError> {
        Ok(StoreTarget::Key(Key::parse(text).unwrap()))
    }

    fn prefix(text: &str) -> Result<StoreTarget, PathError> {
        Ok(StoreTarget::Prefix(Prefix::parse(text).unwrap()))
    }

    #[test]
    fn paths_are_percent_encoded() {
        assert_eq!(key_path(&Key::parse("a b/ü/c:0%?#~").unwrap()), "/store/a%20b/%C3%BC/c%3A0%25%3F%23~");
        assert_eq!(prefix_path(&Prefix::root()), "/store/");
        assert_eq!(prefix_path(&Prefix::parse("a/é/").unwrap()), "/store/a/%C3%A9/");
    }

    #[test]
    fn paths_name_keys_and_prefixes() {
        for slashes in [Slashes::Collapse, Slashes::Refuse] {
            assert_eq!(parse_store("", slashes), prefix(""));
            assert_eq!(parse_store("a/b", slashes), key("a/b"));
            assert_eq!(parse_store("a%2Fb%2f", slashes), prefix("a/b/"));
            assert_eq!(parse_store("a%2520", slashes), key("a%20"), "decoded once");
            assert_eq!(parse_store("a+b", slashes), key("a+b"));
            for (bad, at) in [("%", 0), ("a%zz", 1), ("a%4", 1), ("a%%41", 1)] {
                assert_eq!(parse_store(bad, slashes), Err(PathError::PercentEncoding { at }), "{bad}");
            }
            for (bad, why) in [
                ("a/../b", KeyError::DotSegment { offset: 2 }),
                ("%2e%2E", KeyError::DotSegment { offset: 0 }),
                ("a%2F.", KeyError::DotSegment { offset: 2 }),
                ("a%2F%2Fb", KeyError::EmptySegment { offset: 2 }),
                ("%2Fa", KeyError::EmptySegment { offset: 0 }),
                ("a%00", KeyError::ControlCharacter { offset: 1 }),
                ("a%ff", KeyError::NotUtf8 { offset: 1 }),
            ] {
                assert_eq!(parse_store(bad, slashes), Err(PathError::Key(why)), "{bad}");
            }
        }
    }

    #[test]
    fn repeated_slashes_collapse_for_reads_only() {
        for (path, read) in [("/", prefix("")), ("//a", key("a")), ("a//b", key("a/b")), ("a///", prefix("a/"))] {
            assert_eq!(parse_store(path, Slashes::Collapse), read, "{path}");
            assert!(matches!(parse_store(path, Slashes::Refuse), Err(PathError::Key(_))), "{path}");
        }
    }

    #[test]
    fn paths_name_nodes() {
        let node = |text| Ok(NodePath::parse(text).unwrap());
        for slashes in [Slashes::Collapse, Slashes::Refuse] {
            for root in ["/array", "/array/"] {
                assert_eq!(parse_array(root, slashes), node("/"), "{root}");
            }
            for path in ["/array/a/b", "/array/a/b/", "/array/a%2Fb", "/array/%61/b%2f"] {
                assert_eq!(parse_array(path, slashes), node("/a/b"), "{path}");
            }
            assert_eq!(parse_array("/array/a%2520", slashes), node("a%20"), "decoded once");
            for (bad, why) in [
                ("/array/a%2F%2Fb", PathError::Node(zarrd_meta::PathError::EmptySegment)),
                ("/array/%2Fa", PathError::Node(zarrd_meta::PathError::EmptySegment)),
                ("/array/a/../b", PathError::Node(zarrd_meta::PathError::DotSegment)),
                ("/array/a%00", PathError::Node(zarrd_meta::PathError::ControlCharacter)),
                ("/array/a%ff", PathError::NotUtf8),
                ("/array/%4", PathError::PercentEncoding { at: 0 }),
            ] {
                assert_eq!(parse_array(bad, slashes), Err(why), "{bad}");
            }
        }
        assert_eq!(parse_array("/array//a//b//", Slashes::Collapse), node("/a/b"));
        assert!(parse_array("/array/a//b", Slashes::Refuse).is_err());
        assert_eq!(array_path(&NodePath::root()), ARRAY_ROOT);
        for (path, parsed) in [("/node", "/"), ("/node/", "/"), ("/node/a%20b/c/", "/a b/c")] {
            assert_eq!(parse_node(path, Slashes::Refuse), node(parsed), "{path}");
        }
        assert_eq!(node_path(&NodePath::parse("/a b").unwrap()), "/node/a%20b");
        assert!(parse_node("/node//a", Slashes::Refuse).is_err());
        assert_eq!(array_path(&NodePath::parse("/a b/é").unwrap()), "/array/a%20b/%C3%A9");
    }

    #[test]
    fn paths_name_schemas() {
        for version in [zom::ZomFormat::V2, zom::ZomFormat::V3] {
            assert_eq!(parse_schema(&schema_path(version)), Some(version));
        }
        assert_eq!(schema_path(zom::ZomFormat::V3), "/schema/zom/v3");
        for bad in ["/schema/zom/", "/schema/zom/draft", "/schema/zom/v3/", "/schema/v3"] {
            assert_eq!(parse_schema(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn rendered_paths_parse_back(text in "[^/\\p{Cc}]{1,20}(/[^/\\p{Cc}]{1,20}){0,3}") {
            if let Ok(key) = Key::parse(&text) {
                let path = key_path(&key);
                let rest = path.strip_prefix(STORE_ROOT).unwrap();
                prop_assert!(rest.is_ascii());
                prop_assert_eq!(parse_store(rest, Slashes::Refuse), Ok(StoreTarget::Key(key)));
            }
        }

        #[test]
        fn arbitrary_paths_never_panic(text in "\\PC{0,40}") {
            let _ = parse_store(&text, Slashes::Collapse);
            let _ = parse_store(&text, Slashes::Refuse);
        }
    }
}
