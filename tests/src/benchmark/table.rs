//! Comparisons as Markdown tables.

use std::fmt::Write;

use super::{
    comparison::{Comparison, Measured},
    statistics::Spread,
};

const MIB: f64 = 1_048_576.0;

/// Renders comparisons as one table with a row for each peer.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "| operation | zarrd | p50 / p99 | peer | its rate | p50 / p99 | ratio |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for comparison in comparisons {
        let ours = format!("{} | {}", rate(comparison, &comparison.ours), latencies(&comparison.ours));
        if comparison.peers.is_empty() {
            let _ = writeln!(text, "| {} | {ours} | | | | |", comparison.what);
        }
        for peer in &comparison.peers {
            let theirs = match &peer.turns {
                Err(reason) => format!("not measured: {reason} | | "),
                Ok(_) => {
                    let ratio = comparison
                        .ratio(peer)
                        .map(|ratio| format!("**{}** ({})", number(ratio.median), ends(ratio, number)));
                    format!("{} | {} | {}", rate(comparison, peer), latencies(peer), ratio.unwrap_or_default())
                }
            };
            let _ = writeln!(text, "| {} | {ours} | {} | {theirs} |", comparison.what, peer.name);
        }
    }
    text
}

/// Formats seconds with a fitting unit.
pub fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 1.0 => format!("{} s", number(seconds)),
        seconds if seconds >= 0.001 => format!("{} ms", number(seconds * 1e3)),
        seconds => format!("{} µs", number(seconds * 1e6)),
    }
}

/// Formats a number with two or three significant digits, with commas if it is large.
pub fn number(number: f64) -> String {
    match number {
        number if number >= 100.0 => grouped(number.round() as u64),
        number if number >= 10.0 => format!("{number:.1}"),
        number if number >= 0.1 => format!("{number:.2}"),
        number => format!("{number:.3}"),
    }
}

fn rate(comparison: &Comparison, measured: &Measured) -> String {
    let Some(rate) = measured.rate() else { return String::new() };
    let (scale, unit) = match comparison.bytes {
        Some(bytes) => (bytes as f64 / MIB, " MiB/s"),
        None => (1.0, "/s"),
    };
    let scaled = |figure: f64| number(figure * scale);
    format!("{}{unit} ({})", scaled(rate.median), ends(rate, scaled))
}

fn latencies(measured: &Measured) -> String {
    let Some((typical, late)) = measured.latency(0.5).zip(measured.latency(0.99)) else { return String::new() };
    format!("{} / {}, n={}", duration(typical), duration(late), grouped(measured.operations() as u64))
}

fn ends(spread: Spread, show: impl Fn(f64) -> String) -> String {
    format!("{}–{}", show(spread.min), show(spread.max))
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::comparison::Turn;

    fn measured(name: &str, seconds: &[f64]) -> Measured {
        let turns = seconds.iter().map(|seconds| Turn::once(*seconds)).collect();
        Measured { name: name.to_owned(), turns: Ok(turns) }
    }

    #[test]
    fn numbers_have_two_or_three_significant_digits() {
        assert_eq!(number(0.012_34), "0.012");
        assert_eq!(number(0.123_4), "0.12");
        assert_eq!(number(9.876), "9.88");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(1_234_567.8), "1,234,568");
    }

    #[test]
    fn durations_use_a_fitting_unit() {
        assert_eq!(duration(0.000_042), "42.0 µs");
        assert_eq!(duration(0.012_3), "12.3 ms");
        assert_eq!(duration(2.5), "2.50 s");
    }

    #[test]
    fn row_shows_rates_latencies_and_ratio() {
        let comparison = Comparison {
            what: "read".to_owned(),
            bytes: None,
            ours: measured("zarrd", &[0.1, 0.2, 0.1]),
            peers: vec![measured("other", &[0.2, 0.2, 0.4])],
        };
        let row = "| read | 10.0/s (5.00–10.0) | 100 ms / 200 ms, n=3 | other | 5.00/s (2.50–5.00) | 200 ms / 400 ms, n=3 | **2.00** (1.00–4.00) |";
        assert_eq!(table(std::slice::from_ref(&comparison)).lines().nth(2), Some(row));
        let mib = table(&[comparison.of_bytes(2 << 20)]);
        assert!(mib.contains("| 20.0 MiB/s (10.0–20.0) |"), "{mib}");
    }

    #[test]
    fn absent_peer_has_a_row_with_its_reason() {
        let absent = Measured { name: "other".to_owned(), turns: Err("other is not installed".to_owned()) };
        let comparison =
            Comparison { what: "read".to_owned(), bytes: None, ours: measured("zarrd", &[1.0]), peers: vec![absent] };
        let text = table(&[comparison]);
        assert!(text.contains("| other | not measured: other is not installed | |  |"), "{text}");
        let columns = text.lines().map(|line| line.matches('|').count()).collect::<Vec<_>>();
        assert_eq!(columns, [8, 8, 8]);
    }
}
