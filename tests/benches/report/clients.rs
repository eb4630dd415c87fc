//! Clients that read arrays from zarrd or from its peers.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::{Value, json};
use zarrd_tests::{
    benchmark::comparison::{Contestant, Turn},
    python::Python,
};

use crate::{
    python::{Process, turn},
    servers::{Nginx, Peak, Zarrd},
    setup::{Arrays, Bench},
};

/// A Python client and the source that it reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    ZarrdArray,
    Requests,
    TensorstoreNginx,
    TensorstoreNginxTrusting,
    TensorstoreZarrd,
    TensorstoreFiles,
    ZarrPythonNginx,
    ZarrPythonNginxCached,
    ZarrPythonNginxObstore,
    ZarrPythonZarrd,
}

/// The source that a client reads.
#[derive(Clone, Copy)]
enum Source {
    Array,
    Store,
    Nginx,
    Files,
}

impl Client {
    /// The name shown in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ZarrdArray => "zarrd",
            Self::Requests => "zarrd by `requests`",
            Self::TensorstoreNginx => "tensorstore, nginx",
            Self::TensorstoreNginxTrusting => "tensorstore, nginx, not revalidating",
            Self::TensorstoreZarrd => "tensorstore, zarrd's `/store`",
            Self::TensorstoreFiles => "tensorstore, local files",
            Self::ZarrPythonNginx => "zarr-python, nginx",
            Self::ZarrPythonNginxCached => "zarr-python with CacheStore, nginx",
            Self::ZarrPythonNginxObstore => "zarr-python over obstore, nginx",
            Self::ZarrPythonZarrd => "zarr-python, zarrd's `/store`",
        }
    }

    fn reader(self) -> &'static str {
        match self {
            Self::ZarrdArray => "http.client",
            Self::Requests => "requests",
            Self::TensorstoreNginx | Self::TensorstoreZarrd | Self::TensorstoreFiles => "tensorstore",
            Self::TensorstoreNginxTrusting => "tensorstore-trusting",
            Self::ZarrPythonNginx | Self::ZarrPythonZarrd => "zarr-python",
            Self::ZarrPythonNginxCached => "zarr-python-cached",
            Self::ZarrPythonNginxObstore => "zarr-python-obstore",
        }
    }

    fn source(self) -> Source {
        match self {
            Self::ZarrdArray | Self::Requests => Source::Array,
            Self::TensorstoreZarrd | Self::ZarrPythonZarrd => Source::Store,
            Self::TensorstoreFiles => Source::Files,
            _ => Source::Nginx,
        }
    }
}

/// Running servers for the arrays.
pub(crate) struct Servers {
    pub(crate) zarrd: Zarrd,
    nginx: Result<Nginx, String>,
    arrays: Arrays,
}

impl Servers {
    pub(crate) fn start(bench: &Bench, arrays: &Arrays) -> Self {
        Self { zarrd: bench.zarrd(arrays), nginx: bench.nginx(arrays), arrays: arrays.clone() }
    }

    /// The URL of an array for a client, or the reason why there is none.
    pub(crate) fn url(&self, client: Client, array: &str) -> Result<String, String> {
        match client.source() {
            Source::Array => Ok(self.zarrd.url(&format!("/array/{array}"))),
            Source::Store => Ok(self.zarrd.url(&format!("/store/{array}"))),
            Source::Files => Ok(format!("file://{}", self.arrays.files.join(array).display())),
            Source::Nginx => self.nginx.as_ref().map(|nginx| nginx.url(&format!("/{array}"))).map_err(Clone::clone),
        }
    }

    /// The message that opens an array with a client.
    pub(crate) fn opening(&self, what: &str, bench: &Bench, client: Client, array: &str) -> Result<Value, String> {
        let url = self.url(client, array)?;
        Ok(json!({"do": what, "reader": client.reader(), "url": url, "cache": bench.options.scale.cache}))
    }
}

/// Clients, each in its own process, and the servers that they read from.
pub(crate) struct Clients<'a> {
    bench: &'a Bench,
    pub(crate) servers: Servers,
    processes: BTreeMap<Client, RefCell<Process>>,
}

/// The reads of one comparison.
pub(crate) struct Reads<'a> {
    pub(crate) array: &'a str,
    /// Selections, or lists of points, in each round.
    pub(crate) what: &'a dyn Fn(usize) -> Vec<Value>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Selections,
    Points,
}

impl<'a> Clients<'a> {
    pub(crate) fn start(bench: &'a Bench, python: &Python, arrays: &Arrays, clients: &[Client]) -> Self {
        let process = |client: &Client| (*client, RefCell::new(Process::start(python, client.name())));
        Self { bench, servers: Servers::start(bench, arrays), processes: clients.iter().map(process).collect() }
    }

    /// The clients as contestants. Each one opens the array and has an unmeasured turn first, so that its caches and
    /// those of the server are warm.
    pub(crate) fn contestants<'b>(&'b self, clients: &[Client], reads: &'b Reads<'b>) -> Vec<Contestant<'b>> {
        clients.iter().map(|client| self.contestant(*client, reads)).collect()
    }

    fn contestant<'b>(&'b self, client: Client, reads: &'b Reads<'b>) -> Contestant<'b> {
        let process = &self.processes[&client];
        match self.servers.opening("open", self.bench, client, reads.array) {
            Ok(open) => process.borrow_mut().request(&open),
            Err(reason) => return Contestant::absent(client.name(), reason),
        };
        self.turn(process, reads, usize::MAX);
        Contestant::new(client.name(), move |round| self.turn(process, reads, round))
    }

    fn turn(&self, process: &RefCell<Process>, reads: &Reads<'_>, round: usize) -> Turn {
        let what = (reads.what)(round);
        let seconds = self.bench.options.scale.turn.as_secs_f64();
        let request = json!({"do": "read", "points": reads.kind == Kind::Points, "what": what, "seconds": seconds});
        let answer = process.borrow_mut().request(&request);
        self.bench.check(reads.array, &what[0], &answer["digest"]);
        turn(&answer)
    }

    /// The peak memory of zarrd and the clients.
    pub(crate) fn peaks(&self) -> Vec<Peak> {
        let clients = self.processes.iter().map(|(client, process)| {
            let name = if *client == Client::ZarrdArray { "its client" } else { client.name() };
            Peak { name: name.to_owned(), ..process.borrow().peak() }
        });
        std::iter::once(self.servers.zarrd.peak()).chain(clients).collect()
    }
}
