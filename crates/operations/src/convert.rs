//! Conversions of hierarchies to another dialect.

use zarrd_meta::{Dialect, NodePath, convert::Loss};

use crate::create::LossPolicy;

/// Options of converting a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertOptions {
    /// The dialect to convert to.
    pub dialect: Dialect,
    /// The path to copy to; `None` writes documents over the same chunks.
    pub target: Option<NodePath>,
    /// The treatment of properties that the dialect cannot represent. The original stays, so they are usually allowed
    /// and reported.
    pub losses: LossPolicy,
    /// The treatment of documents that the dialect already has at the same paths.
    pub existing: ExistingDocuments,
}

/// What a conversion in place does with documents of the other dialect that exist already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExistingDocuments {
    /// They stay.
    #[default]
    Keep,
    /// They are written anew. Where an array becomes smaller than they had it, the chunks outside are erased.
    Overwrite,
}

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionReport {
    /// The number of nodes converted.
    pub nodes: u64,
    /// The number of chunks copied.
    pub chunks: u64,
    /// Properties that were lost, with the path of their node.
    pub losses: Vec<(NodePath, Loss)>,
}
