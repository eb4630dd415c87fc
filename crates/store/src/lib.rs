//! Key-value stores of Zarr data: keys, versions, commits, and the traits that every store implements.
//!
//! A store maps [`Key`]s such as `lab/exp1/c/0/1` to values, which are bytes with a [`Version`]. The traits follow the
//! abstract store interface of the [Zarr v3 core
//! specification](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#abstract-store-interface) and add
//! transactions:
//!
//! | trait | operations |
//! |---|---|
//! | [`ReadableStore`] | `get` a value or a byte range of it, `head` for its metadata |
//! | [`WriteableStore`] | `set`, `erase` and `erase_prefix`, each one commit |
//! | [`ListableStore`] | `list`, `list_prefix` and `list_dir`, in pages |
//! | [`SnapshotStore`] | read many keys in a `snapshot`, with the [`Guarantees`] that the store declares |
//! | [`BatchStore`] | `stage` values, `apply` many changes: in one commit, or key by key |
//! | [`TransactionalStore`] | `commit` many changes atomically |
//! | [`UploadStore`] | upload a value in parts, which every transactional store can |
//!
//! Data that other programs own, such as the files of a directory, have no commits. A store of them is readable and
//! listable, and [`Keyed`] makes it a [`SnapshotStore`], and a [`BatchStore`] if it can be written. [`CachedStore`] between the two caches for some seconds what
//! was read, and [`PieceStore`] pieces of values in a cache that outlives the process ([`PieceCache`]). [`ServedStore`] is a store of either kind, and [`Mounts`] shows several stores as one.
//!
//! # Lifecycle of a value
//!
//! ```text
//!   Payload ── stage ──► Staged ────────────┐                    (invisible; dropped = discarded)
//!      │                                    ▼
//!      │                       commit [ Set, Erase, ErasePrefix, Check, … ]
//!      │                                    │  all preconditions hold: atomic, durable, visible
//!      └────────── set ──────────►  value, Version ── get ──► GetResult (metadata, ByteStream)
//!                                           │
//!                    set again or erased ───┘      readers and snapshots that have it open still read it
//! ```
//!
//! - **Payload**: the bytes of a value on their way in, as a stream. Values are never buffered whole.
//! - **Version**: identifies one set of one key, and so the bytes. It is the strong entity tag of HTTP.
//! - **Precondition**: `If-Match` and `If-None-Match` for one key, checked atomically with the change.
//! - **Commit**: a list of [`Change`]s that become visible and durable together, or not at all.
//! - **Snapshot**: the values of some keys as of one commit; without commits, each as of its first read in the snapshot.
//! - **Intent**: a record of an operation that takes several commits, so that a crash in between can be repaired.
//! - **Watermark**: a number that changes with every commit, so that a reader can detect concurrent changes.
//!
//! # Implementations
//!
//! [`MemoryStore`] is in this crate, the embedded store in `zarrd-store-local`, the store of a bucket in
//! `zarrd-store-object`, that of a web server in `zarrd-store-http`, and the store of a server in `zarrd-client`.
//! [`StoreWrapper`] derives a store from another one. The suite in `zarrd-store-testkit` checks the contract
//! of each method on every implementation.
//!
//! Untrusted input is validated once, by the constructors of [`Key`], [`Prefix`], [`ByteRange`], [`Version`] and
//! [`Cursor`]; code behind them relies on it.

mod attributes;
mod batch;
mod cached_store;
mod change;
mod error;
mod freshness;
mod guarantees;
mod intent;
mod key;
mod key_map;
mod keyed;
mod list;
mod memory;
mod meta;
mod metadata_cache;
mod mounts;
mod page;
mod pieces;
mod random;
mod range;
mod received;
mod recheck;
mod retry;
mod scan;
mod scrub;
mod served;
mod shared;
mod stage;
mod store_url;
mod traits;
mod turns;
mod uploads;
mod value;
mod version;
mod version_hash;
mod waits;
mod warnings;
mod watermark;
mod wrapper;

pub use attributes::{
    AttributeFields, Attributes, AttributesError, Checksum, ChecksumAlgorithm, ChecksumKind, ContentField,
    MAX_CONTENT_FIELD_LEN, MAX_METADATA_FIELDS, MAX_METADATA_LEN, MAX_PARTS, UnknownAlgorithm,
};
pub use batch::Batch;
pub use cached_store::CachedStore;
pub use change::{Change, ChangeOutcome, KeyCount, MAX_COMMIT_CHANGES, MAX_COUNTED_KEYS};
pub use error::{BackendErrorKind, BoxError, Corruption, StoreError, UploadError};
pub use freshness::not_before;
pub use guarantees::{Conditions, Consolidated, Guarantees, Listing, Reads, Writes};
pub use intent::{Intent, IntentError, IntentFilter, IntentId, MAX_INTENT_LEN, MAX_INTENTS, RunId};
pub use key::{Key, KeyError, MAX_KEY_LEN, Prefix};
pub use key_map::KeyMap;
pub use keyed::Keyed;
pub use list::{count_keys, list_all, list_all_values};
pub use memory::{MemoryLimits, MemoryStore};
pub use meta::ValueMeta;
pub use metadata_cache::{CachedMeta, MetadataCache, MetadataReader};
pub use mounts::{MAX_MOUNT_WAIT, MountFailure, MountName, MountNameError, Mounts};
pub use page::{
    Cursor, CursorSigner, DirPage, Entry, KeyPage, ListedValue, ListingKind, ListingState, MAX_LISTED_VALUE_BYTES,
    MAX_PAGE_ENTRIES, MAX_VALUE_PAGE_ENTRIES, PageRequest, ValuePage,
};
pub use pieces::{PIECE_LEN, PieceCache, PieceCacheStatus, PieceId, PieceStore, Pieces, StoreId, StorePieces};
pub use range::{ByteRange, ByteRangeError};
pub use received::{ReceivingStore, Reception};
pub use recheck::{Recheck, RecheckError};
pub use retry::{MAX_READ_ATTEMPTS, MAX_READ_TIME, ReadError, until_unchanged};
pub use scan::{Fold, Scan, ScanPage, Scanned};
pub use scrub::{ScrubFinding, ScrubStatus};
pub use served::ServedStore;
pub use stage::{put_or_stage, stage_copy_of_parts, stage_put};
pub use store_url::{OpenOptions, StoreKind, StoreUrl, UrlOptionError, UrlOptions, url_options};
pub use traits::{
    BatchStore, DiskSpace, KeySource, ListableStore, Prefetch, PrefixSnapshot, ReadableStore, Snapshot, SnapshotStore,
    StatMany, TransactionalStore, WriteableStore,
};
pub use turns::{KeyTurn, KeyTurns};
pub use uploads::{
    COMPLETION_MEMORY, Completion, MAX_UPLOAD_NOTE_LEN, NewUpload, Part, PartPage, StagedPart, UPLOAD_RETENTION,
    Upload, UploadId, UploadIdError, UploadPage, UploadState, UploadStore, UploadsAfter, UploadsError,
};
pub use value::{ByteStream, GetResult, Payload, PutResult, ReceivedValue, Staged};
pub use version::{Precondition, Version, VersionError, VersionMatch};
pub use version_hash::VersionHash;
pub use waits::{Wait, WaitTimes, WaitTotals};
pub use warnings::{Admitted, WarningRate};
pub use watermark::Watermark;
pub use wrapper::{Operation, StoreWrapper};
