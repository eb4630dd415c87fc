//! The protocol of S3 in front of [`s3s`].
//!
//! s3s routes requests to operations, and reads and writes their XML. Everything that decides who makes a request and what
//! its bytes are is done here, before it, since s3s does it in other ways or not at all:
//!
//! - [`Signature`] verifies version 4 of Amazon's signatures, in headers and in presigned URLs, and refuses a request with
//!   a header `x-amz-*` that its signature does not cover. s3s sees requests without a signature.
//! - [`decode`] decodes `aws-chunked` bodies while they arrive, and verifies the signature of each chunk. s3s would hold
//!   each chunk in memory.
//! - [`Verifier`] compares bodies with all the checksums that a request announces.
//! - [`Guard`] refuses what s3s would take for something else, or ignore.
//! - [`ObjectRequest`] parses the requests that read and set objects, which s3s never sees.
//! - [`BucketNames`] maps buckets and the keys in them to the keys of a store, and [`rewrite_conditions`] entity tags to
//!   versions.

mod aws_chunked;
mod body;
mod checksum;
mod entity_tags;
mod guard;
mod headers;
mod host;
mod joined;
mod mac;
mod metadata;
mod names;
mod object_request;
mod sigv4;

pub use aws_chunked::{ChunkSigner, Framing, Trailers, decode};
pub use body::BodyError;
pub use checksum::{Verifier, checksum_header, checksum_of, checksum_text, named_algorithm, parse_checksum};
pub use entity_tags::{entity_tag, entity_tag_header, rewrite_conditions, rewrite_copy_conditions, tagged_version};
pub use guard::{CopySource, Guard, NULL_VERSION, check_version};
pub use host::{Domain, DomainError};
pub use joined::joined_checksum;
pub use metadata::{METADATA_PREFIX, metadata, metadata_header};
pub use names::{Bucket, BucketError, BucketNames, ObjectName, encode_listed};
pub use object_request::{ObjectOperation, ObjectRequest};
pub use sigv4::{OPEN_ACCESS_KEY, OPEN_SECRET_KEY, Signature, SignedRequest};
