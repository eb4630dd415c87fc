//! Where zarrd loses, and the best and the worst row of each section, from the rendered tables of a report.
//!
//! They are made of the text and not of the measurements, so that anybody can compare them with the tables on the same
//! page; a test does.

use std::{cmp::Ordering, fmt::Write};

/// A section of the report: its name, its heading, and whose settings the contestants have.
pub const SECTIONS: [(&str, &str, &str); 7] = [
    ("chunks", "Serve chunks", "zarrd: defaults; nginx: tuned for files (`sendfile`, `tcp_nopush`, no access log)"),
    (
        "planes",
        "Read planes",
        "zarrd and tensorstore: caches of the same size; zarr-python: no cache unless the row says `CacheStore`",
    ),
    ("points", "Read points and small boxes", "as for planes"),
    (
        "ingest",
        "Ingest",
        "zarrd and tensorstore: every write is synced; zarr-python: its defaults, which sync nothing, or one `sync` at the end",
    ),
    ("nodes", "List and open", "defaults; nginx as for chunks"),
    ("start", "Start", "defaults; nginx as for chunks"),
    ("buckets", "Read a bucket", "caches of the same size; who asks again is said above each table"),
];

/// The number of losses that are named.
const NAMED_LOSSES: usize = 5;

/// A row that compares zarrd with another program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// The bold beginning of the table's caption, and empty if there is none.
    pub caption: &'a str,
    /// The operation.
    pub operation: &'a str,
    /// The median rate of zarrd.
    pub ours: &'a str,
    /// The other program.
    pub peer: &'a str,
    /// Its median rate.
    pub theirs: &'a str,
    /// The ratio of the rates; below 1 zarrd is slower.
    pub ratio: f64,
    /// The same as it is shown.
    pub shown: &'a str,
}

/// The rows of a section's tables that compare zarrd with another program: with neither itself nor another way to read
/// from it.
pub fn rows(text: &str) -> Vec<Row<'_>> {
    let mut caption = "";
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some((bold, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            caption = bold;
        }
        rows.extend(row(line, caption));
    }
    rows
}

/// Says in how many rows zarrd is slower, and names those where it is slowest.
pub fn losses(sections: &[(&str, String)]) -> String {
    let all: Vec<(&str, Row<'_>)> =
        sections.iter().flat_map(|(name, text)| rows(text).into_iter().map(move |row| (title(name), row))).collect();
    let lost = all.iter().filter(|(_, row)| row.ratio < 1.0).count();
    let mut worst: Vec<(&str, Row<'_>)> = sections
        .iter()
        .filter_map(|(name, text)| Some((title(name), extreme(&rows(text), Ordering::Less)?)))
        .filter(|(_, row)| row.ratio < 1.0)
        .collect();
    worst.sort_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio));
    let mut out = format!(
        "**zarrd is slower than another program in {lost} of the {} rows below that compare them.** It loses most here:\n\n",
        all.len()
    );
    for (title, row) in worst.iter().take(NAMED_LOSSES) {
        let _ = writeln!(
            out,
            "- *{title}*: {}: zarrd {}; {}: {}; ratio {}.",
            what(row),
            row.ours,
            row.peer,
            row.theirs,
            row.shown
        );
    }
    out.trim_end().to_owned()
}

/// The best and the worst row of each section, and whose settings were used.
pub fn extremes(sections: &[(&str, String)], cache_mib: u64) -> String {
    let mut out =
        String::from("| section | best row | ratio | worst row | ratio | settings |\n|---|---|---|---|---|---|\n");
    for (name, text) in sections {
        let rows = rows(text);
        let settings = SECTIONS.iter().find(|section| section.0 == *name).map_or("", |section| section.2);
        let cell = |row: Option<Row<'_>>| match row {
            Some(row) => format!("{}; {} | **{}**", what(&row), row.peer, row.shown),
            None => "not measured | ".to_owned(),
        };
        let (best, worst) = (extreme(&rows, Ordering::Greater), extreme(&rows, Ordering::Less));
        let _ = writeln!(out, "| {} | {} | {} | {settings} |", title(name), cell(best), cell(worst));
    }
    let _ = write!(
        out,
        "\nThe settings are the choice of zarrd's authors, who know zarrd best: `--chunk-cache` {cache_mib} MiB and defaults \
         otherwise; `cache_pool` of tensorstore of the same size, and its other defaults; zarr-python and nginx as the table \
         says. Rows that compare zarrd with itself are left out."
    );
    out
}

/// The first of the rows with the least ratio, or with the greatest.
fn extreme<'a>(rows: &[Row<'a>], which: Ordering) -> Option<Row<'a>> {
    rows.iter().copied().reduce(|best, row| if row.ratio.total_cmp(&best.ratio) == which { row } else { best })
}

fn row<'a>(line: &'a str, caption: &'a str) -> Option<Row<'a>> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [operation, ours, _, peer, theirs, _, ratio] = cells.as_slice() else { return None };
    let (shown, _) = ratio.strip_prefix("**")?.split_once("**")?;
    let ratio = shown.replace(',', "").parse().ok()?;
    let median = |rate: &'a str| rate.split(" (").next().unwrap_or(rate);
    let row = Row { caption, operation, ours: median(ours), peer, theirs: median(theirs), ratio, shown };
    (!peer.contains("zarrd")).then_some(row)
}

fn title(name: &str) -> &str {
    SECTIONS.iter().find(|section| section.0 == name).map_or(name, |section| section.1)
}

fn what(row: &Row<'_>) -> String {
    let caption = row.caption.trim_end_matches(':');
    if caption.is_empty() { row.operation.to_owned() } else { format!("{caption}, {}", row.operation) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::{
        comparison::{Comparison, Measured, Turn},
        table::table,
    };

    fn measured(name: &str, seconds: f64) -> Measured {
        Measured { name: name.to_owned(), turns: Ok(vec![Turn::once(seconds)]) }
    }

    /// A comparison in which zarrd takes a second, and each peer so many.
    fn comparison(what: &str, peers: &[(&str, f64)]) -> Comparison {
        let peers = peers.iter().map(|(name, seconds)| measured(name, *seconds)).collect();
        Comparison { what: what.to_owned(), bytes: None, ours: measured("zarrd", 1.0), peers }
    }

    fn sections() -> Vec<(&'static str, String)> {
        let chunks = [
            comparison("GET", &[("nginx", 0.25), ("zarrd by another client", 0.01)]),
            comparison("HEAD", &[("nginx", 0.5)]),
        ];
        let nodes = [comparison("list", &[("zarr-python", 4.0), ("nginx", 1.0)])];
        let start = [comparison("start", &[])];
        let text =
            |caption: &str, comparisons: &[Comparison]| format!("**{caption}**, warm.\n\n{}", table(comparisons));
        vec![("chunks", text("Values", &chunks)), ("nodes", text("A tree", &nodes)), ("start", text("Opening", &start))]
    }

    #[test]
    fn rows_are_those_that_compare_with_another_program() {
        let sections = sections();
        let found: Vec<_> = rows(&sections[0].1).iter().map(|row| (row.operation, row.peer, row.shown)).collect();
        assert_eq!(found, [("GET", "nginx", "0.25"), ("HEAD", "nginx", "0.50")]);
        assert_eq!(rows(&sections[0].1)[0].caption, "Values");
        assert_eq!((rows(&sections[0].1)[0].ours, rows(&sections[0].1)[0].theirs), ("1.00/s", "4.00/s"));
        assert_eq!(rows(&sections[2].1), []);
    }

    #[test]
    fn losses_are_counted_and_the_worst_of_each_section_is_named() {
        let text = losses(&sections());
        let expected = "**zarrd is slower than another program in 2 of the 4 rows below that compare them.** It loses most here:\n\n\
             - *Serve chunks*: Values, GET: zarrd 1.00/s; nginx: 4.00/s; ratio 0.25.";
        assert_eq!(text, expected);
    }

    #[test]
    fn at_most_five_losses_are_named_and_the_worst_comes_first() {
        let section = |peer: f64| format!("**T**\n\n{}", table(&[comparison("GET", &[("nginx", peer)])]));
        let sections: Vec<_> = SECTIONS
            .iter()
            .zip(1..)
            .map(|(section_of, number)| (section_of.0, section(0.1 * f64::from(number))))
            .collect();
        let text = losses(&sections);
        assert_eq!(text.lines().count(), 7, "{text}");
        assert!(text.lines().nth(2).unwrap().starts_with("- *Serve chunks*"), "{text}");
        assert!(!text.contains("*Start*"), "{text}");
    }

    #[test]
    fn extremes_have_both_ends_and_say_what_was_not_measured() {
        let text = extremes(&sections(), 64);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2]
                .starts_with("| Serve chunks | Values, HEAD; nginx | **0.50** | Values, GET; nginx | **0.25** | zarrd"),
            "{text}"
        );
        assert!(
            lines[3].starts_with(
                "| List and open | A tree, list; zarr-python | **4.00** | A tree, list; nginx | **1.00** |"
            ),
            "{text}"
        );
        assert!(lines[4].starts_with("| Start | not measured |  | not measured |  |"), "{text}");
        assert!(lines[6].contains("`--chunk-cache` 64 MiB"), "{text}");
        let columns: Vec<usize> = lines[..5].iter().map(|line| line.matches('|').count()).collect();
        assert_eq!(columns, [7; 5]);
    }
}
