//! Transfers of keys from a source to a sink, on which import, export and copy are based.
//!
//! Names are keys relative to both endpoints. First the source is listed, for the totals and for names that cannot be
//! transferred; then the values are copied concurrently.
//!
//! ```text
//! DirectorySource ─┐               ┌─▶ DirectorySink
//!                  ├─▶ Transfer ───┤
//! StoreSource ─────┘   (chunks,    └─▶ StoreSink
//!                      then metadata)
//! ```

mod directory_sink;
mod directory_source;
mod engine;
mod error;
pub(crate) mod placement;
mod store_endpoints;
#[cfg(test)]
mod tests;
mod upload_order;

use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use zarrd_store::{Attributes, Key, Payload, Version};

pub(crate) use directory_sink::DirectorySink;
pub(crate) use directory_source::DirectorySource;
pub(crate) use engine::{PresentValues, Transfer};
pub(crate) use error::{SinkError, SkipReason, SourceError, TransferError};
pub(crate) use placement::{PlacementError, has_keys};
pub(crate) use store_endpoints::{DEFAULT_MAX_KEYS, StoreSink, StoreSource, server_source};

/// A source of values.
#[async_trait]
pub(crate) trait Source: Send + Sync {
    /// Lists all values. An error ends the listing.
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>>;

    /// Lists all values as [`list`](Self::list) does, with the small ones that are read along with their names; by default
    /// none is.
    fn list_with_contents(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.list()
    }

    /// Opens a listed value; `Ok(None)` if it no longer exists.
    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError>;

    /// True if the values may change while they are transferred, so that those of several commits would be mixed. By
    /// default they may not.
    fn is_live(&self) -> bool {
        false
    }

    /// Releases what the source keeps elsewhere, such as a snapshot of a server.
    async fn close(&self) {}
}

/// A target of values.
#[async_trait]
pub(crate) trait Sink: Send + Sync {
    /// Returns a check of names, which must be called in the order of the source's listing.
    fn name_check(&self) -> NameCheck<'_>;

    /// The size and the time of a value that is there already, for transfers that go on; by default none is.
    async fn present(&self, _name: &Key) -> Result<Option<(u64, SystemTime)>, SinkError> {
        Ok(None)
    }

    /// Writes a value.
    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError>;
}

/// Checks whether a sink supports a name.
pub(crate) type NameCheck<'a> = Box<dyn FnMut(&Key) -> Result<(), SkipReason> + Send + 'a>;

/// A small value.
#[derive(Clone, Debug)]
pub(crate) struct SmallContent {
    /// Its bytes.
    pub(crate) bytes: Bytes,
    /// Its attributes.
    pub(crate) attributes: Attributes,
}

/// An item in the listing of a source.
#[derive(Debug)]
pub(crate) enum SourceItem {
    /// A value.
    Value {
        /// Name of the value.
        name: Key,
        /// Size of the value in bytes, as far as known.
        size: u64,
        /// Version of the value, if it has one.
        version: Option<Version>,
        /// Time of its last change, if that is known.
        modified: Option<SystemTime>,
        /// All of it, if it came along with its name.
        content: Option<SmallContent>,
    },
    /// An item that cannot be transferred.
    Unsupported {
        /// Name of the item, escaped for printing.
        name: String,
        /// Reason.
        reason: SkipReason,
    },
}
