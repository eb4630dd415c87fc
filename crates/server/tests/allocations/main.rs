//! What requests allocate: how much at a time, and how often. Every operation on arrays of the oddest shapes, and every kind of body of the oddest JSON, has a bound in
//! [`bounds`], which is about one and a half times what was measured.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod bodies;
mod bounds;
#[path = "../common/mod.rs"]
mod common;
mod counting;
mod shapes;

use std::fmt::Write as _;

use axum::body::Body;
use bounds::Bound;
use common::TestServer;
use counting::{Allocated, counted};
use http::{Method, Request, StatusCode, header::HOST};
use http_body_util::BodyExt;
use tokio::sync::Mutex;

/// A body that takes long, in bytes.
const LARGE: usize = 64 << 10;

/// All threads are counted, so one test runs at a time.
static SERIAL: Mutex<()> = Mutex::const_new(());

/// A request that is counted.
#[derive(Clone, Debug)]
struct Case {
    /// What it asks for.
    operation: &'static str,
    /// Of what.
    of: &'static str,
    /// Keys that there are.
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
    /// The status, and what was allocated until the end of the answer.
    async fn run(&self) -> (StatusCode, Allocated) {
        let server = TestServer::new();
        for (key, value) in &self.keys {
            let key = store::Key::parse(key).unwrap();
            server.store.set(&key, value.clone().into(), store::Precondition::none()).await.unwrap();
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
}

/// Runs all cases, and fails with the rows that are beyond their bounds, as they would have to be.
async fn assert_within_limits(cases: impl FnOnce() -> Vec<Case>, bounds: &[Bound]) {
    // To make the cases allocates as well.
    let _alone = SERIAL.lock().await;
    let cases = cases();
    let number = cases.len();
    let mut beyond = String::new();
    for case in cases {
        // What is made once for all is made by the first one, which needs no large body for it.
        let body = if case.body.len() > LARGE { b"{}".to_vec() } else { case.body.clone() };
        Case { body, ..case.clone() }.run().await;
        let (status, Allocated { peak, count }) = case.run().await;
        assert!(!status.is_server_error() || status == 501, "{} of {}: {status}", case.operation, case.of);
        let bound = bounds.iter().find(|bound| (bound.0, bound.1) == (case.operation, case.of));
        if bound.is_none_or(|&(_, _, _, most, often)| peak > most || count > often)
            || bound.is_some_and(|bound| bound.2 != status.as_u16())
        {
            let (operation, of, status) = (case.operation, case.of, status.as_u16());
            writeln!(beyond, "    ({operation:?}, {of:?}, {status}, {peak}, {count}),").unwrap();
        }
    }
    assert!(beyond.is_empty(), "beyond their bounds, with what was measured:\n{beyond}");
    assert_eq!(bounds.len(), number, "a row for each case");
}

#[tokio::test]
async fn odd_shapes_allocate_little() {
    assert_within_limits(shapes::cases, bounds::OF_SHAPES).await;
}

#[tokio::test]
async fn odd_json_bodies_allocate_little() {
    assert_within_limits(bodies::cases, bounds::OF_BODIES).await;
}

#[tokio::test]
async fn allocations_are_counted() {
    let _alone = SERIAL.lock().await;
    // The runtime of the test that had the lock before is given back meanwhile, which would count as memory of this one that was freed.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let ((), all) = counted(async {
        let first = vec![1_u8; 1000];
        drop(std::hint::black_box(first));
        drop(std::hint::black_box([vec![1_u8; 3000], vec![2; 2000]]));
    })
    .await;
    assert!((5000..6000).contains(&all.peak) && (3..10).contains(&all.count), "{all:?}");
}
