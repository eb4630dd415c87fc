//! Clusters of Garage, a distributed server that speaks S3.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{bucket::S3, environment::succeeds, python::Python, skip::skip, tools::executable};

/// The version that is installed and measured.
const VERSION: &str = "2.5.0";

/// The access key of every cluster; Garage accepts no names of other forms.
const ACCESS_KEY: &str = "GK31c2f218a2e44f485b94239e";

/// The secret that belongs to it.
const SECRET: &str = "b892c0665f0ada8a4755dae98baa3b133590e11dae3bcc1f9d769d67f16c3835";

/// The secret with which the nodes of a cluster know each other.
const RPC_SECRET: &str = "1799bccfd7411eddcf9ebd316bc1f5287ad12a68094e1c6ac6abde7e6feae1ec";

/// The time in which nodes have to start, and to find each other.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The installed program.
#[derive(Clone, Debug)]
pub struct Garage {
    program: PathBuf,
}

/// Nodes on the loopback interface that store every object on each of them, with a bucket called `bucket`; killed on
/// drop.
#[derive(Debug)]
pub struct Cluster {
    garage: Garage,
    nodes: Vec<GarageNode>,
}

/// One node of a cluster.
#[derive(Debug)]
struct GarageNode {
    /// The process; `None` while it does not run.
    process: Option<Child>,
    directory: PathBuf,
    s3_port: u16,
}

/// Garage, from the search path or `target/tools`; `None` if it is not installed, which is reported as a skipped test.
pub fn garage() -> Option<Garage> {
    let program = executable("garage");
    if program.is_none() {
        skip(&format!(
            "Garage; `cargo install garage --version {VERSION} --locked --no-default-features --features \
             bundled-libs,lmdb,sqlite --root target/tools` installs it"
        ));
    }
    program.map(|program| Garage { program })
}

impl Garage {
    /// The version, such as `2.5.0`.
    pub fn version(&self) -> String {
        let said = succeeds(Command::new(&self.program).arg("--version")).unwrap_or_default();
        // It says `garage cargo:2.5.0 [features: …]`.
        let version = said.split_whitespace().nth(1).map(|word| word.trim_start_matches("cargo:"));
        version.unwrap_or("of an unknown version").to_owned()
    }

    /// Starts a cluster of so many nodes, whose files are below a directory, and makes its bucket.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(self, directory: &Path, count: usize) -> Cluster {
        let nodes = (0..count).map(|number| GarageNode::new(&directory.join(number.to_string()), count)).collect();
        let mut cluster = Cluster { garage: self, nodes };
        (0..count).for_each(|number| cluster.start(number));
        cluster.join();
        cluster.admit();
        cluster
    }
}

impl Cluster {
    /// The S3 interface of a node.
    pub fn s3(&self, number: usize) -> S3 {
        S3 {
            endpoint: format!("http://127.0.0.1:{}", self.nodes[number].s3_port),
            access_key: ACCESS_KEY.to_owned(),
            secret: SECRET.to_owned(),
        }
    }

    /// Copies the files of a directory to names that begin with a prefix, such as `lab/`.
    pub fn fill(&self, python: &Python, directory: &Path, prefix: &str) {
        let S3 { endpoint, access_key, secret } = self.s3(0);
        let directory = directory.to_str().expect("the path is UTF-8");
        python.run("fill_bucket.py", &["s3", &endpoint, directory, prefix, &access_key, &secret]);
    }

    /// Kills a node with SIGKILL.
    pub fn kill(&mut self, number: usize) {
        let mut process = self.nodes[number].process.take().expect("the node runs");
        process.kill().expect("it can be killed");
        process.wait().expect("it ends");
    }

    /// Starts a node that was killed, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let log = File::options().create(true).append(true).open(node.directory.join("log")).expect("a log");
        let mut command = Command::new(&self.garage.program);
        command.arg("-c").arg(node.configuration()).arg("server").env("RUST_LOG", "warn");
        let errors = log.try_clone().expect("a log");
        node.process = Some(command.stdout(log).stderr(errors).spawn().expect("the program starts"));
        self.wait(number, |cluster| cluster.command(number, &["status"]).is_ok());
    }

    /// Waits until a node is connected to all others.
    pub fn await_health(&self, number: usize) {
        self.wait(number, |cluster| {
            let health = cluster.command(number, &["json-api", "GetClusterHealth", "null"]).unwrap_or_default();
            let health: Value = serde_json::from_str(&health).unwrap_or_default();
            health["status"] == "healthy" && health["storageNodesUp"] == cluster.nodes.len()
        });
    }

    fn wait(&self, number: usize, is_done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is_done(self) {
            let log = fs::read_to_string(self.nodes[number].directory.join("log")).unwrap_or_default();
            assert!(begin.elapsed() < TIMEOUT, "node {number} is not ready after {TIMEOUT:?}:\n{log}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Connects the nodes, each of which stores everything.
    fn join(&self) {
        let names: Vec<String> =
            (0..self.nodes.len()).map(|number| self.run(number, &["node", "id", "--quiet"])).collect();
        for name in names.iter().skip(1) {
            self.run(0, &["node", "connect", name.trim()]);
        }
        let ids = names.iter().map(|name| name.split('@').next().unwrap_or_default());
        for (number, id) in ids.enumerate() {
            self.run(0, &["layout", "assign", id, "--zone", &format!("zone{number}"), "--capacity", "10GB"]);
        }
        self.run(0, &["layout", "apply", "--version", "1"]);
        (0..self.nodes.len()).for_each(|number| self.await_health(number));
    }

    /// Makes the bucket and its key.
    fn admit(&self) {
        self.run(0, &["key", "import", "--yes", ACCESS_KEY, SECRET]);
        self.run(0, &["bucket", "create", "bucket"]);
        self.run(0, &["bucket", "allow", "--read", "--write", "--owner", "--key", ACCESS_KEY, "bucket"]);
    }

    fn run(&self, number: usize, arguments: &[&str]) -> String {
        self.command(number, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    fn command(&self, number: usize, arguments: &[&str]) -> std::io::Result<String> {
        let mut command = Command::new(&self.garage.program);
        succeeds(command.arg("-c").arg(self.nodes[number].configuration()).args(arguments).stdin(Stdio::null()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.nodes.iter_mut().filter_map(|node| node.process.as_mut()) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl GarageNode {
    /// A node that does not run yet, with a configuration in its directory. Blocks are stored as they are, since
    /// chunks are compressed already.
    fn new(directory: &Path, replicas: usize) -> Self {
        fs::create_dir_all(directory).expect("a directory can be made");
        let [s3_port, rpc_port] = free_ports();
        let configuration = format!(
            "metadata_dir = {:?}\ndata_dir = {:?}\ndb_engine = \"sqlite\"\nreplication_factor = {replicas}\n\
             compression_level = \"none\"\nrpc_bind_addr = \"127.0.0.1:{rpc_port}\"\n\
             rpc_public_addr = \"127.0.0.1:{rpc_port}\"\nrpc_secret = \"{RPC_SECRET}\"\n\
             [s3_api]\ns3_region = \"us-east-1\"\napi_bind_addr = \"127.0.0.1:{s3_port}\"\n",
            directory.join("meta"),
            directory.join("data"),
        );
        let node = Self { process: None, directory: directory.to_owned(), s3_port };
        fs::write(node.configuration(), configuration).expect("the configuration can be written");
        node
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("garage.toml")
    }
}

/// Ports that nothing listens on.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}
