//! Runs of the program in temporary directories.

use std::{
    fmt::Debug,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::{NamedTempFile, TempDir};
use zarrd_client::{BaseUrl, HttpStore};

/// A temporary working directory, without settings in the environment.
pub(crate) struct TestDir {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A running server, which is killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) line: String,
    stdout: BufReader<std::process::ChildStdout>,
    log: NamedTempFile,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), env: Vec::new() }
    }

    /// Sets a variable in the environment of later runs.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        finished(self.command(args).output().unwrap())
    }

    /// Runs a command with this text on stdin.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Finished {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command may have failed without reading it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        finished(child.wait_with_output().unwrap())
    }

    /// Starts a command, without its output.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs a command that must succeed.
    pub(crate) fn succeeds(&self, args: &[&str]) -> Finished {
        let finished = self.run(args);
        assert_eq!(finished.code, 0, "{args:?}: {finished:?}");
        finished
    }

    /// Runs a command that must fail with this exit code and these messages.
    pub(crate) fn fails(&self, args: &[&str], code: i32, messages: &[&str]) -> Finished {
        let finished = self.run(args);
        assert_eq!(finished.code, code, "{args:?}: {finished:?}");
        for message in messages {
            assert!(finished.stderr.contains(message), "{args:?}: {message:?} is not in {}", finished.stderr);
        }
        finished
    }

    /// Starts a server, by default on a free port, and waits until it listens.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        // The log goes to a file, since a pipe that is not read would fill up.
        let log = NamedTempFile::new().unwrap();
        let stderr = log.reopen().unwrap();
        self.serve_with_stderr(args, stderr, log)
    }

    /// Like [`serve`](Self::serve), with another stderr than the file with the log.
    pub(crate) fn serve_with_stderr(&self, args: &[&str], stderr: impl Into<Stdio>, log: NamedTempFile) -> Server {
        let mut command = self.command(&["serve"]);
        if !args.contains(&"--listen") && self.env.iter().all(|(name, _)| name != "ZARRD_LISTEN") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the server did not start: {}", std::fs::read_to_string(log.path()).unwrap());
        Server { child, line, stdout, log }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zarrd"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ZARRD_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        // The tokens that the user has stored are not used.
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.current_dir(self.dir.path()).envs(self.env.iter().cloned()).args(args);
        command
    }
}

impl Finished {
    /// The summary in JSON at the end of stdout.
    pub(crate) fn summary(&self) -> serde_json::Value {
        serde_json::from_str(self.stdout.lines().last().unwrap()).unwrap()
    }
}

impl Server {
    /// The status of the response to a `GET` without a token.
    pub(crate) fn status_of(&self, target: &str) -> u16 {
        let address = self.url().replace("http://", "");
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        let url = self.line.split_whitespace().find(|word| word.contains("://")).unwrap();
        url.to_owned()
    }

    pub(crate) fn store(&self) -> HttpStore {
        HttpStore::new(BaseUrl::parse(&self.url()).unwrap()).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, and returns the exit code and the output on stdout after the first line.
    pub(crate) fn wait(mut self) -> (i32, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (status.code().unwrap(), rest)
    }

    /// Stops the server with SIGTERM, and returns its log.
    pub(crate) fn stop(self) -> String {
        let log = self.log.reopen().unwrap();
        self.signal(Signal::TERM);
        assert_eq!(self.wait().0, 0);
        std::io::read_to_string(log).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn finished(output: Output) -> Finished {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Finished { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
