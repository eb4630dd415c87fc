//! Single elements, small boxes and lists of points, as NumPy arrays.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use zarrd_tests::benchmark::comparison::{Comparison, Contestant};

use crate::{
    clients::{Client, Clients, Kind, Reads},
    http::{get, load},
    section::Section,
    setup::Bench,
};

const PEERS: [Client; 4] =
    [Client::ZarrdArray, Client::TensorstoreNginx, Client::TensorstoreFiles, Client::ZarrPythonNginx];

/// The extent of a box in each dimension.
const BOX: u64 = 16;
/// The number of points in a list.
const POINTS: usize = 100;
const CONNECTIONS: usize = 16;

pub(crate) fn run(bench: &Bench) -> Section {
    let (python, arrays) = match (bench.python(), bench.arrays()) {
        (Ok(python), Ok(arrays)) => (python, arrays),
        (Err(reason), _) | (_, Err(reason)) => return Section::not_measured(reason),
    };
    let clients = Clients::start(bench, python, &arrays, &PEERS);
    let side = bench.options.scale.side;
    let element = |random: &mut StdRng| json!([0, 0, 0].map(|_: u64| random.random_range(0..side)));
    let boxed = |random: &mut StdRng| {
        json!([0, 0, 0].map(|_: u64| {
            let at = random.random_range(0..=side - BOX);
            [at, at + BOX]
        }))
    };
    let points = |random: &mut StdRng| json!((0..POINTS).map(|_| element(random)).collect::<Vec<_>>());
    let compare = |what: &str, array: &str, kind, make: &dyn Fn(&mut StdRng) -> Value| {
        let what_is_read = |round: usize| many(round, make);
        let reads = Reads { array, what: &what_is_read, kind };
        Comparison::run(format!("`{array}`, {what}"), bench.options.scale.rounds, clients.contestants(&PEERS, &reads))
    };
    let mut section = Section::default();
    let mut comparisons = Vec::new();
    for array in ["zstd", "sharded"] {
        comparisons.push(compare("one element", array, Kind::Selections, &element));
        comparisons.push(compare("a box of 16³", array, Kind::Selections, &boxed));
        comparisons.push(compare("a list of 100 points", array, Kind::Points, &points));
    }
    section.add("**Random positions in the array**, one request at a time, all caches warm.", comparisons);
    section.add(
        "**Single elements** with a cheap client, which has no counterpart among the peers.",
        vec![crowd(bench, &clients)],
    );
    section.add_peaks(clients.peaks());
    section
}

/// Single elements on many connections.
fn crowd(bench: &Bench, clients: &Clients<'_>) -> Comparison {
    let (scale, address) = (&bench.options.scale, clients.servers.zarrd.address);
    let ours = Contestant::new("zarrd", |round| {
        load(CONNECTIONS, scale.turn, address, |connection, number, count| {
            let mut random = StdRng::seed_from_u64(count ^ ((number as u64) << 32) ^ ((round as u64) << 48));
            let [a, b, c] = [0, 0, 0].map(|_: u64| random.random_range(0..scale.side));
            let head = get(&format!("/array/zstd?select={a},{b},{c}&format=raw"));
            assert_eq!(connection.request(&head, b""), (200, 4));
        })
    });
    Comparison::run(format!("`zstd`, one element, {CONNECTIONS} connections"), scale.rounds, vec![ours])
}

/// More selections than a turn reads, the same for all clients.
fn many(round: usize, make: &dyn Fn(&mut StdRng) -> Value) -> Vec<Value> {
    let mut random = StdRng::seed_from_u64(round as u64);
    (0..2000).map(|_| make(&mut random)).collect()
}
