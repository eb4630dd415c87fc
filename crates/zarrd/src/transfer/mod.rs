//! Moving keys from a source to a sink: the one engine below import, export and copy.
//!
//! Names are keys relative to both ends, so that neither knows the other's prefix or directory. First everything is
//! listed, to know the totals and whether there are names that cannot be moved; then the values go, several at a time.

mod directory_sink;
mod directory_source;
mod engine;
mod error;
mod order;
mod store_ends;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use futures::stream::BoxStream;
use store::{Key, Payload};

pub(crate) use directory_sink::DirectorySink;
pub(crate) use directory_source::DirectorySource;
pub(crate) use engine::Transfer;
pub(crate) use error::{Refused, SinkError, SourceError, TransferError};
pub(crate) use store_ends::{MOST_KEYS, StoreSink, StoreSource};

/// Where values come from.
#[async_trait]
pub(crate) trait Source: Send + Sync {
    /// Everything there is. An error ends the listing.
    fn list(&self) -> BoxStream<'_, Result<Found, SourceError>>;

    /// The value of a name that was listed, or `Ok(None)` where it is gone.
    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError>;
}

/// Where values go.
#[async_trait]
pub(crate) trait Sink: Send + Sync {
    /// Judges names in the order in which the source lists them.
    fn admission(&self) -> Admission<'_>;

    /// Sets a value.
    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError>;
}

/// Says of each name, given in the order of a listing, whether the sink can take it.
pub(crate) type Admission<'a> = Box<dyn FnMut(&Key) -> Result<(), Refused> + Send + 'a>;

/// What a source finds.
#[derive(Debug)]
pub(crate) enum Found {
    /// A value.
    Value {
        /// Its name.
        name: Key,
        /// Its length in bytes, as far as that is known.
        size: u64,
    },
    /// Something that cannot be moved.
    Refused {
        /// What it is called there, made safe to print.
        name: String,
        /// Why.
        reason: Refused,
    },
}
