//! A cheap HTTP/1.1 client, so that the servers dominate the measurement.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Barrier,
    time::{Duration, Instant},
};

use zarrd_tests::benchmark::comparison::Turn;

/// A keep-alive connection.
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

    /// Sends a request and reads the complete response; returns the status and the length of the body.
    pub(crate) fn request(&mut self, head: &str, body: &[u8]) -> (u16, usize) {
        self.stream.write_all(head.as_bytes()).expect("send");
        self.stream.write_all(body).expect("send");
        let mut filled = 0;
        let (status, length, begun) = loop {
            let read = self.receive(filled);
            filled += read;
            if let Some(end) = self.buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end]).expect("a head in ASCII");
                let status = head[9..12].parse().expect("a status");
                break (status, Length::of(head), end + 4);
            }
        };
        let got = filled - begun;
        match length {
            Length::Known(length) => {
                self.drain(length.saturating_sub(got));
                (status, length)
            }
            Length::Chunked => (status, self.chunked(begun, filled)),
        }
    }

    fn receive(&mut self, at: usize) -> usize {
        let read = self.stream.read(&mut self.buffer[at..]).expect("receive");
        assert!(read > 0, "the server closed the connection");
        read
    }

    fn drain(&mut self, mut left: usize) {
        while left > 0 {
            left = left.saturating_sub(self.receive(0));
        }
    }

    /// Reads a chunked body to its end marker, which no listing contains; returns its length, including the chunk
    /// framing.
    fn chunked(&mut self, begun: usize, filled: usize) -> usize {
        let mut total = filled - begun;
        let mut tail: Vec<u8> = self.buffer[begun..filled].to_vec();
        while !tail.ends_with(b"0\r\n\r\n") {
            let read = self.receive(0);
            total += read;
            tail.extend_from_slice(&self.buffer[..read]);
            tail.drain(..tail.len().saturating_sub(8));
        }
        total
    }
}

/// The length of a body, according to the response head.
enum Length {
    Known(usize),
    Chunked,
}

impl Length {
    fn of(head: &str) -> Self {
        let field = |wanted: &str| {
            head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case(wanted).then(|| value.trim())
            })
        };
        match field("content-length") {
            Some(length) => Self::Known(length.parse().expect("a length")),
            None if field("transfer-encoding").is_some() => Self::Chunked,
            None => Self::Known(0),
        }
    }
}

/// The head of a request without a body.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n")
}

/// The head of a request with a body.
pub(crate) fn with_body(method: &str, target: &str, media: &str, length: usize) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends requests repeatedly on several connections for a duration.
pub(crate) fn load(
    connections: usize,
    time: Duration,
    address: SocketAddr,
    request: impl Fn(&mut Connection, usize, u64) + Sync,
) -> Turn {
    together(connections, time, |number| {
        let mut connection = Connection::open(address);
        // The first request of a connection is not measured.
        request(&mut connection, number, u64::MAX);
        let request = &request;
        move |count| request(&mut connection, number, count)
    })
}

/// Runs an operation repeatedly on several threads for a duration. Each thread creates its operation first, and all
/// threads start together.
pub(crate) fn together<F: FnMut(u64)>(threads: usize, time: Duration, make: impl Fn(usize) -> F + Sync) -> Turn {
    let barrier = Barrier::new(threads);
    let done: Vec<(Vec<f64>, f64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let (barrier, make) = (&barrier, &make);
                scope.spawn(move || {
                    let mut operation = make(number);
                    barrier.wait();
                    let (begin, mut latencies) = (Instant::now(), Vec::new());
                    while begin.elapsed() < time {
                        let each = Instant::now();
                        operation(latencies.len() as u64);
                        latencies.push(each.elapsed().as_secs_f64());
                    }
                    (latencies, begin.elapsed().as_secs_f64())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread of the load")).collect()
    });
    let seconds = done.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    Turn { seconds, latencies: done.into_iter().flat_map(|(latencies, _)| latencies).collect() }
}
