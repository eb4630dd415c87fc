//! Contestants that are measured in turn.

use super::statistics::{Spread, quantile, ratios};

/// The operations of one contestant in one round.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Seconds from the start of the first operation to the end of the last, without unmeasured work between them.
    pub seconds: f64,
    /// The seconds that each operation took.
    pub latencies: Vec<f64>,
}

impl Turn {
    /// A turn of one operation.
    pub fn once(seconds: f64) -> Self {
        Self { seconds, latencies: vec![seconds] }
    }

    /// A turn of operations one after another.
    pub fn sequence(latencies: Vec<f64>) -> Self {
        Self { seconds: latencies.iter().sum(), latencies }
    }

    /// Operations per second.
    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }
}

/// One of the alternatives under comparison.
pub struct Contestant<'a> {
    /// The name shown in the table.
    pub name: String,
    /// Runs one round, or the reason why it cannot be measured on this machine.
    pub turn: Result<Box<dyn FnMut(usize) -> Turn + 'a>, String>,
}

impl<'a> Contestant<'a> {
    /// A contestant whose closure receives the number of the round.
    pub fn new(name: impl Into<String>, turn: impl FnMut(usize) -> Turn + 'a) -> Self {
        Self { name: name.into(), turn: Ok(Box::new(turn)) }
    }

    /// A contestant that cannot be measured on this machine.
    pub fn absent(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), turn: Err(reason.into()) }
    }
}

/// Measurements of one contestant.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The name shown in the table.
    pub name: String,
    /// One turn per round, or the reason why there are none.
    pub turns: Result<Vec<Turn>, String>,
}

impl Measured {
    /// Operations per second in each round.
    pub fn rate(&self) -> Option<Spread> {
        Spread::of(&self.rates())
    }

    /// A quantile of the latency of single operations over all rounds, in seconds.
    pub fn latency(&self, part: f64) -> Option<f64> {
        let latencies: Vec<f64> = self.turns().iter().flat_map(|turn| turn.latencies.iter().copied()).collect();
        quantile(&latencies, part)
    }

    /// The number of operations in all rounds.
    pub fn operations(&self) -> usize {
        self.turns().iter().map(|turn| turn.latencies.len()).sum()
    }

    fn rates(&self) -> Vec<f64> {
        self.turns().iter().map(Turn::rate).collect()
    }

    fn turns(&self) -> &[Turn] {
        self.turns.as_deref().unwrap_or_default()
    }
}

/// The measurements of zarrd and of the peers that ran in turn with it.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The name of the operation, shown in the table.
    pub what: String,
    /// The bytes that one operation transfers, if the rate is shown in MiB/s.
    pub bytes: Option<u64>,
    /// The measurements of zarrd.
    pub ours: Measured,
    /// The measurements of the peers.
    pub peers: Vec<Measured>,
}

impl Comparison {
    /// Runs the contestants in turn for a number of rounds. The first contestant is zarrd; each round starts with
    /// another one.
    ///
    /// # Panics
    ///
    /// If there is no contestant.
    pub fn run(what: impl Into<String>, rounds: usize, mut contestants: Vec<Contestant<'_>>) -> Self {
        let count = contestants.len();
        let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); count];
        for round in 0..rounds {
            for position in 0..count {
                let number = (position + round) % count;
                if let Ok(turn) = &mut contestants[number].turn {
                    turns[number].push(turn(round));
                }
            }
        }
        let mut measured = contestants
            .into_iter()
            .zip(turns)
            .map(|(contestant, turns)| Measured { name: contestant.name, turns: contestant.turn.map(|_| turns) });
        let ours = measured.next().expect("a contestant");
        Self { what: what.into(), bytes: None, ours, peers: measured.collect() }
    }

    /// Shows rates in MiB/s.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// The ratio of the rates of zarrd and a peer, round by round.
    pub fn ratio(&self, peer: &Measured) -> Option<Spread> {
        ratios(&self.ours.rates(), &peer.rates())
    }

    /// The peer with this name, if it was measured.
    pub fn peer(&self, name: &str) -> Option<&Measured> {
        self.peers.iter().find(|peer| peer.name == name && peer.turns.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_contestant_starts_a_round_in_turn() {
        let order = RefCell::new(String::new());
        let contestant = |name: &'static str| {
            let order = &order;
            Contestant::new(name, move |_| {
                order.borrow_mut().push_str(name);
                Turn::once(1.0)
            })
        };
        Comparison::run("x", 3, vec![contestant("a"), contestant("b"), contestant("c")]);
        assert_eq!(*order.borrow(), "abcbcacab");
    }

    #[test]
    fn absent_contestant_is_reported_with_its_reason() {
        let contestants = vec![Contestant::new("a", |_| Turn::once(0.5)), Contestant::absent("b", "no b here")];
        let comparison = Comparison::run("x", 2, contestants);
        assert_eq!(comparison.ours.rate().map(|rate| (rate.median, rate.count)), Some((2.0, 2)));
        assert_eq!(comparison.peers[0].turns.as_ref().err().map(String::as_str), Some("no b here"));
        assert_eq!(comparison.ratio(&comparison.peers[0]), None);
        assert!(comparison.peer("b").is_none());
    }

    #[test]
    fn rates_are_per_round_and_latencies_per_operation() {
        let turns = [vec![0.1, 0.3], vec![0.2, 0.2, 0.2, 0.4]].map(Turn::sequence);
        let measured = Measured { name: "x".to_owned(), turns: Ok(turns.to_vec()) };
        let rate = measured.rate().unwrap();
        assert!((rate.median - 4.5).abs() < 1e-9, "{rate:?}");
        assert_eq!(measured.latency(0.5), Some(0.2));
        assert_eq!(measured.latency(0.99), Some(0.4));
        assert_eq!(measured.operations(), 6);
    }
}
