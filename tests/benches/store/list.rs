//! `list_dir` in a store of many keys.

use std::{path::Path, time::Instant};

use store::{Change, Content, Key, Precondition, TransactionalStore};
use store_local::{IndexKind, LocalStore, Options};

use crate::common::{http::Connection, peers::Zarrd, spread};

pub(crate) fn run(index: IndexKind, keys: u64) {
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = scratch.path().join("store");
    fill(index, &dir, keys);
    let zarrd = Zarrd::start(index, &dir);
    println!("start with {keys} keys ({index}): {:.2} s", zarrd.started_in.as_secs_f64());
    let mut connection = Connection::open(zarrd.address);
    for (what, path) in [("1,000 keys", "/store/flat/250/"), ("1,000 prefixes", "/store/deep/")] {
        let head = format!("GET {path}?limit=1000 HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n");
        let times: Vec<f64> = (0..50)
            .map(|_| {
                let begin = Instant::now();
                let (status, _) = connection.ask(head.as_bytes(), b"");
                assert_eq!(status, 200);
                begin.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        println!("list_dir of {what} in {keys} ({index}): {} ms, first {:.2} ms", spread(&times), times[0]);
    }
}

/// Half of the keys lie in directories of 1,000, half below 1,000 prefixes.
pub(crate) fn fill(index: IndexKind, dir: &Path, keys: u64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let begin = Instant::now();
    runtime.block_on(async {
        let store = LocalStore::open(dir, Options::new(index)).await.expect("open the store");
        let mut changes = Vec::new();
        for number in 0..keys {
            let text = match number % 2 {
                0 => format!("flat/{}/{:03}", number / 2 / 1000, number / 2 % 1000),
                _ => format!("deep/{:03}/c/{}", number / 2 % 1000, number / 2 / 1000),
            };
            let key = Key::parse(&text).expect("a key");
            let staged = store.stage(&key, Content::from_bytes(vec![number as u8; 32])).await.expect("stage");
            changes.push(Change::Set { staged, precondition: Precondition::none() });
            if changes.len() == 20_000 || number + 1 == keys {
                store.commit(std::mem::take(&mut changes)).await.expect("commit");
            }
        }
        store.close().await.expect("close");
    });
    println!("{keys} keys loaded in {:.0} s ({index})", begin.elapsed().as_secs_f64());
}
