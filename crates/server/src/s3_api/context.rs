//! What an operation knows of its request.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use s3s::{S3Error, S3ErrorCode, S3Request, s3_error};
use zarrd_access::Right;
use zarrd_array::Permit;
use zarrd_s3::{Bucket, BucketNames, CopySource, ObjectName, Trailers, Verifier};
use zarrd_store::{Key, Listing, Prefix, ReadableStore, StoreError};

use super::error::Failure;
use crate::{app::App, authorization::Session, error::ApiError};

/// The state of a request. Clones share it.
#[derive(Clone)]
pub(super) struct Context(Arc<Parts>);

pub(super) struct Parts {
    pub(super) app: App,
    pub(super) session: Session,
    /// The headers with the conditions and the range of the request, whose entity tags are versions.
    pub(super) conditions: HeaderMap,
    /// The headers about the content of the value that the request sets.
    pub(super) content: HeaderMap,
    /// The source of a copy, with its conditions.
    pub(super) source: Option<(CopySource, HeaderMap)>,
    pub(super) copied_range: Option<HeaderValue>,
    /// The decoded body, unless s3s has it.
    pub(super) body: Mutex<Option<ObjectBody>>,
    /// What the request announces of a body that s3s has was compared; false if it announces nothing.
    pub(super) has_checksum: bool,
    /// The memory of a body that s3s has.
    pub(super) memory: Mutex<Option<Permit>>,
    /// The error that the response is the rendering of.
    pub(super) failure: Arc<OnceLock<ApiError>>,
}

/// The body of a request that sets an object.
pub(super) struct ObjectBody {
    pub(super) body: Body,
    /// The announced length of the decoded body, in bytes.
    pub(super) length: Option<u64>,
    pub(super) verifier: Verifier,
    pub(super) trailers: Trailers,
}

impl Context {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The context of a request to an operation.
    pub(super) fn of<T>(request: &S3Request<T>) -> Result<Self, S3Error> {
        let context = request.extensions.get::<Self>().cloned();
        context.ok_or_else(|| s3_error!(AccessDenied, "the request was not identified"))
    }

    pub(super) fn app(&self) -> &App {
        &self.0.app
    }

    pub(super) fn session(&self) -> &Session {
        &self.0.session
    }

    /// The headers with conditions.
    pub(super) fn conditions(&self) -> &HeaderMap {
        &self.0.conditions
    }

    /// The headers about the content of the value that the request sets.
    pub(super) fn content(&self) -> &HeaderMap {
        &self.0.content
    }

    /// The source of a copy, with its conditions.
    pub(super) fn source(&self) -> Result<&(CopySource, HeaderMap), Failure> {
        self.0.source.as_ref().ok_or_else(|| s3_error!(InvalidArgument, "x-amz-copy-source is missing").into())
    }

    /// The header with the range of the source of a part.
    pub(super) fn copied_range(&self) -> Option<&HeaderValue> {
        self.0.copied_range.as_ref()
    }

    /// Takes the body of an object.
    pub(super) fn take_body(&self) -> Result<ObjectBody, Failure> {
        self.0.body.lock().take().ok_or_else(|| s3_error!(IncompleteBody, "the body is missing").into())
    }

    pub(super) fn has_checksum(&self) -> bool {
        self.0.has_checksum
    }

    /// Makes an error the one that the logs have, and returns its rendering.
    pub(super) fn fail(&self, failure: Failure) -> S3Error {
        let (error, logged) = failure.into_parts();
        if let Some(logged) = logged {
            // The first one is the cause of the response.
            let _ = self.0.failure.set(logged);
        }
        error
    }

    pub(super) fn names(&self) -> &BucketNames {
        &self.app().settings().s3.buckets
    }

    pub(super) fn bucket(&self, name: &str) -> Result<Bucket, Failure> {
        Ok(name.parse::<Bucket>().map_err(S3Error::from)?)
    }

    /// The key of an object on which the caller has a right; `None` for a name that ends in `/`.
    pub(super) fn key(&self, bucket: &Bucket, name: &str, right: Right) -> Result<Option<Key>, Failure> {
        match self.names().object(bucket, name)? {
            ObjectName::Key(key) => {
                self.require_key(right, &key)?;
                Ok(Some(key))
            }
            ObjectName::Directory => {
                let directory = self.names().prefix(bucket).join(name.trim_end_matches('/'));
                if let Some(prefix) = directory.ok().as_ref().and_then(Prefix::from_key) {
                    self.require(right, &prefix)?;
                }
                Ok(None)
            }
        }
    }

    /// Fails unless the caller has a right on a key.
    pub(super) fn require_key(&self, right: Right, key: &Key) -> Result<(), Failure> {
        match self.session().principal().may_key(right, key) {
            true => Ok(()),
            false => Err(self.denied(right, key.as_str())),
        }
    }

    /// Fails unless the caller has a right on everything below a prefix.
    pub(super) fn require(&self, right: Right, prefix: &Prefix) -> Result<(), Failure> {
        match self.session().principal().may(right, prefix) {
            true => Ok(()),
            false => Err(self.denied(right, prefix.as_str())),
        }
    }

    /// The prefixes that lead a caller who may not read all of a prefix to what it may read; `None` if it may read all.
    /// Fails if there are none.
    pub(super) fn children_towards(&self, prefix: &Prefix) -> Result<Option<Vec<Prefix>>, Failure> {
        let principal = self.session().principal();
        if principal.may(Right::Read, prefix) {
            return Ok(None);
        }
        match principal.grants.children_towards(Right::Read, prefix) {
            children if children.is_empty() => Err(self.denied(Right::Read, prefix.as_str())),
            children => Ok(Some(children)),
        }
    }

    /// True if a key has a value.
    pub(super) async fn exists(&self, key: &Key) -> Result<bool, Failure> {
        Ok(self.app().store().head(key).await?.is_some())
    }

    /// Fails unless keys below a prefix can be listed.
    pub(super) fn check_listed(&self, prefix: &Prefix) -> Result<(), Failure> {
        match self.app().store().guarantees_below(prefix).listing {
            Listing::Sorted => Ok(()),
            _ => Err(StoreError::Unsupported { what: "listings" }.into()),
        }
    }

    fn denied(&self, right: Right, name: &str) -> Failure {
        // Of an anonymous caller nothing is known while tokens cannot be read.
        if !self.session().is_identified()
            && let Err(source) = self.app().settings().access.directory.status()
        {
            return ApiError::from(source).into();
        }
        let name = if name.is_empty() { "/" } else { name };
        S3Error::with_message(S3ErrorCode::AccessDenied, format!("this requires the right to {right} {name}")).into()
    }
}
