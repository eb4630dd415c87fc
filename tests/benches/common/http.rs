//! A client of HTTP/1.1 that costs little, so that the servers are what is measured.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Barrier,
    time::{Duration, Instant},
};

/// A connection that is kept alive.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream, buffer: vec![0; 1 << 20] }
    }

    /// Sends a request and reads the whole answer; gives the status and the body's length.
    pub(crate) fn ask(&mut self, head: &[u8], body: &[u8]) -> (u16, usize) {
        let (status, len, _) = self.ask_timed(head, body);
        (status, len)
    }

    /// As [`ask`](Self::ask), and tells how long the body's first byte took.
    pub(crate) fn ask_timed(&mut self, head: &[u8], body: &[u8]) -> (u16, usize, Duration) {
        let begin = Instant::now();
        self.stream.write_all(head).expect("send");
        self.stream.write_all(body).expect("send");
        let mut filled = 0;
        let (status, len, mut got) = loop {
            let read = self.stream.read(&mut self.buffer[filled..]).expect("receive");
            assert!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(end) = self.buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end]).expect("a head in ASCII");
                let status = head[9..12].parse().expect("a status");
                let len = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().expect("a length"))
                });
                break (status, len.unwrap_or(0), filled - end - 4);
            }
        };
        let mut first = (got > 0).then(|| begin.elapsed());
        while got < len {
            let read = self.stream.read(&mut self.buffer).expect("receive");
            assert!(read > 0, "the server closed the connection");
            first.get_or_insert_with(|| begin.elapsed());
            got += read;
        }
        (status, len, first.unwrap_or_else(|| begin.elapsed()))
    }
}

/// Asks over and over on some connections at once, for a time; gives the answers a second.
pub(crate) fn load(
    connections: usize,
    time: Duration,
    open: impl Fn() -> Connection + Sync,
    ask: impl Fn(&mut Connection, usize, u64) + Sync,
) -> f64 {
    let barrier = Barrier::new(connections);
    let counts: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|number| {
                let (barrier, open, ask) = (&barrier, &open, &ask);
                scope.spawn(move || {
                    let mut connection = open();
                    ask(&mut connection, number, u64::MAX);
                    barrier.wait();
                    let (begin, mut count) = (Instant::now(), 0);
                    while begin.elapsed() < time {
                        ask(&mut connection, number, count);
                        count += 1;
                    }
                    (count, begin.elapsed())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a connection's thread")).collect()
    });
    counts.iter().map(|(count, elapsed)| *count as f64 / elapsed.as_secs_f64()).sum()
}
