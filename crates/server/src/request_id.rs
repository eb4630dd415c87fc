//! Request ids.

use std::{
    fmt::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};

use http::{HeaderMap, HeaderValue};
use zarrd_access::without_credentials;
use zarrd_wire::headers::{REQUEST_ID, is_request_id};

/// Generates unique ids from a random number for the process and a counter.
pub(crate) struct RequestIds {
    /// The random number, in 8 hexadecimal digits, and a dash.
    run: String,
    next: AtomicU64,
}

/// The id of a request: the client's, if it is well formed and no credential, or a generated one.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(HeaderValue);

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { run: format!("{:08x}-", rand::random::<u32>()), next: AtomicU64::new(0) }
    }

    /// Returns the id of the request with these headers.
    pub(crate) fn of(&self, headers: &HeaderMap) -> RequestId {
        match headers.get(REQUEST_ID) {
            Some(theirs) if is_accepted(theirs) => RequestId(theirs.clone()),
            _ => self.generate(),
        }
    }

    /// Generates an id.
    pub(crate) fn generate(&self) -> RequestId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = String::with_capacity(self.run.len() + 16);
        text.push_str(&self.run);
        // Writing to a string does not fail.
        let _ = write!(text, "{count:x}");
        // Hexadecimal digits and a dash are a valid header value.
        RequestId(HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("0")))
    }
}

/// True for a well-formed id without a part of a credential, since ids are logged.
fn is_accepted(id: &HeaderValue) -> bool {
    is_request_id(id.as_bytes()) && id.to_str().is_ok_and(|text| without_credentials(text) == text)
}

impl RequestId {
    /// The id as a header value.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_str().unwrap_or_default())
    }
}
