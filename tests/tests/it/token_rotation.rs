//! Keys and tokens change while clients keep two servers of one access directory busy.
//!
//! Each client notes every answer to its token, and the notes are judged at the end, when the whole life of the token
//! is known: from the moment at which the command that made it had finished to the moments at which the one that ended
//! it began and had finished. Servers have a second to notice either.

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use zarrd_tests::{
    server::{Launch, Server, program},
    skip::note,
};

/// The key that all clients read.
const KEY: &str = "/store/lab/k";

/// The number of requests that each client has to send between two changes.
const REQUESTS: usize = 40;

/// The time between two changes: longer than servers read a changed directory again and again.
const PAUSE: Duration = Duration::from_millis(3500);

/// An answer to a client.
struct Answer {
    server: usize,
    /// The time before the request.
    began: Instant,
    /// The time after the response.
    ended: Instant,
    is_accepted: bool,
}

/// A token, and a client that uses it all the time.
struct Holder {
    id: String,
    key: u32,
    /// The time at which the token had been made.
    made: Instant,
    /// The times at which the command that ended it began and had finished.
    end: Option<(Instant, Instant)>,
    sent: Arc<AtomicUsize>,
    answers: JoinHandle<Vec<Answer>>,
}

/// Answers to the tokens of one key with the same end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    accepted: usize,
    /// Refused within a second after the token was made, by a server that had not accepted it yet.
    refused_early: usize,
    /// Refused at the token's end or later.
    refused: usize,
    wrongly_accepted: usize,
    wrongly_refused: usize,
}

/// Seconds as the machine lives through them: a hundred times that a thread sleeps for 10 ms. If it is too busy to let
/// threads run, it has no time for a server to notice anything either.
struct Heartbeat {
    beats: Arc<Mutex<Vec<Instant>>>,
    is_over: Arc<AtomicBool>,
}

/// Two servers of one directory, and clients of both.
struct Site {
    servers: [Server; 2],
    urls: [String; 2],
    access: TempDir,
    /// The token of an administrator.
    admin: String,
    heartbeat: Heartbeat,
    holders: Vec<Holder>,
    is_over: Arc<AtomicBool>,
}

impl Heartbeat {
    fn start() -> Self {
        let (beats, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let heartbeat = Self { beats: beats.clone(), is_over: is_over.clone() };
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
                beats.lock().unwrap().push(Instant::now());
            }
        });
        heartbeat
    }

    /// True if one time is more than a second after another.
    fn is_late(&self, since: Instant, time: Instant) -> bool {
        let beats = self.beats.lock().unwrap();
        let next = beats.partition_point(|beat| *beat <= since);
        beats.get(next + 100).is_some_and(|second| *second < time)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Site {
    async fn start() -> Self {
        let access = tempfile::tempdir().unwrap();
        let launch = Launch::of("memory:").arg("--anonymous").arg("none").arg("--access").arg(access.path());
        let servers = [launch.start(), launch.start()];
        let urls = [servers[0].url(KEY), servers[1].url(KEY)];
        let admin = std::fs::read_to_string(access.path().join("admin-token")).unwrap().trim().to_owned();
        let heartbeat = Heartbeat::start();
        let site = Self { servers, urls, access, admin, heartbeat, holders: Vec::new(), is_over: Arc::default() };
        for server in &site.servers {
            let put = server.request(Method::PUT, KEY).bearer_auth(&site.admin).body("1");
            assert_eq!(put.send().await.unwrap().status(), StatusCode::CREATED);
        }
        site
    }

    /// Makes the token of an administrator with the current key.
    fn renew_admin(&mut self) {
        let create = ["create", "--name", "admin", "--allow", "admin:/"];
        self.admin = token_command(self.access.path(), &create).trim().to_owned();
    }

    /// Makes a token with the command, and lets a client use it at once.
    fn make(&mut self) {
        let create = ["create", "--name", "t", "--allow", "read:lab/", "--json"];
        let created: Value = serde_json::from_str(&token_command(self.access.path(), &create)).unwrap();
        self.hold(&created);
    }

    /// Makes a token with one of the servers.
    async fn make_with(&mut self, server: usize) {
        let new = json!({"name": "t", "allow": ["read:lab/"]});
        let post = self.servers[server].request(Method::POST, "/token").bearer_auth(&self.admin).json(&new);
        let created = post.send().await.unwrap();
        assert_eq!(created.status(), StatusCode::CREATED);
        self.hold(&created.json().await.unwrap());
    }

    fn hold(&mut self, created: &Value) {
        let made = Instant::now();
        let (id, token) = (created["id"].as_str().unwrap().to_owned(), created["token"].as_str().unwrap().to_owned());
        let key = token.split('_').nth(1).unwrap().parse().unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let answers = tokio::spawn(use_token(self.urls.clone(), token, sent.clone(), self.is_over.clone()));
        self.holders.push(Holder { id, key, made, end: None, sent, answers });
    }

    fn rotate(&self) -> u32 {
        let rotated: Value = serde_json::from_str(&token_command(self.access.path(), &["rotate", "--json"])).unwrap();
        u32::try_from(rotated["key"].as_u64().unwrap()).unwrap()
    }

    fn drop_key(&mut self, key: u32) {
        let began = Instant::now();
        token_command(self.access.path(), &["rotate", "--drop", &key.to_string()]);
        let end = Some((began, Instant::now()));
        self.holders.iter_mut().filter(|holder| holder.key == key).for_each(|holder| holder.end = end);
    }

    /// Revokes the first token of a key.
    fn revoke_one(&mut self, key: u32) {
        let holder = self.holders.iter_mut().find(|holder| holder.key == key).unwrap();
        let began = Instant::now();
        token_command(self.access.path(), &["revoke", &holder.id]);
        holder.end = Some((began, Instant::now()));
    }

    /// Waits until time has passed and every client has sent more requests.
    async fn let_clients_run(&self, pause: Duration) {
        let before: Vec<_> = self.holders.iter().map(|holder| holder.sent.load(Ordering::Relaxed)).collect();
        let started = Instant::now();
        let is_done = || {
            let sent = self.holders.iter().zip(&before);
            started.elapsed() >= pause
                && sent.into_iter().all(|(holder, before)| holder.sent.load(Ordering::Relaxed) >= before + REQUESTS)
        };
        while !is_done() {
            assert!(started.elapsed() < pause + Duration::from_secs(30), "the clients are stuck");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the clients; returns the counts of each key and end.
    async fn judge(self) -> BTreeMap<(u32, &'static str), Counts> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut counts = BTreeMap::<_, Counts>::new();
        for holder in self.holders {
            let answers = holder.answers.await.unwrap();
            let end = if holder.end.is_some() { "ended" } else { "kept" };
            counts.entry((holder.key, end)).or_default().add(&answers, holder.made, holder.end, &self.heartbeat);
        }
        counts
    }
}

impl Counts {
    /// Counts the answers to one token, in the order in which they came.
    fn add(&mut self, answers: &[Answer], made: Instant, end: Option<(Instant, Instant)>, heartbeat: &Heartbeat) {
        let (mut is_known, mut is_gone) = ([false; 2], [false; 2]);
        for answer in answers {
            let server = answer.server;
            let is_ending = end.is_some_and(|(began, _)| answer.ended >= began);
            let is_over = is_gone[server] || end.is_some_and(|(_, ended)| heartbeat.is_late(ended, answer.began));
            let is_new = !is_known[server] && !heartbeat.is_late(made, answer.began);
            let count = match answer.is_accepted {
                true if is_over => &mut self.wrongly_accepted,
                true => &mut self.accepted,
                false if is_ending => &mut self.refused,
                false if is_new => &mut self.refused_early,
                false => &mut self.wrongly_refused,
            };
            *count += 1;
            is_known[server] |= answer.is_accepted;
            is_gone[server] |= !answer.is_accepted && is_ending;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, refused_early, refused, wrongly_accepted, wrongly_refused } = self;
        write!(f, "{accepted} accepted and {wrongly_accepted} wrongly, ")?;
        write!(f, "{refused} refused, {refused_early} before they were known and {wrongly_refused} wrongly")
    }
}

/// Sends requests to both servers in turn until it is over.
async fn use_token(urls: [String; 2], token: String, sent: Arc<AtomicUsize>, is_over: Arc<AtomicBool>) -> Vec<Answer> {
    let (client, mut answers) = (Client::new(), Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        for (server, url) in urls.iter().enumerate() {
            let began = Instant::now();
            let response = client.get(url).bearer_auth(&token).send().await.unwrap();
            let is_accepted = match response.status() {
                StatusCode::OK => true,
                StatusCode::UNAUTHORIZED => false,
                status => panic!("{status}: {}", response.text().await.unwrap()),
            };
            answers.push(Answer { server, began, ended: Instant::now(), is_accepted });
            // The connection can be used again once the body was read.
            response.bytes().await.unwrap();
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
    answers
}

/// Runs `zarrd token`; returns its output.
fn token_command(access: &Path, arguments: &[&str]) -> String {
    let output = program().arg("token").args(arguments).arg("--access").arg(access).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_under_load_refuses_no_valid_token_and_accepts_no_other() {
    let mut site = Site::start().await;
    (0..4).for_each(|_| site.make());
    site.let_clients_run(Duration::ZERO).await;
    for key in 2..=4 {
        assert_eq!(site.rotate(), key);
        site.make();
        // A server makes tokens with the new key even if it has not noticed it yet.
        site.make_with(key as usize % 2).await;
        site.let_clients_run(Duration::ZERO).await;
    }
    site.renew_admin();
    site.drop_key(1);
    site.let_clients_run(PAUSE).await;
    site.revoke_one(2);
    assert_eq!(site.rotate(), 5);
    site.make();
    site.make_with(0).await;
    site.let_clients_run(PAUSE).await;
    site.drop_key(3);
    site.let_clients_run(PAUSE).await;

    let counts = site.judge().await;
    counts.iter().for_each(|((key, end), counts)| note(format_args!("key {key}, {end}: {counts}")));
    let classes: Vec<_> = counts.keys().copied().collect();
    assert_eq!(classes, [(1, "ended"), (2, "ended"), (2, "kept"), (3, "ended"), (4, "kept"), (5, "kept")]);
    for ((key, end), counts) in &counts {
        assert_eq!((counts.wrongly_accepted, counts.wrongly_refused), (0, 0), "key {key}, {end}: {counts}");
        assert!(counts.accepted > 0 && (counts.refused > 0) == (*end == "ended"), "key {key}, {end}: {counts}");
    }
}
