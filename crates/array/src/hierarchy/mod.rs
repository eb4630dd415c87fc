//! Hierarchies: what nodes there are, and changing that.

pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod describe;
pub(crate) mod differences;
pub(crate) mod erase;
pub(crate) mod hierarchies;
pub(crate) mod intents;
pub(crate) mod members;
pub(crate) mod options;
pub(crate) mod parent;
pub(crate) mod patch;
pub(crate) mod plan;
pub(crate) mod replace;
pub(crate) mod shrink;
pub(crate) mod stray_keys;
pub(crate) mod walk;
