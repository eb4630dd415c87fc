//! Client of zarrd servers: key-value store, hierarchies and arrays over HTTP.
//!
//! Three clients share the connections to a server at a [`BaseUrl`]:
//!
//! ```text
//! BaseUrl ─▶ Connection ─┬─▶ HttpStore    keys and values (Store traits)
//!  token, certificates,  ├─▶ NodeClient   hierarchies: read, create, change, convert
//!  timeouts, retries     └─▶ ArrayClient  elements, decoded and encoded by the server
//!
//! operation ─▶ attempt ─▶ response ─▶ result
//!                 ▲           │
//!                 │           └─▶ status and problem document ─▶ typed error
//!                 └── backoff ◀── not executed, or idempotent ◀──┘
//! ```
//!
//! - An operation is made of attempts, which all share one deadline ([`Timeouts`]). A failed attempt is retried
//!   ([`Retries`]) if it is known that the server did not execute it, or if the operation is idempotent.
//! - An unsuccessful response has a problem document (RFC 9457), whose type determines the error: a
//!   [`StoreError`], whose `Backend` variant has a [`RemoteError`] as its source, a [`NodeError`]
//!   or an [`ArrayError`].
//! - A response that violates the HTTP API, such as one of another server or of a proxy, is an error as well. It is
//!   never taken for a missing key or node.
//! - Values and elements are streamed, and never silently truncated.
//!
//! # Keys and values
//!
//! [`HttpStore`] implements the Store traits, which this crate re-exports with keys and errors, so it can replace a local
//! store:
//!
//! ```no_run
//! use zarrd_client::{BaseUrl, ByteRange, HttpStore, Key, PageRequest, Precondition, Prefix};
//! use zarrd_client::{ListableStore, ReadableStore, WriteableStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = HttpStore::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//!
//! let key = Key::parse("lab/exp1/notes.txt")?;
//! store.set(&key, "42 mice".into(), Precondition::none()).await?;
//! if let Some(value) = store.get(&key, Some(ByteRange::last(4)?)).await? {
//!     assert_eq!(value.bytes().await?, "mice");
//! }
//! for entry in store.list_prefix(&Prefix::parse("lab/")?, PageRequest::first(1000)).await?.keys {
//!     println!("{} {}", entry.key, entry.meta.size);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Elements
//!
//! [`ArrayClient`] reads and writes elements without a Zarr library:
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use serde_json::json;
//! use zarrd_client::{ArrayClient, BaseUrl, NodePath, Precondition, ReadRequest, select};
//!
//! # async fn example(frame: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
//! let arrays = ArrayClient::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//! let mice = NodePath::parse("lab/exp1/mice")?;
//!
//! let elements = arrays.read_as::<f32>(&mice, select![0..10, ..; 2, -1]).await?;
//! println!("{} elements, {:?}", elements.content.len(), elements.description.shape);
//!
//! let points = ReadRequest::Points(vec![vec![0, 0, 0], vec![5, 5, -1]]);
//! assert_eq!(arrays.read_as::<f32>(&mice, points).await?.content.len(), 2);
//!
//! let mut stream = arrays.stream(&mice, select![]).await?;
//! while let Some(bytes) = stream.try_next().await? {
//!     println!("{} bytes", bytes.len());
//! }
//!
//! arrays.write(&mice, select![0..10, ..], json!(0), Precondition::none()).await?;
//! let report = arrays.append(&mice, 0, frame, Precondition::none()).await?;
//! println!("{:?}", report.shape);
//! # Ok(())
//! # }
//! ```
//!
//! # Hierarchies
//!
//! [`NodeClient`] reads, creates and changes the hierarchies that contain the arrays:
//!
//! ```no_run
//! use zarrd_client::{BaseUrl, CreateOptions, Depth, NodeClient, NodePath, Precondition, Zom};
//!
//! # async fn example(zom: String) -> Result<(), Box<dyn std::error::Error>> {
//! let nodes = NodeClient::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//! let mice = NodePath::parse("lab/exp1/mice")?;
//!
//! nodes.create(&mice, &Zom::parse(zom)?, &CreateOptions::default()).await?;
//! let node = nodes.node(&mice, Depth::Levels(0)).await?;
//! if let Some(version) = node.version {
//!     nodes.resize(&mice, vec![10, 512, 512], Precondition::at(version)).await?;
//! }
//! for child in nodes.children(&NodePath::parse("lab/exp1")?).await? {
//!     println!("{} {:?}", child.path, child.kind);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Tokens and certificates
//!
//! A server may require a token, or have a certificate of a private authority:
//!
//! ```no_run
//! # use zarrd_client::{ArrayClient, BaseUrl, Connection, HttpStore, Token};
//! # fn example(pem: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let connection = Connection::builder(BaseUrl::parse("https://zarr.lab.example")?)
//!     .token(Token::parse("s3cret")?)
//!     .certificates(pem)?
//!     .build()?;
//! let store = HttpStore::from(connection.clone());
//! let arrays = ArrayClient::from(connection);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `zarrs`: [`zarrs::ZarrsStore`] adapts any store to the storage traits of the `zarrs` crate.
//! - `ndarray`: elements are converted from and to arrays of the `ndarray` crate.

mod array;
mod base_url;
mod connection;
mod deadline;
mod error;
mod list;
mod node;
mod options;
mod precondition;
mod problem;
mod read;
mod remote;
mod response;
mod retry;
mod shares;
mod snapshot;
mod store;
mod token;
mod transport;
mod upload;
mod write;
#[cfg(feature = "zarrs")]
pub mod zarrs;

#[cfg(feature = "ndarray")]
pub use array::NpyElement;
pub use array::{
    ArrayClient, ArrayError, Description, Element, ElementStream, Elements, MissingLabel, NewArray, NewElements, Query,
};
pub use base_url::{BaseUrl, BaseUrlError};
pub use connection::{BuildError, ClientBuilder, Connection};
pub use error::TransportError;
pub use node::{
    AppendOptions, Comparison, CreateOptions, CreateOutcome, CreateStatus, Members, NodeClient, NodeDocuments,
    NodeEntry, NodeError, NodeKind, Patch, UpdatedNode,
};
pub use options::{Retries, Timeouts};
pub use remote::{RemoteCorruption, RemoteError};
pub use shares::ShareClient;
pub use snapshot::HttpSnapshot;
pub use store::HttpStore;
pub use token::{Token, TokenError};
pub use zarrd_meta::{
    Dialect, NodePath, PathError,
    data_type::Casting,
    json::Json,
    select,
    selection::{Item, ReadRequest, Selection, Slice},
    zom::{self, Zom},
};
pub use zarrd_operations::{
    AppendReport, BrokenNode, ConversionReport, ConvertOptions, Depth, ExistingDocuments, IfExists, LinkTarget,
    LossPolicy, NodeInfo, NodeRejection, PatchMode, WriteReport,
};
pub use zarrd_store::{
    ByteRange, ByteRangeError, ByteStream, Cursor, DirPage, Entry, GetResult, Key, KeyCount, KeyError, KeyPage,
    ListableStore, PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore, StoreError, UploadError,
    ValueMeta, Version, VersionError, VersionMatch, WriteableStore, count_keys, list_all,
};
pub use zarrd_wire::{
    access::Share,
    array::Format,
    chunks,
    health::{Readiness, StoreGuarantees},
    picture::{ColorMap, Limits, Rgba, Scale},
    query::{ChunksForm, ChunksQuery, Decode, Edge, PictureQuery, StatsQuery},
};
