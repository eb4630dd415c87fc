//! Damaged stores: what finds the damage, what is served, and what is recovered.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt, symlink},
    path::{Path, PathBuf},
};

use http::StatusCode;
use serde_json::{Value, json};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    generated::Generated,
    problem::assert_problem,
    server::{Ended, Launch, Server, Signal, zarrd_with},
};
use zarrd_wire::problem::ProblemType;

/// A closed store with small values, and large ones in files.
struct Site {
    dir: tempfile::TempDir,
    values: BTreeMap<String, Vec<u8>>,
}

impl Site {
    async fn create(index: &str) -> Self {
        let mut site = Self { dir: tempfile::tempdir().unwrap(), values: BTreeMap::new() };
        let server = Launch::of(format!("{index}:{}", site.text("data"))).start();
        for number in 0..60 {
            let size = if number % 6 == 0 { 20_000 + number } else { 50 + number };
            let value = Generated::new(number, size).bytes().to_vec();
            let status = server.put(&format!("/store/v/{number:02}"), value.clone()).await.status();
            assert!(status.is_success(), "{status}");
            site.values.insert(format!("v/{number:02}"), value);
        }
        server.stop();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The file of a large value.
    fn file_of(&self, key: &str) -> PathBuf {
        let value = &self.values[key];
        let files = walk(&self.path("data/values")).into_iter();
        files.into_iter().find(|file| fs::read(file).is_ok_and(|bytes| bytes.starts_with(value))).unwrap()
    }

    /// Damages the page of a redb index that has a small value.
    fn damage_page_of(&self, key: &str) {
        let file = self.path("data/index/index.redb");
        let (bytes, value) = (fs::read(&file).unwrap(), &self.values[key]);
        let places = bytes.windows(value.len()).enumerate().filter(|(_, window)| *window == value.as_slice());
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        assert!(!places.is_empty());
        // Earlier states of the page have it too.
        places.into_iter().for_each(|place| overwrite(&file, place as u64, 12));
    }

    fn recover(&self, to: &str, options: &[&str]) -> Ended {
        zarrd_with([&["recover", &self.text("data"), &self.text(to)], options].concat())
    }

    /// Asserts that a server on a recovered store has all values except some.
    async fn expect_without(&self, to: &str, lost: &[&str]) {
        let server = Launch::of(self.text(to)).start();
        for (key, value) in &self.values {
            let found = server.answer(&format!("/store/{key}")).await;
            if lost.contains(&key.as_str()) {
                assert_eq!(found.0, StatusCode::NOT_FOUND, "{key}");
            } else {
                assert_eq!(found, (StatusCode::OK, value.clone()), "{key}");
            }
        }
        server.stop();
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// The files of a directory with what changes when they are written.
fn state(dir: &Path) -> Vec<(PathBuf, u64, i64, i64, u64)> {
    let mut files = walk(dir);
    files.sort();
    let described = files.into_iter().map(|file| {
        let metadata = fs::symlink_metadata(&file).unwrap();
        (file, metadata.len(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino())
    });
    described.collect()
}

/// Puts something in place of a file of which every read fails with EIO, as on an unreadable sector.
fn make_unreadable(file: &Path) {
    fs::remove_file(file).unwrap();
    symlink("/proc/self/mem", file).unwrap();
}

fn overwrite(file: &Path, offset: u64, len: usize) {
    File::options().write(true).open(file).unwrap().write_all_at(&vec![0x5A; len], offset).unwrap();
}

#[tokio::test]
async fn check_goes_on_after_unreadable_values_and_names_them() {
    let site = Site::create("sled").await;
    let names: Vec<(&str, PathBuf)> = ["v/12", "v/30"].into_iter().map(|key| (key, site.file_of(key))).collect();
    make_unreadable(&names[0].1);
    fs::remove_file(&names[1].1).unwrap();
    fs::create_dir(&names[1].1).unwrap();
    let ended = zarrd_with(["check", "--store", &site.text("data")]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("2 of 60 values are damaged or missing"), "{ended:?}");
    for ((key, file), cause) in names.iter().zip(["Input/output error", "Is a directory"]) {
        let file = file.strip_prefix(site.path("data")).unwrap().to_str().unwrap();
        let named = ended.stderr.lines().find(|line| line.contains(&format!("damaged: {key:?}"))).unwrap();
        assert!(named.contains(file) && named.contains(cause), "{named}");
    }
    let summary: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["keys"], &summary["corrupt"]), (&json!(60), &json!(2)), "{summary}");
}

#[tokio::test]
async fn unreadable_values_are_problems_with_their_key_and_the_log_has_the_file() {
    let site = Site::create("redb").await;
    let file = site.file_of("v/12");
    let server = Launch::of(format!("redb:{}", site.text("data"))).start();
    make_unreadable(&file);
    let problem = assert_problem(server.get("/store/v/12").await, ProblemType::CorruptValue).await;
    assert_eq!(problem.members.key.as_deref(), Some("v/12"));
    let name = file.strip_prefix(site.path("data")).unwrap().to_str().unwrap();
    server.wait_for_log(name);
    assert!(
        server.log().lines().any(|line| line.contains(name) && line.contains("Input/output error")),
        "{}",
        server.log()
    );
    // Other values are served, and this one can be replaced.
    assert_eq!(server.answer("/store/v/18").await.1, site.values["v/18"]);
    assert!(server.put("/store/v/12", "again").await.status().is_success());
    assert_eq!(server.answer("/store/v/12").await, (StatusCode::OK, b"again".to_vec()));
    server.stop();
}

#[tokio::test]
async fn damaged_stores_are_recovered_into_new_ones() {
    for index in ["sled", "redb"] {
        let site = Site::create(index).await;
        let whole = site.recover("whole", &[]);
        assert_eq!(whole.code, Some(0), "{whole:?}");
        site.expect_without("whole", &[]).await;
        // One bit of the index and a block of a value.
        let file = site.path(if index == "sled" { "data/index/db" } else { "data/index/index.redb" });
        let bytes = fs::read(&file).unwrap();
        let place = bytes.windows(4).position(|window| window == b"v/33").unwrap_or(9000) as u64;
        let byte = bytes[place as usize + 2];
        File::options().write(true).open(&file).unwrap().write_all_at(&[byte ^ 4], place + 2).unwrap();
        overwrite(&site.file_of("v/12"), 100, 10);
        let before = state(&site.path("data"));
        let partly = site.recover("partly", &[]);
        assert_eq!(partly.code, Some(5), "{partly:?}");
        assert!(partly.stderr.contains("lost: \"v/12\": block 0 of the value file values/"), "{partly:?}");
        assert!(partly.stderr.contains("59 values were recovered with certainty"), "{partly:?}");
        assert_eq!(state(&site.path("data")), before, "{index}");
        site.expect_without("partly", &["v/12"]).await;
    }
}

#[tokio::test]
async fn doubtful_values_are_listed_and_taken_on_request() {
    let site = Site::create("sled").await;
    fs::remove_dir_all(site.path("data/index")).unwrap();
    fs::remove_dir_all(site.path("data/log")).unwrap();
    let report = site.text("report");
    let ended = site.recover("none", &["--report", &report]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(
        ended.stderr.contains("0 values were recovered with certainty; 10 doubtful ones were left out"),
        "{ended:?}"
    );
    let lines = fs::read_to_string(&report).unwrap();
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = json!({ "key": "v/12", "doubtful": true, "taken": false });
    assert!(entries.contains(&expected), "{lines}");
    assert!(entries.iter().any(|entry| entry["lost_from"] == ""), "{lines}");
    let ended = site.recover("some", &["--doubtful"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("doubtful, taken: \"v/12\""), "{ended:?}");
    let small: Vec<&str> =
        site.values.keys().filter(|key| site.values[*key].len() < 4096).map(String::as_str).collect();
    site.expect_without("some", &small).await;
}

#[tokio::test]
async fn unsuitable_sources_and_targets_of_a_recovery_are_refused() {
    let site = Site::create("sled").await;
    let data = site.text("data");
    let refused = |arguments: &[&str], code: i32, message: &str| {
        let before = (state(&site.path("data")), contents(&site.path("data")));
        let ended = zarrd_with([&["recover"], arguments].concat());
        assert!(ended.code == Some(code) && ended.stderr.contains(message), "{arguments:?}: {ended:?}");
        assert!((state(&site.path("data")), contents(&site.path("data"))) == before, "{arguments:?}");
        assert!(!site.path("to").exists(), "{arguments:?}");
    };
    let to = site.text("to");
    // What is no store.
    fs::create_dir(site.path("files")).unwrap();
    fs::write(site.path("files/thesis.tex"), "x").unwrap();
    refused(&[&site.text("files"), &to], 3, "not a store");
    refused(&[&site.text("none"), &to], 3, "no store at");
    // A target that is not empty, that is the store, or within it, also by a link.
    refused(&[&data, &site.text("files")], 2, "is not empty");
    assert_eq!(walk(&site.path("files")).len(), 1);
    refused(&[&data, &data], 2, "is not empty");
    refused(&[&data, &format!("{data}/to")], 2, "is part of the store");
    symlink(&data, site.path("link")).unwrap();
    refused(&[&data, &site.text("link/to")], 2, "is part of the store");
    refused(&[&site.text("link"), &format!("{data}/to")], 2, "is part of the store");
    // A report within the store, or in place of another file.
    refused(&[&data, &to, "--report", &format!("{data}/report")], 2, "is part of the store");
    refused(&[&data, &to, "--report", &site.text("files/thesis.tex")], 1, "thesis.tex");
    assert_eq!(fs::read(site.path("files/thesis.tex")).unwrap(), b"x");
    // A store in use, by a server that does nothing meanwhile.
    let server = Launch::sled(&site.path("data")).start();
    server.signal(Signal::STOP);
    refused(&[&data, &to], 4, &server.pid().to_string());
    server.signal(Signal::CONT);
    server.stop();
    // A newer format.
    for name in ["zarrd.json", "zarrd.json.copy"] {
        let text = fs::read_to_string(site.path("data").join(name)).unwrap();
        fs::write(site.path("data").join(name), text.replace("\"format\": 2", "\"format\": 9")).unwrap();
    }
    refused(&[&data, &to], 3, "format 9");
}

/// The bytes of all files.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    walk(dir).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[tokio::test]
async fn damaged_values_of_a_running_server_are_listed_skipped_overwritten_and_erased() {
    for index in ["sled", "redb"] {
        let site = Site::create(index).await;
        let damaged = ["v/12", "v/30", "v/48"];
        let files = damaged.map(|key| site.file_of(key));
        let server = Launch::of(format!("{index}:{}", site.text("data"))).start();
        overwrite(&files[0], 100, 10);
        fs::remove_file(&files[1]).unwrap();
        make_unreadable(&files[2]);
        for key in damaged {
            let problem = assert_problem(server.get(&format!("/store/{key}")).await, ProblemType::CorruptValue).await;
            assert_eq!(problem.members.key.as_deref(), Some(key));
        }
        // They are listed, and do not hold up what is whole.
        assert_eq!(server.count_keys("v/").await, site.values.len());
        let (url, backup) = (server.url(""), site.text("backup"));
        let exported = zarrd_with(["export", "", &site.text("export"), "--server", &url]);
        let taken = zarrd_with(["backup", &backup, "--server", &url]);
        for ended in [&exported, &taken] {
            assert_eq!(ended.code, Some(5), "{index}: {ended:?}");
            for key in damaged {
                assert!(ended.stderr.contains(&format!("{key:?}")), "{index} {key}: {ended:?}");
            }
        }
        for (key, value) in &site.values {
            let file = site.path("export").join(key);
            let expected = (!damaged.contains(&key.as_str())).then_some(value);
            assert_eq!(fs::read(file).ok().as_ref(), expected, "{index} {key}");
        }
        let restored = zarrd_with(["restore", &backup, &site.text("restored"), "--skip-damaged", "--without-access"]);
        assert_eq!(restored.code, Some(5), "{restored:?}");
        site.expect_without("restored", &damaged).await;
        // Two are overwritten, one by a small value, and one is erased.
        let again = vec![7; 30_000];
        assert!(server.put("/store/v/12", again.clone()).await.status().is_success());
        assert!(server.put("/store/v/30", "small").await.status().is_success());
        assert!(server.delete("/store/v/48").await.status().is_success());
        assert_eq!(server.answer("/store/v/12").await, (StatusCode::OK, again.clone()));
        assert_eq!(server.answer("/store/v/30").await, (StatusCode::OK, b"small".to_vec()));
        assert_eq!(server.answer("/store/v/48").await.0, StatusCode::NOT_FOUND);
        assert_eq!(server.count_keys("v/").await, site.values.len() - 1);
        // Nothing is left of the damage: neither for the server, nor in its files.
        let exported = zarrd_with(["export", "", &site.text("export-again"), "--server", &url]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        assert_eq!(fs::read(site.path("export-again/v/12")).unwrap(), again);
        let taken = zarrd_with(["backup", &backup, "--server", &url]);
        assert_eq!(taken.code, Some(0), "{taken:?}");
        server.stop();
        let checked = zarrd_with(["check", "--store", &format!("{index}:{}", site.text("data"))]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(files.iter().all(|file| file.symlink_metadata().is_err()), "{index}: {files:?}");
    }
}

#[tokio::test]
async fn damaged_page_of_an_index_is_served_around_on_a_running_server() {
    let site = Site::create("redb").await;
    site.damage_page_of("v/57");
    let checked = zarrd_with(["check", "--store", &format!("redb:{}", site.text("data"))]);
    assert_eq!(checked.code, Some(5), "{checked:?}");
    assert!(checked.stderr.contains("damaged: \"v/57\""), "{checked:?}");
    let server = Launch::of(format!("redb:{}", site.text("data"))).start();
    let mut damaged = Vec::new();
    for (key, value) in &site.values {
        let answer = server.get(&format!("/store/{key}")).await;
        if answer.status() == StatusCode::OK {
            assert_eq!(answer.bytes().await.unwrap(), *value, "{key}");
            continue;
        }
        let problem = assert_problem(answer, ProblemType::CorruptValue).await;
        assert_eq!(problem.members.key.as_deref(), Some(key.as_str()));
        damaged.push(key.clone());
    }
    assert!(damaged.contains(&"v/57".to_owned()) && damaged.len() < 40, "{damaged:?}");
    assert_marked(&server).await;

    // Copies have the rest, name what is damaged, and exit with 5.
    let url = server.url("");
    let exported = zarrd_with(["export", "", &site.text("export"), "--server", &url]);
    let taken = zarrd_with(["backup", &site.text("backup"), "--server", &url]);
    for ended in [&exported, &taken] {
        assert_eq!(ended.code, Some(5), "{ended:?}");
        for key in &damaged {
            assert!(ended.stderr.contains(&format!("{key:?}")), "{key}: {ended:?}");
        }
    }
    for (key, value) in &site.values {
        let expected = (!damaged.contains(key)).then_some(value);
        assert_eq!(fs::read(site.path("export").join(key)).ok().as_ref(), expected, "{key}");
    }

    // Changes that depend on a version fail with the key; others work, and last.
    for condition in [("if-match", "\"00000000000000000000000000000001\""), ("if-match", "*"), ("if-none-match", "*")] {
        for method in [http::Method::PUT, http::Method::DELETE] {
            let request = server.request(method, "/store/v/57").header(condition.0, condition.1).body("x");
            let problem = assert_problem(request.send().await.unwrap(), ProblemType::CorruptValue).await;
            assert_eq!(problem.members.key.as_deref(), Some("v/57"), "{condition:?}");
        }
    }
    assert_eq!(server.put("/store/v/57", "again").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(server.answer("/store/v/57").await, (StatusCode::OK, b"again".to_vec()));
    for key in damaged.iter().filter(|key| *key != "v/57") {
        assert_eq!(server.delete(&format!("/store/{key}")).await.status(), StatusCode::NO_CONTENT, "{key}");
    }
    // What is listed for keys whose names are lost is erased as well.
    for key in listed_as_damaged(&server).await {
        assert!(key.contains("damaged-keys-"), "{key}");
        assert_eq!(server.delete(&format!("/store/{key}")).await.status(), StatusCode::NO_CONTENT, "{key}");
    }
    assert_eq!(server.count_keys("").await, site.values.len() - damaged.len() + 1);
    server.stop();
    let checked = zarrd_with(["check", "--store", &format!("redb:{}", site.text("data"))]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let server = Launch::of(format!("redb:{}", site.text("data"))).start();
    assert_eq!(server.answer("/store/v/57").await, (StatusCode::OK, b"again".to_vec()));
    assert_eq!(server.answer("/store/v/never").await.0, StatusCode::NOT_FOUND);
    server.stop();
}

/// The keys that a listing marks as damaged.
async fn listed_as_damaged(server: &Server) -> Vec<String> {
    let (_, body) = server.answer("/store/?list=keys").await;
    let listing: Value = serde_json::from_slice(&body).unwrap();
    let keys = listing["keys"].as_array().unwrap().iter().zip(listing["values"].as_array().unwrap());
    let marked = keys.filter(|(_, value)| value["damaged"] == true);
    marked.map(|(key, _)| key.as_str().unwrap().to_owned()).collect()
}

/// Asserts that every listing marks `v/57`, and that none has a size or time of it.
async fn assert_marked(server: &Server) {
    assert!(listed_as_damaged(server).await.contains(&"v/57".to_owned()));
    let text = async |request: reqwest::RequestBuilder| request.send().await.unwrap().text().await.unwrap();
    let page = text(server.request(http::Method::GET, "/store/v/").header(http::header::ACCEPT, "text/html")).await;
    assert!(
        page.contains("<tr class=\"damaged\"><td><a href=\"57\">57</a></td><td>damaged</td><td></td></tr>"),
        "{page}"
    );
    let propfind = http::Method::from_bytes(b"PROPFIND").unwrap();
    let page = text(server.request(propfind, "/store/v/").header("depth", "1")).await;
    let response = page.split("<D:response>").find(|response| response.contains("/store/v/57</D:href>")).unwrap();
    assert!(!response.contains("getcontentlength") && !response.contains("getetag"), "{response}");
}

#[tokio::test]
async fn full_disk_ends_a_recovery_and_leaves_the_source() {
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 48) else { return };
    let site = Site::create("redb").await;
    let before = state(&site.path("data"));
    disk.fill(4 << 20);
    let to = disk.store().to_str().unwrap().to_owned();
    let ended = zarrd_with(["recover", &site.text("data"), &to]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no space is left") || ended.stderr.contains("No space left"), "{ended:?}");
    assert_eq!(state(&site.path("data")), before);
}

#[tokio::test]
async fn devices_of_which_nothing_can_be_read_are_named() {
    let site = Site::create("sled").await;
    for file in walk(&site.path("data")) {
        make_unreadable(&file);
    }
    let ended = site.recover("to", &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("zarrd.json") && !site.path("to").exists(), "{ended:?}");
    // Files that never end.
    let site = Site::create("sled").await;
    for name in ["zarrd.json", "index/db", "index/conf", "clean-shutdown"] {
        let file = site.path("data").join(name);
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    }
    // The log has every commit, so the index is not needed.
    let ended = site.recover("to", &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("damaged: index: not a regular file"), "{ended:?}");
    site.expect_without("to", &[]).await;
}

#[tokio::test]
async fn tokens_of_a_damaged_store_are_recovered() {
    let site = Site::create("sled").await;
    let data = site.text("data");
    assert_eq!(zarrd_with(["token", "create", "--store", &data, "--name", "a", "--allow", "admin:/"]).code, Some(0));
    assert_eq!(site.recover("to", &[]).code, Some(0));
    let server: Server = Launch::of(site.text("to")).start();
    assert_eq!(server.answer("/store/v/12").await.0, StatusCode::UNAUTHORIZED);
    server.terminate();
    let _ = server.wait();
    assert_eq!(site.recover("open", &["--without-access"]).code, Some(0));
    site.expect_without("open", &[]).await;
}

/// Waits until a server that read everything again reports a number of damaged values; returns its readiness as an
/// administrator sees it.
async fn scrubbed(server: &Server, token: &str, damaged: u64) -> Value {
    let mut ready = Value::Null;
    for _ in 0..2400 {
        let answer = server.request(http::Method::GET, "/readyz").bearer_auth(token).send().await.unwrap();
        ready = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        if ready["scrub"]["finished"].is_string() && ready["scrub"]["damaged"] == damaged {
            return ready;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the scrub does not end: {ready}");
}

#[tokio::test]
async fn damage_that_the_scrub_found_is_reported_until_it_is_repaired() {
    let site = Site::create("sled").await;
    let data = site.text("data");
    let created = zarrd_with(["token", "create", "--store", &data, "--name", "a", "--allow", "admin:/"]);
    let token = created.stdout.trim();
    let file = site.file_of("v/12");
    overwrite(&file, 100, 10);
    let launch = Launch::of(format!("sled:{data}")).arg("--anonymous=read").arg("--scrub=1s");
    let server = launch.start();
    let ready = scrubbed(&server, token, 1).await;
    let finding = &ready["scrub"]["findings"][0];
    assert_eq!(finding["name"], "v/12", "{ready}");
    let name = file.strip_prefix(site.path("data")).unwrap().to_str().unwrap();
    assert!(finding["cause"].as_str().unwrap().contains(name), "{ready}");
    server.wait_for_log("the scrub found damage");
    // Others see neither names nor counts.
    let (_, body) = server.answer("/readyz").await;
    assert!(!String::from_utf8(body).unwrap().contains("scrub"));
    let metrics = server.request(http::Method::GET, "/metrics").bearer_auth(token).send().await.unwrap();
    assert!(metrics.text().await.unwrap().contains("zarrd_store_damaged 1"));
    // The value is replaced; the pass after that finds nothing.
    let put = server.request(http::Method::PUT, "/store/v/12").bearer_auth(token).body("again");
    assert!(put.send().await.unwrap().status().is_success());
    server.stop();
    let server = launch.start();
    scrubbed(&server, token, 0).await;
    server.stop();
}
