//! Credentials in the wrong place: no log has them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod common;

use std::{
    fs,
    sync::{Arc, LazyLock},
    time::SystemTime,
};

use common::{RunningServer, traced::TRACED};
use proptest::{prelude::*, test_runner::TestCaseError};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync,
};
use tracing_subscriber::filter::LevelFilter;
use zarrd_access::{AccessDirectory, Grants, NewLink, NewToken};
use zarrd_server::{
    AccessLog, AccessPolicy, AnonymousAccess, AuditLog, LogOutput, MetricsAccess, RequestLogOptions, RequestLogs,
    Settings,
};
use zarrd_store::{MemoryStore, Prefix};

/// Traces what the server logs, once for the process.
static TRACING: LazyLock<()> = LazyLock::new(|| {
    let server = tracing_subscriber::filter::Targets::new().with_target("zarrd_server", LevelFilter::TRACE);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| &TRACED);
    let subscriber = tracing_subscriber::layer::SubscriberExt::with(tracing_subscriber::registry(), server);
    let subscriber = tracing_subscriber::layer::SubscriberExt::with(subscriber, lines);
    tracing::subscriber::set_global_default(subscriber).unwrap();
});

/// One server at a time is traced.
static TURN: sync::Mutex<()> = sync::Mutex::const_new(());

/// A server with a token and a share link, which logs everything.
struct LoggedServer {
    _turn: sync::MutexGuard<'static, ()>,
    server: RunningServer,
    logs: RequestLogs,
    dir: TempDir,
    secrets: [String; 2],
}

impl LoggedServer {
    async fn start() -> Self {
        let turn = TURN.lock().await;
        LazyLock::force(&TRACING);
        TRACED.take();
        let dir = TempDir::new().unwrap();
        let access = AccessDirectory::open(dir.path().join("access")).unwrap();
        let grants: Grants = "write:/".parse::<zarrd_access::Grant>().unwrap().into();
        // Requests reach the handlers, whose problems name keys.
        let anonymous = AnonymousAccess::Granted(grants.clone());
        let token = NewToken { name: "ann".to_owned(), grants, expires: None, maker: None };
        let expires = SystemTime::now() + std::time::Duration::from_secs(3_600);
        let link = NewLink { name: String::new(), prefix: Prefix::parse("lab/").unwrap(), expires, maker: None };
        let secrets = [access.create(token).unwrap().1, access.create_link(link).unwrap().1];
        let secrets = secrets.map(|secret| secret.expose().to_owned());
        let options = RequestLogOptions {
            access: AccessLog::All,
            access_output: LogOutput::File(dir.path().join("access.log")),
            audit: AuditLog::On,
            audit_output: LogOutput::File(dir.path().join("audit.log")),
        };
        let logs = RequestLogs::open(&options).unwrap();
        let access = AccessPolicy { anonymous, directory: Arc::new(access).into(), metrics: MetricsAccess::Readers };
        let settings = Settings { access, ..Settings::default() };
        let server = RunningServer::with_logs(Arc::new(MemoryStore::new()), settings, logs.clone()).await;
        Self { _turn: turn, server, logs, dir, secrets }
    }

    /// Sends a request head, and waits until the server closes the connection.
    async fn send(&self, head: &[u8]) {
        let mut raw = self.server.connect().await.0;
        raw.write_all(head).await.unwrap();
        let mut answer = Vec::new();
        // A connection that the server resets is closed as well.
        let _ = raw.read_to_end(&mut answer).await;
    }

    /// Stops the server, and returns the access log, the audit log, and what was traced.
    async fn stop(self) -> [String; 3] {
        let Self { mut server, logs, dir, _turn, .. } = self;
        server.stop();
        server.stopped().await.unwrap();
        logs.close();
        let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
        [read("access.log"), read("audit.log"), TRACED.take()]
    }
}

/// Decodes a text until nothing is left to decode.
fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let next = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if next == text {
            return text.to_ascii_lowercase();
        }
        text = next;
    }
}

/// Spells each character as it is, in upper case, or percent-encoded once or twice.
fn spelled(text: &str, spellings: &[u8]) -> String {
    let spell = |(character, spelling): (char, &u8)| match spelling {
        0..=7 => character.to_string(),
        8 => character.to_ascii_uppercase().to_string(),
        9 => format!("%{:02x}", u32::from(character)),
        _ => format!("%25{:02X}", u32::from(character)),
    };
    text.chars().zip(spellings.iter().cycle()).map(spell).collect()
}

/// Heads of requests, in which `SECRET` is a credential.
const HEADS: &[&str] = &[
    "GET /s/SECRET/store/lab/ HTTP/1.1\r\n",
    "GET /s/SECRET HTTP/1.1\r\n",
    "DELETE /s//SECRET/store/lab/ HTTP/1.1\r\n",
    "GET /s/./SECRET/store/lab/ HTTP/1.1\r\n",
    "DELETE /zarrd/s/SECRET/store/lab/ HTTP/1.1\r\n",
    "GET /./s/SECRET/store/lab/ HTTP/1.1\r\n",
    "GET /s%2FSECRET/store/lab/ HTTP/1.1\r\n",
    "GET /s;/SECRET/store/lab/ HTTP/1.1\r\n",
    "GET /SECRET/store/ HTTP/1.1\r\n",
    "GET //SECRET HTTP/1.1\r\n",
    "GET http://user:SECRET@localhost/store/a HTTP/1.1\r\n",
    "GET /store/SECRET HTTP/1.1\r\n",
    "PUT /store/lab/SECRET HTTP/1.1\r\nContent-Length: 0\r\n",
    "GET /store/a/SECRET%00 HTTP/1.1\r\n",
    "GET /array/SECRET?select=0 HTTP/1.1\r\n",
    "PUT /node/SECRET HTTP/1.1\r\nContent-Length: 0\r\n",
    "POST /node/a?convert&into=v3&target=SECRET HTTP/1.1\r\nContent-Length: 0\r\n",
    "DELETE /token/SECRET HTTP/1.1\r\n",
    "GET /store/?list=SECRET HTTP/1.1\r\n",
    "GET /store/?cursor=SECRET HTTP/1.1\r\n",
    "GET /store/?x=SECRET&y HTTP/1.1\r\n",
    "GET /store/?SECRET HTTP/1.1\r\n",
    "GET /store/a?token=SECRET HTTP/1.1\r\n",
    "GET /store/a HTTP/1.1\r\nUser-Agent: curl SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nX-Request-Id: SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nReferer: http://localhost/s/SECRET/\r\n",
    "GET /store/a HTTP/1.1\r\nHost: SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nOrigin: SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nRange: SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nAuthorization: Digest SECRET\r\n",
    "GET /store/a HTTP/1.1\r\nForwarded: for=SECRET\r\n",
    "GET /store/a b/SECRET HTTP/1.1\r\n",
    "GET /store/a SECRET\r\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn no_log_has_a_credential(
        heads in prop::collection::vec((prop::sample::select(HEADS), any::<bool>(), 0_usize..40), 12),
        spellings in prop::collection::vec(0_u8..11, 1..60),
        are_plain: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let logged = LoggedServer::start().await;
            let secrets = logged.secrets.clone();
            for (head, is_link, missing) in &heads {
                let secret = &secrets[usize::from(*is_link)];
                // A part of the MAC may be missing.
                let secret = secret.get(..secret.len() - missing / 2).unwrap();
                let secret = if are_plain { secret.to_owned() } else { spelled(secret, &spellings) };
                let head = head.replace("SECRET", &secret);
                let host = if head.contains("\r\nHost:") { "" } else { "Host: localhost\r\n" };
                logged.send(format!("{head}{host}Connection: close\r\n\r\n").as_bytes()).await;
            }
            let texts = logged.stop().await;
            prop_assert_eq!(texts[0].lines().count(), heads.len());
            prop_assert!(texts[2].lines().count() >= heads.len());
            for text in &texts {
                let text = decoded(text);
                for secret in &secrets {
                    let start_of_mac = secret.get(secret.len() - 64..secret.len() - 44).unwrap();
                    prop_assert!(!text.contains(start_of_mac), "{} in {}", start_of_mac, text);
                }
            }
            Ok::<_, TestCaseError>(())
        })?;
    }
}

#[tokio::test]
async fn what_surrounds_a_credential_stays() {
    let logged = LoggedServer::start().await;
    let link = logged.secrets[1].clone();
    for target in [format!("/s//{link}/store/lab/"), format!("/zarrd/s/{link}/a%20b?list={link}&x=1")] {
        logged.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes()).await;
    }
    let [access, _, traced] = logged.stop().await;
    for text in [
        r#""path":"/s//\u2026/store/lab/","query":null"#,
        r#""path":"/zarrd/s/\u2026/a%20b","query":"list=\u2026&x=1""#,
    ] {
        assert!(access.contains(text), "{access}");
    }
    assert!(traced.contains("path=/zarrd/s/…/a%20b "), "{traced}");
}

#[tokio::test]
async fn empty_link_is_not_found_and_leads_nowhere() {
    let logged = LoggedServer::start().await;
    let link = &logged.secrets[1];
    for (target, status) in [
        (format!("/s//{link}/store/lab/?list=keys"), 404),
        ("/s//store/lab/?list=keys".to_owned(), 404),
        (format!("/s/{link}/store/lab/?list=keys"), 200),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = logged.server.exchange(&request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {answer}");
    }
    logged.stop().await;
}
