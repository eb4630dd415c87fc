//! The most important results in a few sentences, for BENCHMARKS.md.

use zarrd_tests::benchmark::{
    comparison::{Comparison, Measured},
    extremes, machine,
    table::{duration, number},
};

use crate::{clients::Client, planes::name, section::Section, setup::Bench};

const MIB: f64 = 1_048_576.0;

pub(crate) fn of(sections: &[Section], bench: &Bench) -> String {
    let sentences = [planes(sections, bench), chunks(sections), values(sections), arrays(sections)];
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let where_and_when = format!(
        "Medians on {cores} cores that server and client share, {}, commit {}:",
        machine::today(),
        bench.commit
    );
    let found: Vec<String> = sentences.into_iter().flatten().map(|sentence| format!("- {sentence}")).collect();
    format!("{where_and_when}\n\n{}", found.join("\n"))
}

/// The sections of BENCHMARKS.md that say where zarrd loses, and that have the best and the worst row of each section.
pub(crate) fn losses_and_extremes(sections: &[Section], bench: &Bench) -> [(&'static str, String); 2] {
    let texts: Vec<(&str, String)> = sections.iter().map(|section| (section.name, section.text())).collect();
    let cache = bench.options.scale.cache >> 20;
    [("losses", extremes::losses(&texts)), ("extremes", extremes::extremes(&texts, cache))]
}

/// Planes as a rate: the time depends on whether a plane is cached, so a median means little.
fn planes(sections: &[Section], bench: &Bench) -> Option<String> {
    let comparison = find(sections, "planes", &name("zstd", 0))?;
    let rate = |measured: &Measured| Some(number(measured.rate()?.median));
    let peers = [Client::TensorstoreNginx, Client::ZarrPythonNginx].map(|client| {
        let rate = comparison.peer(client.name()).and_then(rate).unwrap_or_else(|| "an unknown number".to_owned());
        format!("{} reads {rate}", client.name().replace(", nginx", " through nginx"))
    });
    let (side, cache) = (bench.options.scale.side, bench.options.scale.cache >> 20);
    let ours = rate(&comparison.ours)?;
    Some(format!(
        "{ours} random planes of {side}×{side} `float32` of a zstd-compressed cube in chunks of 64³ become arrays of NumPy each second; \
         {}. zarrd and tensorstore have {cache} MiB of cache each, zarr-python has none.",
        peers.join(", and ")
    ))
}

fn chunks(sections: &[Section]) -> Option<String> {
    let comparison = find(sections, "chunks", "GET 1 MiB, 16 connections")?;
    let mib = |measured: &Measured| Some(number(measured.rate()?.median * comparison.bytes? as f64 / MIB));
    let peer = comparison.peer("nginx").and_then(mib);
    let peer = peer.map_or_else(|| "nginx is not measured".to_owned(), |rate| format!("nginx sends {rate} MiB/s"));
    Some(format!("Values of 1 MiB leave `/store` at {} MiB/s on 16 connections; {peer}.", mib(&comparison.ours)?))
}

fn values(sections: &[Section]) -> Option<String> {
    let comparison = find(sections, "ingest", "PUT 1 KiB, new names, 16 connections")?;
    let rate = |measured: &Measured| Some(number(measured.rate()?.median));
    let (ours, files) = (rate(&comparison.ours)?, rate(comparison.peers.first()?)?);
    Some(format!("{ours} values of 1 KiB a second are durable from 16 connections; as synced files they are {files}."))
}

fn arrays(sections: &[Section]) -> Option<String> {
    let comparison = find(sections, "ingest", "`zstd`, all")?;
    let mib = number(comparison.bytes? as f64 / MIB);
    let time = |measured: &Measured| median(measured).map(duration);
    let peer = comparison.peers.iter().find(|peer| peer.name.starts_with("tensorstore")).and_then(time)?;
    let ours = time(&comparison.ours)?;
    Some(format!(
        "{mib} MiB of elements become a durable array with zstd in {ours}; tensorstore writes it to local files in {peer}."
    ))
}

fn median(measured: &Measured) -> Option<f64> {
    measured.latency(0.5)
}

fn find<'a>(sections: &'a [Section], section: &str, what: &str) -> Option<&'a Comparison> {
    let section = sections.iter().find(|found| found.name == section)?;
    section.blocks.iter().flat_map(|(_, comparisons)| comparisons).find(|comparison| comparison.what == what)
}
