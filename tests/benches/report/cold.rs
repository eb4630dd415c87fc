//! The first plane that a new client reads from a new server.

use serde_json::Value;
use zarrd_tests::{
    benchmark::comparison::{Comparison, Contestant, Turn},
    python::Python,
};

use crate::{
    clients::{Client, Servers},
    planes::{name, random_planes},
    python::{Process, turn},
    servers::drop_page_cache,
    setup::{Arrays, Bench},
};

const CLIENTS: [Client; 4] =
    [Client::ZarrdArray, Client::TensorstoreNginx, Client::TensorstoreFiles, Client::ZarrPythonNginx];

/// Describes the state of the page cache.
pub(crate) fn state() -> &'static str {
    drop_page_cache()
}

pub(crate) fn planes(bench: &Bench, python: &Python, arrays: &Arrays) -> Vec<Comparison> {
    let compare = |array: &'static str| {
        let what = |round: usize| random_planes(bench.options.scale.side, 0, round).swap_remove(0);
        let contestant = |client| contestant(bench, python, arrays, client, array, what);
        Comparison::run(name(array, 0), bench.options.scale.few, CLIENTS.into_iter().map(contestant).collect())
    };
    ["zstd", "sharded"].into_iter().map(compare).collect()
}

fn contestant<'a>(
    bench: &'a Bench,
    python: &'a Python,
    arrays: &'a Arrays,
    client: Client,
    array: &'a str,
    what: impl Fn(usize) -> Value + 'a,
) -> Contestant<'a> {
    if let Err(reason) = Servers::start(bench, arrays).url(client, array) {
        return Contestant::absent(client.name(), reason);
    }
    Contestant::new(client.name(), move |round| first_read(bench, python, arrays, client, array, &what(round)))
}

fn first_read(bench: &Bench, python: &Python, arrays: &Arrays, client: Client, array: &str, what: &Value) -> Turn {
    let servers = Servers::start(bench, arrays);
    let mut process = Process::start(python, client.name());
    process.request(&servers.opening("warm-up", bench, client, "tiny").expect("the servers run"));
    drop_page_cache();
    let mut request = servers.opening("cold", bench, client, array).expect("the servers run");
    request["what"] = what.clone();
    let answer = process.request(&request);
    bench.check(array, what, &answer["digest"]);
    turn(&answer)
}
