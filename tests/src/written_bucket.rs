//! A bucket that is written: a server that speaks S3, in this process, with its objects in memory under one lock. It takes its
//! time, and loses requests and answers.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::bucket::{ACCESS_KEY, S3, SECRET};
use server::{Fault, Server};

// The server of the tests of `zarrd-store-object`.
#[allow(dead_code, clippy::missing_assert_message, reason = "it has more than is used here")]
#[path = "../../crates/store-object/tests/common/answers.rs"]
mod answers;
#[allow(dead_code, reason = "it has more than is used here")]
#[path = "../../crates/store-object/tests/common/changes.rs"]
mod changes;
#[allow(dead_code, reason = "it has more than is used here")]
#[path = "../../crates/store-object/tests/common/server.rs"]
mod server;

/// The longest time that an answer takes.
const LATENCY: Duration = Duration::from_millis(4);

/// A running server with a bucket called `b`; stopped on drop.
pub struct WrittenBucket(Server);

/// The requests and answers that are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// None.
    None,
    /// One in some, of those that change objects, by this seed.
    Some {
        /// The seed.
        seed: u64,
    },
}

impl WrittenBucket {
    /// Starts a server, whose answers take up to some milliseconds.
    pub async fn start(losses: Losses) -> Self {
        let server = Server::start(answers::Dialect::S3).await;
        let seed = if let Losses::Some { seed } = losses { seed } else { 0 };
        let mut random = SmallRng::seed_from_u64(seed);
        server.on_request(move |request| {
            let changes = request.method == "PUT" || request.method == "DELETE";
            let is_probe = request.path.contains("/.zarrd/");
            match random.random_range(0..30) {
                0 if losses != Losses::None && changes && !is_probe => Some(Fault::Lost),
                1 if losses != Losses::None && changes && !is_probe => Some(Fault::Unanswered),
                2..10 => Some(Fault::Slow(random.random_range(Duration::ZERO..LATENCY))),
                _ => None,
            }
        });
        Self(server)
    }

    /// Its interface, which accepts any key.
    pub fn s3(&self) -> S3 {
        S3 { endpoint: self.0.url(), access_key: ACCESS_KEY.into(), secret: SECRET.into() }
    }

    /// Frees what it recorded of past requests.
    pub fn discard_records(&self) {
        self.0.forget();
        self.0.bucket().history.clear();
    }

    /// The names of its objects.
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }
}
