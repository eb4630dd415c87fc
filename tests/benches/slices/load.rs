//! Many requests at a time.

use std::{net::SocketAddr, time::Duration};

use crate::{
    Bench,
    common::{
        Pairs,
        http::{Connection, load},
        spread,
    },
    slices::request,
};

const TIME: Duration = Duration::from_secs(2);

/// Aligned chunks against nginx, which sends the files that they are in.
pub(crate) fn chunk(bench: &Bench) {
    let zarrd = bench.zarrd();
    let Some(nginx) = bench.nginx() else { return };
    let bytes = 64 * 64 * 64 * 4;
    for array in &bench.arrays {
        for connections in [1, 16] {
            let ours = measure(connections, zarrd.address, bytes, |[a, b, c]| {
                let range = |chunk: u64| format!("{}:{}", chunk * 64, chunk * 64 + 64);
                request(array, &format!("{},{},{}", range(a), range(b), range(c)))
            });
            // Whatever the array, nginx sends as many bytes as the elements have.
            let peer = measure(connections, nginx.address, bytes, |[a, b, c]| {
                format!("GET /raw/c/{a}/{b}/{c} HTTP/1.1\r\nhost: localhost\r\n\r\n")
            });
            let pairs = Pairs::measure(5, ours, peer);
            pairs.report(&format!("chunks of {array}, {connections} connections, vs nginx"), "MiB/s");
        }
    }
}

/// Single elements, anywhere in the array and in a part of it.
pub(crate) fn elements(bench: &Bench) {
    for array in &bench.arrays {
        let zarrd = bench.zarrd();
        for (what, chunks) in [("anywhere", 8), ("in 64 chunks", 4)] {
            let figures: Vec<f64> = (0..5)
                .map(|_| {
                    load(
                        16,
                        TIME,
                        || Connection::open(zarrd.address),
                        |connection, number, count| {
                            let at = scattered(count.wrapping_mul(16).wrapping_add(number as u64));
                            let at = at.map(|at| at % (chunks * 64));
                            let head = request(array, &format!("{},{},{}", at[0], at[1], at[2]));
                            assert_eq!(connection.ask(head.as_bytes(), b""), (200, 4));
                        },
                    )
                })
                .collect();
            println!("elements of {array:<8} {what}, 16 connections: {} /s", spread(&figures));
        }
    }
}

fn measure(
    connections: usize,
    address: SocketAddr,
    bytes: usize,
    head: impl Fn([u64; 3]) -> String + Sync,
) -> impl FnMut() -> f64 {
    move || {
        let answers = load(
            connections,
            TIME,
            || Connection::open(address),
            |connection, number, count| {
                // 32 chunks, so that what they decode to fits every cache.
                let chunk = count.wrapping_add(number as u64 * 5) % 32;
                let head = head([chunk / 8, (chunk / 4) % 2, chunk % 4]);
                assert_eq!(connection.ask(head.as_bytes(), b""), (200, bytes));
            },
        );
        answers * bytes as f64 / 1_048_576.0
    }
}

/// Three numbers that look random and are the same in every run.
fn scattered(number: u64) -> [u64; 3] {
    let mixed = |salt: u64| (number.wrapping_add(salt)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) >> 7;
    [mixed(1), mixed(1 << 20), mixed(1 << 40)]
}
