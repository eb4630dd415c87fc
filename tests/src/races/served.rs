//! The servers that rounds race against: the program, two engines over one store in this process, or two processes over one
//! bucket.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use http::Method;
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};
use zarrd_server::{AccessPolicy, App, Right, Settings, serve};
use zarrd_store::{Change, ChangeOutcome, StoreError, StoreWrapper, TransactionalStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};

use super::{Ending, Plan, client::ServerClient};
use crate::{
    bucket::S3,
    server::{Launch, Server},
    written_bucket::{Losses, WrittenBucket},
};

/// The engines that the requests of a round go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engines {
    /// One, of the program.
    Program,
    /// Two over one store, in turns, as of two servers over a database.
    Two(Checks),
    /// Two processes over one bucket, in turns.
    Bucket(BucketOf),
}

/// The server of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketOf {
    /// The S3 of another zarrd.
    Zarrd,
    /// The tests, with a latency.
    Tests,
    /// The same, which loses some requests and some answers.
    TestsWithLosses,
}

/// The checks of unfinished operations that two engines make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// All.
    All,
    /// Not that the other engine's operations exclude a commit: a control.
    NoneOfOthers,
}

/// Running servers.
pub(super) enum Served {
    Program { launch: Launch, server: Server },
    Two(TwoEngines),
    Bucket(TwoProcesses),
}

/// Two servers over one bucket.
pub(super) struct TwoProcesses {
    servers: [Server; 2],
    bucket: RunningBucket,
}

enum RunningBucket {
    Zarrd(Server),
    Tests(WrittenBucket),
}

/// Two servers of this process over one store.
pub(super) struct TwoEngines {
    urls: Vec<String>,
    stops: Vec<oneshot::Sender<()>>,
    serving: JoinSet<()>,
    store: LocalStore,
}

/// The store as an engine has it.
struct EngineStore {
    store: LocalStore,
    checks: Checks,
}

#[async_trait]
impl StoreWrapper for EngineStore {
    type Inner = LocalStore;

    fn inner(&self) -> &LocalStore {
        &self.store
    }

    async fn commit(&self, mut changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        if self.checks == Checks::NoneOfOthers {
            changes.retain(|change| !matches!(change, Change::CheckNoIntent { .. }));
        }
        self.store.commit(changes).await
    }
}

impl Served {
    /// Starts the servers of a plan over a store in `dir`, which is `store` for the program.
    pub(super) async fn start(plan: &Plan, store: &str, dir: &Path) -> Self {
        match plan.engines {
            Engines::Program => {
                let launch = Launch::of(store);
                let server = launch.start();
                Self::Program { launch, server }
            }
            Engines::Two(checks) => {
                assert_eq!(plan.end, Ending::Alive, "two engines in this process cannot be killed");
                Self::Two(TwoEngines::start(&plan.index, checks, dir).await)
            }
            Engines::Bucket(bucket) => {
                assert_eq!(plan.end, Ending::Alive, "servers over a bucket are not killed");
                Self::Bucket(TwoProcesses::start(bucket, store, plan.seed).await)
            }
        }
    }

    /// A client that sends its requests to all engines in turns.
    pub(super) fn client(&self) -> ServerClient {
        match self {
            Self::Program { server, .. } => ServerClient::of(vec![server.url("")]),
            Self::Two(engines) => ServerClient::of(engines.urls.clone()),
            Self::Bucket(running) => {
                let urls = running.servers.iter().map(|server| server.url(""));
                ServerClient::of(urls.collect()).with_current_reads()
            }
        }
    }

    /// Kills the program.
    pub(super) fn kill(self) -> Option<Launch> {
        match self {
            Self::Program { launch, server } => {
                server.kill();
                Some(launch)
            }
            Self::Two(_) | Self::Bucket(_) => None,
        }
    }

    /// Stops all, and closes the store.
    pub(super) async fn stop(self) {
        match self {
            Self::Program { server, .. } => server.stop(),
            Self::Two(engines) => engines.stop().await,
            Self::Bucket(TwoProcesses { servers, bucket }) => {
                servers.into_iter().for_each(Server::stop);
                match bucket {
                    RunningBucket::Zarrd(server) => server.stop(),
                    RunningBucket::Tests(bucket) => drop(bucket),
                }
            }
        }
    }

    /// Frees what the servers recorded of rounds that ended.
    pub(super) fn discard_records(&self) {
        if let Self::Bucket(TwoProcesses { bucket: RunningBucket::Tests(bucket), .. }) = self {
            bucket.discard_records();
        }
    }
}

impl TwoProcesses {
    /// Starts two servers over a bucket, which is in `store` if it is of a zarrd.
    async fn start(bucket: BucketOf, store: &str, seed: u64) -> Self {
        let (bucket, url, s3) = match bucket {
            BucketOf::Zarrd => {
                let mut server = Launch::of(store).arg("--s3-listen").arg("127.0.0.1:0").start();
                let endpoint = format!("http://{}", server.next_address());
                server.request(Method::PUT, "/store/bucket/made").body("a bucket").send().await.expect("an answer");
                let [access_key, secret] = ["zarrd", "zarrd"].map(str::to_owned);
                (RunningBucket::Zarrd(server), "s3://bucket/races", S3 { endpoint, access_key, secret })
            }
            BucketOf::Tests | BucketOf::TestsWithLosses => {
                let losses = match bucket {
                    BucketOf::TestsWithLosses => Losses::Some { seed },
                    _ => Losses::None,
                };
                let started = WrittenBucket::start(losses).await;
                let s3 = started.s3();
                (RunningBucket::Tests(started), "s3://b/races", s3)
            }
        };
        let launch = s3.launch(&format!("{url}?writes=yes"));
        Self { servers: [launch.start(), launch.start()], bucket }
    }
}

impl TwoEngines {
    async fn start(index: &str, checks: Checks, dir: &Path) -> Self {
        let index = if index == "redb" { IndexKind::Redb } else { IndexKind::Sled };
        let store = LocalStore::open(dir, Options::new(index)).await.expect("the store opens");
        let mut engines = Self { urls: Vec::new(), stops: Vec::new(), serving: JoinSet::new(), store };
        for _ in 0..2 {
            let own = EngineStore { store: engines.store.clone(), checks };
            let settings = Settings { access: AccessPolicy::anonymous(Right::Write), ..Settings::default() };
            let app = App::new(Arc::new(own), settings);
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            engines.urls.push(format!("http://{}", listener.local_addr().expect("an address")));
            let (stop, stopped) = oneshot::channel();
            engines.stops.push(stop);
            engines.serving.spawn(async move {
                serve(listener, app, async { drop(stopped.await) }).await.expect("it serves until it is stopped");
            });
        }
        engines
    }

    async fn stop(self) {
        let Self { stops, mut serving, store, .. } = self;
        drop(stops);
        while let Some(ended) = serving.join_next().await {
            ended.expect("a server does not panic");
        }
        store.close().await.expect("the store closes");
    }
}
