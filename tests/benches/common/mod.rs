//! What the benchmarks share: servers, a client that costs little, and runs that take turns.

#![allow(dead_code, reason = "no benchmark uses all of it")]

pub(crate) mod http;
pub(crate) mod peers;
pub(crate) mod python;

/// Figures of runs that took turns: ours and the peer's.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) ours: Vec<f64>,
    pub(crate) peers: Vec<f64>,
}

impl Pairs {
    /// Takes `runs` turns, the peer first in every other one.
    pub(crate) fn measure(runs: usize, mut ours: impl FnMut() -> f64, mut peer: impl FnMut() -> f64) -> Self {
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

    pub(crate) fn report(&self, what: &str, unit: &str) {
        let ratios: Vec<f64> = self.ours.iter().zip(&self.peers).map(|(ours, peer)| ours / peer).collect();
        let (ours, peers, ratios) = (spread(&self.ours), spread(&self.peers), spread(&ratios));
        println!("{what:<44} zarrd {ours} {unit}   peer {peers} {unit}   ratio {ratios}");
    }
}

/// The median, with the least and the most.
pub(crate) fn spread(figures: &[f64]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let show = |figure: f64| if figure < 10.0 { format!("{figure:.2}") } else { format!("{figure:.0}") };
    format!("{} ({}–{})", show(sorted[sorted.len() / 2]), show(sorted[0]), show(sorted[sorted.len() - 1]))
}
