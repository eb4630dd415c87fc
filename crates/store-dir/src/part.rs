//! A part of a directory, and its children.

/// Some children of a directory: the names of files and, with a `/` at the end, of directories.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Children {
    /// Sorted by bytes.
    pub(crate) names: Vec<String>,
    /// True if there may be more after the last one.
    pub(crate) more: bool,
}

/// The part of a directory that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'p> {
    /// The prefix of the directory.
    pub(crate) prefix: &'p str,
    /// The children after this text are returned, with the directory that contains it.
    pub(crate) after: &'p str,
    /// The maximum number of children.
    pub(crate) limit: usize,
}
