//! Answers without a network, for programs that have opened a store themselves.

use std::fmt;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, Method, Request, StatusCode, header::HOST};
use zarrd_wire::problem::Problem;

use crate::{app::App, dispatch::handle};

/// The largest problem document, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 << 10;

/// The answer to a request.
pub struct LocalAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: Body,
}

/// Answers a `GET` of a target, such as `/array/lab/exp1?select=0`, as the server would over the network.
pub async fn get(app: &App, target: &str) -> Result<LocalAnswer, http::Error> {
    let request = Request::builder().method(Method::GET).uri(target).header(HOST, "localhost").body(Body::empty())?;
    let (parts, body) = handle(app.clone(), request).await.into_parts();
    Ok(LocalAnswer { status: parts.status, headers: parts.headers, body })
}

impl LocalAnswer {
    /// The bytes of the body.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        self.body.into_data_stream()
    }

    /// The problem of an answer that has one.
    pub async fn into_problem(self) -> Option<Problem> {
        let mut bytes = Vec::new();
        let mut body = self.body.into_data_stream().boxed();
        while let Ok(Some(block)) = body.try_next().await {
            bytes.extend_from_slice(&block);
            if bytes.len() > MAX_PROBLEM_BYTES {
                return None;
            }
        }
        serde_json::from_slice(&bytes).ok()
    }
}

impl fmt::Debug for LocalAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.body.size_hint().exact();
        f.debug_struct("LocalAnswer").field("status", &self.status).field("length", &length).finish_non_exhaustive()
    }
}
