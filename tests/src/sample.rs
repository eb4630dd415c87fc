//! Hierarchies that other libraries wrote as plain files, a server for them, and writers that keep it busy.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use http::StatusCode;
use reqwest::{Client, RequestBuilder};
use tempfile::TempDir;
use tokio::{runtime::Builder, time::sleep};
use zarrd_wire::routes::encode;

use crate::{
    environment::{clients, create_once, environment_dir, succeeds},
    python::Python,
    server::{Launch, Server, program, zarrd_with},
};

/// The script that writes the files.
const SCRIPT: &str = "unmodified/write_sample.py";

/// The number of files below `lab`.
pub const FILES: usize = 353;

/// The number of arrays below `lab`.
const ARRAYS: usize = 37;

/// The extent of both dimensions of the array that [`BackgroundWriter`] fills.
const BUSY_EXTENT: usize = 500;

/// The time after which the reported modification time of a value is final.
const SETTLED: Duration = Duration::from_secs(6);

/// The pause of [`BackgroundWriter`] after each change, which leaves the processors to the clients.
const PAUSE: Duration = Duration::from_millis(10);

/// Files that other libraries wrote, created once below `target/`.
#[derive(Clone, Debug)]
pub struct Sample {
    dir: PathBuf,
}

/// A server with the sample's files as keys below `lab/`.
#[derive(Debug)]
pub struct SampleServer {
    /// The server.
    pub server: Server,
    /// The files.
    pub sample: Sample,
    /// An empty directory for downloads.
    pub download_dir: TempDir,
    /// Contains the server's store; retained until drop.
    store: TempDir,
}

/// Changes values and elements continuously, until it is dropped or stopped.
#[derive(Debug)]
pub struct BackgroundWriter {
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<usize>>,
}

impl Sample {
    /// The files written by `python`, which has the clients' packages.
    ///
    /// # Panics
    ///
    /// If they cannot be written.
    pub fn of(python: &Python) -> Self {
        let script = clients().join(SCRIPT);
        let recipe = [&script, &clients().join("requirements-clients.txt")].map(fs::read_to_string);
        let recipe = recipe.into_iter().collect::<io::Result<String>>().expect("the script exists");
        let dir = environment_dir("sample-of-clients", &recipe);
        create_once(&dir, &recipe, "lab", || {
            fs::create_dir(&dir)?;
            succeeds(python.command().arg(&script).arg(&dir)).map(drop)
        })
        .unwrap_or_else(|error| panic!("{error}"));
        let sample = Self { dir };
        assert_eq!(sample.values().len(), FILES);
        sample
    }

    /// The directory of the files below `lab/`.
    pub fn lab(&self) -> PathBuf {
        self.dir.join("lab")
    }

    /// The content of an auxiliary file, such as `numbers.raw`.
    pub fn expected(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join("expected").join(name)).expect("the file exists")
    }

    /// The keys below `lab/` with their values.
    pub fn values(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.lab())
    }

    /// Starts a new server for the files.
    pub fn serve(self) -> SampleServer {
        self.serve_with(&[])
    }

    /// Starts a new server for the files that is closed to clients without a token, except for its metrics.
    pub fn serve_closed(self) -> SampleServer {
        self.serve_with(&["--anonymous", "none", "--public-metrics"])
    }

    /// Starts a new server for the files, with these arguments.
    pub fn serve_with(self, arguments: &[&str]) -> SampleServer {
        let [store, download_dir] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
        let to = format!("sled:{}", store.path().display());
        let lab = self.lab();
        let ended = zarrd_with(["import".as_ref(), lab.as_os_str(), "lab".as_ref(), "--store".as_ref(), to.as_ref()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let launch = arguments.iter().fold(Launch::sled(store.path()), |launch, argument| launch.arg(argument));
        SampleServer { server: launch.start(), sample: self, download_dir, store }
    }
}

impl SampleServer {
    /// Starts a server for files written by `python`.
    pub fn with(python: &Python) -> Self {
        Sample::of(python).serve()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Asserts that another server has the same values, and elements of arrays, below a prefix (`""`, or such as `a/`).
    ///
    /// # Panics
    ///
    /// If any differs, or if it is not served.
    pub async fn assert_served_by(&self, other: &Server, prefix: &str) {
        let (mut values, mut arrays) = (0, 0);
        for (key, bytes) in self.sample.values() {
            let found = other.answer(&format!("/store/{prefix}{}", encode(&key))).await;
            assert!(found == (StatusCode::OK, bytes), "{prefix}{key}");
            values += 1;
            let Some((path, "zarr.json" | ".zarray")) = key.rsplit_once('/') else { continue };
            let path = encode(path);
            let found = other.answer(&format!("/array/{prefix}{path}")).await;
            assert!(found == self.server.answer(&format!("/array/lab/{path}")).await, "{prefix}{path}");
            arrays += usize::from(found.0 == StatusCode::OK);
        }
        assert_eq!((values, arrays), (FILES, ARRAYS), "{prefix}");
    }

    /// Runs a script of `tests/clients/unmodified` with the server's URL and the directory of the files; returns its
    /// output.
    pub fn run(&self, python: &Python, script: &str) -> String {
        self.run_at(python, script, &self.url(""), &[])
    }

    /// Runs a script with another URL, such as that of a share link, and further arguments.
    pub fn run_at(&self, python: &Python, script: &str, url: &str, further: &[&str]) -> String {
        let lab = self.sample.lab();
        let arguments = [&[url, lab.to_str().expect("the path is UTF-8")], further].concat();
        python.run(&format!("unmodified/{script}"), &arguments)
    }

    /// The first administrator's token of a closed server.
    pub fn admin_token(&self) -> String {
        let path = self.store.path().join("access/admin-token");
        fs::read_to_string(path).expect("the server is closed").trim().to_owned()
    }

    /// The URL of a share link for everything below `lab/` of a closed server.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub fn share_link(&self) -> String {
        let mut command = program();
        command.args(["share", &self.url(""), "lab", "--expires", "1h"]).env("ZARRD_TOKEN", self.admin_token());
        succeeds(&mut command).unwrap_or_else(|error| panic!("{error}")).trim().to_owned()
    }

    /// The number of answered requests of this kind.
    pub fn requests(&self, route: &str, method: &str, status: u16) -> u64 {
        let name = format!("zarrd_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} ");
        let metrics = block_on(async { self.server.get("/metrics").await.text().await.expect("text") });
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().expect("a number"))
    }

    /// Waits until the modification times of all values are final; that of a value that was just set may still change.
    pub fn settle(&self) {
        thread::sleep(SETTLED);
    }

    /// Starts to set the value `busy/value` to a MiB of one byte, and all elements of the `uint8` array `busy/array` to
    /// one number, different each time; other files remain unchanged.
    pub fn start_writer(&self) -> BackgroundWriter {
        let [array, region, value] =
            ["/node/busy/array", "/array/busy/array?select=...", "/store/busy/value"].map(|path| self.url(path));
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let document = serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": [BUSY_EXTENT, BUSY_EXTENT], "data_type": "uint8",
            "fill_value": 0,
            "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100, 100]}},
        });
        let (ready, begins) = mpsc::channel();
        let writing = async move {
            let client = Client::new();
            change(client.put(array).body(document.to_string())).await;
            let mut rounds = 0;
            while !until.load(Ordering::Acquire) {
                rounds += 1;
                // Never the fill value, whose chunks would not be stored.
                let byte = (rounds % 250 + 1) as u8;
                change(client.put(&value).body(vec![byte; 1 << 20])).await;
                change(client.put(&region).header("Content-Type", "application/json").body(byte.to_string())).await;
                // The receiver may be gone.
                let _ = ready.send(());
                sleep(PAUSE).await;
            }
            rounds
        };
        let writer = thread::spawn(|| run(writing));
        begins.recv().expect("the writer writes");
        BackgroundWriter { stop, writer: Some(writer) }
    }
}

impl BackgroundWriter {
    /// The number of elements of the array.
    pub const ELEMENTS: usize = BUSY_EXTENT * BUSY_EXTENT;

    /// Stops, and returns the number of rounds.
    pub fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Release);
        self.writer.take().expect("it is stopped once").join().expect("the writer ends")
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// The files below a directory by path.
///
/// # Panics
///
/// If one of them cannot be read.
pub fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut rest = vec![directory.to_owned()];
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).expect("it is a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                rest.push(path);
                continue;
            }
            let below = path.strip_prefix(directory).expect("it is below");
            let content = fs::read(&path).expect("it can be read");
            found.insert(below.to_str().expect("the path is UTF-8").to_owned(), content);
        }
    }
    found
}

async fn change(request: RequestBuilder) {
    request.send().await.expect("an answer").error_for_status().expect("it is written");
}

/// Runs a future to completion on a new thread outside of any runtime.
fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    thread::scope(|scope| scope.spawn(|| run(future)).join()).expect("it ends")
}

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
