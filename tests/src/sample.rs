//! Hierarchies that other libraries wrote into plain files, a server of them, and writers that keep it busy.

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

use reqwest::{Client, RequestBuilder};
use tempfile::TempDir;
use tokio::{runtime::Builder, time::sleep};

use crate::{
    binary::target_dir,
    environment::{clients, made, succeeds},
    python::Python,
    server::{Launch, Server, zarrd_with},
};

/// The script that writes the files.
const SCRIPT: &str = "unmodified/write_sample.py";

/// How many files there are below `lab`.
pub const FILES: usize = 353;

/// The extent of both dimensions of the array that [`Busy`] fills.
const BUSY_EXTENT: usize = 500;

/// After so long the time of a value stays as it is shown.
const SETTLED: Duration = Duration::from_secs(6);

/// How long [`Busy`] leaves the processors to the clients after each change.
const PAUSE: Duration = Duration::from_millis(10);

/// Files that other libraries wrote, made once and kept below `target/`.
#[derive(Clone, Debug)]
pub struct Sample {
    dir: PathBuf,
}

/// A server whose keys below `lab/` are the sample's files.
#[derive(Debug)]
pub struct Served {
    /// The server.
    pub server: Server,
    /// The files.
    pub sample: Sample,
    /// An empty directory for what a client downloads.
    pub place: TempDir,
    /// Held, since the server's store is in it.
    _store: TempDir,
}

/// Somebody who changes values and elements all the time, until this is dropped or stopped.
#[derive(Debug)]
pub struct Busy {
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<usize>>,
}

impl Sample {
    /// The files that `python`, which has the clients' packages, writes.
    ///
    /// # Panics
    ///
    /// If they cannot be written.
    pub fn of(python: &Python) -> Self {
        let dir = target_dir().join("sample-of-clients");
        let script = clients().join(SCRIPT);
        let recipe = [&script, &clients().join("requirements-clients.txt")].map(fs::read_to_string);
        let recipe = recipe.into_iter().collect::<io::Result<String>>().expect("the script is there");
        made(&dir, &recipe, || {
            fs::create_dir(&dir)?;
            succeeds(python.command().arg(&script).arg(&dir)).map(drop)
        })
        .unwrap_or_else(|error| panic!("{error}"));
        let sample = Self { dir };
        assert_eq!(sample.values().len(), FILES);
        sample
    }

    /// The directory of what the server has below `lab/`.
    pub fn lab(&self) -> PathBuf {
        self.dir.join("lab")
    }

    /// What is in a file beside them, such as `numbers.raw`.
    pub fn expected(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join("expected").join(name)).expect("the file is there")
    }

    /// The keys below `lab/`, and their values.
    pub fn values(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.lab())
    }

    /// A new server of them.
    pub fn served(self) -> Served {
        let [store, place] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
        let to = format!("sled:{}", store.path().display());
        let lab = self.lab();
        let ended = zarrd_with(["import".as_ref(), lab.as_os_str(), "lab".as_ref(), "--store".as_ref(), to.as_ref()]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        Served { server: Launch::sled(store.path()).start(), sample: self, place, _store: store }
    }
}

impl Served {
    /// A server of what `python` writes.
    pub fn with(python: &Python) -> Self {
        Sample::of(python).served()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Runs a script of `tests/clients/unmodified` with the server's URL and the directory of the files, and returns
    /// what it printed.
    pub fn run(&self, python: &Python, script: &str) -> String {
        let lab = self.sample.lab();
        python.run(&format!("unmodified/{script}"), &[&self.url(""), lab.to_str().expect("the path is UTF-8")])
    }

    /// How many requests of this kind have been answered.
    pub fn requests(&self, route: &str, method: &str, status: u16) -> u64 {
        let name = format!("zarrd_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} ");
        let metrics = block_on(async { self.server.get("/metrics").await.text().await.expect("text") });
        metrics.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().expect("a number"))
    }

    /// Waits until no value will be shown with another time than it is shown with now: that of one that has just been set
    /// is not known for good.
    pub fn settle(&self) {
        thread::sleep(SETTLED);
    }

    /// Begins to set the value `busy/value` to a MiB of one byte, another one each time, and all elements of the array
    /// `busy/array` of `uint8` to one number, beside files that stay.
    pub fn busy(&self) -> Busy {
        let [array, region, value] =
            ["/node/busy/array", "/array/busy/array?select=...", "/store/busy/value"].map(|path| self.url(path));
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let document = serde_json::json!({
            "zarr_format": 3, "node_type": "array", "shape": [BUSY_EXTENT, BUSY_EXTENT], "data_type": "uint8", "fill_value": 0,
            "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [100, 100]}},
        });
        let (begun, begins) = mpsc::channel();
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
                // Nobody may be waiting any more.
                let _ = begun.send(());
                sleep(PAUSE).await;
            }
            rounds
        };
        let writer = thread::spawn(|| run(writing));
        begins.recv().expect("the writer writes");
        Busy { stop, writer: Some(writer) }
    }
}

impl Busy {
    /// How many elements the array has.
    pub const ELEMENTS: usize = BUSY_EXTENT * BUSY_EXTENT;

    /// Stops, and returns how many times it has written.
    pub fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Release);
        self.writer.take().expect("it is stopped once").join().expect("the writer ends")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// The files below a directory, by their paths.
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

/// Runs a future to its end on a thread of its own, where no runtime is.
fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    thread::scope(|scope| scope.spawn(|| run(future)).join()).expect("it ends")
}

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
