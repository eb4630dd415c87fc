//! Hierarchies of many nodes, and listings of many keys.

use std::{cell::RefCell, fs, path::PathBuf, time::Instant};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use zarrd_store::{BatchStore, Change, Key, Payload, Precondition, TransactionalStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};
use zarrd_tests::{
    benchmark::comparison::{Comparison, Contestant, Turn},
    python::Python,
};

use crate::{
    http::{Connection, get, load, with_body},
    python::{Process, turn},
    section::Section,
    servers::{Nginx, Zarrd},
    setup::Bench,
    start::grouped,
};

/// The number of arrays in a group.
const ARRAYS: u64 = 99;
/// The number of names in a listing.
const LISTED: u64 = 1000;

pub(crate) fn run(bench: &Bench) -> Section {
    let mut section = Section::default();
    match bench.python() {
        Ok(python) => hierarchy(bench, python, &mut section),
        Err(reason) => section.notes.push(format!("Hierarchies are not measured: {reason}.")),
    }
    let listings: Vec<_> =
        [IndexKind::Sled, IndexKind::Redb].into_iter().flat_map(|index| lists(bench, index)).collect();
    section.add(
        "**Listings in a large store**, a page of 1,000 names as JSON with size and time, on one connection.",
        listings,
    );
    section
}

/// A hierarchy in zarrd, and the same in files.
struct Hierarchy {
    zarrd: Zarrd,
    nginx: Result<Nginx, String>,
    files: PathBuf,
    zom: Value,
    process: RefCell<Process>,
    _directory: TempDir,
}

fn hierarchy(bench: &Bench, python: &Python, section: &mut Section) {
    let directory = bench.directory();
    let files = directory.path().join("files");
    fs::create_dir(&files).expect("make a directory");
    let it = Hierarchy {
        zarrd: Zarrd::start(bench.options.index, &directory.path().join("store"), &[]),
        nginx: Nginx::start(&files, directory.path()),
        zom: zom(bench.options.scale.nodes),
        process: RefCell::new(Process::start(python, "the clients")),
        files: files.join("tree"),
        _directory: directory,
    };
    let nodes = grouped(bench.options.scale.nodes);
    let few = bench.options.scale.few;
    let ours = Contestant::new("zarrd, one request", |_| it.declare());
    let peer = Contestant::new("zarr-python, local files, `create_hierarchy`", |_| {
        it.process.borrow_mut().turn(&json!({"do": "create-tree", "directory": it.files, "zom": it.zom}))
    });
    let created = Comparison::run(format!("create {nodes} nodes"), few, vec![ours, peer]);
    it.process.borrow_mut().request(&json!({"do": "consolidate", "directory": it.files}));
    let trees = Comparison::run(format!("read the metadata of {nodes} nodes"), few, it.readers_of_trees(bench));
    let opened = Comparison::run(format!("open one of {nodes} nodes"), bench.options.scale.rounds, it.openers(bench));
    section.add("**A hierarchy of many nodes**, read as Python dictionaries.", vec![created, trees, opened]);
    section.add_peaks([it.zarrd.peak(), it.process.borrow().peak()]);
}

impl Hierarchy {
    fn declare(&self) -> Turn {
        let mut connection = Connection::open(self.zarrd.address);
        let (status, _) = connection.request(&get("/node/tree").replace("GET", "DELETE"), b"");
        assert!(status == 200 || status == 404, "{status}");
        let body = self.zom.to_string();
        let head = with_body("PUT", "/node/tree", "application/json", body.len());
        let begin = Instant::now();
        assert_eq!(connection.request(&head, body.as_bytes()).0, 201);
        Turn::once(begin.elapsed().as_secs_f64())
    }

    fn readers_of_trees<'a>(&'a self, bench: &'a Bench) -> Vec<Contestant<'a>> {
        let contestant = |name: &str, reader: &'static str, url: Result<String, String>| match url {
            Ok(url) => Contestant::new(name, move |_| {
                let answer = self.process.borrow_mut().request(&json!({"do": "tree", "reader": reader, "url": url}));
                assert_eq!(answer["nodes"], bench.options.scale.nodes, "{reader}");
                turn(&answer)
            }),
            Err(reason) => Contestant::absent(name, reason),
        };
        vec![
            contestant("zarrd, one request", "http.client", Ok(self.zarrd.url("/node/tree"))),
            contestant("zarr-python, nginx, consolidated metadata", "consolidated", self.nginx("tree")),
            contestant("zarr-python, local files", "walk", Ok(format!("file://{}", self.files.display()))),
        ]
    }

    fn openers<'a>(&'a self, bench: &'a Bench) -> Vec<Contestant<'a>> {
        let seconds = bench.options.scale.turn.as_secs_f64();
        let groups = bench.options.scale.nodes / (ARRAYS + 1);
        let contestant = |name: &str, reader: &'static str, url: Result<String, String>, directory: Option<PathBuf>| {
            let url = match url {
                Ok(url) => url,
                Err(reason) => return Contestant::absent(name, reason),
            };
            Contestant::new(name, move |round| {
                let mut random = StdRng::seed_from_u64(round as u64);
                let mut name = || {
                    let (group, array) = (random.random_range(0..groups), random.random_range(0..ARRAYS - 1));
                    format!("group{group:04}/array{array:02}")
                };
                let names: Vec<String> = (0..1000).map(|_| name()).collect();
                let request = json!({"do": "documents", "reader": reader, "url": url, "directory": directory,
                    "names": names, "shape": [1000, 1000], "seconds": seconds});
                self.process.borrow_mut().turn(&request)
            })
        };
        vec![
            contestant("zarrd", "http.client", Ok(self.zarrd.url("/node/tree")), None),
            contestant("tensorstore, nginx", "tensorstore", self.nginx("tree"), None),
            contestant("zarr-python, nginx", "zarr-python", self.nginx("tree"), None),
            contestant("zarr-python, local files", "zarr-python", Ok(String::new()), Some(self.files.clone())),
        ]
    }

    fn nginx(&self, path: &str) -> Result<String, String> {
        self.nginx.as_ref().map(|nginx| nginx.url(&format!("/{path}"))).map_err(Clone::clone)
    }
}

/// A tree of groups of arrays.
fn zom(nodes: u64) -> Value {
    let group = |members: Map<String, Value>| {
        json!({"zarr_format": 3, "node_type": "group", "attributes": {},
        "members": members})
    };
    let array = |number| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [1000, 1000], "data_type": "float32", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100, 100]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": 3, "checksum": false}},
            ],
            "attributes": {"number": number, "unit": "mm"},
        })
    };
    let mut groups = Map::new();
    let mut left = nodes.saturating_sub(1);
    while left > 0 {
        let arrays = ARRAYS.min(left - 1);
        let members = (0..arrays).map(|number| (format!("array{number:02}"), array(number)));
        groups.insert(format!("group{:04}", groups.len()), group(members.collect()));
        left -= arrays + 1;
    }
    group(groups)
}

/// A store of many keys, not opened by any server.
pub(crate) struct Large {
    pub(crate) store: PathBuf,
    directory: TempDir,
}

/// Fills a store: half of the keys lie in directories of 1,000, half below 1,000 prefixes.
pub(crate) fn fill(bench: &Bench, index: IndexKind) -> Large {
    let directory = bench.directory();
    let store = directory.path().join("store");
    let keys = bench.options.scale.keys;
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let store = LocalStore::open(&store, Options::new(index)).await.expect("open the store");
        let mut changes = Vec::new();
        for number in 0..keys {
            let text = match number % 2 {
                0 => format!("flat/{}/{:03}", number / 2 / LISTED, number / 2 % LISTED),
                _ => format!("deep/{:03}/c/{}", number / 2 % LISTED, number / 2 / LISTED),
            };
            let key = Key::parse(&text).expect("a key");
            let staged = store.stage(&key, Payload::from_bytes(vec![number as u8; 32])).await.expect("stage");
            changes.push(Change::Set { staged, precondition: Precondition::none() });
            if changes.len() == 20_000 || number + 1 == keys {
                store.commit(std::mem::take(&mut changes)).await.expect("commit");
            }
        }
        store.close().await.expect("close");
    });
    Large { store, directory }
}

fn lists(bench: &Bench, index: IndexKind) -> Vec<Comparison> {
    let large = bench.large(index);
    let (root, scale) = (large.directory.path().join("root"), &bench.options.scale);
    for number in 0..LISTED {
        fs::create_dir_all(root.join(format!("deep/{number:03}"))).expect("make a directory");
        fs::create_dir_all(root.join("flat")).expect("make a directory");
        fs::write(root.join(format!("flat/{number:03}")), [0; 32]).expect("write a file");
    }
    let zarrd = Zarrd::start(index, &large.store, &[]);
    let nginx = Nginx::start(&root, large.directory.path());
    let list = |address, target: &str| {
        load(1, scale.turn, address, |connection, _, _| {
            let (status, length) = connection.request(&get(target), b"");
            assert!(status == 200 && length > 6 * LISTED as usize, "{target}: {status}, {length} bytes");
        })
    };
    let directory = scale.keys / 2 / LISTED / 2;
    let cases = [
        ("keys", format!("/store/flat/{directory}/?limit=1000"), "/flat/"),
        ("prefixes", "/store/deep/?limit=1000".to_owned(), "/deep/"),
    ];
    let compare = |(what, ours, theirs): &(&str, String, &str)| {
        let peer = match &nginx {
            Ok(nginx) => Contestant::new("nginx, autoindex of a directory", |_| list(nginx.address, theirs)),
            Err(reason) => Contestant::absent("nginx, autoindex of a directory", reason),
        };
        let contestants = vec![Contestant::new("zarrd", |_| list(zarrd.address, ours)), peer];
        let name = format!("1,000 {what} of {} keys, {index}", grouped(scale.keys));
        Comparison::run(name, scale.rounds, contestants)
    };
    let comparisons = cases.iter().map(compare).collect();
    zarrd.stop();
    comparisons
}
