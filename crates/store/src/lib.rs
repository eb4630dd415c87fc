//! The Store: one flat map from keys to bytes, seen through capability traits.
//!
//! The traits follow the abstract store interface of the
//! [Zarr v3 core specification](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#abstract-store-interface):
//! [`ReadableStore`], [`WriteableStore`] and [`ListableStore`], and add one of our own, [`TransactionalStore`],
//! for changes of many keys that become visible together and for reads that see one commit. Each method states
//! its contract, and `conformance` (a feature) checks it on every implementation.
//!
//! Values that come from outside are parsed once, by the constructors of [`Key`], [`Prefix`], [`ByteRange`] and
//! [`Version`]; nothing behind them checks again.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod intent;
mod key;
mod list;
mod memory;
mod range;
mod traits;
mod value;
mod version;
mod watermark;
mod wrapper;

pub use error::{BackendErrorKind, BoxError, Corruption, StoreError, UploadError};
pub use intent::{Intent, IntentError, IntentId, MAX_INTENT_LEN, MAX_INTENTS};
pub use key::{Key, KeyError, MAX_KEY_LEN, Prefix};
pub use list::{
    Cursor, CursorSigner, DirPage, Entry, KeyPage, ListingKind, MAX_PAGE_ENTRIES, PageRequest, count_keys, list_all,
};
pub use memory::{MemoryLimits, MemoryStore};
pub use range::{ByteRange, ByteRangeError};
pub use traits::{
    Change, ChangeOutcome, KeyCount, ListableStore, MAX_COMMIT_CHANGES, MAX_COUNTED_KEYS, PutResult, ReadableStore,
    Snapshot, TransactionalStore, WriteableStore,
};
pub use value::{ByteStream, GetResult, Payload, Staged, ValueMeta};
pub use version::{Precondition, Version, VersionError, VersionMatch};
pub use watermark::Watermark;
pub use wrapper::{Operation, StoreWrapper};
