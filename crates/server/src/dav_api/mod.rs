//! WebDAV, class 1, on the store: keys are resources with content, and prefixes with keys below them collections.

mod collections;
mod copy_move;
mod mkcol;
mod propfind;
mod proppatch;
mod resource;
mod transfer;
mod tree_transfer;
mod value_transfer;

pub(crate) use self::{copy_move::copy_or_move, mkcol::mkcol, propfind::propfind, proppatch::proppatch};
