//! Removing value files that nothing refers to any more.

mod collector;
mod pin;
mod pins;

pub(crate) use self::{
    collector::GarbageCollector,
    pin::Pin,
    pins::{Pins, ReplacedFile},
};
