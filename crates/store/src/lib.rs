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

mod change;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod intent;
mod key;
mod list;
mod memory;
mod meta;
mod page;
mod random;
mod range;
mod traits;
mod value;
mod version;
mod watermark;
mod wrapper;

pub use change::{Change, ChangeOutcome, KeyCount, MAX_COMMIT_CHANGES, MAX_COUNTED_KEYS};
pub use error::{BackendErrorKind, BoxError, Corruption, StoreError, UploadError};
pub use intent::{Intent, IntentError, IntentId, MAX_INTENT_LEN, MAX_INTENTS};
pub use key::{Key, KeyError, MAX_KEY_LEN, Prefix};
pub use list::{count_keys, list_all};
pub use memory::{MemoryLimits, MemoryStore};
pub use meta::ValueMeta;
pub use page::{Cursor, CursorSigner, DirPage, Entry, KeyPage, ListingKind, MAX_PAGE_ENTRIES, PageRequest};
pub use range::{ByteRange, ByteRangeError};
pub use traits::{ListableStore, ReadableStore, Snapshot, TransactionalStore, WriteableStore};
pub use value::{ByteStream, GetResult, Payload, PutResult, Staged};
pub use version::{Precondition, Version, VersionError, VersionMatch};
pub use watermark::Watermark;
pub use wrapper::{Operation, StoreWrapper};
