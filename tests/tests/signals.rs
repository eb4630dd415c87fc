//! Signals while a store opens: the opening is finished, and a second signal terminates the process at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use http::StatusCode;
use tempfile::TempDir;
use zarrd_tests::{
    server::{Launch, Process, Signal},
    shim::shim,
};

/// Blocks every opening of a store halfway.
struct BlockedOpening {
    library: PathBuf,
    marker: PathBuf,
    _tools: TempDir,
}

impl BlockedOpening {
    fn new() -> Option<Self> {
        let tools = tempfile::tempdir().unwrap();
        let library = shim("blocked_open", tools.path())?;
        Some(Self { library, marker: tools.path().join("marker"), _tools: tools })
    }

    fn block(&self) {
        let _ = fs::remove_file(self.waiting());
        fs::write(&self.marker, "").unwrap();
    }

    fn waiting(&self) -> PathBuf {
        self.marker.with_extension("waiting")
    }

    fn wait_until_blocked(&self) {
        let started = Instant::now();
        while !self.waiting().exists() {
            assert!(started.elapsed() < Duration::from_secs(20), "no store is being opened");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn release(&self) {
        fs::remove_file(&self.marker).unwrap();
    }

    fn serve(&self, store: &Path) -> Launch {
        Launch::sled(store).env("LD_PRELOAD", &self.library).env("BLOCKED_OPEN", &self.marker)
    }

    fn start(&self, arguments: &[&str]) -> Process {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let environment =
            [("LD_PRELOAD".to_owned(), text(&self.library)), ("BLOCKED_OPEN".to_owned(), text(&self.marker))];
        Process::start(arguments.iter().map(|&argument| argument.to_owned()), environment)
    }
}

/// True if this process ignores SIGHUP, which child processes inherit.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1
}

fn still_runs(process: &mut Process) {
    std::thread::sleep(Duration::from_millis(300));
    assert!(process.is_running(), "the signal ended it in the middle");
}

#[test]
fn sigterm_while_the_store_opens_closes_it_cleanly() {
    let Some(blocked) = BlockedOpening::new() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        blocked.block();
        let mut server = blocked.serve(&store).spawn();
        blocked.wait_until_blocked();
        server.signal(signal);
        still_runs(&mut server);
        blocked.release();
        let ended = server.wait();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
        assert!(store.join("clean-shutdown").exists(), "the store was closed");
        Launch::sled(&store).start().stop();
    }
}

#[test]
fn second_signal_while_the_store_opens_kills_the_server() {
    let Some(blocked) = BlockedOpening::new() else { return };
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let dir = tempfile::tempdir().unwrap();
        blocked.block();
        let mut server = blocked.serve(dir.path()).spawn();
        blocked.wait_until_blocked();
        server.signal(Signal::HUP);
        server.signal(Signal::TERM);
        still_runs(&mut server);
        server.signal(signal);
        let ended = server.wait();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        blocked.release();
    }
}

#[test]
fn interrupted_commands_close_the_store_before_exit() {
    let Some(blocked) = BlockedOpening::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (store, other, files, out) = (place("store"), place("other"), place("files"), place("out"));
    fs::create_dir(&files).unwrap();
    fs::write(dir.path().join("files/zarr.json"), r#"{"zarr_format":3,"node_type":"group"}"#).unwrap();
    Launch::of(&store).start().stop();
    let commands: [&[&str]; 7] = [
        &["ls", "--store", &store],
        &["tree", "--store", &store],
        &["info", "/", "--store", &store],
        &["check", "--store", &store],
        &["import", &files, "lab", "--merge", "--store", &store],
        &["export", "", &out, "--store", &store],
        &["copy", &store, &other],
    ];
    for command in commands {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            // Under `nohup` the programs must keep running.
            let code = if signal == Signal::HUP && hangups_are_ignored() { 0 } else { code };
            blocked.block();
            let mut process = blocked.start(command);
            blocked.wait_until_blocked();
            process.signal(signal);
            still_runs(&mut process);
            blocked.release();
            let ended = process.wait();
            assert_eq!(ended.code, Some(code), "{command:?}: {ended:?}");
            assert!(dir.path().join("store/clean-shutdown").exists(), "{command:?}: the store was closed");
        }
    }
    assert!(hangups_are_ignored() || !Path::new(&out).exists() && !Path::new(&other).exists(), "nothing was begun");
}

#[tokio::test]
async fn sighup_does_not_stop_the_server() {
    let server = Launch::of("memory:").start();
    server.signal(Signal::HUP);
    server.wait_for_log("SIGHUP");
    server.signal(Signal::HUP);
    assert_eq!(server.get("/healthz").await.status(), StatusCode::OK);
    server.stop();
}
