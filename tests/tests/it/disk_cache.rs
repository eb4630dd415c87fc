//! A server that caches what it reads of a bucket on its disk.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use http::header::{ETAG, LAST_MODIFIED, RANGE};
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer},
    distant_bucket::DistantBucket,
    python::python_with_clients,
    server::{Launch, Server},
    shim::shim,
    site::Site,
};

/// The number of chunks of the array, and the bytes of each: more than a piece.
const CHUNKS: usize = 12;
const CHUNK: usize = (1 << 20) + 1000;

fn elements() -> Vec<u8> {
    (0..CHUNKS * CHUNK).map(|at| (at % 251) as u8 ^ (at / CHUNK) as u8).collect()
}

/// An array of bytes, whose chunks are not encoded.
fn objects(elements: &[u8]) -> BTreeMap<String, Bytes> {
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [{}], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{CHUNK}]}}}},
        "codecs": [{{"name": "bytes"}}], "chunk_key_encoding": {{"name": "default"}}}}"#,
        CHUNKS * CHUNK
    );
    let chunks = elements.chunks(CHUNK).enumerate();
    let chunks = chunks.map(|(number, chunk)| (format!("a/c/{number}"), Bytes::copy_from_slice(chunk)));
    chunks.chain([("a/zarr.json".to_owned(), document.into())]).collect()
}

/// Writes the array to files.
fn write_files(dir: &Path, elements: &[u8]) {
    for (key, bytes) in objects(elements) {
        let path = dir.join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn argument(dir: &Path, size: &str) -> OsString {
    format!("--disk-cache={}:{size}", dir.display()).into()
}

/// The same launch with a disk cache, and without caches of elements.
fn cached(launch: Launch, dir: &Path) -> Launch {
    launch.arg("--chunk-cache=0").arg("--result-cache=0").arg(argument(dir, "256MiB"))
}

/// A launch without caches of elements.
fn launch(bucket: &DistantBucket, store: &str, dir: &Path) -> Launch {
    cached(bucket.s3().launch(store), dir)
}

/// The value of a metric of the disk cache.
async fn metric(server: &Server, name: &str) -> u64 {
    let (_, text) = server.answer("/metrics").await;
    let text = String::from_utf8(text).unwrap();
    let name = format!("zarrd_disk_cache_{name} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap_or_else(|| panic!("no {name}in {text}")).parse().unwrap()
}

async fn written(server: &Server, pieces: u64) {
    let written = async {
        while metric(server, "pieces_written_total").await < pieces {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), written).await.expect("all pieces are written");
}

#[tokio::test]
async fn a_second_pass_over_a_bucket_reads_no_bytes_of_it_even_after_kill_9() {
    let elements = elements();
    let bucket = DistantBucket::start(objects(&elements), Duration::ZERO);
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    for (store, mount, path) in [("s3://bucket", None, "a"), ("memory:", Some("--mount=lab=s3://bucket/"), "lab/a")] {
        let launch = mount.into_iter().fold(launch(&bucket, store, &cache), Launch::arg);
        for run in 0..3 {
            let server = launch.start();
            server.wait_for_log("the disk cache is used for this store");
            let before = bucket.sent();
            for _ in 0..2 {
                let (status, body) = server.answer(&format!("/array/{path}?format=raw")).await;
                assert!(status.is_success() && body == elements, "{store} {run}: {status}");
            }
            let sent = bucket.sent() - before;
            let is_first = run == 0 && mount.is_none();
            assert_eq!(sent, if is_first { elements.len() as u64 } else { 0 }, "{store}, run {run}");
            let hits = metric(&server, "hits_total").await;
            assert!(hits >= if is_first { 0 } else { 4 * CHUNKS as u64 }, "{store} {run}: {hits}");
            if is_first {
                written(&server, 2 * CHUNKS as u64).await;
                assert_eq!(metric(&server, "misses_total").await, 2 * CHUNKS as u64);
                assert_eq!(metric(&server, "written_bytes_total").await, elements.len() as u64);
            }
            assert_eq!(metric(&server, "failures_total").await + metric(&server, "damaged_total").await, 0);
            // The second run of each is killed as well.
            if run == 2 { server.stop() } else { server.kill() }
        }
    }
}

/// Reads the array twice from a store that is cached in a new directory, and again after the server was killed.
async fn assert_second_pass_is_cached(store: Launch, elements: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let store = cached(store, &dir.path().join("cache"));
    let pieces = 2 * CHUNKS as u64;
    for misses in [pieces, 0] {
        let server = store.start();
        for pass in 0..2 {
            let (status, body) = server.answer("/array/a?format=raw").await;
            assert!(status.is_success() && body == elements, "{misses} {pass}: {status}");
            assert_eq!(metric(&server, "misses_total").await, misses, "pass {pass}");
            written(&server, misses).await;
        }
        assert_eq!(metric(&server, "hits_total").await, 2 * pieces - misses);
        server.kill();
    }
}

#[tokio::test]
async fn a_second_pass_over_azure_reads_no_bytes_of_it() {
    let Some(python) = python_with_clients() else { return };
    let (elements, dir) = (elements(), tempfile::tempdir().unwrap());
    write_files(dir.path(), &elements);
    let Some(azurite) = BucketServer::azurite(&python, dir.path()) else { return };
    assert_second_pass_is_cached(azurite.launch("az://bucket?recheck=1h", ACCESS_KEY), &elements).await;
}

#[tokio::test]
async fn a_second_pass_over_a_web_server_reads_no_bytes_of_it() {
    let (elements, dir) = (elements(), tempfile::tempdir().unwrap());
    write_files(dir.path(), &elements);
    let Some(site) = Site::start(dir.path()) else { return };
    assert_second_pass_is_cached(Launch::of(site.url("/?recheck=1h")), &elements).await;
}

#[tokio::test]
async fn answers_are_those_without_the_cache() {
    let elements = elements();
    let bucket = DistantBucket::start(objects(&elements), Duration::ZERO);
    let dir = tempfile::tempdir().unwrap();
    let cached = launch(&bucket, "s3://bucket", &dir.path().join("cache")).start();
    let plain = bucket.s3().launch("s3://bucket").start();
    let ask = async |server: &Server, path: &str, range: Option<&str>| {
        let request = server.request(http::Method::GET, path);
        let request = range.into_iter().fold(request, |request, range| request.header(RANGE, range));
        let answer = request.send().await.unwrap();
        let headers = [ETAG, LAST_MODIFIED].map(|name| answer.headers().get(name).cloned());
        let status = answer.status();
        // A problem has the id of its request.
        let body = if status.is_success() { answer.bytes().await.unwrap() } else { Bytes::new() };
        (status, headers, body)
    };
    for range in [None, Some("bytes=0-0"), Some("bytes=1048570-1048580"), Some("bytes=-7"), Some("bytes=9999999-")] {
        for path in
            ["/store/a/c/3", "/store/a/c/99", "/store/a/zarr.json", "/array/a?select=5000000:5000009&format=raw"]
        {
            let expected = ask(&plain, path, range).await;
            for answer in join_all((0..3).map(|_| ask(&cached, path, range))).await {
                assert!(answer == expected, "{path} {range:?}: {:?}", (answer.0, answer.1));
            }
        }
    }
}

/// A launch whose cache is on a disk that fails or hangs while the file `state` in the directory says so; `None` without a C
/// compiler.
fn on_a_bad_disk(bucket: &DistantBucket, dir: &Path) -> Option<Launch> {
    let library = shim("failing_disk", dir)?;
    let cache = dir.canonicalize().unwrap().join("cache");
    let launch = launch(bucket, "s3://bucket", &cache).env("LD_PRELOAD", library);
    Some(launch.env("FAILING_DISK_ROOT", cache).env("FAILING_DISK", dir.join("state")))
}

/// Reads the array, compares its elements, and returns the bytes that the bucket has sent for it.
async fn pass(server: &Server, bucket: &DistantBucket, elements: &[u8]) -> u64 {
    let before = bucket.sent();
    let (status, body) = server.answer("/array/a?format=raw").await;
    assert!(status.is_success() && body == elements, "{status}");
    bucket.sent() - before
}

#[tokio::test]
async fn what_a_failing_disk_cannot_read_comes_from_the_bucket() {
    let elements = elements();
    let (bucket, dir) = (DistantBucket::start(objects(&elements), Duration::ZERO), tempfile::tempdir().unwrap());
    let Some(launch) = on_a_bad_disk(&bucket, dir.path()) else { return };
    let (server, state) = (launch.start(), dir.path().join("state"));
    pass(&server, &bucket, &elements).await;
    written(&server, 2 * CHUNKS as u64).await;
    assert_eq!(pass(&server, &bucket, &elements).await, 0);
    fs::write(&state, "fail").unwrap();
    for _ in 0..2 {
        assert!(pass(&server, &bucket, &elements).await > 0);
    }
    assert!(metric(&server, "failures_total").await > 0);
    fs::remove_file(&state).unwrap();
    pass(&server, &bucket, &elements).await;
    // It works again as soon as the disk does.
    let again = async {
        while pass(&server, &bucket, &elements).await > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), again).await.expect("the pieces are cached again");
    server.stop();
}

#[tokio::test]
async fn a_disk_that_hangs_is_waited_for_once() {
    let elements = elements();
    let (bucket, dir) = (DistantBucket::start(objects(&elements), Duration::ZERO), tempfile::tempdir().unwrap());
    let Some(launch) = on_a_bad_disk(&bucket, dir.path()) else { return };
    let (server, state) = (launch.start(), dir.path().join("state"));
    pass(&server, &bucket, &elements).await;
    written(&server, 2 * CHUNKS as u64).await;
    fs::write(&state, "hang").unwrap();
    pass(&server, &bucket, &elements).await;
    server.wait_for_log("the disk does not answer");
    let counts = async || [metric(&server, "failures_total").await, metric(&server, "misses_total").await];
    let [failures, misses] = counts().await;
    for _ in 0..3 {
        pass(&server, &bucket, &elements).await;
    }
    let [later_failures, later_misses] = counts().await;
    // A piece that is missed may be left out again, which is a failure. It is not read in vain as well.
    assert!(later_misses > misses && later_failures - failures <= later_misses - misses);
    fs::remove_file(&state).unwrap();
    server.stop();
}

#[test]
fn a_cache_that_cannot_be_used_is_an_error_that_names_the_flag() {
    let bucket = DistantBucket::start(BTreeMap::new(), Duration::ZERO);
    let dir = tempfile::tempdir().unwrap();
    let [foreign, cache] = ["foreign", "cache"].map(|name| dir.path().join(name));
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.txt"), "important").unwrap();
    let server = launch(&bucket, "s3://bucket", &cache).start();
    let start = |argument: OsString| {
        let launch = bucket.s3().launch("s3://bucket").arg(argument);
        launch.start_expecting_failure()
    };
    for (argument, code, part) in [
        (argument(&foreign, "1GiB"), 1, "thesis.txt"),
        (argument(&cache, "1GiB"), 4, "another server"),
        (argument(&dir.path().join("new"), "255MiB"), 2, "at least"),
        (argument(&dir.path().join("new"), "900TiB"), 1, "no space"),
        (argument(&foreign.join("thesis.txt"), "1GiB"), 1, "is not a directory"),
        (argument(&cache, "large"), 2, "DIR:SIZE"),
    ] {
        let ended = start(argument.clone());
        assert_eq!(ended.code, Some(code), "{argument:?}: {ended:?}");
        assert!(ended.stderr.contains("--disk-cache") && ended.stderr.contains(part), "{argument:?}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(foreign.join("thesis.txt")).unwrap(), "important");
    server.stop();
}

#[test]
fn stores_that_are_not_cached_are_named_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    let launch = Launch::of(format_args!("dir:{}", dir.path().join("data").display()));
    let weak = "--mount=w=http://127.0.0.1:1/?versions=last-modified";
    let server = launch.arg(argument(&dir.path().join("cache"), "256MiB")).arg(weak).start();
    server.wait_for_log("the disk cache is not used for any store");
    let log = server.log();
    assert_eq!(log.matches("its versions are weak").count(), 1, "{log}");
    assert_eq!(log.matches("its files are on this machine").count(), 1, "{log}");
    server.stop();
}
