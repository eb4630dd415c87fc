//! Statistics and rendering of the benchmark report. Where zarrd loses, and where it wins most, is in [`extremes`].
//!
//! - [`statistics`]: medians, quantiles, and ratios of values measured in the same round. - [`comparison`]: runs
//!   contestants in turn. - [`table`]: renders comparisons in Markdown. - [`document`]: replaces the generated sections
//!   of a document. - [`machine`]: describes the machine and the commit. - [`speed`]: the rows that README.md shows.

pub mod comparison;
pub mod document;
pub mod extremes;
pub mod machine;
pub mod speed;
pub mod statistics;
pub mod table;
