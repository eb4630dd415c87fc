//! Paths of nodes.

use std::fmt;

/// The path of a node from the root of the store, e.g. `/lab/exp1/foo`; the root is `/`.
///
/// Segments are not empty, not `.` or `..`, and have no control characters. The narrower rules of dialects are enforced
/// when nodes are created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePath {
    /// The segments, joined by `/`; empty for the root.
    inner: String,
}

/// A text is not a [`NodePath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A segment is empty.
    #[error("a segment of the path is empty")]
    EmptySegment,
    /// A segment is `.` or `..`.
    #[error("a segment of the path is `.` or `..`")]
    DotSegment,
    /// The path has a control character.
    #[error("the path has a control character")]
    ControlCharacter,
    /// The path is longer than any key.
    #[error("the path is longer than {MAX_PATH_LEN} bytes")]
    TooLong,
}

/// The maximum length of a path in bytes: longer ones leave no room for a metadata key.
const MAX_PATH_LEN: usize = 1024;

impl NodePath {
    /// The root path.
    pub fn root() -> Self {
        Self { inner: String::new() }
    }

    /// Parses a path; one leading and one trailing `/` are ignored.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let text = text.strip_prefix('/').unwrap_or(text);
        let inner = text.strip_suffix('/').unwrap_or(text);
        if inner.is_empty() {
            return if text.is_empty() { Ok(Self::root()) } else { Err(PathError::EmptySegment) };
        }
        if inner.len() > MAX_PATH_LEN {
            return Err(PathError::TooLong);
        }
        inner.split('/').try_for_each(check_segment)?;
        Ok(Self { inner: inner.to_owned() })
    }

    /// True if this is the root.
    pub fn is_root(&self) -> bool {
        self.inner.is_empty()
    }

    /// The path without the leading `/`: `lab/exp1/foo`; empty for the root.
    pub fn relative(&self) -> &str {
        &self.inner
    }

    /// The prefix of the node's keys: `lab/exp1/foo/`; empty for the root.
    pub fn key_prefix(&self) -> String {
        if self.is_root() { String::new() } else { [&self.inner, "/"].concat() }
    }

    /// The last segment; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.inner.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The parent; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let inner = self.inner.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self { inner: inner.to_owned() })
    }

    /// The path of a member with this name, which is one segment.
    pub fn member(&self, name: &str) -> Result<Self, PathError> {
        if name.contains('/') {
            return Err(PathError::EmptySegment);
        }
        check_segment(name)?;
        let inner = if self.is_root() { name.to_owned() } else { [&self.inner, "/", name].concat() };
        if inner.len() > MAX_PATH_LEN { Err(PathError::TooLong) } else { Ok(Self { inner }) }
    }

    /// The ancestors, from the parent to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// The path relative to `ancestor`, without a leading `/`; `Some("")` for the ancestor itself.
    pub fn relative_to<'a>(&'a self, ancestor: &Self) -> Option<&'a str> {
        if ancestor.is_root() {
            return Some(&self.inner);
        }
        let rest = self.inner.strip_prefix(&ancestor.inner)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

fn check_segment(segment: &str) -> Result<(), PathError> {
    match segment {
        "" => Err(PathError::EmptySegment),
        "." | ".." => Err(PathError::DotSegment),
        _ if segment.chars().any(char::is_control) => Err(PathError::ControlCharacter),
        _ => Ok(()),
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
    fn member_path_is_the_parsed_one() {
        for parent in ["", "a", "a/b"] {
            let parent = NodePath::parse(parent).unwrap();
            for name in ["c", "c.d", "..", ".", "", "\u{7}", "x/y"] {
                let parsed = NodePath::parse(&format!("{}{name}", parent.key_prefix()));
                match parent.member(name) {
                    Ok(member) => assert_eq!(Ok(member), parsed, "{name}"),
                    Err(_) => assert!(parsed.is_err() || name.is_empty() || name.contains('/'), "{name}"),
                }
            }
            assert_eq!(parent.member(&"n".repeat(MAX_PATH_LEN + 1)), Err(PathError::TooLong));
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
