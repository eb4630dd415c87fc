//! Updates of the metadata of a node.

/// The mode of an update that changes several documents, in a store that is written key by key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchMode {
    /// It is not made, since it could be made in part.
    #[default]
    Whole,
    /// It changes one document after the other. One that fails in the middle is completed by repeating it.
    Piecewise,
}
