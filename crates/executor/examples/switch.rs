//! The times that the table of limits compares: of a switch to another thread, and of copies.
//!
//! ```text
//! cargo run -p zarrd-executor --example switch
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{hint::black_box, time::Instant};

use zarrd_executor::{Cost, Executor, Work};

const ROUNDS: u32 = 5000;

#[tokio::main]
async fn main() {
    let executor = Executor::new();
    for (name, cost) in [("at once", Cost::of(Work::Compute, 0)), ("on another thread", Cost::codec(1))] {
        let started = Instant::now();
        for _ in 0..ROUNDS {
            if executor.run(cost, || ()).await.is_err() {
                return;
            }
        }
        report(name, started);
    }
    for kib in [64, 128, 2048] {
        let (from, mut to) = (vec![1_u8; kib << 10], vec![0_u8; kib << 10]);
        let started = Instant::now();
        for _ in 0..ROUNDS {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        }
        report(&format!("a copy of {kib} KiB"), started);
    }
}

fn report(name: &str, started: Instant) {
    println!("{name}: {} ns", started.elapsed().as_nanos() / u128::from(ROUNDS));
}
