//! The few rows of BENCHMARKS.md that README.md shows, two of them losses.

use std::fmt::Write;

use super::document::{MarkerError, section};

/// A row: what it is for a reader, and the section, operation and peer that identify it among the results.
struct Row {
    what: &'static str,
    section: &'static str,
    operation: &'static str,
    peer: &'static str,
}

const ROWS: [Row; 4] = [
    Row {
        what: "durable PUT of 1 KiB, 16 connections",
        section: "ingest",
        operation: "PUT 1 KiB, new names, 16 connections",
        peer: "files: write, fsync, rename, fsync of the directory",
    },
    Row {
        what: "random planes of a compressed cube",
        section: "planes",
        operation: "`zstd`, `[i, :, :]`",
        peer: "zarr-python, nginx",
    },
    Row {
        what: "GET of 1 KiB, 16 connections",
        section: "chunks",
        operation: "GET 1 KiB, 16 connections",
        peer: "nginx",
    },
    Row {
        what: "all of a compressed cube, one request",
        section: "planes",
        operation: "`zstd`, all",
        peer: "tensorstore, local files",
    },
];

/// A row that cannot be shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpeedError {
    /// A section is missing.
    #[error(transparent)]
    Marker(#[from] MarkerError),
    /// The section has no such row.
    #[error("no row {operation:?} with {peer:?}")]
    Missing {
        /// Its operation.
        operation: &'static str,
        /// What zarrd is compared with.
        peer: &'static str,
    },
}

/// The table for README.md, from the text of BENCHMARKS.md.
///
/// # Errors
///
/// If a row is missing.
pub fn table(benchmarks: &str) -> Result<String, SpeedError> {
    let mut text = String::from("| | zarrd | | | ratio |\n|---|---|---|---|---|");
    for Row { what, section: name, operation, peer } in ROWS {
        let rows = section(benchmarks, name)?.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let found = rows.into_iter().find_map(|cells| match cells[..] {
            ["", its_operation, ours, _, its_peer, theirs, _, ratio, ""]
                if (its_operation, its_peer) == (operation, peer) =>
            {
                Some([ours, theirs, ratio].map(|cell| cell.split(" (").next().unwrap_or_default().to_owned()))
            }
            _ => None,
        });
        let [ours, theirs, ratio] = found.ok_or(SpeedError::Missing { operation, peer })?;
        // Writing to a string does not fail.
        let _ = write!(text, "\n| {what} | {ours} | {peer} | {theirs} | {ratio} |");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_row_is_named() {
        let document = "<!-- generated: ingest -->\n| a | b |\n<!-- end: ingest -->\n";
        let missing = SpeedError::Missing { operation: ROWS[0].operation, peer: ROWS[0].peer };
        assert_eq!(table(document), Err(missing));
    }
}
