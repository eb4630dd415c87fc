//! The HTTP server of zarrd: a store, and the hierarchies and arrays in it, as HTTP resources.
//!
//! # The way of a request
//!
//! ```text
//!  client ──► serve          accept loop: connection slots, TLS, HTTP/1 and HTTP/2, timeouts, lingering close
//!               │
//!             request_scope  request id, metrics, logs, common headers, panics
//!               │
//!             guard          Host, proxies, framing, Origin        ──┐
//!               │                                                   │
//!             routes         one table: template + method + query   │
//!               │                                                   │
//!             authorization  token or share link, rights on names   │
//!               │                                                   │
//!             extract        path, query, conditions, negotiation   │ ApiError
//!             request_body   uploads, JSON documents, limits        │
//!               │                                                   │
//!    ┌──────────┼──────────┬───────────────┐                        ▼
//!  store_api  node_api   array_api    monitoring_api              error
//!    │          │          │   decode: body ─► elements    problem document
//!    ▼          ▼          ▼   encode: elements ─► body      (RFC 9457)
//!  Store    Hierarchies  Arrays                                     │
//!    │          │          │                                        │
//!    └──────────┴──────────┴──► response_body ──► client ◄──────────┘
//! ```
//!
//! A handler takes typed arguments from its extractors, makes one call into the store or the array engine, and streams
//! the response. Everything that fails becomes an `ApiError`, mapped to a problem document in one exhaustive match for
//! each error type; its cause is logged with the request's id and is not sent to the client.
//!
//! # Concepts
//!
//! - The **route table** ([`ROUTES`]) lists each [`Operation`] once: `Allow`, CORS, rights and the tests of the OpenAPI
//!   document derive from it. An operation has a [`Safety`]; only unsafe ones need the right to change the store.
//! - The **caller** is the client's address, resolved behind trusted proxies ([`Network`]). Memory and threads are
//!   shared fairly among callers.
//! - The **memory claim** of a request is the only source of memory for it. Small bodies and responses need no permit.
//! - The **access log** and the **audit log** ([`RequestLogs`]) have one JSON line for each request, and for each
//!   change and denial. A thread writes each of them from a bounded queue, so no request waits for them.
//! - **Limits** ([`Limits`]) bound everything that a client controls before it is allocated or looped over.
//! - The [executor](zarrd_executor) decides where work runs. Sizes below which no memory permit is needed are constants
//!   called `UNRESERVED_*`.
//!
//! [`router`] is the same service without the connections, for tests and for embedding, and [`get`] one answer of it.

mod access_api;
mod admission;
mod app;
mod array_api;
mod authorization;
mod blocking;
mod caller;
mod content_encoding;
mod dav_api;
mod destination;
mod disk_cache_metrics;
mod dispatch;
mod engine;
mod error;
mod extract;
mod forwarded;
mod guard;
mod headers;
mod listing_permits;
mod local;
mod metrics;
mod monitoring_api;
mod node_api;
mod observed_body;
mod page_api;
mod pager;
mod progress_timeout;
mod request_body;
mod request_id;
mod request_log;
mod request_scope;
mod response_body;
mod routes;
mod s3_api;
mod serve;
mod settings;
mod snapshot_api;
mod snapshots;
mod staged_copy;
mod store_api;
mod store_totals;
mod surface;

pub use app::App;
pub use authorization::{AccessPolicy, AnonymousAccess, DirectorySlot, MetricsAccess};
pub use caller::{Network, NetworkError};
pub use dispatch::{router, surface_router};
pub use local::{LocalAnswer, get};
pub use request_log::{AccessLog, AuditLog, LogOutput, OpenLogError, RequestLogOptions, RequestLogs};
pub use routes::{Operation, ROUTES, Requirement, Route, Safety};
pub use serve::{CertificateError, Certificates, serve, serve_surfaces, serve_tls};
pub use settings::{
    BasePath, BasePathError, Changes, Host, HostError, Hosts, Limits, Origin, OriginError, S3Settings, Settings,
};
pub use surface::Surface;
pub use zarrd_access::{AccessDirectory, Grant, Grants, Right};
pub use zarrd_array::{Caller, EmptyChunks, Options as ArrayOptions};
pub use zarrd_s3::{Bucket, BucketNames, Domain, OPEN_ACCESS_KEY, OPEN_SECRET_KEY};
