//! Writers that run during a copy, and what a copy of one commit has of their changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use zarrd_tests::server::Server;

async fn text(server: &Server, path: &str) -> Option<String> {
    let (status, body) = server.answer(path).await;
    match status {
        StatusCode::OK => Some(String::from_utf8(body).unwrap()),
        StatusCode::NOT_FOUND => None,
        status => panic!("{path}: {status}"),
    }
}

async fn node(server: &Server, path: &str, shape: Value, chunks: Value) {
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": chunks } });
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint32", "chunk_grid": grid,
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
        "fill_value": 0, "attributes": {}
    });
    let request = server.request(Method::PUT, &format!("/node/{path}")).json(&array);
    assert!(request.send().await.unwrap().status().is_success());
}

/// Writers whose changes show if a copy mixes several commits.
pub(super) struct Writers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
    /// What has been acknowledged: rows, and keys in sequence.
    acknowledged: Arc<[AtomicU32; 2]>,
}

impl Writers {
    pub(super) async fn start(server: &Server) -> Self {
        node(server, "grow", json!([1, 8]), json!([1, 4])).await;
        node(server, "same", json!([6, 64]), json!([1, 64])).await;
        let mut writers = Self { stop: Arc::default(), tasks: JoinSet::new(), acknowledged: Arc::default() };
        let grow = server.url("/array/grow?append=0");
        let same = server.url("/array/same");
        let (keys, counter, swept) =
            (server.url("/store/seq/"), server.url("/store/counter"), server.url("/store/swept/"));
        let http = reqwest::Client::new();
        let sent = async |request: reqwest::RequestBuilder| {
            let status = request.send().await.unwrap().status();
            assert!(status.is_success(), "{status}");
        };
        let (client, stop, done) = (http.clone(), writers.stop.clone(), writers.acknowledged.clone());
        writers.tasks.spawn(async move {
            for row in 1_u32.. {
                sent(client.post(&grow).json(&vec![vec![row + 1; 8]])).await;
                done[0].store(row, Ordering::SeqCst);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let (client, stop) = (http.clone(), writers.stop.clone());
        writers.tasks.spawn(async move {
            for round in 1_u32.. {
                sent(client.put(&same).json(&round)).await;
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let (client, stop, done) = (http.clone(), writers.stop.clone(), writers.acknowledged.clone());
        writers.tasks.spawn(async move {
            for number in 0_u32.. {
                // Small and large values by turns.
                let value = number.to_string().repeat(if number.is_multiple_of(3) { 3000 } else { 1 });
                sent(client.put(format!("{keys}{number}")).body(value)).await;
                sent(client.put(&counter).body(number.to_string().repeat(if number.is_multiple_of(2) {
                    2000
                } else {
                    1
                })))
                .await;
                done[1].store(number + 1, Ordering::SeqCst);
                if number % 20 == 7 {
                    sent(client.put(format!("{swept}a")).body("a")).await;
                    sent(client.put(format!("{swept}b")).body("b".repeat(9000))).await;
                    sent(client.delete(&swept)).await;
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        while writers.acknowledged().contains(&0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        writers
    }

    pub(super) fn acknowledged(&self) -> [u32; 2] {
        [0, 1].map(|index| self.acknowledged[index].load(Ordering::SeqCst))
    }

    pub(super) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
    }
}

/// The number of keys that a listing is requested of, more than writers add.
const MAX_KEYS: usize = 10_000;

/// Asserts that a server has what the writers' one had at one commit, at the earliest when `acknowledged` was.
pub(super) async fn is_of_one_commit(server: &Server, [rows, number]: [u32; 2]) {
    let grown: Value = serde_json::from_str(&text(server, "/array/grow?format=json").await.unwrap()).unwrap();
    let found = grown.as_array().unwrap();
    assert!(found.len() > rows as usize, "{} rows of {rows} that were acknowledged", found.len());
    for (row, found) in found.iter().enumerate().skip(1) {
        assert_eq!(*found, json!(vec![row + 1; 8]), "row {row} of {}", grown.as_array().unwrap().len());
    }
    let same: Value = serde_json::from_str(&text(server, "/array/same?format=json").await.unwrap()).unwrap();
    let first = &same[0][0];
    assert!(same.as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap()).all(|one| one == first), "{same}");
    let counter = text(server, "/store/counter").await.unwrap();
    let listed: Value =
        serde_json::from_str(&text(server, &format!("/store/seq/?list=keys&limit={MAX_KEYS}")).await.unwrap()).unwrap();
    let keys = listed["keys"].as_array().unwrap().len();
    assert!(keys < MAX_KEYS);
    assert!(keys >= number as usize, "{keys} keys of {number} that were acknowledged");
    for number in 0..keys {
        let value = text(server, &format!("/store/seq/{number}")).await;
        let expected = number.to_string().repeat(if number.is_multiple_of(3) { 3000 } else { 1 });
        assert_eq!(value.as_deref(), Some(&*expected), "{number} of {keys}");
    }
    let counts = |last: usize| last.to_string().repeat(if last.is_multiple_of(2) { 2000 } else { 1 });
    let last = keys - 1;
    assert!(counter == counts(last) || (last > 0 && counter == counts(last - 1)), "{last}");
    let swept = text(server, "/store/swept/?list=keys").await.unwrap();
    let swept: Value = serde_json::from_str(&swept).unwrap();
    assert!([json!([]), json!(["swept/a"]), json!(["swept/a", "swept/b"])].contains(&swept["keys"]), "{swept}");
}
