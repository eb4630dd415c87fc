//! A read-only store over a bucket of S3, Google Cloud Storage or Azure Blob Storage that other programs write.
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
