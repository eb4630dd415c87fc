//! Removing value files that nothing refers to any more.

mod collector;
mod pins;

pub(crate) use self::{
    collector::GarbageCollector,
    pins::{Pin, Pins, ReplacedFile},
};
