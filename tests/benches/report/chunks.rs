//! GET of values, compared with nginx that serves the same bytes from files.

use std::{fs, net::SocketAddr, path::Path, time::Instant};

use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    clients::Client,
    http::{Connection, get, load, with_body},
    section::Section,
    servers::{Nginx, Zarrd, drop_page_cache},
    setup::Bench,
};

/// The number of values of each size.
const VALUES: u64 = 64;
const SIZES: [(usize, &str); 2] = [(1 << 10, "1 KiB"), (1 << 20, "1 MiB")];

pub(crate) fn run(bench: &Bench) -> Section {
    let scratch = bench.directory();
    let (root, store) = (scratch.path().join("root"), scratch.path().join("store"));
    fs::create_dir(&root).expect("make a directory");
    let zarrd = Zarrd::start(bench.options.index, &store, &[]);
    write_values(&root, zarrd.address);
    let nginx = Nginx::start(&root, scratch.path());
    let mut section = Section::default();
    let mut comparisons = Vec::new();
    for (size, label) in SIZES {
        for connections in [1, 16] {
            let ours = values(bench, zarrd.address, "/store/", size, connections);
            let peer = match &nginx {
                Ok(nginx) => Contestant::new("nginx", values(bench, nginx.address, "/", size, connections)),
                Err(reason) => Contestant::absent("nginx", reason),
            };
            let what = format!("GET {label}, {}", plural(connections));
            let contestants = vec![Contestant::new("zarrd", ours), peer];
            let comparison = Comparison::run(what, bench.options.scale.rounds, contestants);
            comparisons.push(if size > 1 << 16 { comparison.of_bytes(size as u64) } else { comparison });
        }
    }
    section.add("**Values in `/store`**, with a warm page cache.", comparisons);
    section.add_peaks([zarrd.peak()]);
    drop(nginx);
    zarrd.stop();
    section.add(
        format!("**Values in `/store`, cold**: new servers, {}, each value once on one connection.", drop_page_cache()),
        vec![cold(bench, &root, &store, scratch.path())],
    );
    decoded(bench, &mut section);
    section
}

/// Creates the values, as files and in the store.
fn write_values(root: &Path, address: SocketAddr) {
    let mut connection = Connection::open(address);
    for (size, _) in SIZES {
        for number in 0..VALUES {
            let value: Vec<u8> = (0..size).map(|at| (at as u64 * 31 + number) as u8).collect();
            let name = name(size, number);
            fs::write(root.join(&name), &value).expect("write a file");
            let head = with_body("PUT", &format!("/store/{name}"), "application/octet-stream", size);
            assert_eq!(connection.request(&head, &value).0, 201);
        }
    }
}

fn values(
    bench: &Bench,
    address: SocketAddr,
    path: &'static str,
    size: usize,
    connections: usize,
) -> impl FnMut(usize) -> Turn {
    let time = bench.options.scale.turn;
    move |_| {
        load(connections, time, address, |connection, number, count| {
            let value = count.wrapping_add(number as u64 * 7) % VALUES;
            let head = get(&format!("{path}{}", name(size, value)));
            assert_eq!(connection.request(&head, b""), (200, size));
        })
    }
}

/// Each value once, from a freshly started server and an empty page cache.
fn cold(bench: &Bench, root: &Path, store: &Path, scratch: &Path) -> Comparison {
    let size = 1 << 20;
    let ours = |_: usize| {
        let zarrd = Zarrd::start(bench.options.index, store, &[]);
        once_each(zarrd.address, "/store/", size)
    };
    let peer = match Nginx::start(root, scratch) {
        Ok(_) => Contestant::new("nginx", |_| {
            let nginx = Nginx::start(root, scratch).expect("it started before");
            once_each(nginx.address, "/", size)
        }),
        Err(reason) => Contestant::absent("nginx", reason),
    };
    let contestants = vec![Contestant::new("zarrd", ours), peer];
    Comparison::run("GET 1 MiB, 1 connection, cold", bench.options.scale.few, contestants).of_bytes(size as u64)
}

fn once_each(address: SocketAddr, path: &str, size: usize) -> Turn {
    drop_page_cache();
    let mut connection = Connection::open(address);
    let each = |value| {
        let begin = Instant::now();
        let head = get(&format!("{path}{}", name(size, value)));
        assert_eq!(connection.request(&head, b""), (200, size));
        begin.elapsed().as_secs_f64()
    };
    Turn::sequence((0..VALUES).map(each).collect())
}

/// Chunks that zarrd decodes, compared with nginx that serves them as uncompressed files.
fn decoded(bench: &Bench, section: &mut Section) {
    let arrays = match bench.arrays() {
        Ok(arrays) => arrays,
        Err(reason) => {
            section.notes.push(format!("Decoded chunks are not measured: {reason}."));
            return;
        }
    };
    let zarrd = bench.zarrd(&arrays);
    let nginx = bench.nginx(&arrays);
    let (size, time, chunks) = (64 * 64 * 64 * 4, bench.options.scale.turn, bench.options.scale.side / 64);
    let turn = |connections, address, target: &(dyn Fn([u64; 3]) -> String + Sync)| {
        load(connections, time, address, |connection, number, count| {
            // 16 chunks, which fit every cache.
            let chunk = count.wrapping_add(number as u64 * 5) % 16;
            let head = get(&target([chunk / chunks % 2, chunk % chunks, 1]));
            assert_eq!(connection.request(&head, b""), (200, size));
        })
    };
    let mut comparisons = Vec::new();
    for connections in [1, 16] {
        let ours = Contestant::new(Client::ZarrdArray.name(), |_| {
            turn(connections, zarrd.address, &|[a, b, c]| {
                let range = |chunk: u64| format!("{}:{}", chunk * 64, chunk * 64 + 64);
                format!("/array/zstd?select={},{},{}&format=raw", range(a), range(b), range(c))
            })
        });
        let peer = match &nginx {
            Ok(nginx) => Contestant::new("nginx, uncompressed files", |_| {
                turn(connections, nginx.address, &|[a, b, c]| format!("/raw/c/{a}/{b}/{c}"))
            }),
            Err(reason) => Contestant::absent("nginx, uncompressed files", reason),
        };
        let what = format!("chunk of `zstd`, {}", plural(connections));
        let comparison = Comparison::run(what, bench.options.scale.rounds, vec![ours, peer]);
        comparisons.push(comparison.of_bytes(size as u64));
    }
    section.add("**Decoded chunks from `/array`** of 64³ elements, read repeatedly.", comparisons);
}

pub(crate) fn plural(connections: usize) -> String {
    if connections == 1 { "1 connection".to_owned() } else { format!("{connections} connections") }
}

fn name(size: usize, number: u64) -> String {
    format!("{size}-{number}")
}
