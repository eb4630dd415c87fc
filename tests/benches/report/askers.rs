//! One client, and many that ask for equal or different parts, at once or one after another; answers from the cache; and
//! active connections next to idle ones.

use std::{
    net::TcpStream,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    http::{Connection, get, load, with_body},
    section::Section,
    servers::Zarrd,
    setup::Bench,
};

const ASKERS: usize = 16;

/// The time between two askers that come one after another.
const STAGGER: Duration = Duration::from_millis(50);

const ACTIVE: usize = 64;
const IDLE: usize = 512;

/// The time after which idle connections do not count.
const SETTLED: Duration = Duration::from_secs(2);

pub(crate) fn run(bench: &Bench) -> Section {
    let arrays = match bench.arrays() {
        Ok(arrays) => arrays,
        Err(reason) => return Section::not_measured(reason),
    };
    let mut section = Section::default();
    let server = Zarrd::start(bench.options.index, &arrays.store, &[]);
    section.add("**Many askers of large parts** of an array that the cache is too small for.", asking(bench, &server));
    section.add("**Active connections**, GET of a document.", idle(bench, &server));
    section.add_peaks([server.peak()]);
    drop(server);
    let cache = format!("--chunk-cache={}", bench.options.scale.side.pow(3) * 8);
    let server = Zarrd::start(bench.options.index, &arrays.store, &[&cache]);
    section.add("**Answers from the cache**, and the same bytes as a value.", cached(bench, &server));
    section
}

fn asking(bench: &Bench, server: &Zarrd) -> Vec<Comparison> {
    let side = bench.options.scale.side;
    let slice = |number: usize| format!("select={}::8,{}::8,{}::8", number / 64 % 8, number / 8 % 8, number % 8);
    let mean = move |number: usize| format!("reduce=mean&select={}:", number as u64 % (side / 2));
    let plane = move |number: usize| format!("select=:,{}", number as u64 * 67 % side);
    let boxed = move |number: usize| {
        let at = |factor: u64| number as u64 * factor % (side - 64);
        format!("select={}:{},{}:{},{}:{}", at(71), at(71) + 64, at(37), at(37) + 64, at(53), at(53) + 64)
    };
    let parts: [(&str, &(dyn Fn(usize) -> String + Sync)); 4] =
        [("`::8` of all", &slice), ("`mean` of all", &mean), ("planes", &plane), ("boxes of 64³", &boxed)];
    let compare = |(name, part): (&str, &(dyn Fn(usize) -> String + Sync))| {
        // Results are cached, so each turn has its own parts.
        let ask = |turn: usize, askers: usize, different: usize, delay: Duration| {
            move |round: usize| {
                let number = |asker: usize| (round * 4 + turn) * ASKERS + asker * different;
                ask_once(server, askers, delay, |asker| format!("/array/zstd?format=raw&{}", part(number(asker))))
            }
        };
        let contestants = vec![
            Contestant::new("one", ask(0, 1, 0, Duration::ZERO)),
            Contestant::new("16, equal", ask(1, ASKERS, 0, Duration::ZERO)),
            Contestant::new("16, different", ask(2, ASKERS, 1, Duration::ZERO)),
            Contestant::new("16, different, 50 ms apart", ask(3, ASKERS, 1, STAGGER)),
        ];
        Comparison::run(name, bench.options.scale.few, contestants)
    };
    parts.into_iter().map(compare).collect()
}

/// A request of each asker, each `delay` after the one before.
fn ask_once(server: &Zarrd, askers: usize, delay: Duration, target: impl Fn(usize) -> String + Sync) -> Turn {
    let barrier = Barrier::new(askers);
    let latencies: Vec<f64> = thread::scope(|scope| {
        let askers: Vec<_> = (0..askers)
            .map(|asker| {
                let (barrier, target) = (&barrier, &target);
                scope.spawn(move || {
                    let mut connection = Connection::open(server.address);
                    barrier.wait();
                    thread::sleep(delay * u32::try_from(asker).expect("few askers"));
                    let begin = Instant::now();
                    let target = target(asker);
                    assert_eq!(connection.request(&get(&target), b"").0, 200, "{target}");
                    begin.elapsed().as_secs_f64()
                })
            })
            .collect();
        askers.into_iter().map(|asker| asker.join().expect("an answer")).collect()
    });
    Turn { seconds: latencies.iter().sum::<f64>() / askers as f64, latencies }
}

fn idle(bench: &Bench, server: &Zarrd) -> Vec<Comparison> {
    let turn = |idle: usize| {
        move |_: usize| {
            let connect = |_| TcpStream::connect(server.address).expect("connect");
            let connections: Vec<TcpStream> = (0..idle).map(connect).collect();
            thread::sleep(SETTLED);
            let turn = load(ACTIVE, bench.options.scale.turn, server.address, |connection, _, _| {
                assert_eq!(connection.request(&get("/store/zstd/zarr.json"), b"").0, 200);
            });
            drop(connections);
            turn
        }
    };
    let contestants = vec![Contestant::new("64", turn(0)), Contestant::new("64, beside 512 idle ones", turn(IDLE))];
    vec![Comparison::run("connections", bench.options.scale.rounds, contestants)]
}

fn cached(bench: &Bench, server: &Zarrd) -> Vec<Comparison> {
    let at = bench.options.scale.side / 4 + 1;
    let boxed = format!("{at}:{0},{at}:{0},{at}:{0}", at + 100);
    let parts = [("box of 100³, unaligned", boxed), ("plane", at.to_string()), ("element", format!("{at},{at},{at}"))];
    let mut all = Vec::new();
    for (name, select) in parts {
        let array = format!("/array/zstd?format=raw&select={select}");
        let mut connection = Connection::open(server.address);
        let len = connection.request(&get(&array), b"").1;
        let put = with_body("PUT", "/store/same-bytes", "application/octet-stream", len);
        assert!(connection.request(&put, &vec![7; len]).0 < 300);
        for connections in [1, ASKERS] {
            let turn = |target: String| {
                move |_: usize| {
                    load(connections, bench.options.scale.turn, server.address, |connection, _, _| {
                        assert_eq!(connection.request(&get(&target), b"").0, 200);
                    })
                }
            };
            let contestants = vec![
                Contestant::new("from the cache", turn(array.clone())),
                Contestant::new("the same bytes as a value", turn("/store/same-bytes".to_owned())),
            ];
            let name = format!("{name}, {connections} connections");
            all.push(Comparison::run(name, bench.options.scale.rounds, contestants));
        }
    }
    all
}
