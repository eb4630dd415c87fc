//! The paths of nodes.

use std::fmt;

/// The path of a node from the root of the store, e.g. `/lab/exp1/foo`; the root is `/`.
///
/// Its segments are those of a store prefix: none is empty, `.` or `..`, and none has a control character. A dialect's
/// narrower rules for names are enforced where nodes are created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePath {
    /// The segments joined by `/`, without one at either end; empty for the root.
    inner: String,
}

/// The reason why a text is not a [`NodePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A segment is empty.
    #[error("a segment of the path is empty")]
    EmptySegment,
    /// A segment is `.` or `..`.
    #[error("a segment of the path is `.` or `..`")]
    DotSegment,
    /// A control character.
    #[error("there is a control character in the path")]
    ControlCharacter,
    /// The text is longer than any key.
    #[error("the path is longer than {MAX_PATH_LEN} bytes")]
    TooLong,
}

/// The longest path in bytes: what leaves no room for the shortest metadata key names no node.
const MAX_PATH_LEN: usize = 1024;

impl NodePath {
    /// The root.
    pub fn root() -> Self {
        Self { inner: String::new() }
    }

    /// Parses a path. One `/` at the beginning and one at the end mean nothing.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let text = text.strip_prefix('/').unwrap_or(text);
        let inner = text.strip_suffix('/').unwrap_or(text);
        if inner.is_empty() {
            return if text.is_empty() { Ok(Self::root()) } else { Err(PathError::EmptySegment) };
        }
        if inner.len() > MAX_PATH_LEN {
            return Err(PathError::TooLong);
        }
        for segment in inner.split('/') {
            match segment {
                "" => return Err(PathError::EmptySegment),
                "." | ".." => return Err(PathError::DotSegment),
                _ if segment.chars().any(char::is_control) => return Err(PathError::ControlCharacter),
                _ => {}
            }
        }
        Ok(Self { inner: inner.to_owned() })
    }

    /// True if this is the root.
    pub fn is_root(&self) -> bool {
        self.inner.is_empty()
    }

    /// The path without the leading `/`: `lab/exp1/foo`, and the empty text for the root.
    pub fn relative(&self) -> &str {
        &self.inner
    }

    /// The text that keys of the node begin with: `lab/exp1/foo/`, and the empty text for the root.
    pub fn key_prefix(&self) -> String {
        if self.is_root() { String::new() } else { format!("{}/", self.inner) }
    }

    /// The last segment; the root has none.
    pub fn name(&self) -> Option<&str> {
        self.inner.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The node that holds this one; none holds the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let inner = self.inner.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self { inner: inner.to_owned() })
    }

    /// The nodes above this one, the nearest first, the root last.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// The part of this path below `ancestor`, without a leading `/`; `Some("")` for the ancestor itself.
    pub fn relative_to<'a>(&'a self, ancestor: &Self) -> Option<&'a str> {
        if ancestor.is_root() {
            return Some(&self.inner);
        }
        let rest = self.inner.strip_prefix(&ancestor.inner)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_and_validated() {
        for (text, relative) in [("", ""), ("/", ""), ("a", "a"), ("/a/b", "a/b"), ("a/b/", "a/b")] {
            assert_eq!(NodePath::parse(text).unwrap().relative(), relative, "{text}");
        }
        for (text, why) in [
            ("//", PathError::EmptySegment),
            ("a//b", PathError::EmptySegment),
            ("a/../b", PathError::DotSegment),
            ("a/\u{7}", PathError::ControlCharacter),
        ] {
            assert_eq!(NodePath::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn relatives_of_a_path() {
        let path = NodePath::parse("/a/b/c").unwrap();
        assert_eq!(path.to_string(), "/a/b/c");
        assert_eq!(path.name(), Some("c"));
        assert_eq!(path.key_prefix(), "a/b/c/");
        let above: Vec<_> = path.ancestors().map(|node| node.to_string()).collect();
        assert_eq!(above, ["/a/b", "/a", "/"]);
        assert_eq!(path.relative_to(&NodePath::parse("a").unwrap()), Some("b/c"));
        assert_eq!(path.relative_to(&NodePath::root()), Some("a/b/c"));
        assert_eq!(path.relative_to(&path), Some(""));
        assert_eq!(NodePath::parse("ab").unwrap().relative_to(&NodePath::parse("a").unwrap()), None);
        assert_eq!((NodePath::root().name(), NodePath::root().parent()), (None, None));
    }
}
