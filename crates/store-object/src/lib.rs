//! A store over a bucket of S3, Google Cloud Storage or Azure Blob Storage that other programs read and write.
//!
//! [`BucketStore`] is opened by a [`BucketUrl`] with [`Options`]: `s3://bucket/prefix`, `gs://bucket/prefix` or
//! `az://container/prefix`. Region, endpoint and credentials are those of the variables `AWS_*`, `GOOGLE_*` or
//! `AZURE_*`, as the `object_store` crate reads them, and of the profile of AWS that they choose. [`Keyed`](zarrd_store::Keyed) makes snapshots of the store.
//!
//! # Lifecycle of a read
//!
//! ```text
//!   GET ── 404 ─────────────► absent, once it is certain that the bucket exists
//!    │ └── 416 ─────────────► HEAD: the metadata, or the last bytes of an empty object
//!    │ └── busy, no answer ─► wait, once more; after the last attempt an error
//!    ▼
//!   ETag: the version ─────► StoreError::Changed if a snapshot knows another one (If-Match, or compared)
//!    │
//!    ▼
//!   body ── breaks, ends early ──► GET of the rest with If-Match ── 412 ──► StoreError::Changed
//! ```
//!
//! All bytes of one stream are of one value. `object_store` resumes bodies without `If-Match` and takes a body that
//! ends early for a short value, so its retries are off and the store makes its own: at most [`Options::retries`] for a
//! request, with random delays, within [`Options::deadline`]. A `Retry-After` is honoured. If the service stays busy,
//! the operation fails with [`StoreError::Busy`](zarrd_store::StoreError::Busy).
//!
//! # Versions
//!
//! A version is a hash of the key, the strong ETag and the size, keyed with the name of the store. Without an ETag it
//! is made of the version id or generation; listings do not have these, so they fail then. An object with neither is
//! not read: size and time would miss changes. Equal ETags of these services mean equal bytes. The ETags of the last
//! 65,536 versions are cached, so that a later read in a snapshot is conditional and a changed object costs no
//! transfer; what was evicted is compared after the answer has begun.
//!
//! # Lifecycle of a write
//!
//! ```text
//!   HEAD, unless the precondition names the state ──► PreconditionFailed if it does not meet the precondition
//!    │
//!    ▼
//!   PUT on condition of that state, with an id ── 412 to the only one sent ──► HEAD again, or PreconditionFailed
//!    │ └── not made (429, SlowDown) ──► wait, the same PUT again
//!    │ └── no answer, or 5xx ─────────► HEAD ── the id ──────────────────► done
//!    ▼                                   └── the state before ──────────► the same PUT again, for 30 seconds
//!   done                                 └── anything else ─────────────► StoreError::OutcomeUnknown
//! ```
//!
//! - `?writes=yes` in the URL of a server, or [`Options::writes`], turns writes on. Each changes one key; a store changes
//!   nothing by default.
//! - Writes without a precondition are conditioned as well, on what the HEAD found, so that a PUT that arrives late cannot
//!   replace what was written since. The library repeats none of them.
//! - Values of more than 8 MiB without a precondition are sent in parts, which services do not check conditions of; there
//!   the last one wins. With a precondition, values have up to 256 MiB and are sent in one request, from memory.
//! - Deletes have no conditions: an erase with a precondition fails with
//!   [`StoreError::Unsupported`](zarrd_store::StoreError::Unsupported). An erase of a prefix begins with the documents, and is
//!   completed by repeating it.
//!
//! **Conditions are probed**, when the store is opened or before its first write if the bucket cannot be reached then:
//! objects `.zarrd/probe-*` are created twice, replaced at a wrong version and at the right one, created by eight writes at
//! a time, and deleted. A bucket that accepts what it has to refuse stays read-only
//! ([`Guarantees::read_only_reason`](zarrd_store::Guarantees::read_only_reason)), or is written without conditions with
//! [`WriteMode::LastWins`]. The probe is no proof.
//!
//! # Absence
//!
//! Only 404 means that a key has no value. An answer to a HEAD does not tell a missing object from a missing bucket:
//! then the bucket is listed, unless it was seen in the last ten seconds. 403 is an error, or absence with
//! `?absent=403`: S3 answers so for missing objects to those who may not list. An error that concerns the credentials
//! is never absence.
//!
//! # Listings
//!
//! Listings continue after the last name; those of Azure, which cannot, with its marker. Names that are no keys
//! (`a//b`, markers of directories such as `a/`) are skipped. A prefix with such a marker and nothing else is listed as
//! a prefix. The order is checked: a service that does not sort by bytes fails the listing.
//!
//! # Limits
//!
//! 64 requests wait for their answer at a time. Bodies do not count, since they are read at their readers' pace.
//!
//! # Credentials
//!
//! Errors and logs have the URL of the store, the key, the status and code of the answer, and nothing else of requests
//! and answers, since these have tokens and signatures. A redirect is not followed, since these would go along to another
//! server, and its bytes would be those of the value: it is an error.
//!
//! # Modules
//!
//! | module | |
//! |---|---|
//! | `store` | [`BucketStore`] and its implementation of the store traits |
//! | `read`, `list` | reading a value, and listing keys |
//! | `write` | writing and erasing values, and probing whether a bucket can be written |
//! | `inner` | what clones share: requests with their retries, and whether the bucket exists |
//! | `validators` | versions, and the ETags that they were made of |
//! | `profile`, `aws_config` | profiles in `~/.aws`, as variables |
//! | `provider`, `client`, `http` | the clients of the services and their connections, and judging answers |
//! | `xml` | listings and errors of the services |
//! | `location`, `options`, `kind` | URLs, options, and the kind of store for programs that open URLs |
//! | `failure`, `error` | failures of one request, and errors of the store |

mod aws_config;
mod client;
mod error;
mod failure;
mod http;
mod inner;
mod kind;
mod list;
mod location;
mod options;
mod profile;
mod provider;
mod read;
mod store;
mod validators;
mod write;
mod xml;

pub use self::{
    aws_config::ConfigFileError,
    error::{OpenError, RequestError},
    failure::{Failure, Refusal},
    kind::KIND,
    location::{BucketUrl, UrlError},
    options::{Options, WriteMode},
    profile::ProfileError,
    provider::Bucket,
    store::BucketStore,
};
