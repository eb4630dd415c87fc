//! The store of a zarrd server, its hierarchies and its arrays, over HTTP.
//!
//! [`HttpStore`] implements the traits of the `store` crate, so whatever works on a local store works on a remote one:
//!
//! ```no_run
//! use client::{BaseUrl, HttpStore, Token};
//! use store::{ByteRange, Key, PageRequest, Precondition, Prefix};
//! use store::{ListableStore, ReadableStore, WriteableStore};
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
//! [`ArrayClient`] reads elements of arrays, whatever wrote them, without a Zarr library:
//!
//! ```no_run
//! use client::{ArrayClient, BaseUrl, NodePath, ReadRequest, select};
//! use futures::TryStreamExt;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let arrays = ArrayClient::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//! let mice = NodePath::parse("lab/exp1/mice")?;
//!
//! let frame = arrays.read_as::<f32>(&mice, select![0..10, ..; 2, -1]).await?;
//! println!("{} elements, {:?}", frame.content.len(), frame.description.shape);
//!
//! let points = ReadRequest::Points(vec![vec![0, 0, 0], vec![5, 5, -1]]);
//! assert_eq!(arrays.read_as::<f32>(&mice, points).await?.content.len(), 2);
//!
//! let mut all = arrays.stream(&mice, select![]).await?;
//! while let Some(piece) = all.try_next().await? {
//!     println!("{} bytes", piece.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! It writes them too, and [`NodeClient`] finds, creates and changes the hierarchies that they are in:
//!
//! ```no_run
//! use client::{ArrayClient, BaseUrl, CreateOptions, Depth, NodePath, Zom, select};
//! use serde_json::json;
//! use store::Precondition;
//!
//! # async fn example(zom: String, frame: &[f32]) -> Result<(), Box<dyn std::error::Error>> {
//! let arrays = ArrayClient::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//! let (nodes, mice) = (arrays.nodes(), NodePath::parse("lab/exp1/mice")?);
//!
//! nodes.create(&mice, &Zom::parse(zom)?, &CreateOptions::default()).await?;
//! arrays.write(&mice, select![0..10, ..], json!(0), Precondition::none()).await?;
//! let wrote = arrays.append(&mice, 0, frame, Precondition::none()).await?;
//! println!("{:?}", wrote.shape);
//!
//! let found = nodes.node(&mice, Depth::Levels(0)).await?;
//! if let Some(version) = found.version {
//!     nodes.resize(&mice, vec![10, 512, 512], Precondition::at(version)).await?;
//! }
//! for child in nodes.children(&NodePath::parse("lab/exp1")?).await? {
//!     println!("{} {:?}", child.path, child.kind);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! All can share one [`Connection`]. A server that asks for a token, or has a certificate of one's own authority:
//!
//! ```no_run
//! # use client::{ArrayClient, BaseUrl, Connection, HttpStore, Token};
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
//! With the feature `zarrs`, [`zarrs::ZarrsStore`] lends any such store to the `zarrs` crate; with the feature `ndarray`, elements become
//! arrays of that crate.

mod answer;
mod array;
mod base_url;
mod failure;
mod list;
mod node;
mod options;
mod problem;
mod read;
mod remote;
mod store;
mod token;
mod transport;
mod upload;
mod write;
#[cfg(feature = "zarrs")]
pub mod zarrs;

#[cfg(feature = "ndarray")]
pub use array::NpyElement;
pub use array::{ArrayClient, ArrayError, Description, Element, ElementStream, Elements, NewElements};
pub use base_url::{BaseUrl, BaseUrlError};
pub use failure::TransportError;
pub use meta::{
    Dialect, NodePath, PathError,
    json::Json,
    select,
    selection::{Item, ReadRequest, Selection, Slice},
    zom::{self, Zom},
};
pub use node::{
    Changed, Child, Comparison, CreateOptions, CreateOutcome, CreateStatus, Flat, Kind, Members, NodeClient, NodeError,
    Patch,
};
pub use operations::{
    BrokenNode, ConversionReport, ConvertOptions, Depth, IfExists, LinkTarget, LossPolicy, NodeInfo, WriteReport,
};
pub use options::{BuildError, ClientBuilder, Connection, Retries, Timeouts};
pub use remote::{RemoteCorruption, RemoteError};
pub use store::HttpStore;
pub use token::{Token, TokenError};
pub use wire::health::Readiness;
