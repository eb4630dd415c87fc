//! Other Zarr libraries as used by their users: zarr-python writes and reads, tensorstore and zarrita read.

use std::path::Path;

use tempfile::TempDir;
use zarrd_tests::{
    node::node,
    python::{Python, python},
    server::{Launch, Server},
    skip::note,
};

/// A server with data written by zarr-python, and its expected contents.
struct SampleServer {
    server: Server,
    store: TempDir,
    elements: TempDir,
    arrays: usize,
}

impl SampleServer {
    fn by(python: &Python) -> Self {
        let (store, elements) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = Launch::sled(store.path()).start();
        let output = python.run("write_zarr_python.py", &[&server.url("/store/lab"), text(elements.path())]);
        note(&output);
        let manifest = std::fs::read(elements.path().join("manifest.json")).unwrap();
        let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).unwrap();
        assert!(manifest.len() >= 50, "{}", manifest.len());
        Self { server, store, elements, arrays: manifest.len() }
    }

    /// The path of the expected elements.
    fn elements(&self) -> &str {
        text(self.elements.path())
    }

    /// The same store under another server, with the addresses in the manifest adapted.
    fn restarted(self) -> Self {
        let Self { server, store, elements, arrays } = self;
        let before = server.url("");
        server.stop();
        let server = Launch::sled(store.path()).start();
        let path = elements.path().join("manifest.json");
        let manifest = std::fs::read_to_string(&path).unwrap().replace(&before, &server.url(""));
        std::fs::write(path, manifest).unwrap();
        Self { server, store, elements, arrays }
    }

    /// The number of body bytes that the server has sent.
    async fn sent(&self) -> u64 {
        let metrics = self.server.get("/metrics").await.text().await.unwrap();
        let line = metrics.lines().find_map(|line| line.strip_prefix("zarrd_http_sent_bytes_total ")).unwrap();
        line.parse().unwrap()
    }

    /// Reads a 32 KiB part of an 8 MiB shard with a library.
    async fn read_part_of_shard(&self, python: &Python, library: &str) {
        let before = self.sent().await;
        python.run("read_part_of_shard.py", &[library, &self.server.url("/store/lab"), self.elements()]);
        let sent = self.sent().await - before;
        note(format_args!("{library} read 32 KiB of a shard of 8 MiB with {sent} bytes"));
        assert!((32 << 10..128 << 10).contains(&sent), "{sent}");
    }
}

#[tokio::test]
async fn zarr_python_round_trips_across_a_restart() {
    let Some(python) = python() else { return };
    let mut written = SampleServer::by(&python);
    for _ in 0..2 {
        let url = written.server.url("/store/lab");
        let output = python.run("read_zarr_python.py", &[&url, written.elements()]);
        note(&output);
        assert!(output.contains(&format!("compared {} arrays", written.arrays)));
        written.read_part_of_shard(&python, "zarr").await;
        written = written.restarted();
    }
}

#[test]
fn zarr_python_erases_with_an_extended_store() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    note(python.run("erase_zarr_python.py", &[&server.url("/store/lab")]));
}

#[tokio::test]
async fn tensorstore_reads_zarr_python_arrays() {
    let Some(python) = python() else { return };
    let written = SampleServer::by(&python);
    let output = python.run("read_tensorstore.py", &[written.elements()]);
    note(&output);
    assert!(output.contains(&format!("compared {} arrays, 6 of them sharded", written.arrays)));
    written.read_part_of_shard(&python, "tensorstore").await;
}

#[test]
fn zarrita_reads_zarr_python_arrays() {
    let (Some(python), Some(node)) = (python(), node()) else { return };
    let written = SampleServer::by(&python);
    for arguments in [&[written.elements()][..], &[written.elements(), "suffix"]] {
        let output = node.run("read_zarrita.mjs", arguments);
        note(&output);
        let compared: usize = output.split_whitespace().nth(3).unwrap().parse().unwrap();
        // All except two complex types and, with Node before 24, float16, in both formats; and bz2.
        assert!(compared >= written.arrays - 7 && output.contains("6 of them sharded"), "{output}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
