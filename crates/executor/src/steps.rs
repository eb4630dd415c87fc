//! The steps of a request, as spans of the log.
//!
//! ARCHITECTURE.md lists them, and the log has them with `RUST_LOG=zarrd_server=trace`. They cost nothing otherwise: a
//! disabled span is a comparison of two levels.

use tracing::{Span, enabled};

/// The target of the steps' spans, whichever crate takes them.
pub const STEPS: &str = "zarrd_server::steps";

/// The step that is being taken, for what it starts on other threads; none if steps are not logged.
pub fn current_step() -> Span {
    if enabled!(target: STEPS, tracing::Level::TRACE) { Span::current() } else { Span::none() }
}
