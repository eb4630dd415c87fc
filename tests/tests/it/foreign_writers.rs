//! A directory that several programs change while it is read.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use tokio::task::JoinSet;
use zarrd_tests::{
    environment::clients,
    python::{Python, python_with_clients},
    server::{Launch, Server},
};
use zarrd_wire::problem::{Problem, ProblemType};

/// The programs of `change_directory.py`, with the array that each changes.
const WRITERS: [(&str, &str); 5] = [
    ("zarr", "zarr"),
    ("tensorstore", "tensorstore"),
    ("xarray", "xarray/x"),
    ("rename", "rename"),
    ("in_place", "in_place"),
];
const READERS: usize = 10;
const ROWS: usize = 8;
const DURATION: Duration = Duration::from_secs(12);

/// The number of elements of a row, which is a chunk.
const COLUMNS: usize = 4096;

/// A program that changes an array, until it is stopped.
struct Writer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn start(python: &Python, dir: &Path, name: &str) -> Self {
        let mut command = python.command();
        command.arg(clients().join("change_directory.py")).arg(dir).arg(name);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{name}");
        Self { process, output }
    }

    /// The number of its changes.
    fn stop(mut self) -> usize {
        drop(self.process.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.process.wait().unwrap().success());
        text.trim().parse().unwrap()
    }
}

/// The observations of an array's readers.
#[derive(Debug, Default)]
struct Seen {
    answers: usize,
    /// The answers that were given up, since the values kept changing.
    changed: usize,
    /// The numbers in the rows.
    numbers: BTreeSet<i32>,
}

/// Reads rows of an array, one after the other and then all of them; each row has to be one number.
async fn read(server: Arc<Server>, array: &'static str, until: Instant) -> Seen {
    let mut seen = Seen::default();
    for row in (0..ROWS).map(Some).chain([None]).cycle() {
        if Instant::now() >= until {
            break;
        }
        let select = row.map_or(":".to_owned(), |row| format!("{row}:{}", row + 1));
        let answer = server.get(&format!("/array/{array}?format=raw&select={select}")).await;
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            let problem = Problem::from_json(&answer.bytes().await.unwrap()).unwrap().kind;
            assert!(
                [ProblemType::ValueChanged, ProblemType::TooManyConflicts].contains(&problem),
                "{array}: {problem:?}"
            );
            seen.changed += 1;
            continue;
        }
        assert_eq!(answer.status(), StatusCode::OK, "{array}");
        // A change after the first byte resets the connection.
        let Ok(bytes) = answer.bytes().await else {
            seen.changed += 1;
            continue;
        };
        let elements: Vec<i32> =
            bytes.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect();
        assert_eq!(elements.len() % COLUMNS, 0, "{array}");
        for (number, row) in elements.chunks(COLUMNS).enumerate() {
            assert!(row.iter().all(|element| *element == row[0]), "{array}: row {number} is torn");
        }
        seen.answers += 1;
        seen.numbers.extend(elements.iter().step_by(COLUMNS));
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_see_whole_chunks_while_other_programs_write() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let writers = WRITERS.map(|(name, _)| Writer::start(&python, dir.path(), name));
    let server = Arc::new(Launch::of(format_args!("dir:{}", dir.path().display())).start());
    let until = Instant::now() + DURATION;
    let mut readers = JoinSet::new();
    for reader in 0..READERS {
        let (number, server) = (reader % WRITERS.len(), Arc::clone(&server));
        readers.spawn(async move { (number, read(server, WRITERS[number].1, until).await) });
    }
    let seen = readers.join_all().await;
    let changes = writers.map(Writer::stop);
    for (number, seen) in &seen {
        let (name, _) = WRITERS[*number];
        println!("{name}: {} changes, {} answers, {} changed", changes[*number], seen.answers, seen.changed);
        assert!(changes[*number] > 1, "{name}: {changes:?}");
        assert!(seen.answers > 0 && seen.numbers.len() > 1, "{name}: {seen:?}");
    }
    entity_tags_are_current(&server).await;
}

/// Once nothing changes any more, an entity tag that matches is that of the bytes in the file.
async fn entity_tags_are_current(server: &Server) {
    for (_, array) in WRITERS {
        let path = format!("/array/{array}?format=raw");
        let (first, again) = (server.get(&path).await, server.get(&path).await);
        let tag = first.headers()[ETAG].clone();
        assert_eq!(again.headers()[ETAG], tag, "{array}");
        assert_eq!(first.bytes().await.unwrap(), again.bytes().await.unwrap(), "{array}");
        let unchanged = server.request(Method::GET, &path).header(IF_NONE_MATCH, tag).send().await.unwrap();
        assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED, "{array}");
    }
}
