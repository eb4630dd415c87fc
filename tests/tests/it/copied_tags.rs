//! Entity tags of copied stores: no tag that one of them gave answers for other bytes of another.

use std::{collections::HashMap, path::Path, process::Command};

use http::{Method, StatusCode};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zarrd_tests::{
    generated::Generated,
    server::{Launch, Server, zarrd_with},
};

const KEYS: u64 = 20;

/// The number of conditional requests, unless `ZARRD_TAG_TRIES` says another one.
const TRIES: usize = 1_000;

/// Servers of copies of one store, what each has, and every entity tag that any of them has given.
struct Copies {
    servers: Vec<Server>,
    /// The number of the value of each key, by server. A number determines the bytes.
    current: Vec<HashMap<u64, u64>>,
    /// What a tag of a key stands for.
    given: HashMap<(u64, String), u64>,
    next: u64,
}

impl Copies {
    /// The bytes of a value: every other one is small enough for the log, the others have a file.
    fn bytes(number: u64) -> Vec<u8> {
        Generated::new(number, if number.is_multiple_of(2) { 500 } else { 40_000 }).bytes().to_vec()
    }

    fn path(key: u64) -> String {
        format!("/store/key/{key}")
    }

    /// Notes that a server gave a tag for a value: the tag must not stand for another one.
    fn given(&mut self, key: u64, tag: String, number: u64) {
        let before = *self.given.entry((key, tag.clone())).or_insert(number);
        assert_eq!(before, number, "the tag {tag} of {key} stands for two values");
    }

    async fn set(&mut self, server: usize, key: u64, condition: Option<&str>) -> StatusCode {
        let number = self.next;
        self.next += 1;
        let mut request = self.servers[server].request(Method::PUT, &Self::path(key)).body(Self::bytes(number));
        if let Some(tag) = condition {
            request = request.header("if-match", tag);
        }
        let answer = request.send().await.unwrap();
        if answer.status().is_success() {
            let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
            self.given(key, tag, number);
            self.current[server].insert(key, number);
        }
        answer.status()
    }

    /// Reads every key of every server.
    async fn compare(&mut self) {
        for server in 0..self.servers.len() {
            for key in 0..KEYS {
                let answer = self.servers[server].get(&Self::path(key)).await;
                let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
                let number = self.current[server][&key];
                assert!(answer.bytes().await.unwrap() == Self::bytes(number), "{key} of server {server}");
                self.given(key, tag, number);
            }
        }
    }

    /// Sends a request on the condition of a tag; whether the server took it for the tag of what it has.
    async fn is_taken(&mut self, server: usize, key: u64, tag: &str, kind: usize) -> bool {
        let request = |method| self.servers[server].request(method, &Self::path(key));
        match kind {
            0 => {
                let answer = request(Method::GET).header("if-none-match", tag).send().await.unwrap();
                answer.status() == StatusCode::NOT_MODIFIED
            }
            1 => {
                let request = request(Method::GET).header("range", "bytes=100-199").header("if-range", tag);
                let answer = request.send().await.unwrap();
                assert!(answer.status().is_success(), "{}", answer.status());
                answer.status() == StatusCode::PARTIAL_CONTENT
            }
            _ => match self.set(server, key, Some(tag)).await {
                StatusCode::PRECONDITION_FAILED => false,
                status => {
                    assert!(status.is_success(), "{status}");
                    true
                }
            },
        }
    }
}

/// Servers of a store, of a copy of its directory, and of two stores restored from its backup.
async fn copies(dir: &Path) -> Copies {
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let mut copies = Copies {
        servers: vec![Launch::of(format_args!("sled:{}", path("original"))).start()],
        current: vec![HashMap::new()],
        given: HashMap::new(),
        next: 0,
    };
    for _ in 0..3 {
        for key in 0..KEYS {
            assert!(copies.set(0, key, None).await.is_success());
        }
    }
    let url = copies.servers[0].url("");
    let taken = zarrd_with(["backup", &path("backup"), "--server", &url]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    copies.servers.remove(0).stop();
    let copied = Command::new("cp").arg("-a").arg(path("original")).arg(path("copy")).status().unwrap();
    assert!(copied.success());
    for (kind, name) in [("redb", "restored"), ("sled", "restored-again")] {
        let restored = zarrd_with(["restore", &path("backup"), &format!("{kind}:{}", path(name)), "--without-access"]);
        assert_eq!(restored.code, Some(0), "{restored:?}");
    }
    let stores = [("sled", "original"), ("sled", "copy"), ("redb", "restored"), ("sled", "restored-again")];
    copies.servers = stores.map(|(kind, name)| Launch::of(format_args!("{kind}:{}", path(name))).start()).into();
    copies.current = vec![copies.current[0].clone(); stores.len()];
    copies
}

#[tokio::test]
async fn tags_of_copied_stores_never_answer_for_other_bytes() {
    let tries = std::env::var("ZARRD_TAG_TRIES").map_or(TRIES, |tries| tries.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut copies = copies(dir.path()).await;
    copies.compare().await;
    // The same writes on each, as far as keys go, so that counters that were copied would give the same versions.
    for _ in 0..3 {
        for key in 0..KEYS {
            for server in 0..copies.servers.len() {
                assert!(copies.set(server, key, None).await.is_success());
            }
        }
    }
    let mut random = SmallRng::seed_from_u64(34);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..tries {
        let server = random.random_range(0..copies.servers.len());
        let key = random.random_range(0..KEYS);
        // Every other tag is one of the value that the server has.
        let current = copies.current[server][&key];
        let mut tags: Vec<_> = copies.given.iter().filter(|((of, _), _)| *of == key).collect();
        if random.random() {
            tags.retain(|(_, number)| **number == current);
        }
        tags.sort();
        let ((_, tag), number) = tags[random.random_range(0..tags.len())];
        let (tag, number) = (tag.clone(), *number);
        let is_taken = copies.is_taken(server, key, &tag, random.random_range(0..3)).await;
        assert_eq!(is_taken, number == current, "the tag {tag} of {number} at server {server}, which had {current}");
        *if is_taken { &mut taken } else { &mut refused } += 1;
    }
    copies.compare().await;
    assert!(taken > tries / 4 && refused > tries / 4, "{taken} taken, {refused} refused");
}
