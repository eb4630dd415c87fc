//! Claims on the growth of an array, in stores whose keys are changed one by one by any number of servers.
//!
//! Appends share the edge chunk, whose elements are outside of the array until its document is written. So whoever appends to
//! an array, or changes its shape, holds the claim of the array meanwhile: the key `.zarrd/append` below it. It is set by
//! compare-and-swap, renewed every two minutes, and may be taken over 15 minutes later by the clock of the store.
//!
//! A process that pauses may go on after its claim was taken over. So each of its changes has a condition on a version that was
//! read before the claim was last [verified](claim::GrowthClaim::verify): it fails if the new holder has changed that key. Whoever
//! takes a claim over changes the array's document first, by a newline at its end, so that the last step of the former
//! holder fails in any case.
//!
//! Whoever creates an array with elements holds the same claim meanwhile, or two servers would write over each other's chunks.
//!
//! The claim is next to the document, and not at the top of the store, since servers open one bucket at different prefixes, or
//! mount it. Services erase without conditions, so a claim that is not needed any more is not erased there: its record says
//! that it is free, and the next append swaps it.

pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod creation;
pub(crate) mod outcome;
mod record;
