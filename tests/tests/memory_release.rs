//! Memory used by a burst of requests is returned to the system.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use zarrd_tests::{
    server::Launch,
    skip::{note, skip},
};

const UPLOADS: u64 = 1000;
/// The maximum growth of the server's memory after a minute, in bytes.
const MAX_GROWTH: u64 = 50 << 20;

#[test]
fn memory_is_released_after_a_thousand_aborted_uploads() {
    let files = getrlimit(Resource::Nofile);
    if files.maximum.is_some_and(|most| most < UPLOADS + 100) {
        return skip("a thousand connections at a time");
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(UPLOADS + 100), ..files }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).arg("--max-connections=2000").start();
    std::thread::sleep(Duration::from_secs(1));
    let idle = server.memory();

    let half = vec![7; 512 << 10];
    let uploads: Vec<TcpStream> = (0..UPLOADS)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            let head = format!(
                "PUT /store/{number} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
                server.address(),
                1 << 20
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&half).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let paused = server.memory();
    drop(uploads);

    let started = Instant::now();
    while server.memory() > idle + MAX_GROWTH {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} MiB of {} are left",
            server.memory() >> 20,
            paused >> 20
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let mib = [idle, paused, server.memory()].map(|bytes| bytes >> 20);
    note(format_args!("idle, paused, after {:?}: {mib:?} MiB", started.elapsed()));
    assert!(paused > idle + MAX_GROWTH, "the uploads used memory");
    server.stop();
}
