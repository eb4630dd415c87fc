//! The benchmark of the store: zarrd beside its peers, in the same run on the same machine.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench store -- [get] [put] [list] [list-10m] [start] [--index sled|redb]
//! ```
//!
//! `get` needs nginx. Each figure is the median of interleaved runs, given with the least and the most; a ratio is the
//! median of the ratios of neighbouring runs. Nothing here passes or fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

mod get;
mod http;
mod list;
mod peers;
mod put;
mod start;

use store_local::IndexKind;

fn main() {
    // cargo passes `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut index = IndexKind::Sled;
    if let Some(at) = arguments.iter().position(|argument| argument == "--index") {
        index = match arguments.get(at + 1).map(String::as_str) {
            Some("sled") => IndexKind::Sled,
            Some("redb") => IndexKind::Redb,
            other => panic!("--index sled or --index redb, not {other:?}"),
        };
        arguments.drain(at..at + 2);
    }
    if arguments.is_empty() {
        arguments = ["get", "put", "list", "start"].map(str::to_owned).to_vec();
    }
    for section in &arguments {
        match section.as_str() {
            "get" => get::run(index),
            "put" => put::run(index),
            "list" => list::run(index, 1_000_000),
            "list-10m" => list::run(IndexKind::Redb, 10_000_000),
            "start" => start::run(index, 1_000_000),
            other => panic!("no section {other}"),
        }
    }
}

/// Figures of runs that took turns: ours and the peer's.
#[derive(Default)]
struct Pairs {
    ours: Vec<f64>,
    peers: Vec<f64>,
}

impl Pairs {
    /// Takes `runs` turns, the peer first in every other one.
    fn measure(runs: usize, mut ours: impl FnMut() -> f64, mut peer: impl FnMut() -> f64) -> Self {
        let mut pairs = Self::default();
        for run in 0..runs {
            if run % 2 == 0 {
                pairs.peers.push(peer());
                pairs.ours.push(ours());
            } else {
                pairs.ours.push(ours());
                pairs.peers.push(peer());
            }
        }
        pairs
    }

    fn report(&self, what: &str, unit: &str) {
        let ratios: Vec<f64> = self.ours.iter().zip(&self.peers).map(|(ours, peer)| ours / peer).collect();
        let (ours, peers, ratios) = (spread(&self.ours), spread(&self.peers), spread(&ratios));
        println!("{what:<44} zarrd {ours} {unit}   peer {peers} {unit}   ratio {ratios}");
    }
}

/// The median, with the least and the most.
fn spread(figures: &[f64]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let show = |figure: f64| if figure < 10.0 { format!("{figure:.2}") } else { format!("{figure:.0}") };
    format!("{} ({}–{})", show(sorted[sorted.len() / 2]), show(sorted[0]), show(sorted[sorted.len() - 1]))
}
