//! GET of values, against nginx serving the same bytes as files.

use std::{fs, net::SocketAddr, time::Duration};

use store_local::IndexKind;

use crate::common::{
    Pairs,
    http::{Connection, load},
    peers::{Nginx, Zarrd},
};

const VALUES: u64 = 64;

pub(crate) fn run(index: IndexKind) {
    let scratch = tempfile::tempdir().expect("a directory");
    let root = scratch.path().join("root");
    fs::create_dir(&root).expect("make a directory");
    let zarrd = Zarrd::start(index, &scratch.path().join("store"));
    let mut connection = Connection::open(zarrd.address);
    for size in [1 << 10, 512 << 10] {
        for number in 0..VALUES {
            let value: Vec<u8> = (0..size).map(|at| (at as u64 * 31 + number) as u8).collect();
            let name = name(size, number);
            fs::write(root.join(&name), &value).expect("write a file");
            let head = format!("PUT /store/{name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n");
            assert_eq!(connection.ask(head.as_bytes(), &value).0, 201);
        }
    }
    let Some(nginx) = Nginx::start(&root, scratch.path()) else {
        println!("get: skipped, since nginx is not installed (apt-get install nginx-light)");
        return;
    };
    for (size, label) in [(1 << 10, "1 KiB"), (512 << 10, "512 KiB")] {
        for connections in [1, 16] {
            let measure = |address: SocketAddr, path: &'static str| {
                move || {
                    load(
                        connections,
                        Duration::from_secs(2),
                        || Connection::open(address),
                        |connection, number, count| {
                            let value = count.wrapping_add(number as u64 * 7) % VALUES;
                            let name = name(size, value);
                            let head = format!("GET {path}{name} HTTP/1.1\r\nhost: localhost\r\n\r\n");
                            assert_eq!(connection.ask(head.as_bytes(), b""), (200, size));
                        },
                    )
                }
            };
            let pairs = Pairs::measure(7, measure(zarrd.address, "/store/"), measure(nginx.address, "/"));
            pairs.report(&format!("GET {label}, {connections} connections, vs nginx"), "/s");
        }
    }
    println!("peak memory of zarrd: {} MiB", zarrd.peak_mib());
}

fn name(size: usize, number: u64) -> String {
    format!("{size}-{number}")
}
