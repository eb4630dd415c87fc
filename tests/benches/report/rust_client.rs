//! The Rust client, which reads into a vector of numbers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use zarrd_client::{ArrayClient, BaseUrl, NodePath, Selection};
use zarrd_tests::benchmark::comparison::{Contestant, Turn};

use crate::{clients::Reads, servers::Zarrd, setup::Bench};

/// The client as a contestant that reads selections.
pub(crate) fn contestant<'a>(bench: &'a Bench, zarrd: &Zarrd, reads: &'a Reads<'a>) -> Contestant<'a> {
    let runtime = Runtime::new().expect("a runtime");
    let arrays = ArrayClient::new(BaseUrl::parse(&zarrd.url("")).expect("a URL")).expect("a client");
    let path = NodePath::parse(reads.array).expect("a path");
    Contestant::new("zarrd by the Rust client", move |round| {
        let (begin, mut latencies) = (Instant::now(), Vec::new());
        for what in (reads.what)(round) {
            let each = Instant::now();
            let read = arrays.read_as::<f32>(&path, selection(&what));
            let elements = runtime.block_on(read).expect("the elements");
            latencies.push(each.elapsed().as_secs_f64());
            if latencies.len() == 1 {
                let digest = json!([elements.description.shape, checksum(&elements.content)]);
                bench.check(reads.array, &what, &digest);
            }
            if begin.elapsed() >= bench.options.scale.turn.max(Duration::from_millis(1)) {
                break;
            }
        }
        Turn::sequence(latencies)
    })
}

fn selection(what: &Value) -> Selection {
    let items = what.as_array().expect("a selection").iter().map(|item| match item.as_array() {
        Some(range) => range.iter().map(Value::to_string).collect::<Vec<_>>().join(":"),
        None => item.to_string(),
    });
    Selection::parse(&items.collect::<Vec<_>>().join(",")).expect("a selection")
}

/// The same checksum as Python's `zlib.crc32`.
fn checksum(elements: &[f32]) -> u32 {
    let mut checksum = flate2::Crc::new();
    for element in elements {
        checksum.update(&element.to_le_bytes());
    }
    checksum.sum()
}
