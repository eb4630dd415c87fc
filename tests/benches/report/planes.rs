//! Planes of a chunked volume, and the whole volume, as NumPy arrays.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use zarrd_tests::benchmark::comparison::Comparison;

use crate::{
    clients::{Client, Clients, Kind, Reads},
    cold, rust_client,
    section::Section,
    setup::Bench,
};

const PEERS: [Client; 4] =
    [Client::ZarrdArray, Client::TensorstoreNginx, Client::TensorstoreFiles, Client::ZarrPythonNginx];

/// Other ways to read the planes of an array.
const OTHER_WAYS: [Client; 6] = [
    Client::ZarrdArray,
    Client::Requests,
    Client::TensorstoreZarrd,
    Client::ZarrPythonZarrd,
    Client::ZarrPythonNginxCached,
    Client::ZarrPythonNginxObstore,
];

const REPEATED_CLIENTS: [Client; 4] =
    [Client::ZarrdArray, Client::TensorstoreNginx, Client::TensorstoreNginxTrusting, Client::ZarrPythonNginxCached];

pub(crate) fn run(bench: &Bench) -> Section {
    let (python, arrays) = match (bench.python(), bench.arrays()) {
        (Ok(python), Ok(arrays)) => (python, arrays),
        (Err(reason), _) | (_, Err(reason)) => return Section::not_measured(reason),
    };
    let mut all: Vec<Client> = PEERS.iter().chain(&OTHER_WAYS).chain(&REPEATED_CLIENTS).copied().collect();
    all.sort_unstable();
    all.dedup();
    let clients = Clients::start(bench, python, &arrays, &all);
    let mut section = Section::default();
    section.add("**Random planes**, all caches warm.", random(bench, &clients));
    section.add("**The same plane**, read repeatedly.", repeated(bench, &clients));
    section.add("**Random planes by other clients**, all caches warm.", other_ways(bench, &clients));
    section.add("**The whole array**, all caches warm.", everything(bench, &clients));
    section.add_peaks(clients.peaks());
    drop(clients);
    let caption = "**One plane, cold**: servers and clients are new processes that have read one small array; opening the array is included.";
    section.add(format!("{caption} With the {}.", cold::state()), cold::planes(bench, python, &arrays));
    section
}

fn random(bench: &Bench, clients: &Clients<'_>) -> Vec<Comparison> {
    let cases = [("zstd", 0), ("zstd", 1), ("zstd", 2), ("sharded", 0), ("sharded", 2), ("raw", 0), ("raw", 2)];
    let compare = |(array, axis): (&'static str, usize)| {
        let what = |round: usize| random_planes(bench.options.scale.side, axis, round);
        let reads = Reads { array, what: &what, kind: Kind::Selections };
        Comparison::run(name(array, axis), bench.options.scale.rounds, clients.contestants(&PEERS, &reads))
    };
    cases.into_iter().map(compare).collect()
}

fn repeated(bench: &Bench, clients: &Clients<'_>) -> Vec<Comparison> {
    let compare = |axis| {
        let side = bench.options.scale.side;
        let at = side / 2 + 7;
        let what = |_: usize| vec![plane(side, axis, at); 500];
        let reads = Reads { array: "zstd", what: &what, kind: Kind::Selections };
        Comparison::run(name("zstd", axis), bench.options.scale.rounds, clients.contestants(&REPEATED_CLIENTS, &reads))
    };
    [0, 2].into_iter().map(compare).collect()
}

fn other_ways(bench: &Bench, clients: &Clients<'_>) -> Vec<Comparison> {
    let what = |round: usize| random_planes(bench.options.scale.side, 0, round);
    let reads = Reads { array: "zstd", what: &what, kind: Kind::Selections };
    let mut contestants = clients.contestants(&OTHER_WAYS, &reads);
    contestants.insert(2, rust_client::contestant(bench, &clients.servers.zarrd, &reads));
    vec![Comparison::run(name("zstd", 0), bench.options.scale.rounds, contestants)]
}

fn everything(bench: &Bench, clients: &Clients<'_>) -> Vec<Comparison> {
    let side = bench.options.scale.side;
    let compare = |array| {
        let what = |_: usize| vec![json!([[0, side], [0, side], [0, side]])];
        let reads = Reads { array, what: &what, kind: Kind::Selections };
        let contestants = clients.contestants(&PEERS, &reads);
        Comparison::run(format!("`{array}`, all"), bench.options.scale.few, contestants).of_bytes(side.pow(3) * 4)
    };
    ["zstd", "raw"].into_iter().map(compare).collect()
}

/// The name of a plane across an axis, shown in the tables.
pub(crate) fn name(array: &str, axis: usize) -> String {
    let mut at = [":"; 3];
    at[axis] = "i";
    format!("`{array}`, `[{}]`", at.join(", "))
}

/// More planes than a turn reads, the same for all clients.
pub(crate) fn random_planes(side: u64, axis: usize, round: usize) -> Vec<Value> {
    let mut random = StdRng::seed_from_u64(round as u64 ^ ((axis as u64) << 32));
    (0..500).map(|_| plane(side, axis, random.random_range(0..side))).collect()
}

fn plane(side: u64, axis: usize, at: u64) -> Value {
    let mut select = vec![json!([0, side]); 3];
    select[axis] = json!(at);
    json!(select)
}
