//! The arithmetic and the text of the benchmarks' report, apart from what is measured.
//!
//! - [`statistics`] has medians, quantiles and ratios of runs that took turns.
//! - [`comparison`] lets contestants take turns.
//! - [`table`] renders comparisons in Markdown.
//! - [`document`] replaces the generated sections of a document.
//! - [`machine`] describes the machine and the commit.

pub mod comparison;
pub mod document;
pub mod machine;
pub mod statistics;
pub mod table;
