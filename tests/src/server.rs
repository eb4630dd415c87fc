//! Runs `zarrd` as a child process.

use std::{
    ffi::{OsStr, OsString},
    fmt::Display,
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use futures::TryStreamExt;
use http::{Method, StatusCode};
use reqwest::{Body, Client, RequestBuilder, Response};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;
use zarrd_client::{BaseUrl, HttpStore, Retries};
use zarrd_store::Prefix;

use crate::binary::zarrd;

/// How long a start, a stop or a command may take on a machine that does much else, before it is taken for hanging.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The configuration of a server to start.
#[derive(Clone, Debug)]
pub struct Launch {
    store: String,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    files: Option<u64>,
    user: Option<User>,
}

/// A user to run the program as, and a copy of it that this user can reach: the build directory may be in a home directory.
#[derive(Clone, Debug)]
struct User {
    id: u32,
    program: Arc<TempDir>,
}

/// A running server; killed on drop.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    http: Client,
    log: Log,
    /// The output after the first line. Retained, so that the server can write to it.
    stdout: BufReader<ChildStdout>,
}

/// A running `zarrd` process of any command; killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Log,
    stdout: Option<thread::JoinHandle<std::io::Result<String>>>,
}

/// The result of an exited program.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The content of stdout.
    pub stdout: String,
    /// The content of stderr.
    pub stderr: String,
}

/// The stderr output of a process so far.
#[derive(Clone, Debug, Default)]
struct Log {
    text: Arc<Mutex<String>>,
    /// True if stderr is closed.
    ended: Arc<AtomicBool>,
}

impl Launch {
    /// A server for the store `store`, such as `sled:DIR`.
    pub fn of(store: impl Display) -> Self {
        Self { store: store.to_string(), arguments: Vec::new(), environment: Vec::new(), files: None, user: None }
    }

    /// A server for the sled store in `dir`.
    pub fn sled(dir: &Path) -> Self {
        Self::of(format_args!("sled:{}", dir.display()))
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Limits the number of open files.
    #[must_use]
    pub fn files(mut self, limit: u64) -> Self {
        self.files = Some(limit);
        self
    }

    /// Runs as another user, which requires root.
    #[must_use]
    pub fn user(self, id: u32) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("its permissions are set");
        fs::copy(zarrd(), dir.path().join("zarrd")).expect("the program is copied");
        Self { user: Some(User { id, program: Arc::new(dir) }), ..self }
    }

    /// Starts it on a free port, and waits until it listens.
    pub fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|ended| panic!("zarrd did not start: {ended:?}"))
    }

    /// Starts it like [`start`](Self::start), but returns an error if it exits before it listens.
    pub fn try_start(&self) -> Result<Server, Ended> {
        let mut child = self.spawn_child();
        let log = Log::of(&mut child);
        let (first, stdout) = first_line(&mut child, &log);
        match address(&first) {
            Some(address) => Ok(Server { child, address, http: Client::new(), log, stdout }),
            None => {
                let status = wait(&mut child, &log);
                Err(Ended { code: status.code(), stdout: first, stderr: log.text() })
            }
        }
    }

    /// Starts it on a free port without reading its output.
    pub fn spawn_child(&self) -> Child {
        self.command().spawn().expect("zarrd starts")
    }

    /// Starts it and waits until it exits by itself.
    pub fn start_expecting_failure(&self) -> Ended {
        run(self.command())
    }

    /// Starts it without waiting.
    pub fn spawn(&self) -> Process {
        Process::spawn(self.command())
    }

    fn command(&self) -> Command {
        let mut command = match (&self.user, self.files) {
            (Some(user), _) => isolated(Command::new(user.program.path().join("zarrd"))),
            (None, Some(limit)) => program_with_files(limit),
            (None, None) => program(),
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", &self.store]);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        if let Some(user) = &self.user {
            command.uid(user.id).gid(user.id);
        }
        command
    }
}

impl Server {
    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address in the next line of the output, such as the one for `--dav-listen`.
    pub fn next_address(&mut self) -> SocketAddr {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("stdout is text");
        address(&line).unwrap_or_else(|| panic!("no address in {line:?}"))
    }

    /// The URL of a path, such as `/store/a`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request builder for any HTTP client.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.expect("an answer")
    }

    /// The status of the answer to a GET request, and its body if that is 200.
    pub async fn answer(&self, path: &str) -> (StatusCode, Vec<u8>) {
        let response = self.get(path).await;
        let status = response.status();
        let body = response.bytes().await.expect("a complete answer").to_vec();
        (status, if status == StatusCode::OK { body } else { Vec::new() })
    }

    /// Sends a PUT request.
    pub async fn put(&self, path: &str, body: impl Into<Body>) -> Response {
        self.request(Method::PUT, path).body(body).send().await.expect("an answer")
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.expect("an answer")
    }

    /// A client store for it that retries nothing.
    pub fn store(&self) -> HttpStore {
        let base = BaseUrl::parse(&self.url("")).expect("an address makes a URL");
        HttpStore::builder(base).retries(Retries::none()).build().expect("a client can be made")
    }

    /// The number of keys below a prefix, such as `lab/`.
    pub async fn count_keys(&self, prefix: &str) -> usize {
        let (store, prefix) = (self.store(), Prefix::parse(prefix).expect("a prefix"));
        let counted = zarrd_store::list_all(&store, &prefix).try_fold(0, |count, _| async move { Ok(count + 1) }).await;
        counted.expect("a listing")
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The log output so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until the log contains this text.
    pub fn wait_for_log(&self, text: &str) {
        let started = Instant::now();
        while !self.log().contains(text) {
            assert!(started.elapsed() < TIMEOUT, "{text:?} was not logged within {TIMEOUT:?}:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The peak memory of the process, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// The current memory of the process, in bytes.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux reports it");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kB") * 1024
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the signal is sent");
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> Ended {
        let status = wait(&mut self.child, &self.log);
        Ended { code: status.code(), stdout: String::new(), stderr: self.log.text() }
    }

    /// Sends SIGTERM and asserts a clean exit.
    pub fn stop(self) {
        self.terminate();
        let ended = self.wait();
        assert_eq!(ended.code, Some(0), "zarrd did not stop in order:\n{}", ended.stderr);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- the server's log\n{}---", self.log.text());
        }
    }
}

impl Process {
    /// Starts `zarrd` with these arguments and environment variables.
    pub fn start<S: AsRef<OsStr>>(
        arguments: impl IntoIterator<Item = S>,
        environment: impl IntoIterator<Item = (S, S)>,
    ) -> Self {
        let mut command = program();
        command.args(arguments).envs(environment);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("zarrd starts");
        let log = Log::of(&mut child);
        let mut pipe = child.stdout.take().expect("stdout is piped");
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        Self { child, log, stdout: Some(stdout) }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the signal is sent");
    }

    /// Returns true if it has not exited yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the process can be asked for").is_none()
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> Ended {
        let status = wait(&mut self.child, &self.log);
        let reader = self.stdout.take().expect("it is waited for once");
        let stdout = reader.join().expect("the reader ends").expect("stdout is text");
        Ended { code: status.code(), stdout, stderr: self.log.text() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `zarrd` with these arguments until it exits.
pub fn zarrd_with<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    let mut command = program();
    command.args(arguments);
    run(command)
}

/// Runs `zarrd` with these environment variables and arguments until it exits.
pub fn zarrd_with_environment<S: AsRef<OsStr>>(
    environment: impl IntoIterator<Item = (&'static str, String)>,
    arguments: impl IntoIterator<Item = S>,
) -> Ended {
    let mut command = program();
    command.envs(environment).args(arguments);
    run(command)
}

/// The program with a limit on open files.
fn program_with_files(limit: u64) -> Command {
    let mut command = isolated(Command::new("sh"));
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string()]).arg(zarrd());
    command
}

/// The program, isolated from environment variables and files that it would take for configuration.
pub fn program() -> Command {
    isolated(Command::new(zarrd()))
}

/// A command that runs the program, isolated likewise.
pub fn isolated(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ZARRD_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    // A directory without a zarrd.toml.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(command: Command) -> Ended {
    Process::spawn(command).wait()
}

fn wait(child: &mut Child, log: &Log) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the process can be asked for") {
            // The last output may still be in transit.
            let started = Instant::now();
            while !log.ended.load(Ordering::Acquire) && started.elapsed() < Duration::from_secs(1) {
                thread::sleep(Duration::from_millis(1));
            }
            return status;
        }
        if started.elapsed() > TIMEOUT {
            let _ = child.kill();
            panic!("zarrd did not end within {TIMEOUT:?}:\n{}", log.text());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn first_line(child: &mut Child, log: &Log) -> (String, BufReader<ChildStdout>) {
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        // The receiver may be gone.
        let _ = sender.send(read.map(|_| (line, stdout)));
    });
    match receiver.recv_timeout(TIMEOUT) {
        Ok(read) => read.expect("stdout is text"),
        Err(_) => {
            let _ = child.kill();
            panic!("no output of zarrd within {TIMEOUT:?}:\n{}", log.text());
        }
    }
}

/// Parses the address from the first line of the server's output.
fn address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("://")?;
    rest.split_whitespace().next()?.trim_end_matches('/').parse().ok()
}

impl Log {
    /// Collects the stderr output of a child process.
    fn of(child: &mut Child) -> Self {
        let log = Self::default();
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let to = log.clone();
        thread::spawn(move || {
            let mut line = Vec::new();
            while stderr.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                to.text.lock().expect("the lock is not poisoned").push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
            to.ended.store(true, Ordering::Release);
        });
        log
    }

    fn text(&self) -> String {
        self.text.lock().expect("the lock is not poisoned").clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_from_the_first_line() {
        let line = "zarrd is listening on http://127.0.0.1:40123 (store: sled:/tmp/x)\n";
        assert_eq!(address(line), Some("127.0.0.1:40123".parse().unwrap()));
        assert_eq!(address(&line.replace("http", "https")), Some("127.0.0.1:40123".parse().unwrap()));
        assert_eq!(address("zarrd: no"), None);
    }
}
