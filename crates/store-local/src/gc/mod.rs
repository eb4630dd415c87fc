//! Garbage collection of value files.

mod collector;
mod pin;
mod pins;

pub(crate) use self::{
    collector::GarbageCollector,
    pin::Pin,
    pins::{PinKind, PinLimits, Pins, ReplacedFile},
};
