//! The access log and the audit log of `serve`.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::mpsc,
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{FileType, Mode},
    process::Signal,
};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::runner::{Server, TestDir};

const BOTH: [&str; 8] =
    ["--access-log", "all", "--access-log-file", "access.log", "--audit-log", "on", "--audit-log-file", "audit.log"];

/// Sends requests on one connection, and reads the responses.
fn send(server: &Server, method: &str, target: &str, count: usize) {
    let address = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    let mut buffer = [0; 4096];
    for _ in 0..count {
        stream.write_all(request.as_bytes()).unwrap();
        let read = stream.read(&mut buffer).unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 "));
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the condition does not become true");
}

#[test]
fn all_lines_are_written_before_the_end() {
    let dir = TestDir::new();
    let server = dir.serve(&BOTH);
    send(&server, "DELETE", "/store/absent", 500);
    send(&server, "HEAD", "/store/absent", 500);
    server.stop();
    let (access, audit) = (dir.path("access.log"), dir.path("audit.log"));
    assert_eq!((lines(&access).len(), lines(&audit).len()), (1_000, 500));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&access) & 0o137, mode(&audit)), (0, 0o600));
    // A restart appends.
    let server = dir.serve(&BOTH);
    send(&server, "DELETE", "/store/absent", 1);
    server.stop();
    assert_eq!((lines(&access).len(), lines(&audit).len()), (1_001, 501));
}

#[test]
fn lines_queued_at_a_stop_are_written() {
    let dir = TestDir::new();
    let path = dir.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (stopped, wait) = mpsc::channel::<()>();
    let reader = std::thread::spawn(move || {
        let fifo = fs::File::open(path).unwrap();
        // Until then the pipe is full, and most lines are queued.
        wait.recv().unwrap();
        io::read_to_string(fifo).unwrap()
    });
    let server = dir.serve(&["--store", "memory:", "--access-log", "all", "--access-log-file", "fifo"]);
    send(&server, "HEAD", "/store/absent", 1_000);
    server.signal(Signal::TERM);
    sleep(Duration::from_millis(500));
    stopped.send(()).unwrap();
    assert_eq!(server.wait().0, 0);
    assert_eq!(reader.join().unwrap().lines().count(), 1_000);
}

#[test]
fn sighup_reopens_the_files() {
    let dir = TestDir::new();
    let server = dir.serve(&BOTH);
    send(&server, "DELETE", "/store/absent", 3);
    for name in ["access.log", "audit.log"] {
        wait_until(|| lines(&dir.path(name)).len() == 3);
        fs::rename(dir.path(name), dir.path(name).with_extension("old")).unwrap();
    }
    server.signal(Signal::HUP);
    wait_until(|| dir.path("access.log").exists() && dir.path("audit.log").exists());
    send(&server, "DELETE", "/store/absent", 2);
    let log = server.stop();
    assert!(log.contains("SIGHUP"), "{log}");
    for name in ["access", "audit"] {
        assert_eq!(lines(&dir.path(&format!("{name}.old"))).len(), 3);
        assert_eq!(lines(&dir.path(&format!("{name}.log"))).len(), 2);
    }
}

#[test]
fn lines_on_stderr_are_whole_beside_the_log_of_the_program() {
    let dir = TestDir::new();
    let logs = ["--access-log", "errors", "--audit-log", "on", "--log", "json", "--log-level", "zarrd_server=debug"];
    let server = dir.serve(&logs);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| send(&server, "DELETE", "/store/a//b", 200));
            scope.spawn(|| send(&server, "DELETE", "/store/absent", 200));
        }
    });
    let log = server.stop();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| lines.iter().filter(|line| line["log"] == kind).count();
    assert_eq!((count("access"), count("audit")), (800, 800));
    assert!(lines.iter().filter(|line| line["level"] == "DEBUG").count() > 1_600);
}

#[test]
fn unusable_stderr_delays_no_request() {
    let dir = TestDir::new();
    let args = ["--store", "memory:", "--access-log", "all"];
    let (reader, writer) = io::pipe().unwrap();
    // Nobody reads the pipe, which has room for some hundred lines.
    let server = dir.serve_with_stderr(&args, writer, NamedTempFile::new().unwrap());
    send(&server, "HEAD", "/store/absent", 2_000);
    // From now on, writing fails.
    drop(reader);
    send(&server, "HEAD", "/store/absent", 500);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0, 0);
}

#[test]
fn options_are_checked() {
    let dir = TestDir::new();
    dir.fails(&["serve", "--access-log-file", "a"], 2, &["--access-log-file needs --access-log"]);
    dir.fails(&["serve", "--audit-log-file", "a"], 2, &["--audit-log-file needs --audit-log on"]);
    let same = ["serve", "--access-log", "all", "--access-log-file", "a", "--audit-log", "on", "--audit-log-file", "a"];
    dir.fails(&same, 2, &["both a"]);
    let missing = ["serve", "--listen", "127.0.0.1:0", "--audit-log", "on", "--audit-log-file", "missing/a"];
    dir.fails(&missing, 1, &["cannot open the audit log missing/a", "No such file"]);
    assert!(!dir.path("zarrd-data").exists());

    dir.write("zarrd.toml", "access-log = \"all\"\naccess-log-file = \"of-the-file\"\n");
    let server = dir.serve(&["--access-log", "off"]);
    server.stop();
    assert!(!dir.path("of-the-file").exists());
    dir.serve(&[]).stop();
    assert!(dir.path("of-the-file").exists());
}

#[test]
fn no_log_has_credentials_at_any_level() {
    let dir = TestDir::new();
    let server = dir.serve(&[BOTH.as_slice(), &["--log-level", "trace,h2=trace,hyper=trace"]].concat());
    let mac = "0123456789abcdef".repeat(4);
    let link = format!("zarrdlink_1_{}_{mac}", "0".repeat(32));
    send(&server, "DELETE", &format!("/s//{link}/store/a"), 1);
    send(&server, "GET", &format!("/store/{link}?list={link}"), 1);
    send(&server, &link, "/store/a", 1);
    let traced = server.stop();
    assert!(traced.contains("request completed") && traced.contains("/s//…/store/a"), "{traced}");
    let logs = ["access.log", "audit.log"].map(|name| fs::read_to_string(dir.path(name)).unwrap());
    for log in logs.iter().chain([&traced]) {
        assert!(!log.contains(mac.get(..32).unwrap()), "{log}");
    }
}

#[test]
fn no_character_of_a_request_controls_a_terminal() {
    let dir = TestDir::new();
    for format in ["human", "json"] {
        let server = dir.serve(&["--store", "memory:", "--log", format, "--log-level", "debug"]);
        for target in ["/store/\u{9b}31m\u{85}\u{202e}\u{2028}é", "/store/a%C2%9B%E2%80%AE%E2%80%A8?list"] {
            send(&server, "GET", target, 1);
            send(&server, "DELETE", target, 1);
        }
        let log = server.stop();
        // Durations are in µs.
        let is_printable = |character| matches!(character, '\n' | ' '..='~' | 'µ');
        assert!(log.matches("/store/").count() >= 4, "{log}");
        assert!(log.chars().all(is_printable), "{}", log.escape_debug());
    }
}
