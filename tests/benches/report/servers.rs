//! The measured servers.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use zarrd_store_local::IndexKind;
use zarrd_tests::{binary::zarrd, cost_search::Probe};

/// A running zarrd; killed on drop.
pub(crate) struct Zarrd {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

/// A running nginx that serves a directory; stopped on drop.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

impl Zarrd {
    /// Imports a directory into a store that is not open.
    pub(crate) fn import(index: IndexKind, dir: &Path, store: &Path) {
        let (dir, store) = (dir.display().to_string(), location(index, store));
        command(&["import", &dir, "", "--store", &store]);
    }

    /// Compacts the index of a store that is not open.
    pub(crate) fn compact(index: IndexKind, dir: &Path) {
        command(&["compact", &location(index, dir)]);
    }

    /// Starts the release build on a store, with additional arguments.
    pub(crate) fn start(index: IndexKind, dir: &Path, more: &[&str]) -> Self {
        Self::start_on(&location(index, dir), more)
    }

    /// Starts the release build on the store at a location, with additional arguments.
    pub(crate) fn start_on(location: &str, more: &[&str]) -> Self {
        Self::start_with(location, more, &[])
    }

    /// Starts the release build on the store at a location, with additional arguments and environment variables.
    pub(crate) fn start_with(location: &str, more: &[&str], environment: &[(&str, String)]) -> Self {
        let begin = Instant::now();
        let mut child = Command::new(zarrd())
            .args(["serve", "--listen", "127.0.0.1:0", "--store", location])
            .args(more)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start zarrd");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its first line");
        let started_in = begin.elapsed();
        let (_, url) = line.split_once("http://").unwrap_or_else(|| panic!("unexpected output of zarrd: {line:?}"));
        let address = url.split_whitespace().next().expect("an address").trim_end_matches('/');
        Self { child, address: address.parse().expect("an address"), started_in }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A probe of the process.
    pub(crate) fn probe(&self) -> Probe {
        Probe::of(self.child.id())
    }

    /// The peak memory of the process.
    pub(crate) fn peak(&self) -> Peak {
        Peak::of("zarrd", self.child.id())
    }

    /// Sends SIGTERM, and waits until it has exited.
    pub(crate) fn stop(mut self) {
        terminate(&mut self.child);
    }
}

impl Drop for Zarrd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Nginx {
    /// Starts nginx with its usual settings for static files. Fails with the reason if it is not installed.
    pub(crate) fn start(root: &Path, scratch: &Path) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let (root, scratch) = (root.display(), scratch.display());
        let configuration = format!(
            "worker_processes auto; daemon off; user root; pid {scratch}/nginx.pid; error_log {scratch}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n\
             autoindex on; autoindex_format json;\n\
             server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
        );
        let file = format!("{scratch}/nginx.conf");
        fs::write(&file, configuration).expect("write nginx's configuration");
        let begin = Instant::now();
        let started = Command::new("nginx").args(["-c", &file]).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|_| "nginx is not installed".to_owned())?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        while TcpStream::connect(address).is_err() {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) || begin.elapsed() > Duration::from_secs(5) {
                let _ = child.kill();
                return Err("nginx does not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { child, address, started_in: begin.elapsed() })
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        terminate(&mut self.child);
    }
}

/// The peak memory of a process.
pub(crate) struct Peak {
    pub(crate) name: String,
    pub(crate) mib: u64,
}

impl Peak {
    pub(crate) fn of(name: &str, process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
        Self { name: name.to_owned(), mib: kib / 1024 }
    }
}

/// Drops the page cache, if permitted; describes its state.
pub(crate) fn drop_page_cache() -> &'static str {
    let _ = Command::new("sync").status();
    match fs::write("/proc/sys/vm/drop_caches", "3") {
        Ok(()) => "page cache dropped",
        Err(_) => "page cache not dropped, which takes root",
    }
}

fn terminate(child: &mut Child) {
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    let _ = child.wait();
}

fn location(index: IndexKind, dir: &Path) -> String {
    format!("{index}:{}", dir.display())
}

fn command(arguments: &[&str]) {
    let done = Command::new(zarrd()).args(arguments).output().expect("start zarrd");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
