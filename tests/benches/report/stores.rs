//! Slices of the same files in a directory and in the embedded store.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    http::{Connection, get, load},
    section::Section,
    servers::Zarrd,
    setup::Bench,
};

const CONNECTIONS: usize = 16;

/// The extent of a box in each dimension.
const BOX: u64 = 16;

/// A selection of an array, chosen by a number.
type Select = dyn Fn(&mut StdRng, u64) -> String + Sync;

pub(crate) fn run(bench: &Bench) -> Section {
    let arrays = match bench.arrays() {
        Ok(arrays) => arrays,
        Err(reason) => return Section::not_measured(reason),
    };
    let directory = format!("dir:{}", arrays.files.display());
    let servers = [Zarrd::start_on(&directory, &bench.cache().each_ref().map(String::as_str)), bench.zarrd(&arrays)];
    let compare = |array: &str, what: &str, connections, select: &Select| {
        let contestants = ["zarrd, directory", "zarrd, embedded store"].into_iter().zip(&servers);
        let contestants =
            contestants.map(|(name, server)| contestant(bench, (name, server), array, connections, select)).collect();
        let name = format!("`{array}`, {what}, {connections} connections");
        Comparison::run(name, bench.options.scale.rounds, contestants)
    };
    let plane = |axis: usize| {
        move |random: &mut StdRng, side: u64| {
            let mut select = vec![":".to_owned(); 3];
            select[axis] = random.random_range(0..side).to_string();
            select.join(",")
        }
    };
    let element = |random: &mut StdRng, side: u64| list((0..3).map(|_| random.random_range(0..side).to_string()));
    let boxed = |random: &mut StdRng, side: u64| {
        list((0..3).map(|_| random.random_range(0..=side - BOX)).map(|at| format!("{at}:{}", at + BOX)))
    };
    let strided = |random: &mut StdRng, _: u64| format!("{}::64,::8,::8", random.random_range(0..64));
    let same_plane = |_: &mut StdRng, side: u64| format!("{},:,:", side / 2);
    let all = |_: &mut StdRng, _: u64| ":".to_owned();
    let mut random = Vec::new();
    for array in ["zstd", "sharded", "raw"] {
        for axis in [0, 2] {
            random.push(compare(array, ["`[i, :, :]`", "", "`[:, :, i]`"][axis], 1, &plane(axis)));
        }
        random.push(compare(array, "one element", 1, &element));
        random.push(compare(array, "one element", CONNECTIONS, &element));
        random.push(compare(array, "a box of 16³", 1, &boxed));
        random.push(compare(array, "strides of 64, 8 and 8", 1, &strided));
    }
    let repeated = vec![compare("zstd", "the same plane", 1, &same_plane), compare("zstd", "all", 1, &all)];
    let mut section = Section::default();
    section.add("**Random selections**, all caches warm.", random);
    section.add("**The same selection**, read repeatedly.", repeated);
    section
}

/// Reads selections from one server, the same in each round for all of them.
fn contestant<'a>(
    bench: &'a Bench,
    (name, server): (&'a str, &'a Zarrd),
    array: &str,
    connections: usize,
    select: &'a Select,
) -> Contestant<'a> {
    let (scale, path) = (&bench.options.scale, format!("/array/{array}?format=raw&select="));
    let request = move |connection: &mut Connection, number: usize, round: usize, count: u64| {
        let mut random = StdRng::seed_from_u64(count ^ ((number as u64) << 32) ^ ((round as u64) << 48));
        let target = format!("{path}{}", select(&mut random, scale.side));
        assert_eq!(connection.request(&get(&target), b"").0, 200, "{target}");
    };
    let turn = move |round: usize| -> Turn {
        load(connections, scale.turn, server.address, |connection, number, count| {
            request(connection, number, round, count);
        })
    };
    Contestant::new(name, turn)
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}
