//! Startup with a large store, after a clean stop and after a crash.

use zarrd_store_local::IndexKind;
use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    http::{Connection, get},
    nodes::Large,
    section::Section,
    servers::{Nginx, Zarrd},
    setup::Bench,
};

pub(crate) fn run(bench: &Bench) -> Section {
    let mut section = Section::default();
    let keys = bench.options.scale.keys;
    let mut comparisons = Vec::new();
    for index in [IndexKind::Sled, IndexKind::Redb] {
        let large = bench.large(index);
        // The first start after the keys were loaded equals any other start after a clean stop.
        let clean = |_: usize| {
            let zarrd = started(index, large);
            let turn = Turn::once(zarrd.started_in.as_secs_f64());
            zarrd.stop();
            turn
        };
        let crashed = |_: usize| {
            // Dropping it kills it.
            drop(started(index, large));
            let zarrd = started(index, large);
            let turn = Turn::once(zarrd.started_in.as_secs_f64());
            zarrd.stop();
            turn
        };
        let (number, rounds) = (grouped(keys), bench.options.scale.rounds);
        let what = format!("start with {number} keys, {index}, after a stop");
        comparisons.push(Comparison::run(what, rounds, vec![Contestant::new("zarrd", clean), nginx(bench)]));
        let what = format!("start with {number} keys, {index}, after `kill -9`");
        comparisons.push(Comparison::run(what, rounds, vec![Contestant::new("zarrd", crashed)]));
    }
    section.add("**Time until the server listens**, with a warm page cache.", comparisons);
    section
}

fn started(index: IndexKind, large: &Large) -> Zarrd {
    let zarrd = Zarrd::start(index, &large.store, &[]);
    assert_eq!(Connection::open(zarrd.address).request(&get("/readyz"), b"").0, 200);
    zarrd
}

fn nginx(bench: &Bench) -> Contestant<'_> {
    let directory = bench.directory();
    if let Err(reason) = Nginx::start(directory.path(), directory.path()) {
        return Contestant::absent("nginx, which opens nothing", reason);
    }
    Contestant::new("nginx, which opens nothing", move |_| {
        let nginx = Nginx::start(directory.path(), directory.path()).expect("it started before");
        Turn::once(nginx.started_in.as_secs_f64())
    })
}

pub(crate) fn grouped(keys: u64) -> String {
    zarrd_tests::benchmark::table::number(keys as f64)
}
