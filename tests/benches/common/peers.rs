//! The servers that are measured.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use store_local::IndexKind;

/// A running zarrd. Dropping it stops it.
pub(crate) struct Zarrd {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
}

/// A running nginx that serves a directory. Dropping it stops it.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Zarrd {
    /// Copies a directory into a store that no server has.
    pub(crate) fn import(index: IndexKind, dir: &Path, store: &Path) {
        let store = format!("{index}:{}", store.display());
        let done = Command::new(binary()).args(["import", &dir.display().to_string(), "--store", &store]).output();
        let done = done.expect("start zarrd");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Compacts the index of a store that no server has.
    pub(crate) fn compact(index: IndexKind, dir: &Path) {
        let store = format!("{index}:{}", dir.display());
        let done = Command::new(binary()).args(["compact", &store]).output().expect("start zarrd");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Starts the release build on a store.
    pub(crate) fn start(index: IndexKind, dir: &Path) -> Self {
        let begin = Instant::now();
        let mut child = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--store", &format!("{index}:{}", dir.display())])
            .stdout(Stdio::piped())
            .spawn()
            .expect("start zarrd");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its first line");
        let started_in = begin.elapsed();
        let (_, url) = line.split_once("http://").unwrap_or_else(|| panic!("zarrd said {line:?}"));
        let address = url.split_whitespace().next().expect("an address").trim_end_matches('/');
        Self { child, address: address.parse().expect("an address"), started_in }
    }

    /// The most memory that it has had, in MiB.
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    }

    /// Stops it as a service manager would, and waits until it has.
    pub(crate) fn stop(mut self) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
        self.child.wait().expect("wait for zarrd");
    }
}

impl Drop for Zarrd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Nginx {
    /// Starts nginx with its usual settings for files; `None` where it is not installed.
    pub(crate) fn start(root: &Path, scratch: &Path) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let (root, scratch) = (root.display(), scratch.display());
        let configuration = format!(
            "worker_processes auto; daemon off; user root; pid {scratch}/nginx.pid; error_log {scratch}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n\
             server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
        );
        let file = format!("{scratch}/nginx.conf");
        fs::write(&file, configuration).ok()?;
        let child = Command::new("nginx").args(["-c", &file]).stderr(Stdio::null()).spawn().ok()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(5), "nginx does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Self { child, address })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
    }
}

/// The release build of zarrd beside this benchmark, or the one that `ZARRD_BIN` names.
fn binary() -> PathBuf {
    if let Ok(path) = std::env::var("ZARRD_BIN") {
        return path.into();
    }
    let here = std::env::current_exe().expect("this program's path");
    let path = here.ancestors().nth(2).expect("a target directory").join("zarrd");
    assert!(path.exists(), "build it first: cargo build --release -p zarrd");
    path
}
