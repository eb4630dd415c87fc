//! Plans: which elements of which chunks go where in the answer. Pure, and tested without any store.
//!
//! Indices along one axis ([`AxisIndices`]) are cut by a grid into pieces, each with its indices within the piece and the places in the answer
//! where they go ([`cut`]). The same cut serves an array and its chunks, a shard and its inner chunks, and an uncompressed chunk and the parts
//! of it that lie together. A selection larger than may be assembled at once is cut into [slabs](slabs) first. Where elements are on both sides is said by [`runs`].

mod axis;
mod cut;
mod range;
mod runs;
mod slabs;
#[cfg(test)]
mod tests;

pub(crate) use axis::{AxisIndices, AxisPiece};
pub(crate) use cut::{Cut, Edge, Entry, PickedPoint, Picks, Piece};
pub(crate) use range::{Cover, cover};
pub(crate) use runs::{Run, Runs, Strides};
pub(crate) use slabs::{Slab, Slabs};
