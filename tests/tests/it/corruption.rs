//! Data damaged on disk is neither served as if it were intact, nor treated as absent.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::{Method, StatusCode};
use reqwest::Response;
use tempfile::TempDir;
use zarrd_tests::{
    generated::Generated,
    problem::assert_problem,
    server::{Launch, Server, zarrd_with},
    skip::note,
};
use zarrd_wire::problem::ProblemType;

/// The exit code of a start that failed because the store is damaged.
const STORE_DAMAGED: Option<i32> = Some(3);
/// The exit code of a check that found damaged values.
const DAMAGE_FOUND: Option<i32> = Some(5);

const KINDS: [&str; 2] = ["sled", "redb"];

/// A closed store with one large value at `lab/large` and small ones at `lab/small/N`.
struct Filled {
    dir: TempDir,
    kind: &'static str,
    large: Bytes,
}

impl Filled {
    async fn new(kind: &'static str, size: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let filled = Self { dir, kind, large: Generated::new(7, size).bytes() };
        let server = filled.start();
        put(&server, "lab/large", filled.large.clone()).await;
        for number in 0..50 {
            put(&server, &format!("lab/small/{number}"), format!("value {number}").into()).await;
        }
        server.stop();
        filled
    }

    fn store(&self) -> String {
        format!("{}:{}", self.kind, self.dir.path().display())
    }

    fn start(&self) -> Server {
        Launch::of(self.store()).start()
    }

    fn value_file(&self) -> PathBuf {
        let found = files(&self.dir.path().join("values"));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    fn index_file(&self) -> PathBuf {
        let name = if self.kind == "sled" { "db" } else { "index.redb" };
        self.dir.path().join("index").join(name)
    }

    /// Asserts that a check reports the large value, and nothing else.
    fn check_reports_the_large_value(&self) {
        let checked = zarrd_with(["check", "--store", &self.store()]);
        assert_eq!(checked.code, DAMAGE_FOUND, "{checked:?}");
        assert!(checked.stderr.contains("lab/large"), "{checked:?}");
        assert!(!checked.stderr.contains("lab/small"), "{checked:?}");
        let summary: serde_json::Value = serde_json::from_str(checked.stdout.trim()).unwrap();
        assert_eq!((&summary["keys"], &summary["corrupt"]), (&51.into(), &1.into()));
    }

    /// Asserts that the store does not start, that the message names a file, and that nothing changes.
    fn start_is_rejected(&self, named: &Path) {
        let before = contents(self.dir.path());
        self.start_fails(named);
        assert!(before == contents(self.dir.path()), "{}: a failed start changed the store", self.kind);
    }

    /// Asserts that the store starts and has each value or names its damage, or fails with a message that names a file,
    /// without changing anything.
    async fn starts_or_is_rejected(&self, named: &Path) {
        let before = contents(self.dir.path());
        match Launch::of(self.store()).try_start() {
            Ok(server) => {
                self.is_intact_or_named(&server).await;
                server.stop();
            }
            Err(ended) => {
                assert_eq!((ended.code, ended.stdout.as_str()), (STORE_DAMAGED, ""), "{ended:?}");
                assert!(ended.stderr.contains(named.to_str().unwrap()), "{} is not in {ended:?}", named.display());
                assert!(before == contents(self.dir.path()), "{}: a failed start changed the store", self.kind);
            }
        }
    }

    async fn is_intact_or_named(&self, server: &Server) {
        let small = (0..50).map(|number| (format!("lab/small/{number}"), format!("value {number}").into()));
        for (key, value) in small.chain([("lab/large".to_owned(), self.large.clone())]) {
            let answer = get(server, &key).await;
            if answer.status() == StatusCode::OK {
                assert_eq!(answer.bytes().await.unwrap(), value, "{key}");
                continue;
            }
            let problem = assert_problem(answer, ProblemType::CorruptValue).await;
            assert_eq!(problem.members.key, Some(key));
        }
    }

    async fn is_intact(&self, server: &Server) {
        assert_eq!(get(server, "lab/large").await.bytes().await.unwrap(), self.large);
        for number in 0..50 {
            let answer = get(server, &format!("lab/small/{number}")).await;
            assert_eq!(answer.text().await.unwrap(), format!("value {number}"));
        }
    }

    /// Asserts that the store does not start, and that the message names a file.
    fn start_fails(&self, named: &Path) {
        let ended = Launch::of(self.store()).start_expecting_failure();
        assert_eq!(ended.code, STORE_DAMAGED, "{ended:?}");
        assert!(ended.stderr.contains(named.to_str().unwrap()), "{} is not in {ended:?}", named.display());
        assert_eq!(ended.stdout, "");
    }
}

/// All files below a directory except the lock, with their contents.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let found = files(dir).into_iter().filter(|path| !path.ends_with("lock"));
    found.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

async fn put(server: &Server, key: &str, value: Bytes) {
    let answer = server.put(&format!("/store/{key}"), value).await;
    assert!(answer.status().is_success(), "{answer:?}");
}

async fn get(server: &Server, key: &str) -> Response {
    server.get(&format!("/store/{key}")).await
}

async fn range(server: &Server, from: usize, to: usize) -> Response {
    let request =
        server.request(Method::GET, "/store/lab/large").header(http::header::RANGE, format!("bytes={from}-{to}"));
    request.send().await.unwrap()
}

async fn is_damaged(answer: Response) {
    let problem = assert_problem(answer, ProblemType::CorruptValue).await;
    assert_eq!(problem.members.key.as_deref(), Some("lab/large"));
}

/// All files below a directory, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn flip(path: &Path, offset: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

#[tokio::test]
async fn flipped_bit_in_a_value_fails_its_reads() {
    let filled = Filled::new("sled", 1 << 20).await;
    let damaged = 400_000;
    flip(&filled.value_file(), damaged as u64);
    let server = filled.start();
    is_damaged(get(&server, "lab/large").await).await;
    for (from, to) in [(damaged, damaged), (damaged - 10, damaged + 10), (0, 500_000), (300_000, 1 << 20)] {
        is_damaged(range(&server, from, to).await).await;
    }
    for (from, to) in [(0, 0), (0, 100_000), (100_000, 300_000), (600_000, (1 << 20) - 1)] {
        let answer = range(&server, from, to).await;
        assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(answer.bytes().await.unwrap(), filled.large[from..=to]);
    }
    assert_eq!(get(&server, "lab/small/7").await.text().await.unwrap(), "value 7");
    server.stop();
    filled.check_reports_the_large_value();

    // Setting the value again repairs it.
    let server = filled.start();
    put(&server, "lab/large", filled.large.clone()).await;
    assert_eq!(get(&server, "lab/large").await.bytes().await.unwrap(), filled.large);
    server.stop();
    assert_eq!(zarrd_with(["check", "--store", &filled.store()]).code, Some(0));
}

#[tokio::test]
async fn corruption_late_in_a_value_aborts_the_response() {
    let filled = Filled::new("sled", 8 << 20).await;
    let damaged = 7 << 20;
    flip(&filled.value_file(), damaged as u64);
    let server = filled.start();
    let answer = get(&server, "lab/large").await;
    assert_eq!(answer.content_length(), Some(8 << 20));
    let mut intact = Vec::new();
    let mut answer = answer;
    let broken = loop {
        match answer.chunk().await {
            Ok(Some(piece)) => intact.extend_from_slice(&piece),
            Ok(None) => panic!("the answer ended in order after {} bytes", intact.len()),
            Err(error) => break error,
        }
    };
    note(format_args!("after {} bytes: {broken}", intact.len()));
    assert!(intact.len() <= damaged && filled.large.starts_with(&intact));
    server.wait_for_log("lab/large");
    server.stop();
    filled.check_reports_the_large_value();
}

#[tokio::test]
async fn missing_value_file_is_an_error_not_404() {
    let filled = Filled::new("redb", 1 << 20).await;
    fs::remove_file(filled.value_file()).unwrap();
    let server = filled.start();
    is_damaged(get(&server, "lab/large").await).await;
    is_damaged(range(&server, 5, 10).await).await;
    server.stop();
    filled.check_reports_the_large_value();

    let server = filled.start();
    let erased = server.delete("/store/lab/large").await;
    assert_eq!(erased.status(), StatusCode::NO_CONTENT);
    assert_eq!(get(&server, "lab/large").await.status(), StatusCode::NOT_FOUND);
    server.stop();
    assert_eq!(zarrd_with(["check", "--store", &filled.store()]).code, Some(0));
}

#[tokio::test]
async fn flipped_bit_in_the_index_costs_nothing() {
    for kind in KINDS {
        for part in 0..3 {
            let filled = Filled::new(kind, 1 << 20).await;
            let len = fs::metadata(filled.index_file()).unwrap().len();
            flip(&filled.index_file(), [40, len / 2, len - 9][part]);
            let server = filled.start();
            filled.is_intact(&server).await;
            server.stop();
        }
    }
}

#[tokio::test]
async fn truncated_index_is_repaired_or_rejected_and_missing_index_rejected() {
    for kind in KINDS {
        let filled = Filled::new(kind, 1 << 20).await;
        let file = filled.index_file();
        File::options().write(true).open(&file).unwrap().set_len(fs::metadata(&file).unwrap().len() / 2).unwrap();
        filled.starts_or_is_rejected(&filled.dir.path().join("index")).await;

        let filled = Filled::new(kind, 1 << 20).await;
        let file = filled.index_file();
        fs::remove_file(&file).unwrap();
        filled.start_is_rejected(&file);
        fs::remove_dir_all(filled.dir.path().join("index")).unwrap();
        filled.start_is_rejected(&filled.dir.path().join("index"));
        assert_eq!(files(&filled.dir.path().join("values")).len(), 1, "nothing is collected");
    }
}

#[tokio::test]
async fn older_index_is_replayed_from_the_log() {
    for kind in KINDS {
        for crashed in [false, true] {
            let filled = Filled::new(kind, 1 << 20).await;
            let (index, older) = (filled.dir.path().join("index"), tempfile::tempdir().unwrap());
            copy(&index, &older.path().join("index"));
            let server = filled.start();
            for number in 0..20 {
                put(&server, &format!("lab/later/{number}"), vec![1; 10_000].into()).await;
            }
            if crashed {
                server.kill()
            } else {
                server.stop()
            }
            fs::remove_dir_all(&index).unwrap();
            copy(&older.path().join("index"), &index);
            let server = filled.start();
            filled.is_intact(&server).await;
            for number in 0..20 {
                let answer = get(&server, &format!("lab/later/{number}")).await;
                assert_eq!(answer.bytes().await.unwrap(), vec![1; 10_000]);
            }
            server.stop();
        }
    }
}

#[tokio::test]
async fn incomplete_log_is_rejected_at_startup() {
    for kind in KINDS {
        let filled = Filled::new(kind, 1 << 20).await;
        let (log, older) = (filled.dir.path().join("log"), tempfile::tempdir().unwrap());
        copy(&log, &older.path().join("log"));
        let server = filled.start();
        put(&server, "lab/later", vec![1; 10_000].into()).await;
        server.stop();
        fs::remove_dir_all(&log).unwrap();
        copy(&older.path().join("log"), &log);
        filled.start_is_rejected(&log);
        fs::remove_dir_all(&log).unwrap();
        filled.start_is_rejected(&log);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in files(from) {
        let to = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
}
