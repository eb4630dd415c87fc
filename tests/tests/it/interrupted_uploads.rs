//! Uploads in parts over S3 that a kill or a full disk interrupts: the key has its old value or all parts, and the upload can
//! be completed.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    eventually::eventually,
    generated::Generated,
    server::{Launch, Server, zarrd_with},
    skip::note,
    store_files::value_files,
};

/// The sizes of the parts: the value is large enough to be joined, and the last part is in the index.
const SIZES: [u64; 4] = [6 << 20, 6 << 20, 6 << 20, 100];

/// A server, and the address of its listener for S3.
struct Site {
    server: Server,
    s3: SocketAddr,
    client: reqwest::Client,
}

/// An upload with all of its parts.
struct Uploaded {
    id: String,
    completion: String,
    value: Bytes,
}

impl Site {
    fn start(launch: &Launch) -> Self {
        let mut server = launch.start();
        let s3 = server.next_address();
        Self { server, s3, client: reqwest::Client::new() }
    }

    async fn send(&self, method: Method, target: &str, body: impl Into<reqwest::Body>) -> (StatusCode, String, String) {
        let url = format!("http://{}{target}", self.s3);
        let answer = self.client.request(method, url).body(body).send().await.unwrap();
        let tag = answer.headers().get("etag").map_or("", |tag| tag.to_str().unwrap()).to_owned();
        (answer.status(), tag, answer.text().await.unwrap())
    }

    /// Uploads the parts of the value with a number.
    async fn upload(&self, number: u64) -> Uploaded {
        let (_, _, begun) = self.send(Method::POST, "/lab/a?uploads", "").await;
        let id = between(&begun, "<UploadId>", "</UploadId>").to_owned();
        let (mut completion, mut value) = (String::from("<CompleteMultipartUpload>"), Vec::new());
        for (part, size) in (1..).zip(SIZES) {
            let bytes = Generated::new(number * 10 + part, size).bytes();
            value.extend_from_slice(&bytes);
            let target = format!("/lab/a?partNumber={part}&uploadId={id}");
            let (status, tag, answer) = self.send(Method::PUT, &target, bytes).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            completion.push_str(&format!("<Part><PartNumber>{part}</PartNumber><ETag>{tag}</ETag></Part>"));
        }
        completion.push_str("</CompleteMultipartUpload>");
        Uploaded { id, completion, value: value.into() }
    }

    /// Completes an upload, and returns the tag of its value.
    async fn complete(&self, upload: &Uploaded) -> String {
        let target = format!("/lab/a?uploadId={}", upload.id);
        let (status, _, answer) = self.send(Method::POST, &target, upload.completion.clone()).await;
        assert!(status == StatusCode::OK && answer.contains("<ETag>"), "{answer}");
        between(&answer, "<ETag>", "</ETag>").to_owned()
    }

    async fn value(&self) -> Vec<u8> {
        let (status, value) = self.server.answer("/store/lab/a").await;
        assert_eq!(status, StatusCode::OK);
        value
    }
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let found = text.split_once(from).and_then(|(_, rest)| rest.split_once(to));
    found.unwrap_or_else(|| panic!("no {from} in {text}")).0
}

fn launch(store: &str) -> Launch {
    Launch::of(store).arg("--s3-listen").arg("127.0.0.1:0")
}

async fn kills(index: &str, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("store");
    let store = format!("{index}:{}", dir.display());
    let launch = launch(&store);
    let mut site = Site::start(&launch);
    let mut before = site.upload(0).await;
    let started = std::time::Instant::now();
    site.complete(&before).await;
    let duration = started.elapsed();
    let (mut went_on, mut completed) = (0, 0);
    for round in 1..=rounds {
        let upload = site.upload(round).await;
        assert!(site.value().await == before.value);
        let request = {
            let (client, body) = (site.client.clone(), upload.completion.clone());
            let url = format!("http://{}/lab/a?uploadId={}", site.s3, upload.id);
            async move { client.post(url).body(body).send().await?.text().await }
        };
        // Before the first request and after the last answer, whatever the machine does.
        let answer = if round == 1 {
            site.server.kill();
            request.await
        } else if round == rounds {
            let answer = request.await;
            site.server.kill();
            answer
        } else {
            let request = tokio::spawn(request);
            tokio::time::sleep(duration.mul_f64((round - 1) as f64 / rounds as f64)).await;
            site.server.kill();
            request.await.unwrap()
        };
        let is_answered = answer.is_ok_and(|answer| answer.contains("<ETag>"));
        site = Site::start(&launch);
        let found = site.value().await;
        let is_completed = found == upload.value;
        assert!(is_completed || !is_answered && found == before.value, "{} bytes in round {round}", found.len());
        if is_completed {
            completed += 1;
        } else {
            went_on += 1;
        }
        // Whichever it was, completing it again has one result.
        let tag = site.complete(&upload).await;
        assert!(site.value().await == upload.value);
        assert_eq!(site.complete(&upload).await, tag);
        before = upload;
        eventually("one value, and no part", Duration::from_secs(20), async || value_files(&dir) == 1).await;
    }
    site.server.stop();
    note(format_args!("{index}: {went_on} uploads went on, {completed} were completed"));
    assert!(went_on > 0 && completed > 0, "{went_on} went on, {completed} were completed");
    assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_leaves_the_upload_or_its_value_with_sled() {
    kills("sled", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_leaves_the_upload_or_its_value_with_redb() {
    kills("redb", 5).await;
}

#[tokio::test]
async fn full_disk_does_not_keep_a_large_upload_from_being_completed() {
    for index in ["sled", "redb"] {
        let Some(disk) = SmallDisk::mount(FileSystem::Ext4, 96) else { return };
        let store = format!("{index}:{}", disk.store().display());
        let site = Site::start(&launch(&store));
        let upload = site.upload(1).await;
        // Less than the value, as parts need.
        disk.fill(8 << 20);
        let target = format!("/lab/a?partNumber=5&uploadId={}", upload.id);
        let (status, _, answer) = site.send(Method::PUT, &target, vec![1; 18 << 20]).await;
        assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE, "{answer}");
        let tag = site.complete(&upload).await;
        assert!(site.value().await == upload.value);
        assert_eq!(site.complete(&upload).await, tag);
        disk.remove_filler();
        eventually("one value, and no part", Duration::from_secs(20), async || value_files(&disk.store()) == 1).await;
        site.server.stop();
        assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
    }
}
