//! WebDAV, class 1, on the store: keys are resources with content, and prefixes with keys below them collections.

mod collections;
mod mkcol;
mod pager;
mod propfind;
mod resource;
mod transfer;
mod tree_transfer;

pub(crate) use self::{
    mkcol::mkcol,
    propfind::propfind,
    transfer::{copy, move_},
};
