//! The HTTP surfaces of zarrd over a store.
//!
//! The way of a request: [`serve()`] takes the connection, `exchange` gives the request its id, judges it by `guard` and
//! finds its operation in [`ROUTES`]; the operation's handler (`store_api`, `node_api`, `array_api`, `service`) has typed values from `extract`,
//! makes one call into the store or its arrays, and answers with what `body` streams. What is wrong anywhere becomes a problem document
//! in one place, `refusal`.
//!
//! [`app`] is the same without the connections, for tests and for embedding.

mod array_api;
mod blocking;
mod body;
mod caller;
mod claim;
mod coding;
mod engine;
mod exchange;
mod extract;
mod guard;
mod headers;
mod metrics;
mod node_api;
mod pace;
mod refusal;
mod request_id;
mod routes;
mod serve;
mod service;
mod settings;
mod state;
mod store_api;

pub use array::{Caller, EmptyChunks, Options as ArrayOptions};
pub use caller::{Network, NetworkError};
pub use routes::{Effect, Operation, ROUTES, Route, app};
pub use serve::serve;
pub use settings::{Access, Changes, Host, HostError, Hosts, Limits, Origin, OriginError, Settings};
pub use state::App;
