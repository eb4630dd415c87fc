//! The HTTP surfaces of zarrd over a store.
//!
//! The way of a request: [`serve()`] takes the connection, `exchange` gives the request its id, judges it by `guard` and
//! finds its operation in [`ROUTES`]; the operation's handler (`store_api`, `node_api`, `array_api`, `service`) has typed values from `extract`,
//! makes one call into the store or its arrays, and answers with what `body` streams. What is wrong anywhere becomes a problem document
//! in one place, `refusal`.
//!
//! [`app`] is the same without the connections, for tests and for embedding.

mod app;
mod array_api;
mod blocking;
mod caller;
mod content_encoding;
mod dispatch;
mod engine;
mod error;
mod extract;
mod guard;
mod headers;
mod memory_claim;
mod metrics;
mod monitoring_api;
mod node_api;
mod progress_timeout;
mod request_body;
mod request_id;
mod response_body;
mod routes;
mod serve;
mod settings;
mod store_api;

pub use app::App;
pub use array::{Caller, EmptyChunks, Options as ArrayOptions};
pub use caller::{Network, NetworkError};
pub use dispatch::router;
pub use routes::{Operation, ROUTES, Route, Safety};
pub use serve::serve;
pub use settings::{Access, Changes, Host, HostError, Hosts, Limits, Origin, OriginError, Settings};
