//! Allocations by requests: their peak and their number. Every operation on arrays of odd shapes, and every kind of
//! body with odd JSON, has a bound in the table `BOUNDS` of its module, of about 1.5 times the measured values.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod bodies;
mod chunks;
#[path = "../common/mod.rs"]
mod common;
mod conversions;
mod counting;
mod patches;
mod reductions;
mod shapes;
mod trees;

use std::fmt::Write as _;

use axum::body::Body;
use common::TestServer;
use counting::{Allocated, counted};
use http::{Method, Request, StatusCode, header::HOST};
use http_body_util::BodyExt;
use tokio::sync::Mutex;
use zarrd_server::{ArrayOptions, Settings};

/// The size, in bytes, from which a body counts as large.
const LARGE: usize = 64 << 10;

/// The number of keys from which there are many.
const MANY: usize = 1000;

/// The most measurements of a case that exceeds its bounds.
///
/// All threads are counted, so a thread that the blocking pool starts for this case, or a flush in the background, adds
/// some kilobytes now and then. What a request itself allocates is in every measurement.
const MEASUREMENTS: usize = 3;

/// The number of chunks that a request decodes at a time.
const PARALLELISM: usize = 4;

/// Allocations of all threads are counted, so the tests run one at a time.
static SERIAL: Mutex<()> = Mutex::const_new(());

/// A bound, about 1.5 times what was measured: the operation, its subject, the status, the peak of allocated bytes, and
/// the number of allocations.
type Bound = (&'static str, &'static str, u16, u64, u64);

/// A measured request.
#[derive(Clone, Debug)]
struct Case {
    /// The operation.
    operation: &'static str,
    /// Its subject.
    of: &'static str,
    /// The existing keys.
    keys: Vec<(String, Vec<u8>)>,
    /// The method.
    method: Method,
    /// The path and query.
    target: String,
    /// The media type of the body.
    media_type: &'static str,
    /// The body.
    body: Vec<u8>,
}

impl Case {
    /// Returns the status and the allocations until the end of the response.
    async fn run(&self) -> (StatusCode, Allocated) {
        let server = TestServer::with(settings());
        for (key, value) in &self.keys {
            let key = zarrd_store::Key::parse(key).unwrap();
            server.store.set(&key, value.clone().into(), zarrd_store::Precondition::none()).await.unwrap();
        }
        let request = Request::builder().method(&self.method).uri(&self.target).header(HOST, "localhost:8000");
        let request = request.header("content-type", self.media_type).body(Body::from(self.body.clone())).unwrap();
        let ask = async {
            let mut answer = server.send_unchecked(request).await;
            while let Some(frame) = answer.body_mut().frame().await {
                drop(frame.unwrap());
            }
            answer.status()
        };
        counted(ask).await
    }

    /// Runs the case, and returns the row of what was measured.
    async fn measure(&self) -> Bound {
        let (status, Allocated { peak, count }) = self.run().await;
        assert!(!status.is_server_error() || status == 501, "{} of {}: {status}", self.operation, self.of);
        (self.operation, self.of, status.as_u16(), peak, count)
    }
}

/// Settings with a fixed number of chunks that a request decodes at a time. By default it grows with the number of
/// cores, and how many of them are in memory at once depends on the load of the machine.
fn settings() -> Settings {
    let arrays = ArrayOptions { parallelism: PARALLELISM, ..ArrayOptions::default() };
    Settings { arrays, ..Settings::default() }
}

/// Returns whether a measured row has the status of its bound and does not exceed it.
fn is_within(&(_, _, status, peak, count): &Bound, bound: Option<&Bound>) -> bool {
    bound.is_some_and(|&(_, _, expected, most, often)| status == expected && peak <= most && count <= often)
}

/// Runs all cases, and fails with a corrected row for each case that exceeds its bounds.
async fn assert_within_limits(cases: impl FnOnce() -> Vec<Case>, bounds: &[Bound]) {
    // Creating the cases allocates as well.
    let _alone = SERIAL.lock().await;
    let cases = cases();
    let number = cases.len();
    let mut beyond = String::new();
    for case in cases {
        // The first request initializes statics; it needs neither a large body nor many keys.
        let body = if case.body.len() > LARGE { b"{}".to_vec() } else { case.body.clone() };
        let keys = case.keys.iter().take(MANY).cloned().collect();
        Case { keys, body, ..case.clone() }.run().await;
        let bound = bounds.iter().find(|bound| (bound.0, bound.1) == (case.operation, case.of));
        let mut row = case.measure().await;
        for _ in 1..MEASUREMENTS {
            // Another status is never noise.
            if is_within(&row, bound) || bound.is_none_or(|bound| bound.2 != row.2) {
                break;
            }
            row = case.measure().await;
        }
        if !is_within(&row, bound) {
            writeln!(beyond, "    {row:?},").unwrap();
        }
    }
    assert!(beyond.is_empty(), "beyond their bounds, with what was measured:\n{beyond}");
    assert_eq!(bounds.len(), number, "a row for each case");
}

#[tokio::test]
async fn odd_shapes_allocate_little() {
    assert_within_limits(shapes::cases, shapes::BOUNDS).await;
}

#[tokio::test]
async fn odd_json_bodies_allocate_little() {
    assert_within_limits(bodies::cases, bodies::BOUNDS).await;
}

#[tokio::test]
async fn trees_of_many_nodes_allocate_little() {
    assert_within_limits(trees::cases, trees::BOUNDS).await;
}

#[tokio::test]
async fn conversions_of_many_nodes_allocate_little() {
    assert_within_limits(conversions::cases, conversions::BOUNDS).await;
}

#[tokio::test]
async fn patches_of_many_members_allocate_little() {
    assert_within_limits(patches::cases, patches::BOUNDS).await;
}

#[tokio::test]
async fn results_of_large_arrays_allocate_little() {
    assert_within_limits(reductions::cases, reductions::BOUNDS).await;
}

#[tokio::test]
async fn few_elements_of_large_chunks_allocate_little() {
    assert_within_limits(chunks::cases, chunks::BOUNDS).await;
}

#[tokio::test]
async fn allocations_are_counted() {
    let _alone = SERIAL.lock().await;
    // The runtime of the previous test is being freed, which would count as memory freed by this one.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let ((), all) = counted(async {
        let first = vec![1_u8; 1000];
        drop(std::hint::black_box(first));
        drop(std::hint::black_box([vec![1_u8; 3000], vec![2; 2000]]));
    })
    .await;
    assert!((5000..6000).contains(&all.peak) && (3..10).contains(&all.count), "{all:?}");
}
